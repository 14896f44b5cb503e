package page

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/retrygo/retry"
	"github.com/retrygo/retry/cmd/retryplan/internal/literal"
	"github.com/retrygo/retry/cmd/retryplan/internal/plots"
	"github.com/retrygo/retry/cmd/retryplan/internal/say"
	"github.com/retrygo/retry/cmd/retryplan/internal/wire"
	"github.com/retrygo/retry/retryplan"
)

// answer is what the page shows of a state.
type answer struct {
	Policy     any            `json:"policy"`           // of wire.Policy
	Budget     string         `json:"budget,omitempty"` // an expression of Go
	Findings   []wire.Finding `json:"findings"`
	Plan       []fact         `json:"plan"`
	Schedule   *chart         `json:"schedule,omitempty"`
	Total      *chart         `json:"total,omitempty"`
	Verdict    *verdict       `json:"verdict,omitempty"`
	Simulation *simulation    `json:"simulation,omitempty"`
}

// fact is a figure with its name.
type fact struct {
	Label string `json:"label"`
	Value string `json:"value"`
	Help  string `json:"help,omitempty"`
}

// chart is a picture and its text alternative.
type chart struct {
	SVG     string `json:"svg"`
	Summary string `json:"summary"`
}

// Size is the room that the page has for a chart, in pixels.
type Size struct{ Width, Most float64 }

// part returns chart i of a picture.
func (z Size) part(p plots.Picture, i int) string { return p.Part(i, z.Width, z.Most) }

// Bounds replaces values that are missing or absurd.
func (z Size) bounded() Size {
	number := func(v, least, most float64) float64 {
		if !(v > 0) {
			v = 720
		}
		return min(max(v, least), most)
	}
	return Size{number(z.Width, 240, 2000), number(z.Most, 60, 400)}
}

// Question is what the page asks.
type Question struct {
	State State
	Size
	// Part is "verdict" for all but the simulation, "storm" for the simulation alone, or empty for both: the verdict is
	// there at once, and the simulation takes up to a second.
	Part string
	// Limit is the time after which the simulation is ended and shown in part.
	Limit time.Duration
	// Pause is called from time to time while simulating, so that a program with one thread can do other work. Nil means
	// no call.
	Pause func()
}

// Refusal is the answer to a question with something wrong in it.
type Refusal struct {
	Errors []Fault `json:"errors"`
}

// Fault is one thing that is wrong with a state.
type Fault struct {
	Field string `json:"field,omitempty"` // the state's key; empty if the fault is of no field
	Text  string `json:"text"`
}

// Ask answers a question, with JSON. It is all that the page computes, in the server and in the browser. If ok is false
// the answer is a Refusal. If ctx is done, the answer is worth nothing.
func Ask(ctx context.Context, ask Question) (body any, ok bool) {
	q, bad := ask.State.question()
	if bad != nil {
		return Refusal{bad}, false
	}
	a, z := &answer{}, ask.bounded()
	var err error
	if ask.Part != "storm" {
		err = q.verdict(a, z)
	}
	if ask.Part != "verdict" && err == nil {
		err = q.storm(ctx, a, z, &ask)
	}
	if err != nil {
		return Refusal{faultsOf(err)}, false
	}
	return a, true
}

// verdict computes all but the simulation. The error is what the packages refuse of q; faultsOf says it in terms of the
// page.
func (q question) verdict(a *answer, z Size) error {
	plan, err := retryplan.New(q.policy, q.model)
	if err != nil {
		return err
	}
	a.Policy, a.Plan = wire.Policy(q.policy), planFacts(plan, q.model.Deadline)
	picture, d := plots.Plans(plots.Plan{Plan: plan}), plan.TotalWait
	a.Schedule = &chart{z.part(picture, 0), "Wait before each attempt: " + wire.Schedule(q.policy)}
	a.Total = &chart{z.part(picture, 1), fmt.Sprintf("If every attempt fails, all waits together take %s to %s: at most %s in half of such runs, at most %s in 99 %%.",
		say.Span(d.Min()), say.Span(d.Max()), say.Span(d.Quantile(.5)), say.Span(d.Quantile(.99)))}
	certificate, err := retryplan.Certify(q.policy, q.fleet)
	if err != nil {
		return err
	}
	a.Verdict = newVerdict(certificate, q.fleet)
	if q.fleet.Budget != nil {
		a.Budget, q.policy.Budget = "retry.NewBudget("+literal.Budget(*q.fleet.Budget)+")", retry.NewBudget(*q.fleet.Budget)
	}
	a.Findings = wire.NewFindings(retryplan.Lint(q.policy, retryplan.Setting{
		Inline: q.inline, Deadline: q.model.Deadline, Clients: q.fleet.Clients, Duration: q.model.Duration,
	}))
	return nil
}

// storm simulates the fleet, until the limit.
func (q question) storm(ctx context.Context, a *answer, z Size, ask *Question) error {
	limited, cancel := context.WithTimeoutCause(ctx, ask.Limit, errLimit)
	defer cancel()
	scenario := q.fleet.Scenario(q.policy, 1)
	scenario.Server.FailureRate = q.model.Failure[0]
	found, err := simulated(limited, scenario, z, ask.Pause)
	a.Simulation = &found
	return err
}

func planFacts(p *retryplan.Plan, deadline time.Duration) []fact {
	facts := []fact{
		{"A run succeeds", say.Percent(p.Success), ""},
		{"Attempts per run", say.Number(p.Load), ""},
		{"Attempts that can start", fmt.Sprintf("%d of %d", p.CanStart, len(p.Attempts)), ""},
		{"Half of the runs end within", say.Span(p.Elapsed.Quantile(.5)), ""},
		{"99 % of the runs end within", say.Span(p.Elapsed.Quantile(.99)), ""},
		{"Takes at most", say.Span(p.WorstCase), ""},
	}
	if deadline > 0 {
		facts = slices.Insert(facts, 1, fact{"Within the deadline of " + say.Span(deadline), say.Percent(p.Success), ""})
	}
	if p.Truncated {
		facts = append(facts, fact{"Looked at", fmt.Sprintf("the first %d attempts; the policy allows more", len(p.Attempts)), ""})
	}
	return facts
}

// verdict is the certificate in words.
type verdict struct {
	Kind  string `json:"kind"`  // safe, vulnerable, metastable, overloaded
	Title string `json:"title"` // one sentence
	Text  string `json:"text"`  // why
	Facts []fact `json:"facts"`
	// Disagree is what to say if the simulation has the Outcome that the certificate does not expect.
	Disagree map[string]string `json:"disagree"`
}

func newVerdict(c retryplan.Certificate, f retryplan.Fleet) *verdict {
	what, why := say.Stability(&c, f)
	kind := c.Stability.String()
	unexpected := outcomes[!c.Stability.Survives()]
	return &verdict{
		Disagree: map[string]string{unexpected: say.Contradiction(c.Stability)},

		Kind:  kind,
		Title: strings.ToUpper(kind[:1]) + kind[1:] + ": " + strings.ToLower(what[:1]) + strings.TrimRight(what[1:], ":.") + ".",
		Text:  strings.ToUpper(why[:1]) + why[1:] + " The law: " + say.Law(c.Law) + ".",
		Facts: []fact{
			{"Hidden capacity", say.Number(c.HiddenCapacity) + " runs/s", "what the backend can serve in a storm, while every attempt is too late and is retried"},
			{"Attempts per run in a storm", say.Number(c.Attempts), ""},
			{"Predicted recovery", span(c.Recovery, "never", "0s"), "after the trigger"},
			{"Tips at a trigger of", span(c.Tipping, "no length", "none needed: chance is enough"), "the shortest that makes the storm permanent"},
			{"Margin", say.Percent(c.Margin), "distance from another verdict"},
			{"Law", c.Law, ""},
		},
	}
}

// span returns d for a reader, with other words for a negative d and for 0.
func span(d time.Duration, negative, zero string) string {
	switch {
	case d < 0:
		return negative
	case d == 0:
		return zero
	}
	return say.Span(d)
}

// faultsOf returns the faults that err names in terms of the page's fields.
func faultsOf(err error) (bad []Fault) {
	fields := wire.Fields(err)
	if len(fields) == 0 {
		return []Fault{{Text: wire.OneLine(err.Error())}}
	}
	for _, f := range fields {
		if key, ok := keyOf[f.Field]; ok {
			bad = append(bad, Fault{key, sentence(f.Value, f.Rule)})
		} else {
			bad = append(bad, Fault{"", f.Field + " " + sentence(f.Value, f.Rule)})
		}
	}
	return bad
}

// keyOf has the page's field for each field of a package that can be wrong though its text was accepted.
var keyOf = map[string]string{
	"Policy.ResetAfter": "reset_after", "Fleet.Rate": "rate", "Fleet.Deadline": "deadline", "Fleet.Workers": "capacity",
	"Fleet.Trigger.Kind": "trigger", "Fleet.Trigger.For": "trigger_length", "Fleet.Trigger.Factor": "trigger_factor",
	"Scenario.Duration": "trigger_length", "Scenario.Clients": "clients",
}
