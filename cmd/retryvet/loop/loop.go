// Package loop defines an analyzer for hand-written retry loops that have a bug.
package loop

import (
	"go/ast"
	"go/constant"
	"go/token"
	"go/types"
	"slices"
	"strings"
	"time"

	"golang.org/x/tools/go/analysis"
	"golang.org/x/tools/go/analysis/passes/inspect"
	"golang.org/x/tools/go/ast/edge"
	"golang.org/x/tools/go/ast/inspector"
	"golang.org/x/tools/go/types/typeutil"

	"github.com/retrygo/retry/cmd/retryvet/internal/calls"
	"github.com/retrygo/retry/cmd/retryvet/internal/ignore"
	"github.com/retrygo/retry/cmd/retryvet/internal/retries"
)

const doc = `report hand-written retry loops that have a bug

A retry loop is a loop that only failure repeats: on every path to its next iteration the last call has failed, by its error or the
status of its response, and the loop waits, and success leaves it. Such a loop is reported, once, if it

 - sleeps for a second or more at a time without watching a context in scope, so that a shutdown waits for it;
 - repeats a call with its context although that is done, or no longer waits then;
 - sleeps after the last attempt, repeats the call after a success, or ends with an error that does not wrap the last one.

A function that calls itself again after a sleep is a loop too. A context counts if it is a parameter, a field of one, or derived from
one or with a deadline. Test files, files that import testing and packages for tests are skipped.`

// Analyzer is the analyzer loop.
var Analyzer = ignore.OutsideTests("loop", doc, run)

func run(pass *analysis.Pass) (any, error) {
	for part := range strings.SplitSeq(pass.Pkg.Path(), "/") {
		if slices.Contains([]string{"test", "tests", "testing", "testdata", "e2e"}, part) {
			return nil, nil
		}
	}
	in := pass.ResultOf[inspect.Analyzer].(*inspector.Inspector)
	for file := range in.Root().Children() {
		imports := func(i *ast.ImportSpec) bool { return i.Path.Value == `"testing"` }
		if slices.ContainsFunc(file.Node().(*ast.File).Imports, imports) { // the package has them through its tests
			continue
		}
		for cur := range file.Preorder((*ast.CallExpr)(nil)) {
			callsItself(pass, cur)
		}
		for cur := range file.Preorder((*ast.ForStmt)(nil), (*ast.RangeStmt)(nil)) {
			if l := retries.LoopAt(pass.TypesInfo, cur); l != nil {
				retryLoop{l, pass, pass.TypesInfo, cur}.report()
			}
		}
	}
	return nil, nil
}

// callsItself reports the call at cur if it repeats the function that it is in, with the same arguments, after a failure and a
// sleep of a second or more that does not watch the context of the function.
func callsItself(pass *analysis.Pass, cur inspector.Cursor) {
	info, call := pass.TypesInfo, cur.Node().(*ast.CallExpr)
	callee, decl := typeutil.StaticCallee(info, call), calls.Declaration(cur)
	if callee == nil || decl == nil || info.Defs[decl.Name] != callee {
		return
	}
	params, name := callee.Signature().Params(), ""
	for i, arg := range call.Args {
		if !calls.Is(info, arg, params.At(min(i, params.Len()-1))) {
			return
		}
		if calls.IsContext(info.TypeOf(arg)) {
			name = types.ExprString(arg)
		}
	}
	for n := range ast.Preorder(decl.Body) {
		if s, isSelector := n.(*ast.SelectorExpr); isSelector && (s.Sel.Name == "Done" || s.Sel.Name == "Err") && types.ExprString(s.X) == name {
			name = ""
		}
	}
	before, hasBefore := cur.Parent().PrevSibling()
	stmt, isIf := cur.Parent().Parent().Parent().Node().(*ast.IfStmt)
	if name == "" || !hasBefore || !isIf || !afterFailure(info, stmt.Cond) {
		return
	}
	for c := range before.Preorder((*ast.CallExpr)(nil)) {
		wait := c.Node().(*ast.CallExpr)
		if !calls.IsFunc(info, wait, "time", "Sleep") {
			continue
		}
		if d, _ := intValue(info, wait.Args[0]); d >= int64(time.Second) {
			pass.ReportRangef(call, "%s calls itself until it succeeds, and sleeps without watching %s", decl.Name.Name, name)
		}
	}
}

// afterFailure reports whether cond is err != nil.
func afterFailure(info *types.Info, cond ast.Expr) bool {
	b, isBinary := ast.Unparen(cond).(*ast.BinaryExpr)
	return isBinary && b.Op == token.NEQ && info.Types[b.Y].IsNil() && calls.IsError(info.TypeOf(b.X))
}

type retryLoop struct {
	*retries.Loop
	pass *analysis.Pass
	info *types.Info
	cur  inspector.Cursor
}

func (l retryLoop) report() {
	var bugs []string
	ctx := l.context()
	name := l.field()
	if ctx != nil {
		name = ctx.Name()
	}
	switch {
	case name == "" || l.brief(name):
	case (ctx == nil || l.parameter(ctx)) && slices.ContainsFunc(l.Waits, l.long):
		bugs = append(bugs, "sleeps without watching "+name)
	}
	switch {
	case ctx == nil: // waiting for an answer without a limit can be intended
	case l.hot():
		bugs = append(bugs, "no longer waits once "+name+" is done")
	case l.outlives(ctx):
		bugs = append(bugs, "repeats the call even if "+name+" is done")
	}
	if l.sleepsLast() {
		bugs = append(bugs, "sleeps after the last attempt")
	}
	if l.losesError() {
		bugs = append(bugs, "loses the last error")
	}
	if l.GoesOn {
		bugs = append(bugs, "repeats the call after a success")
	}
	if len(bugs) == 0 {
		return
	}
	text := "this retry loop " + bugs[0]
	if len(bugs) > 1 {
		text += "; it also " + strings.Join(bugs[1:], " and ")
	}
	l.pass.Report(analysis.Diagnostic{Pos: l.cur.Node().Pos(), End: l.Body.Lbrace + 1, Message: text})
}

// long reports whether nothing can interrupt w, which is known to be a second or more.
func (l retryLoop) long(w retries.Wait) bool {
	return w.Blind && w.Delay != nil && l.least(w.Delay) >= int64(time.Second)
}

// least returns the least value that x has in the first turn: that of a constant, of a variable that begins with one, and of the
// constant in a sum; otherwise 0.
func (l retryLoop) least(x ast.Expr) int64 {
	if v, known := intValue(l.info, x); known {
		return v
	}
	if v, isVar := calls.Object(l.info, x).(*types.Var); isVar && !v.IsField() && v.Parent() != v.Pkg().Scope() {
		return l.begins(v, x)
	}
	if sum, isBinary := ast.Unparen(x).(*ast.BinaryExpr); isBinary && sum.Op == token.ADD {
		return max(l.least(sum.X), l.least(sum.Y))
	}
	return 0
}

// begins returns the least value that v has at use in the first turn; 0 or less if it is unknown.
func (l retryLoop) begins(v *types.Var, use ast.Expr) int64 {
	least := int64(-1)
	function, _, _ := calls.Function(l.cur)
	for _, x := range calls.Assigned(l.info, function.Node(), v) {
		value, _ := intValue(l.info, x)
		if x.Pos() < use.Pos() && (least < 0 || value < least) {
			least = value
		}
	}
	return least
}

// field returns the context of a parameter or of the receiver, such as "s.ctx" and "req.Context()"; "" if there is none.
func (l retryLoop) field() string {
	decl := calls.Declaration(l.cur)
	if decl == nil {
		return ""
	}
	fields := slices.Clone(decl.Type.Params.List)
	if decl.Recv != nil {
		fields = append(fields, decl.Recv.List...)
	}
	for _, field := range fields {
		if name := contextOf(l.info.TypeOf(field.Type)); name != "" && len(field.Names) > 0 {
			return field.Names[0].Name + "." + name
		}
	}
	return ""
}

// contextOf returns the field or method of t, or of what it points to, that has a context; "" if there is none.
func contextOf(t types.Type) string {
	if calls.IsNamed(t, "net/http", "Request") {
		return "Context()"
	}
	if p, isPointer := t.(*types.Pointer); isPointer {
		t = p.Elem()
	}
	if s, isStruct := t.Underlying().(*types.Struct); isStruct {
		for f := range s.Fields() {
			if calls.IsContext(f.Type()) && !f.Embedded() {
				return f.Name()
			}
		}
	}
	return ""
}

// context returns the context that was declared last in the innermost scope with one, nil if it does not end some day.
func (l retryLoop) context() *types.Var {
	pos := l.cur.Node().Pos()
	for scope := l.pass.Pkg.Scope().Innermost(pos); scope != nil && scope != l.pass.Pkg.Scope(); scope = scope.Parent() {
		var last *types.Var
		for _, name := range scope.Names() {
			v, isVar := scope.Lookup(name).(*types.Var)
			if isVar && name != "_" && calls.IsContext(v.Type()) && v.Pos() < pos && (last == nil || v.Pos() > last.Pos()) {
				last = v
			}
		}
		switch {
		case last == nil:
		case l.ends(last):
			return last
		default:
			return nil
		}
	}
	return nil
}

// ends reports whether the context v is a parameter, or is derived from one or with a deadline. A context that only a cancel
// function can end does not count.
func (l retryLoop) ends(v *types.Var) bool {
	outermost := l.cur.Node()
	if decl := calls.Declaration(l.cur); decl != nil {
		outermost = decl
	}
	made := calls.Assigned(l.info, outermost, v)
	return (len(made) > 0 || l.parameter(v)) && !slices.ContainsFunc(made, func(x ast.Expr) bool {
		call, isCall := x.(*ast.CallExpr)
		_, isField := x.(*ast.SelectorExpr)
		switch {
		case isField, isCall && calls.IsFunc(l.info, call, "net/http", "Request.Context"):
			return false
		case !isCall:
		case calls.IsFunc(l.info, call, "context", "WithTimeout", "WithDeadline"), calls.IsFunc(l.info, call, "os/signal", "NotifyContext"):
			return false
		case calls.IsFunc(l.info, call, "context", "WithCancel", "WithValue"):
			parent := calls.Root(l.info, call.Args[0])
			return parent == nil || parent != v && !l.ends(parent)
		}
		return true
	})
}

// parameter reports whether v is a parameter of a function around the loop.
func (l retryLoop) parameter(v *types.Var) bool {
	for up, t, _ := calls.Function(l.cur); t != nil; up, t, _ = calls.Function(up.Parent()) {
		if calls.Within(v, t.Params) {
			return true
		}
	}
	return false
}

// hot reports whether a turn ends at once after ctx is done: a select receives from ctx.Done() without leaving the loop, and
// nothing asks for the error of ctx or that of the attempt.
func (l retryLoop) hot() bool {
	for n := range ast.Preorder(l.cur.Node()) {
		if asks, isSelector := n.(*ast.SelectorExpr); isSelector && asks.Sel.Name == "Err" && calls.IsContext(l.info.TypeOf(asks.X)) {
			return false
		}
	}
	return slices.ContainsFunc(l.Repeats, func(s retries.State) bool { return s.Hot && s.Last == retries.Failed })
}

// outlives reports whether an attempt that gets ctx is repeated after ctx is done: nothing else in the loop names ctx,
// and no condition inspects the error of the attempt.
func (l retryLoop) outlives(ctx *types.Var) bool {
	if slices.ContainsFunc(l.Waits, l.short) {
		return false
	}
	given := map[ast.Node]bool{}
	for _, call := range l.Attempts {
		if l.Judged[call] {
			return false
		}
		for _, arg := range call.Args {
			given[arg] = true
		}
	}
	uses, attempts := 0, 0
	ast.Inspect(l.cur.Node(), func(n ast.Node) bool {
		if id, isIdent := n.(*ast.Ident); isIdent && l.info.Uses[id] == ctx {
			uses++
			if given[n] {
				attempts++
			}
		}
		return true
	})
	return attempts > 0 && attempts == uses && !slices.ContainsFunc(l.Repeats, func(s retries.State) bool { return s.Last != retries.Failed })
}

// short reports whether w is known to be at most 100 ms, which hardly delays a shutdown or an error.
func (l retryLoop) short(w retries.Wait) bool {
	d, known := l.most(w.Delay)
	return known && time.Duration(d) <= 100*time.Millisecond
}

// brief reports whether the loop asks each second, or more often, if ctx is done.
func (l retryLoop) brief(ctx string) bool {
	return l.asks(ctx) && !slices.ContainsFunc(l.Waits, func(w retries.Wait) bool {
		d, known := l.most(w.Delay)
		return !known || d > int64(time.Second)
	})
}

// asks reports whether the loop checks if the context ctx is done.
func (l retryLoop) asks(ctx string) bool {
	if l.Cond != nil && strings.Contains(types.ExprString(l.Cond), ctx) {
		return true
	}
	for n := range ast.Preorder(l.cur.Node()) {
		s, isSelector := n.(*ast.SelectorExpr)
		if isSelector && (s.Sel.Name == "Err" || s.Sel.Name == "Done") && types.ExprString(s.X) == ctx {
			return true
		}
	}
	return false
}

// most returns the largest value of x, which may depend on random numbers and on the counter of the loop.
func (l retryLoop) most(x ast.Expr) (most int64, known bool) {
	if x == nil {
		return 0, false
	}
	if v, isConst := intValue(l.info, x); isConst {
		return v, true
	}
	switch x := ast.Unparen(x).(type) {
	case *ast.Ident:
		if l.Counter != nil && calls.Is(l.info, x, l.Counter) {
			return l.most(l.Count)
		}
	case *ast.CallExpr:
		if l.info.Types[x.Fun].IsType() || calls.IsFunc(l.info, x, "math/rand", "Intn", "Int63n") || calls.IsFunc(l.info, x, "math/rand/v2", "IntN", "Int64N", "N") {
			return l.most(x.Args[0])
		}
	case *ast.BinaryExpr:
		a, isA := l.most(x.X)
		b, isB := l.most(x.Y)
		if x.Op == token.MUL {
			return a * b, isA && isB
		}
		return a + b, isA && isB && x.Op == token.ADD
	}
	return 0, false
}

// sleepsLast reports whether a counted loop also waits after its last attempt: no condition in it depends on what counts,
// and no attempt follows the loop.
func (l retryLoop) sleepsLast() bool {
	if !l.Counted || !l.WaitsLast || slices.ContainsFunc(l.Waits, l.short) || l.unawaited() {
		return false
	}
	if v, known := intValue(l.info, l.Count); known && v <= 1 {
		return false
	}
	for n := range ast.Preorder(l.Body) {
		x, isExpr := n.(*ast.BinaryExpr)
		asks := isExpr && x.Op.Precedence() == token.EQL.Precedence() && calls.Names(l.info, x, l.Steps)
		if stmt, isSwitch := n.(*ast.SwitchStmt); isSwitch && stmt.Tag != nil {
			asks = calls.Names(l.info, stmt.Tag, l.Steps)
		}
		if asks {
			return false
		}
	}
	fails := func(s retries.State) bool { return s.Last > retries.OK }
	return slices.ContainsFunc(l.Repeats, fails) && !l.attemptFollows()
}

// unawaited reports whether the loop is in the function of a goroutine, whose end is seldom waited for.
func (l retryLoop) unawaited() bool {
	function, _, _ := calls.Function(l.cur)
	in, _ := function.Parent().ParentEdge()
	return in == edge.GoStmt_Call
}

func (l retryLoop) attemptFollows() (yes bool) {
	callee := typeutil.Callee(l.info, l.Attempts[0])
	function, _, _ := calls.Function(l.cur)
	for c := range function.Preorder((*ast.CallExpr)(nil)) {
		call := c.Node().(*ast.CallExpr)
		yes = yes || call.Pos() > l.cur.Node().End() && typeutil.Callee(l.info, call) == callee
	}
	return yes
}

// losesError reports whether the statement after the loop returns a new error, or none, after a failed attempt whose error is
// not used.
func (l retryLoop) losesError() bool {
	next, hasNext := l.cur.NextSibling()
	failed := l.Broken
	if l.Counted {
		failed = append(slices.Clone(failed), l.Repeats...)
	}
	if !hasNext || len(failed) == 0 {
		return false
	}
	last := failed[0].Err
	other := func(s retries.State) bool { return s.Err != last || s.Last == retries.OK }
	if last == nil || slices.ContainsFunc(failed, other) {
		return false
	}
	r, isReturn := next.Node().(*ast.ReturnStmt)
	if !isReturn || len(r.Results) == 0 {
		return false
	}
	result := r.Results[len(r.Results)-1]
	made, isCall := result.(*ast.CallExpr)
	isNew := isCall && (calls.IsFunc(l.info, made, "fmt", "Errorf") || calls.IsFunc(l.info, made, "errors", "New"))
	if !isNew && !(l.info.Types[result].IsNil() && l.returnsError()) {
		return false
	}
	passedOn := isNew && slices.ContainsFunc(made.Args, func(x ast.Expr) bool { return types.Implements(l.info.TypeOf(x), errorType) })
	for n := range ast.Preorder(l.Body) {
		switch n := n.(type) {
		case *ast.CallExpr: // it may log the error or its text
			passedOn = passedOn || calls.Names(l.info, n, last)
		case *ast.AssignStmt: // it may be kept for later
			passedOn = passedOn || slices.ContainsFunc(n.Rhs, func(x ast.Expr) bool { return calls.Names(l.info, x, last) })
		}
	}
	return !passedOn && !calls.Names(l.info, r, last)
}

// returnsError reports whether the last result of the function around the loop is an error.
func (l retryLoop) returnsError() bool {
	_, t, _ := calls.Function(l.cur)
	return t.Results != nil && calls.IsError(l.info.TypeOf(t.Results.List[len(t.Results.List)-1].Type))
}

var errorType = types.Universe.Lookup("error").Type().Underlying().(*types.Interface)

func intValue(info *types.Info, x ast.Expr) (int64, bool) {
	v := info.Types[x].Value
	if v == nil {
		return 0, false
	}
	return constant.Int64Val(constant.ToInt(v))
}
