package cli

import (
	"fmt"
	"strconv"
	"time"

	"github.com/retrygo/retry/retryjob"
)

// row is an attempt: its number, start, duration, status, the wait until the next one, code and error.
type row [7]string

// timeline returns the rows of a job's attempts.
func timeline(lines []retryjob.Line) (rows []row) {
	for _, l := range lines {
		r := row{strconv.Itoa(l.Number), fineStamp(l.Start), l.Lasted(span), l.Status.String(), "", l.Code, l.Err}
		if l.Last > l.Number {
			r[0] += "-" + strconv.Itoa(l.Last)
		}
		if l.Wait >= 0 {
			r[4] = span(l.Wait)
		}
		rows = append(rows, r)
	}
	return rows
}

// total returns the number of attempts and their time span and, if every one is in the record, how that time was spent.
func total(rec *retryjob.Record, lines []retryjob.Line, now time.Time) string {
	end, suffix := rec.Ended, ""
	if end.IsZero() {
		end, suffix = now, " so far"
	}
	elapsed := max(end.Sub(rec.FirstDue), 0)
	text := fmt.Sprintf("%s in %s%s", plural(rec.Attempts, "attempt"), span(elapsed), suffix)
	if rec.Attempts == 0 || len(rec.History) != rec.Attempts {
		return text
	}
	var running, lost time.Duration
	for i, l := range lines {
		switch {
		case l.Took < 0 || l.Late && i+1 == len(lines):
			return text
		case l.Late:
			lost += max(lines[i+1].Start.Sub(l.Start), 0)
		case l.Note == "lost":
			lost += l.Took
		default:
			running += l.Took
		}
	}
	text += fmt.Sprintf(": %s running", span(running))
	if lost > 0 {
		text += fmt.Sprintf(", %s lost", span(lost))
	}
	return text + fmt.Sprintf(", %s waiting", span(max(elapsed-running-lost, 0)))
}
