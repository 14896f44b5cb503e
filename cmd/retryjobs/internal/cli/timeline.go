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
// its duration, which is the time from its start to the start of the next one.
func timeline(rec *retryjob.Record, now time.Time) []row {
	var rows []row
	next := 1
	for i := range rec.Runs {
		run := &rec.Runs[i]
		rows = append(rows, gap(rec, next, run.Attempt-1)...)
		next = run.Attempt + 1
		r := row{strconv.Itoa(run.Attempt), fineStamp(run.Start), "", run.Status.String(), "", run.Code, run.Err}
		switch end := run.End; {
		case !end.IsZero():
			r[2] = span(max(end.Sub(run.Start), 0))
			if !run.Due.IsZero() {
				r[4] = span(max(run.Due.Sub(end), 0))
			}
		case underway(rec, run):
			r[2] = span(max(now.Sub(run.Start), 0)) + " so far"
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
	if len(rec.Runs) >= keptRuns && last < rec.Attempts {
		r[6] = "no longer in the record"
	}
	return []row{r}
}

// keptRuns is from how many runs on a record drops the second one for a new one.
const keptRuns = 64

// underway reports whether the run is the one for which the job is leased.
func underway(rec *retryjob.Record, run *retryjob.Run) bool {
	return rec.Status == retryjob.Leased && run.Attempt == rec.Attempts && run.End.IsZero() && !run.Start.IsZero()
}

// lost returns the time from the start of run i, of which no end is known, to the start of the next; false where either
// is not known.
func lost(rec *retryjob.Record, i int) (time.Duration, bool) {
	if i+1 >= len(rec.Runs) || rec.Runs[i+1].Attempt != rec.Runs[i].Attempt+1 {
		return 0, false
	}
	start, next := rec.Runs[i].Start, rec.Runs[i+1].Start
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
	if rec.Attempts == 0 || len(rec.Runs) != rec.Attempts {
		return text
	}
	var running, gone time.Duration
	for i := range rec.Runs {
		switch run := &rec.Runs[i]; {
		case !run.End.IsZero():
			running += max(run.End.Sub(run.Start), 0)
		case underway(rec, run):
			running += max(now.Sub(run.Start), 0)
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
