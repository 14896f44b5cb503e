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

// keptAttempts is the number of attempts in a full History.
const keptAttempts = 64

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
	next := 1
	// A negative time is not known.
	add := func(a retryjob.Attempt, last int, took, wait time.Duration, note string) {
		line := Attempt{
			Number: strconv.Itoa(a.Number), Start: a.Start, Took: note, Status: a.Status, Reason: a.Reason, Code: a.Code, Err: a.Err,
			Left: min(share(a.Start.Sub(rec.FirstDue)), 100-leastBar),
		}
		line.Bar = min(max(share(took), leastBar), 100-line.Left)
		line.Span = min(share(took)+share(wait), 100-line.Left)
		switch {
		case took >= 0 && note == "lost":
			line.Took = "lost, " + duration(took)
		case took >= 0:
			line.Took = duration(took) + note
		}
		if last > a.Number {
			line.Number += "-" + strconv.Itoa(last)
		}
		if wait >= 0 {
			line.Wait = duration(wait)
		}
		if a.Ambiguous {
			line.Err = "in doubt, the work may have been done: " + a.Err
		}
		all, next = append(all, line), last+1
	}
	gap := func(last int) {
		why := "not in the record: the worker was lost"
		if len(rec.History) >= keptAttempts && last < rec.Attempts {
			why = "no longer in the record"
		}
		if next <= last {
			add(retryjob.Attempt{Number: next, Err: why}, last, -1, -1, "")
		}
	}
	for i, a := range rec.History {
		gap(a.Number - 1)
		took, wait, note := time.Duration(-1), time.Duration(-1), ""
		switch {
		case a.Late:
			took, note = max(a.End.Sub(a.Start), 0), ", late" // its wait was before its end
		case !a.End.IsZero():
			took = max(a.End.Sub(a.Start), 0)
			if !a.Due.IsZero() {
				wait = max(a.Due.Sub(a.End), 0)
			}
		case rec.Status == retryjob.Leased && a.Number == rec.Attempts && !a.Start.IsZero():
			took, note = max(now.Sub(a.Start), 0), " so far"
		default:
			note = "lost"
			if i+1 < len(rec.History) && rec.History[i+1].Number == a.Number+1 && !a.Start.IsZero() {
				took = rec.History[i+1].Start.Sub(a.Start)
			}
		}
		add(a, a.Number, took, wait, note)
	}
	if rec.Status == retryjob.Leased && next <= rec.Attempts { // it has just begun
		gap(rec.Attempts - 1)
		add(retryjob.Attempt{Number: rec.Attempts, Status: retryjob.Leased}, rec.Attempts, -1, -1, "")
	}
	gap(rec.Attempts)
	return all
}
