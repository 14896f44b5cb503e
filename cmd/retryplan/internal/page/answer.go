package page

import (
	"context"
	"time"

	"github.com/retrygo/retry"
	"github.com/retrygo/retry/cmd/retryplan/internal/plots"
	"github.com/retrygo/retry/cmd/retryplan/internal/say"
	"github.com/retrygo/retry/cmd/retryplan/internal/wire"
	"github.com/retrygo/retry/retryplan"
)

// answer is what the page shows of a state. A part of it may come before the rest.
type answer struct {
	Policy     any    // in the forms of package wire
	Budget     string // an expression of Go
	Findings   []finding
	Plan       say.Facts
	Schedule   any // a chart
	Story      any
	Verdict    any
	Simulation any
	Advice     []advice
}

// finding is a finding without its change, which has to be simulated before it is shown.
type finding struct{ Code, Level, Text string }

// chart is a picture and its text alternative.
type chart struct {
	SVG, Summary string
}

// Size is the room that the page has for a chart, in pixels.
type Size struct{ Width, Most float64 }

// part returns chart i of a picture.
func (z Size) part(p plots.Picture, i int) string { return p.Part(i, z.Width, z.Most) }

// bounded replaces values that are missing or absurd.
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
	// Part is "plan" for all but the simulations, "storm" for these alone, or empty for both: the plan is there at once.
	Part string
	// Limit is the time after which the count, and once more the advice, is ended and shown as far as it is.
	Limit time.Duration
	// Tell is called with the answer so far, while the count grows. Nil means no call.
	Tell func(body []byte)
	// Pause is called from time to time while simulating, so that a program with one thread can do other work. Nil means
	// no call.
	Pause func()
}

// Refusal is the answer to a question with something wrong in it.
type Refusal struct {
	Errors []Fault
}

// Fault is one thing that is wrong with a state.
type Fault struct {
	Field string // the state's key; empty if the fault is of no field
	Text  string
}

// Ask answers a question, with JSON. It is all that the page computes, in the server and in the browser. If ok is false
// the answer is a Refusal. If ctx is done, the answer is worth nothing.
func Ask(ctx context.Context, ask Question) (body []byte, ok bool) {
	q, bad := ask.State.question()
	if bad != nil {
		return Refuse(bad...), false
	}
	a, z := &answer{}, ask.bounded()
	var err error
	if ask.Part != "storm" {
		err = q.plan(a, z)
	}
	if ask.Part != "plan" && err == nil {
		err = q.storm(ctx, a, z, &ask)
	}
	if err == nil {
		body, err = wire.JSON(a)
	}
	if err != nil {
		return Refuse(faultsOf(err)...), false
	}
	return body, true
}

// Refuse returns a Refusal as JSON.
func Refuse(faults ...Fault) []byte {
	body, _ := wire.JSON(Refusal{faults}) // texts alone
	return body
}

// plan computes all but the simulations. The error is what the packages refuse of q; faultsOf says it in terms of the
// page.
func (q *question) plan(a *answer, z Size) error {
	plan, err := retryplan.New(q.policy, q.model)
	if err != nil {
		return err
	}
	a.Policy, a.Plan = q.policy, say.Plan(plan, q.model.Deadline)
	a.Schedule = chart{z.part(plots.Plans(plots.Plan{Plan: plan}), 0), "Wait before each attempt: " + say.Schedule(q.policy)}
	a.Story = q.story()
	if q.fleet.Budget != nil {
		a.Budget = "retry.NewBudget(" + wire.Go(*q.fleet.Budget) + ")"
	}
	a.Findings = []finding{}
	for _, f := range q.lint() {
		a.Findings = append(a.Findings, finding{f.Code, f.Level.String(), f.Text})
	}
	return nil
}

// lint returns the findings about the policy, with the budget of the fleet.
func (q *question) lint() []retryplan.Finding {
	p := q.policy
	if q.fleet.Budget != nil {
		p.Budget = retry.NewBudget(*q.fleet.Budget)
	}
	return retryplan.Lint(p, retryplan.Setting{
		Inline: q.inline, Deadline: q.model.Deadline, Clients: q.clients, Duration: q.model.Duration,
	})
}

// faultsOf returns the faults that err names in terms of the page's fields.
func faultsOf(err error) (bad []Fault) {
	fields := wire.Fields(err)
	if len(fields) == 0 {
		return []Fault{{Text: say.OneLine(err.Error())}}
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
	"Policy.ResetAfter": "reset_after", "Policy.MaxAttempts": "max_attempts", "Fleet.Rate": "rate", "Fleet.Deadline": "deadline",
	"Fleet.Workers": "capacity", "Fleet.Clients": "clients", "Fleet.Failure": "failure",
	"Fleet.Trigger.Kind": "trigger", "Fleet.Trigger.For": "trigger_length", "Fleet.Trigger.Factor": "trigger_factor",
}
