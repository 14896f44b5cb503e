package migrate

import (
	"fmt"
	"go/ast"
	"go/parser"
	"go/token"
	"go/types"
	"maps"
	"path/filepath"
	"slices"
	"strings"

	"golang.org/x/tools/go/packages"
)

// strays are the marks of a library outside the works of its sites. They may reach any run.
type strays struct {
	makers []maker // calls that make a mark that we have too
	looked bool    // a mark was searched for
	stuck  *place  // a mark that cannot be made for this library too

	moved, refused bool // sites of the library
}

// maker is a call that makes a mark.
type maker struct {
	*file
	call *ast.CallExpr
	to   string // our counterpart
}

func (m maker) String() string { return (&place{m.pkg.Fset.Position(m.call.Pos())}).String() }

type place struct{ token.Position }

func (p *place) String() string { return fmt.Sprintf("%s:%d", filepath.Base(p.Filename), p.Line) }

// marked reports whether name is that of a mark.
func (l *library) marked(name string) bool {
	_, ok := l.marks[name]
	return ok
}

// survey finds the sites of all files, and then the marks outside them.
func survey(files []*file, graph map[string]*packages.Package) map[*library]*strays {
	result, seen := map[*library]*strays{}, map[string]bool{}
	for _, lib := range libraries {
		result[lib] = &strays{}
	}
	for _, f := range files {
		seen[f.name] = true
	}
	for _, p := range graph { // packages of the module that the patterns leave out
		for path, lib := range libraries {
			if p.Module == nil || !p.Module.Main {
				continue
			}
			for _, name := range slices.Concat(p.GoFiles, p.IgnoredFiles) {
				if !seen[name] && marksIn(name, path, lib) {
					result[lib].stuck = &place{token.Position{Filename: name, Line: 1}}
				}
			}
		}
	}
	for _, f := range files {
		f.find(result)
	}
	for _, f := range files {
		for n := range ast.Preorder(f.ast) {
			if id, ok := n.(*ast.Ident); ok {
				f.stray(id, result)
			}
		}
	}
	return result
}

// stray adds id to the strays if it is one.
func (f *file) stray(id *ast.Ident, all map[*library]*strays) {
	lib := f.mark(id)
	if lib == nil {
		return
	}
	if owner := f.owner(id); owner != nil && owner.lib == lib {
		return
	}
	to, s := lib.marks[id.Name], all[lib]
	_, isType := f.pkg.TypesInfo.Uses[id].(*types.TypeName)
	sel, selected := f.parents[id].(*ast.SelectorExpr)
	if !selected {
		s.stuck = &place{f.pkg.Fset.Position(id.Pos())}
		return
	}
	switch parent := f.parents[sel].(type) {
	case *ast.CallExpr:
		switch {
		case parent.Fun != sel || isType || ast.IsGenerated(f.ast) || f.hidden(id.Pos()) != "":
		case to == "" && strings.HasPrefix(id.Name, "Is"):
			s.looked = true
			return
		case to != "" && (id.Name != "Unrecoverable" || f.failed(parent)):
			inner, ok := ast.Unparen(parent.Args[0]).(*ast.CallExpr)
			if ok {
				fn := f.callee(inner)
				ok = fn != nil && fn.FullName() == ourPath+"."+to
			}
			if !ok { // by an earlier run
				s.makers = append(s.makers, maker{f, parent, to})
			}
			return
		}
	case *ast.CompositeLit:
		if isType && len(parent.Elts) == 0 {
			s.looked = true
			return
		}
	default:
		if isType {
			s.looked = true
			return
		}
	}
	s.stuck = &place{f.pkg.Fset.Position(id.Pos())}
}

// mark returns the library whose mark id names, or nil.
func (f *file) mark(id *ast.Ident) *library {
	obj := f.pkg.TypesInfo.Uses[id]
	if obj == nil || obj.Pkg() == nil {
		return nil
	}
	if lib := libraries[obj.Pkg().Path()]; lib != nil && lib.marked(id.Name) {
		return lib
	}
	return nil
}

// rewrite makes the marks for this library as well if a site was moved, and for it alone if the other library no longer
// needs them.
func (s *strays) rewrite() {
	if !s.moved {
		return
	}
	for _, m := range s.makers {
		if edits := m.edits(!s.refused && !s.looked && m.private()); !slices.ContainsFunc(edits, m.taken) {
			m.file.edits = append(m.file.edits, edits...)
		}
	}
}

// edits makes the mark for this library as well, or for it alone.
func (m maker) edits(alone bool) []edit {
	ourMark := ours + "." + m.to
	if alone {
		return []edit{{m.offset(m.call.Fun.Pos()), m.offset(m.call.Fun.End()), ourMark}}
	}
	from, to := m.offset(m.call.Args[0].Pos()), m.offset(m.call.Args[0].End())
	return []edit{{from, from, ourMark + "("}, {to, to, ")"}}
}

// private reports whether only this module can call the functions in f.
func (f *file) private() bool {
	return f.pkg.Name == "main" || strings.Contains(f.pkg.PkgPath+"/", "/internal/") || strings.HasSuffix(f.name, "_test.go")
}

// markEdits replaces the library's marks in the work.
func (s *site) markEdits() []edit {
	var edits []edit
	for _, id := range s.marks() {
		edits = append(edits, edit{s.offset(s.parents[id].Pos()), s.offset(s.parents[id].End()), ours + "." + s.lib.marks[id.Name]})
	}
	return edits
}

// marks returns the marks of the library in the work.
func (s *site) marks() []*ast.Ident {
	var result []*ast.Ident
	if s.lit == nil {
		return nil
	}
	ast.Inspect(s.lit, func(n ast.Node) bool {
		if id, ok := n.(*ast.Ident); ok && s.mark(id) == s.lib && s.owner(id) == s {
			result = append(result, id)
		}
		return true
	})
	return result
}

// ownMarks refuses a site with marks in the work that have no counterpart.
func (s *site) ownMarks() error {
	for _, id := range s.marks() {
		sel, ok := s.parents[id].(*ast.SelectorExpr)
		if !ok {
			return refuse("%s is imported by a dot", s.lib.name)
		}
		if s.lib.marks[id.Name] == "" {
			return refuse("%s has no counterpart", id.Name)
		}
		call, ok := s.parents[sel].(*ast.CallExpr)
		if id.Name == "Unrecoverable" && (!ok || !s.failed(call)) {
			return refuse("Unrecoverable(nil) is an error and Permanent(nil) is nil: the error here may be nil")
		}
	}
	return nil
}

// markingImport returns a package of another module that this package, or one of this module that it needs, imports,
// and whose source names a mark of the library; or "".
func (s *site) markingImport() string {
	if len(s.lib.marks) == 0 {
		return ""
	}
	libPath := s.callee(s.call).Pkg().Path()
	seen := map[string]bool{libPath: true}
	var search func(imports map[string]*packages.Package) string
	search = func(imports map[string]*packages.Package) string {
		for _, path := range slices.Sorted(maps.Keys(imports)) {
			dep := s.graph[path]
			if seen[path] || dep == nil || dep.Module == nil {
				continue
			}
			seen[path] = true
			switch {
			case dep.Module.Main:
				if found := search(dep.Imports); found != "" {
					return found
				}
			case dep.Imports[libPath] != nil:
				if slices.ContainsFunc(dep.GoFiles, func(name string) bool { return marksIn(name, libPath, s.lib) }) {
					return path
				}
			}
		}
		return ""
	}
	return search(s.pkg.Imports)
}

// marksIn reports whether the source file imports lib and names a mark of it, or cannot be read.
func marksIn(name, path string, lib *library) bool {
	syntax, _ := parser.ParseFile(token.NewFileSet(), name, nil, parser.SkipObjectResolution) // as far as it parses
	if syntax == nil {
		return true
	}
	if !slices.ContainsFunc(syntax.Imports, func(spec *ast.ImportSpec) bool { return importPath(spec) == path }) {
		return false
	}
	for n := range ast.Preorder(syntax) {
		if id, ok := n.(*ast.Ident); ok && lib.marked(id.Name) {
			return true
		}
	}
	return false
}

// failed reports whether the argument of mark is an error that cannot be nil there.
func (f *file) failed(mark *ast.CallExpr) bool {
	if len(mark.Args) != 1 {
		return false
	}
	arg := ast.Unparen(mark.Args[0])
	if call, ok := arg.(*ast.CallExpr); ok {
		fn := f.callee(call)
		return fn != nil && (fn.FullName() == "errors.New" || fn.FullName() == "fmt.Errorf")
	}
	id, ok := arg.(*ast.Ident)
	if !ok {
		return false
	}
	obj := f.pkg.TypesInfo.Uses[id]
	for n := ast.Node(mark); n != nil; n = f.parents[n] {
		branch, ok := f.parents[n].(*ast.IfStmt)
		if _, isLit := n.(*ast.FuncLit); isLit {
			return false
		}
		if ok && branch.Body == n && f.refutes(branch.Cond, obj) {
			stmt, _ := f.statement(mark)
			for _, use := range f.uses(obj) {
				write, address := f.write(use)
				if address || write && branch.Body.Pos() <= use.Pos() && use.Pos() < stmt.Pos() {
					return false
				}
			}
			return true
		}
	}
	return false
}

// refutes reports whether cond holds only if obj, an error, is not nil.
func (f *file) refutes(cond ast.Expr, obj types.Object) bool {
	is := func(e ast.Expr) bool {
		id, ok := ast.Unparen(e).(*ast.Ident)
		return ok && f.pkg.TypesInfo.Uses[id] == obj
	}
	switch cond := ast.Unparen(cond).(type) {
	case *ast.BinaryExpr:
		switch cond.Op {
		case token.LAND:
			return f.refutes(cond.X, obj) || f.refutes(cond.Y, obj)
		case token.LOR:
			return f.refutes(cond.X, obj) && f.refutes(cond.Y, obj)
		case token.NEQ:
			return is(cond.X) && f.pkg.TypesInfo.Types[cond.Y].IsNil()
		}
	case *ast.CallExpr:
		fn := f.callee(cond)
		return fn != nil && len(cond.Args) == 2 && is(cond.Args[0]) &&
			(fn.FullName() == "errors.As" || fn.FullName() == "errors.Is" && !f.pkg.TypesInfo.Types[cond.Args[1]].IsNil())
	}
	return false
}
