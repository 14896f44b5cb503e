package jobsui

import (
	"strconv"
	"time"

	"github.com/retrygo/retry"
	"github.com/retrygo/retry/retryjob"
)

// Attempt is a line of a job's timeline as a page or a command shows it: an attempt, or a gap between those that the
// record holds.
type Attempt struct {
	Number     string    // "3", or "3-5" for a gap
	Start      time.Time // zero if it is not known
	Took, Wait string
	Status     retryjob.Status // zero for a gap
	Reason     retry.Reason
	Code, Err  string
	// In percent of the job's time: the start of the attempt's bar, its width, and that of the attempt and the wait
	// after it. A bar can be seen however short the attempt was.
	Left, Bar, Span float64
}

// Attempts returns the lines of the attempts since the job was enqueued or replayed.
func Attempts(rec *retryjob.Record, now time.Time) (all []Attempt) {
	end := rec.Ended
	if end.IsZero() {
		end = now
	}
	if rec.Due.After(end) {
		end = rec.Due
	}
	const leastBar = 0.8
	whole := max(end.Sub(rec.FirstDue), time.Millisecond)
	share := func(d time.Duration) float64 { return min(max(100*float64(d)/float64(whole), 0), 100) }
	for _, l := range rec.Timeline(now) {
		a := Attempt{
			Number: strconv.Itoa(l.Number), Start: l.Start, Took: l.Lasted(duration), Status: l.Status,
			Reason: l.Reason, Code: l.Code, Err: l.Err,
			Left: min(share(l.Start.Sub(rec.FirstDue)), 100-leastBar),
		}
		a.Bar = min(max(share(l.Took), leastBar), 100-a.Left)
		a.Span = min(share(l.Took)+share(l.Wait), 100-a.Left)
		if l.Last > l.Number {
			a.Number += "-" + strconv.Itoa(l.Last)
		}
		if l.Wait >= 0 {
			a.Wait = duration(l.Wait)
		}
		if l.Ambiguous {
			a.Err = "in doubt, the work may have been done: " + a.Err
		}
		all = append(all, a)
	}
	return all
}
