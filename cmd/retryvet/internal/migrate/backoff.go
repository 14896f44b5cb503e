package migrate

import (
	"go/ast"
	"go/token"
	"go/types"
	"slices"
	"strings"
	"time"

	"github.com/retrygo/retry"
)

// canceled keeps what the libraries do with a context.Canceled of the work while the caller's context lives.
func (s *site) canceled() string { return ours + ".RetryOn(" + s.contextName() + ".Canceled)" }

var backoffV4 = &library{
	name:  "backoff/v4",
	marks: []string{"Permanent", "PermanentError"},
	marky: map[string]string{"Permanent": "Permanent"},
	calls: map[string]int{"Retry": 0, "RetryWithData": 0, "RetryNotify": 0, "RetryNotifyWithData": 0,
		"RetryNotifyWithTimer": -1, "RetryNotifyWithTimerAndData": -1, "NewTicker": -1, "NewTickerWithTimer": -1},
}

var backoffV5 = &library{
	name:  "backoff/v5",
	marks: []string{"Permanent", "PermanentError", "RetryAfter", "RetryAfterError"},
	marky: map[string]string{"Permanent": "Permanent"},
	calls: map[string]int{"Retry": 1, "NewTicker": -1},
}

func init() {
	backoffV4.plan, backoffV5.plan = (*site).backoffV4, (*site).backoffV5
}

// pause is what is known of a value of type BackOff while it is followed through the source.
type pause struct {
	kind    string // "exponential", "constant" or "jittered", see goRetry
	fields  map[string]number
	order   []string // the wrappers of go-retry, the innermost first
	retries ast.Expr // of WithMaxRetries
	ctx     ast.Expr // of WithContext
	loose   ast.Expr // the interval of a constant BackOff that is no constant
}

// follow returns the pause that e is at the statement around it. eval evaluates what is no variable. The statements
// that make a local variable are added to p.drop; that variable must be used for nothing else.
func (s *site) follow(p *plan, e ast.Expr, once bool, eval func(ast.Expr) (*pause, error)) (*pause, error) {
	e = ast.Unparen(e)
	id, ok := e.(*ast.Ident)
	if !ok {
		return eval(e)
	}
	obj, ok := s.pkg.TypesInfo.Uses[id].(*types.Var)
	if !ok || obj.Parent() == obj.Pkg().Scope() {
		return nil, refuse("the BackOff %s is not a local variable", id.Name)
	}
	def := s.definition(obj)
	if def == nil {
		return nil, refuse("the BackOff %s is not made by a statement of its own here", id.Name)
	}
	list := list(s.parents[def])
	use := ast.Node(id)
	for ; use != nil; use = s.parents[use] {
		switch use.(type) {
		case *ast.FuncLit, *ast.ForStmt, *ast.RangeStmt:
			if once {
				return nil, refuse("the Backoff %s is used more than once: it counts all calls together", id.Name)
			}
		}
		if slices.ContainsFunc(list, func(x ast.Stmt) bool { return x == use }) {
			break
		}
	}
	if use == nil {
		return nil, refuse("the BackOff %s is made in another block", id.Name)
	}
	state, err := s.follow(p, def.Rhs[0], once, eval)
	if err != nil {
		return nil, err
	}
	p.drop = append(p.drop, def)
	counted := 1 // the use
	for _, stmt := range list[slices.Index(list, ast.Stmt(def))+1:] {
		if stmt == use {
			break
		}
		var here []*ast.Ident
		for _, mention := range s.uses(obj) {
			if stmt.Pos() <= mention.Pos() && mention.Pos() < stmt.End() {
				here = append(here, mention)
			}
		}
		if len(here) == 0 {
			continue
		}
		if err := s.step(p, state, stmt, obj, once, eval); err != nil {
			return nil, err
		}
		p.drop = append(p.drop, stmt)
		counted += len(here)
	}
	if counted != len(s.uses(obj)) {
		return nil, refuse("the BackOff %s is used for something else too", id.Name)
	}
	return state, nil
}

// step applies to state what stmt does with the variable obj.
func (s *site) step(p *plan, state *pause, stmt ast.Stmt, obj types.Object, once bool, eval func(ast.Expr) (*pause, error)) error {
	is := func(e ast.Expr) bool {
		id, ok := e.(*ast.Ident)
		return ok && s.pkg.TypesInfo.Uses[id] == obj
	}
	switch stmt := stmt.(type) {
	case *ast.ExprStmt: // b.Reset()
		if call, ok := stmt.X.(*ast.CallExpr); ok && len(call.Args) == 0 {
			if sel, ok := call.Fun.(*ast.SelectorExpr); ok && is(sel.X) && sel.Sel.Name == "Reset" {
				return nil
			}
		}
	case *ast.AssignStmt:
		if stmt.Tok != token.ASSIGN || len(stmt.Lhs) != len(stmt.Rhs) {
			break
		}
		if len(stmt.Lhs) == 1 && is(stmt.Lhs[0]) { // b = WithX(b)
			next, err := eval(&wrapped{Expr: stmt.Rhs[0], inner: obj, state: state})
			if err == nil {
				*state = *next
			}
			return err
		}
		for i, left := range stmt.Lhs { // b.Field = constant
			sel, ok := left.(*ast.SelectorExpr)
			if !ok || !is(sel.X) {
				return refuse("what is done with the BackOff %s is not understood", obj.Name())
			}
			value, err := s.constant(sel.Sel.Name, stmt.Rhs[i])
			if err != nil {
				return err
			}
			if _, known := state.fields[sel.Sel.Name]; !known {
				return refuse("the field %s has no counterpart", sel.Sel.Name)
			}
			state.fields[sel.Sel.Name] = value
		}
		return nil
	}
	return refuse("what is done with the BackOff %s is not understood", obj.Name())
}

// wrapped is an expression in which the variable inner stands for a pause that is known.
type wrapped struct {
	ast.Expr
	inner types.Object
	state *pause
}

// open returns e without its wrapping, and a function that evaluates parts of it.
func (s *site) open(p *plan, e ast.Expr, once bool, eval func(ast.Expr) (*pause, error)) (ast.Expr, func(ast.Expr) (*pause, error)) {
	w, ok := e.(*wrapped)
	if !ok {
		return ast.Unparen(e), func(e ast.Expr) (*pause, error) { return s.follow(p, e, once, eval) }
	}
	return ast.Unparen(w.Expr), func(e ast.Expr) (*pause, error) {
		e = ast.Unparen(e)
		if id, ok := e.(*ast.Ident); ok && s.pkg.TypesInfo.Uses[id] == w.inner {
			return w.state, nil
		}
		return eval(&wrapped{Expr: e, inner: w.inner, state: w.state})
	}
}

// ofLibrary returns the name of the library's function that call calls, or "".
func (s *site) ofLibrary(call *ast.CallExpr) string {
	if fn := s.callee(call); fn != nil && fn.Pkg() != nil && libraries[fn.Pkg().Path()] == s.lib {
		return calleeName(fn)
	}
	return ""
}

func newExponential() *pause {
	return &pause{kind: "exponential", fields: map[string]number{
		"InitialInterval": wait(500 * time.Millisecond), "Multiplier": {1.5, "1.5"}, "MaxInterval": wait(time.Minute),
		"RandomizationFactor": {0.5, "0.5"}, "MaxElapsedTime": wait(15 * time.Minute),
	}}
}

// backOff returns what e, an expression of type BackOff of version 4 or 5, is.
func (s *site) backOff(p *plan) func(ast.Expr) (*pause, error) {
	var eval func(ast.Expr) (*pause, error)
	eval = func(e ast.Expr) (*pause, error) {
		e, part := s.open(p, e, false, eval)
		if address, ok := e.(*ast.UnaryExpr); ok && address.Op == token.AND {
			if lit, ok := address.X.(*ast.CompositeLit); ok && len(lit.Elts) == 0 && s.names(e) &&
				strings.HasSuffix(types.TypeString(s.pkg.TypesInfo.TypeOf(lit), nil), ".ZeroBackOff") {
				return &pause{kind: "constant", fields: map[string]number{"Interval": {0, "0"}}}, nil
			}
		}
		call, ok := e.(*ast.CallExpr)
		if !ok {
			return nil, refuse("the BackOff is not made here")
		}
		switch name := s.ofLibrary(call); name {
		case "NewExponentialBackOff":
			state := newExponential()
			if s.lib == backoffV5 {
				delete(state.fields, "MaxElapsedTime")
			}
			for _, option := range call.Args {
				set, ok := ast.Unparen(option).(*ast.CallExpr)
				if !ok || len(set.Args) != 1 {
					return nil, refuse("an option of NewExponentialBackOff is not made here")
				}
				field := strings.TrimPrefix(s.ofLibrary(set), "With")
				if _, known := state.fields[field]; !known {
					return nil, refuse("the option %s has no counterpart", s.text(set.Fun))
				}
				value, err := s.constant(field, set.Args[0])
				if err != nil {
					return nil, err
				}
				state.fields[field] = value
			}
			return state, nil
		case "NewConstantBackOff":
			state := &pause{kind: "constant", fields: map[string]number{}}
			var err error
			if state.fields["Interval"], err = s.constant("Interval", call.Args[0]); err != nil {
				if !s.movable(call.Args[0]) {
					return nil, refuse("the interval is neither a constant nor a variable that stays as it is")
				}
				state.loose = call.Args[0]
			}
			return state, nil
		case "WithMaxRetries":
			state, err := part(call.Args[0])
			if err != nil {
				return nil, err
			}
			if state.retries != nil {
				return nil, refuse("the number of retries is set twice")
			}
			state.retries = call.Args[1]
			return state, nil
		case "WithContext":
			state, err := part(call.Args[0])
			if err != nil {
				return nil, err
			}
			if state.ctx != nil {
				return nil, refuse("the context is set twice")
			}
			if !s.movable(call.Args[1]) {
				return nil, refuse("the context is not a variable that stays as it is")
			}
			state.ctx = call.Args[1]
			return state, nil
		}
		return nil, refuse("the BackOff is made by %s", s.text(call.Fun))
	}
	return eval
}

// isBackground reports whether e is a call of context.Background or TODO.
func (s *site) isBackground(e ast.Expr) bool {
	call, ok := ast.Unparen(e).(*ast.CallExpr)
	if !ok {
		return false
	}
	fn := s.callee(call)
	return fn != nil && (fn.FullName() == "context.Background" || fn.FullName() == "context.TODO")
}

// schedule makes state the schedule of p.
func (s *site) schedule(p *plan, state *pause) error {
	if state.kind == "constant" {
		interval := state.fields["Interval"]
		switch {
		case state.loose != nil:
			p.texts["Delays"] = "[]time.Duration{" + s.text(state.loose) + "}"
			if !s.free("time", "time") {
				return refuse("the name time does not mean the package here")
			}
			p.remark("the interval must not be negative")
		case interval.value < 0:
			return refuse("the interval is negative")
		case interval.value == 0:
			if !s.free("time", "time") {
				return refuse("the name time does not mean the package here")
			}
			p.texts["Delays"] = "[]time.Duration{0}"
		default:
			p.texts["Mode"], p.texts["Base"] = ours+".Fixed", interval.text
		}
		return nil
	}
	first, most, ratio := state.fields["InitialInterval"], state.fields["MaxInterval"], state.fields["RandomizationFactor"]
	factor := state.fields["Multiplier"]
	switch {
	case !s.free("time", "time"):
		return refuse("the name time does not mean the package here")
	case first.value <= 0 || most.value < first.value:
		return refuse("InitialInterval is not between 1ns and MaxInterval")
	case factor.value < 1:
		return refuse("Multiplier is below 1")
	case ratio.value < 0 || ratio.value > 1:
		return refuse("RandomizationFactor is outside [0,1]")
	}
	p.backoff = retry.Backoff{Base: first.duration(), Factor: factor.value, Cap: most.duration()}
	p.texts["Base"], p.texts["Cap"] = first.text, most.text
	if factor.value != 2 {
		p.texts["Factor"] = factor.text
	}
	if ratio.value > 0 {
		p.backoff.Jitter, p.backoff.JitterRatio = retry.RatioJitter, ratio.value
		p.texts["Jitter"], p.texts["JitterRatio"] = ours+".RatioJitter", ratio.text
	}
	interval, at := first.duration(), 1
	return p.fits(func(n int) time.Duration {
		for ; at < n; at++ { // as their incrementCurrentInterval
			if float64(interval) >= float64(most.duration())/factor.value {
				interval = most.duration()
			} else {
				interval = time.Duration(float64(interval) * factor.value)
			}
		}
		return interval
	}, ratio.value)
}

func (s *site) backoffV4(p *plan) error {
	if s.op == nil {
		return refuse("a Ticker or a Timer of one's own has no counterpart")
	}
	if err := s.knownMarks(); err != nil {
		return err
	}
	p.value = strings.HasSuffix(s.name, "WithData")
	eval := s.backOff(p)
	state, err := s.follow(p, s.call.Args[1], false, eval)
	if err != nil {
		return err
	}
	p.attempts, p.classify = ours+".Unlimited", s.canceled()
	if state.retries != nil {
		if err := s.attemptsFor(p, state.retries, 1); err != nil {
			return err
		}
	}
	if err := s.schedule(p, state); err != nil {
		return err
	}
	if limit := state.fields["MaxElapsedTime"]; limit.value < 0 {
		return refuse("MaxElapsedTime is negative")
	} else if limit.value > 0 {
		p.ttl = limit.text
	}
	s.context(p, state.ctx)
	if len(s.call.Args) > 2 {
		return s.notify(p, s.call.Args[2])
	}
	return nil
}

// context makes ctx, nil for none, the context of the run.
func (s *site) context(p *plan, ctx ast.Expr) {
	if ctx != nil && !s.isBackground(ctx) {
		p.ctx = ctx
		p.remark("no attempt is made if the context is done already")
		return
	}
	for _, field := range s.outer(s.call).Type.Params.List {
		if types.TypeString(s.pkg.TypesInfo.TypeOf(field.Type), nil) == "context.Context" && ctx == nil && len(field.Names) == 1 &&
			field.Names[0].Name != "_" {
			p.remark("pass %s in place of context.Background() to end the waits with it", field.Names[0].Name)
		}
	}
}

// notify makes f, called as theirs with each error that a wait follows, the observer.
func (s *site) notify(p *plan, f ast.Expr) error {
	return s.observer(p, f, "%s.Decision.Status == "+ours+".Waiting", "%s.Attempt.Err", "%s.Decision.Delay")
}

// observer sets p.observe to call f with the arguments if the condition holds; all have the event for %s.
func (s *site) observer(p *plan, f ast.Expr, condition string, args ...string) error {
	f = ast.Unparen(f)
	if s.pkg.TypesInfo.Types[f].IsNil() {
		return nil
	}
	context, event := s.contextName(), "e"
	fill := func(text string) string { return strings.ReplaceAll(text, "%s", event) }
	var body string
	if lit, ok := f.(*ast.FuncLit); ok {
		names := map[string]bool{}
		for n := range ast.Preorder(lit) {
			if id, ok := n.(*ast.Ident); ok {
				names[id.Name] = true
			}
		}
		for names[event] {
			event += "vent"
		}
		i := 0
		var left, right []string
		for _, field := range lit.Type.Params.List {
			for _, name := range field.Names {
				if obj := s.pkg.TypesInfo.Defs[name]; name.Name != "_" && obj != nil && len(s.uses(obj)) > 0 {
					left, right = append(left, name.Name), append(right, fill(args[i]))
				}
				i++
			}
		}
		if len(left) > 0 {
			body = strings.Join(left, ", ") + " := " + strings.Join(right, ", ") + "\n"
		}
		body += strings.TrimSpace(string(s.src[s.offset(lit.Body.Lbrace)+1 : s.offset(lit.Body.Rbrace)]))
	} else {
		if !s.settled(f) {
			return refuse("the function that is notified is not a literal or a function that stays as it is")
		}
		body = s.text(f) + "(" + fill(strings.Join(args, ", ")) + ")"
	}
	if !s.free(context, "context") {
		return refuse("the name context does not mean the package here")
	}
	p.observe = "func(_ " + context + ".Context, " + event + " " + ours + ".Event) {\nif " + fill(condition) + " {\n" + body + "\n}\n}"
	return nil
}

func (s *site) backoffV5(p *plan) error {
	if s.op == nil {
		return refuse("a Ticker has no counterpart")
	}
	if err := s.knownMarks(); err != nil {
		return err
	}
	p.value, p.attempts, p.classify = true, ours+".Unlimited", s.canceled()
	state := newExponential()
	limit := state.fields["MaxElapsedTime"]
	var notify ast.Expr
	if s.call.Ellipsis.IsValid() {
		return refuse("its options are a variable")
	}
	seen := map[string]bool{}
	for _, option := range s.call.Args[2:] {
		set, ok := ast.Unparen(option).(*ast.CallExpr)
		if !ok || len(set.Args) != 1 || seen[s.ofLibrary(set)] {
			return refuse("an option is not made here, or twice")
		}
		seen[s.ofLibrary(set)] = true
		var err error
		switch arg := set.Args[0]; s.ofLibrary(set) {
		case "WithBackOff":
			state, err = s.follow(p, arg, false, s.backOff(p))
		case "WithMaxTries":
			if value, _ := s.constant("MaxTries", arg); value.text != "" && value.value == 0 {
				continue
			}
			err = s.attemptsFor(p, arg, 0)
		case "WithMaxElapsedTime":
			limit, err = s.constant("MaxElapsedTime", arg)
		case "WithNotify":
			notify = arg
		default:
			err = refuse("the option %s has no counterpart", s.text(set.Fun))
		}
		if err != nil {
			return err
		}
	}
	if err := s.schedule(p, state); err != nil {
		return err
	}
	if limit.value > 0 {
		p.ttl = limit.text
	}
	ctx := s.call.Args[0]
	if !s.movable(ctx) {
		return refuse("the context is not a variable that stays as it is")
	}
	s.context(p, ctx)
	if s.isBackground(ctx) {
		p.ctx = nil
	}
	if notify != nil {
		return s.notify(p, notify)
	}
	return nil
}
