package migrate

import (
	"bytes"
	"cmp"
	"fmt"
	"go/ast"
	"go/format"
	"go/parser"
	"go/token"
	"go/types"
	"slices"
	"strings"

	"golang.org/x/tools/go/ast/astutil"
	"golang.org/x/tools/imports"
)

// edit replaces the bytes [from, to).
type edit struct {
	from, to int
	text     string
}

// try plans the edits that move what is at n, and accepts them if they can be made. plan returns also the nodes to remove.
func (f *file) try(n ast.Node, call string, plan func() ([]edit, []ast.Node)) (one Site) {
	one = Site{Position: f.pkg.Fset.PositionFor(n.Pos(), false), Call: call}
	defer func() {
		switch why := recover().(type) {
		case nil:
		case refusal:
			one.Why = string(why)
		default:
			panic(why)
		}
	}()
	if ast.IsGenerated(f.ast) {
		panic(refuse("the file is generated"))
	}
	edits, gone := plan()
	for _, n := range gone {
		inside := func(outer ast.Node) bool { return outer != n && within(n, outer) }
		if !slices.ContainsFunc(gone, inside) {
			edits = append(edits, f.line(n))
		}
	}
	for _, e := range edits {
		if slices.ContainsFunc(f.edits, func(x edit) bool { return e.from < x.to && x.from < e.to }) { // insertions do not overlap
			panic(refuse("it stands inside what is moved; run the command again"))
		}
		for _, group := range f.ast.Comments {
			if e.from <= f.offset(group.Pos()) && f.offset(group.End()) <= e.to {
				panic(refuse("what is replaced contains a comment"))
			}
		}
	}
	f.edits = append(f.edits, edits...)
	return one
}

// apply returns the file with its edits, or nil if there are none.
func (f *file) apply() ([]byte, error) {
	if len(f.edits) == 0 {
		return nil, nil
	}
	slices.SortStableFunc(f.edits, func(a, b edit) int { return cmp.Or(a.from-b.from, a.to-b.to) })
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
	for i, spec := range f.ast.Imports {
		if p := f.pkg.TypesInfo.PkgNameOf(spec); p != nil && !selects(parsed, p.Name()) && selects(f.ast, p.Name()) {
			unused = append(unused, parsed.Imports[i])
		}
	}
	f.importOurs(fset, parsed)
	for _, spec := range unused {
		astutil.DeleteNamedImport(fset, parsed, cmp.Or(spec.Name, &ast.Ident{}).Name, strings.Trim(spec.Path.Value, "`\""))
	}
	for _, path := range []string{"context", "errors", "time"} {
		if selects(parsed, path) && f.importName(path) == "" {
			astutil.AddImport(fset, parsed, path)
		}
	}
	out.Reset()
	if err := format.Node(&out, fset, parsed); err != nil {
		return nil, err
	}
	return imports.Process(f.name, out.Bytes(), &imports.Options{FormatOnly: true, Comments: true, TabIndent: true, TabWidth: 8}) // groups them
}

// importOurs imports our package under a name that is free in the file.
func (f *file) importOurs(fset *token.FileSet, parsed *ast.File) {
	name, alias := f.importName(ourPath), ""
	if name == "" {
		for name = "retry"; f.declares(name) || selects(parsed, name); {
			name += "go"
			alias = name
		}
		astutil.AddNamedImport(fset, parsed, alias, ourPath)
	}
	for id := range idents(parsed) {
		if id.Name == ours {
			id.Name = name
		}
	}
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

// importName returns the name under which the file imports path, or "".
func (f *file) importName(path string) string {
	for _, spec := range f.ast.Imports {
		if p := f.pkg.TypesInfo.PkgNameOf(spec); p != nil && p.Imported().Path() == path && p.Name() != "_" && p.Name() != "." {
			return p.Name()
		}
	}
	return ""
}

// selects reports whether root has a selector on a package of that name.
func selects(root *ast.File, name string) bool {
	for n := range ast.Preorder(root) {
		if sel, ok := n.(*ast.SelectorExpr); ok {
			if id, ok := sel.X.(*ast.Ident); ok && id.Name == name && id.Obj == nil {
				return true
			}
		}
	}
	return false
}
