package page

import (
	"context"
	"encoding/json"
	"time"

	"github.com/retrygo/retry"
	"github.com/retrygo/retry/cmd/retryplan/internal/literal"
	"github.com/retrygo/retry/cmd/retryplan/internal/plots"
	"github.com/retrygo/retry/cmd/retryplan/internal/say"
	"github.com/retrygo/retry/retryconf"
	"github.com/retrygo/retry/retryplan"
)

// answer is the content of the page for a state. A part of it may come before the rest.
type answer struct {
	Policy     *policy     `json:"policy,omitempty"`
	Budget     string      `json:"budget"` // an expression of Go
	Findings   []finding   `json:"findings"`
	Plan       say.Facts   `json:"plan,omitempty"`
	Schedule   *chart      `json:"schedule,omitempty"`
	Story      *story      `json:"story,omitempty"`
	Verdict    *verdict    `json:"verdict,omitempty"`
	Simulation *simulation `json:"simulation,omitempty"`
	Advice     []advice    `json:"advice,omitzero"`
}

// policy is a policy in every form in which it can be copied: the schedule on one line, Go, and a document of retryconf.
type policy struct {
	Text     string         `json:"text"`
	Go       string         `json:"go"`
	Document retryconf.Spec `json:"document"`
}

// finding is a finding without its change, which has to be simulated before it is shown.
type finding struct {
	Code  string `json:"code"`
	Level string `json:"level"`
	Text  string `json:"text"`
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

// bounded returns z within the sizes that can be drawn.
func (z Size) bounded() Size { return Size{min(max(z.Width, 240), 2000), min(max(z.Most, 60), 400)} }

// Question is a question of the page.
type Question struct {
	State State
	Size
	// Limit is the time after which the count, and once more the advice, is ended and shown as far as it is.
	Limit time.Duration
	// Tell is called with the answer so far: first with the plan, and then while the count grows.
	Tell func(body []byte)
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
	Field string `json:"field"` // the state's key; empty if the fault is of no field
	Text  string `json:"text"`
}

// Ask answers a question, with JSON. It is all that the page computes, in the server and in the browser. If ok is false
// the answer is a Refusal. If ctx is done, the answer is worth nothing.
func Ask(ctx context.Context, ask Question) (body []byte, ok bool) {
	q, bad := ask.State.question()
	if bad != nil {
		return Refuse(bad...), false
	}
	a, z := &answer{}, ask.bounded()
	err := q.plan(a, z)
	if err == nil {
		err = q.storm(ctx, a, z, &ask)
	}
	if err == nil {
		body, err = a.line()
	}
	if err != nil {
		return Refuse(faultsOf(err)...), false
	}
	return body, true
}

// line returns a as a line of JSON.
func (a *answer) line() ([]byte, error) {
	body, err := json.Marshal(a)
	return append(body, '\n'), err
}

// Refuse returns a Refusal as JSON.
func Refuse(faults ...Fault) []byte {
	body, _ := json.Marshal(Refusal{faults}) // texts alone
	return body
}

// plan computes all but the simulations. The error names fields of the packages, which faultsOf translates into those
// of the page.
func (q *question) plan(a *answer, z Size) error {
	plan, err := retryplan.New(q.policy, q.model)
	if err != nil {
		return err
	}
	document, _ := retryconf.FromPolicy(q.policy) // which has no code
	a.Policy = &policy{say.Schedule(q.policy), literal.Go(q.policy), document}
	a.Plan = say.Plan(plan, q.model.Deadline)
	a.Schedule = &chart{z.part(plots.Schedule(plan), 0), "Wait before each attempt: " + say.Schedule(q.policy)}
	a.Story = q.story()
	if q.fleet.Budget != nil {
		a.Budget = "retry.NewBudget(" + literal.Go(*q.fleet.Budget) + ")"
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
	fields := say.Fields(err)
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
