package wire

import (
	"fmt"
	"strconv"
	"strings"
	"time"

	"github.com/retrygo/retry"
	"github.com/retrygo/retry/retryconf"
	"github.com/retrygo/retry/retryplan"
)

// Scenario is a simulation to run. Its fields are those of retryplan.Scenario.
type Scenario struct {
	Policy   retryconf.Spec `json:"policy"`
	Deadline Duration       `json:"deadline,omitzero"`
	Others   []Population   `json:"others,omitempty"`
	Clients  int            `json:"clients,omitzero"`
	Arrivals Arrivals       `json:"arrivals"`
	Network  retryplan.Dist `json:"network,omitzero"`
	Server   Server         `json:"server"`
	Triggers []Trigger      `json:"triggers,omitempty"`
	Budget   *Budget        `json:"budget,omitempty"`
	Breaker  *Breaker       `json:"breaker,omitempty"`
	Shared   bool           `json:"shared,omitzero"`
	Duration Duration       `json:"duration"`
	Drain    bool           `json:"drain,omitzero"`
	Step     Duration       `json:"step,omitzero"`
	Seed     uint64         `json:"seed,omitzero"`
}

// Arrivals says when runs begin.
type Arrivals struct {
	Rate   float64        `json:"rate,omitzero"`
	Closed bool           `json:"closed,omitzero"`
	Think  retryplan.Dist `json:"think,omitzero"`
	AtOnce bool           `json:"at_once,omitzero"`
}

// Server is a model of a backend.
type Server struct {
	Workers     int            `json:"workers,omitzero"`
	Service     retryplan.Dist `json:"service,omitzero"`
	Crowding    Duration       `json:"crowding,omitzero"`
	Queue       int            `json:"queue,omitzero"`
	LIFO        bool           `json:"lifo,omitzero"`
	Shed        string         `json:"shed,omitzero"` // nothing, expired, hopeless
	FailureRate float64        `json:"failure_rate,omitzero"`
	RateLimit   int            `json:"rate_limit,omitzero"`
	RateWindow  Duration       `json:"rate_window,omitzero"`
	RetryAfter  retryplan.Dist `json:"retry_after,omitzero"`
	Conflict    bool           `json:"conflict,omitzero"`
}

// Trigger is something that happens for a while.
type Trigger struct {
	Kind   string   `json:"kind"` // stall, outage, slowdown, capacity_cut, surge, failing
	From   Duration `json:"from,omitzero"`
	For    Duration `json:"for"`
	Factor float64  `json:"factor,omitzero"`
}

// Population is a share of a fleet's runs that follow a policy of their own.
type Population struct {
	Policy retryconf.Spec `json:"policy"`
	Share  float64        `json:"share"`
}

// populations returns all as retryplan has them.
func populations(all []Population, bad *retry.FieldErrors) (list []retryplan.Population) {
	for _, o := range all {
		p, err := o.Policy.Policy()
		bad.Append(err)
		list = append(list, retryplan.Population{Policy: p, Share: o.Share})
	}
	return list
}

// Budget is a retry budget.
type Budget struct {
	Ratio   float64  `json:"ratio,omitzero"`
	Burst   int      `json:"burst,omitzero"`
	Initial int      `json:"initial,omitzero"`
	Trickle Duration `json:"trickle,omitzero"`
}

// Breaker is a circuit breaker.
type Breaker struct {
	Failures   float64  `json:"failures,omitzero"`
	MinSamples int      `json:"min_samples,omitzero"`
	Window     Duration `json:"window,omitzero"`
	Open       Duration `json:"open,omitzero"`
	Probes     int      `json:"probes,omitzero"`
	Defer      bool     `json:"defer,omitzero"`
}

// Scenario returns s as retryplan has it. The error names every text that is none of those allowed, and what is wrong
// with the policy.
func (s Scenario) Scenario() (retryplan.Scenario, error) {
	var bad retry.FieldErrors
	p, err := s.Policy.Policy()
	bad.Append(err)
	shed, err := ParseShed(s.Server.Shed)
	if err != nil {
		bad.Add("retryplan", "Server.Shed", strconv.Quote(s.Server.Shed), oneOf(sheds))
	}
	scenario := retryplan.Scenario{
		Policy: p, Deadline: time.Duration(s.Deadline), Clients: s.Clients,
		Arrivals: retryplan.Arrivals{Rate: s.Arrivals.Rate, Closed: s.Arrivals.Closed, Think: s.Arrivals.Think, AtOnce: s.Arrivals.AtOnce},
		Network:  s.Network,
		Server: retryplan.Server{
			Workers: s.Server.Workers, Service: s.Server.Service, Crowding: time.Duration(s.Server.Crowding), Queue: s.Server.Queue,
			LIFO: s.Server.LIFO, Shed: shed, FailureRate: s.Server.FailureRate, RateLimit: s.Server.RateLimit,
			RateWindow: time.Duration(s.Server.RateWindow), RetryAfter: s.Server.RetryAfter, Conflict: s.Server.Conflict,
		},
		Budget: s.Budget.Config(), Shared: s.Shared,
		Duration: time.Duration(s.Duration), Drain: s.Drain, Step: time.Duration(s.Step), Seed: s.Seed,
	}
	scenario.Others = populations(s.Others, &bad)
	for _, t := range s.Triggers {
		trigger, err := t.Trigger()
		bad.Append(err)
		scenario.Triggers = append(scenario.Triggers, trigger)
	}
	if b := s.Breaker; b != nil {
		scenario.Breaker = &retryplan.Breaker{
			Failures: b.Failures, MinSamples: b.MinSamples, Window: time.Duration(b.Window), Open: time.Duration(b.Open), Probes: b.Probes, Defer: b.Defer,
		}
	}
	return scenario, bad.Err()
}

// Config returns b as retry has it, nil for nil.
func (b *Budget) Config() *retry.BudgetConfig {
	if b == nil {
		return nil
	}
	return &retry.BudgetConfig{Ratio: b.Ratio, Burst: b.Burst, Initial: b.Initial, Trickle: time.Duration(b.Trickle)}
}

// NewBudget returns c as data, nil for nil.
func NewBudget(c *retry.BudgetConfig) *Budget {
	if c == nil {
		return nil
	}
	return &Budget{c.Ratio, c.Burst, c.Initial, Duration(c.Trickle)}
}

// Trigger returns t as retryplan has it.
func (t Trigger) Trigger() (retryplan.Trigger, error) {
	kind, err := ParseKind(t.Kind)
	if err != nil {
		err = &retry.FieldError{Package: "retryplan", Field: "Trigger.Kind", Value: strconv.Quote(t.Kind), Rule: oneOf(kinds)}
	}
	return retryplan.Trigger{Kind: kind, From: time.Duration(t.From), For: time.Duration(t.For), Factor: t.Factor}, err
}

// NewTrigger returns t as data.
func NewTrigger(t retryplan.Trigger) Trigger {
	return Trigger{t.Kind.String(), Duration(t.From), Duration(t.For), t.Factor}
}

// ParseTrigger reads "stall 60s 10s": the kind, from when and for how long, and for the kinds that have one a factor,
// as in "surge 60s 10s 3".
func ParseTrigger(text string) (Trigger, error) {
	return parseTrigger(text, 2, `such as "stall 60s 10s" (kind, from, for) or "surge 60s 10s 3" (kind, from, for, factor)`)
}

// ParseLasting reads "stall 10s": a trigger without its place in time. It reads what ParseTrigger does, too.
func ParseLasting(text string) (Trigger, error) {
	return parseTrigger(text, 1, `such as "stall 10s" (kind, for) or "surge 10s 3" (kind, for, factor)`)
}

// parseTrigger reads a trigger with so many durations.
func parseTrigger(text string, durations int, such string) (Trigger, error) {
	words := strings.Fields(text)
	if len(words) == 0 {
		return Trigger{}, fmt.Errorf("%q is no trigger %s", text, such)
	}
	kind, err := ParseKind(words[0])
	if err != nil {
		return Trigger{}, err
	}
	t, n := Trigger{Kind: kind.String()}, 1+durations
	if factored(kind) {
		n++
	}
	if durations == 1 && len(words) == n+1 { // the trigger of a simulation, whose from does not matter here
		durations, n = 2, n+1
	}
	if len(words) != n {
		return Trigger{}, fmt.Errorf("%q is no trigger %s", text, such)
	}
	if factored(kind) {
		if t.Factor, err = strconv.ParseFloat(words[n-1], 64); err != nil {
			return Trigger{}, fmt.Errorf("factor %q is no number", words[n-1])
		}
	}
	if durations == 2 {
		if err := t.From.UnmarshalText([]byte(words[1])); err != nil {
			return Trigger{}, err
		}
	}
	return t, t.For.UnmarshalText([]byte(words[durations]))
}

// Lasting returns what ParseLasting reads.
func (t Trigger) Lasting() string { return fmt.Sprintf("%s %v%s", t.Kind, t.For, t.factor()) }

// String returns what ParseTrigger reads.
func (t Trigger) String() string { return fmt.Sprintf("%s %v %v%s", t.Kind, t.From, t.For, t.factor()) }

func (t Trigger) factor() string {
	if kind, err := ParseKind(t.Kind); err == nil && !factored(kind) {
		return ""
	}
	return " " + strconv.FormatFloat(t.Factor, 'g', -1, 64)
}

// factored reports whether triggers of the kind have a factor.
func factored(k retryplan.TriggerKind) bool { return k != retryplan.Stall && k != retryplan.Outage }
