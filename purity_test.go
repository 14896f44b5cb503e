package retry_test

import (
	"go/ast"
	"go/parser"
	"go/token"
	"os"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

// files parses the root package's own files.
func files(t *testing.T) map[string]*ast.File {
	entries, err := os.ReadDir(".")
	require.NoError(t, err)
	parsed := map[string]*ast.File{}
	for _, e := range entries {
		if strings.HasSuffix(e.Name(), ".go") && !strings.HasSuffix(e.Name(), "_test.go") {
			parsed[e.Name()], err = parser.ParseFile(token.NewFileSet(), e.Name(), nil, 0)
			require.NoError(t, err)
		}
	}
	require.Contains(t, parsed, "do.go")
	return parsed
}

func imports(t *testing.T, file *ast.File) []string {
	var paths []string
	for _, spec := range file.Imports {
		path, err := strconv.Unquote(spec.Path.Value)
		require.NoError(t, err)
		paths = append(paths, path)
	}
	return paths
}

func TestTheRootImportsLittle(t *testing.T) {
	allowed := []string{"cmp", "context", "errors", "fmt", "iter", "math", "math/bits", "math/rand/v2", "slices", "strings", "sync", "sync/atomic", "time"}
	for name, file := range files(t) {
		for _, path := range imports(t, file) {
			require.Contains(t, allowed, path, name)
		}
	}
}

// TestPurity holds the idea of the package: time, chance and attempt number are arguments; do.go alone reads a clock,
// starts a timer or draws a number.
func TestPurity(t *testing.T) {
	clocks := []string{"Now", "Since", "Until", "Sleep", "After", "AfterFunc", "NewTimer", "NewTicker", "Tick"}
	for name, file := range files(t) {
		if name == "do.go" {
			continue
		}
		require.NotContains(t, imports(t, file), "math/rand/v2", name)
		ast.Inspect(file, func(n ast.Node) bool {
			if sel, ok := n.(*ast.SelectorExpr); ok {
				if x, ok := sel.X.(*ast.Ident); ok && x.Name == "time" {
					require.False(t, slices.Contains(clocks, sel.Sel.Name), "%s reads time.%s", name, sel.Sel.Name)
				}
			}
			if _, ok := n.(*ast.GoStmt); ok {
				t.Errorf("%s starts a goroutine", name)
			}
			return true
		})
		if !slices.Contains([]string{"budget.go", "do.go"}, name) {
			require.NotContains(t, imports(t, file), "sync", name)
			require.NotContains(t, imports(t, file), "sync/atomic", name)
		}
	}
}

func TestTheOnlyVariables(t *testing.T) {
	var names []string
	for _, file := range files(t) {
		for _, decl := range file.Decls {
			if d, ok := decl.(*ast.GenDecl); ok && d.Tok == token.VAR {
				for _, spec := range d.Specs {
					for _, ident := range spec.(*ast.ValueSpec).Names {
						names = append(names, ident.Name)
					}
				}
			}
			if f, ok := decl.(*ast.FuncDecl); ok {
				require.False(t, f.Recv == nil && f.Name.Name == "init")
			}
		}
	}
	require.ElementsMatch(t, []string{"ErrAttemptTimeout", "epoch"}, names, "both are never written again")
}

// TestOneClockReading holds that a first-try success reads the clock once: Do names time.Since once and nothing of the
// clock beside it.
func TestOneClockReading(t *testing.T) {
	reads := map[string][]string{}
	for _, decl := range files(t)["do.go"].Decls {
		f, ok := decl.(*ast.FuncDecl)
		if !ok {
			continue
		}
		ast.Inspect(f, func(n ast.Node) bool {
			if sel, ok := n.(*ast.SelectorExpr); ok {
				if x, ok := sel.X.(*ast.Ident); ok && x.Name == "time" && slices.Contains([]string{"Now", "Since", "Until"}, sel.Sel.Name) {
					reads[f.Name.Name] = append(reads[f.Name.Name], sel.Sel.Name)
				}
			}
			return true
		})
	}
	require.Equal(t, []string{"Since"}, reads["Do"])
}
