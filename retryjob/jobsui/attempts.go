package jobsui

import (
	"fmt"
	"strconv"
	"time"

	"github.com/retrygo/retry/retryjob"
)

// attempt is a line of a job's timeline: an attempt, or a gap between those that the record holds.
type attempt struct {
	Number         string
	Start          time.Time // zero for a gap
	Took, Wait     string
	Status         retryjob.Status // zero for a gap
	Reason         string
	Code, Err      string
	X, Width, Rest float64 // of the bar of the attempt and of the wait after it, in percent of the job's time
}

// leastBar is the width of a bar that can be seen however short the attempt was.
const leastBar = 0.8

// Left returns where the attempt's bar begins.
func (a attempt) Left() float64 { return min(a.X, 100-leastBar) }

// Bar returns the width of the attempt's bar.
func (a attempt) Bar() float64 { return min(max(a.Width, leastBar), 100-a.Left()) }

// Span returns the width of the attempt and the wait after it.
func (a attempt) Span() float64 { return min(a.Width+a.Rest, 100-a.Left()) }

// timeline returns the attempts since the job was enqueued or replayed.
//
// Of an attempt whose worker was lost no end is known: it is shown up to the start of the next one.
func timeline(rec *retryjob.Record, now time.Time) []attempt {
	end := rec.Ended
	if end.IsZero() {
		end = now
	}
	if rec.Due.After(end) {
		end = rec.Due
	}
	whole := max(end.Sub(rec.First), time.Millisecond)
	share := func(d time.Duration) float64 { return min(max(100*float64(d)/float64(whole), 0), 100) }

	var all []attempt
	next := 1
	for i := range rec.History {
		a := &rec.History[i]
		all = append(all, gap(rec, next, a.Number-1)...)
		next = a.Number + 1
		one := attempt{
			Number: strconv.Itoa(a.Number), Start: a.Start, Status: a.Status, Reason: reason(a.Reason), Code: shown(a.Code), Err: shown(a.Err),
			X: share(a.Start.Sub(rec.First)),
		}
		switch until, known := nextStart(rec, i); {
		case !a.End.IsZero():
			took := max(a.End.Sub(a.Start), 0)
			one.Took, one.Width = duration(took), share(took)
			if !a.Due.IsZero() {
				wait := max(a.Due.Sub(a.End), 0)
				one.Wait, one.Rest = duration(wait), share(wait)
			}
		case rec.Status == retryjob.Leased && a.Number == rec.Attempts && !a.Start.IsZero():
			took := max(now.Sub(a.Start), 0)
			one.Took, one.Width = duration(took)+" so far", share(took)
		case known:
			one.Took, one.Width = "lost, "+duration(until.Sub(a.Start)), share(until.Sub(a.Start))
		default:
			one.Took = "lost"
		}
		all = append(all, one)
	}
	return append(all, gap(rec, next, rec.Attempts)...)
}

// nextStart returns when the attempt after History[i] started, if that is known.
func nextStart(rec *retryjob.Record, i int) (time.Time, bool) {
	a := &rec.History[i]
	if i+1 >= len(rec.History) || rec.History[i+1].Number != a.Number+1 || a.Start.IsZero() {
		return time.Time{}, false
	}
	start := rec.History[i+1].Start
	return start, !start.Before(a.Start)
}

// gap returns a line for the attempts from first to last, of which the record holds nothing. The last attempt of a leased
// job is under way.
func gap(rec *retryjob.Record, first, last int) []attempt {
	if first > last {
		return nil
	}
	if rec.Status == retryjob.Leased && last == rec.Attempts {
		return append(gap(rec, first, last-1), attempt{Number: strconv.Itoa(last), Status: retryjob.Leased})
	}
	one := attempt{Number: strconv.Itoa(first), Err: "not in the record: the worker was lost"}
	if last > first {
		one.Number += "–" + strconv.Itoa(last)
	}
	if len(rec.History) >= keptAttempts && last < rec.Attempts {
		one.Err = "no longer in the record"
	}
	return []attempt{one}
}

// keptAttempts is how many attempts a record holds.
const keptAttempts = 64

// duration returns d to three digits or so.
func duration(d time.Duration) string {
	for _, unit := range []time.Duration{time.Second, 10 * time.Millisecond, time.Millisecond, time.Microsecond} {
		if d >= 100*unit {
			return d.Round(unit).String()
		}
	}
	return d.Round(time.Microsecond).String()
}

// ago returns how far a time is from now: "3m ago", "in 2h".
func ago(at, now time.Time) string {
	d := now.Sub(at)
	text := coarse(d.Abs())
	switch {
	case text == "0s":
		return "now"
	case d < 0:
		return "in " + text
	default:
		return text + " ago"
	}
}

func coarse(d time.Duration) string {
	switch {
	case d < 100*time.Second:
		return fmt.Sprintf("%ds", d/time.Second)
	case d < 100*time.Minute:
		return fmt.Sprintf("%dm", d/time.Minute)
	case d < 48*time.Hour:
		return fmt.Sprintf("%dh", d/time.Hour)
	default:
		return fmt.Sprintf("%dd", d/(24*time.Hour))
	}
}
