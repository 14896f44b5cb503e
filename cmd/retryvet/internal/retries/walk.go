// Package retries recognizes code that runs again if it fails: hand-written retry loops, and functions that are
// passed to this library. It follows the paths through that code and reports the outcome of each.
package retries

import (
	"go/ast"
	"go/constant"
	"go/token"
	"go/types"
	"slices"

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

	Response types.Object // the variable that has the response of an attempt, or its result of type bool
	Status   int          // one of statuses; 0 if there is no response

	before bool // the last attempt was made in the previous iteration
	waited bool // since the iteration began
}

// Succeeded reports whether the last attempt succeeded: its error is nil, and so is the status of its response, if any.
func (s State) Succeeded() bool { return s.Last == OK && (s.Status == 0 || s.Status/100 == 2) }

// Failed reports whether the last attempt failed, with an error or by its response's status.
func (s State) Failed() bool { return s.Last != None && !s.Succeeded() }

// statuses represents all possible statuses of a response; bools are those that stand for a success and a failure by a bool.
var (
	statuses = []int{200, 201, 202, 204, 304, 400, 401, 403, 404, 408, 409, 429, 500, 502, 503, 504}
	bools    = []int{200, 500}
)

const tooMany = 500 // paths; more are not followed

func merge(a, b []State) []State {
	for _, s := range b {
		if !slices.Contains(a, s) {
			a = append(slices.Clip(a), s)
		}
	}
	return a
}

// waited returns s with the given value in all of them.
func waited(s []State, yes bool) []State {
	s = slices.Clone(s)
	for i := range s {
		s[i].waited = yes
	}
	return s
}

// A Wait is a sleep in the body of the loop.
type Wait struct {
	Node  ast.Node
	Delay ast.Expr // nil if it is that of a timer, or of a call that waits
	Blind bool     // nothing can interrupt it
}

// A walk follows the paths through the body of a loop or a function, not into function literals.
type walk struct {
	info  *types.Info
	label string // of the loop
	kind  Kind   // of the attempts
	work  bool   // the body is that of a function: it runs again if it returns an error

	sleeps func(*ast.CallExpr) bool // a call waits, as time.Sleep does; nil for none

	back, left []State // the ends that the next iteration follows, and those that leave
	attempts   []*ast.CallExpr
	waits      []Wait
	judged     map[*ast.CallExpr]bool // attempts whose error a condition passes to a function
	again      bool                   // an attempt follows one that succeeded in the previous iteration
	strange    bool                   // the loop has a part that a plain retry loop does not have
	hurries    bool                   // an iteration ends without a wait, or after one with something else
	ends       []*ast.ReturnStmt      // the return statements that were reached

	depth int // of loops inside
}

func (w *walk) list(stmts []ast.Stmt, s []State, inner bool) []State {
	for _, stmt := range stmts {
		s = w.stmt(stmt, s, inner)
	}
	return s
}

// stmt returns the states after stmt. inner means that a break without a label leaves a nested switch, select
// or loop.
func (w *walk) stmt(stmt ast.Stmt, s []State, inner bool) []State {
	if len(s) > tooMany {
		w.strange, w.hurries = true, true
		s = nil
	}
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
		s = w.ask(stmt.Assign, s)
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
		w.returns(stmt, s)
		return nil
	case *ast.GoStmt, *ast.SendStmt:
		w.strange = w.strange || w.kind != Errors
	case *ast.BranchStmt:
		return w.branch(stmt, s, inner)
	}
	return s
}

// returns sorts the paths to a return statement by whether they run the body again.
func (w *walk) returns(r *ast.ReturnStmt, s []State) {
	if !w.work {
		w.leave(s)
		if len(s) > 0 {
			w.ends = append(w.ends, r)
		}
		return
	}
	if len(r.Results) == 0 {
		return
	}
	again := func(s State) bool { return false }
	switch x := ast.Unparen(r.Results[len(r.Results)-1]).(type) {
	case *ast.CallExpr:
		switch {
		case calls.IsFunc(w.info, x, calls.Module, "Permanent", "Ambiguous"):
		case w.wraps(x):
			again = func(s State) bool { return s.Last != None }
		default:
			s = w.attempt(x, nil, s)
			again = func(s State) bool { return s.Last == Failed }
		}
	case *ast.Ident, *ast.SelectorExpr:
		switch v := calls.Root(w.info, x); {
		case v == nil:
		case v.Parent() == v.Pkg().Scope():
			again = func(s State) bool { return s.Last != None } // an error that a package declares
		default:
			again = func(s State) bool { return s.Err == v && (s.Last == Failed || s.Last == Judged) }
		}
	case *ast.CompositeLit, *ast.UnaryExpr:
		again = func(s State) bool { return s.Last != None }
	}
	for _, s := range s {
		if again(s) {
			w.back = merge(w.back, []State{s})
		} else {
			w.left = merge(w.left, []State{s})
		}
	}
}

// leave notes that s leaves the loop.
func (w *walk) leave(s []State) {
	w.left = merge(w.left, s)
	w.hurries = w.hurries || slices.ContainsFunc(s, func(s State) bool { return s.waited })
}

func (w *walk) branch(b *ast.BranchStmt, s []State, inner bool) []State {
	ours := b.Label != nil && b.Label.Name == w.label
	switch {
	case b.Tok == token.FALLTHROUGH:
		return s
	case b.Tok == token.CONTINUE && (ours || b.Label == nil && w.depth == 0):
		w.back = merge(w.back, s)
	case b.Tok == token.BREAK && b.Label == nil && inner:
		return s // it continues after the inner statement, at the latest
	case b.Tok == token.CONTINUE && b.Label == nil:
		return s
	default: // leaves the loop, or, with a label, one around it
		w.leave(s)
	}
	return nil
}

// loop walks one iteration of a nested loop.
func (w *walk) loop(body *ast.BlockStmt, s []State) []State {
	w.depth++
	waits := len(w.waits)
	s = merge(s, w.stmt(body, s, true))
	w.waits = w.waits[:waits] // without those of the nested loop
	w.depth--
	return s
}

func (w *walk) choose(stmt *ast.SwitchStmt, s []State) []State {
	s = w.stmt(stmt.Init, s, true)
	rest, hasDefault := s, false
	var out []State
	var otherwise []ast.Stmt
	for _, c := range stmt.Body.List {
		c := c.(*ast.CaseClause)
		if c.List == nil {
			hasDefault, otherwise = true, c.Body
			continue
		}
		var in []State
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

func (w *walk) selects(stmt *ast.SelectStmt, s []State) (out []State) {
	var waits []Wait
	others := 0
	for _, c := range stmt.Body.List {
		c := c.(*ast.CommClause)
		receive, isExpr := c.Comm.(*ast.ExprStmt)
		if isExpr {
			if delay, isTimer := w.receives(receive.X); isTimer {
				waits = append(waits, Wait{Node: stmt, Delay: delay})
				out = merge(out, w.list(c.Body, waited(s, true), true))
				continue
			}
		}
		others++
		hurries := w.hurries
		after := w.list(c.Body, s, true)
		if len(after) == 0 && isExpr {
			w.hurries = hurries // it may drain the timer before it leaves
		}
		if c.Comm != nil && (!isExpr || len(after) > 0) {
			w.strange = true // it processes input, polls, or waits for a wake-up
		}
		out = merge(out, after)
	}
	for i := range waits {
		waits[i].Blind = others == 0
	}
	w.waits = append(w.waits, waits...)
	return out
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

func (w *walk) expr(x ast.Expr, s []State) []State {
	if delay, isTimer := w.receives(x); isTimer {
		w.waits = append(w.waits, Wait{x, delay, delay != nil}) // that of a timer may have passed
		return waited(s, true)
	}
	call, isCall := ast.Unparen(x).(*ast.CallExpr)
	if !isCall {
		return s
	}
	if calls.IsFunc(w.info, call, "time", "Sleep") {
		w.waits = append(w.waits, Wait{call, call.Args[0], true})
		return waited(s, true)
	}
	if w.sleeps != nil && w.sleeps(call) {
		w.waits = append(w.waits, Wait{Node: call})
		return waited(s, true)
	}
	if w.exits(call) {
		w.leave(s)
		return nil
	}
	if calls.Logs(call) {
		return s
	}
	w.strange = w.strange || w.kind != Errors
	return waited(s, false)
}

// exits reports whether call does not return.
func (w *walk) exits(call *ast.CallExpr) bool {
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

func (w *walk) assign(left, right []ast.Expr, s []State) []State {
	if len(right) != 1 {
		for i := range right {
			s = w.assign(left[i:i+1], right[i:i+1], s)
		}
		return s
	}
	v := w.variable(left[len(left)-1])
	call, isCall := ast.Unparen(right[0]).(*ast.CallExpr)
	fails := v != nil && calls.IsError(v.Type()) && !calls.IsNamed(w.info.TypeOf(left[0]), "time", "Duration") // the next delay
	var out []State
	switch {
	case fails && isCall && w.wraps(call):
		made := calls.IsFunc(w.info, call, "fmt", "Errorf") || calls.IsFunc(w.info, call, "errors", "New")
		for _, s := range s {
			if s.Err = v; s.Last == OK && made { // its result is unusable
				s.Last = Failed
			}
			out = merge(out, []State{s})
		}
	case isCall && (fails || w.answers(call, left)):
		return w.attempt(call, left, s)
	case fails && w.info.Types[right[0]].IsNil():
		for _, s := range s {
			if s.Err == v {
				s.Last = OK
			}
			out = merge(out, []State{s})
		}
	case fails:
		return s
	default:
		return w.ask(right[0], w.look(right[0], s))
	}
	return out
}

// look returns s after x, which may find out something.
func (w *walk) look(x ast.Expr, s []State) []State {
	for n := range ast.Preorder(x) {
		call, isCall := n.(*ast.CallExpr)
		if !isCall || w.info.Types[call.Fun].IsType() || w.info.Types[call.Fun].IsBuiltin() {
			continue
		}
		if f := typeutil.Callee(w.info, call); f == nil || f.Pkg() == nil || !slices.Contains(pure, f.Pkg().Path()) {
			return waited(s, false)
		}
	}
	return s
}

// pure are packages whose functions say nothing about an attempt but by its error.
var pure = []string{"time", "context", "errors", "strings", "bytes", "os", "fmt", "math", "math/rand", "math/rand/v2"}

// variable returns the variable x, nil if x is something else.
func (w *walk) variable(x ast.Expr) types.Object {
	id, isIdent := ast.Unparen(x).(*ast.Ident)
	if !isIdent || id.Name == "_" {
		return nil
	}
	return w.info.ObjectOf(id)
}

// answers reports whether call, whose results are assigned to left, is an attempt with a result of type bool.
func (w *walk) answers(call *ast.CallExpr, left []ast.Expr) bool {
	is := func(x ast.Expr) bool { return isBool(w.info.TypeOf(x)) && w.variable(x) != nil }
	if w.kind == Errors || !slices.ContainsFunc(left, is) && !isBool(w.info.TypeOf(call)) || w.wraps(call) {
		return false
	}
	f := typeutil.Callee(w.info, call)
	return f == nil || f.Pkg() == nil || !slices.Contains(pure, f.Pkg().Path())
}

func isBool(t types.Type) bool {
	b, isBasic := t.(*types.Basic)
	return isBasic && b.Info()&types.IsBoolean != 0
}

// attempt returns the states after an attempt whose results are assigned to left, if they are.
func (w *walk) attempt(call *ast.CallExpr, left []ast.Expr, s []State) (out []State) {
	if !slices.Contains(w.attempts, call) {
		w.attempts = append(w.attempts, call)
	}
	var err, response types.Object
	results, answers := []Outcome{OK}, []int{0}
	if isBool(w.info.TypeOf(call)) {
		answers = bools
	} else if left == nil {
		results = []Outcome{Failed, OK}
	}
	for i, x := range left {
		switch v := w.variable(x); {
		case v == nil:
		case calls.IsError(v.Type()):
			err, results = v, []Outcome{Failed, OK}
		case i == 0 && calls.IsNamed(v.Type(), "net/http", "Response"):
			response, answers = v, statuses
		case w.kind != Errors && isBool(v.Type()):
			response, answers = v, bools
		}
	}
	for _, s := range s {
		w.again = w.again || s.before && s.Succeeded()
		if s.before {
			s = State{}
		}
		s.Call, s.Err, s.waited = call, err, false
		if len(answers) > 1 {
			s.Response = response
		}
		for _, s.Last = range results {
			for _, status := range answers {
				switch {
				case len(answers) == 1:
				case len(answers) > len(bools) && s.Last == Failed:
					s.Status = 0
				default:
					s.Status = status
				}
				out = merge(out, []State{s})
			}
		}
	}
	return out
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

// refine returns the states of s in which cond can be true, or false.
func (w *walk) refine(cond ast.Expr, s []State, truth bool) []State {
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
		}
	}
	if call, isCall := ast.Unparen(cond).(*ast.CallExpr); isCall && w.answers(call, nil) {
		return slices.DeleteFunc(w.attempt(call, nil, s), func(s State) bool { return s.Succeeded() != (truth == (w.kind == False)) })
	}
	var out []State
	for _, s := range w.ask(cond, s) {
		if w.possible(cond, &s, truth) {
			out = merge(out, []State{s})
		}
	}
	return out
}

// possible reports whether cond, which contains no other conditions, can have the given truth value in s.
func (w *walk) possible(cond ast.Expr, s *State, truth bool) bool {
	switch c := ast.Unparen(cond).(type) {
	case *ast.Ident:
		if w.names(c, s.Response) {
			return (s.Status == bools[0]) == (truth == (w.kind == False))
		}
	case *ast.BinaryExpr:
		equal := (c.Op == token.EQL) == truth
		if c.Op == token.EQL || c.Op == token.NEQ {
			isNil := w.info.Types[c.Y].IsNil()
			switch {
			case isNil && w.names(c.X, s.Response) && s.Last != None:
				return equal == (s.Status == 0)
			case isNil && equal && w.names(c.X, s.Err):
				return s.Last == None || s.Last == OK
			case (isNil || equal) && w.names(c.X, s.Err):
				if !isNil {
					w.judge(s)
				}
				return s.Last != OK
			}
		}
		if x, y := w.value(c.X, s), w.value(c.Y, s); x != nil && y != nil && s.Status != 0 {
			switch c.Op {
			case token.EQL, token.NEQ, token.LSS, token.LEQ, token.GTR, token.GEQ:
				return constant.Compare(x, c.Op, y) == truth
			}
		}
	case *ast.CallExpr:
		return !truth || s.Last != OK || !w.about(c, s.Err)
	}
	return true
}

// ask returns s after n has passed the error of the last attempt to a function, or inspected its type.
func (w *walk) ask(n ast.Node, s []State) (out []State) {
	for _, s := range s {
		asked := false
		ast.Inspect(n, func(n ast.Node) bool {
			switch n := n.(type) {
			case *ast.CallExpr:
				asked = asked || w.about(n, s.Err)
			case *ast.TypeAssertExpr:
				asked = asked || w.names(n.X, s.Err)
			}
			return !asked
		})
		if asked {
			w.judge(&s)
		}
		out = merge(out, []State{s})
	}
	return out
}

// about reports whether call gets err, or is of a method of it.
func (w *walk) about(call *ast.CallExpr, err types.Object) bool {
	if m, isMethod := call.Fun.(*ast.SelectorExpr); isMethod && w.names(m.X, err) {
		return true
	}
	return slices.ContainsFunc(call.Args, func(arg ast.Expr) bool { return w.names(arg, err) })
}

// judge notes that a condition inspects the error of the last attempt of s.
func (w *walk) judge(s *State) {
	w.judged[s.Call] = true
	if s.Last == Failed {
		s.Last = Judged
	}
}

// value returns the value of x if the response has the status of s; nil if it is unknown.
func (w *walk) value(x ast.Expr, s *State) constant.Value {
	x = ast.Unparen(x)
	if v := w.info.Types[x].Value; v != nil && v.Kind() == constant.Int {
		return v
	}
	switch x := x.(type) {
	case *ast.SelectorExpr:
		if x.Sel.Name == "StatusCode" && w.names(x.X, s.Response) {
			return constant.MakeInt64(int64(s.Status))
		}
	case *ast.BinaryExpr:
		a, b := w.value(x.X, s), w.value(x.Y, s)
		if a != nil && b != nil && x.Op == token.QUO && constant.Sign(b) != 0 {
			return constant.BinaryOp(a, token.QUO_ASSIGN, b) // of integers
		}
	}
	return nil
}

func (w *walk) names(x ast.Expr, v types.Object) bool {
	id, isIdent := ast.Unparen(x).(*ast.Ident)
	return isIdent && v != nil && w.info.Uses[id] == v
}
