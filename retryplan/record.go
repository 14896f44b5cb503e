package retryplan

import (
	"cmp"
	"time"

	"github.com/retrygo/retry"
)

// recorder collects the Result of a simulation.
type recorder struct {
	result    Result
	events    uint64
	begun     int
	simulated time.Duration
	latency   histogram // of all successes
	after     histogram // of the successes since the fleet is well
	calm      runCount  // of the runs that ended in the second half of the calm
	calmFrom  int64
	calmTo    int64
	recovery  recovery
	passed    bool   // the simulation went to its end
	point     *Point // the last of result.Series
	edge      int64  // the end of point
}

// runCount counts runs that ended.
type runCount struct{ ended, failed int }

func newRecorder(s *scenario) recorder {
	step := cmp.Or(s.Step, defaultStep)
	result := Result{Step: step, Series: make([]Point, 1), Endings: map[retry.Reason]int{}}
	calm := int64(s.Trigger.From)
	return recorder{result: result, recovery: newRecovery(s), calmFrom: calm / 2, calmTo: calm, point: &result.Series[0], edge: int64(step)}
}

// over records that a run of the first node ends, with success if there is no reason.
func (s *simulation) over(r *simRun, reason retry.Reason) {
	now := s.events.Now
	s.result.Endings[reason]++
	s.planNext()
	s.recovery.ended(r.began, now, reason == 0)
	if now >= s.calmFrom && now < s.calmTo {
		s.calm.ended++
		if reason != 0 {
			s.calm.failed++
		}
	}
	if reason != 0 {
		return
	}
	s.point.Goodput++
	took := time.Duration(now - r.began)
	s.latency.add(took, 1)
	if s.recovery.found {
		s.after.add(took, 1)
	}
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

// note sets the state at the end of the point.
func (s *simulation) note() { s.point.Queue = len(s.nodes[len(s.nodes)-1].queue) }

// finish completes the result.
func (s *simulation) finish() Result {
	out := &s.result
	s.simulated = time.Duration(s.events.Now)
	if s.passed {
		s.simulated = s.Duration
	}
	if int64(s.simulated) > s.edge { // an interval that begins at the very end would be empty
		s.reach(int64(s.simulated) - 1)
	}
	s.note()
	for _, p := range out.Series {
		out.Runs += p.Offered
		out.Attempts += p.Attempts
		out.Rejected += p.Rejected
	}
	out.Unfinished = out.Runs
	for _, n := range out.Endings {
		out.Unfinished -= n
	}
	for i := range s.nodes {
		out.Nodes = append(out.Nodes, s.nodes[i].sent)
	}
	out.Latency = s.latency.distribution()
	s.recovery.reach(int64(s.simulated))
	return *out
}
