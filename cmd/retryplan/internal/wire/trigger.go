package wire

import (
	"fmt"
	"strconv"
	"strings"
	"time"

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

// parseTrigger reads a trigger with two durations, or with one if least is 1.
func parseTrigger(text string, least int, such string) (t retryplan.Trigger, err error) {
	kind, rest, _ := strings.Cut(strings.TrimSpace(text), " ")
	if kind != "" {
		if t.Kind, err = Parse(retryplan.Stall, retryplan.Failing, kind); err != nil {
			return t, err
		}
	}
	words, factor := strings.Fields(rest), ""
	if n := len(words); n > 0 && factored(t.Kind) {
		words, factor = words[:n-1], words[n-1]
	}
	if len(words) < least || len(words) > 2 {
		return t, fmt.Errorf("%q is no trigger %s", text, such)
	}
	if factor != "" {
		if t.Factor, err = strconv.ParseFloat(factor, 64); err != nil {
			return t, fmt.Errorf("factor %q is no number", factor)
		}
	}
	for i, to := range []*time.Duration{&t.From, &t.For}[2-len(words):] {
		if err := (*Duration)(to).UnmarshalText([]byte(words[i])); err != nil {
			return t, err
		}
	}
	return t, nil
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
