package main

import (
	"bytes"
	"go/ast"
	"go/doc"
	"go/parser"
	"go/token"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

// TestWhatAPageOnPkgGoDevNeeds holds what that site asks of a module, as far as files show it: a license that it knows,
// beside go.mod or at the root, from which the go command adds it; a package comment; examples that belong to a name; a "Deprecated:"
// in a paragraph of its own. Each package says whether it is stable: those
// of the root module are.
func TestWhatAPageOnPkgGoDevNeeds(t *testing.T) {
	list, err := readModules("../..")
	require.NoError(t, err)
	for _, m := range list {
		license, err := os.ReadFile(filepath.Join(m.dir(), "LICENSE"))
		if os.IsNotExist(err) {
			license, err = os.ReadFile("../../LICENSE")
		}
		require.NoError(t, err)
		require.True(t, bytes.HasPrefix(license, []byte("MIT License\n")), m.folder)
		for line := range strings.Lines(command(t, m.dir(), "go", "list", "-f", "{{.ImportPath}} {{.Dir}}", "./...")) {
			path, dir, _ := strings.Cut(strings.TrimSpace(line), " ")
			if !strings.Contains(path+"/", "/internal/") {
				checkPage(t, path, dir, m.folder == ".")
			}
		}
	}
}

func checkPage(t *testing.T, path, dir string, stable bool) {
	files := token.NewFileSet()
	names, err := filepath.Glob(filepath.Join(dir, "*.go"))
	require.NoError(t, err)
	var parsed []*ast.File
	for _, name := range names {
		file, err := parser.ParseFile(files, name, nil, parser.ParseComments)
		require.NoError(t, err)
		parsed = append(parsed, file)
	}
	page, err := doc.NewFromFiles(files, parsed, path)
	require.NoError(t, err)
	require.NotEmpty(t, page.Doc, path)
	if len(page.Funcs)+len(page.Types)+len(page.Vars)+len(page.Consts) == 0 || strings.HasPrefix(path, rootPath+"/cmd/") {
		return // a command and its parts, or tests alone
	}
	said := map[bool]string{true: "This package is of the stable core. Its names are meant for v1.", false: "may change until it says otherwise."}
	require.Contains(t, strings.ReplaceAll(page.Doc, "\n", " "), said[stable], path)
	shown := len(page.Examples)
	for _, f := range page.Funcs {
		shown += len(f.Examples)
	}
	for _, typ := range page.Types {
		shown += len(typ.Examples)
		for _, f := range append(slices.Clone(typ.Funcs), typ.Methods...) {
			shown += len(f.Examples)
		}
	}
	require.Equal(t, len(doc.Examples(parsed...)), shown, "%s has an example of a name that it does not have", path)
	for _, file := range parsed {
		for _, group := range file.Comments {
			for i, paragraph := range strings.Split(group.Text(), "\n\n") {
				at := strings.Index(paragraph, "Deprecated:")
				require.True(t, at < 0 || at == 0 && i > 0, "%s: %q is not a paragraph of its own", path, paragraph)
			}
		}
	}
}

// TestAdaptersShowTheSignaturesOfWhatTheyName holds that the README of an adapter has the declaration of each function of
// its own that it names in a sentence or a table.
func TestAdaptersShowTheSignaturesOfWhatTheyName(t *testing.T) {
	list, err := readModules("../..")
	require.NoError(t, err)
	var api bytes.Buffer
	require.NoError(t, writeAPI(&api, list))
	var missing []string
	named := 0
	for _, f := range regexp.MustCompile(`(?m)^\S+/(contrib/\w+)(?:/\w+)*: func (?:\((\*?)(\w+)(?:\[.*\])?\)\.)?(\w+)`).FindAllStringSubmatch(api.String(), -1) {
		if _, err := os.Stat(filepath.Join("../..", f[1], "go.mod")); os.IsNotExist(err) {
			continue // what adapters share has no README
		}
		page, err := os.ReadFile(filepath.Join("../..", f[1], "README.md"))
		require.NoError(t, err)
		text := regexp.MustCompile("(?ms)^```.*?^```$").ReplaceAllString(string(page), "")
		name := f[4]
		if f[3] != "" {
			name = f[3] + "." + name
		}
		if !regexp.MustCompile("`(" + filepath.Base(f[1]) + `\.)?` + regexp.QuoteMeta(name) + `\b[^.]`).MatchString(text) {
			continue
		}
		named++
		if !regexp.MustCompile(`(?m)^func (\(\w+ \*?\w+(\[\w+(, \w+)*\])?\) )?` + f[4] + `[\[(]`).Match(page) {
			missing = append(missing, f[1]+" "+name)
		}
	}
	require.Empty(t, missing)
	require.Greater(t, named, 15)
}
