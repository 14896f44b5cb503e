package web

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
	Schedule   chart          `json:"schedule"`
	Total      chart          `json:"total"`
	Verdict    verdict        `json:"verdict"`
	Simulation simulation     `json:"simulation"`
}

// fact is a figure with its name.
type fact struct {
	Label string `json:"label"`
	Value string `json:"value"`
}

// chart is a picture and its text alternative.
type chart struct {
	SVG     string `json:"svg"`
	Summary string `json:"summary"`
}

// answer computes everything, and ends the simulation when limit has passed since the start. The error is what the
// packages refuse of q; faultsOf says it in terms of the page. If ctx is done, the answer is worth nothing.
func (q question) answer(ctx context.Context, limit time.Duration, z size) (*answer, error) {
	limited, cancel := context.WithTimeoutCause(ctx, limit, errLimit)
	defer cancel()
	plan, err := retryplan.New(q.policy, q.model)
	if err != nil {
		return nil, err
	}
	a := &answer{Policy: wire.Policy(q.policy), Plan: planFacts(plan, q.model.Deadline)}
	picture, d := plots.Plans(plots.Plan{Plan: plan}), plan.TotalWait
	a.Schedule = chart{z.part(picture, 0), "Wait before each attempt: " + wire.Schedule(q.policy)}
	a.Total = chart{z.part(picture, 1), fmt.Sprintf("If every attempt fails, all waits together take %s to %s: at most %s in half of such runs, at most %s in 99 %%.",
		say.Span(d.Min()), say.Span(d.Max()), say.Span(d.Quantile(.5)), say.Span(d.Quantile(.99)))}
	certificate, err := retryplan.Certify(q.policy, q.fleet)
	if err != nil {
		return nil, err
	}
	a.Verdict = newVerdict(certificate, q.fleet)
	scenario := q.fleet.Scenario(q.policy, 1)
	scenario.Server.FailureRate = q.model.Failure[0]
	if a.Simulation, err = simulated(limited, scenario, z); err != nil {
		return nil, err
	}
	if q.fleet.Budget != nil {
		a.Budget, q.policy.Budget = "retry.NewBudget("+literal.Budget(*q.fleet.Budget)+")", retry.NewBudget(*q.fleet.Budget)
	}
	a.Findings = wire.NewFindings(retryplan.Lint(q.policy, retryplan.Setting{
		Inline: q.inline, Deadline: q.model.Deadline, Clients: q.fleet.Clients, Duration: q.model.Duration,
	}))
	return a, nil
}

func planFacts(p *retryplan.Plan, deadline time.Duration) []fact {
	facts := []fact{
		{"A run succeeds", say.Percent(p.Success)},
		{"Attempts per run", say.Number(p.Load)},
		{"Attempts that can start", fmt.Sprintf("%d of %d", p.CanStart, len(p.Attempts))},
		{"Half of the runs end within", say.Span(p.Elapsed.Quantile(.5))},
		{"99 % of the runs end within", say.Span(p.Elapsed.Quantile(.99))},
		{"Takes at most", say.Span(p.WorstCase)},
	}
	if deadline > 0 {
		facts = slices.Insert(facts, 1, fact{"Within the deadline of " + say.Span(deadline), say.Percent(p.InTime)})
	}
	if p.Truncated {
		facts = append(facts, fact{"Looked at", fmt.Sprintf("the first %d attempts; the policy allows more", len(p.Attempts))})
	}
	return facts
}

// verdict is the certificate in words.
type verdict struct {
	Kind  string `json:"kind"`  // safe, vulnerable, metastable, overloaded
	Title string `json:"title"` // one sentence
	Text  string `json:"text"`  // why
	Facts []fact `json:"facts"`
}

func newVerdict(c retryplan.Certificate, f retryplan.Fleet) verdict {
	what, why := say.Stability(&c, f)
	kind := c.Stability.String()
	return verdict{
		Kind:  kind,
		Title: strings.ToUpper(kind[:1]) + kind[1:] + ": " + strings.ToLower(what[:1]) + strings.TrimRight(what[1:], ":.") + ".",
		Text:  strings.ToUpper(why[:1]) + why[1:] + " The law: " + say.Law(c.Law) + ".",
		Facts: []fact{
			{"Attempts per run in a storm", say.Number(c.Attempts)},
			{"Hidden capacity", say.Number(c.HiddenCapacity) + " runs/s"},
			{"Predicted recovery", span(c.Recovery, "never", "0s")},
			{"Tips at a trigger of", span(c.Tipping, "no length", "none needed: chance is enough")},
			{"Margin", say.Percent(c.Margin)},
			{"Law", c.Law.String()},
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
func faultsOf(err error) (bad []fault) {
	fields := wire.Fields(err)
	if len(fields) == 0 {
		return []fault{{Text: wire.OneLine(err.Error())}}
	}
	for _, f := range fields {
		if key, ok := keyOf[f.Field]; ok {
			bad = append(bad, fault{key, sentence(f.Value, f.Rule)})
		} else {
			bad = append(bad, fault{"", f.Field + " " + sentence(f.Value, f.Rule)})
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
