// Package say has the words and figures that the terminal and the page have in common.
package say

import (
	"errors"
	"math"
	"strconv"
	"strings"
	"time"
	"unicode"

	"github.com/retrygo/retry"
)

// Duration returns a duration as text, without zero units at its end: "1h".
func Duration(d time.Duration) string {
	text := d.String()
	for _, zero := range []string{"m0s", "h0m"} {
		if strings.HasSuffix(text, zero) {
			text = text[:len(text)-len("0s")]
		}
	}
	return text
}

// Span returns a duration for a reader: exact if that is short, otherwise to four digits, or to the second.
func Span(d time.Duration) string {
	if d == math.MaxInt64 {
		return "unbounded"
	}
	if exact := Duration(d); len(exact) <= len("1m23.5s") {
		return exact
	}
	unit := time.Nanosecond
	for d.Abs() >= 10_000*unit && unit < time.Second {
		unit *= 10
	}
	return Duration(d.Round(unit))
}

// Between returns "1s" or "1s..2s".
func Between(lo, hi time.Duration) string {
	if lo == hi {
		return Span(lo)
	}
	return Span(lo) + ".." + Span(hi)
}

// Noise is the largest rounding error of a probability that is 0 or 1.
const Noise = 1e-12

// Percent returns a probability. It shows 0 and 100 % for certainty alone.
func Percent(p float64) string {
	switch {
	case math.Abs(p) < Noise:
		return "0%"
	case math.Abs(1-p) < Noise:
		return "100%"
	case p > 0 && p < 0.5e-6:
		return "<0.0001%"
	case p < 1 && p > 1-0.5e-6:
		return ">99.9999%"
	}
	return Number(math.Round(p*1e6)/1e4) + "%"
}

// Number returns a number with up to four digits that matter, and whole ones in full.
func Number(x float64) string {
	if x == math.Trunc(x) || math.Abs(x) >= 1000 {
		return strconv.FormatFloat(x, 'f', 0, 64)
	}
	digits := 4
	if x > 99 && x < 100 {
		digits = 6 // nines count
	}
	s := strconv.FormatFloat(x, 'g', digits, 64)
	if strings.ContainsRune(s, '.') && !strings.ContainsRune(s, 'e') {
		s = strings.TrimRight(strings.TrimRight(s, "0"), ".")
	}
	return s
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
