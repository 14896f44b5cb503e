package migrate

import (
	"go/ast"
	"go/constant"
	"slices"
	"time"

	"github.com/retrygo/retry"
)

var retryGoV4 = &library{
	name:  "retry-go/v4",
	marks: map[string]string{"Unrecoverable": "Permanent", "IsRecoverable": ""},
	calls: map[string]int{"Do": 0, "DoWithData": 0},
}

var retryGoV5 = &library{
	name:  "retry-go/v5",
	marks: map[string]string{"Unrecoverable": "Permanent", "IsRecoverable": ""},
	calls: map[string]int{"Retrier.Do": 0, "RetrierWithData.Do": 0},
}

func init() { retryGoV4.plan, retryGoV5.plan = (*site).retryGo, (*site).retryGo }

func (s *site) retryGo(p *plan) error {
	made := s.call
	if s.lib == retryGoV5 {
		sel, ok := ast.Unparen(s.call.Fun).(*ast.SelectorExpr)
		if ok {
			made, ok = ast.Unparen(sel.X).(*ast.CallExpr)
		}
		if !ok || s.ofLibrary(made) != "New" && s.ofLibrary(made) != "NewWithData" {
			return refuse("the Retrier is not made in the same expression")
		}
	}
	if made.Ellipsis.IsValid() {
		return refuse("its options are a variable")
	}
	args := made.Args
	if s.lib == retryGoV4 {
		args = args[1:]
	}
	p.value = s.name == "DoWithData" || s.name == "RetrierWithData.Do"
	p.attempts, p.retries = "10", 9
	kind, lastOnly := "", false
	set := map[string]ast.Expr{}
	err := s.options(args, func(name string, arg ast.Expr) error {
		switch name {
		case "Attempts":
			s.attempts(p, arg, 0)
		case "UntilSucceeded":
			p.attempts, p.retries = ours+".Unlimited", -1
		case "Delay", "MaxDelay", "OnRetry", "RetryIf":
			set[name] = arg
		case "Context":
			if !s.isBackground(arg) {
				p.ctx = arg
			}
		case "LastErrorOnly":
			value := s.pkg.TypesInfo.Types[arg].Value
			if value == nil {
				return refuse("LastErrorOnly is not a constant")
			}
			lastOnly = constant.BoolVal(value)
		case "DelayType":
			kind = s.function(arg)
			if !slices.Contains([]string{"FixedDelay", "BackOffDelay", "FullJitterBackoffDelay"}, kind) {
				return refuse("the delay is a function other than FixedDelay, BackOffDelay and FullJitterBackoffDelay")
			}
		default:
			return refuse("the option %s has no counterpart", name)
		}
		return nil
	})
	if err != nil {
		return err
	}
	if kind == "" {
		return refuse("the default jitter, up to 100ms more, has no counterpart; a DelayType without it would have one")
	}
	delay := s.number(p, "Delay", set["Delay"], wait(100*time.Millisecond))
	limit := s.number(p, "MaxDelay", set["MaxDelay"], number{})
	switch {
	case !delay.loose && delay.value <= 0 || limit.value < 0:
		return refuse("Delay or MaxDelay is not positive")
	case limit.loose:
		p.remark("%s must be positive: 0 meant no limit, and means %v here", limit.text, defaults.Cap)
	case limit.value == 0:
		limit = number{}
	}
	if f := set["RetryIf"]; f != nil {
		switch {
		case len(s.marks()) > 0 || len(s.strays.makers) > 0:
			return refuse("RetryIf replaces Unrecoverable, and Permanent takes precedence over it")
		case p.attempts == ours+".Unlimited":
			return refuse("without a limit, both Unrecoverable and RetryIf apply")
		}
		p.classify = ours + ".FirstOf(" + ours + ".RetryIf(" + s.text(f) + "), " + ours + ".Otherwise(" + ours + ".Terminal))"
	}
	if s.escapes && !lastOnly {
		p.remark("errors.Is and the text of the error cover the last failure only: all are in its History")
	}
	if p.value {
		p.remark("on an error, the value is that of the last attempt")
	}
	factor := number{value: 2}
	switch kind {
	case "FixedDelay":
		factor.value = 1
	case "FullJitterBackoffDelay":
		if limit.text != "" && (limit.loose || delay.loose || limit.value < 2*delay.value) {
			return refuse("MaxDelay may be below the first window, which is twice Delay")
		}
		delay.value, delay.text = 2*delay.value, "2 * ("+delay.text+")"
		p.backoff.Jitter, p.texts["Jitter"] = retry.FullJitter, ours+".FullJitter"
	}
	p.grow(delay, factor, limit, 0)
	s.observer(p, set["OnRetry"], "%s.Outcome == nil && %s.Decision.Class == "+ours+".Retryable",
		"uint(%s.Attempt.Number-1)", "%s.Attempt.Err")
	return nil
}
