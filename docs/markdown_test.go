package docs

import (
	"bytes"
	"context"
	"fmt"
	"go/ast"
	"go/parser"
	"go/token"
	"os"
	"os/exec"
	"path"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

// A block is fenced code in a Markdown file.
type block struct {
	file     string
	line     int // of its first line
	language string
	text     string
	prints   bool
	output   string // the text block that follows it directly
}

var fence = regexp.MustCompile("(?m)^( *)```([a-z]*)\n(?s:(.*?))^ *```$")

// blocks returns the fenced blocks of a Markdown text.
func blocks(file, text string) []block {
	var found []block
	end := 0
	for _, at := range fence.FindAllStringSubmatchIndex(text, -1) {
		b := block{file, 1 + strings.Count(text[:at[6]], "\n"), text[at[4]:at[5]], text[at[6]:at[7]], false, ""}
		if last := len(found) - 1; last >= 0 && b.language == "text" && strings.TrimSpace(text[end:at[0]]) == "" {
			found[last].prints, found[last].output = true, b.text
		}
		found = append(found, b)
		end = at[1]
	}
	return found
}

// TestCodeRuns takes each Go block from the Markdown files, adds the imports that it lacks, and runs it in the
// workspace: a program with main, or tests. Blocks of declarations without package clause are one package for each
// file, and for docs/migrating.md with its pages. What a program prints is compared with the text block that follows it.
func TestCodeRuns(t *testing.T) {
	root, err := filepath.Abs("..")
	require.NoError(t, err)
	known := importPaths(t, root)
	declared := map[string][]block{}
	for _, file := range markdownFiles(t, root) {
		text, err := os.ReadFile(filepath.Join(root, file))
		require.NoError(t, err)
		pkg := file
		if strings.HasPrefix(file, "docs/migrating/") {
			pkg = "docs/migrating.md"
		}
		for _, b := range blocks(file, strings.ReplaceAll(string(text), "\r", "")) {
			switch {
			case b.language != "go":
			case strings.HasPrefix(b.text, "package "):
				t.Run(fmt.Sprintf("%s:%d", b.file, b.line), func(t *testing.T) { b.run(t, root, known) })
			default:
				declared[pkg] = append(declared[pkg], b)
			}
		}
	}
	for pkg, blocks := range declared {
		t.Run(pkg, func(t *testing.T) { runTests(t, root, known, blocks) })
	}
}

// TestTheTestsThatPagesNameExist looks at the text of all pages and package comments, without their code.
func TestTheTestsThatPagesNameExist(t *testing.T) {
	root, err := filepath.Abs("..")
	require.NoError(t, err)
	texts := func(patterns ...string) map[string]string {
		found := map[string]string{}
		for _, file := range strings.Fields(run(t, root, "git", append([]string{"ls-files"}, patterns...)...)) {
			text, err := os.ReadFile(filepath.Join(root, file))
			require.NoError(t, err)
			found[file] = strings.ReplaceAll(string(text), "\r", "")
		}
		return found
	}
	declared := map[string]bool{}
	for _, text := range texts("*_test.go") {
		for _, f := range regexp.MustCompile(`(?m)^func ((?:Test|Fuzz|Benchmark)\w+)\(`).FindAllStringSubmatch(text, -1) {
			declared[f[1]] = true
		}
	}
	named := 0
	for file, text := range texts("*.md", "*doc.go") {
		for _, name := range regexp.MustCompile(`\b(?:Test|Fuzz|Benchmark)[A-Z]\w+`).FindAllString(fence.ReplaceAllString(text, ""), -1) {
			named++
			require.True(t, declared[name], "%s names %s, which does not exist", file, name)
		}
	}
	require.Greater(t, named, 150)
}

// TestTheLinksBetweenPagesLeadSomewhere looks at the links to files of this repository.
func TestTheLinksBetweenPagesLeadSomewhere(t *testing.T) {
	root, err := filepath.Abs("..")
	require.NoError(t, err)
	code, link := regexp.MustCompile("`[^`\n]*`"), regexp.MustCompile(`\]\(([^):#\s]+)(#[^)]*)?\)`)
	seen := 0
	for _, file := range markdownFiles(t, root) {
		text, err := os.ReadFile(filepath.Join(root, file))
		require.NoError(t, err)
		prose := code.ReplaceAllString(fence.ReplaceAllString(string(text), ""), "")
		for _, to := range link.FindAllStringSubmatch(prose, -1) {
			seen++
			_, err := os.Stat(filepath.Join(root, filepath.Dir(file), filepath.FromSlash(to[1])))
			require.NoError(t, err, file)
		}
	}
	require.Greater(t, seen, 200)
}

func markdownFiles(t *testing.T, root string) []string {
	out := run(t, root, "git", "ls-files", "--cached", "--others", "--exclude-standard", "*.md")
	files := strings.Fields(out)
	require.Contains(t, files, "README.md")
	return files
}

// run runs b, which is a whole program.
func (b block) run(t *testing.T, root string, known map[string]string) {
	t.Parallel()
	main := filepath.Join(t.TempDir(), "main.go")
	require.NoError(t, os.WriteFile(main, []byte(withImports(t, b.text, known)), 0o600))
	got := run(t, root, "go", "run", main)
	if !b.prints {
		return
	}
	require.Equal(t, masked(b.output), masked(got), "%s:%d prints something else than it shows", b.file, b.line)
}

// runTests runs the tests in blocks of declarations, after it has compiled all of them.
func runTests(t *testing.T, root string, known map[string]string, declared []block) {
	t.Parallel()
	dir := t.TempDir()
	args := []string{"test"}
	for i, b := range declared {
		name := filepath.Join(dir, fmt.Sprintf("block%d_test.go", i))
		text := fmt.Sprintf("package shown\n//line %s:%d\n%s", b.file, b.line, b.text)
		require.NoError(t, os.WriteFile(name, []byte(withImports(t, text, known)), 0o600))
		args = append(args, name)
	}
	run(t, root, "go", args...)
}

// measured matches what differs from run to run in an output: how long a run took, a figure after ≈, and spaces at the
// end of a line, which Markdown does not show.
var measured = regexp.MustCompile(`(?m)(attempts? in |≈)[0-9.]+[a-zµ]+| +$`)

func masked(text string) string { return measured.ReplaceAllString(text, "$1") }

func run(t *testing.T, dir, name string, args ...string) string {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), 5*time.Minute)
	defer cancel()
	cmd := exec.CommandContext(ctx, name, args...)
	cmd.Dir = dir
	var stdout, stderr bytes.Buffer
	cmd.Stdout, cmd.Stderr = &stdout, &stderr
	require.NoError(t, cmd.Run(), "%s %s\n%s%s", name, strings.Join(args, " "), &stdout, &stderr)
	return stdout.String()
}

// importPaths returns the path to import for a package's name: of the standard library, of the workspace, and require.
func importPaths(t *testing.T, root string) map[string]string {
	known := map[string]string{"require": "github.com/stretchr/testify/require"}
	for _, p := range strings.Fields(run(t, root, "go", "list", "std", "work")) {
		name := path.Base(p)
		if strings.Contains(p, "internal/") || strings.Contains(p, "vendor/") || name == "rand" && p != "math/rand/v2" || name == "template" {
			continue
		}
		if old, ok := known[name]; !ok || len(p) < len(old) {
			known[name] = p
		}
	}
	known["rand"] = "math/rand/v2"
	return known
}

// withImports returns source with an import of each known package that it names and neither declares nor imports.
func withImports(t *testing.T, source string, known map[string]string) string {
	file, err := parser.ParseFile(token.NewFileSet(), "", source, 0)
	require.NoError(t, err, source)
	bound := map[string]bool{}
	for _, spec := range file.Imports {
		if spec.Name != nil {
			bound[spec.Name.Name] = true
		} else {
			bound[strings.TrimSpace(run(t, "..", "go", "list", "-f", "{{.Name}}", strings.Trim(spec.Path.Value, `"`)))] = true
		}
	}
	var missing []string
	for _, id := range file.Unresolved {
		if p, ok := known[id.Name]; ok && !bound[id.Name] && selects(file, id) {
			missing = append(missing, fmt.Sprintf("import %q", p))
			bound[id.Name] = true
		}
	}
	slices.Sort(missing)
	clause, rest, _ := strings.Cut(source, "\n")
	return clause + "; " + strings.Join(missing, "; ") + "\n" + rest
}

// selects reports whether id is the operand of a selector, as in id.Name.
func selects(file *ast.File, id *ast.Ident) bool {
	found := false
	ast.Inspect(file, func(n ast.Node) bool {
		if s, ok := n.(*ast.SelectorExpr); ok && s.X == id {
			found = true
		}
		return !found
	})
	return found
}
