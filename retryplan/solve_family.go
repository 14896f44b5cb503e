package retryplan

import (
	"math"
	"slices"
	"time"

	"github.com/retrygo/retry"
)

const (
	mostSolved = 64                     // attempts
	usualBase  = 100 * time.Millisecond // where nothing says otherwise: twice what AWS SDKs begin with since 2026
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

// option is a policy of the family with its figures.
type option struct {
	policy retry.Policy
	budget *retry.BudgetConfig
	figures
	margin float64 // of the certificate
	score  float64
}

// figures are what requirements are about.
type figures struct {
	success, load      float64
	p99, worst, outage time.Duration
}

// member returns the policy of the family with so many attempts. Waits that would go on doubling are capped: from the sixth
// attempt on at ten times the first, which keeps the schedule easy to say.
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

// closed returns the figures that have a closed form for a policy without TTL, all but p99. With φ = 1 − (1−f)·P(D ≤ T), the
// probability that an attempt fails or is cut off, n attempts succeed with 1 − φⁿ and are (1−φⁿ)/(1−φ) on average
// (a geometric distribution cut off at n).
func (s *solver) closed(p retry.Policy) figures {
	good, longest := 1-s.r.Failure, s.r.Duration.Max()
	if p.AttemptTimeout > 0 {
		good *= s.r.Duration.CDF(p.AttemptTimeout)
		longest = min(longest, p.AttemptTimeout)
	}
	n := p.MaxAttempts
	f := figures{load: float64(n)}
	f.success = 1 - math.Pow(1-good, float64(n))
	if good > 0 {
		f.load = f.success / good
	}
	lo, hi := p.TotalWait()
	f.outage, f.worst = lo, hi
	for range n {
		f.worst = saturatingAdd(f.worst, longest)
	}
	return f
}

// timeouts returns the AttemptTimeouts of the family, the longest first: none, and round ones from where one attempt in ten is
// in time to where all but one in a million are, as well as what WorstCase leaves each of n attempts.
func (s *solver) timeouts() []time.Duration {
	d := s.r.Duration
	var all []time.Duration
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
	if f := s.r.Fleet; f != nil {
		// A timeout below what the backend takes for one attempt lets none succeed.
		service := inNanoseconds(float64(f.workers()) / f.Capacity)
		all = slices.DeleteFunc(all, func(t time.Duration) bool { return t < service })
	}
	slices.SortFunc(all, func(x, y time.Duration) int { return int(min(max(y-x, -1), 1)) })
	return append([]time.Duration{0}, slices.Compact(all)...)
}

// cutOff returns d cut off after so many digits.
func cutOff(d time.Duration, n int) time.Duration {
	unit := time.Duration(1)
	for limit := time.Duration(math.Pow10(n)); d/unit >= limit; unit *= 10 {
	}
	return d / unit * unit
}

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
	exact := time.Duration(least)
	all := append(slices.Clone(roundBases), roundedUp(exact))
	slices.Sort(all)
	return slices.Compact(all)
}

// roundedUp returns the next duration of two digits that is above d.
func roundedUp(d time.Duration) time.Duration {
	down := cutOff(d, 2)
	unit := time.Duration(1)
	for down/unit >= 100 {
		unit *= 10
	}
	return down + unit
}
