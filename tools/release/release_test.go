package main

import (
	"bytes"
	"fmt"
	"go/types"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"golang.org/x/tools/go/packages"
)

// TestNoModuleImportsTheInternalsOfAnother holds that a published module builds with every later version of the others.
func TestNoModuleImportsTheInternalsOfAnother(t *testing.T) {
	var modules []string
	for line := range strings.Lines(command(t, "../..", "go", "list", "-m", "-f", "{{.Path}} {{.Dir}}")) {
		modules = append(modules, strings.TrimSpace(line))
	}
	require.Greater(t, len(modules), 10)
	owner := func(pkg string) (longest string) {
		for _, m := range modules {
			path, _, _ := strings.Cut(m, " ")
			if (pkg == path || strings.HasPrefix(pkg, path+"/")) && len(path) > len(longest) {
				longest = path
			}
		}
		return longest
	}
	for _, m := range modules {
		path, dir, _ := strings.Cut(m, " ")
		const format = `{{$p := .ImportPath}}{{range .Imports}}{{$p}} {{.}}{{"\n"}}{{end}}` +
			`{{range .TestImports}}{{$p}} {{.}}{{"\n"}}{{end}}{{range .XTestImports}}{{$p}} {{.}}{{"\n"}}{{end}}`
		for line := range strings.Lines(command(t, dir, "go", "list", "-f", format, "./...")) {
			pkg, imported, _ := strings.Cut(strings.TrimSpace(line), " ")
			if ours(imported) && strings.Contains(imported+"/", "/internal/") {
				require.Equal(t, path, owner(imported), "%s imports %s", pkg, imported)
			}
		}
	}
}

// TestTheRootModuleStandsOnItself holds what a v1 of the root promises: it requires no other module of this repository,
// and its exported API names only its own types and those of the standard library.
func TestTheRootModuleStandsOnItself(t *testing.T) {
	list, err := readModules("../..")
	require.NoError(t, err)
	root := list[0]
	for _, r := range root.mod.Require {
		require.False(t, ours(r.Mod.Path), "the root requires %s", r.Mod.Path)
	}
	found, err := packages.Load(&packages.Config{Dir: root.dir(), Mode: packages.NeedName | packages.NeedTypes | packages.NeedImports | packages.NeedDeps}, "./...")
	require.NoError(t, err)
	seen := 0
	for _, p := range found {
		require.Empty(t, p.Errors, p.PkgPath)
		if !public(p) {
			continue
		}
		seen++
		for _, path := range foreign(p.Types) {
			t.Errorf("the API of %s names a type of %s", p.PkgPath, path)
		}
	}
	require.Equal(t, 11, seen, "packages that users can import")
}

// foreign returns the paths of the packages whose types the exported names of p have, without the standard library's
// and those that users can import from the root module.
func foreign(p *types.Package) (paths []string) {
	exported(p, func(other *types.Package) string {
		domain, _, _ := strings.Cut(other.Path(), "/")
		if strings.Contains(domain, ".") && !ours(other.Path()) || strings.Contains(other.Path()+"/", "/internal/") {
			paths = append(paths, other.Path())
		}
		return other.Name()
	})
	return paths
}

func TestATypeOfAnotherModuleInTheAPIIsFound(t *testing.T) {
	found, err := packages.Load(&packages.Config{Mode: packages.NeedTypes | packages.NeedImports | packages.NeedDeps}, "golang.org/x/mod/zip")
	require.NoError(t, err)
	require.Contains(t, foreign(found[0].Types), "golang.org/x/mod/module")
}

func command(t *testing.T, dir, name string, args ...string) string {
	cmd := exec.Command(name, args...)
	cmd.Dir = dir
	var stderr bytes.Buffer
	cmd.Stderr = &stderr
	out, err := cmd.Output()
	require.NoError(t, err, stderr.String())
	return string(out)
}

func TestTheListOfModules(t *testing.T) {
	list, err := readModules("../..")
	require.NoError(t, err)
	require.Equal(t, ".", list[0].folder)
	architecture, err := os.ReadFile("../../docs/architecture.md")
	require.NoError(t, err)
	for _, m := range list {
		name := strings.Replace(m.folder, ".", "retry", 1)
		row := fmt.Sprintf("| `%s` | %s | %s |", name, m.version, strings.TrimSuffix(m.mod.Go.Version, ".0"))
		require.Contains(t, string(architecture), row+"\n", "the table in docs/architecture.md")
		replaced := len(m.mod.Replace) > 0
		require.False(t, replaced && strings.HasPrefix(m.folder, "cmd/"), "%s has a replace, so that go install refuses it", m.folder)
	}
}

func TestDateChangelog(t *testing.T) {
	file := filepath.Join(t.TempDir(), "CHANGELOG.md")
	day := time.Date(2026, 12, 24, 0, 0, 0, 0, time.UTC)
	before := "# Changelog\n\n## [Unreleased]\n\n- new\n"
	require.NoError(t, os.WriteFile(file, []byte(before), 0o600))
	text := func() string {
		data, err := os.ReadFile(file)
		require.NoError(t, err)
		return string(data)
	}
	require.NoError(t, dateChangelog(file, "v0.1.0", day))
	require.Equal(t, "# Changelog\n\n## [Unreleased]\n\n## [0.1.0] - 2026-12-24\n\n- new\n"+
		"[0.1.0]: https://github.com/retrygo/retry/releases/tag/v0.1.0\n", text())
	require.ErrorContains(t, dateChangelog(file, "v0.1.0", day), "has a section for v0.1.0 already")
	require.NoError(t, dateChangelog(file, "contrib/x/v0.1.1", day), "of a module that is released alone")
	require.Contains(t, text(), "## [contrib/x/v0.1.1] - 2026-12-24\n")
}
