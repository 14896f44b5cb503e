package web

import (
	"context"
	"fmt"
	"slices"
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

// chart is a picture, and what those who do not see it read.
type chart struct {
	SVG     string      `json:"svg"`
	Summary string      `json:"summary"`
	Table   plots.Table `json:"table"`
}

// newChart returns part i of a picture in some room.
func newChart(p *plots.Picture, i int, z size, summary string) chart {
	svg, table := p.Part(i, z.width, z.most)
	return chart{svg, summary, table}
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
		Plan: planFacts(plan, q.model, worst),
	}
	if a.Policy, err = q.text(); err != nil {
		return nil, faultsOf(err)
	}
	picture, err := plots.Plans(plots.Plan{Plan: plan})
	if err != nil {
		return nil, faultsOf(err)
	}
	d := plan.TotalWait
	a.Schedule = newChart(picture, 0, z, "Wait before each attempt: "+a.Policy.Line)
	a.Total = newChart(picture, 1, z, fmt.Sprintf(
		"If every attempt fails, all waits together take %s to %s; half of such runs wait for %s at most, 99 %% for %s.",
		say.Span(d.Min()), say.Span(d.Max()), say.Span(d.Quantile(.5)), say.Span(d.Quantile(.99))))
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
