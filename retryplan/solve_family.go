package retryplan

import (
	"cmp"
	"math"
	"slices"
	"time"

	"github.com/retrygo/retry"
)

const (
	mostSolved = 64                     // attempts
	usualBase  = 100 * time.Millisecond // if nothing requires another: twice what AWS SDKs begin with since 2026
)

// roundBases are the Bases of the family.
var roundBases = []time.Duration{
	time.Millisecond, 2 * time.Millisecond, 5 * time.Millisecond,
	10 * time.Millisecond, 20 * time.Millisecond, 50 * time.Millisecond,
	100 * time.Millisecond, 200 * time.Millisecond, 500 * time.Millisecond,
	time.Second, 2 * time.Second, 5 * time.Second, 10 * time.Second, 20 * time.Second, 30 * time.Second,
	time.Minute, 2 * time.Minute, 5 * time.Minute, 10 * time.Minute, 20 * time.Minute, 30 * time.Minute,
	time.Hour, 2 * time.Hour, 6 * time.Hour, 12 * time.Hour, 24 * time.Hour,
}

// member returns the policy of the family with so many attempts. Waits that would go on doubling are capped: from the
// sixth attempt on at ten times the first, which keeps the schedule easy to say.
func member(attempts int, base, timeout time.Duration, jitter retry.JitterMode) retry.Policy {
	p := retry.Policy{MaxAttempts: attempts, AttemptTimeout: timeout}
	if attempts == 1 {
		return p
	}
	p.Base, p.Jitter = base, jitter
	switch {
	case attempts > 5:
		p.Cap = 10 * base
	case base<<max(attempts-2, 0) > time.Hour:
		p.Cap = base << max(attempts-2, 0) // above the default
	}
	return p
}

// timeouts returns the AttemptTimeouts of the family, the longest first: none; round ones, from one that one attempt in
// ten meets to one that all but one in a million meet; what WorstCase or a deadline leaves each of n attempts; and,
// with a fleet, what is sensible there.
func (s *solver) timeouts(set needs) []time.Duration {
	d := s.r.Duration
	var all []time.Duration
	fleet := set&needFleet != 0
	if longest := d.Max(); longest > 0 {
		from, to := d.At(0.1), d.At(1-1e-6)
		for unit := time.Millisecond; unit <= 100*time.Hour; unit *= 10 {
			for _, digits := range []time.Duration{10, 12, 15, 20, 25, 30, 40, 50, 60, 80} {
				if t := unit / 10 * digits; t >= from && t/2 <= to {
					all = append(all, t)
				}
			}
		}
		if longest < maxDuration {
			all = append(all, longest)
		}
	}
	if s.r.WorstCase > 0 {
		for n := range 16 {
			// The waits of a Base of 1ms are left out of it, twice over.
			_, waits := member(n+1, roundBases[0], 0, retry.FullJitter).TotalWait()
			if t := cutOff((s.r.WorstCase-waits)/time.Duration(n+1), 2); t > 0 {
				all = append(all, t)
			}
		}
	}
	if fleet {
		deadline := s.deadline(set)
		for n := range 4 {
			if t := cutOff(deadline/time.Duration(n+1)-1, 1); t > 0 {
				all = append(all, t)
			}
		}
		all = append(all, s.usualTimeout, 2*s.usualTimeout, 5*s.usualTimeout, cutOff(s.usualTimeout/2, 1), cutOff(s.usualTimeout/5, 1))
		// A timeout up to what the backend takes for one attempt lets none succeed.
		service := s.r.Fleet.service()
		all = slices.DeleteFunc(all, func(t time.Duration) bool { return t <= service || deadline > 0 && t >= deadline })
	}
	slices.SortFunc(all, func(x, y time.Duration) int { return cmp.Compare(y, x) })
	return append([]time.Duration{0}, slices.Compact(all)...)
}

// fleetTimeout returns a timeout that suits a fleet: three times what 99 % of the attempts take or, if that is more,
// long enough that random arrivals at a tenth more than Rate hardly ever make an attempt wait for it, to one digit.
func (s *solver) fleetTimeout() time.Duration {
	f := s.r.Fleet
	t := saturatingAdd(s.r.Duration.At(0.99), 0)
	t = saturatingAdd(t, saturatingAdd(t, t))
	if f.Rate < f.Capacity {
		c := &certifier{fleet: *f}
		t = max(t, saturatingAdd(seconds(c.quiet(min(1.1*f.Rate, (f.Rate+f.Capacity)/2))), f.service()))
	}
	t = min(max(t, time.Millisecond), time.Hour)
	return raisedTo(t, 1)
}

// apart returns how many decades two durations above 0 are apart.
func apart(x, y time.Duration) float64 { return math.Abs(math.Log10(float64(x) / float64(y))) }

// bases returns the Bases of the family for so many attempts, ascending; with an Outage also the least that bridges it.
func (s *solver) bases(attempts int, jitter retry.JitterMode) []time.Duration {
	if attempts == 1 {
		return roundBases[:1]
	}
	if s.r.Outage == 0 {
		return roundBases
	}
	const unit = time.Second
	lo, _ := member(attempts, unit, 0, jitter).TotalWait()
	if lo <= 0 {
		return roundBases
	}
	least := float64(s.r.Outage) / (float64(lo) / float64(unit))
	if least > float64(maxDuration)/float64(int64(1)<<min(attempts, 8)) {
		return roundBases
	}
	exact := time.Duration(least) + 1
	all := append(slices.Clone(roundBases), raised(exact))
	slices.Sort(all)
	return slices.Compact(all)
}
