package migrate

import (
	"fmt"
	"go/ast"
	"go/parser"
	"go/token"
	"path/filepath"
	"slices"
)

type place struct{ token.Position }

func (p *place) String() string { return fmt.Sprintf("%s:%d", filepath.Base(p.Filename), p.Line) }

// survey finds the sites of all files, and for each library a mark outside of the works of its sites. Files that the build
// leaves out count.
func survey(files []*file, ignored []string) {
	strays := map[*library]*place{}
	for _, name := range ignored {
		for path, lib := range libraries {
			if line := marksIn(name, path, lib); line > 0 {
				strays[lib] = &place{token.Position{Filename: name, Line: line}}
			}
		}
	}
	for _, f := range files {
		f.find()
	}
	for _, f := range files {
		for n := range ast.Preorder(f.ast) {
			if id, ok := n.(*ast.Ident); ok {
				lib := f.mark(id)
				if owner := f.owner(id); lib != nil && (owner == nil || owner.lib != lib) {
					strays[lib] = &place{f.pkg.Fset.PositionFor(id.Pos(), false)}
				}
			}
		}
	}
	for _, f := range files {
		for _, s := range f.sites {
			s.stray = strays[s.lib]
		}
	}
}

// mark returns the library whose mark id names, or nil.
func (f *file) mark(id *ast.Ident) *library {
	obj := f.pkg.TypesInfo.Uses[id]
	if obj == nil || obj.Pkg() == nil {
		return nil
	}
	if lib := libraries[obj.Pkg().Path()]; lib != nil && slices.Contains(lib.marks, id.Name) {
		return lib
	}
	return nil
}

// markEdits replaces the library's marks in the work.
func (s *site) markEdits() []edit {
	var edits []edit
	for _, id := range s.marks() {
		edits = append(edits, edit{s.offset(s.parents[id].Pos()), s.offset(s.parents[id].End()), ours + "." + id.Name})
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

// marksIn returns the line of a mark of lib in the source file, 0 if there is none.
func marksIn(name, path string, lib *library) int {
	fset := token.NewFileSet()
	syntax, _ := parser.ParseFile(fset, name, nil, parser.SkipObjectResolution) // as far as it parses
	if syntax == nil || !slices.ContainsFunc(syntax.Imports, func(spec *ast.ImportSpec) bool { return importPath(spec) == path }) {
		return 0
	}
	for n := range ast.Preorder(syntax) {
		if id, ok := n.(*ast.Ident); ok && slices.Contains(lib.marks, id.Name) {
			return fset.PositionFor(id.Pos(), false).Line
		}
	}
	return 0
}
