package wire

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

// ParseTrigger reads "stall 60s 10s": the kind, from when and for how long; and the factor of kinds that have one, as in
// "surge 60s 10s 3".
func ParseTrigger(text string) (retryplan.Trigger, error) {
	return parseTrigger(text, 2, `such as "stall 60s 10s" (kind, from, for) or "surge 60s 10s 3" (kind, from, for, factor)`)
}

// ParseLasting reads "stall 10s": a trigger without its place in time. It also reads what ParseTrigger does.
func ParseLasting(text string) (retryplan.Trigger, error) {
	return parseTrigger(text, 1, `such as "stall 10s" (kind, for) or "surge 10s 3" (kind, for, factor)`)
}

// parseTrigger reads a trigger with two durations, or with one if least is 1.
func parseTrigger(text string, least int, such string) (t retryplan.Trigger, err error) {
	wrong := fmt.Errorf("%q is not a trigger %s", text, such)
	words := strings.Fields(text)
	if len(words) == 0 {
		return t, wrong
	}
	if t.Kind, err = Parse(retryplan.Stall, retryplan.Failing, words[0]); err != nil {
		return t, err
	}
	words = words[1:]
	if last := len(words) - 1; factored(t.Kind) && last >= 0 {
		if t.Factor, err = strconv.ParseFloat(words[last], 64); err != nil {
			return t, fmt.Errorf("factor %q is not a number", words[last])
		}
		words = words[:last]
	}
	if len(words) < least || len(words) > 2 {
		return t, wrong
	}
	for i, to := range []*time.Duration{&t.From, &t.For}[2-len(words):] {
		if err := (*Duration)(to).UnmarshalText([]byte(words[i])); err != nil {
			return t, err
		}
	}
	return t, nil
}

// Trigger returns the text that ParseTrigger reads.
func Trigger(t retryplan.Trigger) string { return written(t, t.From, t.For) }

// Lasting returns the text that ParseLasting reads, and "none" for no trigger.
func Lasting(t retryplan.Trigger) string {
	if t.Kind == 0 {
		return "none"
	}
	return written(t, t.For)
}

func written(t retryplan.Trigger, times ...time.Duration) string {
	text := t.Kind.String()
	for _, d := range times {
		text += " " + Duration(d).String()
	}
	if factored(t.Kind) {
		text += " " + strconv.FormatFloat(t.Factor, 'g', -1, 64)
	}
	return text
}

// factored reports whether triggers of a kind have a factor.
func factored(k retryplan.TriggerKind) bool { return k != retryplan.Stall && k != retryplan.Outage }
