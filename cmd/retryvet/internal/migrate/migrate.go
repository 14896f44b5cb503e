// Package migrate moves calls of other retry libraries over to github.com/retrygo/retry.
//
// A call is moved only if what it does is known from its own function: the same calls of the work at the same times.
// Everything else is refused with a reason.
package migrate

import (
	"bytes"
	"cmp"
	"context"
	"errors"
	"fmt"
	"go/ast"
	"go/format"
	"go/parser"
	"go/token"
	"go/types"
	"maps"
	"os"
	"path/filepath"
	"runtime/debug"
	"slices"
	"strconv"
	"strings"

	"github.com/rogpeppe/go-internal/diff"
	"golang.org/x/mod/modfile"
	"golang.org/x/mod/module"
	"golang.org/x/tools/go/ast/astutil"
	"golang.org/x/tools/go/packages"
)

const (
	ourPath = "github.com/retrygo/retry"
	// These stand for the names of our packages in edits, until it is known which names are free in the file.
	ours     = "retryvetOURS"
	oursHTTP = "retryvetHTTP"
)

// Grade says what became of a call.
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

// Report is what Run found and did.
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

// replace writes all files, or puts back what was there.
func replace(old, changed map[string][]byte) error {
	for name, src := range changed {
		if err := os.WriteFile(name, src, 0o644); err != nil {
			for name, src := range old {
				if src != nil {
					err = errors.Join(err, os.WriteFile(name, src, 0o644))
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

// graph returns all packages that those matched depend on, by path, without types.
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
		// A go.mod beside the real one, so that the real one changes only if the result is sound.
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

// file is a source file of the module.
type file struct {
	name    string
	pkg     *packages.Package
	ast     *ast.File
	src     []byte
	parents map[ast.Node]ast.Node
	graph   map[string]*packages.Package
	sites   []*site
	edits   []edit // accepted
}

// edit replaces the bytes [from, to).
type edit struct {
	from, to int
	text     string
}

// readable returns the files of pkgs that can be rewritten, each once. A file is seen with its package's tests if it
// has any.
func readable(pkgs []*packages.Package) []*file {
	byName := map[string]*file{}
	for _, p := range pkgs {
		if strings.HasSuffix(p.PkgPath, ".test") {
			continue
		}
		for _, syntax := range p.Syntax {
			name := p.Fset.PositionFor(syntax.FileStart, false).Filename
			if byName[name] != nil && !strings.Contains(p.ID, " [") || !slices.Contains(p.GoFiles, name) {
				continue // seen already, or made by cgo
			}
			src, err := os.ReadFile(name)
			if err != nil || len(src) != int(syntax.FileEnd-syntax.FileStart) {
				continue
			}
			byName[name] = &file{name: name, pkg: p, ast: syntax, src: src, parents: parents(syntax)}
		}
	}
	return slices.SortedFunc(maps.Values(byName), func(a, b *file) int { return cmp.Compare(a.name, b.name) })
}

func parents(root ast.Node) map[ast.Node]ast.Node {
	result := map[ast.Node]ast.Node{}
	var stack []ast.Node
	ast.Inspect(root, func(n ast.Node) bool {
		if n == nil {
			stack = stack[:len(stack)-1]
			return true
		}
		if len(stack) > 0 {
			result[n] = stack[len(stack)-1]
		}
		stack = append(stack, n)
		return true
	})
	return result
}

// find fills f.sites, in the order of the source.
func (f *file) find(all map[*library]*strays) {
	ast.Inspect(f.ast, func(n ast.Node) bool {
		var obj types.Object
		s := &site{file: f}
		switch n := n.(type) {
		case *ast.CallExpr:
			if fn := f.callee(n); fn != nil {
				obj, s.name = fn, calleeName(fn)
			}
			s.expr, s.call = n, n
		case *ast.UnaryExpr: // &retryablehttp.RoundTripper{}
			s.expr = n
			if lit, ok := n.X.(*ast.CompositeLit); ok {
				if named, ok := f.pkg.TypesInfo.TypeOf(lit).(*types.Named); ok {
					obj, s.name = named.Obj(), named.Obj().Name()
				}
			}
		}
		if obj == nil || obj.Pkg() == nil || libraries[obj.Pkg().Path()] == nil {
			return true
		}
		s.lib = libraries[obj.Pkg().Path()]
		if index, ok := s.lib.calls[s.name]; ok {
			s.strays = all[s.lib]
			if index >= 0 && index < len(s.call.Args) {
				s.literal(s.call.Args[index])
			}
			f.sites = append(f.sites, s)
		}
		return true
	})
}

// callee returns the function or method that call calls, if that is known.
func (f *file) callee(call *ast.CallExpr) *types.Func {
	fun := ast.Unparen(call.Fun)
	switch index := fun.(type) {
	case *ast.IndexExpr:
		fun = index.X
	case *ast.IndexListExpr:
		fun = index.X
	}
	var id *ast.Ident
	switch fun := fun.(type) {
	case *ast.Ident:
		id = fun
	case *ast.SelectorExpr:
		id = fun.Sel
	default:
		return nil
	}
	fn, _ := f.pkg.TypesInfo.Uses[id].(*types.Func)
	if fn != nil {
		fn = fn.Origin()
	}
	return fn
}

// calleeName returns "F", or "T.M" for a method.
func calleeName(fn *types.Func) string {
	if recv := fn.Signature().Recv(); recv != nil {
		t := recv.Type()
		if p, ok := t.(*types.Pointer); ok {
			t = p.Elem()
		}
		if named, ok := t.(*types.Named); ok {
			return named.Obj().Name() + "." + fn.Name()
		}
	}
	return fn.Name()
}

// owner returns the site whose work n is part of, the innermost.
func (f *file) owner(n ast.Node) *site {
	for ; n != nil; n = f.parents[n] {
		if lit, ok := n.(*ast.FuncLit); ok {
			for _, s := range f.sites {
				if s.lit == lit {
					return s
				}
			}
		}
	}
	return nil
}

// rewrite plans the edits of every site and accepts those that can be made.
func (f *file) rewrite() []Site {
	var result []Site
	drops := map[types.Object][]ast.Node{}
	for _, s := range f.sites {
		p, edits, err := s.plan()
		if err == nil && slices.ContainsFunc(edits, f.taken) {
			err = refuse("it stands inside a call that is moved; run the migration again")
		}
		one := Site{Position: f.pkg.Fset.Position(s.expr.Pos()), Call: s.lib.name + " " + s.name, Grade: Same}
		switch {
		case err != nil:
			one.Grade, one.Why = Refused, []string{err.Error()}
			s.strays.refused = true
		default:
			s.strays.moved = true
			f.edits = append(f.edits, edits...)
			maps.Copy(drops, p.drop)
			if one.Why = p.remarks; len(p.remarks) > 0 {
				one.Grade = Remarked
			}
		}
		result = append(result, one)
	}
	f.drop(drops)
	return result
}

// drop removes the statements that make variables, unless something else still uses them.
func (f *file) drop(made map[types.Object][]ast.Node) {
	used := func(id *ast.Ident) bool {
		for _, nodes := range made {
			if slices.ContainsFunc(nodes, func(n ast.Node) bool { return within(id, n) }) {
				return false
			}
		}
		at := f.offset(id.Pos())
		return !slices.ContainsFunc(f.edits, func(e edit) bool { return e.from <= at && at < e.to })
	}
	for before := -1; before != len(made); {
		before = len(made)
		maps.DeleteFunc(made, func(obj types.Object, _ []ast.Node) bool { return slices.ContainsFunc(f.uses(obj), used) })
	}
	for _, nodes := range made {
		for _, n := range nodes {
			f.edits = append(f.edits, f.line(n))
		}
	}
}

// taken reports whether e overlaps with an edit that is accepted. Insertions do not.
func (f *file) taken(e edit) bool {
	return slices.ContainsFunc(f.edits, func(x edit) bool { return e.from < x.to && x.from < e.to })
}

// apply returns the file with its edits, or nil if there are none.
func (f *file) apply() ([]byte, error) {
	if len(f.edits) == 0 {
		return nil, nil
	}
	slices.SortStableFunc(f.edits, func(a, b edit) int { return cmp.Or(a.from-b.from, a.to-b.to) })
	f.edits = slices.Compact(f.edits) // two calls of one statement with the same remarks
	var out bytes.Buffer
	at := 0
	for _, e := range f.edits {
		out.Write(f.src[at:e.from])
		out.WriteString(e.text)
		at = e.to
	}
	out.Write(f.src[at:])
	fset := token.NewFileSet()
	parsed, err := parser.ParseFile(fset, f.name, out.Bytes(), parser.ParseComments)
	if err != nil {
		return nil, fmt.Errorf("nothing was migrated: what would be written does not parse: %w", err)
	}
	var unused []*ast.ImportSpec // of parsed
	for spec, pkgName := range f.imports() {
		if !selects(parsed, pkgName) && selects(f.ast, pkgName) {
			unused = append(unused, parsed.Imports[slices.Index(f.ast.Imports, spec)])
		}
	}
	slices.SortFunc(unused, func(a, b *ast.ImportSpec) int { return int(a.Pos() - b.Pos()) })
	unused = f.importOurs(fset, parsed, ours, ourPath, unused)
	unused = f.importOurs(fset, parsed, oursHTTP, ourPath+"/retryhttp", unused)
	for _, spec := range unused {
		alias := ""
		if spec.Name != nil {
			alias = spec.Name.Name
		}
		astutil.DeleteNamedImport(fset, parsed, alias, importPath(spec))
	}
	for _, path := range []string{"context", "time", "net/http"} {
		if selects(parsed, path[strings.LastIndex(path, "/")+1:]) && f.importName(path) == "" {
			astutil.AddImport(fset, parsed, path)
		}
	}
	out.Reset()
	if err := format.Node(&out, fset, parsed); err != nil {
		return nil, err
	}
	return out.Bytes(), nil
}

// importOurs imports our package path for the marker, under a name that is free in the file. The import takes the place
// of the first unused one of a library, if there is one. It returns the others.
func (f *file) importOurs(fset *token.FileSet, parsed *ast.File, marker, path string, unused []*ast.ImportSpec) []*ast.ImportSpec {
	if !selects(parsed, marker) {
		return unused
	}
	name, alias := f.importName(path), ""
	known := name != ""
	if !known {
		name = path[strings.LastIndex(path, "/")+1:]
		for f.declares(name) || selects(parsed, name) {
			name += "go"
			alias = name
		}
	}
	rename(parsed, marker, name)
	if known {
		return unused
	}
	at := slices.IndexFunc(unused, func(spec *ast.ImportSpec) bool { return libraries[importPath(spec)] != nil })
	if at < 0 {
		astutil.AddNamedImport(fset, parsed, alias, path)
		return unused
	}
	place := unused[at]
	place.Path.Value, place.Name = strconv.Quote(path), nil
	if alias != "" {
		place.Name = &ast.Ident{Name: alias, NamePos: place.Path.Pos()}
	}
	return slices.Delete(unused, at, at+1)
}

// rename renames the identifier from.
func rename(root *ast.File, from, to string) {
	ast.Inspect(root, func(n ast.Node) bool {
		if id, ok := n.(*ast.Ident); ok && id.Name == from {
			id.Name = to
		}
		return true
	})
}

// declares reports whether the file, or its package, declares name for something other than an import.
func (f *file) declares(name string) bool {
	for id, obj := range f.pkg.TypesInfo.Defs {
		_, isPkg := obj.(*types.PkgName)
		if id.Name == name && obj != nil && !isPkg && obj.Parent() != nil &&
			(obj.Parent() == f.pkg.Types.Scope() || f.pkg.Fset.PositionFor(id.Pos(), false).Filename == f.name) {
			return true
		}
	}
	return false
}

// imports returns the imports of the file with the names that they have in it.
func (f *file) imports() map[*ast.ImportSpec]string {
	result := map[*ast.ImportSpec]string{}
	for _, spec := range f.ast.Imports {
		obj := f.pkg.TypesInfo.Implicits[spec]
		if spec.Name != nil {
			obj = f.pkg.TypesInfo.Defs[spec.Name]
		}
		if name, ok := obj.(*types.PkgName); ok {
			result[spec] = name.Name()
		}
	}
	return result
}

func importPath(spec *ast.ImportSpec) string { return strings.Trim(spec.Path.Value, "`\"") }

// importName returns the name under which the file imports path, or "".
func (f *file) importName(path string) string {
	for spec, name := range f.imports() {
		if importPath(spec) == path && name != "_" && name != "." {
			return name
		}
	}
	return ""
}

// selects reports whether root has a selector on a package of that name.
func selects(root *ast.File, name string) bool {
	found := false
	ast.Inspect(root, func(n ast.Node) bool {
		if sel, ok := n.(*ast.SelectorExpr); ok {
			id, ok := sel.X.(*ast.Ident)
			found = found || ok && id.Name == name && id.Obj == nil
		}
		return !found
	})
	return found
}

func (f *file) offset(p token.Pos) int { return int(p - f.ast.FileStart) }

func (f *file) text(n ast.Node) string { return string(f.src[f.offset(n.Pos()):f.offset(n.End())]) }
