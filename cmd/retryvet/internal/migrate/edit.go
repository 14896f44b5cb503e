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

// rewrite plans the edits of every call and accepts those that can be made.
func (f *file) rewrite() (result []Site) {
	for _, s := range f.sites {
		edits, err := s.plan()
		if err == nil && slices.ContainsFunc(edits, f.taken) {
			err = refuse("it stands inside a call that is moved; run the migration again")
		}
		one := Site{Position: f.pkg.Fset.PositionFor(s.call.Pos(), false), Call: s.lib.name + " " + s.name}
		if err != nil {
			one.Why = err.Error()
		} else {
			f.edits = append(f.edits, edits...)
		}
		result = append(result, one)
	}
	return result
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
	f.importOurs(fset, parsed)
	for _, spec := range unused {
		alias := ""
		if spec.Name != nil {
			alias = spec.Name.Name
		}
		astutil.DeleteNamedImport(fset, parsed, alias, importPath(spec))
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
	ast.Inspect(parsed, func(n ast.Node) bool {
		if id, ok := n.(*ast.Ident); ok && id.Name == ours {
			id.Name = name
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

// imports returns the imports of the file with their names in it.
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
