package page

import (
	"context"
	"strings"
	"time"

	"github.com/retrygo/retry"
	"github.com/retrygo/retry/cmd/retryplan/internal/plots"
	"github.com/retrygo/retry/cmd/retryplan/internal/say"
	"github.com/retrygo/retry/cmd/retryplan/internal/wire"
	"github.com/retrygo/retry/retryplan"
)

// answer is what the page shows of a state.
type answer struct {
	Policy     any    // in the forms of package wire
	Budget     string // an expression of Go
	Findings   []retryplan.Finding
	Plan       say.Facts
	Schedule   any // a chart
	Verdict    any
	Simulation any
}

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
		err = q.verdict(a, z)
	}
	if ask.Part != "verdict" && err == nil {
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

// verdict computes all but the simulation. The error is what the packages refuse of q; faultsOf says it in terms of the
// page.
func (q question) verdict(a *answer, z Size) error {
	plan, err := retryplan.New(q.policy, q.model)
	if err != nil {
		return err
	}
	a.Policy, a.Plan = q.policy, say.Plan(plan, q.model.Deadline)
	a.Schedule = chart{z.part(plots.Plans(plots.Plan{Plan: plan}), 0), "Wait before each attempt: " + say.Schedule(q.policy)}
	certificate, err := retryplan.Certify(q.policy, q.fleet)
	if err != nil {
		return err
	}
	a.Verdict = newVerdict(certificate, q.fleet)
	if q.fleet.Budget != nil {
		a.Budget, q.policy.Budget = "retry.NewBudget("+wire.Go(*q.fleet.Budget)+")", retry.NewBudget(*q.fleet.Budget)
	}
	a.Findings = append([]retryplan.Finding{}, retryplan.Lint(q.policy, retryplan.Setting{
		Inline: q.inline, Deadline: q.model.Deadline, Clients: q.fleet.Clients, Duration: q.model.Duration,
	})...)
	return nil
}

// storm simulates the fleet, until the limit.
func (q question) storm(ctx context.Context, a *answer, z Size, ask *Question) error {
	limited, cancel := context.WithTimeoutCause(ctx, ask.Limit, errLimit)
	defer cancel()
	scenario := q.fleet.Scenario(q.policy, 1)
	scenario.Server.FailureRate = q.model.Failure[0]
	found, err := simulated(limited, scenario, z, ask.Pause)
	a.Simulation = found
	return err
}

// verdict is the certificate in words.
type verdict struct {
	Kind  string // safe, vulnerable, metastable, overloaded
	Title string // one sentence
	Text  string // why
	Facts say.Facts
	// Disagree is what to say if the simulation has the Outcome that the certificate does not expect.
	Disagree map[string]string
}

func newVerdict(c retryplan.Certificate, f retryplan.Fleet) verdict {
	what, why := say.Stability(&c, f)
	kind := c.Stability.String()
	return verdict{
		Kind:     kind,
		Title:    strings.ToUpper(kind[:1]) + kind[1:] + ": " + strings.ToLower(what[:1]) + strings.TrimRight(what[1:], ":.") + ".",
		Text:     strings.ToUpper(why[:1]) + why[1:],
		Facts:    append(say.Certificate(c, f)[1:], say.Storm(c)...), // the title has the verdict
		Disagree: map[string]string{outcomes[!c.Stability.Survives()]: say.Contradiction(c.Stability)},
	}
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
	"Policy.ResetAfter": "reset_after", "Fleet.Rate": "rate", "Fleet.Deadline": "deadline", "Fleet.Workers": "capacity",
	"Fleet.Trigger.Kind": "trigger", "Fleet.Trigger.For": "trigger_length", "Fleet.Trigger.Factor": "trigger_factor",
	"Scenario.Duration": "trigger_length", "Scenario.Clients": "clients",
}
