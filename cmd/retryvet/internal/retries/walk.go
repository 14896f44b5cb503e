// Package retries recognizes code that runs again if it fails: hand-written retry loops, and functions that are
// passed to this library. It follows the paths through that code and reports the outcome of each.
package retries

import (
	"cmp"
	"go/ast"
	"go/constant"
	"go/token"
	"go/types"
	"regexp"
	"slices"

	"golang.org/x/tools/go/cfg"
	"golang.org/x/tools/go/types/typeutil"

	"github.com/retrygo/retry/cmd/retryvet/internal/calls"
)

// An Outcome is the result of the last attempt on a path.
type Outcome uint8

const (
	None   Outcome = iota // no attempt was made
	OK                    // its error is nil
	Failed                // it has an error
	Judged                // it has an error that was passed to a function
)

// A State is one path to a statement, as far as it matters to retries.
type State struct {
	Last Outcome
	Call *ast.CallExpr // the last attempt
	Err  types.Object  // the variable that has its error

	Response types.Object // the variable that has the response of an attempt
	Status   int          // one of statuses; 0 if there is no response

	Passed bool // the path has gone through the part that was asked for, which did not just use a result of a call that failed

	Hot bool // a select has received from a context that is done, and the loop goes on

	before bool // the last attempt was made in the previous iteration
	waited bool // since the iteration began
	chosen bool // a select has received from something else than a timer
	done   bool // that was a context that is done
}

// Succeeded reports whether the last attempt succeeded: its error is nil, and so is the status of its response, if any.
func (s State) Succeeded() bool { return s.Last == OK && (s.Status == 0 || s.Status/100 == 2) }

// Failed reports whether the last attempt failed, with an error or by its response's status.
func (s State) Failed() bool { return s.Last != None && !s.Succeeded() }

// has reports whether err has the error of a failure.
func (s State) has(err types.Object) bool {
	return s.Err == err && (s.Last == Failed || s.Last == Judged)
}

// statuses represents all possible statuses of a response.
var statuses = []int{200, 201, 202, 204, 304, 400, 401, 403, 404, 408, 409, 429, 500, 502, 503, 504}

const tooMany = 500 // states of a block; more are not followed

// add adds s to all if it is not there.
func add(all []State, s State) []State {
	if slices.Contains(all, s) {
		return all
	}
	return append(all, s)
}

// A Wait is a sleep in the body of the loop.
type Wait struct {
	Node  ast.Node
	Delay ast.Expr // nil if it is that of a timer, or of a call that waits
	Blind bool     // nothing can interrupt it
}

// A walk follows the paths through the body of a loop or a function, not into function literals. Its methods that take a
// function next call it with each state that can follow.
type walk struct {
	info    *types.Info
	end     End            // the body is that of a function, which runs again after this end; otherwise 0
	at      ast.Node       // a part that was asked for; nil for none
	results *ast.FieldList // of the function

	head, body, done *cfg.Block             // where the loop with a condition, its body, and what is behind it begin, or the function
	next             *cfg.Block             // where an iteration has ended
	around           map[ast.Node]ast.Stmt  // the switch or select of a clause, and the select of a communication
	inner            []ast.Node             // loops inside of the loop
	seen             map[*cfg.Block][]State // in this run

	back, left []State // the ends that the next iteration follows, and those that leave
	attempts   []*ast.CallExpr
	waits      []Wait
	given      map[*ast.CallExpr][]ast.Expr // what the results of an attempt are assigned to
	judged     map[*ast.CallExpr]bool       // attempts whose error a condition passes to a function
	again      bool                         // an attempt follows one that succeeded in the previous iteration
	strange    bool                         // the loop has a part that a plain retry loop does not have
	idles      bool                         // an iteration ends without a wait after a success
	rushes     bool                         // one does after something else
	broken     []State                      // those that go on behind the loop
	hurries    bool                         // an iteration ends without a wait, or after one with something else
}

// newWalk returns a walk through stmts. The first of them is the loop, or its label, if loop is not nil.
func newWalk(info *types.Info, loop ast.Stmt, stmts []ast.Stmt) *walk {
	w := &walk{info: info, around: map[ast.Node]ast.Stmt{}, given: map[*ast.CallExpr][]ast.Expr{}, judged: map[*ast.CallExpr]bool{}}
	all := &ast.BlockStmt{List: stmts}
	blocks := cfg.New(all, func(call *ast.CallExpr) bool { return !exits(info, call) }).Blocks
	own := map[cfg.BlockKind]*cfg.Block{}
	for _, b := range blocks {
		if r := b.Return(); r != nil && r.Return == all.End()-1 {
			b.Nodes[len(b.Nodes)-1] = (*ast.ReturnStmt)(nil)
		}
		if loop != nil && b.Stmt == loop {
			own[b.Kind] = b
		}
	}
	if w.head = own[cfg.KindForLoop]; loop == nil {
		w.head = blocks[0]
	}
	w.body = cmp.Or(own[cfg.KindForBody], own[cfg.KindRangeBody])
	w.next = cmp.Or(own[cfg.KindForPost], own[cfg.KindForLoop], own[cfg.KindRangeLoop], w.body)
	w.done = cmp.Or(own[cfg.KindForDone], own[cfg.KindRangeDone])
	for n := range ast.Preorder(all) {
		switch n := n.(type) {
		case *ast.SwitchStmt:
			for _, c := range n.Body.List {
				w.around[c] = n
			}
		case *ast.SelectStmt:
			for _, c := range n.Body.List {
				w.around[c], w.around[c.(*ast.CommClause).Comm] = n, n
			}
		case *ast.ForStmt, *ast.RangeStmt:
			if n != loop {
				w.inner = append(w.inner, n)
			}
		}
	}
	return w
}

// run follows the paths from b to where the body of the loop begins, and returns the states there.
func (w *walk) run(b *cfg.Block, from ...State) []State {
	w.back, w.seen = nil, map[*cfg.Block][]State{}
	for _, s := range from {
		w.follow(b, 0, s)
	}
	return w.back
}

// follow goes on at the ith node of b.
func (w *walk) follow(b *cfg.Block, i int, s State) {
	if i < len(b.Nodes) {
		if n := b.Nodes[i]; w.at != nil && n.Pos() <= w.at.Pos() && w.at.End() <= n.End() {
			s.Passed = s.Passed || s.Last != Failed || !w.usesResult(s)
		}
		next := func(s State) { w.follow(b, i+1, s) }
		if w.around[b.Nodes[i]] != nil { // what a select does is done where it is chosen
			next(s)
		} else {
			w.node(b.Nodes[i], s, next)
		}
		return
	}
	switch cond := w.condition(b); {
	case len(b.Succs) == 0 && b.Kind != cfg.KindSelectAfterCase:
		w.leave(s)
	case cond != nil:
		w.refine(cond, s, true, func(s State) { w.enter(b.Succs[0], s) })
		w.refine(cond, s, false, func(s State) { w.enter(b.Succs[1], s) })
	default:
		for _, to := range b.Succs {
			if b.Kind != cfg.KindRangeLoop || to != w.done { // it may have no turns
				w.enter(to, s)
			}
		}
	}
}

// condition returns the condition at the end of b, nil if there is none.
func (w *walk) condition(b *cfg.Block) ast.Expr {
	if len(b.Succs) < 2 || len(b.Nodes) == 0 {
		return nil
	}
	cond, _ := b.Nodes[len(b.Nodes)-1].(ast.Expr)
	if choice, isSwitch := w.around[b.Succs[0].Stmt].(*ast.SwitchStmt); isSwitch && choice.Tag != nil {
		return &ast.BinaryExpr{X: choice.Tag, Op: token.EQL, Y: cond}
	}
	return cond
}

// enter goes on at b, unless it begins the body of the loop or is behind it.
func (w *walk) enter(b *cfg.Block, s State) {
	if b == w.next {
		w.hurries = w.hurries || !s.waited
		w.idles = w.idles || !s.waited && s.Last == OK
		w.rushes = w.rushes || !s.waited && s.Last != OK
		s.Hot = s.Hot || s.done
		s.waited, s.chosen, s.done = false, false, false
	}
	switch {
	case b == w.body:
		s.waited = false
		w.back = add(w.back, s)
		return
	case b == w.done:
		w.broken = add(w.broken, s)
		w.leave(s)
		return
	case b.Kind == cfg.KindSelectCaseBody:
		w.choose(b.Stmt.(*ast.CommClause), &s)
	case b.Kind == cfg.KindSelectDone:
		w.strange = w.strange || s.chosen && !s.done // it polls, or waits for a wake-up
		s.Hot = s.Hot || s.done
		s.chosen, s.done = false, false
	}
	switch {
	case slices.Contains(w.seen[b], s):
	case len(w.seen[b]) == tooMany:
		w.strange, w.hurries = true, true
	default:
		w.seen[b] = append(w.seen[b], s)
		w.follow(b, 0, s)
	}
}

// node goes through a statement or expression that has no other paths inside.
func (w *walk) node(n ast.Node, s State, next func(State)) {
	switch n := n.(type) {
	case *ast.ExprStmt:
		w.expr(n.X, &s)
	case *ast.AssignStmt:
		w.assign(n.Lhs, n.Rhs, s, next)
		return
	case *ast.ValueSpec:
		left := make([]ast.Expr, len(n.Names))
		for i, name := range n.Names {
			left[i] = name
		}
		w.assign(left, n.Values, s, next)
		return
	case *ast.ReturnStmt:
		if w.end != 0 {
			w.returns(n, s)
			return
		}
	}
	next(s)
}

// usesResult reports whether the part that was asked for uses a result of the last attempt.
func (w *walk) usesResult(s State) bool {
	for n := range ast.Preorder(w.at) {
		id, isIdent := n.(*ast.Ident)
		if isIdent && slices.ContainsFunc(w.given[s.Call], func(x ast.Expr) bool { return calls.Is(w.info, x, w.info.Uses[id]) }) {
			return true
		}
	}
	return false
}

// returns sorts the paths to the end of a function by whether it is run again.
func (w *walk) returns(r *ast.ReturnStmt, s State) {
	if r == nil {
		return
	}
	results := r.Results
	if len(results) == 0 && w.results != nil { // named
		for _, f := range w.results.List {
			for _, name := range f.Names {
				results = append(results, name)
			}
		}
	}
	if len(results) == 0 {
		return
	}
	x := ast.Unparen(results[len(results)-1])
	call, isCall := x.(*ast.CallExpr)
	v := calls.Root(w.info, x)
	switch {
	case w.end == OnFalse && len(results) > 1:
		done := w.info.Types[results[0]].Value
		isNil := w.info.Types[x].IsNil() || v != nil && !s.has(v)
		w.ended(s, isNil && (done == nil || !constant.BoolVal(done)))
	case isCall && (permanent.MatchString(types.ExprString(call.Fun)) || w.end == OnMark && !retryable.MatchString(types.ExprString(call.Fun))):
		w.ended(s, false)
	case isCall && !w.wraps(call):
		w.attempt(call, nil, s, func(s State) { w.ended(s, s.Last == Failed) })
	case v != nil && v.Parent() != v.Pkg().Scope():
		w.ended(s, s.has(v))
	default: // a new error, or one that a package declares
		w.ended(s, (s.Last != None || w.at != nil) && !w.info.Types[x].IsNil())
	}
}

var (
	permanent = regexp.MustCompile(`(?i)permanent|ambiguous|unrecoverable|non_?retr|terminal|fatal`)
	retryable = regexp.MustCompile(`(?i)retryable`)
)

// ended notes that s ends the body, and whether it is run again.
func (w *walk) ended(s State, again bool) {
	if again {
		w.back = add(w.back, s)
	} else {
		w.left = add(w.left, s)
	}
}

// leave notes that s leaves the loop. A timer may be drained where a context is done.
func (w *walk) leave(s State) {
	w.left = add(w.left, s)
	w.hurries = w.hurries || s.waited && !s.chosen
}

// choose does the communication of the clause of a select.
func (w *walk) choose(clause *ast.CommClause, s *State) {
	receive, isExpr := clause.Comm.(*ast.ExprStmt)
	if !isExpr {
		w.strange = true // it processes input
		return
	}
	choice := w.around[clause].(*ast.SelectStmt)
	if delay, isTimer := w.receives(receive.X); isTimer {
		w.wait(Wait{choice, delay, len(choice.Body.List) == 1}, s)
	} else {
		s.chosen, s.done = true, w.isDone(receive.X)
	}
}

// isDone reports whether x receives from a context that is done.
func (w *walk) isDone(x ast.Expr) bool {
	for n := range ast.Preorder(x) {
		if done, isSelector := n.(*ast.SelectorExpr); isSelector {
			return done.Sel.Name == "Done" && calls.IsContext(w.info.TypeOf(done.X))
		}
	}
	return false
}

// wait notes a wait, once, if it is not one of a loop inside.
func (w *walk) wait(x Wait, s *State) {
	s.waited = true
	inside := func(n ast.Node) bool { return n.Pos() <= x.Node.Pos() && x.Node.End() <= n.End() }
	if !slices.Contains(w.waits, x) && !slices.ContainsFunc(w.inner, inside) {
		w.waits = append(w.waits, x)
	}
}

// receives reports whether x receives from time.After or from a timer.
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

func (w *walk) expr(x ast.Expr, s *State) {
	call, isCall := ast.Unparen(x).(*ast.CallExpr)
	delay, isTimer := w.receives(x)
	switch {
	case isTimer:
		w.wait(Wait{x, delay, delay != nil}, s) // that of a timer may have passed
	case !isCall:
	case calls.IsFunc(w.info, call, "time", "Sleep"):
		w.wait(Wait{call, call.Args[0], true}, s)
	case !exits(w.info, call) && !calls.Logs(call):
		s.waited = false
	}
}

// exits reports whether call does not return.
func exits(info *types.Info, call *ast.CallExpr) bool {
	f := typeutil.Callee(info, call)
	if f == nil {
		return false
	}
	switch f.Name() {
	case "panic", "Exit", "Fatal", "Fatalf", "Fatalln", "FailNow", "Goexit", "Panic", "Panicf":
		return true
	}
	return false
}

func (w *walk) assign(left, right []ast.Expr, s State, next func(State)) {
	switch {
	case len(right) == 0:
		next(s)
		return
	case len(right) > 1:
		w.assign(left[:1], right[:1], s, func(s State) { w.assign(left[1:], right[1:], s, next) })
		return
	}
	v := w.variable(left[len(left)-1])
	call, isCall := ast.Unparen(right[0]).(*ast.CallExpr)
	fails := v != nil && calls.IsError(v.Type()) && !calls.IsNamed(w.info.TypeOf(left[0]), "time", "Duration") // the next delay
	switch {
	case fails && isCall && w.wraps(call):
		made := calls.IsFunc(w.info, call, "fmt", "Errorf") || calls.IsFunc(w.info, call, "errors", "New")
		if s.Err = v; s.Last == OK && made { // its result is unusable
			s.Last = Failed
		}
	case isCall && fails:
		w.attempt(call, left, s, next)
		return
	case fails:
		if s.Err == v && w.info.Types[right[0]].IsNil() {
			s.Last = OK
		}
	default:
		w.ask(right[0], &s)
	}
	next(s)
}

// variable returns the variable x, nil if x is something else.
func (w *walk) variable(x ast.Expr) types.Object {
	id, isIdent := ast.Unparen(x).(*ast.Ident)
	if !isIdent || id.Name == "_" {
		return nil
	}
	return w.info.ObjectOf(id)
}

// attempt makes an attempt whose results are assigned to left, if they are.
func (w *walk) attempt(call *ast.CallExpr, left []ast.Expr, s State, next func(State)) {
	if !slices.Contains(w.attempts, call) {
		w.attempts = append(w.attempts, call)
	}
	w.again = w.again || s.before && s.Succeeded()
	if s.before {
		s = State{chosen: s.chosen}
	}
	s.Call, s.Err, s.waited = call, nil, false
	w.given[call] = left
	results, answers := []Outcome{OK}, []int(nil)
	if left == nil {
		results = []Outcome{Failed, OK}
	}
	response := types.Object(nil)
	for i, x := range left {
		switch v := w.variable(x); {
		case v == nil:
		case calls.IsError(v.Type()):
			s.Err, results = v, []Outcome{Failed, OK}
		case i == 0 && calls.IsNamed(v.Type(), "net/http", "Response"):
			response, answers = v, statuses
		}
	}
	if answers == nil {
		answers = []int{s.Status}
	} else {
		s.Response = response
	}
	for _, s.Last = range results {
		of := answers
		if s.Last == Failed && response != nil {
			of = []int{0}
		}
		for _, s.Status = range of {
			next(s)
		}
	}
}

// wraps reports whether call makes an error, new or from another, rather than an attempt.
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

// refine goes on with what s is if cond is true, or false.
func (w *walk) refine(cond ast.Expr, s State, truth bool, next func(State)) {
	switch c := ast.Unparen(cond).(type) {
	case *ast.UnaryExpr:
		if c.Op == token.NOT {
			w.refine(c.X, s, !truth, next)
			return
		}
	case *ast.BinaryExpr:
		if c.Op == token.LAND || c.Op == token.LOR {
			decides := c.Op == token.LOR // the value of X that decides
			if truth == decides {
				w.refine(c.X, s, truth, next)
			}
			w.refine(c.X, s, !decides, func(s State) { w.refine(c.Y, s, truth, next) })
			return
		}
	}
	if w.ask(cond, &s); w.possible(cond, &s, truth) {
		next(s)
	}
}

// possible reports whether cond, which contains no other conditions, can have the given truth value in s.
func (w *walk) possible(cond ast.Expr, s *State, truth bool) bool {
	switch c := ast.Unparen(cond).(type) {
	case *ast.BinaryExpr:
		equal := (c.Op == token.EQL) == truth
		if c.Op == token.EQL || c.Op == token.NEQ {
			isNil := w.info.Types[c.Y].IsNil()
			switch {
			case isNil && calls.Is(w.info, c.X, s.Response) && s.Last != None:
				return equal == (s.Status == 0)
			case isNil && equal && calls.Is(w.info, c.X, s.Err):
				return s.Last == None || s.Last == OK
			case (isNil || equal) && calls.Is(w.info, c.X, s.Err):
				if !isNil {
					w.judge(s)
				}
				return s.Last != OK
			}
		}
		if s.Status == 0 {
			break
		}
		if v := w.value(c, s); v != nil && v.Kind() == constant.Bool {
			return constant.BoolVal(v) == truth
		}
	case *ast.CallExpr:
		return !truth || s.Last != OK || !w.about(c, s.Err)
	}
	return true
}

// ask notes if n passes the error of the last attempt to a function, or inspects its type.
func (w *walk) ask(n ast.Node, s *State) {
	for n := range ast.Preorder(n) {
		switch n := n.(type) {
		case *ast.CallExpr:
			if w.about(n, s.Err) {
				w.judge(s)
			}
		case *ast.TypeAssertExpr:
			if calls.Is(w.info, n.X, s.Err) {
				w.judge(s)
			}
		}
	}
}

// about reports whether call gets err, or is of a method of it.
func (w *walk) about(call *ast.CallExpr, err types.Object) bool {
	if m, isMethod := call.Fun.(*ast.SelectorExpr); isMethod && calls.Is(w.info, m.X, err) {
		return true
	}
	return slices.ContainsFunc(call.Args, func(arg ast.Expr) bool { return calls.Is(w.info, arg, err) })
}

// judge notes that a condition inspects the error of the last attempt of s.
func (w *walk) judge(s *State) {
	w.judged[s.Call] = true
	if s.Last == Failed {
		s.Last = Judged
	}
}

// value returns the value of x, a comparison or a number, if the response has the status of s; nil if it is unknown.
func (w *walk) value(x ast.Expr, s *State) constant.Value {
	switch x := ast.Unparen(x).(type) {
	case *ast.SelectorExpr:
		if x.Sel.Name == "StatusCode" && calls.Is(w.info, x.X, s.Response) {
			return constant.MakeInt64(int64(s.Status))
		}
	case *ast.BinaryExpr:
		a, b := w.value(x.X, s), w.value(x.Y, s)
		switch {
		case a == nil || b == nil || a.Kind() != constant.Int || b.Kind() != constant.Int:
			return nil
		case x.Op.Precedence() == token.EQL.Precedence():
			return constant.MakeBool(constant.Compare(a, x.Op, b))
		case x.Op == token.QUO && constant.Sign(b) != 0:
			return constant.BinaryOp(a, token.QUO_ASSIGN, b) // of integers
		}
	}
	return w.info.Types[x].Value
}
