package retryplan

import (
	"cmp"
	"context"
	"fmt"
	"math"
	"time"

	"github.com/retrygo/retry"
)

// pkg is Package of this package's field errors.
const pkg = "retryplan"

// Defaults and limits of a Scenario.
const (
	defaultStep = time.Second

	maxSteps   = 1_000_000     // 100 MB of points
	maxClients = 10_000_000    // 3 GB of runs, attempts and events if each has a run
	maxRuns    = 1_000_000_000 // some hours
	lookUp     = 1 << 16       // events between two looks at the context

	// maxInstant is how many events may happen at one time, beside 10,000 for each client, before a simulation is given
	// up: more than any herd of clients with a bounded number of attempts makes, or one run of a Chain, and few enough to
	// be over in seconds for a fleet of moderate size.
	maxInstant = 1_000_000 + 10*maxChainAttempts
)

// validate returns an error for each field that is bad, and sets what has a default.
func (s *Scenario) validate(ctx context.Context) error {
	var bad retry.FieldErrors
	bad.Append(s.Policy.Validate())
	refuse(&bad, ctx == nil, "Simulate.ctx", "<nil>", "is not a context")
	stateless(&bad, s.Policy, "Scenario.Policy.", ": use Scenario.Budget")
	negative(&bad, "Scenario.Deadline", s.Deadline)
	negative(&bad, "Scenario.Clients", s.Clients)
	refuse(&bad, s.Clients > maxClients, "Scenario.Clients", s.Clients, fmt.Sprintf("is above %d", maxClients))
	s.Clients = cmp.Or(s.Clients, 1)
	negative(&bad, "Scenario.Duration", s.Duration)
	refuse(&bad, s.Duration == 0, "Scenario.Duration", s.Duration, "is required")
	negative(&bad, "Scenario.Step", s.Step)
	if step := cmp.Or(s.Step, defaultStep); s.Duration > 0 && step > 0 && (s.Duration-1)/step >= maxSteps {
		bad.Refuse("retryplan.Scenario.Step", step, fmt.Sprintf("makes more than %d steps of Duration", maxSteps), s.Duration)
	}
	s.Hedge.validate(&bad, "Scenario.Hedge")
	refuse(&bad, !(s.Rate >= 0 && s.Rate <= math.MaxFloat64), "Scenario.Rate", s.Rate, "is not a number of 0 or more")
	negative(&bad, "Scenario.Server.Workers", s.Server.Workers)
	refuse(&bad, !(s.Server.FailureRate >= 0 && s.Server.FailureRate <= 1), "Scenario.Server.FailureRate", s.Server.FailureRate, "is outside [0,1]")
	for i := range s.Triggers {
		s.validateTrigger(i, &bad)
	}
	if len(bad) == 0 && s.Rate > 0 {
		if n := expectedRuns(s.Rate, s.Triggers, s.Duration); !(n <= maxRuns) {
			bad.Refuse("retryplan.Scenario.Rate", s.Rate, fmt.Sprintf("makes %.3g runs in Duration %s, and no more than %d are simulated", n, plainly(s.Duration), maxRuns))
		}
	}
	return bad.Err()
}

func (s *Scenario) validateTrigger(i int, bad *retry.FieldErrors) {
	t, field := &s.Triggers[i], indexedField("Scenario.Triggers", i)
	negative(bad, field+".From", t.From)
	t.validate(field, bad)
	refuse(bad, t.Kind == 0, field+".Kind", uint8(t.Kind), noKind)
	refuse(bad, t.Kind == CapacityCut && s.Server.Workers == 0, field+".Kind", t.Kind, "needs Workers")
	refuse(bad, t.Kind == Surge && s.Rate == 0, field+".Kind", t.Kind, "needs a Rate")
}

const noKind = "is not one of Stall, Outage, Slowdown, CapacityCut, Surge and Failing"

// validate refuses a trigger without a place in time.
func (t *Trigger) validate(field string, bad *retry.FieldErrors) {
	factor := func(ok bool, rule string) {
		if math.IsNaN(t.Factor) || math.IsInf(t.Factor, 0) {
			ok, rule = false, "is not a finite number"
		}
		refuse(bad, !ok, field+".Factor", t.Factor, rule)
	}
	switch t.Kind {
	case Slowdown:
		factor(t.Factor > 1, "is not above 1, which Slowdown needs")
	case CapacityCut:
		factor(t.Factor >= 0 && t.Factor < 1, "is outside [0,1), which CapacityCut needs")
	case Surge:
		factor(t.Factor > 0, "is not above 0, which Surge needs")
	case Failing:
		factor(t.Factor > 0 && t.Factor <= 1, "is outside (0,1], which Failing needs")
	default:
		refuse(bad, t.Kind > Failing, field+".Kind", uint8(t.Kind), noKind)
	}
	negative(bad, field+".For", t.For)
}

// validateAt refuses a policy that does not validate, or has state of a running program, under the name that of gives
// its fields.
func validateAt(p retry.Policy, of func(field string) string, bad *retry.FieldErrors) {
	var found retry.FieldErrors
	found.Append(p.Validate())
	for _, field := range found {
		if e, ok := field.(*retry.FieldError); ok {
			field = &retry.FieldError{Package: pkg, Field: of(e.Field), Value: e.Value, Rule: e.Rule}
		}
		bad.Append(field)
	}
	stateless(bad, p, of("Policy."), "")
}

// stateless refuses a policy with state of a running program, and says what to use instead of a Budget.
func stateless(bad *retry.FieldErrors, p retry.Policy, prefix, budget string) {
	const state = "is state of a running program"
	refuse(bad, p.Budget != nil, prefix+"Budget", "(set)", state+budget)
	refuse(bad, p.Gate != nil, prefix+"Gate", "(set)", state)
	refuse(bad, p.Pay != nil, prefix+"Pay", "(set)", state)
}

// refuse adds a bad field if it is bad.
func refuse(bad *retry.FieldErrors, is bool, field string, value any, rule string) {
	if is {
		bad.Refuse(pkg+"."+field, value, rule)
	}
}

func negative[T int | time.Duration](bad *retry.FieldErrors, field string, x T) {
	refuse(bad, x < 0, field, x, "is negative")
}
