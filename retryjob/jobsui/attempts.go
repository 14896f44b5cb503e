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

// Left returns the position of the start of the attempt's bar.
func (a attempt) Left() float64 { return min(a.X, 100-leastBar) }

// Bar returns the width of the attempt's bar.
func (a attempt) Bar() float64 { return min(max(a.Width, leastBar), 100-a.Left()) }

// Span returns the width of the attempt and the wait after it.
func (a attempt) Span() float64 { return min(a.Width+a.Rest, 100-a.Left()) }

// timeline returns the lines of a job's attempts.
func timeline(rec *retryjob.Record, now time.Time) []attempt {
	end := rec.Ended
	if end.IsZero() {
		end = now
	}
	if rec.Due.After(end) {
		end = rec.Due
	}
	whole := max(end.Sub(rec.FirstDue), time.Millisecond)
	share := func(d time.Duration) float64 { return min(max(100*float64(d)/float64(whole), 0), 100) }

	var all []attempt
	for _, l := range rec.Timeline(now) {
		one := attempt{
			Number: strconv.Itoa(l.Number), Start: l.Start, Took: l.Lasted(duration), Status: l.Status,
			Reason: reason(l.Reason), Code: shown(l.Code), Err: shown(l.Err),
			X: share(l.Start.Sub(rec.FirstDue)), Width: share(l.Took), Rest: share(l.Wait),
		}
		if l.Last > l.Number {
			one.Number += "–" + strconv.Itoa(l.Last)
		}
		if l.Wait >= 0 {
			one.Wait = duration(l.Wait)
		}
		all = append(all, one)
	}
	return all
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
