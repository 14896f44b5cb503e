package retryplan

import (
	"cmp"
	"math"

	"github.com/retrygo/retry"
)

// recovery finds the second from which a fleet is well and stays so, the first after the end of the trigger from
// which, for the time while, every 5 s have at least 0.9 of the successes that are due in them and one success at all,
// and after which there is no relapse.
//
// The runs due in 5 s are the smaller of two numbers, those that the rate of arrivals begins in 5 s on average, and those
// that began. A run is due when it ends, so that a window does not miss a run that succeeds after it. It is due lag after
// it began at the latest, since the runs of an overloaded fleet take ever longer. lag is longer than an attempt takes in
// a calm, or healthy fleets would look ill by chance. while is at least 10 lags, so that a fleet can hide no more than
// the tenth that may be missing anyway.
//
// A relapse is a block, of at least while and 100 due runs, whose successes are too few by four standard deviations.
type recovery struct {
	from    int64 // the end of the trigger; never if there is nothing to look for
	rate    float64
	share   float64 // of the runs that succeed in a calm; 1 unless it was measured
	lag     int64
	while   int64        // seconds
	echo    int64        // how long the runs that the trigger hit can go on retrying
	second  int64        // that is being counted, from 0
	seconds []wellAndDue // from 0 on, and the coming ones in which runs are due that have not ended
	since   int64        // the first second of the windows that were well, up to the newest
	success int64        // the last second with a success, -1 for none
	found   bool
	at      int64 // the second
	block   wellAndDue
	blocked int64 // seconds of block
}

// wellAndDue are successes, and runs that are due.
type wellAndDue struct{ well, due int }

func (c *wellAndDue) add(o wellAndDue) { c.well, c.due = c.well+o.well, c.due+o.due }

const (
	healthyMean  = 5  // seconds of a window
	healthyWhile = 20 // seconds of windows in a row, at least
	healthyShare = 0.9
	dueAfter     = 2 // seconds, at least
	blockDue     = 100
	second       = 1_000_000_000
)

func newRecovery(s *scenario) recovery {
	if s.Trigger == (Trigger{}) || s.Rate == 0 {
		return recovery{from: never}
	}
	lag := max(dueAfter*second, s.attemptTime())
	while := max(healthyWhile, 10*((lag+second-1)/second))
	return recovery{from: s.Trigger.end(), rate: s.Rate, share: 1, lag: lag, while: while, echo: s.echo(), success: -1}
}

// longestLag bounds the lag, and so the memory of a recovery.
const longestLag = 3600 * second

// attemptTime returns the time within which all but one in a million attempts end in a calm, at most an hour.
func (s *scenario) attemptTime() int64 {
	const most = 1 - 1e-6
	took := int64(s.Server.Service.At(most))
	if own := s.Policy.AttemptTimeout; own > 0 {
		took = min(took, int64(own))
	}
	return min(took, longestLag)
}

// echo returns the time after the end of a trigger for which the runs that it hit can go on retrying, the longest waits
// and attempts of one run, as far as TTL and Deadline allow. For a policy without a bound it is twice the longest wait.
func (s *scenario) echo() int64 {
	p := s.Policy.Effective()
	attempt := cmp.Or(int64(p.AttemptTimeout), s.attemptTime())
	_, waits := p.TotalWait()
	total := later(int64(waits), times(attempt, p.MaxAttempts))
	switch {
	case p.Disabled:
		total = attempt
	case p.MaxAttempts == retry.Unlimited:
		total = later(attempt, times(int64(p.Cap), 2))
	case p.Wait != nil:
		total = later(times(int64(p.Cap), p.MaxAttempts-1), times(attempt, p.MaxAttempts))
	}
	if p.TTL > 0 {
		total = min(total, later(int64(p.TTL), attempt))
	}
	if s.Deadline > 0 {
		total = min(total, int64(s.Deadline))
	}
	return total
}

// began counts a run that begins.
func (r *recovery) began(now int64) {
	if due := later(now, r.lag); due >= r.from {
		r.reach(now)
		r.in(due).due++
	}
}

// ended counts a run that ends. well reports whether it succeeded.
func (r *recovery) ended(began, now int64, well bool) {
	if r.from == never {
		return
	}
	r.reach(now)
	if due := later(began, r.lag); now-began < r.lag && due >= r.from { // not due yet
		r.in(due).due--
		if now >= r.from {
			r.in(now).due++
		}
	}
	if well && now >= r.from {
		r.in(now).well++
		r.success = r.second
	}
}

// in returns the counts of the second of a time.
func (r *recovery) in(at int64) *wellAndDue {
	n := int((at - r.from) / second)
	if more := n + 1 - len(r.seconds); more > 0 {
		r.seconds = append(r.seconds, make([]wellAndDue, more)...)
	}
	return &r.seconds[n]
}

// reach closes the seconds that end at or before now, and with each the window that ends there.
func (r *recovery) reach(now int64) {
	if now < r.from {
		return
	}
	r.in(now)
	for to := (now - r.from) / second; r.second < to; r.second++ {
		if !r.found {
			r.window()
			continue
		}
		r.block.add(r.seconds[r.second])
		r.blocked++
		r.relapse()
	}
}

// window checks the 5 s that end with the second.
func (r *recovery) window() {
	var sum wellAndDue
	for _, c := range r.seconds[max(r.second-healthyMean+1, 0) : r.second+1] {
		sum.add(c)
	}
	// At least three standard deviations below the figure of a calm.
	due := min(r.rate*healthyMean, float64(sum.due))
	least := healthyShare*r.share*due - 3*math.Sqrt(r.share*(1-r.share)*due)
	if r.second >= healthyMean-1 && float64(sum.well) < least {
		r.since = r.second - healthyMean + 2
	}
	if r.second+1-r.since >= r.while && r.success >= r.since {
		r.found, r.at = true, r.since
	}
}

// relapse checks the block that ends with the second, if it is long enough.
func (r *recovery) relapse() {
	if r.blocked < r.while || r.block.due < blockDue {
		return
	}
	due, wanted := min(r.rate*float64(r.blocked), float64(r.block.due)), healthyShare*r.share
	if float64(r.block.well) < wanted*due-4*math.Sqrt(wanted*(1-wanted)*due) {
		r.found, r.since = false, r.second+1
	}
	r.block, r.blocked = wellAndDue{}, 0
}
