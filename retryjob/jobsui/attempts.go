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

// unknown is a length of time that the record does not have.
const unknown = time.Duration(-1)

// Attempts returns the lines of the attempts since the job was enqueued or replayed.
func Attempts(rec *retryjob.Record, now time.Time) []Attempt {
	end := rec.Ended
	if end.IsZero() {
		end = now
	}
	if rec.Due.After(end) {
		end = rec.Due
	}
	t := timeline{rec: rec, now: now, whole: max(end.Sub(rec.FirstDue), time.Millisecond), next: 1}
	for i, a := range rec.History {
		t.gap(a.Number - 1)
		t.add(a, a.Number, t.lengthOf(i))
	}
	if rec.Status == retryjob.Leased && t.next <= rec.Attempts { // it has just begun
		t.gap(rec.Attempts - 1)
		t.add(retryjob.Attempt{Number: rec.Attempts, Status: retryjob.Leased}, rec.Attempts, length{took: unknown, wait: unknown})
	}
	t.gap(rec.Attempts)
	return t.lines
}

// timeline is the lines of a record.
type timeline struct {
	rec   *retryjob.Record
	now   time.Time
	whole time.Duration // the time of the job, which is 100 percent
	next  int           // the number of the attempt after the last line
	lines []Attempt
}

// length is the time that an attempt took, and the wait after it.
type length struct {
	took, wait time.Duration
	note       string // after the time that it took
	lost       bool
}

// lengthOf returns the length of an attempt of the record.
func (t *timeline) lengthOf(i int) length {
	a := t.rec.History[i]
	switch {
	case a.Late: // its wait was before its end
		return length{took: max(a.End.Sub(a.Start), 0), wait: unknown, note: ", late"}
	case !a.End.IsZero() && a.Due.IsZero():
		return length{took: max(a.End.Sub(a.Start), 0), wait: unknown}
	case !a.End.IsZero():
		return length{took: max(a.End.Sub(a.Start), 0), wait: max(a.Due.Sub(a.End), 0)}
	case t.running(a):
		return length{took: max(t.now.Sub(a.Start), 0), wait: unknown, note: " so far"}
	}
	lost := length{took: unknown, wait: unknown, lost: true}
	if following := t.rec.History[i+1:]; len(following) > 0 && following[0].Number == a.Number+1 && !a.Start.IsZero() {
		lost.took = following[0].Start.Sub(a.Start)
	}
	return lost
}

// running reports whether an attempt is under way and its start is known.
func (t *timeline) running(a retryjob.Attempt) bool {
	return t.rec.Status == retryjob.Leased && a.Number == t.rec.Attempts && !a.Start.IsZero()
}

// gap adds a line for the attempts up to last that the record does not have, if there are some.
func (t *timeline) gap(last int) {
	if t.next > last {
		return
	}
	why := "not in the record: the worker was lost"
	if len(t.rec.History) >= keptAttempts && last < t.rec.Attempts {
		why = "no longer in the record"
	}
	t.add(retryjob.Attempt{Number: t.next, Err: why}, last, length{took: unknown, wait: unknown})
}

// add adds a line for the attempts from a to last.
func (t *timeline) add(a retryjob.Attempt, last int, of length) {
	const leastBar = 0.8
	line := Attempt{
		Number: strconv.Itoa(a.Number), Start: a.Start, Took: of.text(), Status: a.Status, Reason: a.Reason, Code: a.Code, Err: a.Err,
		Left: min(t.share(a.Start.Sub(t.rec.FirstDue)), 100-leastBar),
	}
	line.Bar = min(max(t.share(of.took), leastBar), 100-line.Left)
	line.Span = min(t.share(of.took)+t.share(of.wait), 100-line.Left)
	if last > a.Number {
		line.Number += "-" + strconv.Itoa(last)
	}
	if of.wait >= 0 {
		line.Wait = duration(of.wait)
	}
	if a.Ambiguous {
		line.Err = "in doubt, the work may have been done: " + a.Err
	}
	t.lines = append(t.lines, line)
	t.next = last + 1
}

// share returns the percentage of the job's time; 0 for unknown.
func (t *timeline) share(d time.Duration) float64 {
	return min(max(100*float64(d)/float64(t.whole), 0), 100)
}

// text returns the time that the attempt took.
func (l length) text() string {
	switch {
	case l.lost && l.took < 0:
		return "lost"
	case l.lost:
		return "lost, " + duration(l.took)
	case l.took < 0:
		return ""
	}
	return duration(l.took) + l.note
}
