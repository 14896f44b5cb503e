package wire

import (
	"fmt"
	"strconv"
	"strings"

	"github.com/retrygo/retry/retryplan"
)

// Parse returns the value of an enumeration from first to last that has a name, which may have hyphens for underscores.
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

// ParseTrigger reads "stall 60s 10s": the kind, from when and for how long, and for the kinds that have one a factor,
// as in "surge 60s 10s 3".
func ParseTrigger(text string) (retryplan.Trigger, error) {
	return parseTrigger(text, 2, `such as "stall 60s 10s" (kind, from, for) or "surge 60s 10s 3" (kind, from, for, factor)`)
}

// ParseLasting reads "stall 10s": a trigger without its place in time. It reads what ParseTrigger does, too.
func ParseLasting(text string) (retryplan.Trigger, error) {
	return parseTrigger(text, 1, `such as "stall 10s" (kind, for) or "surge 10s 3" (kind, for, factor)`)
}

// parseTrigger reads a trigger with so many durations.
func parseTrigger(text string, durations int, such string) (t retryplan.Trigger, err error) {
	words := strings.Fields(text)
	if len(words) == 0 {
		return t, fmt.Errorf("%q is no trigger %s", text, such)
	}
	if t.Kind, err = Parse(retryplan.Stall, retryplan.Failing, words[0]); err != nil {
		return t, err
	}
	n := 1 + durations
	if factored(t.Kind) {
		n++
	}
	if durations == 1 && len(words) == n+1 { // the trigger of a simulation, whose from does not matter here
		durations, n = 2, n+1
	}
	if len(words) != n {
		return t, fmt.Errorf("%q is no trigger %s", text, such)
	}
	if factored(t.Kind) {
		if t.Factor, err = strconv.ParseFloat(words[n-1], 64); err != nil {
			return t, fmt.Errorf("factor %q is no number", words[n-1])
		}
	}
	if durations == 2 {
		if err := (*Duration)(&t.From).UnmarshalText([]byte(words[1])); err != nil {
			return t, err
		}
	}
	return t, (*Duration)(&t.For).UnmarshalText([]byte(words[durations]))
}

// Trigger returns what ParseTrigger reads.
func Trigger(t retryplan.Trigger) string { return written(t, Duration(t.From).String()+" ") }

// Lasting returns what ParseLasting reads, and "none" for no trigger.
func Lasting(t retryplan.Trigger) string {
	if t.Kind == 0 {
		return "none"
	}
	return written(t, "")
}

func written(t retryplan.Trigger, from string) string {
	text := fmt.Sprintf("%v %s%v", t.Kind, from, Duration(t.For))
	if factored(t.Kind) {
		text += " " + strconv.FormatFloat(t.Factor, 'g', -1, 64)
	}
	return text
}

// factored reports whether triggers of the kind have a factor.
func factored(k retryplan.TriggerKind) bool { return k != retryplan.Stall && k != retryplan.Outage }
