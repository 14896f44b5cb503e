package migrate

import (
	"go/ast"
	"go/types"
	"slices"
	"time"

	"github.com/retrygo/retry"
)

var goRetry = &library{
	name:  "go-retry",
	marks: []string{"RetryableError"},
	marky: map[string]string{"RetryableError": "Transient"},
	calls: map[string]int{"Do": 2, "DoValue": 2, "Constant": 2, "Exponential": 2, "Fibonacci": -1},
}

func init() { goRetry.plan = (*site).goRetry }

// longest as a cap is none: go-retry's exponential grows for ever.
const longest = "1<<63 - 1"

func (s *site) goRetry(p *plan) error {
	if s.op == nil {
		return refuse("Fibonacci has no counterpart but a list of delays")
	}
	if s.lit == nil && s.strange(s.op) {
		return refuse("the work is not a literal, so that it is not known which errors it marks")
	}
	if err := s.knownMarks(); err != nil {
		return err
	}
	ctx := s.call.Args[0]
	if !s.isBackground(ctx) {
		p.ctx = ctx
	}
	p.attempts, p.classify = ours+".Unlimited", ours+".Otherwise("+ours+".Terminal)"
	state := &pause{kind: map[string]string{"Constant": "constant", "Exponential": "exponential"}[s.name]}
	var err error
	if state.kind != "" {
		state.fields = map[string]number{}
		state.fields["Base"], err = s.constant("the delay", s.call.Args[1])
	} else {
		state, err = s.follow(p, s.call.Args[1], true, s.goRetryBackoff(p))
	}
	if err != nil {
		return err
	}
	if s.name == "DoValue" {
		p.value = true
		p.remark("beside an error, the value is that of the last attempt")
	}
	if state.retries != nil {
		if err := s.attemptsFor(p, state.retries, 1); err != nil {
			return err
		}
	}
	base, limit := state.fields["Base"], state.fields["Cap"]
	if base.value <= 0 {
		return refuse("the delay is not positive")
	}
	p.texts["Base"], p.backoff.Base = base.text, base.duration()
	if state.kind == "constant" {
		p.texts["Mode"], p.backoff.Mode = ours+".Fixed", retry.Fixed
	}
	switch {
	case limit.text != "" && limit.value < base.value:
		return refuse("the cap is below the delay")
	case limit.text != "":
		p.texts["Cap"], p.backoff.Cap = limit.text, limit.duration()
	case state.kind == "constant" && len(state.order) == 0:
	case state.kind != "constant" && p.within(time.Hour):
	default:
		p.texts["Cap"], p.backoff.Cap = longest, 1<<63-1
	}
	ratio := 0.0
	if percent := state.fields["JitterPercent"]; percent.value > 0 {
		ratio = min(percent.value, 100) / 100
		p.backoff.Jitter, p.backoff.JitterRatio = retry.RatioJitter, ratio
		p.texts["Jitter"], p.texts["JitterRatio"] = ours+".RatioJitter", percent.text+" / 100.0"
		if percent.value > 100 {
			return refuse("the percentage is above 100")
		}
		p.remark("jitter is no longer in whole percents")
	}
	if slices.Contains(state.order, "WithFullJitter") {
		p.backoff.Jitter, p.texts["Jitter"] = retry.FullJitter, ours+".FullJitter"
	}
	if jitter := slices.IndexFunc(state.order, func(w string) bool { return w != "WithCappedDuration" }); jitter >= 0 {
		if len(state.order)-jitter > 1 {
			return refuse("what is put around the jitter would change it")
		}
	}
	return p.fits(func(n int) time.Duration {
		d := base.duration()
		if state.kind != "constant" {
			if n > 63 || d > (1<<63-1)>>(n-1) {
				d = 1<<63 - 1
			} else {
				d <<= n - 1
			}
		}
		if limit.text != "" {
			d = min(d, limit.duration())
		}
		return d
	}, ratio)
}

// within reports whether no wait without a cap, jitter included, is above limit.
func (p *plan) within(limit time.Duration) bool {
	if p.retries < 0 || p.retries > 40 {
		return false
	}
	b := p.backoff
	b.Cap = 1<<63 - 1
	return p.retries == 0 || b.Delay(p.retries) <= limit/2
}

// strange reports whether op may be a function whose marks are not known. Functions of this module are known.
func (s *site) strange(op ast.Expr) bool {
	var id *ast.Ident
	switch op := ast.Unparen(op).(type) {
	case *ast.Ident:
		id = op
	case *ast.SelectorExpr:
		id = op.Sel
	default:
		return true
	}
	_, isFunc := s.pkg.TypesInfo.Uses[id].(*types.Func)
	return !isFunc
}

// goRetryBackoff returns what e, an expression of type Backoff, is.
func (s *site) goRetryBackoff(p *plan) func(ast.Expr) (*pause, error) {
	var eval func(ast.Expr) (*pause, error)
	eval = func(e ast.Expr) (*pause, error) {
		e, part := s.open(p, e, true, eval)
		call, ok := e.(*ast.CallExpr)
		if !ok {
			return nil, refuse("the Backoff is not made here")
		}
		name := s.ofLibrary(call)
		switch name {
		case "NewConstant", "NewExponential":
			base, err := s.constant("the delay", call.Args[0])
			kind := "exponential"
			if name == "NewConstant" {
				kind = "constant"
			}
			return &pause{kind: kind, fields: map[string]number{"Base": base}}, err
		case "WithMaxRetries", "WithCappedDuration", "WithJitterPercent":
			state, err := part(call.Args[1])
			if err != nil {
				return nil, err
			}
			field := map[string]string{"WithCappedDuration": "Cap", "WithJitterPercent": "JitterPercent"}[name]
			switch {
			case field == "" && state.retries != nil || field != "" && state.fields[field].text != "":
				return nil, refuse("%s is there twice", name)
			case field == "":
				state.retries = call.Args[0]
				return state, nil
			}
			state.order = append(state.order, name)
			state.fields[field], err = s.constant(field, call.Args[0])
			return state, err
		case "WithFullJitter":
			state, err := part(call.Args[0])
			if err != nil {
				return nil, err
			}
			state.order = append(state.order, name)
			return state, nil
		case "WithMaxDuration":
			return nil, refuse("WithMaxDuration shortens the last wait, and a TTL does not")
		case "WithJitter":
			return nil, refuse("jitter of a fixed width has no counterpart")
		}
		return nil, refuse("the Backoff is made by %s", s.text(call.Fun))
	}
	return eval
}
