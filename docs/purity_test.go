package docs

import (
	"go/ast"
	"go/build"
	"go/importer"
	"go/parser"
	"go/token"
	"go/types"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

var (
	fset   = token.NewFileSet()
	parsed = map[string]*ast.File{}
)

// files returns the root package's own files, parsed once.
func files(t *testing.T) map[string]*ast.File {
	if len(parsed) > 0 {
		return parsed
	}
	entries, err := os.ReadDir("..")
	require.NoError(t, err)
	for _, e := range entries {
		if strings.HasSuffix(e.Name(), ".go") && !strings.HasSuffix(e.Name(), "_test.go") {
			parsed[e.Name()], err = parser.ParseFile(fset, filepath.Join("..", e.Name()), nil, 0)
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

// selected returns the names that are selected from package pkg within node: Now and Since for time.Now() and f :=
// time.Since.
func selected(node ast.Node, pkg string) (names []string) {
	ast.Inspect(node, func(n ast.Node) bool {
		if sel, ok := n.(*ast.SelectorExpr); ok {
			if x, ok := sel.X.(*ast.Ident); ok && x.Name == pkg {
				names = append(names, sel.Sel.Name)
			}
		}
		return true
	})
	return names
}

// those returns the names that are in the list.
func those(names []string, list ...string) []string {
	return slices.DeleteFunc(names, func(name string) bool { return !slices.Contains(list, name) })
}

// clockReads returns the readings of the clock within node, in order.
func clockReads(node ast.Node) []string {
	return those(selected(node, "time"), "Now", "Since", "Until")
}

// functions returns all functions and methods by name; a name can stand for several.
func functions(t *testing.T) map[string][]*ast.FuncDecl {
	found := map[string][]*ast.FuncDecl{}
	for _, file := range files(t) {
		for _, decl := range file.Decls {
			if f, ok := decl.(*ast.FuncDecl); ok {
				found[f.Name.Name] = append(found[f.Name.Name], f)
			}
		}
	}
	return found
}

func TestTheRootImportsLittle(t *testing.T) {
	allowed := []string{"github.com/retrygo/retry/internal/attempt",
		"github.com/retrygo/retry/internal/saturate", "github.com/retrygo/retry/internal/show", "cmp", "context", "encoding/json", "errors", "fmt", "iter", "math", "math/rand/v2", "slices", "strconv", "strings", "sync", "sync/atomic", "time"}
	for name, file := range files(t) {
		for _, path := range imports(t, file) {
			require.Contains(t, allowed, path, name)
		}
		for _, spec := range file.Imports {
			require.Nil(t, spec.Name, "%s renames an import, which would hide it from the tests below", name)
		}
	}
	for _, name := range []string{"internal/saturate/saturate.go", "internal/show/show.go"} {
		file, err := parser.ParseFile(fset, filepath.Join("..", name), nil, 0)
		require.NoError(t, err)
		require.Empty(t, clockReads(file), name)
		require.NotContains(t, strings.Join(imports(t, file), " "), "rand", name)
	}
}

// TestPurity holds the idea of the package: time, chance and attempt number are arguments. do.go alone reads a clock,
// starts a timer or draws a number, except that NewBudget and Budgets.For read the clock. No file starts a goroutine.
func TestPurity(t *testing.T) {
	for name, file := range files(t) {
		clock := clockReads(file)
		switch name {
		case "do.go":
			require.Contains(t, clock, "Since")
			require.Equal(t, []string{"NewTimer"}, those(selected(file, "time"), "Sleep", "After", "AfterFunc", "NewTimer", "NewTicker", "Tick"))
		case "budget.go":
			require.Equal(t, []string{"Now"}, clock)
			require.Equal(t, clock, clockReads(functions(t)["NewBudget"][0]))
		case "budgets.go":
			require.Equal(t, []string{"Since"}, clock)
			require.Equal(t, clock, clockReads(functions(t)["For"][0]), "of Budgets, for idle keys")
		default:
			require.Empty(t, clock, name)
			require.NotContains(t, imports(t, file), "sync", name)
			require.NotContains(t, imports(t, file), "sync/atomic", name)
		}
		if name != "do.go" {
			require.NotContains(t, imports(t, file), "math/rand/v2", name)
			require.Empty(t, those(selected(file, "time"), "Sleep", "After", "AfterFunc", "NewTimer", "NewTicker", "Tick"), name)
		}
		require.Empty(t, those(selected(file, "context"), "AfterFunc"), "%s has a goroutine started", name)
		ast.Inspect(file, func(n ast.Node) bool {
			if _, ok := n.(*ast.GoStmt); ok {
				t.Errorf("%s starts a goroutine", name)
			}
			return true
		})
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
		}
		ast.Inspect(file, func(n ast.Node) bool {
			switch n := n.(type) {
			case *ast.AssignStmt:
				for _, left := range n.Lhs {
					if x, ok := left.(*ast.Ident); ok {
						require.NotContains(t, []string{"ErrAttemptTimeout", "epoch"}, x.Name, "neither is written again")
					}
				}
			case *ast.UnaryExpr:
				if x, ok := n.X.(*ast.Ident); ok && n.Op == token.AND {
					require.NotContains(t, []string{"ErrAttemptTimeout", "epoch"}, x.Name, "neither is pointed to")
				}
			}
			return true
		})
	}
	require.Empty(t, functions(t)["init"])
	require.ElementsMatch(t, []string{"ErrAttemptTimeout", "epoch"}, names)
}

// imported imports packages of the standard library, and of the root module from their source.
type imported struct{ types.Importer }

func (i imported) Import(path string) (*types.Package, error) {
	folder, ours := strings.CutPrefix(path, module+"/")
	if !ours {
		return i.Importer.Import(path)
	}
	names, err := filepath.Glob(filepath.Join("..", folder, "*.go"))
	if err != nil {
		return nil, err
	}
	var list []*ast.File
	for _, name := range names {
		if strings.HasSuffix(name, "_test.go") {
			continue
		}
		file, err := parser.ParseFile(fset, name, nil, 0)
		if err != nil {
			return nil, err
		}
		list = append(list, file)
	}
	return (&types.Config{Importer: i}).Check(path, fset, list, nil)
}

// TestOneClockReading holds that a first-try success without AttemptTimeout and Observe reads the clock once: on its
// way through Do the clock is named once, and no function of the package that is named on that way names it. The type
// checker says which function a name means, so that no alias and no method value hides one.
func TestOneClockReading(t *testing.T) {
	var list []*ast.File
	for _, file := range files(t) {
		list = append(list, file)
	}
	info := &types.Info{Uses: map[*ast.Ident]types.Object{}, Defs: map[*ast.Ident]types.Object{}}
	root, err := exec.Command("go", "env", "GOROOT").Output() // which a binary built with -trimpath does not know
	require.NoError(t, err)
	build.Default.GOROOT = strings.TrimSpace(string(root))
	_, err = (&types.Config{Importer: imported{importer.Default()}}).Check("retry", fset, list, info)
	require.NoError(t, err)
	bodies := map[types.Object]*ast.FuncDecl{}
	for _, all := range functions(t) {
		for _, f := range all {
			bodies[info.Defs[f.Name]] = f
		}
	}

	var reads []string // of the clock, with the function that does it
	seen := map[types.Object]bool{}
	var visit func(f *ast.FuncDecl)
	visit = func(f *ast.FuncDecl) {
		for _, part := range onFirstTry(f) {
			ast.Inspect(part, func(n ast.Node) bool {
				x, ok := n.(*ast.Ident)
				if !ok {
					return true
				}
				switch used := info.Uses[x]; {
				case used == nil || seen[used]:
				case used.Pkg() != nil && used.Pkg().Path() == "time" && slices.Contains([]string{"Now", "Since", "Until"}, used.Name()):
					reads = append(reads, f.Name.Name+": "+used.Name())
				case bodies[used] != nil:
					seen[used] = true
					visit(bodies[used])
				}
				return true
			})
		}
	}
	do := functions(t)["Do"][0]
	visit(do)
	require.Equal(t, []string{"Do: Since"}, reads)
	require.True(t, seen[info.Defs[functions(t)["add"][0].Name]], "the way leads to the budget")
	require.False(t, seen[info.Defs[functions(t)["loop"][0].Name]], "and not to a retry")
}

// onFirstTry returns the parts of f that a first-try success can reach. A timeout is 0. In Do there is no observer, and
// an if whose body returns is not taken.
func onFirstTry(f *ast.FuncDecl) (reached []ast.Node) {
	inDo := f.Name.Name == "Do"
	for _, stmt := range f.Body.List {
		branch, ok := stmt.(*ast.IfStmt)
		if !ok {
			reached = append(reached, stmt)
			continue
		}
		_, returns := branch.Body.List[len(branch.Body.List)-1].(*ast.ReturnStmt)
		reached = append(reached, branch.Cond)
		if branch.Init != nil {
			reached = append(reached, branch.Init)
		}
		switch {
		case isZeroTimeout(branch.Cond):
			if reached = append(reached, branch.Body); returns {
				return reached
			}
		case inDo && slices.Equal(selected(branch.Cond, "p"), []string{"Observe"}):
		case inDo && returns && branch.Else == nil:
		default:
			reached = append(reached, branch)
		}
	}
	return reached
}

// isZeroTimeout reports whether a condition is timeout == 0, also of p.AttemptTimeout.
func isZeroTimeout(cond ast.Expr) bool {
	c, ok := cond.(*ast.BinaryExpr)
	if !ok || c.Op != token.EQL {
		return false
	}
	zero, ok := c.Y.(*ast.BasicLit)
	if !ok || zero.Value != "0" {
		return false
	}
	switch x := c.X.(type) {
	case *ast.Ident:
		return x.Name == "timeout"
	case *ast.SelectorExpr:
		return x.Sel.Name == "AttemptTimeout"
	}
	return false
}
