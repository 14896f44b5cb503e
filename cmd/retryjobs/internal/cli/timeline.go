package cli

import (
	"fmt"
	"strconv"
	"time"

	"github.com/retrygo/retry/retryjob"
)

// row is an attempt: its number, start, duration, status, the wait until the next one, code and error.
type row [7]string

// timeline returns the attempts since the job was enqueued or replayed, and a row for each gap between those that the
// record holds.
//
// The wait is what was decided at the attempt's end. Of an attempt whose worker was lost no end is known: its wait is in
// its duration, which is the time from its start to the start of the next one. One that ended late has had its wait before.
func timeline(rec *retryjob.Record, now time.Time) []row {
	var rows []row
	next := 1
	for i := range rec.History {
		a := &rec.History[i]
		rows = append(rows, gap(rec, next, a.Number-1)...)
		next = a.Number + 1
		r := row{strconv.Itoa(a.Number), fineStamp(a.Start), "", a.Status.String(), "", a.Code, a.Err}
		switch end := a.End; {
		case !end.IsZero():
			r[2] = span(max(end.Sub(a.Start), 0))
			if a.Late {
				r[2] += ", late"
			} else if !a.Due.IsZero() {
				r[4] = span(max(a.Due.Sub(end), 0))
			}
		case underway(rec, a):
			r[2] = span(max(now.Sub(a.Start), 0)) + " so far"
		default:
			r[2] = "lost"
			if gone, ok := lost(rec, i); ok {
				r[2] += ", " + span(gone)
			}
		}
		rows = append(rows, r)
	}
	return append(rows, gap(rec, next, rec.Attempts)...)
}

// gap returns a row for the attempts from first to last, of which the record holds nothing; none where last is before
// first. The last attempt of a leased job is under way.
func gap(rec *retryjob.Record, first, last int) []row {
	if first > last {
		return nil
	}
	if rec.Status == retryjob.Leased && last == rec.Attempts {
		started := row{strconv.Itoa(last), "", "", rec.Status.String()}
		return append(gap(rec, first, last-1), started)
	}
	numbers := strconv.Itoa(first)
	if last > first {
		numbers += "-" + strconv.Itoa(last)
	}
	r := row{numbers}
	r[6] = "not in the record: the worker was lost"
	if len(rec.History) >= keptAttempts && last < rec.Attempts {
		r[6] = "no longer in the record"
	}
	return []row{r}
}

// keptAttempts is from how many attempts on a record drops the second one for a new one.
const keptAttempts = 64

// underway reports whether a is the attempt for which the job is leased.
func underway(rec *retryjob.Record, a *retryjob.Attempt) bool {
	return rec.Status == retryjob.Leased && a.Number == rec.Attempts && a.End.IsZero() && !a.Start.IsZero()
}

// lost returns the time from the start of attempt i, of which no end is known, to the start of the next; false if either
// is not known.
func lost(rec *retryjob.Record, i int) (time.Duration, bool) {
	if i+1 >= len(rec.History) || rec.History[i+1].Number != rec.History[i].Number+1 {
		return 0, false
	}
	start, next := rec.History[i].Start, rec.History[i+1].Start
	if start.IsZero() || next.IsZero() {
		return 0, false
	}
	return max(next.Sub(start), 0), true
}

// total returns how many attempts there were in how much time, and where every one is in the record, what became of that
// time.
func total(rec *retryjob.Record, now time.Time) string {
	end, suffix := rec.Ended, ""
	if end.IsZero() {
		end, suffix = now, " so far"
	}
	elapsed := max(end.Sub(rec.First), 0)
	text := fmt.Sprintf("%s in %s%s", plural(rec.Attempts, "attempt"), span(elapsed), suffix)
	if rec.Attempts == 0 || len(rec.History) != rec.Attempts {
		return text
	}
	var running, gone time.Duration
	for i := range rec.History {
		switch a := &rec.History[i]; {
		case !a.End.IsZero() && !a.Late:
			running += max(a.End.Sub(a.Start), 0)
		case underway(rec, a):
			running += max(now.Sub(a.Start), 0)
		default:
			d, ok := lost(rec, i)
			if !ok {
				return text
			}
			gone += d
		}
	}
	text += fmt.Sprintf(": %s running", span(running))
	if gone > 0 {
		text += fmt.Sprintf(", %s lost", span(gone))
	}
	return text + fmt.Sprintf(", %s waiting", span(max(elapsed-running-gone, 0)))
}
