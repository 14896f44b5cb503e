package retryplan

import (
	"math"
	"time"

	"github.com/retrygo/retry"
)

// recovery looks for the moment from which a fleet is well and stays so: the first second after the end of the last
// trigger from which the goodput of every 5 s is at least 0.9 of what is due, for as long as while, with a success
// among it, and after which no relapse is seen.
//
// What is due in 5 s is what the rate of arrivals begins in them on average, but no more than the runs that chance let
// begin. A run is due when it ends, so that one that begins at the end of a window and succeeds after it is no loss to
// the first; but it is due lag after its begin at the latest, since an overloaded fleet whose runs take ever longer has
// no fewer of them. lag is longer than an attempt takes in a calm, or healthy fleets would look ill by chance; while is
// 10 lags at least, so that what such a fleet can hide is the tenth that may be missing anyway.
//
// A relapse is looked for in blocks of at least while and 100 due runs, in which chance is small: too few of them
// succeed by four standard deviations.
type recovery struct {
	from   int64 // the end of the last trigger; never if there is nothing to look for
	rate   float64
	share  float64 // of the runs that succeed in a calm
	lag    int64
	while  int64 // seconds
	echo   int64 // how long the policy's retries of what the trigger hit can go on
	second int64 // that is being counted, from 0
	// well are the successes and due the runs that are due in the newest seconds, and due those of the next ones that
	// will be if they do not end before; each at its second modulo their number.
	well, due []int
	since     int64 // the first second of the windows that were well, up to the newest
	success   int64 // the last second with a success, -1 for none
	found     bool
	at        int64 // the second
	block     struct{ seconds, well, due int64 }
}

const (
	healthyMean  = 5  // seconds of a window
	healthyWhile = 20 // seconds of windows in a row, at least
	healthyShare = 0.9
	dueAfter     = 2 // seconds, at least
	blockDue     = 100
	second       = 1_000_000_000
)

// populations calls visit with the scenario of each policy alone.
func (s *Scenario) populations(visit func(alone *Scenario, share float64)) {
	alone, rest := *s, 1.0
	alone.Others = nil
	for _, o := range s.Others {
		alone.Policy = o.Policy
		visit(&alone, o.Share)
		rest -= o.Share
	}
	alone.Policy = s.Policy
	visit(&alone, rest)
}

func newRecovery(s *Scenario) recovery {
	from, ok := lastEnd(s.Triggers)
	if !ok || s.Arrivals.Rate == 0 {
		return recovery{from: never}
	}
	lag, share := int64(dueAfter*second), 0.0
	s.populations(func(alone *Scenario, part float64) {
		lag = max(lag, alone.attemptTime())
		share += part * alone.calmSuccess()
	})
	seconds := (lag + second - 1) / second
	r := recovery{from: from, rate: s.Arrivals.Rate, share: min(share, 1), lag: lag, while: max(healthyWhile, 10*seconds), echo: s.echoes(), success: -1}
	r.well, r.due = make([]int, healthyMean+seconds+1), make([]int, healthyMean+seconds+1)
	return r
}

// least returns how many of so many due runs must succeed, less so many standard deviations of the number that does in
// a calm.
func (r *recovery) least(due, deviations float64) float64 {
	return healthyShare*r.share*due - deviations*math.Sqrt(r.share*(1-r.share)*due)
}

// calmSuccess returns the share of runs that succeed when nothing but Server.FailureRate makes attempts fail.
func (s *Scenario) calmSuccess() float64 {
	c := Chain{Layers: []Layer{{Policy: s.Policy, Budget: s.Budget, Failure: s.Server.FailureRate}}}
	return c.calm().success
}

// longestLag bounds the lag, and so what a recovery keeps.
const longestLag = 3600 * second

// attemptTime returns how long all but one in a million attempts take in a calm, an hour at most.
func (s *Scenario) attemptTime() int64 {
	const most = 1 - 1e-6
	took := later(int64(s.Server.Service.At(most)), times(int64(s.Network.At(most)), 2))
	if s.Policy.AttemptTimeout > 0 {
		took = min(took, int64(s.Policy.AttemptTimeout))
	}
	return min(took, longestLag)
}

// echo, of a scenario without Others, returns how long after the end of a trigger its victims may still make retries:
// the longest waits and attempts of one run, as far as TTL and Deadline allow. A policy without a bound goes on until
// its longest wait has passed twice.
func (s *Scenario) echo() int64 {
	p := s.Policy.Effective()
	attempt := s.attemptTime()
	if p.AttemptTimeout > 0 {
		attempt = int64(p.AttemptTimeout)
	}
	hint := min(s.Server.RetryAfter.Max(), p.MaxHint)
	wait := func(n int, prev time.Duration) time.Duration {
		switch _, most := p.Bounds(n); {
		case s.Delay != nil:
			return s.Delay(n, prev, 1-1.0/(1<<53))
		case p.Wait != nil:
			return max(p.Cap, hint)
		default:
			return max(most, hint)
		}
	}
	total, prev := attempt, time.Duration(0)
	switch {
	case p.Disabled:
	case p.MaxAttempts == retry.Unlimited:
		total = later(total, times(int64(max(p.Cap, hint)), 2))
	default:
		for n := 1; n < p.MaxAttempts && total < never; n++ {
			prev = wait(n, prev)
			total = later(later(total, int64(prev)), attempt)
			if n == mostEchoes { // whose waits have long reached the cap
				total = later(total, times(later(int64(prev), attempt), p.MaxAttempts-1-n))
				break
			}
		}
	}
	if p.TTL > 0 {
		total = min(total, later(int64(p.TTL), attempt))
	}
	if s.Deadline > 0 {
		total = min(total, int64(s.Deadline))
	}
	return total
}

const mostEchoes = 1000

// echoes returns the longest echo of all policies.
func (s *Scenario) echoes() (longest int64) {
	s.populations(func(alone *Scenario, _ float64) { longest = max(longest, alone.echo()) })
	return longest
}

// Horizon returns the shortest Duration after which Result.Judged is true whatever the fleet does: until the end of the
// last trigger, the last retry of the runs that it hit, and the time that health takes to be seen. It is the largest
// Duration if that is beyond it, and 0 without a trigger or an open loop.
func (s Scenario) Horizon() time.Duration {
	r := newRecovery(&s)
	if r.from == never {
		return 0
	}
	return time.Duration(later(later(r.from, r.echo), r.while*second))
}

// judges reports whether what was seen until the given time is the last word: the fleet is ill, or the retries of the
// trigger's victims are over.
func (r *recovery) judges(until int64) bool {
	if r.from == never || until-r.while*second < r.from {
		return false
	}
	return !r.found || until-r.while*second-r.from >= r.echo
}

// began counts a run that begins.
func (r *recovery) began(now int64) {
	if later(now, r.lag) < r.from {
		return
	}
	r.reach(now)
	r.due[r.dueAt(now)]++
}

// ended counts a run that ends, well or not.
func (r *recovery) ended(began, now int64, well bool) {
	if r.from == never {
		return
	}
	r.reach(now)
	if now-began < r.lag && later(began, r.lag) >= r.from { // not due yet
		r.due[r.dueAt(began)]--
		if now >= r.from {
			r.due[r.place(now)]++
		}
	}
	if well && now >= r.from {
		r.well[r.place(now)]++
		r.success = r.second
	}
}

// dueAt returns the place of the second in which a run is due at the latest.
func (r *recovery) dueAt(began int64) int { return r.place(later(began, r.lag)) }

func (r *recovery) place(at int64) int { return int((at - r.from) / second % int64(len(r.due))) }

// reach closes the seconds that end at or before now.
func (r *recovery) reach(now int64) {
	if now < r.from {
		return
	}
	for to := (now - r.from) / second; r.second < to; {
		if to-r.second > 2*int64(len(r.due)) && r.empty() {
			r.second = to - int64(len(r.due)) // nothing happens for long, and nothing is due
			continue
		}
		r.close()
	}
}

func (r *recovery) empty() bool {
	for i := range r.due {
		if r.due[i] != 0 || r.well[i] != 0 {
			return false
		}
	}
	return true
}

// close closes the second that is being counted, and with it the window that ends there.
func (r *recovery) close() {
	newest := r.second % int64(len(r.due))
	if r.found {
		r.block.seconds, r.block.well, r.block.due = r.block.seconds+1, r.block.well+int64(r.well[newest]), r.block.due+int64(r.due[newest])
		r.relapse()
	} else {
		r.window()
	}
	old := (r.second - healthyMean + 1 + int64(len(r.due))) % int64(len(r.due))
	r.well[old], r.due[old] = 0, 0
	r.second++
}

// window looks at the 5 s that end with the second.
func (r *recovery) window() {
	well, due := 0, 0
	for i := max(r.second-healthyMean+1, 0); i <= r.second; i++ {
		well += r.well[i%int64(len(r.well))]
		due += r.due[i%int64(len(r.due))]
	}
	switch {
	case r.second < healthyMean-1: // no window yet
	case float64(well) < r.least(min(r.rate*healthyMean, float64(due)), 3):
		r.since = r.second - healthyMean + 2
	}
	if r.second+1-r.since >= r.while && r.success >= r.since {
		r.found, r.at = true, r.since
	}
}

// relapse looks at the block that ends with the second, if it is long enough.
func (r *recovery) relapse() {
	b := &r.block
	if b.seconds < r.while || b.due < blockDue {
		return
	}
	due := min(r.rate*float64(b.seconds), float64(b.due))
	if wanted := healthyShare * r.share; float64(b.well) < wanted*due-4*math.Sqrt(wanted*(1-wanted)*due) {
		r.found, r.since = false, r.second+1
	}
	r.block = struct{ seconds, well, due int64 }{}
}
