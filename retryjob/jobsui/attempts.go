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
	Number                   string    // "3", or "3-5" for a gap
	Start                    time.Time // zero if it is not known
	Took, Wait               string
	Status                   retryjob.Status // zero for a gap
	Reason                   retry.Reason
	Code, Err                string
	left, width, rest, whole time.Duration // since FirstDue; of the attempt; of the wait after it; of the job
}

// Left, Bar and Span return, in percent of the job's time, the start of the attempt's bar, its width, and that of the
// attempt and the wait after it. A bar can be seen however short the attempt was.
func (a Attempt) Left() float64 { return min(a.share(a.left), 100-leastBar) }
func (a Attempt) Bar() float64  { return min(max(a.share(a.width), leastBar), 100-a.Left()) }
func (a Attempt) Span() float64 { return min(a.share(a.width)+a.share(a.rest), 100-a.Left()) }

const leastBar = 0.8

func (a Attempt) share(d time.Duration) float64 {
	return min(max(100*float64(d)/float64(a.whole), 0), 100)
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
	for _, l := range rec.Timeline(now) {
		a := Attempt{
			Number: strconv.Itoa(l.Number), Start: l.Start, Took: l.Lasted(duration), Status: l.Status,
			Reason: l.Reason, Code: l.Code, Err: l.Err,
			left: l.Start.Sub(rec.FirstDue), width: l.Took, rest: l.Wait, whole: max(end.Sub(rec.FirstDue), time.Millisecond),
		}
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
