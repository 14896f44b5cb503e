package jobsui

import (
	"fmt"
	"strconv"
	"strings"
	"time"
	"unicode"
	"unicode/utf16"
)

// Escape returns a text without characters that a terminal would interpret or that reorder the text around them:
// characters that are not printable become \uXXXX, as JSON writes them in strings, and bytes that are not UTF-8 become
// U+FFFD. Line feeds, tabs and spaces of all kinds stay.
func Escape(text string) string {
	var b strings.Builder
	for _, r := range text {
		switch {
		case r == '\n' || r == '\t' || unicode.IsPrint(r) || unicode.Is(unicode.Zs, r):
			b.WriteRune(r)
		case r > 0xffff:
			high, low := utf16.EncodeRune(r)
			fmt.Fprintf(&b, `\u%04x\u%04x`, high, low)
		default:
			fmt.Fprintf(&b, `\u%04x`, r)
		}
	}
	return b.String()
}

// duration returns d to three digits or so.
func duration(d time.Duration) string {
	for _, unit := range []time.Duration{time.Second, 10 * time.Millisecond, time.Millisecond, time.Microsecond} {
		if d >= 100*unit {
			return d.Round(unit).String()
		}
	}
	return d.Round(time.Microsecond).String()
}

// Ago returns the distance of a time from now, such as "3m ago", "in 2h" and "now".
func Ago(at, now time.Time) string {
	d := now.Sub(at)
	n, unit := d.Abs()/time.Second, "s"
	switch {
	case n >= 48*60*60:
		n, unit = n/(24*60*60), "d"
	case n >= 100*60:
		n, unit = n/(60*60), "h"
	case n >= 100:
		n, unit = n/60, "m"
	}
	switch {
	case n == 0:
		return "now"
	case d < 0:
		return fmt.Sprintf("in %d%s", n, unit)
	}
	return fmt.Sprintf("%d%s ago", n, unit)
}

// stamp returns a time in UTC to the second.
func stamp(at time.Time) string { return at.UTC().Format(time.DateTime) + "Z" }

// number returns n with a comma before each thousand.
func number(n int) string {
	digits := strconv.Itoa(n)
	for i := len(digits) - 3; i > 0; i -= 3 {
		digits = digits[:i] + "," + digits[i:]
	}
	return digits
}

// plural returns "1 job", "1,000 jobs".
func plural(n int) string {
	if n == 1 {
		return "1 job"
	}
	return number(n) + " jobs"
}

// times returns "once", "3 times", and "" for 0.
func times(n int) string {
	switch n {
	case 0:
		return ""
	case 1:
		return "once"
	default:
		return number(n) + " times"
	}
}
