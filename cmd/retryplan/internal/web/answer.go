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

// answer is what a state does, ready to be shown.
type answer struct {
	Policy     policyText     `json:"policy"`
	Findings   []wire.Finding `json:"findings"`
	Plan       []fact         `json:"plan"`
	Schedule   chart          `json:"schedule"`
	Total      chart          `json:"total"`
	Verdict    verdict        `json:"verdict"`
	Simulation simulation     `json:"simulation"`
}

// policyText is a policy to be copied.
type policyText struct {
	Line string `json:"line"`
	Go   string `json:"go"`
	JSON string `json:"json"`
}

// fact is a figure with its name.
type fact struct {
	Label string `json:"label"`
	Value string `json:"value"`
}

// table is a chart for those who do not see it. Its first column heads the rows.
type table struct {
	Head []string   `json:"head"`
	Rows [][]string `json:"rows"`
}

// chart is a picture, and what those who do not see it read.
type chart struct {
	SVG     string `json:"svg"`
	Summary string `json:"summary"`
	Table   table  `json:"table"`
}

// answer computes everything, and ends the simulation once it all has taken as long as limit. What of q the packages
// refuse comes back as faults of the page's fields. When ctx ends, the answer is worth nothing.
func (q question) answer(ctx context.Context, limit time.Duration, z size) (*answer, []fault) {
	limited, cancel := context.WithTimeoutCause(ctx, limit, errLimit)
	defer cancel()
	plan, err := retryplan.New(q.policy, q.model)
	if err != nil {
		return nil, faultsOf(err)
	}
	worst := plan.WorstCase
	if q.failure == 0 { // a run that cannot fail has no waits, which is not a useful worst case
		m := q.model
		m.Failure = nil
		failing, err := retryplan.New(q.policy, m)
		if err != nil {
			return nil, faultsOf(err)
		}
		worst = failing.WorstCase
	}
	a := &answer{
		Findings: wire.NewFindings(retryplan.Lint(q.budgeted(), retryplan.Setting{
			Inline: q.inline, Deadline: q.model.Deadline, Clients: q.fleet.Clients, Duration: q.model.Duration,
		})),
		Plan:     planFacts(plan, q.model, worst),
		Schedule: newSchedule(plan, z),
		Total:    newTotal(plan, z),
	}
	if a.Policy, err = q.text(); err != nil {
		return nil, faultsOf(err)
	}
	scenario, note, bad := q.scenario() // first, since there is no need to certify what is refused
	if bad != nil {
		return nil, bad
	}
	if a.Verdict, err = q.verdict(); err != nil {
		return nil, faultsOf(err)
	}
	if a.Simulation, bad = simulated(limited, scenario, note, z); bad != nil {
		return nil, bad
	}
	return a, nil
}

// budgeted returns the policy with the fleet's budget, for those who look at the policy alone.
func (q question) budgeted() retry.Policy {
	p := q.policy
	if q.fleet.Budget != nil {
		p.Budget = retry.NewBudget(*q.fleet.Budget)
	}
	return p
}

func (q question) text() (policyText, error) {
	document, err := literal.Document(q.policy)
	code := "policy := " + literal.Go(q.policy)
	if q.fleet.Budget != nil {
		code += "\npolicy.Budget = retry.NewBudget(" + literal.Budget(*q.fleet.Budget) + ")"
	}
	return policyText{Line: wire.Schedule(q.policy), Go: code, JSON: document}, err
}

func planFacts(p *retryplan.Plan, m retryplan.Model, worst time.Duration) []fact {
	facts := []fact{
		{"A run succeeds", say.Percent(p.Success)},
		{"Attempts per run", say.Number(p.Load)},
		{"Attempts that can start", fmt.Sprintf("%d of %d", p.CanStart, len(p.Attempts))},
		{"Half of the runs end within", say.Span(p.Elapsed.Quantile(.5))},
		{"99 % of the runs end within", say.Span(p.Elapsed.Quantile(.99))},
		{"Worst case, all attempts failing", say.Span(worst)},
	}
	if m.Deadline > 0 {
		facts = slices.Insert(facts, 1, fact{"Within the deadline of " + say.Span(m.Deadline), say.Percent(p.InTime)})
	}
	if p.Truncated {
		facts = append(facts, fact{"Looked at", fmt.Sprintf("the first %d attempts; the policy allows more", len(p.Attempts))})
	}
	return facts
}

// drawn returns a picture of p as an element of the page.
func drawn(picture *plots.Picture, err error, z size) string {
	if err != nil { // what is drawn is ours, so that there is no error
		return ""
	}
	return picture.Fragment(z.width, z.most)
}

func newSchedule(p *retryplan.Plan, z size) chart {
	picture, err := plots.Schedule(plots.Plan{Plan: p})
	c := chart{
		SVG:     drawn(picture, err, z),
		Summary: "No waits: there is one attempt.",
		Table:   table{Head: []string{"Attempt", "Wait before it", "Mean wait", "Can start"}, Rows: [][]string{}},
	}
	var waits []string
	for _, a := range p.Attempts {
		if a.Number == 1 {
			continue
		}
		wait, when := between(a.Wait.Lo, a.Wait.Hi), between(a.Earliest, a.Latest)
		if a.Never != 0 {
			when = "never: " + wire.Reason(a.Never)
		}
		c.Table.Rows = append(c.Table.Rows, []string{fmt.Sprint(a.Number), wait, say.Span(a.Wait.Mean), when})
		waits = append(waits, wait)
	}
	if len(waits) > 0 {
		const shown = 8
		more := ""
		if len(waits) > shown {
			waits, more = waits[:shown], ", and so on"
		}
		c.Summary = fmt.Sprintf("Waits before attempts 2 to %d: %s%s.", len(p.Attempts), strings.Join(waits, ", "), more)
	}
	return c
}

func newTotal(p *retryplan.Plan, z size) chart {
	picture, err := plots.TotalWait(plots.Plan{Plan: p})
	d := p.TotalWait
	c := chart{
		SVG: drawn(picture, err, z),
		Summary: fmt.Sprintf("If every attempt fails, all waits together take %s; half of such runs wait for %s at most, 99 %% for %s.",
			between(d.Min(), d.Max()), say.Span(d.Quantile(.5)), say.Span(d.Quantile(.99))),
		Table: table{Head: []string{"Share of runs", "Total wait at most"}},
	}
	for _, q := range []float64{0, .1, .25, .5, .75, .9, .95, .99, 1} {
		c.Table.Rows = append(c.Table.Rows, []string{say.Percent(q), say.Span(d.Quantile(q))})
	}
	c.Table.Rows[0][0] = "the shortest"
	c.Table.Rows[len(c.Table.Rows)-1][0] = "the longest"
	return c
}

// faultsOf puts what the packages say in terms of the page's fields.
func faultsOf(err error) []fault {
	e := wire.NewError(err)
	if len(e.Fields) == 0 {
		return []fault{{Text: e.Error}}
	}
	var bad []fault
	for _, f := range e.Fields {
		bad = append(bad, fault{Field: keyOf[f.Field], Text: sentence(f.Value, f.Rule)})
		if keyOf[f.Field] == "" {
			bad[len(bad)-1].Text = f.Field + " " + bad[len(bad)-1].Text
		}
	}
	return bad
}

// keyOf is the page's field for a field of a type.
var keyOf = map[string]string{
	"Policy.MaxAttempts": "max_attempts", "Policy.Base": "base", "Policy.Factor": "factor", "Policy.Cap": "cap",
	"Policy.Delays": "delays", "Policy.Jitter": "jitter", "Policy.JitterRatio": "jitter_ratio", "Policy.Mode": "mode",
	"Policy.AttemptTimeout": "attempt_timeout", "Policy.TTL": "ttl", "Policy.MaxHint": "max_hint",
	"Policy.ResetAfter": "reset_after",
	"Model.Failure":     "failure", "Model.Duration": "duration", "Model.Deadline": "deadline",
	"Fleet.Rate": "rate", "Fleet.Capacity": "capacity", "Fleet.Workers": "capacity", "Fleet.Clients": "clients",
	"Fleet.Deadline": "deadline", "Fleet.Trigger": "trigger", "Fleet.Trigger.Kind": "trigger",
	"Fleet.Trigger.For": "trigger_length", "Fleet.Trigger.Factor": "trigger_factor", "Fleet.Budget": "budget",
	"Fleet.Budget.Ratio": "budget_ratio", "Fleet.Budget.Burst": "budget_burst",
	"Scenario.Clients": "clients", "Scenario.Duration": "trigger_length", "Scenario.Deadline": "deadline",
}

// between returns "1s to 2s", and "1s" if both ends are the same.
func between(lo, hi time.Duration) string {
	if lo == hi {
		return say.Span(lo)
	}
	return say.Span(lo) + " to " + say.Span(hi)
}
