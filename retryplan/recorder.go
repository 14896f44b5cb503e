package retryplan

import (
	"cmp"
	"time"

	"github.com/retrygo/retry"
)

// recorder is what a simulation needs to make its Result.
type recorder struct {
	result   Result
	latency  histogram
	recovery recovery
	passed   bool   // the simulation went to its end
	point    *Point // the last of result.Series
	edge     int64  // the end of point
}

func newRecorder(s *Scenario) recorder {
	step := cmp.Or(s.Step, defaultStep)
	result := Result{Step: step, Series: make([]Point, 1), Endings: map[retry.Reason]int{}}
	return recorder{result: result, recovery: newRecovery(s), point: &result.Series[0], edge: int64(step)}
}

// over notes that a run of the first node ends, with success if there is no reason.
func (s *simulation) over(r *simRun, reason retry.Reason) {
	now := s.events.Now
	s.result.Endings[reason]++
	s.recovery.ended(r.began, now, reason == 0)
	if reason != 0 {
		s.point.Failed++
		return
	}
	s.point.Goodput++
	s.latency.add(time.Duration(now-r.began), 1)
}

// reach closes the points that end at or before now.
func (s *simulation) reach(now int64) {
	for now >= s.edge {
		s.note()
		series := &s.result.Series
		*series = append(*series, Point{Start: s.result.Step * time.Duration(len(*series))})
		s.point = &(*series)[len(*series)-1]
		s.edge = later(s.edge, int64(s.result.Step))
	}
}

// note notes what there is at the end of the point.
func (s *simulation) note() {
	n, p := &s.nodes[len(s.nodes)-1], s.point
	p.Queue, p.Tokens = len(n.queue), n.meanTokens()
}

// finish makes the result.
func (s *simulation) finish() Result {
	out := &s.result
	out.Simulated = time.Duration(s.events.Now)
	if s.passed {
		out.Simulated = s.Duration
	}
	if int64(out.Simulated) > s.edge { // an interval that begins at the very end would be empty
		s.reach(int64(out.Simulated) - 1)
	}
	s.note()
	for i := range out.Series {
		p := &out.Series[i]
		out.Runs += p.Offered
		out.Attempts += p.Attempts
		out.Rejected += p.Rejected
		if p.Attempts > out.Peak {
			out.Peak, out.PeakAt = p.Attempts, p.Start
		}
	}
	out.Unfinished = out.Runs
	for _, n := range out.Endings {
		out.Unfinished -= n
	}
	out.Latency = s.latency.distribution()
	if out.Runs > 0 {
		out.Amplification = float64(out.Attempts) / float64(out.Runs)
		out.Failed = float64(out.Runs-out.Endings[0]) / float64(out.Runs)
	}
	seen := int64(out.Simulated)
	s.recovery.reach(seen)
	out.Judged = s.recovery.judges(seen)
	if s.recovery.found {
		out.Recovered, out.Recovery = true, time.Duration(s.recovery.at*second)
	}
	return *out
}
