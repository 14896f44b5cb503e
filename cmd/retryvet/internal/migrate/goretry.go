package migrate

import (
	"fmt"
	"go/ast"
	"go/types"

	"github.com/retrygo/retry"
)

var goRetry = &library{
	name:  "go-retry",
	marks: map[string]string{"RetryableError": "Transient"},
	calls: map[string]int{"Do": 2, "DoValue": 2, "Constant": 2, "Exponential": 2, "Fibonacci": -1},
}

func init() { goRetry.plan, goRetry.pause = (*site).goRetry, (*site).goRetryBackoff }

func (s *site) goRetry(p *plan) error {
	if s.op == nil {
		return refuse("Fibonacci has no counterpart but a list of delays")
	}
	if s.lit == nil && s.strange(s.op) {
		return refuse("the work is not a literal, so that it is not known which errors it marks")
	}
	if ctx := s.call.Args[0]; !s.isBackground(ctx) {
		p.ctx = ctx
	}
	p.classify = ours + ".Otherwise(" + ours + ".Terminal)"
	var state *pause
	var err error
	switch s.name {
	case "Constant":
		state = &pause{kind: "constant", set: map[string]ast.Expr{"delay": s.call.Args[1]}}
	case "Exponential":
		state = &pause{kind: "exponential", set: map[string]ast.Expr{"delay": s.call.Args[1]}}
	default:
		if state, err = s.follow(p, s.call.Args[1]); err != nil {
			return err
		}
	}
	if s.name == "DoValue" {
		p.value = true
		p.remark("on an error, the value is that of the last attempt")
	}
	s.attempts(p, state.set["WithMaxRetries"], 1)
	base := s.number(p, "the delay", state.set["delay"], number{})
	limit := s.number(p, "the cap", state.set["WithCappedDuration"], number{})
	if !base.loose && base.value <= 0 {
		return refuse("the delay is not positive")
	}
	percent := s.number(p, "the percentage", state.set["WithJitterPercent"], number{})
	ratio := percent.value / 100
	if ratio > 1 {
		return refuse("the percentage is above 100")
	}
	if ratio > 0 {
		p.backoff.Jitter, p.backoff.JitterRatio = retry.RatioJitter, ratio
		p.texts["Jitter"], p.texts["JitterRatio"] = ours+".RatioJitter", fmt.Sprint(ratio)
		p.remark("jitter is no longer in whole percents")
	}
	for i, wrapper := range state.order {
		if wrapper != "WithCappedDuration" && i < len(state.order)-1 {
			return refuse("a wrapper of the jitter would change it")
		}
		if wrapper == "WithFullJitter" {
			p.backoff.Jitter, p.texts["Jitter"] = retry.FullJitter, ours+".FullJitter"
		}
	}
	factor := number{value: 2}
	if state.kind == "constant" {
		factor.value = 1
	}
	p.grow(base, factor, limit, ratio)
	return nil
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

// goRetryBackoff returns the state of e, an expression of type Backoff that is not a variable.
func (s *site) goRetryBackoff(p *plan, e ast.Expr) (*pause, error) {
	call, ok := e.(*ast.CallExpr)
	if !ok {
		return nil, refuse("the Backoff is not made here")
	}
	name := s.ofLibrary(call)
	switch name {
	case "NewConstant":
		return &pause{kind: "constant", set: map[string]ast.Expr{"delay": call.Args[0]}}, nil
	case "NewExponential":
		return &pause{kind: "exponential", set: map[string]ast.Expr{"delay": call.Args[0]}}, nil
	case "WithMaxRetries":
		return s.wrap(p, call.Args[1], name, call.Args[0])
	case "WithCappedDuration", "WithJitterPercent", "WithFullJitter":
		state, err := s.wrap(p, call.Args[len(call.Args)-1], name, call.Args[0])
		if err == nil {
			state.order = append(state.order, name)
		}
		return state, err
	case "WithMaxDuration":
		return nil, refuse("WithMaxDuration shortens the last wait, and a TTL does not")
	case "WithJitter":
		return nil, refuse("jitter of a fixed width has no counterpart")
	}
	return nil, refuse("the Backoff is made by %s", s.text(call.Fun))
}
