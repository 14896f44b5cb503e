package wire

import (
	"fmt"
	"strings"

	"github.com/retrygo/retry/retryplan"
)

// The values of the enumerations, each of which prints its name.
var (
	levels = []retryplan.Level{retryplan.Note, retryplan.Warning, retryplan.Severe}
	kinds  = []retryplan.TriggerKind{retryplan.Stall, retryplan.Outage, retryplan.Slowdown, retryplan.CapacityCut, retryplan.Surge,
		retryplan.Failing}
	sheds = []retryplan.Shed{retryplan.ShedNothing, retryplan.ShedExpired, retryplan.ShedHopeless}
)

// ParseLevel reads "note", "warning" or "severe".
func ParseLevel(text string) (retryplan.Level, error) { return parse(levels, text) }

// ParseKind reads "stall", "outage", "slowdown", "capacity_cut", "surge" or "failing", with a hyphen as well.
func ParseKind(text string) (retryplan.TriggerKind, error) { return parse(kinds, text) }

// ParseShed reads "nothing", "expired" or "hopeless"; "" is nothing.
func ParseShed(text string) (retryplan.Shed, error) {
	if text == "" {
		return retryplan.ShedNothing, nil
	}
	return parse(sheds, text)
}

// parse returns which of the values has the name.
func parse[K fmt.Stringer](values []K, name string) (K, error) {
	for _, v := range values {
		if v.String() == strings.ReplaceAll(name, "-", "_") {
			return v, nil
		}
	}
	var none K
	return none, fmt.Errorf("%q %s", name, oneOf(values))
}

// oneOf returns the rule that a name which is none of the values' breaks.
func oneOf[K fmt.Stringer](values []K) string {
	names := make([]string, len(values))
	for i, v := range values {
		names[i] = v.String()
	}
	return "is not one of " + strings.Join(names, ", ")
}
