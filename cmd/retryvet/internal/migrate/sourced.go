package migrate

import (
	"fmt"
	"go/ast"
	"go/token"

	"github.com/retrygo/retry/cmd/retryvet/internal/calls"
)

// sourced reads the source of the waits, if there is one.
func (l *loop) sourced() {
	if l.asks == nil {
		return
	}
	id, isIdent := ast.Unparen(l.asks.Fun.(*ast.SelectorExpr).X).(*ast.Ident)
	if !isIdent {
		panic(refuse("what it asks for its wait is not a local variable"))
	}
	s := &source{file: l.file, lib: l.callee(l.asks).Pkg().Path(), user: l.node, obj: l.pkg.TypesInfo.Uses[id], set: map[string]ast.Expr{}}
	if n, isFor := l.node.(*ast.ForStmt); isFor && n.Init != nil && calls.Within(s.obj, n.Init) {
		s.read(n.Init.(*ast.AssignStmt).Rhs[0])
	} else {
		s.variable(id)
	}
	l.source, l.gone = s, append(l.gone, s.gone...)
	l.ctx, l.ttl = s.settle()
}

// own returns the parts of the loop's first line that do not ask the source, which may limit the attempts.
func (l *loop) own(n *ast.ForStmt) (start ast.Stmt, cond ast.Expr, post ast.Stmt) {
	start, cond, post = n.Init, n.Cond, n.Post
	if l.source == nil {
		return start, cond, post
	}
	if start != nil && calls.Within(l.source.obj, start) {
		start = nil
	}
	if x, isExpr := post.(*ast.ExprStmt); isExpr && x.X == l.asks {
		post = nil
	}
	switch c := cond.(type) {
	case *ast.CallExpr:
		if sel, isSel := c.Fun.(*ast.SelectorExpr); isSel && l.is(sel.X, l.source.obj) && (sel.Sel.Name == "Ongoing" || c == l.asks) {
			cond, l.attempts = nil, l.source.attempts()
			l.end = []ast.Stmt{&ast.BranchStmt{Tok: token.BREAK}} // when the context is done
		}
	case *ast.BinaryExpr: // b.Steps > 0
		sel, isSel := c.X.(*ast.SelectorExpr)
		if steps := int(l.source.values["Steps"]); isSel && l.is(sel.X, l.source.obj) && sel.Sel.Name == "Steps" && c.Op == token.GTR && l.text(c.Y) == "0" && steps > 0 {
			cond = nil
			for next := l.source.delays(0); steps > 0; l.attempts++ {
				_, steps = next()
			}
		}
	}
	if l.attempts > 0 {
		l.limit = fmt.Sprint(l.attempts)
	}
	return start, cond, post
}

// stops reports whether stmt asks whether d, which the source returned, says that no attempt follows.
func (l *loop) stops(stmt ast.Stmt) bool {
	n, isIf := stmt.(*ast.IfStmt)
	if !isIf || l.source == nil || n.Init != nil || n.Else != nil {
		return false
	}
	b, isBinary := n.Cond.(*ast.BinaryExpr)
	if !isBinary || b.Op != token.EQL || len(n.Body.List) == 0 {
		return false
	}
	final := n.Body.List[len(n.Body.List)-1]
	if _, returns := final.(*ast.ReturnStmt); !returns && !isBranch(final, token.BREAK) {
		return false
	}
	d, isIdent := b.X.(*ast.Ident)
	stop, isSel := b.Y.(*ast.SelectorExpr)
	return isIdent && isSel && l.delays[l.pkg.TypesInfo.Uses[d]] && stop.Sel.Name == "Stop" && l.pkg.TypesInfo.Uses[stop.Sel].Pkg().Path() == l.source.lib
}

// stopped reads what the source says of the end of the loop.
func (l *loop) stopped() {
	if l.source == nil {
		return
	}
	n, limited := l.source.attempts(), l.source.set["retries"] != nil
	switch {
	case l.source.lib == dskit && l.end == nil:
		panic(refuse("it does not ask Ongoing, and so Wait may not wait"))
	case l.stop == nil && sources[l.source.lib].method == "NextBackOff" && (limited || l.ttl != "" || l.source.set["context"] != nil):
		panic(refuse("it does not look for Stop, and goes on without waits after it"))
	case l.stop == nil:
	case l.ttl != "" && l.source.disturbed:
		panic(refuse("MaxElapsedTime begins before the loop, and other code runs in between"))
	case l.attempts > 0:
		panic(refuse("it ends in several ways"))
	case limited:
		l.attempts, l.limit = n, fmt.Sprint(n)
	}
}

// beside reads the other uses of the source, and refuses a loop after which something asks its context: the new loop can end
// before that is done.
func (l *loop) beside() {
	if l.source == nil {
		return
	}
	for _, use := range l.uses(l.source.obj) {
		sel, _ := l.parents[use].(*ast.SelectorExpr)
		call, isCall := l.parents[sel].(*ast.CallExpr)
		if l.removed(use) || call == l.asks || within(use, l.node) && !within(use, l.Body) {
			continue
		}
		breaks, _ := l.broken()
		switch {
		case !isCall:
		case within(use, l.Body) && (sel.Sel.Name == "NumRetries" || sel.Sel.Name == "CurrentAttempt"):
			l.numbered(call, 1)
			continue
		case sel.Sel.Name != "Err" && sel.Sel.Name != "ErrCause":
		case l.after == nil || !within(call, l.after) || breaks:
			panic(refuse("what follows asks why it ended"))
		default:
			(&reader{ends: l.ctx != nil}).use(l.file, call)
			l.edits = append(l.edits, edit{l.offset(call.Pos()), l.offset(call.End()), l.err.Name()})
			continue
		}
		panic(refuse("%s is used for something else too", use.Name))
	}
	id, isIdent := l.ctx.(*ast.Ident)
	if !isIdent || l.wait.Delay != nil {
		return
	}
	for _, use := range l.uses(l.pkg.TypesInfo.ObjectOf(id)) {
		sel, isSel := l.parents[use].(*ast.SelectorExpr)
		call, isCall := l.parents[use].(*ast.CallExpr)
		if use.Pos() > l.node.End() && (isSel && sel.Sel.Name != "Value" || isCall && calls.IsFunc(l.pkg.TypesInfo, call, "context", "Cause")) {
			panic(refuse("what follows asks its context"))
		}
	}
}

// broken reports whether a break leaves the loop, and whether only success does.
func (l *loop) broken() (breaks, success bool) {
	success = true
	for n := range ast.Preorder(l.Body) {
		b, isB := n.(*ast.BranchStmt)
		if !isB || b.Tok != token.BREAK || l.removed(b) || l.leaves(b) != l.node {
			continue
		}
		breaks = true
		up, isIf := l.parents[l.parents[b]].(*ast.IfStmt)
		goesOn := l.guard != nil && l.compared(l.guard.Cond, token.NEQ) && isBranch(l.guard.Body.List[len(l.guard.Body.List)-1], token.CONTINUE)
		success = success && (isIf && up.Body == l.parents[b] && l.compared(up.Cond, token.EQL) || l.parents[b] == l.Body && goesOn)
	}
	return breaks, success
}

// numbered replaces an expression by the number of the attempt, less something.
func (l *loop) numbered(at ast.Node, less int64) {
	l.number = true
	name := "ctx"
	if id, isIdent := l.ctx.(*ast.Ident); isIdent {
		name = id.Name
	}
	text := ours + ".AttemptNumber(" + name + ")"
	if less != 0 {
		text += fmt.Sprint(" - ", less)
		if b, isBinary := l.parents[at].(*ast.BinaryExpr); isBinary && b.Op.Precedence() >= token.ADD.Precedence() {
			text = "(" + text + ")"
		}
	}
	l.edits = append(l.edits, edit{l.offset(at.Pos()), l.offset(at.End()), text})
}
