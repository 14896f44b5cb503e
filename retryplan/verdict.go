package retryplan

import (
	"fmt"
	"math"
	"slices"
	"strings"
	"time"
)

// Verdict is a count of simulated seeds. It is about these seeds, and Lost is about others.
type Verdict struct {
	// Trigger is the trouble that was simulated.
	Trigger Trigger
	// Seeds is the number of seeds that were simulated, and Back the number of those whose fleet came back. Without a
	// trigger Back is the number of those that stayed well.
	Seeds, Back int
	// Drains is the number of the others that were not well in time, but whose backlog was shrinking.
	Drains int
	// CalmLost is the number of seeds that did not come back and are lost without the trigger as well.
	CalmLost int
	// CalmFailed is the share of the runs of the calm that failed, in [0,1].
	CalmFailed float64
	// Recoveries has the time of each seed that came back from the end of the trigger until it was well, sorted.
	Recoveries []time.Duration
	// Watch is the time for which a seed that was well had to stay so.
	Watch time.Duration
	// Takes is the distribution of the time of a run that succeeds once the fleet is well. Without AttemptTimeout and
	// Deadline a fleet can come back while its runs take ever longer.
	Takes Distribution
	// Drawn is a seed with the commoner outcome.
	Drawn uint64

	calm      runCount
	takes     histogram
	firstBack uint64 // seed
	firstLost uint64
}

// add counts a seed.
func (v *Verdict) add(o seedOutcome, seed uint64) {
	v.Seeds++
	v.Watch = o.watch
	if o.outcome == back {
		v.Back++
		at, _ := slices.BinarySearch(v.Recoveries, o.recovered)
		v.Recoveries = slices.Insert(v.Recoveries, at, o.recovered)
		if v.Back == 1 {
			v.firstBack = seed
		}
		v.takes.merge(&o.after)
		v.Takes = v.takes.distribution()
	} else if v.Back+1 == v.Seeds {
		v.firstLost = seed
	}
	if o.outcome == drains {
		v.Drains++
	}
	if o.calmLost {
		v.CalmLost++
	}
	v.calm.ended += o.calm.ended
	v.calm.failed += o.calm.failed
	v.CalmFailed = float64(v.calm.failed) / float64(max(v.calm.ended, 1))
	v.Drawn = v.firstLost
	if 2*v.Back >= v.Seeds {
		v.Drawn = v.firstBack
	}
}

// Lost returns bounds of the share of all seeds that do not come back, at 95 % confidence. They are the interval of
// Clopper and Pearson, "The use of confidence or fiducial limits" (Biometrika 26, 1934), one-sided if all seeds agree.
// Without seeds it returns 0 and 1.
func (v Verdict) Lost() (lo, hi float64) {
	lost, n := v.Seeds-v.Back, v.Seeds
	switch {
	case n == 0:
		return 0, 1
	case lost == 0:
		return 0, 1 - math.Pow(0.05, 1/float64(n))
	case v.Back == 0:
		return math.Pow(0.05, 1/float64(n)), 1
	}
	// atMost falls as p grows.
	lo, _ = bisect(0, 1, 40, func(p float64) bool { return atMost(lost-1, n, p) > 0.975 })
	_, hi = bisect(0, 1, 40, func(p float64) bool { return atMost(lost, n, p) > 0.025 })
	return lo, hi
}

// atMost returns the probability of k or fewer successes in n trials of probability p, 0 < p < 1.
func atMost(k, n int, p float64) (sum float64) {
	log := float64(n) * math.Log1p(-p) // of the probability of i successes
	for i := 0; ; i++ {
		sum += math.Exp(log)
		if i == k {
			return sum
		}
		log += math.Log(float64(n-i)/float64(i+1)) + math.Log(p) - math.Log1p(-p)
	}
}

// bisect halves [lo, hi], within which a property that lo has ends, so many times.
func bisect(lo, hi float64, times int, has func(x float64) bool) (float64, float64) {
	for range times {
		if mid := (lo + hi) / 2; has(mid) {
			lo = mid
		} else {
			hi = mid
		}
	}
	return lo, hi
}

// String returns v in one sentence, such as "came back in 20 of 20 simulations of a stall of 10s, median 12s, worst of 20
// 31s; at most 14 % of others do not".
func (v Verdict) String() string {
	if v.Seeds == 0 {
		return "no simulation has ended"
	}
	var b strings.Builder
	did := "came back"
	if v.Trigger.Kind == 0 {
		did = "stayed well"
	}
	fmt.Fprintf(&b, "%s in %d of %d simulations %s", did, v.Back, v.Seeds, v.Trigger.phrase())
	if n := len(v.Recoveries); n > 0 && v.Trigger.Kind != 0 {
		fmt.Fprintf(&b, ", median %s, worst of %d %s", plainly(v.Recoveries[(n-1)/2]), n, plainly(v.Recoveries[n-1]))
	}
	lo, hi := v.Lost()
	from, to := int(math.Floor(100*lo)), int(math.Ceil(100*hi))
	switch {
	case v.Back == v.Seeds:
		fmt.Fprintf(&b, "; at most %d %% of others do not", to)
	case v.Back == 0:
		fmt.Fprintf(&b, "; at least %d %% of others do not either", from)
	default:
		fmt.Fprintf(&b, "; of others %d to %d %% do not", from, to)
	}
	if v.Drains > 0 {
		fmt.Fprintf(&b, "; in %d it was not well in time, but the backlog was shrinking", v.Drains)
	}
	if v.CalmLost > 0 && v.Trigger.Kind != 0 {
		fmt.Fprintf(&b, "; %d are lost without the trigger as well", v.CalmLost)
	}
	return b.String()
}

// phrase returns t as the end of a sentence: "of a stall of 10s".
func (t *Trigger) phrase() string {
	lasts := plainly(t.For)
	switch t.Kind {
	case Outage:
		return "of an outage of " + lasts
	case Slowdown:
		return fmt.Sprintf("of a slowdown by %v for %s", t.Factor, lasts)
	case CapacityCut:
		return fmt.Sprintf("of a capacity cut to %v for %s", t.Factor, lasts)
	case Surge:
		return fmt.Sprintf("of a surge by %v for %s", t.Factor, lasts)
	case Failing:
		return fmt.Sprintf("of a failure rate of %v for %s", t.Factor, lasts)
	case Stall:
		return "of a stall of " + lasts
	default:
		return "without a trigger"
	}
}
