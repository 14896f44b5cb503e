// Package migrate moves calls of other retry libraries, loops that ask those how long to wait, and hand-written retry loops
// over to github.com/retrygo/retry.
//
// A call or loop is moved only if its own function shows its behavior: the same calls of the work at the same times.
// Everything else is refused with a reason.
package migrate

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"go/token"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/rogpeppe/go-internal/diff"
	"golang.org/x/tools/go/packages"
)

const (
	ourPath = "github.com/retrygo/retry"
	// A placeholder for the name of our package in edits, until the free names of the file are known.
	ours = "retryvetOURS"
)

// Site is a call of another library, or a hand-written loop.
type Site struct {
	Position token.Position
	Call     string // such as "backoff/v4 Retry"
	Why      string // why it is refused; "" if it is moved
}

// String returns one line: position, call, "moved" or "refused", and why.
func (s Site) String() string {
	outcome := "moved"
	if s.Why != "" {
		outcome = "refused: " + s.Why
	}
	return fmt.Sprintf("%v: %s: %s", s.Position, s.Call, outcome)
}

// Report is the result of Run.
type Report struct {
	Sites []Site // in the order of files and lines
	Diff  string // unified, with paths relative to the module; empty if nothing is moved
}

// ErrNotRequired is returned if something can be moved, and the module cannot import our package yet.
var ErrNotRequired = errors.New("nothing was migrated: the module cannot import " + ourPath + ": run go get " + ourPath + " first")

// Options are what Run moves, and whether it writes the result.
type Options struct {
	Loops bool // hand-written retry loops in place of calls of other libraries
	Write bool
}

// Run moves the calls, or the loops, in the packages that match patterns, as go list knows them, in the module at dir, which
// must require our module. The result is type-checked, tests included; what is moved in a file that fails is refused. It
// writes only if o.Write is set, and otherwise only returns the diff. The report is complete if the error is nil or
// ErrNotRequired.
func Run(ctx context.Context, dir string, patterns []string, o Options) (Report, error) {
	l := loader{ctx: ctx, dir: dir, patterns: patterns}
	pkgs, chosen, err := l.load()
	if err != nil {
		return Report{}, err
	}
	files := readable(pkgs)
	stray := survey(pkgs, files)
	var report Report
	for _, f := range files {
		if f.all, f.stray = files, stray; !chosen[f.pkg.PkgPath] {
			continue
		}
		if !o.Loops {
			for _, s := range f.sites {
				report.Sites = append(report.Sites, f.try(s.call, s.lib.name+" "+s.name, s.plan))
			}
		}
		report.Sites = append(report.Sites, f.loops(o.Loops)...)
	}
	slices.SortStableFunc(report.Sites, func(a, b Site) int {
		return cmp.Or(cmp.Compare(a.Position.Filename, b.Position.Filename), a.Position.Offset-b.Position.Offset)
	})
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
	for again := true; again; {
		if len(changed) == 0 {
			return report, nil
		}
		err := l.check(changed)
		if err != nil && strings.Contains(err.Error(), "could not import "+ourPath+" ") {
			return report, ErrNotRequired
		}
		again = false
		for i, site := range report.Sites {
			name := site.Position.Filename
			if why := fault(err, name); why != "" && site.Why == "" && changed[name] != nil {
				report.Sites[i].Why, again = "the file would not type-check: "+why, true
			}
		}
		if err != nil && !again {
			return Report{}, err
		}
		maps.DeleteFunc(changed, func(name string, _ []byte) bool { return fault(err, name) != "" })
	}
	for _, f := range files {
		if changed[f.name] != nil {
			shown, err := l.inside(f.name)
			if err != nil {
				return Report{}, err
			}
			report.Diff += string(diff.Diff("a/"+shown, f.src, "b/"+shown, changed[f.name]))
		}
	}
	if o.Write {
		return report, replace(files, changed)
	}
	return report, nil
}

// inside returns the path of the file in the module, and an error if it is a link, or in a folder that a link leads to.
func (l *loader) inside(name string) (string, error) {
	root, rootErr := filepath.EvalSymlinks(l.main.Dir)
	real, realErr := filepath.EvalSymlinks(name)
	rel, err := filepath.Rel(l.main.Dir, name)
	if err := errors.Join(err, rootErr, realErr); err != nil {
		return "", err
	}
	if real != filepath.Join(root, rel) {
		return "", fmt.Errorf("nothing was migrated: %s is not a regular file of the module", name)
	}
	return filepath.ToSlash(rel), nil
}

// replace writes all files, or restores them after an error.
func replace(files []*file, changed map[string][]byte) error {
	for _, name := range slices.Sorted(maps.Keys(changed)) {
		if err := os.WriteFile(name, changed[name], 0o644); err != nil {
			for _, f := range files {
				if changed[f.name] != nil {
					err = errors.Join(err, os.WriteFile(f.name, f.src, 0o644))
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
	main     *packages.Module
}

const need = packages.NeedName | packages.NeedFiles | packages.NeedCompiledGoFiles | packages.NeedImports |
	packages.NeedTypes | packages.NeedTypesInfo | packages.NeedSyntax | packages.NeedModule

// load returns all packages of the module, and the paths of those that match the patterns, which must type-check.
func (l *loader) load() (all []*packages.Package, chosen map[string]bool, err error) {
	named, err := packages.Load(&packages.Config{Context: l.ctx, Dir: l.dir, Mode: packages.NeedName | packages.NeedModule, Tests: true}, l.patterns...)
	if err != nil {
		return nil, nil, err
	}
	chosen = map[string]bool{}
	for _, p := range named {
		if p.Module == nil || p.Module.GoMod == "" || l.main != nil && p.Module.Dir != l.main.Dir {
			err := cmp.Or(faults(named, "before anything was changed"), errors.New("nothing was migrated: the patterns match packages outside a module or of two modules"))
			return nil, nil, err
		}
		l.main, chosen[p.PkgPath] = p.Module, true
	}
	if l.main == nil {
		return nil, nil, errors.New("nothing was migrated: no packages match")
	}
	all, err = packages.Load(&packages.Config{Context: l.ctx, Dir: l.dir, Mode: need, Tests: true}, l.main.Path+"/...")
	if err != nil {
		return nil, nil, err
	}
	ours := slices.DeleteFunc(slices.Clone(all), func(p *packages.Package) bool { return !chosen[p.PkgPath] })
	if len(ours) == 0 {
		return nil, nil, fmt.Errorf("nothing was migrated: go list %s/... lists no package that matches", l.main.Path)
	}
	return all, chosen, faults(ours, "before anything was changed")
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

// fault returns the first error of err that is in the file, or "".
func fault(err error, file string) string {
	if err == nil {
		return ""
	}
	for line := range strings.Lines(err.Error()) {
		if at, why, is := strings.Cut(line, file+":"); is && (at == "" || strings.HasSuffix(at, ": ")) {
			return strings.TrimSpace(why)
		}
	}
	return ""
}

// check type-checks the packages with the changed files.
func (l *loader) check(changed map[string][]byte) error {
	after, err := packages.Load(&packages.Config{Context: l.ctx, Dir: l.dir, Mode: need, Tests: true, Overlay: changed}, l.patterns...)
	if err != nil {
		return fmt.Errorf("nothing was migrated: %w", err)
	}
	return faults(after, "after the change")
}
