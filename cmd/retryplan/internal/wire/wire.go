// Package wire is the JSON of command retryplan: what --json prints, and some of what the page of retryplan serve sends.
//
// What goes in is text, as in documents of retryconf: durations such as "1m30s", distributions such as "exponential
// 10ms". What comes out is numbers: durations are float64 seconds under keys that end in _seconds, probabilities and
// shares are in [0,1]. A time that never comes is null, and so is one without a bound. A reason, a level or a verdict
// is its name; success, which has no reason, is "succeeded".
package wire

import (
	"fmt"
	"strings"
	"time"
	"unicode"

	"github.com/retrygo/retry"
	"github.com/retrygo/retry/retryplan"
)

// Duration is a length of time that reads and writes itself as text: "1m30s". Unlike that of retryconf it may be "0s",
// and negative, for the package that is asked to refuse.
type Duration time.Duration

// MarshalText returns String.
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

// Reason returns the name of a reason, "succeeded" for none.
func Reason(r retry.Reason) string {
	if r == 0 {
		return "succeeded"
	}
	return r.Error()
}

// Schedule returns p on one line without its name, which stands elsewhere.
func Schedule(p retry.Policy) string {
	p.Name = ""
	return p.String()
}

// Finding is one finding of lint.
type Finding struct {
	Code    string         `json:"code"`
	Level   string         `json:"level"` // note, warning, severe
	Text    string         `json:"text"`
	Change  string         `json:"change"`
	Figures map[string]any `json:"figures,omitempty"`
	File    string         `json:"file,omitempty"` // of lint
	Line    int            `json:"line,omitempty"`
}

// NewFindings returns findings as data: an empty list, not null, if there are none.
func NewFindings(findings []retryplan.Finding) []Finding {
	list := make([]Finding, len(findings))
	for i, f := range findings {
		list[i] = Finding{Code: f.Code, Level: f.Level.String(), Text: f.Text, Change: f.Change, Figures: map[string]any{}}
		for key, x := range f.Figures {
			list[i].Figures[key] = finite(x)
		}
	}
	return list
}

// Fields returns every bad field that err names: errors.As would find the first only.
func Fields(err error) (found []*retry.FieldError) {
	switch e := err.(type) {
	case *retry.FieldError:
		return []*retry.FieldError{e}
	case interface{ Unwrap() []error }:
		for _, inner := range e.Unwrap() {
			found = append(found, Fields(inner)...)
		}
	case interface{ Unwrap() error }:
		return Fields(e.Unwrap())
	}
	return found
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
