package page

import (
	"cmp"
	_ "embed"
	"encoding/json"
	"fmt"
	"math"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/retrygo/retry"
	"github.com/retrygo/retry/cmd/retryplan/internal/say"
	"github.com/retrygo/retry/retryconf"
	"github.com/retrygo/retry/retryplan"
)

// State is everything that can be set on the page, as the texts in its fields. It is also in the fragment of the page's
// address. An empty text means not given.
type State map[string]string

// policyKeys are the keys of a state that are those of a retryconf document.
var policyKeys = []string{
	"name", "max_attempts", "mode", "base", "factor", "cap", "delays", "jitter", "jitter_ratio", "attempt_timeout", "ttl", "max_hint", "reset_after",
}

// PresetsJSON is the file of the presets, which the page's script reads.
//
//go:embed presets.json
var PresetsJSON []byte

// Presets are the page's buttons. The first sets every key of a state; the page begins with it. The last, the storm, is
// the queue of timed-out work that neither backoff nor jitter cures.
var Presets = func() (all []struct {
	Label string
	State State
}) {
	if err := json.Unmarshal(PresetsJSON, &all); err != nil {
		panic(err)
	}
	return all
}()

// factors are the defaults of trigger_factor for the kinds of triggers that have one.
var factors = map[retryplan.TriggerKind]float64{
	retryplan.Slowdown: 4, retryplan.CapacityCut: 0.2, retryplan.Surge: 4, retryplan.Failing: 0.5,
}

// question is a state that was understood.
type question struct {
	policy  retry.Policy
	model   retryplan.Model
	fleet   retryplan.Fleet
	inline  bool
	clients int // also if they share one budget, and the fleet counts as one client
}

// question returns the question that s asks, or everything that is wrong with s. It ignores fields that a choice leaves
// without a use, such as the list of delays of an exponential policy: the page keeps them in case the choice is changed
// back.
func (s State) question() (question, []Fault) {
	f := form{values: s}
	for key := range s { // a mistyped link would otherwise show something else than it says
		if _, ok := Presets[0].State[key]; !ok {
			f.fail("", fmt.Sprintf("%q is not a field of this page", shortened(key)))
		}
	}
	failure, duration, deadline := f.number("failure", 0, 0, 1), f.duration("duration", 0, time.Hour), f.duration("deadline", 0, math.MaxInt64)
	q := question{
		policy: f.policy(),
		model:  retryplan.Model{Failure: []float64{failure}, Duration: retryplan.Constant(duration), Deadline: deadline},
		inline: f.choice("inline", "no", "yes") == "yes",
		fleet: retryplan.Fleet{
			Clients:  f.count("clients", 1, 100_000),
			Rate:     f.number("rate", 10, 0.01, 10_000),
			Capacity: f.number("capacity", 100, 0.01, 10_000),
			Deadline: deadline,
			Failure:  failure,
			Trigger:  f.trigger(),
		},
	}
	// The backend has as many workers as do Capacity attempts a second if each takes the given time.
	q.fleet.Workers = max(1, int(math.Round(q.fleet.Capacity*duration.Seconds())))
	q.clients = q.fleet.Clients
	budget := f.choice("budget", "none", "client", "shared")
	if budget == "shared" {
		q.fleet.Clients = 1
	}
	if budget != "none" {
		q.fleet.Budget = &retry.BudgetConfig{Ratio: f.number("budget_ratio", 0.1, 0.001, 1), Burst: f.count("budget_burst", 10, 1_000_000)}
	}
	return q, f.bad
}

// form reads the texts of a state and collects the faults in them.
type form struct {
	values State
	bad    []Fault
}

func (f *form) fail(key, text string) { f.bad = append(f.bad, Fault{Field: key, Text: text}) }

// given returns the text of a field without the blanks around it.
func (f *form) given(key string) string { return strings.TrimSpace(f.values[key]) }

// policy reads the policy with retryconf, so that a text means the same as in a document.
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

// retryconf adds the errors of retryconf, to the field key if it is not empty.
func (f *form) retryconf(key string, err error) {
	for _, e := range say.Fields(err) {
		named, _, _ := strings.Cut(strings.ToLower(e.Field), "[")
		f.fail(cmp.Or(key, named), sentence(e.Value, e.Rule))
	}
}

func (f *form) trigger() (t retryplan.Trigger) {
	name := cmp.Or(f.given("trigger"), "stall")
	if name == "none" {
		return t
	}
	kind, err := say.Parse(retryplan.Stall, retryplan.Failing, shortened(name))
	if err != nil {
		f.fail("trigger", err.Error())
	}
	t.Kind, t.For = kind, f.duration("trigger_length", 10*time.Second, time.Hour)
	if factor, ok := factors[kind]; ok {
		t.Factor = f.number("trigger_factor", factor, 0, 1000)
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

// count returns the field's whole number of 1 to most.
func (f *form) count(key string, otherwise, most int) int {
	x := f.number(key, float64(otherwise), 1, float64(most))
	if x != math.Trunc(x) {
		f.fail(key, fmt.Sprintf("%v is not a whole number", x))
	}
	return int(x)
}

// number returns the field's number, which is between least and most, or otherwise if none is given. A page that redraws
// as a slider moves has no time for larger fleets; the command line has.
func (f *form) number(key string, otherwise, least, most float64) float64 {
	text := f.given(key)
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
	}
	return x
}

// sentence returns value and rule. A field of the page, unlike one of a document, needs no quotes.
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
