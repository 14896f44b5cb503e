package migrate

import (
	"go/ast"
	"go/types"
	"slices"
	"strings"
	"time"

	"github.com/retrygo/retry"
)

var backoffV4 = &library{
	name:   "backoff/v4",
	marks:  map[string]string{"Permanent": "Permanent", "PermanentError": ""},
	fields: []string{"InitialInterval", "Multiplier", "MaxInterval", "RandomizationFactor", "MaxElapsedTime"},
	calls: map[string]int{"Retry": 0, "RetryWithData": 0, "RetryNotify": 0, "RetryNotifyWithData": 0,
		"RetryNotifyWithTimer": -1, "RetryNotifyWithTimerAndData": -1, "NewTicker": -1, "NewTickerWithTimer": -1},
}

var backoffV5 = &library{
	name:   "backoff/v5",
	marks:  map[string]string{"Permanent": "Permanent", "PermanentError": "", "RetryAfter": "", "RetryAfterError": ""},
	fields: []string{"InitialInterval", "Multiplier", "MaxInterval", "RandomizationFactor"},
	calls:  map[string]int{"Retry": 1, "NewTicker": -1},
}

func init() {
	backoffV4.plan, backoffV5.plan = (*site).backoffV4, (*site).backoffV5
	backoffV4.pause, backoffV5.pause = (*site).backOff, (*site).backOff
}

func (s *site) backoffV4(p *plan) error {
	if s.op == nil {
		return refuse("a custom Ticker or Timer has no counterpart")
	}
	p.value = strings.HasSuffix(s.name, "WithData")
	state, err := s.follow(p, s.call.Args[1])
	if err != nil {
		return err
	}
	s.intervals(p, state)
	if state.kind == "exponential" {
		s.limit(p, state.set["MaxElapsedTime"])
	}
	s.context(p, state.set["context"])
	if len(s.call.Args) > 2 {
		s.notify(p, s.call.Args[2])
	}
	return nil
}

func (s *site) backoffV5(p *plan) error {
	if s.op == nil {
		return refuse("a Ticker has no counterpart")
	}
	if s.call.Ellipsis.IsValid() {
		return refuse("its options are a variable")
	}
	p.value = true
	state := &pause{kind: "exponential"}
	set := map[string]ast.Expr{}
	err := s.options(s.call.Args[2:], func(name string, arg ast.Expr) (err error) {
		switch name {
		case "WithBackOff":
			state, err = s.follow(p, arg)
		case "WithMaxTries", "WithMaxElapsedTime", "WithNotify":
			set[name] = arg
		default:
			err = refuse("the option %s has no counterpart", name)
		}
		return err
	})
	if err != nil {
		return err
	}
	s.attempts(p, set["WithMaxTries"], 0)
	s.intervals(p, state)
	s.limit(p, set["WithMaxElapsedTime"])
	s.context(p, s.call.Args[0])
	s.notify(p, set["WithNotify"])
	return nil
}

// backOff returns the state of e, an expression of type BackOff that is not a variable.
func (s *site) backOff(p *plan, e ast.Expr) (*pause, error) {
	if address, ok := e.(*ast.UnaryExpr); ok {
		if lit, ok := address.X.(*ast.CompositeLit); ok && len(lit.Elts) == 0 && s.names(e) &&
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
		return state, s.options(call.Args, func(name string, arg ast.Expr) error {
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
	return nil, refuse("the BackOff is made by %s", s.text(call.Fun))
}

// intervals makes the number of attempts and the schedule.
func (s *site) intervals(p *plan, state *pause) {
	s.attempts(p, state.set["number of retries"], 1)
	get := func(name string, unset number) number { return s.number(p, name, state.set[name], unset) }
	if state.kind == "constant" {
		interval := get("Interval", number{text: "0"})
		switch {
		case interval.value < 0:
			p.refuse("the interval is negative")
		case interval.value > 0:
			p.texts["Mode"], p.texts["Base"] = ours+".Fixed", interval.text
			return
		case interval.loose:
			p.remark("the interval must not be negative")
		}
		p.texts["Delays"] = "[]time.Duration{" + interval.text + "}"
		return
	}
	first, limit := get("InitialInterval", wait(500*time.Millisecond)), get("MaxInterval", wait(time.Minute))
	factor := get("Multiplier", number{value: 1.5, text: "1.5"})
	ratio := get("RandomizationFactor", number{value: 0.5, text: "0.5"})
	switch {
	case !first.loose && first.value <= 0 || !limit.loose && limit.value <= 0:
		p.refuse("InitialInterval or MaxInterval is not positive")
	case factor.value < 1:
		p.refuse("Multiplier is below 1")
	case ratio.value < 0 || ratio.value > 1:
		p.refuse("RandomizationFactor is outside [0,1]")
	}
	if ratio.value > 0 {
		p.backoff.Jitter, p.backoff.JitterRatio = retry.RatioJitter, ratio.value
		p.texts["Jitter"], p.texts["JitterRatio"] = ours+".RatioJitter", ratio.text
	}
	p.grow(first, factor, limit, ratio.value)
}

// limit sets the TTL to e, the MaxElapsedTime.
func (s *site) limit(p *plan, e ast.Expr) {
	limit := s.number(p, "MaxElapsedTime", e, wait(15*time.Minute))
	switch {
	case limit.value < 0:
		p.refuse("MaxElapsedTime is negative")
	case limit.loose:
		p.remark("%s must not be negative", limit.text)
		p.ttl = limit.text
	case limit.value > 0:
		p.ttl = limit.text
	}
}

// context sets the context of the run to ctx, which is nil for none.
func (s *site) context(p *plan, ctx ast.Expr) {
	if ctx != nil && !s.movable(ctx) {
		p.refuse("the context is not a variable that keeps its value")
	}
	if ctx != nil && !s.isBackground(ctx) {
		p.ctx = ctx
		p.remark("no attempt is made if the context is done already")
		return
	}
	_, signature := s.outer(s.call)
	for _, field := range signature.Params.List {
		if types.TypeString(s.pkg.TypesInfo.TypeOf(field.Type), nil) == "context.Context" && ctx == nil && len(field.Names) == 1 &&
			field.Names[0].Name != "_" {
			p.remark("pass %s in place of context.Background() to end the waits with it", field.Names[0].Name)
		}
	}
}

// notify sets the observer to f, which is called as before with each error that a wait follows.
func (s *site) notify(p *plan, f ast.Expr) {
	s.observer(p, f, "%s.Decision.Status == "+ours+".Waiting", "%s.Attempt.Err", "%s.Decision.Delay")
}
