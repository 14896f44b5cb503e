// Package calls recognizes, in type-checked Go, the calls of this library that run a function more than once.
package calls

import (
	"go/ast"
	"go/token"
	"go/types"
	"iter"
	"maps"
	"regexp"
	"slices"
	"strings"

	"golang.org/x/tools/go/analysis"
	"golang.org/x/tools/go/analysis/passes/inspect"
	"golang.org/x/tools/go/ast/inspector"
	"golang.org/x/tools/go/types/typeutil"
)

// Module is the import path of the root package.
const Module = "github.com/retrygo/retry"

// Ours reports whether pkg is a package of this library.
func Ours(pkg *types.Package) bool {
	return pkg != nil && (pkg.Path() == Module || strings.HasPrefix(pkg.Path(), Module+"/"))
}

// A Retry is a call of Do, DoValue, Wrap, retrysql.Tx and the like: a function of this library that takes a retry.Policy, or a
// function that returns one, and a function whose first parameter is a context. A range loop over retry.Attempts is one too.
type Retry struct {
	Call    *ast.CallExpr
	Callee  *types.Func
	Context ast.Expr       // of the run; nil if the call takes none, as Wrap
	Policy  ast.Expr       // a retry.Policy, or a function that returns one
	Work    ast.Expr       // the function that is run again; nil if it is a loop
	Loop    *ast.RangeStmt // nil if it is not one
	Err     ast.Expr       // the argument of a loop
}

// Of returns what n, a *ast.CallExpr or a *ast.RangeStmt, retries, and false if it does not.
func Of(info *types.Info, n ast.Node) (r Retry, ok bool) {
	if r.Loop, ok = n.(*ast.RangeStmt); ok {
		n = ast.Unparen(r.Loop.X)
	}
	if r.Call, ok = n.(*ast.CallExpr); !ok {
		return r, false
	}
	r.Callee = typeutil.StaticCallee(info, r.Call)
	if r.Callee == nil || !Ours(r.Callee.Pkg()) || r.Call.Ellipsis.IsValid() {
		return r, false
	}
	params := r.Callee.Signature().Params()
	for i, arg := range r.Call.Args[:min(params.Len(), len(r.Call.Args))] {
		switch t := params.At(i).Type(); {
		case i == 0 && IsContext(t):
			r.Context = arg
		case IsNamed(t, Module, "Policy"), returnsPolicy(t):
			r.Policy = arg
		case takesContext(t):
			r.Work = arg
		case r.Loop != nil:
			r.Err = arg
		}
	}
	return r, r.Policy != nil && (r.Work != nil || r.Err != nil)
}

// All returns the retries of the package in the order of its source.
func All(pass *analysis.Pass) iter.Seq2[inspector.Cursor, Retry] {
	return func(yield func(inspector.Cursor, Retry) bool) {
		in := pass.ResultOf[inspect.Analyzer].(*inspector.Inspector)
		for cur := range in.Root().Preorder((*ast.CallExpr)(nil), (*ast.RangeStmt)(nil)) {
			if r, ok := Of(pass.TypesInfo, cur.Node()); ok && !yield(cur, r) {
				return
			}
		}
	}
}

// ErrVar returns the variable that has the error of a turn; nil if it is not a local variable.
func (r Retry) ErrVar(info *types.Info) types.Object {
	if u, ok := ast.Unparen(r.Err).(*ast.UnaryExpr); ok && u.Op == token.AND {
		if v, ok := Object(info, u.X).(*types.Var); ok && !v.IsField() && v.Parent() != v.Pkg().Scope() {
			return v
		}
	}
	return nil
}

// Declaration returns the declaration of the function around cur; nil if there is none.
func Declaration(cur inspector.Cursor) *ast.FuncDecl {
	for up := range cur.Enclosing((*ast.FuncDecl)(nil)) {
		return up.Node().(*ast.FuncDecl)
	}
	return nil
}

// Function returns the innermost function around cur, and its type and body; the zero Cursor if there is none.
func Function(cur inspector.Cursor) (up inspector.Cursor, t *ast.FuncType, body *ast.BlockStmt) {
	for up := range cur.Enclosing((*ast.FuncDecl)(nil), (*ast.FuncLit)(nil)) {
		switch f := up.Node().(type) {
		case *ast.FuncDecl:
			return up, f.Type, f.Body
		case *ast.FuncLit:
			return up, f.Type, f.Body
		}
	}
	return up, nil, nil
}

// A Func is the body of a function that is passed to another.
type Func struct {
	Node ast.Node // a *ast.FuncLit or a *ast.FuncDecl
	Type *ast.FuncType
	Body *ast.BlockStmt
	Recv *ast.FieldList // of a method
}

// Declarations returns the functions and methods of the package that have a body.
func Declarations(pass *analysis.Pass) map[types.Object]inspector.Cursor {
	all := map[types.Object]inspector.Cursor{}
	for cur := range pass.ResultOf[inspect.Analyzer].(*inspector.Inspector).Root().Preorder((*ast.FuncDecl)(nil)) {
		if d := cur.Node().(*ast.FuncDecl); d.Body != nil {
			all[pass.TypesInfo.Defs[d.Name]] = cur
		}
	}
	return all
}

// InOrder returns the functions in the order of the source.
func InOrder(decls map[types.Object]inspector.Cursor) []types.Object {
	return slices.SortedFunc(maps.Keys(decls), func(a, b types.Object) int { return int(a.Pos() - b.Pos()) })
}

// FuncOf returns the literal that x is, or that is all that is assigned to it in the function around cur, or the function of decls
// that it names; nil if it is unknown. It looks into a conversion, and into retry.Checked.
func FuncOf(info *types.Info, decls map[types.Object]inspector.Cursor, cur inspector.Cursor, x ast.Expr) *Func {
	x = ast.Unparen(x)
	if call, isCall := x.(*ast.CallExpr); isCall && (info.Types[call.Fun].IsType() || IsFunc(info, call, Module, "Checked")) {
		x = ast.Unparen(call.Args[0])
	}
	obj := Object(info, x)
	if f, isFunc := obj.(*types.Func); isFunc {
		if cur, known := decls[f.Origin()]; known {
			d := cur.Node().(*ast.FuncDecl)
			return &Func{d, d.Type, d.Body, d.Recv}
		}
	}
	if decl := Declaration(cur); obj != nil && decl != nil {
		if all := Assigned(info, decl, obj); len(all) == 1 {
			x = all[0]
		}
	}
	if lit, isLit := x.(*ast.FuncLit); isLit {
		return &Func{lit, lit.Type, lit.Body, nil}
	}
	return nil
}

// Object returns the variable, field or function that x names; nil if x is something else.
func Object(info *types.Info, x ast.Expr) types.Object {
	switch x := ast.Unparen(x).(type) {
	case *ast.Ident:
		return info.ObjectOf(x)
	case *ast.SelectorExpr:
		return info.ObjectOf(x.Sel)
	}
	return nil
}

func returnsPolicy(t types.Type) bool {
	s, ok := t.Underlying().(*types.Signature)
	return ok && s.Params().Len() == 0 && s.Results().Len() == 1 && IsNamed(s.Results().At(0).Type(), Module, "Policy")
}

func takesContext(t types.Type) bool {
	s, ok := t.Underlying().(*types.Signature)
	return ok && s.Params().Len() > 0 && IsContext(s.Params().At(0).Type())
}

// IsContext reports whether t is context.Context.
func IsContext(t types.Type) bool { return IsNamed(t, "context", "Context") }

// IsError reports whether t is the type error.
func IsError(t types.Type) bool {
	return t != nil && types.Identical(t, types.Universe.Lookup("error").Type())
}

// IsNamed reports whether t, or the type that it points to, is the type path.name.
func IsNamed(t types.Type, path, name string) bool {
	if t == nil {
		return false
	}
	if p, ok := types.Unalias(t).(*types.Pointer); ok {
		t = p.Elem()
	}
	n, ok := types.Unalias(t).(*types.Named)
	return ok && n.Obj().Name() == name && n.Obj().Pkg() != nil && n.Obj().Pkg().Path() == path
}

// IsFunc reports whether call calls the function or method path.name statically; for a method, path.Type.name.
func IsFunc(info *types.Info, call *ast.CallExpr, path string, names ...string) bool {
	f := typeutil.StaticCallee(info, call)
	if f == nil || f.Pkg() == nil || f.Pkg().Path() != path {
		return false
	}
	return slices.Contains(names, Name(f))
}

// Name returns "F", or "T.M" for a method.
func Name(f *types.Func) string {
	if recv := f.Signature().Recv(); recv != nil {
		t := types.Unalias(recv.Type())
		if p, ok := t.(*types.Pointer); ok {
			t = types.Unalias(p.Elem())
		}
		if n, ok := t.(*types.Named); ok {
			return n.Obj().Name() + "." + f.Name()
		}
	}
	return f.Name()
}

// Within reports whether obj is declared inside n.
func Within(obj types.Object, n ast.Node) bool { return n.Pos() <= obj.Pos() && obj.Pos() < n.End() }

// Root returns the variable that x starts with: c for c.db.tx, nil if x does not start with one.
func Root(info *types.Info, x ast.Expr) *types.Var {
	for {
		switch e := ast.Unparen(x).(type) {
		case *ast.SelectorExpr:
			if v, ok := info.Uses[e.Sel].(*types.Var); ok && !v.IsField() {
				return v // of another package
			}
			x = e.X
		case *ast.StarExpr:
			x = e.X
		case *ast.IndexExpr:
			x = e.X
		case *ast.Ident:
			v, _ := info.ObjectOf(e).(*types.Var)
			return v
		default:
			return nil
		}
	}
}

// Is reports whether x is the variable obj.
func Is(info *types.Info, x ast.Expr, obj types.Object) bool {
	id, ok := ast.Unparen(x).(*ast.Ident)
	return ok && obj != nil && info.ObjectOf(id) == obj
}

// Names reports whether n uses obj.
func Names(info *types.Info, n ast.Node, obj types.Object) bool {
	for n := range ast.Preorder(n) {
		if id, ok := n.(*ast.Ident); ok && obj != nil && info.Uses[id] == obj {
			return true
		}
	}
	return false
}

// Sets reports whether n itself assigns to the variable obj or takes its address.
func Sets(info *types.Info, n ast.Node, obj types.Object) bool {
	is := func(x ast.Expr) bool { return x != nil && Is(info, x, obj) }
	switch n := n.(type) {
	case *ast.AssignStmt:
		return slices.ContainsFunc(n.Lhs, is)
	case *ast.RangeStmt:
		return is(n.Key) || is(n.Value)
	case *ast.IncDecStmt:
		return is(n.X)
	case *ast.UnaryExpr:
		return n.Op == token.AND && is(n.X)
	}
	return false
}

// Assigned returns the expressions that n assigns to v, or the call that does so with several results.
func Assigned(info *types.Info, n ast.Node, v types.Object) (all []ast.Expr) {
	for n := range ast.Preorder(n) {
		if a, isAssign := n.(*ast.AssignStmt); isAssign {
			for i, left := range a.Lhs {
				if Is(info, left, v) {
					all = append(all, ast.Unparen(a.Rhs[min(i, len(a.Rhs)-1)]))
				}
			}
		}
	}
	return all
}

// Request returns the call of http.NewRequest that makes the request x; nil if function has another assignment to it.
func Request(info *types.Info, function ast.Node, x ast.Expr) *ast.CallExpr {
	all := Assigned(info, function, Object(info, x))
	if len(all) != 1 {
		return nil
	}
	made, isCall := all[0].(*ast.CallExpr)
	if !isCall || !IsFunc(info, made, "net/http", "NewRequest", "NewRequestWithContext") {
		return nil
	}
	return made
}

// Leaves reports whether body ends with a statement that leaves it and what is around it.
func Leaves(body *ast.BlockStmt) bool {
	if len(body.List) == 0 {
		return false
	}
	switch last := body.List[len(body.List)-1].(type) {
	case *ast.ReturnStmt:
		return true
	case *ast.BranchStmt:
		return last.Tok != token.FALLTHROUGH && last.Tok != token.CONTINUE
	}
	return false
}

var logs = regexp.MustCompile(`(?i)log|print|debug|info|warn|error|trace|record`)

// Logs reports whether call, by its name or that of its receiver, only logs or counts something.
func Logs(call *ast.CallExpr) bool {
	return logs.MatchString(types.ExprString(call.Fun))
}
