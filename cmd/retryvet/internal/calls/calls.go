// Package calls recognizes, in type-checked Go, the calls of this library that run a function more than once.
package calls

import (
	"go/ast"
	"go/token"
	"go/types"
	"regexp"
	"slices"
	"strings"

	"golang.org/x/tools/go/types/typeutil"
)

// Module is the import path of the root package.
const Module = "github.com/retrygo/retry"

// Ours reports whether pkg is a package of this library.
func Ours(pkg *types.Package) bool {
	return pkg != nil && (pkg.Path() == Module || strings.HasPrefix(pkg.Path(), Module+"/"))
}

// A Call is a call of Do, DoValue, Wrap, retrysql.Tx and the like: a function of this library that takes a
// retry.Policy, or a function that returns one, and a function whose first parameter is a context.
type Call struct {
	*ast.CallExpr
	Callee  *types.Func
	Context ast.Expr // of the run; nil if the call takes none, as Wrap
	Policy  ast.Expr // a retry.Policy, or a function that returns one
	Work    ast.Expr // the function that is run again
}

// Of returns the parts of call, and false if it is not such a call.
func Of(info *types.Info, call *ast.CallExpr) (Call, bool) {
	callee := typeutil.StaticCallee(info, call)
	if callee == nil || !Ours(callee.Pkg()) || call.Ellipsis.IsValid() {
		return Call{}, false
	}
	c := Call{CallExpr: call, Callee: callee}
	params := callee.Signature().Params()
	for i := range min(params.Len(), len(call.Args)) {
		switch t := params.At(i).Type(); {
		case i == 0 && IsContext(t):
			c.Context = call.Args[i]
		case IsNamed(t, Module, "Policy"), returnsPolicy(t):
			c.Policy = call.Args[i]
		case takesContext(t):
			c.Work = call.Args[i]
		}
	}
	return c, c.Policy != nil && c.Work != nil
}

// A Loop is a range loop over retry.Attempts, whose body is run again.
type Loop struct {
	*ast.RangeStmt
	Call                 *ast.CallExpr
	Context, Policy, Err ast.Expr // the arguments
}

// LoopOf returns the parts of n, and false if it does not range over a call of retry.Attempts.
func LoopOf(info *types.Info, n *ast.RangeStmt) (Loop, bool) {
	call, ok := ast.Unparen(n.X).(*ast.CallExpr)
	if !ok || !IsFunc(info, call, Module, "Attempts") || len(call.Args) != 3 {
		return Loop{}, false
	}
	return Loop{n, call, call.Args[0], call.Args[1], call.Args[2]}, true
}

// ErrVar returns the variable that has the error of a turn; nil if it is not a local variable.
func (l Loop) ErrVar(info *types.Info) types.Object {
	u, ok := ast.Unparen(l.Err).(*ast.UnaryExpr)
	if !ok || u.Op != token.AND {
		return nil
	}
	id, ok := ast.Unparen(u.X).(*ast.Ident)
	if !ok {
		return nil
	}
	v, ok := info.Uses[id].(*types.Var)
	if !ok || v.Parent() == v.Pkg().Scope() {
		return nil
	}
	return v
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

// Count returns how often n uses obj.
func Count(info *types.Info, n ast.Node, obj types.Object) (count int) {
	for n := range ast.Preorder(n) {
		if id, ok := n.(*ast.Ident); ok && obj != nil && info.Uses[id] == obj {
			count++
		}
	}
	return count
}

// Names reports whether n uses obj.
func Names(info *types.Info, n ast.Node, obj types.Object) bool { return Count(info, n, obj) > 0 }

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

// unexported matches a name of another package that no other can write.
var unexported = regexp.MustCompile(`\.[^\p{Lu}.]`)

// Written returns t as the file can write it, and "" if it cannot.
func Written(info *types.Info, pkg *types.Package, file *ast.File, t types.Type) string {
	imported := map[string]string{}
	for _, spec := range file.Imports {
		if name := info.PkgNameOf(spec); name != nil && name.Name() != "_" && name.Name() != "." {
			imported[name.Imported().Path()] = name.Name()
		}
	}
	missing := false
	text := types.TypeString(t, func(p *types.Package) string {
		if p == pkg {
			return ""
		}
		missing = missing || imported[p.Path()] == ""
		return imported[p.Path()]
	})
	if missing || unexported.MatchString(text) {
		return ""
	}
	return text
}
