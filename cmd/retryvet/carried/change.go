package carried

import (
	"go/ast"
	"go/token"
	"go/types"
	"slices"
	"strings"

	"golang.org/x/tools/go/ast/inspector"
	"golang.org/x/tools/go/types/typeutil"

	"github.com/retrygo/retry/cmd/retryvet/internal/calls"
)

type kind uint8

const (
	appends kind = iota
	sends        // appends, and the same attempt passes the slice on
	adds
	writes
	uses
	request
	cuts
	walks
)

// A change is what an attempt does to a variable from outside.
type change struct {
	kind  kind
	expr  ast.Expr   // what is changed
	parts []ast.Expr // what is added
	made  ast.Node   // where a request was made
	cur   inspector.Cursor
	root  *types.Var
	text  string
}

// outside reports whether x is a variable from outside of the region, or a part of one. One of another package is not.
func (r region) outside(x ast.Expr) bool {
	v := calls.Root(r.TypesInfo, x)
	if v == nil || v.IsField() || v.Pkg() != r.Pkg {
		return false
	}
	return !calls.Within(v, r.Node) || r.Recv != nil && calls.Within(v, r.Recv)
}

// assigned returns what a changes.
func (r region) assigned(a *ast.AssignStmt) (all []change) {
	if len(a.Lhs) != len(a.Rhs) {
		return nil
	}
	for i, left := range a.Lhs {
		right := ast.Unparen(a.Rhs[i])
		if !r.outside(left) {
			continue
		}
		same := func(x ast.Expr) bool { return types.ExprString(x) == types.ExprString(left) }
		switch x := right.(type) {
		case *ast.CallExpr:
			if r.builtin(x, "append") && a.Tok == token.ASSIGN && same(x.Args[0]) {
				all = append(all, change{kind: appends, expr: left, parts: x.Args[1:]})
				continue
			}
		case *ast.SliceExpr:
			if same(x.X) && x.Low != nil && x.High == nil && a.Tok == token.ASSIGN && r.partPassedOn(a, left) {
				all = append(all, change{kind: cuts, expr: left})
			}
			continue
		case *ast.BinaryExpr:
			if x.Op == token.ADD && a.Tok == token.ASSIGN && same(x.X) && r.TypesInfo.Types[x.Y].Value == nil {
				all = append(all, change{kind: adds, expr: left, parts: []ast.Expr{x.Y}})
			}
			continue
		}
		if a.Tok == token.ADD_ASSIGN && r.TypesInfo.Types[right].Value == nil {
			all = append(all, change{kind: adds, expr: left, parts: []ast.Expr{right}})
		}
	}
	return all
}

func (f *finder) builtin(call *ast.CallExpr, name string) bool {
	id, isIdent := ast.Unparen(call.Fun).(*ast.Ident)
	return isIdent && id.Name == name && f.TypesInfo.Types[call.Fun].IsBuiltin()
}

// partPassedOn reports whether a variable with a part of slice, taken before cut, is passed to a call after it.
func (r region) partPassedOn(cut *ast.AssignStmt, slice ast.Expr) (yes bool) {
	parts := map[types.Object]bool{}
	for n := range ast.Preorder(r.Body) {
		switch n := n.(type) {
		case *ast.AssignStmt:
			for i, right := range n.Rhs {
				var of ast.Expr
				switch x := ast.Unparen(right).(type) {
				case *ast.SliceExpr:
					of = x.X
				case *ast.IndexExpr:
					of = x.X
				}
				if of != nil && n.Pos() <= cut.Pos() && n != cut && types.ExprString(of) == types.ExprString(slice) {
					parts[calls.Object(r.TypesInfo, n.Lhs[i])] = true
				}
			}
		case *ast.CallExpr:
			for _, arg := range n.Args {
				v := calls.Object(r.TypesInfo, arg)
				yes = yes || n.Pos() > cut.End() && v != nil && parts[v] && !calls.Logs(n) && !r.TypesInfo.Types[n.Fun].IsBuiltin()
			}
		}
	}
	return yes
}

// called returns what call changes: a reader or a request that it uses up, or what it writes to.
func (r region) called(call *ast.CallExpr) (all []change) {
	if calls.Logs(call) && !calls.IsFunc(r.TypesInfo, call, "fmt", "Fprint", "Fprintf", "Fprintln") {
		return nil
	}
	if method, isSelector := ast.Unparen(call.Fun).(*ast.SelectorExpr); isSelector && r.outside(method.X) {
		t, name := r.TypesInfo.TypeOf(method.X), method.Sel.Name
		switch {
		case collects(t) && strings.HasPrefix(name, "Write") && name != "WriteTo":
			all = append(all, change{kind: writes, expr: method.X})
		case calls.IsNamed(t, "database/sql", "Rows") && name == "Next", calls.IsNamed(t, "bufio", "Scanner") && name == "Scan":
			all = append(all, change{kind: walks, expr: method.X})
		case (name == "Read" || name == "ReadByte" || name == "ReadString" || name == "ReadBytes") && r.reader(method.X):
			all = append(all, change{kind: uses, expr: method.X})
		}
	}
	callee, isFunc := typeutil.Callee(r.TypesInfo, call).(*types.Func)
	if !isFunc || callee.Pkg() == nil {
		return all
	}
	params := callee.Signature().Params()
	for i, arg := range call.Args[:min(params.Len(), len(call.Args))] {
		target := arg
		if u, isUnary := ast.Unparen(arg).(*ast.UnaryExpr); isUnary && u.Op == token.AND {
			target = u.X
		}
		if !r.outside(target) {
			continue
		}
		t := r.TypesInfo.TypeOf(target)
		switch {
		case (callee.Name() == "Do" || callee.Name() == "RoundTrip") && calls.IsNamed(t, "net/http", "Request"):
			if made := r.withBody(arg); made != nil {
				all = append(all, change{kind: request, expr: arg, made: made})
			}
		case i == 0 && writers(callee) && (collects(t) || callee.Name() == "Copy" && calls.IsNamed(t, "os", "File")):
			all = append(all, change{kind: writes, expr: target})
		case r.usesUp(callee, params.At(i).Type()) && r.reader(arg):
			all = append(all, change{kind: uses, expr: arg})
		}
	}
	return all
}

// collects reports whether t is a Builder, a Buffer or a hash.
func collects(t types.Type) bool {
	return calls.IsNamed(t, "strings", "Builder") || calls.IsNamed(t, "bytes", "Buffer") || has(t, "Sum") && has(t, "BlockSize")
}

// writers reports whether f writes to its first argument.
func writers(f *types.Func) bool {
	switch f.Pkg().Path() {
	case "fmt":
		return strings.HasPrefix(f.Name(), "Fprint")
	case "io":
		return slices.Contains([]string{"Copy", "CopyN", "CopyBuffer", "WriteString"}, f.Name())
	}
	return false
}

// withBody returns the call that makes the request x, which has a body; nil if it has none or is made elsewhere.
func (r region) withBody(x ast.Expr) ast.Node {
	if decl := calls.Declaration(r.around); decl != nil {
		if made := calls.Request(r.TypesInfo, decl, x); made != nil {
			body := made.Args[len(made.Args)-1]
			if !r.TypesInfo.Types[body].IsNil() && types.ExprString(body) != "http.NoBody" {
				return made
			}
		}
	}
	return nil
}

// usesUp reports whether f reads from a parameter of type t and can fail, or makes a reader of it.
func (r region) usesUp(f *types.Func, t types.Type) bool {
	if !types.IsInterface(t) || !has(t, "Read") || has(t, "Write") || has(t, "Seek") {
		return false
	}
	path := f.Pkg().Path()
	results := f.Signature().Results()
	return path == "io" || path == "bufio" || strings.HasPrefix(path, "encoding/") ||
		results.Len() > 0 && calls.IsError(results.At(results.Len()-1).Type())
}

// reader reports whether x is a reader that ends. A connection, a terminal and a source of random numbers do not.
func (r region) reader(x ast.Expr) bool {
	t := r.TypesInfo.TypeOf(x)
	if !has(t, "Read") || has(t, "SetDeadline") && !calls.IsNamed(t, "os", "File") || types.IsInterface(t) && has(t, "Write") || endless.MatchString(types.ExprString(x)) {
		return false
	}
	if decl := calls.Declaration(r.around); decl != nil {
		if decl.Recv != nil && (decl.Name.Name == "Read" || decl.Name.Name == "WriteTo") {
			return false
		}
		for _, made := range calls.Assigned(r.TypesInfo, decl, calls.Object(r.TypesInfo, x)) {
			call, isCall := made.(*ast.CallExpr)
			if endless.MatchString(types.ExprString(made)) || isCall && len(call.Args) == 1 && r.TypesInfo.Types[call.Args[0]].IsNil() {
				return false
			}
		}
	}
	return true
}

// has reports whether t, or a pointer to it, has the method name.
func has(t types.Type, name string) bool {
	if t == nil {
		return false
	}
	obj, _, _ := types.LookupFieldOrMethod(t, true, nil, name)
	_, isMethod := obj.(*types.Func)
	return isMethod
}
