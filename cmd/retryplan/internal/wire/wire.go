// Package wire is the JSON of command retryplan: what --json prints, and some of what the page of retryplan serve sends.
//
// Documents have text, as those of retryconf do: durations such as "1m30s". The output has numbers: durations are
// float64 seconds under keys that end in _seconds, probabilities and shares are in [0,1]. A time that never comes and one
// without a bound are null. A reason, a level or a stability is its name; success, which has no reason, is "succeeded".
// A distribution of a scenario is text, such as "exponential 10ms".
package wire

import (
	"errors"
	"fmt"
	"strings"
	"time"
	"unicode"

	"github.com/retrygo/retry"
	"github.com/retrygo/retry/retryplan"
)

// Duration is a time.Duration whose text is short: "1h". Unlike those of retryconf it may be "0s" or negative; the
// package that uses it checks that.
type Duration time.Duration

// MarshalText returns String.
func (d Duration) MarshalText() ([]byte, error) { return []byte(d.String()), nil }

// UnmarshalText reads a duration with its unit, or 0.
func (d *Duration) UnmarshalText(text []byte) error {
	parsed, err := time.ParseDuration(string(text))
	if err != nil {
		return fmt.Errorf("%q is not a duration such as 30s, 1m30s or 250ms", text)
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
	Code   string `json:"code"`
	Level  string `json:"level"` // note, warning, severe
	Text   string `json:"text"`
	Change string `json:"change"`
	File   string `json:"file,omitempty"` // of lint
	Line   int    `json:"line,omitempty"`
}

// NewFindings returns findings as data. If there are none it returns an empty list, not nil.
func NewFindings(findings []retryplan.Finding) []Finding {
	list := make([]Finding, len(findings))
	for i, f := range findings {
		list[i] = Finding{Code: f.Code, Level: f.Level.String(), Text: f.Text, Change: f.Change}
	}
	return list
}

// Fields returns every bad field of err: errors.As would find only the first.
func Fields(err error) (found []*retry.FieldError) {
	all, ok := errors.AsType[retry.FieldErrors](err)
	if !ok {
		all = retry.FieldErrors{err}
	}
	for _, one := range all {
		if bad, ok := errors.AsType[*retry.FieldError](one); ok {
			found = append(found, bad)
		}
	}
	return found
}

// OneLine returns text on one line, without control characters that a terminal would obey. A line break becomes "; ",
// or a space after a colon; other white space becomes a space.
func OneLine(text string) string {
	var lines []string
	for line := range strings.FieldsFuncSeq(text, func(r rune) bool { return strings.ContainsRune("\n\r\u0085\u2028\u2029", r) }) {
		words := strings.Fields(strings.Map(func(r rune) rune {
			switch {
			case unicode.IsSpace(r):
				return ' '
			case !unicode.IsPrint(r):
				return -1
			}
			return r
		}, line))
		if len(words) > 0 {
			lines = append(lines, strings.Join(words, " "))
		}
	}
	return strings.ReplaceAll(strings.Join(lines, "; "), ":; ", ": ")
}
