package retryplan

import (
	"time"

	"github.com/retrygo/retry"
	"github.com/retrygo/retry/retryplan/internal/event"
)

// recorder makes the Result of a simulation.
type recorder struct {
	events   *event.Queue
	note     func(p *Point, at int64) // what there is at the end of a point
	result   Result
	live     int   // runs that are under way
	ended    int64 // when the last run ended
	endings  [retry.CallerCanceled + 1]int
	recovery recovery
	passed   bool   // the simulation went to its end
	point    *Point // the last of result.Series
	edge     int64  // the end of point
}

func newRecorder(s *Scenario, events *event.Queue, note func(p *Point, at int64)) recorder {
	step := s.Step
	if step == 0 {
		step = defaultStep
	}
	r := recorder{events: events, note: note, recovery: newRecovery(s), edge: int64(step)}
	r.result.Step, r.result.Series = step, make([]Point, 1, min(int64(s.Duration/step)+1, 4096))
	r.point = &r.result.Series[0]
	return r
}

// began notes that a run begins.
func (r *recorder) began() {
	r.live++
	r.point.Offered++
	r.recovery.began(r.events.Now)
}

// over notes that a run ends, with success if there is no reason.
func (r *recorder) over(began int64, reason retry.Reason) {
	now := r.events.Now
	r.live--
	r.ended = now
	r.endings[reason]++
	r.recovery.ended(began, now, reason == 0)
	if reason != 0 {
		r.point.Failed++
		return
	}
	r.point.Goodput++
	r.result.Latency.add(time.Duration(now - began))
	r.result.Finished.add(time.Duration(now))
}

// reach closes the points that end at or before now.
func (r *recorder) reach(now int64) {
	for now >= r.edge {
		r.note(r.point, r.edge)
		series := &r.result.Series
		*series = append(*series, Point{Start: r.result.Step * time.Duration(len(*series))})
		r.point = &(*series)[len(*series)-1]
		r.edge = later(r.edge, int64(r.result.Step))
	}
}

// finish makes the result of a simulation that was to last so long.
func (r *recorder) finish(duration time.Duration) Result {
	out := &r.result
	out.Simulated = time.Duration(r.events.Now)
	if r.passed {
		if r.live == 0 { // what the server did afterwards does not count
			out.Simulated = time.Duration(r.ended)
		}
		out.Simulated = max(duration, out.Simulated)
	}
	if int64(out.Simulated) > r.edge { // an interval that begins at the very end would be empty
		r.reach(int64(out.Simulated) - 1)
	}
	r.note(r.point, int64(out.Simulated))
	out.Endings = map[retry.Reason]int{}
	for reason, n := range r.endings {
		if n > 0 {
			out.Endings[retry.Reason(reason)] = n
		}
	}
	out.Unfinished = r.live
	for i := range out.Series {
		p := &out.Series[i]
		out.Runs += p.Offered
		out.Attempts += p.Attempts
		out.Rejected += p.Rejected
		if p.Arrived > out.Peak {
			out.Peak, out.PeakAt = p.Arrived, p.Start
		}
	}
	if out.Runs > 0 {
		out.Amplification = float64(out.Attempts) / float64(out.Runs)
		out.Failed = float64(out.Runs-r.endings[0]) / float64(out.Runs)
	}
	seen := int64(min(out.Simulated, duration))
	r.recovery.reach(seen)
	out.Judged = r.recovery.judges(seen)
	if r.recovery.found {
		out.Recovered, out.Recovery = true, time.Duration(r.recovery.at*second)
	}
	return *out
}
