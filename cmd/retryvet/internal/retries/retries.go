package retries

import (
	"go/ast"
	"go/token"
	"go/types"
	"slices"

	"golang.org/x/tools/go/ast/inspector"

	"github.com/retrygo/retry/cmd/retryvet/internal/calls"
)

// Retries is code that runs again if it fails.
type Retries struct {
	Body     *ast.BlockStmt
	Repeats  []State // the paths to another run
	Leaves   []State // the other paths out
	Attempts []*ast.CallExpr
	Judged   map[*ast.CallExpr]bool // the attempts whose error a condition inspects
}

// A Loop is a hand-written retry loop: on every path to its next attempt the last one has failed, the loop waits, and
// success leaves it.
type Loop struct {
	Retries
	Cond    ast.Expr
	Counter types.Object // nil if it does not count, or if that is not evident
	Count   ast.Expr     // nil if it does not count
	Waits   []Wait
}

// LoopAt returns the retry loop at cur, which is a *ast.ForStmt or a *ast.RangeStmt; nil if the statement is not a
// retry loop.
func LoopAt(info *types.Info, cur inspector.Cursor) *Loop {
	w := walk{info: info, judged: map[*ast.CallExpr]bool{}}
	if p, isLabeled := cur.Parent().Node().(*ast.LabeledStmt); isLabeled {
		w.label = p.Label.Name
	}
	l := &Loop{}
	switch n := cur.Node().(type) {
	case *ast.ForStmt:
		l.Body, l.Cond = n.Body, n.Cond
		l.counted(info, n)
	case *ast.RangeStmt:
		if b, isBasic := info.TypeOf(n.X).Underlying().(*types.Basic); !isBasic || b.Info()&types.IsInteger == 0 {
			return nil
		}
		l.Body, l.Count = n.Body, n.X
		if id, isIdent := n.Key.(*ast.Ident); isIdent {
			l.Counter = info.ObjectOf(id)
		}
	}
	first := w.turn(l, []State{{}})
	for i := range first {
		first[i].before = true
	}
	w.waits = nil
	l.Repeats = slices.DeleteFunc(w.turn(l, first), func(s State) bool { return s.Last != None && !s.Failed() })
	l.Leaves, l.Attempts, l.Waits, l.Judged = w.left, w.attempts, w.waits, w.judged
	idle := func(s State) bool { return s.Last == None }
	if w.again || w.strange || len(l.Waits) == 0 || len(l.Repeats) == 0 || slices.ContainsFunc(l.Repeats, idle) ||
		!slices.ContainsFunc(l.Leaves, State.Succeeded) || l.changing(info, cur.Node()) {
		return nil
	}
	return l
}

// turn walks one iteration of the loop and returns the paths to the next one.
func (w *walk) turn(l *Loop, s []State) []State {
	if l.Cond != nil {
		w.left = merge(w.left, w.refine(l.Cond, s, false))
		s = w.refine(l.Cond, s, true)
	}
	back := merge(w.list(l.Body.List, s, false), w.back)
	w.back = nil
	if l.Cond == nil {
		return back
	}
	w.left = merge(w.left, w.refine(l.Cond, back, false))
	return w.refine(l.Cond, back, true)
}

// counted looks for the three parts of for i := 0; i < n; i++.
func (l *Loop) counted(info *types.Info, n *ast.ForStmt) {
	b, isBinary := n.Cond.(*ast.BinaryExpr)
	post, isCount := n.Post.(*ast.IncDecStmt)
	if !isBinary || !isCount || post.Tok != token.INC || b.Op != token.LSS && b.Op != token.LEQ {
		return
	}
	i, isIdent := b.X.(*ast.Ident)
	if counter, same := post.X.(*ast.Ident); isIdent && same && info.ObjectOf(i) == info.ObjectOf(counter) {
		l.Counter, l.Count = info.ObjectOf(i), b.Y
	}
}

// changing reports whether an attempt differs from the one before: one of its arguments, not a context, is assigned in
// the loop, and not by a call that can fail.
func (l *Loop) changing(info *types.Info, loop ast.Node) bool {
	changed := map[types.Object]bool{l.Counter: true}
	set := func(x ast.Expr) {
		if v := calls.Root(info, x); v != nil && !calls.IsContext(v.Type()) && !calls.IsError(v.Type()) {
			changed[v] = true
		}
	}
	ast.Inspect(loop, func(n ast.Node) bool {
		switch n := n.(type) {
		case *ast.IncDecStmt:
			set(n.X)
		case *ast.AssignStmt:
			last := n.Lhs[len(n.Lhs)-1]
			if id, isIdent := last.(*ast.Ident); isIdent && len(n.Rhs) == 1 {
				if v := info.ObjectOf(id); v != nil && calls.IsError(v.Type()) {
					return true
				}
			}
			for _, left := range n.Lhs {
				set(left)
			}
		}
		return true
	})
	delete(changed, nil)
	different := false
	for _, call := range l.Attempts {
		ast.Inspect(call, func(n ast.Node) bool {
			if id, isIdent := n.(*ast.Ident); isIdent && changed[info.Uses[id]] {
				different = true
			}
			return true
		})
	}
	return different
}

// Work returns a function that is passed to this library, which runs it again if it returns an error without a mark.
func Work(info *types.Info, f *ast.FuncLit) *Retries {
	w := walk{info: info, judged: map[*ast.CallExpr]bool{}, work: true}
	w.list(f.Body.List, []State{{}}, false)
	return &Retries{f.Body, w.back, w.left, w.attempts, w.judged}
}

// Turns returns the body of a loop over retry.Attempts, which is run again if it leaves an error in err.
func Turns(info *types.Info, body *ast.BlockStmt, err types.Object) *Retries {
	w := walk{info: info, judged: map[*ast.CallExpr]bool{}}
	ends := merge(w.list(body.List, []State{{}}, false), w.back)
	again := func(s State) bool { return s.Err == err && (s.Last == Failed || s.Last == Judged) }
	r := &Retries{Body: body, Leaves: w.left, Attempts: w.attempts, Judged: w.judged}
	for _, s := range ends {
		if again(s) {
			r.Repeats = append(r.Repeats, s)
		} else {
			r.Leaves = append(r.Leaves, s)
		}
	}
	return r
}
