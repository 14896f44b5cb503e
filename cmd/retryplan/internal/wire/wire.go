// Package wire is the JSON of command retryplan: what --json prints, and what the page of retryplan serve sends and
// receives.
//
// What goes in is text, as in documents of retryconf: durations such as "1m30s", distributions such as "exponential
// 10ms". What comes out is numbers: durations are float64 seconds under keys that end in _seconds, probabilities and
// shares are in [0,1]. A time that never comes is null, and so is one without a bound. A reason, a level or a verdict
// is its name; success, which has no reason, is "succeeded".
package wire

import (
	"encoding/json"
	"fmt"
	"math"
	"strings"
	"time"
	"unicode"

	"github.com/retrygo/retry"
)

// Duration is a length of time that reads and writes itself as text: "1m30s". Unlike that of retryconf it may be "0s",
// and negative, for the package that is asked to refuse.
type Duration time.Duration

// MarshalText returns the duration as text, without zero units at its end: "1h".
func (d Duration) MarshalText() ([]byte, error) { return []byte(d.String()), nil }

// UnmarshalText reads a duration with its unit, or 0.
func (d *Duration) UnmarshalText(text []byte) error {
	parsed, err := time.ParseDuration(string(text))
	if err != nil {
		return fmt.Errorf("%q is no duration such as 30s, 1m30s or 250ms", text)
	}
	*d = Duration(parsed)
	return nil
}

// String returns the duration as text, without zero units at its end: "1h".
func (d Duration) String() string {
	text := time.Duration(d).String()
	for _, zero := range []string{"m0s", "h0m"} {
		if strings.HasSuffix(text, zero) {
			text = text[:len(text)-len("0s")]
		}
	}
	return text
}

// Number is a number that is null if it is not finite, since JSON has no such numbers.
type Number float64

// MarshalJSON returns the number as JSON.
func (n Number) MarshalJSON() ([]byte, error) {
	if math.IsNaN(float64(n)) || math.IsInf(float64(n), 0) {
		return []byte("null"), nil
	}
	return json.Marshal(float64(n))
}

// inSeconds returns the seconds of d, infinitely many of the largest Duration, which stands for one that has no bound.
func inSeconds(d time.Duration) Number {
	if d == math.MaxInt64 {
		return Number(math.Inf(1))
	}
	return Number(d.Seconds())
}

// never returns the seconds of d, nil for a negative one, which stands for what never happens.
func never(d time.Duration) *float64 {
	if d < 0 {
		return nil
	}
	s := d.Seconds()
	return &s
}

// Reason returns the name of a reason, "succeeded" for none.
func Reason(r retry.Reason) string {
	if r == 0 {
		return "succeeded"
	}
	return r.Error()
}

// byName returns counts or shares under the names of their reasons.
func byName[V any](endings map[retry.Reason]V) map[string]V {
	named := make(map[string]V, len(endings))
	for reason, v := range endings {
		named[Reason(reason)] = v
	}
	return named
}

// Error is what went wrong.
type Error struct {
	Error  string  `json:"error"`            // all of it, on one line
	Fields []Field `json:"fields,omitempty"` // what of it is the fault of one field
}

// Field is one bad field.
type Field struct {
	Field string `json:"field"` // "Scenario.Clients", "Policy.Base", "max_attempts"
	Value string `json:"value,omitempty"`
	Rule  string `json:"rule"`
}

// OneLine returns text on one line, without control characters that a terminal would obey. A line break becomes "; ",
// or a space after a colon; other white space becomes a space; and what does not print is left out.
func OneLine(text string) string {
	var b strings.Builder
	for line := range strings.FieldsFuncSeq(text, func(r rune) bool { return r == '\n' || r == '\r' || r == 0x85 || r == 0x2028 || r == 0x2029 }) {
		line = strings.Join(strings.Fields(strings.Map(func(r rune) rune {
			switch {
			case unicode.IsSpace(r):
				return ' '
			case !unicode.IsPrint(r):
				return -1
			}
			return r
		}, line)), " ")
		switch {
		case line == "":
			continue
		case b.Len() == 0:
		case strings.HasSuffix(b.String(), ":"):
			b.WriteByte(' ')
		default:
			b.WriteString("; ")
		}
		b.WriteString(line)
	}
	return b.String()
}
