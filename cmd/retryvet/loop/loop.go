// Package loop defines an analyzer for hand-written retry loops that have a bug.
package loop

import (
	"fmt"
	"go/ast"
	"go/constant"
	"go/token"
	"go/types"
	"strings"

	"golang.org/x/tools/go/analysis"
	"golang.org/x/tools/go/analysis/passes/inspect"
	"golang.org/x/tools/go/ast/inspector"
	"golang.org/x/tools/go/types/typeutil"

	"github.com/retrygo/retry/cmd/retryvet/internal/calls"
	"github.com/retrygo/retry/cmd/retryvet/internal/ignore"
)

const doc = `report hand-written retry loops that have a bug

A retry loop is one that failure repeats and success never does: on every way to its next turn the last call has failed, it
waits there, and success leaves it. Tickers, pollers for a condition, readers and workers are none of these.

Such a loop is reported, once, if it

 - sleeps without watching a context that is in scope, so that a shutdown waits for it;
 - never ends while the call fails, outside of main and init, even after its context is done;
 - sleeps after the last attempt, when there is nothing to wait for;
 - ends with a new error that does not have the last one, which was not passed on anywhere else.

The message ends with a call that would replace the loop. Files of tests, and packages for tests, are left alone.`

// Analyzer is the analyzer loop.
var Analyzer = &analysis.Analyzer{
	Name:     "loop",
	Doc:      doc,
	URL:      "https://pkg.go.dev/github.com/retrygo/retry/cmd/retryvet/loop",
	Requires: []*analysis.Analyzer{inspect.Analyzer},
	Run:      ignore.Wrap("loop", run),
}

func run(pass *analysis.Pass) (any, error) {
	for _, imported := range pass.Pkg.Imports() {
		if imported.Path() == "testing" {
			return nil, nil
		}
	}
	for _, part := range strings.Split(pass.Pkg.Path(), "/") {
		if strings.Contains(part, "test") || part == "e2e" {
			return nil, nil
		}
	}
	in := pass.ResultOf[inspect.Analyzer].(*inspector.Inspector)
	for cur := range in.Root().Preorder((*ast.ForStmt)(nil), (*ast.RangeStmt)(nil)) {
		if file := pass.Fset.Position(cur.Node().Pos()).Filename; strings.HasSuffix(file, "_test.go") {
			continue
		}
		if l := (&retryLoop{pass: pass, cur: cur, walk: walk{info: pass.TypesInfo}}); l.is() {
			l.report()
		}
	}
	return nil, nil
}

type retryLoop struct {
	walk
	pass *analysis.Pass
	cur  inspector.Cursor

	body    *ast.BlockStmt
	cond    ast.Expr
	counter types.Object // nil if it does not count
	count   ast.Expr
}

// is reports whether the statement is a retry loop.
func (l *retryLoop) is() bool {
	if p, isLabeled := l.cur.Parent().Node().(*ast.LabeledStmt); isLabeled {
		l.label = p.Label.Name
	}
	switch n := l.cur.Node().(type) {
	case *ast.ForStmt:
		l.body, l.cond = n.Body, n.Cond
		l.counted(n)
	case *ast.RangeStmt:
		if b, isBasic := l.info.TypeOf(n.X).Underlying().(*types.Basic); !isBasic || b.Info()&types.IsInteger == 0 {
			return false
		}
		l.body, l.count = n.Body, n.X
		if id, isIdent := n.Key.(*ast.Ident); isIdent {
			l.counter = l.info.ObjectOf(id)
		}
	}
	l.back = merge(l.back, l.list(l.body.List, state{bits: none}, false))
	succeeds := l.left.bits&ok != 0
	if l.cond != nil {
		succeeds = succeeds || l.refine(l.cond, l.back, false).bits&ok != 0 && l.refine(l.cond, l.back, true).bits == failed
		l.back = l.refine(l.cond, l.back, true)
	}
	return l.back.bits == failed && succeeds && !l.strange && len(l.waits) > 0 && !l.changing()
}

// counted looks for the three parts of for i := 0; i < n; i++.
func (l *retryLoop) counted(n *ast.ForStmt) {
	b, isBinary := n.Cond.(*ast.BinaryExpr)
	post, isCount := n.Post.(*ast.IncDecStmt)
	if !isBinary || !isCount || post.Tok != token.INC || b.Op != token.LSS && b.Op != token.LEQ {
		return
	}
	i, isIdent := b.X.(*ast.Ident)
	if counter, same := post.X.(*ast.Ident); isIdent && same && l.info.ObjectOf(i) == l.info.ObjectOf(counter) {
		l.counter, l.count = l.info.ObjectOf(i), b.Y
	}
}

// changing reports whether an attempt differs from the one before: one of its arguments is assigned in the loop, other
// than by a call that can fail, and is not a context.
func (l *retryLoop) changing() bool {
	changed := map[types.Object]bool{l.counter: true}
	set := func(x ast.Expr) {
		if v := calls.Root(l.info, x); v != nil && !calls.IsContext(v.Type()) && !calls.IsError(v.Type()) {
			changed[v] = true
		}
	}
	ast.Inspect(l.cur.Node(), func(n ast.Node) bool {
		switch n := n.(type) {
		case *ast.IncDecStmt:
			set(n.X)
		case *ast.AssignStmt:
			last := n.Lhs[len(n.Lhs)-1]
			if id, isIdent := last.(*ast.Ident); isIdent && len(n.Rhs) == 1 {
				if v := l.info.ObjectOf(id); v != nil && calls.IsError(v.Type()) {
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
	for _, call := range l.attempts {
		ast.Inspect(call, func(n ast.Node) bool {
			if id, isIdent := n.(*ast.Ident); isIdent && changed[l.info.Uses[id]] {
				different = true
			}
			return true
		})
	}
	return different
}

func (l *retryLoop) report() {
	ctx := l.context()
	var bugs []string
	blind := false
	for _, w := range l.waits {
		blind = blind || w.blind
	}
	if blind && ctx != "" {
		bugs = append(bugs, "sleeps without watching "+ctx)
	}
	if l.forever() {
		if ctx != "" {
			bugs = append(bugs, "never ends while the call fails, even if "+ctx+" is done")
		} else {
			bugs = append(bugs, "never ends while the call fails")
		}
	}
	if l.sleepsLast() {
		bugs = append(bugs, "sleeps after the last attempt")
	}
	if l.losesError() {
		bugs = append(bugs, "loses the last error")
	}
	if len(bugs) == 0 {
		return
	}
	if l.constant() {
		bugs = append(bugs, "always waits as long, without jitter")
	}
	l.pass.ReportRangef(header{l.cur.Node(), l.body}, "this retry loop %s; %s would do", strings.Join(bugs, ", "), l.call(ctx))
}

// header is the first line of a loop.
type header struct {
	ast.Node
	body *ast.BlockStmt
}

func (h header) End() token.Pos { return h.body.Lbrace + 1 }

// context returns the name of a context in scope, or "".
func (l *retryLoop) context() string {
	pos := l.cur.Node().Pos()
	for scope := l.pass.Pkg.Scope().Innermost(pos); scope != nil && scope != l.pass.Pkg.Scope(); scope = scope.Parent() {
		for _, name := range scope.Names() {
			v, isVar := scope.Lookup(name).(*types.Var)
			if isVar && name != "_" && calls.IsContext(v.Type()) && v.Pos() < pos {
				return name
			}
		}
	}
	return ""
}

// forever reports whether no way leads out of the loop while the call fails. Main and init may wait so.
func (l *retryLoop) forever() bool {
	if l.cond != nil || l.count != nil || l.left.bits&failed != 0 {
		return false
	}
	f, isDecl := l.function().(*ast.FuncDecl)
	return !isDecl || f.Recv != nil || f.Name.Name != "main" && f.Name.Name != "init"
}

func (l *retryLoop) function() ast.Node {
	for up := range l.cur.Enclosing((*ast.FuncDecl)(nil), (*ast.FuncLit)(nil)) {
		return up.Node()
	}
	return nil
}

// sleepsLast reports whether a counted loop waits after its last attempt too: no condition in it asks the counter, and
// what follows the loop does not make one more attempt.
func (l *retryLoop) sleepsLast() bool {
	if l.count == nil || len(l.attempts) == 0 {
		return false
	}
	for _, w := range l.waits {
		if w.node.Pos() < l.attempts[0].Pos() {
			return false
		}
	}
	if v, known := intValue(l.info, l.count); known && v <= 1 {
		return false
	}
	asked := false
	ast.Inspect(l.body, func(n ast.Node) bool {
		switch n := n.(type) {
		case *ast.IfStmt:
			asked = asked || l.counter != nil && names(l.info, n.Cond, l.counter)
		case *ast.SwitchStmt:
			asked = asked || l.counter != nil
		}
		return !asked
	})
	return !asked && !l.attemptFollows()
}

func (l *retryLoop) attemptFollows() (yes bool) {
	callee := typeutil.Callee(l.info, l.attempts[0])
	f := l.function()
	if f == nil {
		return false
	}
	ast.Inspect(f, func(n ast.Node) bool {
		if call, isCall := n.(*ast.CallExpr); isCall && call.Pos() > l.cur.Node().End() && typeutil.Callee(l.info, call) == callee {
			yes = true
		}
		return !yes
	})
	return yes
}

// losesError reports whether the statement after a counted loop returns a new error, and the error of the last attempt went
// nowhere.
func (l *retryLoop) losesError() bool {
	next, hasNext := l.cur.NextSibling()
	if l.count == nil || !hasNext || l.back.err == nil {
		return false
	}
	r, isReturn := next.Node().(*ast.ReturnStmt)
	if !isReturn || len(r.Results) == 0 {
		return false
	}
	made, isCall := r.Results[len(r.Results)-1].(*ast.CallExpr)
	if !isCall || !calls.IsFunc(l.info, made, "fmt", "Errorf") && !calls.IsFunc(l.info, made, "errors", "New") {
		return false
	}
	passedOn := false
	for _, arg := range made.Args {
		passedOn = passedOn || calls.IsError(l.info.TypeOf(arg))
	}
	ast.Inspect(l.body, func(n ast.Node) bool {
		switch n := n.(type) {
		case *ast.CallExpr: // it may log the error, or the error's text
			passedOn = passedOn || names(l.info, n, l.back.err)
		case *ast.AssignStmt: // it may be kept for later
			for _, x := range n.Rhs {
				passedOn = passedOn || names(l.info, x, l.back.err)
			}
		}
		return true
	})
	return !passedOn && !names(l.info, made, l.back.err)
}

// names reports whether n names obj.
func names(info *types.Info, n ast.Node, obj types.Object) (yes bool) {
	ast.Inspect(n, func(n ast.Node) bool {
		id, isIdent := n.(*ast.Ident)
		yes = yes || isIdent && info.Uses[id] == obj
		return !yes
	})
	return yes
}

// constant reports whether all waits have a length that is known before the program runs.
func (l *retryLoop) constant() bool {
	for _, w := range l.waits {
		if w.delay == nil || l.info.Types[w.delay].Value == nil {
			return false
		}
	}
	return true
}

// call returns the call that would replace the loop.
func (l *retryLoop) call(ctx string) string {
	if ctx == "" {
		ctx = "ctx"
	}
	attempts := "retry.Unlimited"
	if l.count != nil {
		attempts = types.ExprString(l.count)
	}
	base := ""
	if d := l.waits[0].delay; d != nil {
		if l.info.Types[d].Value != nil {
			base = fmt.Sprintf(", Backoff: retry.Backoff{Base: %s}", types.ExprString(d))
		}
	}
	return fmt.Sprintf("retry.Do(%s, retry.Policy{MaxAttempts: %s%s}, …)", ctx, attempts, base)
}

func intValue(info *types.Info, x ast.Expr) (int64, bool) {
	v := info.Types[x].Value
	if v == nil {
		return 0, false
	}
	return constant.Int64Val(constant.ToInt(v))
}
