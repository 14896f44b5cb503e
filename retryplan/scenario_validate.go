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
	defaultStep       = time.Second
	defaultRateWindow = time.Second

	maxSteps   = 1_000_000     // 100 MB of points
	maxClients = 100_000_000   // 3 GB if each keeps a budget
	maxAtOnce  = 10_000_000    // clients with a run each: 3 GB of runs, attempts and events
	maxRuns    = 1_000_000_000 // some hours
	maxDrain   = 1_000         // Durations
	lookUp     = 1 << 16       // events between two looks at the context
)

// validate returns an error for each field that is bad, and sets what has a default.
func (s *Scenario) validate(ctx context.Context) error {
	var bad retry.FieldErrors
	bad.Append(s.Policy.Validate())
	if ctx == nil {
		bad.Add(pkg, "Simulate.ctx", "<nil>", "is not a context")
	}
	stateless(&bad, s.Policy, "Scenario.Policy.", ": use Scenario.Budget", ": use Scenario.Breaker", ": use Scenario.Throttle")
	if s.Delay != nil && s.Policy.ResetAfter > 0 {
		bad.Add(pkg, "Scenario.Delay", "(set)", "is set together with Policy.ResetAfter, which needs the policy's own delays")
	}
	validatePopulations(s.Others, "Scenario.Others", &bad)
	if s.Delay != nil && len(s.Others) > 0 {
		bad.Add(pkg, "Scenario.Delay", "(set)", "is set together with Others, which have delays of their own")
	}
	negative(&bad, "Scenario.Deadline", s.Deadline)
	switch {
	case s.Clients < 0:
		bad.Add(pkg, "Scenario.Clients", s.Clients, "is negative")
	case s.Clients > maxClients:
		bad.Add(pkg, "Scenario.Clients", s.Clients, "is above", maxClients)
	case s.Clients > maxAtOnce && (s.Arrivals.Closed || s.Arrivals.AtOnce):
		bad.Add(pkg, "Scenario.Clients", s.Clients, fmt.Sprintf("is above %d, which Closed and AtOnce allow: each client has a run of its own", maxAtOnce))
	case s.Clients == 0:
		s.Clients = 1
	}
	s.validateTime(&bad)
	s.Arrivals.validate(&bad)
	s.Server.validate(&bad)
	for i := range s.Triggers {
		s.validateTrigger(i, &bad)
	}
	if s.Breaker != nil {
		s.Breaker.validate(&bad)
	}
	if len(bad) == 0 && s.Arrivals.Rate > 0 {
		if n := expectedRuns(s.Arrivals.Rate, s.Triggers, s.Duration); !(n <= maxRuns) {
			bad.Add(pkg, "Scenario.Arrivals.Rate", s.Arrivals.Rate, fmt.Sprintf("makes %.3g runs in Duration %s, and no more than %d are simulated", n, plainly(s.Duration), maxRuns))
		}
	}
	return bad.Err()
}

// mechanisms returns how many budgets, breakers and throttles of each kind there are.
func (s *Scenario) mechanisms() int {
	if s.Shared {
		return 1
	}
	return s.Clients
}

func (s *Scenario) validateTime(bad *retry.FieldErrors) {
	switch {
	case s.Duration < 0:
		bad.Add(pkg, "Scenario.Duration", s.Duration, "is negative")
	case s.Duration == 0:
		bad.Add(pkg, "Scenario.Duration", s.Duration, "is required")
	}
	negative(bad, "Scenario.Step", s.Step)
	step := s.Step
	if step == 0 {
		step = defaultStep
	}
	if s.Duration > 0 && step > 0 && (s.Duration-1)/step >= maxSteps {
		bad.Add(pkg, "Scenario.Step", step, fmt.Sprintf("makes more than %d steps of Duration", maxSteps), s.Duration)
	}
}

func (a *Arrivals) validate(bad *retry.FieldErrors) {
	ways := 0
	for _, set := range []bool{a.Rate != 0, a.Closed, a.AtOnce} {
		if set {
			ways++
		}
	}
	switch {
	case ways == 0:
		bad.Add(pkg, "Scenario.Arrivals", "(none)", "needs one of Rate, Closed and AtOnce")
	case ways > 1:
		bad.Add(pkg, "Scenario.Arrivals", "(several)", "needs only one of Rate, Closed and AtOnce")
	}
	if a.Rate != 0 {
		number(bad, "Scenario.Arrivals.Rate", a.Rate, 0, math.MaxFloat64, "is not a number above 0")
	}
	if a.Think != (Dist{}) && !a.Closed {
		bad.Add(pkg, "Scenario.Arrivals.Think", "(set)", "is set without Closed")
	}
}

func (v *Server) validate(bad *retry.FieldErrors) {
	if v.Conflict {
		rest := *v
		rest.Conflict, rest.RetryAfter = false, Dist{}
		if rest != (Server{}) {
			bad.Add(pkg, "Scenario.Server.Conflict", true, "is set together with a field other than RetryAfter")
		}
	}
	if v.Workers < 0 {
		bad.Add(pkg, "Scenario.Server.Workers", v.Workers, "is negative")
	}
	negative(bad, "Scenario.Server.Crowding", v.Crowding)
	if v.Queue < -1 {
		bad.Add(pkg, "Scenario.Server.Queue", v.Queue, "is below -1, which means none")
	}
	for _, of := range []struct {
		field string
		value any
		set   bool
	}{{"Queue", v.Queue, v.Queue != 0}, {"LIFO", v.LIFO, v.LIFO}, {"Shed", v.Shed, v.Shed != ShedNothing}} {
		if of.set && v.Workers == 0 {
			bad.Add(pkg, "Scenario.Server."+of.field, of.value, "is set without Workers")
		}
	}
	if v.Shed > ShedHopeless {
		bad.Add(pkg, "Scenario.Server.Shed", uint8(v.Shed), "is not one of ShedNothing, ShedExpired and ShedHopeless")
	}
	if v.FailureRate != 0 {
		number(bad, "Scenario.Server.FailureRate", v.FailureRate, 0, 1, "is outside [0,1]")
	}
	if v.RateLimit < 0 {
		bad.Add(pkg, "Scenario.Server.RateLimit", v.RateLimit, "is negative")
	}
	negative(bad, "Scenario.Server.RateWindow", v.RateWindow)
	if v.RateWindow > 0 && v.RateLimit == 0 {
		bad.Add(pkg, "Scenario.Server.RateWindow", v.RateWindow, "is set without RateLimit")
	}
}

func (s *Scenario) validateTrigger(i int, bad *retry.FieldErrors) {
	t := &s.Triggers[i]
	name := func(field string) string { return fmt.Sprintf("Scenario.Triggers[%d].%s", i, field) }
	negative(bad, name("From"), t.From)
	t.validate(fmt.Sprintf("Scenario.Triggers[%d]", i), bad)
	switch {
	case t.Kind == 0:
		bad.Add(pkg, name("Kind"), uint8(t.Kind), noKind)
	case t.Kind == CapacityCut && s.Server.Workers == 0 && s.Server.RateLimit == 0:
		bad.Add(pkg, name("Kind"), t.Kind, "needs Workers or RateLimit")
	case t.Kind == Surge && (s.Arrivals.Closed || s.Arrivals.AtOnce):
		bad.Add(pkg, name("Kind"), t.Kind, "needs Arrivals.Rate")
	}
	if s.Server.Conflict && t.Kind != Surge {
		bad.Add(pkg, name("Kind"), t.Kind, "is set together with Server.Conflict, which allows Surge only")
	}
}

// maxPopulations is how many Others there may be.
const maxPopulations = 16

// validatePopulations refuses what is no part of a fleet.
func validatePopulations(all []Population, field string, bad *retry.FieldErrors) {
	if len(all) > maxPopulations {
		bad.Add(pkg, field, fmt.Sprintf("(%d)", len(all)), fmt.Sprintf("are more than %d", maxPopulations))
	}
	sum := 0.0
	for i := range all {
		o := &all[i]
		of := func(name string) string { return indexedField(field, i) + "." + name }
		if !(o.Share > 0 && o.Share < 1) {
			bad.Add(pkg, of("Share"), o.Share, "is outside (0,1)")
		}
		sum += o.Share
		validateAt(o.Policy, of, bad)
		if o.Policy.ResetAfter > 0 {
			bad.Add(pkg, of("Policy.ResetAfter"), o.Policy.ResetAfter, "is for connections, and these are requests")
		}
	}
	if sum >= 1 {
		bad.Add(pkg, field, fmt.Sprintf("(%g of the runs)", sum), "leave none to the other policy")
	}
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
	stateless(bad, p, of("Policy."), "", "", "")
}

// stateless refuses a policy with state of a running program, and says what to use instead of each.
func stateless(bad *retry.FieldErrors, p retry.Policy, prefix, budget, gate, pay string) {
	for _, state := range []struct {
		field, instead string
		set            bool
	}{{"Budget", budget, p.Budget != nil}, {"Gate", gate, p.Gate != nil}, {"Pay", pay, p.Pay != nil}} {
		if state.set {
			bad.Add(pkg, prefix+state.field, "(set)", "is state of a running program"+state.instead)
		}
	}
}

func (b *Breaker) validate(bad *retry.FieldErrors) {
	if b.Failures != 0 {
		number(bad, "Scenario.Breaker.Failures", b.Failures, 0, 1, "is outside (0,1]")
	}
	if b.MinSamples < 0 {
		bad.Add(pkg, "Scenario.Breaker.MinSamples", b.MinSamples, "is negative")
	}
	negative(bad, "Scenario.Breaker.Window", b.Window)
	negative(bad, "Scenario.Breaker.Open", b.Open)
	if b.Probes < 0 {
		bad.Add(pkg, "Scenario.Breaker.Probes", b.Probes, "is negative")
	}
}

// withDefaults returns b with what is zero set.
func (b Breaker) withDefaults() Breaker {
	b.Failures = cmp.Or(b.Failures, 0.5)
	b.MinSamples = cmp.Or(b.MinSamples, 20)
	b.Window = cmp.Or(b.Window, 10*time.Second)
	b.Open = cmp.Or(b.Open, 5*time.Second)
	b.Probes = cmp.Or(b.Probes, 5)
	return b
}

func negative(bad *retry.FieldErrors, field string, d time.Duration) {
	if d < 0 {
		bad.Add(pkg, field, d, "is negative")
	}
}

// number adds a bad field if x is not above lo and at most hi, as NaN is not.
func number(bad *retry.FieldErrors, field string, x, lo, hi float64, rule string) {
	if !(x > lo && x <= hi) {
		bad.Add(pkg, field, x, rule)
	}
}
