// Package migrate moves calls of other retry libraries over to github.com/retrygo/retry.
//
// A call is moved only if its own function shows its behavior: the same calls of the work at the same times.
// Everything else is refused with a reason.
package migrate

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"go/token"
	"go/version"
	"maps"
	"os"
	"path/filepath"
	"runtime/debug"
	"slices"
	"strings"

	"github.com/rogpeppe/go-internal/diff"
	"golang.org/x/mod/modfile"
	"golang.org/x/mod/module"
	"golang.org/x/tools/go/packages"
)

const (
	ourPath = "github.com/retrygo/retry"
	// Placeholders for the names of our packages in edits, until the free names of the file are known.
	ours     = "retryvetOURS"
	oursHTTP = "retryvetHTTP"
)

// Grade is the result of the migration of a call.
type Grade int

// The grades.
const (
	Same     Grade = iota + 1 // moved, with the same meaning
	Remarked                  // moved, with a remark above the statement
	Refused                   // left as it is
)

// String returns "same", "same with a remark" or "refused".
func (g Grade) String() string { return [...]string{"", "same", "same with a remark", "refused"}[g] }

// Site is a call of another library.
type Site struct {
	Position token.Position
	Call     string   // such as "backoff/v4 Retry"
	Grade    Grade    //
	Why      []string // the remarks, or why the call was refused
}

// String returns one line: position, call, grade and reasons.
func (s Site) String() string {
	line := fmt.Sprintf("%v: %s: %v", s.Position, s.Call, s.Grade)
	if len(s.Why) > 0 {
		line += ": " + strings.Join(s.Why, "; ")
	}
	return line
}

// Report is the result of Run.
type Report struct {
	Sites []Site // in the order of files and lines
	Diff  string // unified, with paths relative to the module; empty if nothing is moved
}

// Run moves the calls in the packages that match patterns, as go list knows them, in the module at dir. It adds the
// requirement on our module to go.mod if there is none. The result is type-checked, tests included; if that fails, Run
// returns an error. It writes only if write is true, and otherwise only returns the diff.
func Run(ctx context.Context, dir string, patterns []string, write bool) (Report, error) {
	l := loader{ctx: ctx, dir: dir, patterns: patterns}
	pkgs, err := l.load()
	if err != nil {
		return Report{}, err
	}
	graph, err := l.graph()
	if err != nil {
		return Report{}, err
	}
	files := readable(pkgs)
	for _, f := range files {
		f.graph = graph
	}
	var report Report
	strays := survey(files, graph)
	for _, f := range files {
		report.Sites = append(report.Sites, f.rewrite()...)
	}
	report.Sites = append(report.Sites, unread(pkgs, files)...)
	slices.SortStableFunc(report.Sites, func(a, b Site) int {
		return cmp.Or(cmp.Compare(a.Position.Filename, b.Position.Filename), a.Position.Offset-b.Position.Offset)
	})
	for _, s := range strays {
		s.rewrite()
	}
	changed := map[string][]byte{}
	for _, f := range files {
		src, err := f.apply()
		if err != nil {
			return Report{}, err
		}
		if src != nil {
			changed[f.name] = src
		}
	}
	if len(changed) == 0 {
		return report, nil
	}
	if err := l.check(pkgs, changed); err != nil {
		return Report{}, err
	}
	for name := range changed {
		if err := l.inside(name); err != nil {
			return Report{}, err
		}
	}
	old := map[string][]byte{}
	for _, name := range slices.Sorted(maps.Keys(changed)) {
		if old[name], err = os.ReadFile(name); err != nil && !errors.Is(err, os.ErrNotExist) {
			return Report{}, err
		}
		shown := name
		if rel, err := filepath.Rel(l.root, name); err == nil {
			shown = filepath.ToSlash(rel)
		}
		if filepath.Base(name) != "go.sum" {
			report.Diff += string(diff.Diff("a/"+shown, old[name], "b/"+shown, changed[name]))
		}
	}
	if write {
		return report, replace(old, changed)
	}
	return report, nil
}

// inside returns an error if the file name is a link, or in a folder that a link leads to from outside of the module.
func (l *loader) inside(name string) error {
	info, err := os.Lstat(name)
	if errors.Is(err, os.ErrNotExist) { // a go.sum to come
		return nil
	}
	root, rootErr := filepath.EvalSymlinks(l.root)
	real, realErr := filepath.EvalSymlinks(name)
	if err := errors.Join(err, rootErr, realErr); err != nil {
		return err
	}
	if rel, err := filepath.Rel(root, real); !info.Mode().IsRegular() || err != nil || !filepath.IsLocal(rel) {
		return fmt.Errorf("nothing was migrated: %s is not a regular file of the module", name)
	}
	return nil
}

// replace writes all files, or restores them after an error.
func replace(old, changed map[string][]byte) error {
	for _, name := range slices.Sorted(maps.Keys(changed)) {
		if err := os.WriteFile(name, changed[name], 0o644); err != nil {
			for name, src := range old {
				if src != nil {
					err = errors.Join(err, os.WriteFile(name, src, 0o644))
				} else if gone := os.Remove(name); !errors.Is(gone, os.ErrNotExist) {
					err = errors.Join(err, gone)
				}
			}
			return fmt.Errorf("nothing was migrated: %w", err)
		}
	}
	return nil
}

type loader struct {
	ctx      context.Context
	dir      string
	patterns []string
	root     string // of the module
}

const need = packages.NeedName | packages.NeedFiles | packages.NeedCompiledGoFiles | packages.NeedImports |
	packages.NeedTypes | packages.NeedTypesInfo | packages.NeedSyntax | packages.NeedModule

func (l *loader) load() ([]*packages.Package, error) {
	pkgs, err := packages.Load(&packages.Config{Context: l.ctx, Dir: l.dir, Mode: need, Tests: true}, l.patterns...)
	if err != nil {
		return nil, err
	}
	return pkgs, faults(pkgs, "before anything was changed")
}

// graph returns all dependencies of the matched packages by path, without types.
func (l *loader) graph() (map[string]*packages.Package, error) {
	pkgs, err := packages.Load(&packages.Config{Context: l.ctx, Dir: l.dir, Tests: true, Mode: packages.NeedName |
		packages.NeedFiles | packages.NeedImports | packages.NeedDeps | packages.NeedModule}, l.patterns...)
	if err != nil {
		return nil, err
	}
	result := map[string]*packages.Package{}
	packages.Visit(pkgs, nil, func(p *packages.Package) { result[p.PkgPath] = p })
	return result, nil
}

func faults(pkgs []*packages.Package, when string) error {
	var all []error
	for _, p := range pkgs {
		for _, e := range p.Errors {
			all = append(all, e)
		}
	}
	if len(all) == 0 {
		return nil
	}
	return fmt.Errorf("nothing was migrated: the packages do not type-check %s: %w", when, errors.Join(all...))
}

// check type-checks the module with the changed files. It adds go.mod and go.sum to changed if they change.
func (l *loader) check(pkgs []*packages.Package, changed map[string][]byte) error {
	main := pkgs[0].Module
	for _, p := range pkgs {
		if p.Module == nil || p.Module.GoMod == "" || p.Module.Dir != main.Dir {
			return errors.New("nothing was migrated: the patterns match packages outside a module or of two modules")
		}
	}
	l.root = main.Dir
	config := packages.Config{Context: l.ctx, Dir: l.dir, Mode: need, Tests: true, Overlay: maps.Clone(changed)}
	src, err := os.ReadFile(main.GoMod)
	if err != nil {
		return err
	}
	mod, err := modfile.Parse(main.GoMod, src, nil)
	if err != nil {
		return err
	}
	required := slices.ContainsFunc(mod.Require, func(r *modfile.Require) bool { return r.Mod.Path == ourPath })
	own := mod.Module.Mod.Path == ourPath
	if !required && !own {
		if mod.Go == nil || version.Compare("go"+mod.Go.Version, "go1.22") < 0 {
			return fmt.Errorf("nothing was migrated: %s needs a newer language than the go line of go.mod, and Go 1.22 changed "+
				"loop variables: raise the line first", ourPath)
		}
		// A second go.mod, so that the real one changes only if the result is sound.
		temp, err := os.MkdirTemp("", "retryvet")
		if err != nil {
			return err
		}
		defer os.RemoveAll(temp)
		mod.SetRequireSeparateIndirect(append(mod.Require, &modfile.Require{Mod: module.Version{Path: ourPath, Version: ourVersion()}}))
		mod.Cleanup()
		if src, err = mod.Format(); err != nil {
			return err
		}
		sum, err := os.ReadFile(strings.TrimSuffix(main.GoMod, ".mod") + ".sum")
		if err != nil && !errors.Is(err, os.ErrNotExist) {
			return err
		}
		tempMod := filepath.Join(temp, "go.mod")
		err = errors.Join(os.WriteFile(tempMod, src, 0o600), os.WriteFile(filepath.Join(temp, "go.sum"), sum, 0o600))
		if err != nil {
			return err
		}
		config.Env = append(os.Environ(), "GOWORK=off")
		config.BuildFlags = []string{"-mod=mod", "-modfile=" + tempMod}
		defer func() {
			for _, name := range []string{"go.mod", "go.sum"} {
				if now, err := os.ReadFile(filepath.Join(temp, name)); err == nil && len(now) > 0 {
					changed[filepath.Join(filepath.Dir(main.GoMod), name)] = now
				}
			}
		}()
	}
	after, err := packages.Load(&config, l.patterns...)
	if err != nil {
		return fmt.Errorf("nothing was migrated: %w", err)
	}
	return faults(after, "after the change")
}

// ourVersion returns the version of our module that this program was built with.
func ourVersion() string {
	if info, ok := debug.ReadBuildInfo(); ok {
		for _, dep := range info.Deps {
			if dep.Path == ourPath && strings.HasPrefix(dep.Version, "v") {
				return dep.Version
			}
		}
	}
	return "v0.1.0"
}
