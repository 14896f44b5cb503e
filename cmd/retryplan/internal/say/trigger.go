package say

import (
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

// ParseTrigger reads "stall 10s", "surge 10s 3" or "none": the kind, the length, and the factor of kinds that have one.
func ParseTrigger(text string) (t retryplan.Trigger, err error) {
	if text == "none" {
		return t, nil
	}
	words := strings.Fields(text)
	if len(words) == 0 {
		words = []string{""}
	}
	if t.Kind, err = Parse(retryplan.Stall, retryplan.Failing, words[0]); err != nil {
		return t, err
	}
	switch {
	case len(words) == 2 && !factored(t.Kind):
	case len(words) == 3 && factored(t.Kind):
		if t.Factor, err = strconv.ParseFloat(words[2], 64); err != nil {
			return t, fmt.Errorf("factor %q is not a number", words[2])
		}
	default:
		return t, fmt.Errorf(`%q is not a trigger such as "stall 10s" or "surge 10s 3": kind, length, and the factor of kinds that have one`, text)
	}
	t.For, err = time.ParseDuration(words[1])
	return t, err
}

// Trigger returns a trigger as text: "surge 10s 3", or "none".
func Trigger(t retryplan.Trigger) string {
	if t.Kind == 0 {
		return "none"
	}
	text := t.Kind.String() + " " + Duration(t.For)
	if factored(t.Kind) {
		text += " " + strconv.FormatFloat(t.Factor, 'g', -1, 64)
	}
	return text
}

// factored reports whether triggers of a kind have a factor.
func factored(k retryplan.TriggerKind) bool { return k != retryplan.Stall && k != retryplan.Outage }
