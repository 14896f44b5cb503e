package say

import (
	"cmp"
	"fmt"
	"strconv"
	"strings"
	"time"

	"github.com/retrygo/retry/retryplan"
)

// Parse returns the value, from first to last, whose String is the name. A hyphen in the name stands for an underscore.
func Parse[K interface {
	~uint8
	fmt.Stringer
}](first, last K, name string) (K, error) {
	var names []string
	for v := first; v <= last; v++ {
		if v.String() == strings.ReplaceAll(name, "-", "_") {
			return v, nil
		}
		names = append(names, v.String())
	}
	return 0, fmt.Errorf("%q is not one of %s", name, strings.Join(names, ", "))
}

// ParseTrigger reads what Trigger writes. Without "at" the trigger begins at once.
func ParseTrigger(text string) (t retryplan.Trigger, err error) {
	if text == "none" {
		return t, nil
	}
	what, from, timed := strings.Cut(text, " at ")
	words := append(strings.Fields(what), "")
	if t.Kind, err = Parse(retryplan.Stall, retryplan.Failing, words[0]); err != nil {
		return t, err
	}
	factor := "0"
	if words = words[1 : len(words)-1]; len(words) > 0 && factored(t.Kind) {
		factor, words = words[len(words)-1], words[:len(words)-1]
	}
	if len(words) != 1 {
		return t, fmt.Errorf(`%q is not a trigger such as "stall 10s" or "surge 10s 3 at 60s": kind, length, the factor of kinds that have one, and from when`, text)
	}
	if !timed {
		from = "0"
	}
	var wrong [3]error
	t.For, wrong[0] = time.ParseDuration(words[0])
	t.From, wrong[1] = time.ParseDuration(strings.TrimSpace(from))
	if t.Factor, err = strconv.ParseFloat(factor, 64); err != nil {
		wrong[2] = fmt.Errorf("factor %q is not a number", factor)
	}
	return t, cmp.Or(wrong[:]...)
}

// Trigger returns a trigger as text: "surge 10s 3 at 1m", "stall 10s" for one that begins at once, "none" for none.
func Trigger(t retryplan.Trigger) string {
	if t.Kind == 0 {
		return "none"
	}
	text := t.Kind.String() + " " + Duration(t.For)
	if factored(t.Kind) {
		text += " " + strconv.FormatFloat(t.Factor, 'g', -1, 64)
	}
	if t.From != 0 {
		text += " at " + Duration(t.From)
	}
	return text
}

// factored reports whether triggers of a kind have a factor.
func factored(k retryplan.TriggerKind) bool { return k != retryplan.Stall && k != retryplan.Outage }
