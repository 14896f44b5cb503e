package migrate

import (
	"fmt"
	"go/ast"
	"go/constant"
	"go/types"
	"maps"
	"math"
	"slices"
	"strings"
	"time"

	"github.com/retrygo/retry"
)

var backoffV4 = &library{
	name:   "backoff/v4",
	marks:  []string{"Permanent", "PermanentError"},
	fields: []string{"InitialInterval", "Multiplier", "MaxInterval", "RandomizationFactor", "MaxElapsedTime"},
	calls: map[string]int{"Retry": 0, "RetryWithData": 0, "RetryNotify": 0, "RetryNotifyWithData": 0,
		"RetryNotifyWithTimer": -1, "RetryNotifyWithTimerAndData": -1, "NewTicker": -1, "NewTickerWithTimer": -1},
}

var backoffV5 = &library{
	name:   "backoff/v5",
	marks:  []string{"Permanent", "PermanentError", "RetryAfter", "RetryAfterError"},
	fields: []string{"InitialInterval", "Multiplier", "MaxInterval", "RandomizationFactor"},
	calls:  map[string]int{"Retry": 1, "NewTicker": -1},
}

func init() { backoffV4.plan, backoffV5.plan = (*site).backoffV4, (*site).backoffV5 }

func (s *site) backoffV4(p *plan) error {
	p.value = strings.HasSuffix(s.name, "WithData")
	state, err := s.follow(p, s.call.Args[1])
	if err != nil {
		return err
	}
	if err := s.schedule(p, state, state.kind == "exponential"); err != nil {
		return err
	}
	if len(s.call.Args) > 2 {
		return s.notify(p, s.call.Args[2])
	}
	return nil
}

func (s *site) backoffV5(p *plan) error {
	p.value = true
	state := &pause{kind: "exponential", set: map[string]ast.Expr{}}
	set := map[string]ast.Expr{"context": s.call.Args[0]}
	err := s.options(s.call, 2, func(name string, arg ast.Expr) (err error) {
		switch name {
		case "WithBackOff":
			state, err = s.follow(p, arg)
		case "WithMaxTries", "WithMaxElapsedTime", "WithNotify":
			set[strings.TrimPrefix(name, "With")] = arg
		default:
			err = refuse("the option %s has no counterpart", name)
		}
		return err
	})
	if err != nil {
		return err
	}
	for name, x := range set {
		state.set[name] = x
	}
	if err := s.schedule(p, state, true); err != nil {
		return err
	}
	return s.notify(p, set["Notify"])
}

// schedule makes the number of attempts, the waits, the context, and, if elapsed is set, the limit on the time.
func (s *site) schedule(p *plan, state *pause, elapsed bool) error {
	if ctx := state.set["context"]; ctx != nil && !s.isBackground(ctx) {
		if p.ctx = ctx; !s.movable(ctx) {
			return refuse("the context is not a variable that keeps its value")
		}
	}
	if err := s.attempts(p, state.set["MaxTries"], state.set["number of retries"]); err != nil {
		return err
	}
	settings := map[string]float64{"InitialInterval": 500e6, "MaxInterval": 60e9, "Multiplier": 1.5, "RandomizationFactor": 0.5, "MaxElapsedTime": 900e9}
	for name := range settings {
		if e := state.set[name]; e != nil {
			value := s.pkg.TypesInfo.Types[e].Value
			if value == nil {
				return refuse("%s is not a constant: 0 has another meaning here", name)
			}
			settings[name], _ = constant.Float64Val(constant.ToFloat(value))
		}
	}
	first, most, limit := time.Duration(settings["InitialInterval"]), time.Duration(settings["MaxInterval"]), time.Duration(settings["MaxElapsedTime"])
	factor, ratio := settings["Multiplier"], settings["RandomizationFactor"]
	switch {
	case first <= 0 || most < first:
		return refuse("InitialInterval is not positive, or above MaxInterval")
	case factor < 1 || ratio < 0 || ratio > 1 || limit < 0:
		return refuse("Multiplier, RandomizationFactor or MaxElapsedTime is out of its range")
	case elapsed && limit > 0:
		p.ttl = source(limit)
	}
	if state.kind == "constant" {
		return s.constant(p, state.set["Interval"])
	}
	b := retry.Backoff{Mode: retry.Exponential, Base: first, Factor: factor, Cap: most}
	if factor == 1 {
		b.Mode, b.Factor = retry.Fixed, 0
	}
	theirs := float64(first)
	for n := 1; n < 200; n++ {
		if off := b.Delay(n) - time.Duration(theirs); off.Abs() > time.Microsecond {
			return refuse("the waits would differ by %v", off)
		}
		theirs = math.Trunc(min(theirs*factor, float64(most))) // rounded at each step
	}
	if ratio > 0 {
		b.Jitter, b.JitterRatio = retry.RatioJitter, ratio
	}
	p.texts = texts(b)
	return nil
}

// attempts sets MaxAttempts.
func (s *site) attempts(p *plan, tries, retries ast.Expr) error {
	e := tries
	if e == nil {
		e = retries
	}
	if e == nil {
		return nil
	}
	if value := s.pkg.TypesInfo.Types[e].Value; value != nil {
		n, ok := constant.Int64Val(value)
		switch {
		case !ok || n < 0 || n > 1<<31-2:
			return refuse("the number of attempts is negative or too large")
		case tries == nil:
			p.attempts = fmt.Sprint(n + 1)
		case n > 0:
			p.attempts = fmt.Sprint(n)
		}
		return nil
	}
	if tries != nil {
		return refuse("the number of attempts is not a constant: 0 means no limit there, and 8 here")
	}
	if !s.movable(e) {
		return refuse("the number of retries is neither a constant nor a variable that keeps its value")
	}
	if call, ok := ast.Unparen(e).(*ast.CallExpr); ok && len(call.Args) == 1 && s.pkg.TypesInfo.Types[call.Fun].IsType() {
		e = call.Args[0]
	}
	if t, ok := s.pkg.TypesInfo.TypeOf(e).Underlying().(*types.Basic); !ok || t.Info()&types.IsUnsigned == 0 {
		return refuse("the number of retries may be negative, which means no limit there")
	}
	p.attempts = "int(" + s.text(e) + ") + 1"
	return nil
}

// constant sets the delay to e, or to none if e is nil.
func (s *site) constant(p *plan, e ast.Expr) error {
	if e == nil {
		p.texts["Delays"] = "[]time.Duration{0}"
		return nil
	}
	value := s.pkg.TypesInfo.Types[e].Value
	if value == nil {
		p.texts["Delays"] = "[]time.Duration{max(0, " + s.text(e) + ")}"
		if !s.movable(e) {
			return refuse("the interval is neither a constant nor a variable that keeps its value")
		}
		return nil
	}
	n, _ := constant.Int64Val(constant.ToInt(value))
	p.texts = texts(retry.Backoff{Mode: retry.Fixed, Base: time.Duration(n)})
	switch {
	case n < 0:
		return refuse("the interval is negative")
	case n == 0:
		p.texts = map[string]string{"Delays": "[]time.Duration{0}"}
	case s.sees(e):
		p.texts["Base"] = s.text(e)
	}
	return nil
}

// backOff returns the state of e, an expression of type BackOff that is not a variable.
func (s *site) backOff(p *plan, e ast.Expr) (*pause, error) {
	if address, ok := e.(*ast.UnaryExpr); ok {
		if lit, ok := address.X.(*ast.CompositeLit); ok && len(lit.Elts) == 0 && typeOf(s.file, e, s.lib) &&
			strings.HasSuffix(types.TypeString(s.pkg.TypesInfo.TypeOf(lit), nil), ".ZeroBackOff") {
			return &pause{kind: "constant", set: map[string]ast.Expr{}}, nil
		}
	}
	call, ok := e.(*ast.CallExpr)
	if !ok {
		return nil, refuse("the BackOff is not made here")
	}
	state := &pause{set: map[string]ast.Expr{}}
	switch name := s.ofLibrary(call); name {
	case "NewExponentialBackOff":
		state.kind = "exponential"
		return state, s.options(call, 0, func(name string, arg ast.Expr) error {
			field := strings.TrimPrefix(name, "With")
			if !slices.Contains(s.lib.fields, field) {
				return refuse("the option %s has no counterpart", name)
			}
			state.set[field] = arg
			return nil
		})
	case "NewConstantBackOff":
		state.kind, state.set["Interval"] = "constant", call.Args[0]
		return state, nil
	case "WithMaxRetries":
		return s.wrap(p, call.Args[0], "number of retries", call.Args[1])
	case "WithContext":
		return s.wrap(p, call.Args[0], "context", call.Args[1])
	}
	return s.made(p, call)
}

// made returns the state of a BackOff that a function without parameters, in the same file, makes and returns.
func (s *site) made(p *plan, call *ast.CallExpr) (*pause, error) {
	var decl *ast.FuncDecl
	if fn := s.callee(call); fn != nil {
		decl = s.declaration(fn.FullName())
	}
	if decl == nil || len(call.Args) > 0 {
		return nil, refuse("the BackOff is made by %s", s.text(call.Fun))
	}
	r, ok := decl.Body.List[len(decl.Body.List)-1].(*ast.ReturnStmt)
	if !ok || len(r.Results) != 1 {
		return nil, refuse("the BackOff is made by %s", s.text(call.Fun))
	}
	inner := plan{known: p.known, drop: map[types.Object][]ast.Node{}} // what makes it stays
	state, err := s.follow(&inner, r.Results[0])
	makes := slices.Concat(slices.Collect(maps.Values(inner.drop))...)
	for _, stmt := range decl.Body.List[:len(decl.Body.List)-1] {
		if err == nil && !slices.ContainsFunc(makes, func(n ast.Node) bool { return within(n, stmt) }) {
			return nil, refuse("%s does more than make a BackOff", s.text(call.Fun))
		}
	}
	return state, err
}

// notify sets the observer to f, which is called as before with each error that a wait follows.
func (s *site) notify(p *plan, f ast.Expr) error {
	if f == nil || s.pkg.TypesInfo.Types[f].IsNil() {
		return nil
	}
	f = ast.Unparen(f)
	event, args := "e", []string{"e.Attempt.Err", "e.Decision.Delay"}
	for n := range ast.Preorder(f) {
		if id, ok := n.(*ast.Ident); ok && id.Name == event {
			return refuse("the notify function has a variable e")
		}
	}
	var body string
	if lit, ok := f.(*ast.FuncLit); ok {
		i := 0
		var left, right []string
		for name := range paramNames(lit.Type.Params) {
			if obj := s.pkg.TypesInfo.Defs[name]; name.Name != "_" && obj != nil && len(s.uses(obj)) > 0 {
				left, right = append(left, name.Name), append(right, args[i])
			}
			i++
		}
		if len(left) > 0 {
			body = strings.Join(left, ", ") + " := " + strings.Join(right, ", ") + "\n"
		}
		body += strings.TrimSpace(string(s.src[s.offset(lit.Body.Lbrace)+1 : s.offset(lit.Body.Rbrace)]))
	} else {
		if !s.settled(f) {
			return refuse("the notify function is not a literal or a function that keeps its value")
		}
		body = s.text(f) + "(" + strings.Join(args, ", ") + ")"
	}
	p.observe = "func(_ " + s.contextName() + ".Context, e " + ours + ".Event) {\nif e.Decision.Status == " + ours + ".Waiting {\n" + body + "\n}\n}"
	return nil
}
