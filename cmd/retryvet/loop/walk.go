package loop

import (
	"go/ast"
	"go/token"
	"go/types"

	"golang.org/x/tools/go/types/typeutil"

	"github.com/retrygo/retry/cmd/retryvet/internal/calls"
)

// A state says what the last attempt may have come to on the way to a statement. No bit means that no way leads there.
type state struct {
	bits uint8
	err  types.Object // the variable that has the error of the last attempt; nil if that depends on the way
}

const (
	none   = 1 << iota // no attempt was made in this turn
	ok                 // it succeeded
	failed             // it failed
)

func merge(a, b state) state {
	switch {
	case a.bits == 0:
		return b
	case b.bits == 0 || a.err == b.err:
		return state{a.bits | b.bits, a.err}
	case a.bits == none: // whose variable says nothing
		return state{a.bits | b.bits, b.err}
	case b.bits == none:
		return state{a.bits | b.bits, a.err}
	}
	return state{a.bits | b.bits, nil}
}

func (s state) known(bits uint8) state { return state{s.bits & bits, s.err} }

// A walk follows the ways through the body of a loop, not into function literals.
type walk struct {
	info  *types.Info
	label string // of the loop

	back, left state // where the next turn begins, and where the loop is left
	attempts   []*ast.CallExpr
	waits      []wait
	strange    bool // there is something that a plain retry loop does not have

	depth int // of loops inside
}

// A wait is a sleep in the body of the loop.
type wait struct {
	node  ast.Node
	delay ast.Expr // nil if it is that of a timer
	blind bool     // nothing can cut it short
}

func (w *walk) list(stmts []ast.Stmt, s state, inner bool) state {
	for _, stmt := range stmts {
		s = w.stmt(stmt, s, inner)
	}
	return s
}

// stmt returns the state after stmt. inner says that a break without a label leaves a switch, a select or a loop inside.
func (w *walk) stmt(stmt ast.Stmt, s state, inner bool) state {
	switch stmt := stmt.(type) {
	case nil:
	case *ast.BlockStmt:
		return w.list(stmt.List, s, inner)
	case *ast.LabeledStmt:
		return w.stmt(stmt.Stmt, s, inner)
	case *ast.ExprStmt:
		return w.expr(stmt.X, s)
	case *ast.AssignStmt:
		return w.assign(stmt.Lhs, stmt.Rhs, s)
	case *ast.DeclStmt:
		if d, isGen := stmt.Decl.(*ast.GenDecl); isGen {
			for _, spec := range d.Specs {
				if v, isValue := spec.(*ast.ValueSpec); isValue && len(v.Values) > 0 {
					left := make([]ast.Expr, len(v.Names))
					for i, name := range v.Names {
						left[i] = name
					}
					s = w.assign(left, v.Values, s)
				}
			}
		}
	case *ast.IfStmt:
		s = w.stmt(stmt.Init, s, inner)
		yes := w.stmt(stmt.Body, w.refine(stmt.Cond, s, true), inner)
		no := w.refine(stmt.Cond, s, false)
		if stmt.Else != nil {
			no = w.stmt(stmt.Else, no, inner)
		}
		return merge(yes, no)
	case *ast.SwitchStmt:
		return w.choose(stmt, s)
	case *ast.TypeSwitchStmt:
		out := s
		for _, c := range stmt.Body.List {
			out = merge(out, w.list(c.(*ast.CaseClause).Body, s, true))
		}
		return out
	case *ast.SelectStmt:
		return w.selects(stmt, s)
	case *ast.ForStmt:
		return w.loop(stmt.Body, w.stmt(stmt.Init, s, true))
	case *ast.RangeStmt:
		return w.loop(stmt.Body, s)
	case *ast.ReturnStmt:
		w.left = merge(w.left, s)
		return state{}
	case *ast.BranchStmt:
		return w.branch(stmt, s, inner)
	}
	return s
}

func (w *walk) branch(b *ast.BranchStmt, s state, inner bool) state {
	ours := b.Label != nil && b.Label.Name == w.label
	switch {
	case b.Tok == token.FALLTHROUGH:
		return s
	case b.Tok == token.CONTINUE && (ours || b.Label == nil && w.depth == 0):
		w.back = merge(w.back, s)
	case b.Tok == token.BREAK && b.Label == nil && inner:
		return s // it goes on behind the inner statement, at the latest
	case b.Tok == token.CONTINUE && b.Label == nil:
		return s
	default: // out of the loop, or, by a label, out of one around it
		w.left = merge(w.left, s)
	}
	return state{}
}

// loop walks one turn of a loop inside.
func (w *walk) loop(body *ast.BlockStmt, s state) state {
	w.depth++
	waits := len(w.waits)
	s = merge(s, w.stmt(body, s, true))
	w.waits = w.waits[:waits] // those are its own
	w.depth--
	return s
}

func (w *walk) choose(stmt *ast.SwitchStmt, s state) state {
	s = w.stmt(stmt.Init, s, true)
	out, rest, hasDefault := state{}, s, false
	var otherwise []ast.Stmt
	for _, c := range stmt.Body.List {
		c := c.(*ast.CaseClause)
		if c.List == nil {
			hasDefault, otherwise = true, c.Body
			continue
		}
		in := state{}
		for _, x := range c.List {
			cond := x
			if stmt.Tag != nil {
				cond = &ast.BinaryExpr{X: stmt.Tag, Op: token.EQL, Y: x}
			}
			in = merge(in, w.refine(cond, rest, true))
			rest = w.refine(cond, rest, false)
		}
		out = merge(out, w.list(c.Body, in, true))
	}
	if hasDefault {
		return merge(out, w.list(otherwise, rest, true))
	}
	return merge(out, rest)
}

func (w *walk) selects(stmt *ast.SelectStmt, s state) (out state) {
	var waits []wait
	others := 0
	for _, c := range stmt.Body.List {
		c := c.(*ast.CommClause)
		if delay, isTimer := w.timer(c.Comm); isTimer {
			waits = append(waits, wait{node: stmt, delay: delay})
			out = merge(out, w.list(c.Body, s, true))
			continue
		}
		others++
		after := w.list(c.Body, s, true)
		if receive, isExpr := c.Comm.(*ast.ExprStmt); c.Comm == nil || !isExpr || receive == nil || after.bits != 0 {
			w.strange = true // it works on what comes, polls, or is woken
		}
		out = merge(out, after)
	}
	for i := range waits {
		waits[i].blind = others == 0
	}
	w.waits = append(w.waits, waits...)
	return out
}

// timer reports whether a case of a select, or a statement, receives from time.After or from a timer.
func (w *walk) timer(stmt ast.Stmt) (delay ast.Expr, is bool) {
	e, isExpr := stmt.(*ast.ExprStmt)
	if !isExpr {
		return nil, false
	}
	return w.receives(e.X)
}

func (w *walk) receives(x ast.Expr) (delay ast.Expr, is bool) {
	u, isUnary := ast.Unparen(x).(*ast.UnaryExpr)
	if !isUnary || u.Op != token.ARROW {
		return nil, false
	}
	switch c := ast.Unparen(u.X).(type) {
	case *ast.CallExpr:
		if calls.IsFunc(w.info, c, "time", "After") {
			return c.Args[0], true
		}
	case *ast.SelectorExpr:
		return nil, c.Sel.Name == "C" && calls.IsNamed(w.info.TypeOf(c.X), "time", "Timer")
	}
	return nil, false
}

func (w *walk) expr(x ast.Expr, s state) state {
	if delay, isTimer := w.receives(x); isTimer {
		w.waits = append(w.waits, wait{x, delay, true})
		return s
	}
	call, isCall := ast.Unparen(x).(*ast.CallExpr)
	if !isCall {
		return s
	}
	if calls.IsFunc(w.info, call, "time", "Sleep") {
		w.waits = append(w.waits, wait{call, call.Args[0], true})
	}
	if w.ends(call) {
		w.left = merge(w.left, s)
		return state{}
	}
	return s
}

// ends reports whether call does not return.
func (w *walk) ends(call *ast.CallExpr) bool {
	f := typeutil.Callee(w.info, call)
	if f == nil {
		return false
	}
	switch f.Name() {
	case "panic", "Exit", "Fatal", "Fatalf", "Fatalln", "FailNow", "Goexit", "Panic", "Panicf":
		return true
	}
	return false
}

func (w *walk) assign(left, right []ast.Expr, s state) state {
	if len(right) != 1 {
		for i := range right {
			s = w.assign(left[i:i+1], right[i:i+1], s)
		}
		return s
	}
	id, isIdent := ast.Unparen(left[len(left)-1]).(*ast.Ident)
	if !isIdent || id.Name == "_" {
		return s
	}
	v := w.info.ObjectOf(id)
	if v == nil || !calls.IsError(v.Type()) {
		return s
	}
	call, isCall := ast.Unparen(right[0]).(*ast.CallExpr)
	switch {
	case isCall && w.wraps(call):
		return state{s.bits & (failed | none), v}
	case isCall:
		w.attempts = append(w.attempts, call)
		if _, dynamic := typeutil.Callee(w.info, call).(*types.Func); !dynamic {
			w.strange = true // the work is a parameter: this is a retry library
		}
		if s.bits == 0 {
			return s
		}
		return state{ok | failed, v}
	case w.info.Types[right[0]].IsNil() && v == s.err:
		return state{ok, v}
	}
	return s
}

// wraps reports whether call makes an error rather than an attempt: one from another, or a new one.
func (w *walk) wraps(call *ast.CallExpr) bool {
	if calls.IsFunc(w.info, call, "fmt", "Errorf") || calls.IsFunc(w.info, call, "errors", "New", "Join") {
		return true
	}
	for _, arg := range call.Args {
		if calls.IsError(w.info.TypeOf(arg)) {
			return true
		}
	}
	return false
}

// refine returns s where cond is true, or false.
func (w *walk) refine(cond ast.Expr, s state, truth bool) state {
	switch c := ast.Unparen(cond).(type) {
	case *ast.UnaryExpr:
		if c.Op == token.NOT {
			return w.refine(c.X, s, !truth)
		}
	case *ast.BinaryExpr:
		switch {
		case c.Op == token.LAND && truth, c.Op == token.LOR && !truth:
			return w.refine(c.Y, w.refine(c.X, s, truth), truth)
		case c.Op == token.LAND, c.Op == token.LOR:
			return merge(w.refine(c.X, s, truth), w.refine(c.Y, w.refine(c.X, s, !truth), truth))
		case (c.Op == token.EQL || c.Op == token.NEQ) && w.isErr(c.X, s):
			equal := (c.Op == token.EQL) == truth
			switch isNil := w.info.Types[c.Y].IsNil(); {
			case isNil && equal:
				return s.known(none | ok)
			case isNil || equal:
				return s.known(none | failed)
			}
		}
	case *ast.CallExpr:
		if !truth {
			return s
		}
		if m, isMethod := c.Fun.(*ast.SelectorExpr); isMethod && w.isErr(m.X, s) {
			return s.known(none | failed)
		}
		for _, arg := range c.Args {
			if w.isErr(arg, s) {
				return s.known(none | failed)
			}
		}
	}
	return s
}

func (w *walk) isErr(x ast.Expr, s state) bool {
	id, isIdent := ast.Unparen(x).(*ast.Ident)
	return isIdent && s.err != nil && w.info.Uses[id] == s.err
}
