package migrate

import (
	"cmp"
	"go/ast"
	"go/token"
	"go/types"
	"iter"
	"maps"
	"os"
	"slices"
	"strings"

	"golang.org/x/tools/go/ast/inspector"
	"golang.org/x/tools/go/packages"
	"golang.org/x/tools/go/types/typeutil"

	"github.com/retrygo/retry/cmd/retryvet/internal/calls"
)

// file is a source file of the module.
type file struct {
	name    string
	pkg     *packages.Package
	ast     *ast.File
	src     []byte
	parents map[ast.Node]ast.Node
	all     []*file                    // of the module
	calls   map[string][]*ast.CallExpr // by the full name of the callee
	sites   []*site
	stray   string // see survey
	edits   []edit // accepted
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
			f := &file{name: name, pkg: p, ast: syntax, src: src, parents: map[ast.Node]ast.Node{}, calls: map[string][]*ast.CallExpr{}}
			for cur := range inspector.New([]*ast.File{syntax}).Root().Preorder() {
				f.parents[cur.Node()] = cur.Parent().Node()
				if call, ok := cur.Node().(*ast.CallExpr); ok {
					if fn := f.callee(call); fn != nil {
						f.calls[fn.FullName()] = append(f.calls[fn.FullName()], call)
					}
				}
			}
			byName[name] = f
		}
	}
	return slices.SortedFunc(maps.Values(byName), func(a, b *file) int { return cmp.Compare(a.name, b.name) })
}

// declaration returns the declaration of the function of that full name, or nil.
func (f *file) declaration(name string) *ast.FuncDecl {
	for _, decl := range f.ast.Decls {
		if d, ok := decl.(*ast.FuncDecl); ok && d.Body != nil {
			if fn, ok := f.pkg.TypesInfo.Defs[d.Name].(*types.Func); ok && fn.FullName() == name {
				return d
			}
		}
	}
	return nil
}

// callee returns the function or method that call calls, or nil if it is unknown.
func (f *file) callee(call *ast.CallExpr) *types.Func {
	if fn, ok := typeutil.Callee(f.pkg.TypesInfo, call).(*types.Func); ok {
		return fn.Origin()
	}
	return nil
}

func (f *file) offset(p token.Pos) int { return int(p - f.ast.FileStart) }

func (f *file) text(n ast.Node) string { return string(f.src[f.offset(n.Pos()):f.offset(n.End())]) }

// uses returns the uses of obj in the source order.
func (f *file) uses(obj types.Object) []*ast.Ident {
	var ids []*ast.Ident
	for id, used := range f.pkg.TypesInfo.Uses {
		if used == obj {
			ids = append(ids, id)
		}
	}
	slices.SortFunc(ids, func(a, b *ast.Ident) int { return int(a.Pos() - b.Pos()) })
	return ids
}

// idents returns the identifiers in n.
func idents(n ast.Node) func(func(*ast.Ident) bool) {
	return func(yield func(*ast.Ident) bool) {
		for n := range ast.Preorder(n) {
			if id, isIdent := n.(*ast.Ident); isIdent && !yield(id) {
				return
			}
		}
	}
}

// definition returns the statement that declares the local variable obj alone, and its value; nil if there is none.
func (f *file) definition(obj types.Object) (ast.Stmt, ast.Expr) {
	for id, def := range f.pkg.TypesInfo.Defs {
		if def != obj || obj == nil {
			continue
		}
		switch parent := f.parents[id].(type) {
		case *ast.AssignStmt:
			if parent.Tok == token.DEFINE && len(parent.Lhs) == 1 && len(parent.Rhs) == 1 {
				return parent, parent.Rhs[0]
			}
		case *ast.ValueSpec:
			group := f.parents[parent].(*ast.GenDecl)
			if stmt, ok := f.parents[group].(*ast.DeclStmt); ok && len(group.Specs) == 1 && len(parent.Names) == 1 && len(parent.Values) == 1 {
				return stmt, parent.Values[0]
			}
		}
	}
	return nil, nil
}

// is reports whether e is the variable obj.
func (f *file) is(e ast.Expr, obj types.Object) bool { return calls.Is(f.pkg.TypesInfo, e, obj) }

func within(n, outer ast.Node) bool { return outer.Pos() <= n.Pos() && n.End() <= outer.End() }

// lookup returns what name means at pos; nil if it means nothing.
func (f *file) lookup(name string, pos token.Pos) types.Object {
	_, obj := f.pkg.Types.Scope().Innermost(pos).LookupParent(name, pos)
	return obj
}

// contextName returns the name of package context in the file, or of the import that will be added.
func (f *file) contextName() string { return cmp.Or(f.importName("context"), "context") }

// changed reports whether the variable obj may be written, in whole or in part, between from and to: there is an
// assignment, or one in a function literal somewhere, or its address is taken.
func (f *file) changed(obj types.Object, from, to token.Pos) bool {
	for _, id := range f.uses(obj) {
		write, address := f.write(id)
		if address || write && (from <= id.Pos() && id.Pos() < to || f.captured(obj, id)) {
			return true
		}
	}
	return false
}

// captured reports whether id, a use of obj, is in a function literal in which obj is not declared.
func (f *file) captured(obj types.Object, id *ast.Ident) bool {
	for fun := range f.functions(id) {
		if _, isLit := fun.(*ast.FuncLit); isLit && !calls.Within(obj, fun) {
			return true
		}
	}
	return false
}

// write reports whether id is written here, or its address taken.
func (f *file) write(id *ast.Ident) (write, address bool) {
	var n ast.Node = id
	for {
		switch p := f.parents[n].(type) {
		case *ast.SelectorExpr, *ast.ParenExpr, *ast.StarExpr:
			n = p
			continue
		case *ast.IndexExpr:
			if p.X == n {
				n = p
				continue
			}
		case *ast.AssignStmt:
			return slices.ContainsFunc(p.Lhs, func(e ast.Expr) bool { return e == n }), false
		case *ast.IncDecStmt:
			return true, false
		case *ast.UnaryExpr:
			return false, p.Op == token.AND
		case *ast.RangeStmt:
			return p.Key == n || p.Value == n, false
		}
		return false, false
	}
}

// functions returns the functions that contain n, the innermost first, and their types.
func (f *file) functions(n ast.Node) iter.Seq2[ast.Node, *ast.FuncType] {
	return func(yield func(ast.Node, *ast.FuncType) bool) {
		for more := true; n != nil && more; n = f.parents[n] {
			switch fun := n.(type) {
			case *ast.FuncLit:
				more = yield(fun, fun.Type)
			case *ast.FuncDecl:
				more = yield(fun, fun.Type)
			}
		}
	}
}

// statement returns the statement around n that stands in a list of statements, and the list.
func (f *file) statement(n ast.Node) (ast.Stmt, []ast.Stmt) {
	for ; n != nil; n = f.parents[n] {
		stmt, ok := n.(ast.Stmt)
		if !ok {
			continue
		}
		if list := list(f.parents[n]); slices.Contains(list, stmt) {
			return stmt, list
		}
	}
	return nil, nil
}

func list(n ast.Node) []ast.Stmt {
	switch n := n.(type) {
	case *ast.BlockStmt:
		return n.List
	case *ast.CaseClause:
		return n.Body
	case *ast.CommClause:
		return n.Body
	}
	return nil
}

// line returns the edit that removes stmt, with its lines if nothing else is on them.
func (f *file) line(stmt ast.Node) edit {
	from, to := f.offset(stmt.Pos()), f.offset(stmt.End())
	start, end := from, to
	for start > 0 && strings.ContainsRune(" \t", rune(f.src[start-1])) {
		start--
	}
	if start > 0 && f.src[start-1] == '\n' && end < len(f.src) && f.src[end] == '\n' {
		from, to = start, end+1
		if to < len(f.src) && f.src[to] == '\n' && start > 1 && strings.ContainsRune("{\n", rune(f.src[start-2])) {
			to++ // a blank line that would be the first of its block, or the second in a row
		}
	}
	return edit{from, to, ""}
}
