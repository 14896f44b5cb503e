package web

import (
	"cmp"
	"fmt"
	"math"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/retrygo/retry"
	"github.com/retrygo/retry/cmd/retryplan/internal/say"
	"github.com/retrygo/retry/cmd/retryplan/internal/wire"
	"github.com/retrygo/retry/retryconf"
	"github.com/retrygo/retry/retryplan"
)

// state is everything that can be set on the page, as the texts in its fields: what stands in the fragment of its
// address and what it asks about. An empty text means not given.
type state map[string]string

// policyKeys are the keys of a state that are those of a retryconf document.
var policyKeys = []string{
	"name", "max_attempts", "mode", "base", "factor", "cap", "delays", "jitter", "jitter_ratio", "attempt_timeout", "ttl", "max_hint", "reset_after",
}

// limits are between which numbers a field's is, and what counts if none is given.
type limits struct {
	otherwise, least, most float64
	whole                  bool
}

// numbers are the limits of the fields. A page that redraws as a slider moves has no time for larger fleets, and the
// command line has.
var numbers = map[string]limits{
	"failure": {most: 1}, "clients": {1, 1, 100_000, true}, "rate": {10, 0.01, 10_000, false}, "capacity": {100, 0.01, 10_000, false},
	"budget_ratio": {0.1, 0.001, 1, false}, "budget_burst": {10, 1, 1_000_000, true},
}

// factors are the limits of trigger_factor, for the kinds that have one.
var factors = map[retryplan.TriggerKind]limits{
	retryplan.Slowdown: {4, 1.01, 1000, false}, retryplan.CapacityCut: {0.2, 0, 0.999, false},
	retryplan.Surge: {4, 0.01, 100, false}, retryplan.Failing: {0.5, 0.001, 1, false},
}

// question is a state that was understood.
type question struct {
	policy retry.Policy
	model  retryplan.Model
	fleet  retryplan.Fleet
	inline bool
}

// question returns what s asks, or what is wrong with it, all at once. Fields that a choice leaves without a use, as a
// list of delays is to an exponential policy, are not looked at: the page keeps them for when the choice is changed
// back.
func (s state) question() (question, []fault) {
	f := form{values: s}
	for key := range s { // a mistyped link would otherwise show something else than it says
		if _, ok := defaults[key]; !ok {
			f.fail("", fmt.Sprintf("%q is not a field of this page", shortened(key)))
		}
	}
	failure, duration, deadline := f.number("failure", numbers["failure"]), f.duration("duration", 0, time.Hour), f.duration("deadline", 0, math.MaxInt64)
	q := question{
		policy: f.policy(),
		model:  retryplan.Model{Failure: []float64{failure}, Duration: retryplan.Constant(duration), Deadline: deadline},
		inline: f.choice("inline", "no", "yes") == "yes",
		fleet: retryplan.Fleet{
			Clients:  int(f.number("clients", numbers["clients"])),
			Rate:     f.number("rate", numbers["rate"]),
			Capacity: f.number("capacity", numbers["capacity"]),
			Deadline: deadline,
			Failure:  min(failure, 0.999), // a fleet that never succeeds has no certificate
			Trigger:  f.trigger(),
		},
	}
	// The backend gets the workers that do Capacity attempts a second if each takes the given time.
	q.fleet.Workers = max(1, int(math.Round(q.fleet.Capacity*duration.Seconds())))
	if budget := f.choice("budget", "none", "client", "shared"); budget != "none" {
		q.fleet.Shared = budget == "shared"
		q.fleet.Budget = &retry.BudgetConfig{
			Ratio: f.number("budget_ratio", numbers["budget_ratio"]), Burst: int(f.number("budget_burst", numbers["budget_burst"])),
		}
	}
	return q, f.bad
}

// form reads a state's texts and collects what is wrong with them.
type form struct {
	values state
	bad    []fault
}

func (f *form) fail(key, text string) { f.bad = append(f.bad, fault{Field: key, Text: text}) }

// given returns the text of a field without the blanks around it.
func (f *form) given(key string) string { return strings.TrimSpace(f.values[key]) }

// policy reads the policy by the rules of retryconf, so that a text means here what it means in a document.
func (f *form) policy() retry.Policy {
	unused, ok := map[string][]string{"list": {"base", "factor"}, "fixed": {"factor", "delays"}}[f.given("mode")]
	if !ok {
		unused = []string{"delays"}
	}
	if f.given("jitter") != "ratio" {
		unused = append(unused, "jitter_ratio")
	}
	var environ []string
	for _, key := range policyKeys {
		if text := f.given(key); !slices.Contains(unused, key) && (text != "" || key == "delays") {
			environ = append(environ, strings.ToUpper(key)+"="+text)
		}
	}
	spec, err := retryconf.FromEnviron("", environ)
	f.retryconf("", err)
	if err != nil {
		return retry.Policy{}
	}
	p, err := spec.Policy()
	f.retryconf("", err)
	return p
}

// retryconf notes what retryconf says of a field, or of those that it names.
func (f *form) retryconf(key string, err error) {
	for _, e := range retryconf.FieldErrors(err) {
		named, _, _ := strings.Cut(strings.ToLower(e.Path), "[")
		f.fail(cmp.Or(key, named), sentence(e.Value, e.Rule))
	}
}

func (f *form) trigger() (t retryplan.Trigger) {
	name := cmp.Or(f.given("trigger"), "stall")
	if name == "none" {
		return t
	}
	kind, err := wire.Parse(retryplan.Stall, retryplan.Failing, shortened(name))
	if err != nil {
		f.fail("trigger", err.Error())
	}
	t.Kind, t.For = kind, f.duration("trigger_length", 10*time.Second, time.Hour)
	if limits, ok := factors[kind]; ok {
		t.Factor = f.number("trigger_factor", limits)
	}
	return t
}

// choice returns the field's text, which is one of those given; the first is the default.
func (f *form) choice(key string, texts ...string) string {
	text := cmp.Or(f.given(key), texts[0])
	if !slices.Contains(texts, text) {
		f.fail(key, fmt.Sprintf("%q is not one of %s", shortened(text), strings.Join(texts, ", ")))
	}
	return text
}

// duration returns a duration of 0 to most, or otherwise if none is given.
func (f *form) duration(key string, otherwise, most time.Duration) time.Duration {
	text := f.given(key)
	if text == "" {
		return otherwise
	}
	var d retryconf.Delay
	f.retryconf(key, d.UnmarshalText([]byte(text)))
	if time.Duration(d) > most {
		f.fail(key, fmt.Sprintf("%s is above %s, the most that this page looks at", text, say.Span(most)))
	}
	return time.Duration(d)
}

// number returns the field's number.
func (f *form) number(key string, within limits) float64 {
	text := f.given(key)
	if text == "" {
		return within.otherwise
	}
	x, err := strconv.ParseFloat(text, 64)
	switch {
	case err != nil || x != x:
		f.fail(key, fmt.Sprintf("%q is not a number", shortened(text)))
	case x < within.least:
		f.fail(key, fmt.Sprintf("%s is below %v", shortened(text), within.least))
	case x > within.most:
		f.fail(key, fmt.Sprintf("%s is above %v", shortened(text), within.most))
	case within.whole && x != math.Trunc(x):
		f.fail(key, fmt.Sprintf("%v is not a whole number", x))
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
