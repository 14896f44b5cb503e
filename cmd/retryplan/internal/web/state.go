package web

import (
	"encoding"
	"errors"
	"fmt"
	"math"
	"strconv"
	"strings"
	"time"

	"github.com/retrygo/retry"
	"github.com/retrygo/retry/cmd/retryplan/internal/wire"
	"github.com/retrygo/retry/retryconf"
	"github.com/retrygo/retry/retryplan"
)

// state is everything that can be set on the page, as the texts in its fields: what stands in the fragment of its
// address and what it asks about. A policy's keys are those of a retryconf document. An empty text means not given.
type state map[string]string

// Limits of a fleet: a page that redraws as a slider moves has no time for more, and the command line has.
const (
	maxClients = 100_000
	maxRate    = 10_000
	maxTrigger = time.Hour
)

// question is a state that was understood.
type question struct {
	policy  retry.Policy
	model   retryplan.Model
	fleet   retryplan.Fleet
	failure float64
	inline  bool
}

// question returns what s asks, or what is wrong with it, all at once. Fields that a choice leaves without a use, as a
// list of delays is to an exponential policy, are not looked at: the page keeps them for when the choice is changed
// back.
func (s state) question() (question, []fault) {
	f := form{values: s}
	f.known()
	var q question
	q.policy = f.policy()
	q.failure = f.number("failure", 0, 0, 1)
	duration := f.duration("duration", time.Hour)
	deadline := f.duration("deadline", math.MaxInt64)
	q.inline = f.choice("inline", "no", "yes") == "yes"
	q.model = retryplan.Model{
		Failure:  []float64{q.failure},
		Duration: retryplan.Constant(duration),
		Deadline: deadline,
	}
	q.fleet = f.fleet(duration)
	q.fleet.Deadline = deadline
	q.fleet.Failure = min(q.failure, 0.999) // a fleet that never succeeds has no certificate
	return q, f.bad
}

// form reads a state's texts and collects what is wrong with them.
type form struct {
	values state
	bad    []fault
}

func (f *form) fail(key, text string) { f.bad = append(f.bad, fault{Field: key, Text: text}) }

// known refuses keys that are none of the page's: a mistyped link would otherwise show something else than it says.
func (f *form) known() {
	for key := range f.values {
		if _, ok := defaults[key]; !ok {
			f.fail("", fmt.Sprintf("%q is not a field of this page", shortened(key)))
		}
	}
}

// policy reads the policy by the rules of retryconf, so that a text means here what it means in a document.
func (f *form) policy() retry.Policy {
	spec := retryconf.Spec{Name: f.values["name"]}
	mode := f.choice("mode", "exponential", "linear", "fixed", "list")
	f.text("mode", &spec.Mode)
	f.text("max_attempts", &spec.MaxAttempts)
	f.text("cap", &spec.Cap)
	f.text("jitter", &spec.Jitter)
	f.text("attempt_timeout", &spec.AttemptTimeout)
	f.text("ttl", &spec.TTL)
	f.text("max_hint", &spec.MaxHint)
	f.text("reset_after", &spec.ResetAfter)
	if f.values["jitter"] == "ratio" {
		f.text("jitter_ratio", &spec.JitterRatio)
	}
	switch mode {
	case "list":
		if err := spec.SetDelays(f.values["delays"]); err != nil {
			f.document(err)
		}
	case "fixed":
		f.text("base", &spec.Base)
	default:
		f.text("base", &spec.Base)
		f.text("factor", &spec.Factor)
	}
	if f.bad != nil {
		return retry.Policy{}
	}
	p, err := spec.Policy()
	f.document(err)
	return p
}

// text reads one field of a document.
func (f *form) text(key string, to encoding.TextUnmarshaler) {
	if text := strings.TrimSpace(f.values[key]); text != "" {
		if err := to.UnmarshalText([]byte(text)); err != nil {
			for _, e := range retryconf.FieldErrors(err) {
				f.fail(key, sentence(e.Value, e.Rule))
			}
		}
	}
}

// document notes what retryconf says of a whole document.
func (f *form) document(err error) {
	for _, e := range retryconf.FieldErrors(err) {
		key, _, _ := strings.Cut(e.Path, "[")
		f.fail(key, sentence(e.Value, e.Rule))
	}
}

// fleet reads the fleet. The backend gets the workers that do Capacity attempts a second if each takes the given time.
func (f *form) fleet(duration time.Duration) retryplan.Fleet {
	fleet := retryplan.Fleet{
		Clients:  int(f.whole("clients", 1, 1, maxClients)),
		Rate:     f.number("rate", 10, 0.01, maxRate),
		Capacity: f.number("capacity", 100, 0.01, maxRate),
	}
	fleet.Workers = max(1, int(math.Round(fleet.Capacity*duration.Seconds())))
	fleet.Trigger = f.trigger()
	switch f.choice("budget", "none", "client", "shared") {
	case "shared":
		fleet.Shared = true
		fallthrough
	case "client":
		fleet.Budget = &retry.BudgetConfig{
			Ratio: f.number("budget_ratio", 0.1, 0.001, 1),
			Burst: int(f.whole("budget_burst", 10, 1, 1_000_000)),
		}
	}
	return fleet
}

func (f *form) trigger() retryplan.Trigger {
	kind := f.choice("trigger", "stall", "none", "outage", "slowdown", "capacity_cut", "surge", "failing")
	if kind == "none" {
		return retryplan.Trigger{}
	}
	t := retryplan.Trigger{For: 10 * time.Second}
	if f.values["trigger_length"] != "" {
		t.For = f.duration("trigger_length", maxTrigger)
	}
	switch kind {
	case "stall":
		t.Kind = retryplan.Stall
	case "outage":
		t.Kind = retryplan.Outage
	case "slowdown":
		t.Kind, t.Factor = retryplan.Slowdown, f.number("trigger_factor", 4, 1.01, 1000)
	case "capacity_cut":
		t.Kind, t.Factor = retryplan.CapacityCut, f.number("trigger_factor", 0.2, 0, 0.999)
	case "surge":
		t.Kind, t.Factor = retryplan.Surge, f.number("trigger_factor", 4, 0.01, 100)
	case "failing":
		t.Kind, t.Factor = retryplan.Failing, f.number("trigger_factor", 0.5, 0.001, 1)
	}
	return t
}

// choice returns the field's text, which is one of those given; the first is the default.
func (f *form) choice(key string, texts ...string) string {
	text := f.values[key]
	if text == "" {
		return texts[0]
	}
	for _, t := range texts {
		if t == text {
			return t
		}
	}
	f.fail(key, fmt.Sprintf("%q is not one of %s", shortened(text), strings.Join(texts, ", ")))
	return texts[0]
}

// duration returns a duration of 0 to most, or 0 if none is given.
func (f *form) duration(key string, most time.Duration) time.Duration {
	text := strings.TrimSpace(f.values[key])
	if text == "" {
		return 0
	}
	var d retryconf.Delay
	if err := d.UnmarshalText([]byte(text)); err != nil {
		var e *retryconf.FieldError
		errors.As(err, &e)
		f.fail(key, sentence(e.Value, e.Rule))
		return 0
	}
	if time.Duration(d) > most {
		f.fail(key, fmt.Sprintf("%s is above %s, the most that this page looks at", text, wire.Duration(most).String()))
		return 0
	}
	return time.Duration(d)
}

// number returns a number in [least, most], or otherwise if none is given.
func (f *form) number(key string, otherwise, least, most float64) float64 {
	text := strings.TrimSpace(f.values[key])
	if text == "" {
		return otherwise
	}
	x, err := strconv.ParseFloat(text, 64)
	switch {
	case err != nil || x != x:
		f.fail(key, fmt.Sprintf("%q is not a number", shortened(text)))
	case x < least:
		f.fail(key, fmt.Sprintf("%s is below %v", shortened(text), least))
	case x > most:
		f.fail(key, fmt.Sprintf("%s is above %v", shortened(text), most))
	default:
		return x
	}
	return otherwise
}

// whole is number for whole numbers.
func (f *form) whole(key string, otherwise, least, most float64) float64 {
	x := f.number(key, otherwise, least, most)
	if x != math.Trunc(x) {
		f.fail(key, fmt.Sprintf("%v is not a whole number", x))
		return otherwise
	}
	return x
}

// sentence puts value and rule together. A field of the page is no document: there are no strings to be written in it.
func sentence(value, rule string) string {
	return strings.TrimSpace(value + " " + strings.Replace(rule, "write it as a string such as", "write it as in", 1))
}

// shortened keeps a message readable whatever was sent.
func shortened(text string) string {
	if len(text) <= 40 {
		return text
	}
	return strings.ToValidUTF8(text[:40], "") + "…"
}
