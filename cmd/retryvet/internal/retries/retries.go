package retries

import (
	"go/ast"
	"go/token"
	"go/types"
	"regexp"
	"slices"
	"strings"

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
	Cond      ast.Expr
	Counter   types.Object // of for i := 0; i < n; i++ and range n; nil if it does not count so, or has no name
	Count     ast.Expr     // nil if it does not count so
	Counted   bool         // a number of turns ends it: it has a Count, or counts down, or counts in the body
	Steps     types.Object // the variable that counts the turns; nil if it has no name
	Waits     []Wait
	WaitsLast bool    // each turn ends with a wait, after which nothing leaves it
	Broken    []State // the failures that leave it for the statement behind it
	GoesOn    bool    // only a failure waits, but a success is repeated too, and nothing else is done
}

// LoopAt returns the retry loop at cur, which is a *ast.ForStmt or a *ast.RangeStmt; nil if the statement is not a
// retry loop.
func LoopAt(info *types.Info, cur inspector.Cursor) *Loop {
	mayWait := false
	for c := range cur.Preorder((*ast.SelectorExpr)(nil)) { // most loops do not, and their paths need not be followed
		mayWait = mayWait || slices.Contains([]string{"Sleep", "After", "C"}, c.Node().(*ast.SelectorExpr).Sel.Name)
	}
	if !mayWait {
		return nil
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
		l.Body, l.Count, l.Counted = n.Body, n.X, true
		l.Counter = calls.Object(info, n.Key)
		l.Steps = l.Counter
	}
	if is := l.walk(info, cur); len(l.Waits) == 0 || !is && !l.GoesOn || l.changing(info, cur.Node()) {
		return nil
	}
	return l
}

// walk follows the paths through two turns of the loop, and reports whether it is a retry loop.
func (l *Loop) walk(info *types.Info, cur inspector.Cursor) bool {
	loop := cur.Node().(ast.Stmt)
	outer := loop
	if label, isLabeled := cur.Parent().Node().(*ast.LabeledStmt); isLabeled {
		outer = label
	}
	w := newWalk(info, loop, []ast.Stmt{outer})
	s := []State{{}}
	if w.head != nil {
		s = w.run(w.head, s...)
	}
	s = w.run(w.body, s...)
	for i := range s {
		s[i].before = true
	}
	s = w.run(w.body, s...)
	slices.SortFunc(w.attempts, func(a, b *ast.CallExpr) int { return int(a.Pos() - b.Pos()) })
	l.Repeats = slices.DeleteFunc(slices.Clone(s), func(s State) bool { return s.Last != None && !s.Failed() })
	l.Leaves, l.Attempts, l.Waits, l.Judged, l.WaitsLast = w.left, w.attempts, w.waits, w.judged, !w.hurries
	idle := func(s State) bool { return s.Last == None }
	l.Broken = slices.DeleteFunc(w.broken, func(s State) bool { return !s.Failed() })
	l.GoesOn = l.Counted && w.again && !w.strange && w.idles && !w.rushes && l.onlyTries(cur)
	return !w.again && !w.strange && len(l.Repeats) > 0 && !slices.ContainsFunc(l.Repeats, idle) && slices.ContainsFunc(l.Leaves, State.Succeeded)
}

var attempts = regexp.MustCompile(`(?i)retr(y|ies)|attempt|tries`)

// onlyTries reports whether the loop is named for attempts, makes one in each turn, waits and logs, and does nothing else.
func (l *Loop) onlyTries(cur inspector.Cursor) bool {
	for n := range ast.Preorder(l.Body) {
		if call, isCall := n.(*ast.CallExpr); isCall && !slices.Contains(l.Attempts, call) && !calls.Logs(call) && !strings.HasPrefix(types.ExprString(call.Fun), "time.") {
			return false
		}
	}
	decl := calls.Declaration(cur)
	named := decl != nil && attempts.MatchString(decl.Name.Name)
	for _, x := range []ast.Expr{l.Cond, l.Count} {
		named = named || x != nil && attempts.MatchString(types.ExprString(x))
	}
	return named && len(l.Attempts) == 1
}

// counted looks for what counts the turns: the three parts of for i := 0; i < n; i++, or a step to the limit that is the last
// part or a statement of the body.
func (l *Loop) counted(info *types.Info, n *ast.ForStmt) {
	b, isBinary := n.Cond.(*ast.BinaryExpr)
	if !isBinary {
		return
	}
	i, isIdent := ast.Unparen(b.X).(*ast.Ident)
	if !isIdent {
		return
	}
	v := info.ObjectOf(i)
	for _, stmt := range append([]ast.Stmt{n.Post}, n.Body.List...) {
		step, isStep := stmt.(*ast.IncDecStmt)
		if !isStep || !calls.Is(info, step.X, v) {
			continue
		}
		up, down := b.Op == token.LSS || b.Op == token.LEQ, b.Op == token.GTR || b.Op == token.GEQ
		if step.Tok == token.INC && up || step.Tok == token.DEC && down {
			l.Counted, l.Steps = true, v
		}
		if step.Tok == token.INC && up && stmt == n.Post {
			l.Counter, l.Count = v, b.Y
		}
	}
}

// changing reports whether an attempt differs from the one before: one of its arguments, not a context, is assigned in
// the loop, and not to a constant, or a function, or by a call that can fail, or before the loop is left.
func (l *Loop) changing(info *types.Info, loop ast.Node) bool {
	changed := map[types.Object]bool{l.Counter: true}
	set := func(x ast.Expr) {
		if v := calls.Root(info, x); v != nil && !calls.IsContext(v.Type()) && !calls.IsError(v.Type()) {
			changed[v] = true
		}
	}
	ast.Inspect(loop, func(n ast.Node) bool {
		switch n := n.(type) {
		case *ast.BlockStmt:
			return n == l.Body || !calls.Leaves(n)
		case *ast.IncDecStmt:
			set(n.X)
		case *ast.AssignStmt:
			if v := info.TypeOf(n.Lhs[len(n.Lhs)-1]); len(n.Rhs) == 1 && calls.IsError(v) {
				return true
			}
			for i, left := range n.Lhs {
				right := ast.Unparen(n.Rhs[min(i, len(n.Rhs)-1)])
				_, isFunc := right.(*ast.FuncLit)
				if t := info.Types[right]; !isFunc && t.Value == nil && !t.IsNil() || n.Tok != token.ASSIGN && n.Tok != token.DEFINE {
					set(left)
				}
			}
		}
		return true
	})
	delete(changed, nil)
	return slices.ContainsFunc(l.Attempts, func(call *ast.CallExpr) bool {
		for v := range changed {
			if calls.Names(info, call, v) {
				return true
			}
		}
		return false
	})
}

// An End is what a function has returned when it is run again.
type End uint8

const (
	OnError  End = iota + 1 // an error that is not marked as permanent
	OnMark                  // an error that is marked as retryable
	OnFalse                 // false and no error
	OnCommit                // anything: a commit follows, which can fail
)

// Function returns a function that runs again after the given end. At is a part of it, if not nil: see State.Passed.
func Function(info *types.Info, t *ast.FuncType, body *ast.BlockStmt, end End, at ast.Node) *Retries {
	w := newWalk(info, nil, body.List)
	w.end, w.at, w.results = end, at, t.Results
	w.run(w.head, State{})
	return &Retries{body, w.back, w.left, w.attempts, w.judged}
}

// Turns returns the body of a loop over retry.Attempts, which is run again if it leaves an error in err.
func Turns(info *types.Info, loop *ast.RangeStmt, err types.Object, at ast.Node) *Retries {
	w := newWalk(info, loop, []ast.Stmt{loop})
	w.at = at
	ends := w.run(w.body, State{})
	w.back = nil
	for _, s := range ends {
		w.ended(s, s.has(err))
	}
	return &Retries{loop.Body, w.back, w.left, w.attempts, w.judged}
}
