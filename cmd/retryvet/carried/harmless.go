package carried

import (
	"go/ast"
	"go/token"
	"go/types"
	"regexp"
	"slices"
	"strings"

	"golang.org/x/tools/go/ast/edge"
	"golang.org/x/tools/go/ast/inspector"

	"github.com/retrygo/retry/cmd/retryvet/internal/calls"
)

var (
	endless   = regexp.MustCompile(`(?i)rand|entropy|seed|os\.Stdin|http\.NoBody|io\.Discard`)
	makesAnew = regexp.MustCompile(`(?i)^(reset|truncate|seek|rewind|GetBody$|Clone$|ReadSeeker$)`)
	rewinds   = regexp.MustCompile(`(?i)^(reset|truncate|seek|rewind)`)
	// A list with such a name has all attempts on purpose.
	history = regexp.MustCompile(`(?i)(^|_)(errs?|errors?|fail(s|ed|ures?)?|hist(ory)?|attempts?|try|tries|tried|retr(y|ies|ied)|logs?|msgs?|warn(s|ings?)?)(_|$)`)
	words   = regexp.MustCompile(`[A-Z]`)
	without = regexp.MustCompile(`(?i)(no|disabled?|without|skip)_?\w{0,8}retr|OneAttempt`)
)

// switchedOff reports whether an argument of the call says that it is not to retry.
func (r region) switchedOff() bool {
	return slices.ContainsFunc(r.call.Args, func(x ast.Expr) bool {
		_, isLit := x.(*ast.FuncLit)
		return !isLit && without.MatchString(types.ExprString(x))
	})
}

// inTest reports whether the function around gets a value of package testing.
func (r region) inTest() bool {
	decl := calls.Declaration(r.around)
	return decl != nil && slices.ContainsFunc(decl.Type.Params.List, func(f *ast.Field) bool {
		return strings.Contains(types.ExprString(f.Type), "testing.") || strings.HasSuffix(types.ExprString(f.Type), "TestingT")
	})
}

// harmless reports whether x does no harm, as far as one can see. It makes x a change that sends if that does harm.
func (r region) harmless(x *change, body inspector.Cursor) bool {
	if !r.repeatsAfter(*x) || r.once(*x) || r.reset(*x) {
		return true
	}
	switch x.kind {
	case uses, request:
		return r.rewound()
	case walks, cuts:
		return false
	}
	read := r.readsOf(*x, body)
	switch {
	case r.resetElsewhere(*x), r.onPurpose(*x), read.progress, x.kind == adds && (read.passed || read.other):
		return true
	case x.kind == appends && read.passed:
		x.kind = sends
		return false
	}
	return !read.returned && !read.passed && r.local(*x) && !r.readAfter(*x)
}

// whole reports whether x is the changed expression or what it is a part of.
func (r region) whole(x ast.Expr, c change) bool {
	text := types.ExprString(x)
	rest, is := strings.CutPrefix(strings.TrimPrefix(c.text, "*"), text)
	return is && (rest == "" || rest[0] == '.' || rest[0] == '[') && calls.Root(r.TypesInfo, x) == c.root || text == c.text
}

// once reports whether x is in a branch whose condition asks a variable from outside that the region sets.
func (r region) once(x change) bool {
	for up := x.cur; up.Node() != r.Node; up = up.Parent() {
		stmt, isIf := up.Node().(*ast.IfStmt)
		if !isIf {
			continue
		}
		for n := range ast.Preorder(stmt.Cond) {
			id, isIdent := n.(*ast.Ident)
			if isIdent && r.outside(id) && r.TypesInfo.Uses[id] != x.root && !calls.IsError(r.TypesInfo.TypeOf(id)) && len(calls.Assigned(r.TypesInfo, r.Body, r.TypesInfo.Uses[id])) > 0 {
				return true
			}
		}
	}
	return false
}

// reset reports whether the region begins x anew: it assigns to x, or a call that gets it, or what it is part of, may do so.
func (r region) reset(x change) bool {
	for n := range ast.Preorder(r.Body) {
		switch n := n.(type) {
		case *ast.AssignStmt:
			for i, left := range n.Lhs {
				right := n.Rhs[min(i, len(n.Rhs)-1)]
				if n != x.cur.Node() && n.Tok == token.ASSIGN && r.whole(left, x) && (!calls.Names(r.TypesInfo, right, x.root) || r.emptied(right, x)) {
					return true
				}
			}
		case *ast.CallExpr:
			if n == x.cur.Node() || calls.Logs(n) {
				continue
			}
			if method, isSelector := ast.Unparen(n.Fun).(*ast.SelectorExpr); isSelector && rewinds.MatchString(method.Sel.Name) && r.whole(method.X, x) {
				return true
			}
			for _, arg := range n.Args {
				if r.mayReset(n, arg, x) {
					return true
				}
			}
		}
	}
	return false
}

// emptied reports whether n cuts x to nothing.
func (r region) emptied(n ast.Node, x change) bool {
	for n := range ast.Preorder(n) {
		if cut, isSlice := n.(*ast.SliceExpr); isSlice && cut.High != nil && types.ExprString(cut.High) == "0" && types.ExprString(cut.X) == x.text {
			return true
		}
	}
	return false
}

// mayReset reports whether call can set x through arg.
func (r region) mayReset(call *ast.CallExpr, arg ast.Expr, x change) bool {
	if r.builtin(call, "clear") {
		return r.whole(arg, x)
	}
	address, isUnary := ast.Unparen(arg).(*ast.UnaryExpr)
	isAddress := isUnary && address.Op == token.AND
	if isAddress {
		arg = address.X
	}
	switch x.kind {
	case uses, request:
		return false
	case writes:
		isAddress = false // that is how it is written to
	}
	if call.Pos() > x.cur.Node().Pos() || r.TypesInfo.Types[call.Fun].IsBuiltin() || !r.whole(arg, x) {
		return false
	}
	return isAddress || types.ExprString(arg) != x.text // x.f is loaded anew by what gets x
}

// rewound reports whether the region, or the function around it, makes a reader anew.
func (r region) rewound() bool {
	for n := range ast.Preorder(r.Body) {
		if id, isIdent := n.(*ast.Ident); isIdent && makesAnew.MatchString(id.Name) {
			return true
		}
	}
	return false
}

// resetElsewhere reports whether another function that the call gets assigns to x.
func (r region) resetElsewhere(x change) bool {
	return slices.ContainsFunc(r.call.Args, func(arg ast.Expr) bool {
		other := calls.FuncOf(r.TypesInfo, nil, r.around, arg)
		if other == nil || other.Node == r.Node {
			return false
		}
		for n := range ast.Preorder(other.Body) {
			switch n := n.(type) {
			case *ast.AssignStmt:
				if slices.ContainsFunc(n.Lhs, func(left ast.Expr) bool { return r.whole(left, x) }) {
					return true
				}
			case *ast.CallExpr:
				if method, isSelector := n.Fun.(*ast.SelectorExpr); isSelector && rewinds.MatchString(method.Sel.Name) && r.whole(method.X, x) {
					return true
				}
			}
		}
		return false
	})
}

// onPurpose reports whether x has all attempts on purpose: its elements are errors, or it has such a name.
func (r region) onPurpose(x change) bool {
	if s, isSlice := r.TypesInfo.TypeOf(x.expr).Underlying().(*types.Slice); isSlice && calls.IsError(s.Elem()) {
		return true
	}
	return history.MatchString(words.ReplaceAllString(x.text[strings.LastIndexByte(x.text, '.')+1:], "_$0"))
}

// A use says how a region reads what it changes.
type use struct{ progress, passed, returned, other bool }

// readsOf returns how the region reads x apart from the change itself.
func (r region) readsOf(x change, body inspector.Cursor) (u use) {
	for c := range body.Preorder((*ast.Ident)(nil), (*ast.SelectorExpr)(nil), (*ast.IndexExpr)(nil), (*ast.StarExpr)(nil)) {
		n := c.Node().(ast.Expr)
		if types.ExprString(n) != x.text || calls.Root(r.TypesInfo, n) != x.root || x.cur.Contains(c) {
			continue
		}
		r.classify(c, x, &u)
	}
	return u
}

// classify notes how the expression at c, which is x, is used.
func (r region) classify(c inspector.Cursor, x change, u *use) {
	for child, up := c, c.Parent(); up.Node() != r.Body; child, up = up, up.Parent() {
		switch p := up.Node().(type) {
		case *ast.CallExpr:
			switch {
			case calls.Logs(p):
				return
			case r.builtin(p, "len"), r.builtin(p, "cap"):
				u.progress = u.progress || !r.limit(up)
				return
			case r.builtin(p, "append"):
			case child.ParentEdgeKind() == edge.CallExpr_Args:
				if condition(up) {
					u.progress = true
				} else if p.Pos() > x.cur.Node().End() {
					u.passed = true
				}
				return
			}
		case *ast.RangeStmt:
			u.passed = u.passed || p.Pos() > x.cur.Node().End() && child.ParentEdgeKind() == edge.RangeStmt_X
			return
		case *ast.IfStmt, *ast.ForStmt, *ast.SwitchStmt, *ast.CaseClause:
			u.progress = u.progress || condition(child)
			return
		case *ast.ReturnStmt:
			u.returned = true
			return
		case *ast.AssignStmt:
			u.other = u.other || child.ParentEdgeKind() == edge.AssignStmt_Rhs
			return
		case ast.Stmt:
			return
		}
	}
}

// condition reports whether the expression at c is, or is in, a condition.
func condition(c inspector.Cursor) bool {
	for ; ; c = c.Parent() {
		switch c.ParentEdgeKind() {
		case edge.IfStmt_Cond, edge.ForStmt_Cond, edge.SwitchStmt_Tag, edge.CaseClause_List:
			return true
		}
		if _, isExpr := c.Parent().Node().(ast.Expr); !isExpr {
			return false
		}
	}
}

// limit reports whether the length at c is compared with a limit that ends or flushes something, such as len(v) >= n.
func (r region) limit(c inspector.Cursor) bool {
	b, isBinary := c.Parent().Node().(*ast.BinaryExpr)
	return isBinary && c.ParentEdgeKind() == edge.BinaryExpr_X && (b.Op == token.GEQ || b.Op == token.GTR)
}

// local reports whether only uses of its own name can read x: not a result, a field of what a pointer leads to, or a variable of
// the package.
func (r region) local(x change) bool {
	_, isDecl := r.Node.(*ast.FuncDecl)
	if isDecl || x.root.Parent() == r.Pkg.Scope() {
		return false
	}
	for up, t, body := calls.Function(r.around); t != nil; up, t, body = calls.Function(up.Parent()) {
		if t.Results != nil && calls.Within(x.root, t.Results) {
			return false
		}
		if !calls.Within(x.root, body) && calls.Within(x.root, up.Node()) { // a parameter or the receiver
			_, isPointer := x.root.Type().Underlying().(*types.Pointer)
			_, isMap := x.root.Type().Underlying().(*types.Map)
			return !isPointer && !isMap
		}
	}
	return true
}

// readAfter reports whether something reads x, a local variable, after the run, or in another turn of a loop around it.
func (r region) readAfter(x change) bool {
	decl, _, _ := calls.Function(r.around)
	for up := range decl.Enclosing((*ast.FuncDecl)(nil)) {
		decl = up
	}
	loop := token.NoPos
	for up := range r.around.Parent().Enclosing((*ast.ForStmt)(nil), (*ast.RangeStmt)(nil)) {
		if up.Node().Pos() > x.root.Pos() {
			loop = up.Node().Pos()
		}
	}
	inside := func(n ast.Node) bool { return r.Node.Pos() <= n.Pos() && n.End() <= r.Node.End() }
	for c := range decl.Preorder((*ast.Ident)(nil)) {
		id := c.Node().(*ast.Ident)
		if r.TypesInfo.Uses[id] != x.root || inside(id) || id.Pos() < r.around.Node().End() && (loop == token.NoPos || id.Pos() < loop) {
			continue
		}
		read := true
		for child, up := c, c.Parent(); read; child, up = up, up.Parent() {
			if call, isCall := up.Node().(*ast.CallExpr); isCall && calls.Logs(call) || child.ParentEdgeKind() == edge.AssignStmt_Lhs {
				read = false
			}
			if _, isExpr := up.Node().(ast.Expr); !isExpr {
				break
			}
		}
		if read {
			return true
		}
	}
	return false
}
