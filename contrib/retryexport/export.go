// Package retryexport describes a retry.Policy in the terms of another library's own retries. It is for adapters that
// hand a policy over to a library whose settings cannot express all of it, such as a workflow engine or an SDK.
//
// [Lost] lists the fields that such a library does not keep. [SeriesOf] finds the geometric series that is nearest to a
// policy's waits, for libraries with a first wait, a factor and a maximum.
//
// This package may change until it says otherwise.
package retryexport

import (
	"fmt"
	"math"
	"strconv"
	"strings"
	"time"

	"github.com/retrygo/retry"
)

// Lost returns a line for each field of p that a library does not keep, such as "Policy.TTL 1m: an attempt starts at any time".
// The lines are in the order of the fields of retry.Policy. says has the end of each line, by the name of the field. A
// field without an entry is kept, and has no line.
//
// A field that is zero in p has no line either, except for the fields of a schedule, MaxAttempts, Mode, Delays, Cap,
// Jitter and JitterRatio. These always have a default in force, and their lines show the value in force.
func Lost(p retry.Policy, says map[string]string) (lines []string) {
	line := func(set bool, field, value string) {
		if rest, lost := says[field]; lost && set {
			lines = append(lines, "Policy."+field+" "+value+": "+rest)
		}
	}
	q := p.Effective()
	attempts := strconv.Itoa(q.MaxAttempts)
	if q.MaxAttempts == retry.Unlimited {
		attempts = "Unlimited"
	}
	line(p.Name != "", "Name", strconv.Quote(p.Name))
	line(true, "MaxAttempts", attempts)
	line(true, "Mode", q.Mode.String())
	line(true, "Cap", Short(q.Cap))
	line(true, "Delays", fmt.Sprintf("of %d entries", len(q.Delays)))
	line(true, "Jitter", q.Jitter.String())
	line(true, "JitterRatio", fmt.Sprint(q.JitterRatio))
	for _, limit := range []struct {
		field string
		value time.Duration
	}{{"AttemptTimeout", p.AttemptTimeout}, {"TTL", p.TTL}, {"MaxHint", p.MaxHint}, {"ResetAfter", p.ResetAfter}} {
		line(limit.value > 0, limit.field, Short(limit.value))
	}
	line(p.Disabled, "Disabled", "true")
	line(p.Classify != nil, "Classify", "is set")
	line(p.Wait != nil, "Wait", "is set")
	line(p.Budget != nil, "Budget", "is set")
	line(p.Pay != nil, "Pay", "is set")
	line(p.Gate != nil, "Gate", "is set")
	line(p.Observe != nil, "Observe", "is set")
	line(p.Rand != nil, "Rand", "is set")
	return lines
}

// Series are waits that grow by a factor up to a maximum, as many libraries compute them.
type Series struct {
	First, Top time.Duration
	Factor     float64
}

// compared is the number of waits of a formula that SeriesOf compares. With any relevant factor, the rest are equal to
// the cap.
const compared = 100

// SeriesOf returns the series for the given number of waits of b, and whether it has the waits of b without jitter, to
// within a nanosecond and a billionth. If there is no such series, the first wait and the last are those of b, and Top is
// the longest. fit changes a series so that the library accepts it, before it is compared. Nil means that it accepts any.
//
// Of many waits only the first 100 are compared, or as many as b has Delays. Fewer than 1 count as 1.
func SeriesOf(b retry.Backoff, waits int, fit func(*Series)) (s Series, exact bool) {
	b = retry.Policy{Backoff: b}.Effective().Backoff
	near := max(min(waits, max(compared, len(b.Delays))), 1)
	first, last := max(b.Delay(1), 1), max(b.Delay(near), 1)
	top := max(b.Delay(waits), 1)
	for n := 1; n <= near; n++ {
		top = max(top, b.Delay(n))
	}
	try := func(top time.Duration, factor float64) bool {
		s = Series{first, top, factor}
		if fit != nil {
			fit(&s)
		}
		for n := 1; n <= near; n++ {
			if math.Abs(float64(s.Wait(n))-float64(b.Delay(n))) > 1+float64(b.Delay(n))*1e-9 {
				return false
			}
		}
		return true
	}
	switch {
	case b.Mode == retry.Exponential:
		return s, try(b.Cap, b.Factor)
	case b.Mode == retry.Fixed || near == 1:
		return s, try(top, 1)
	case try(top, ratio(b.Delay(2), first)): // a list can be an exponential that has reached its cap
		return s, true
	default:
		return s, try(top, math.Pow(ratio(last, first), 1/float64(near-1)))
	}
}

func ratio(x, y time.Duration) float64 { return float64(max(x, 1)) / float64(y) }

// Wait returns the wait after attempt n, counted from 1. It is min(First·Factor^(n−1), Top).
func (s Series) Wait(n int) time.Duration {
	// Compared before the conversion, which would overflow.
	if d := float64(s.First) * math.Pow(s.Factor, float64(n-1)); d < float64(s.Top) {
		return time.Duration(d)
	}
	return s.Top
}

// Waits returns the first waits as text, at most 12, such as "1s 2s 4s". Three dots stand for the others. wait gets 1, 2, 3, ...
func Waits(wait func(attempt int) time.Duration, waits int) string {
	const shown = 12
	var texts []string
	for n := 1; n <= min(waits, shown); n++ {
		texts = append(texts, Short(wait(n)))
	}
	if waits > shown {
		texts = append(texts, "...")
	}
	return strings.Join(texts, " ")
}

// Short returns a d of 0 or more as text with four digits, or to the second if that is more, such as "1m20s", "1.587s" and "2h".
func Short(d time.Duration) string {
	unit := time.Duration(1)
	for d/unit >= 10_000 && unit < time.Second {
		unit *= 10
	}
	s := d.Round(unit).String()
	if strings.HasSuffix(s, "m0s") {
		s = strings.TrimSuffix(s, "0s")
	}
	if strings.HasSuffix(s, "h0m") {
		s = strings.TrimSuffix(s, "0m")
	}
	return s
}
