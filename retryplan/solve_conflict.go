package retryplan

import (
	"fmt"
	"math"
	"strconv"
	"time"

	"github.com/retrygo/retry"
)

// conflict says why nothing meets all requirements: one that cannot be met, two that cannot be met together, or two of which
// either had to go.
func (s *solver) conflict() *InfeasibleError {
	var set []int
	for i, n := range namedNeeds {
		if s.all&n.need != 0 {
			set = append(set, i)
		}
	}
	for _, i := range set {
		if len(s.search(namedNeeds[i].need)) == 0 {
			return &InfeasibleError{A: namedNeeds[i].name, Why: s.alone(namedNeeds[i].need)}
		}
	}
	for at, i := range set {
		for _, j := range set[at+1:] {
			if len(s.search(namedNeeds[i].need|namedNeeds[j].need)) == 0 {
				return &InfeasibleError{A: namedNeeds[i].name, B: namedNeeds[j].name, Why: s.pair(namedNeeds[i].need, namedNeeds[j].need)}
			}
		}
	}
	var either []Requirement
	for _, i := range set {
		if len(s.search(s.all&^namedNeeds[i].need)) > 0 {
			either = append(either, namedNeeds[i].name)
		}
	}
	if len(either) < 2 { // the best option failed its proof, or four and more conflict
		either = append(either, namedNeeds[set[0]].name, namedNeeds[set[len(set)-1]].name)
	}
	return &InfeasibleError{A: either[0], B: either[1], Why: fmt.Sprintf("any two of the requirements can be met, but not all %d; "+
		"giving up %s or %s would do", len(set), either[0], either[1])}
}

// alone says why one requirement cannot be met.
func (s *solver) alone(need needs) string {
	switch need {
	case needSuccess:
		best := s.closed(member(mostSolved, roundBases[0], 0, retry.FullJitter))
		return fmt.Sprintf("at Failure %v even %d attempts succeed with probability %s only, and %s is required", plainNumber(s.r.Failure),
			mostSolved, plainNumber(best.success), plainNumber(s.r.Success))
	case needFleet:
		f := s.r.Fleet
		if f.Rate >= f.Capacity {
			return fmt.Sprintf("its Rate of %s runs a second is not below its Capacity of %s, whatever the policy", plainNumber(f.Rate), plainNumber(f.Capacity))
		}
		return fmt.Sprintf("no policy of the family brings a fleet of %s runs a second back on a Capacity of %s", plainNumber(f.Rate), plainNumber(f.Capacity))
	default:
		return s.required(need) + " is required, and no policy of the family gives it"
	}
}

// pair says why two requirements cannot be met together: the best that the one leaves for the other.
func (s *solver) pair(a, b needs) string {
	if b == needFleet {
		return fmt.Sprintf("the fleet does not survive its trigger with any policy that meets %s", s.required(a))
	}
	best, found := s.bestFor(a, b)
	if !found {
		return s.required(a) + " and " + s.required(b) + " are required, and no policy of the family gives both"
	}
	return fmt.Sprintf("policies that meet %s have %s at best, and %s is required", s.required(a), best, s.required(b))
}

// bestFor returns the best figure for b, as text, among the policies that meet a.
func (s *solver) bestFor(a, b needs) (text string, found bool) {
	var best figures
	value := func(f figures) float64 { // the less the better
		switch b {
		case needP99:
			return float64(f.p99)
		case needWorst:
			return float64(f.worst)
		case needLoad:
			return f.load
		default:
			return -float64(f.outage)
		}
	}
	least := math.Inf(1)
	for _, jitter := range []retry.JitterMode{retry.FullJitter, retry.EqualJitter, retry.RatioJitter} {
		if jitter != retry.FullJitter && (a|b)&needOutage == 0 {
			continue
		}
		for _, timeout := range s.choices {
			for n := 1; n <= mostSolved; n++ {
				looked := false
				for _, base := range s.bases(n, jitter) {
					p := member(n, base, timeout, jitter)
					f := s.closed(p)
					if a == needP99 || b == needP99 && s.meets(f, a) {
						f.p99 = s.quantile(p)
					}
					if !s.meets(f, a) {
						continue
					}
					looked = true
					if v := value(f); v < least {
						least, best, found = v, f, true
					}
					if b != needOutage {
						break // longer waits are no better
					}
				}
				if looked && b != needOutage {
					break // nor are more attempts
				}
				if a == needP99 && n >= 8 {
					break
				}
			}
		}
	}
	switch b {
	case needP99:
		text = "a P99 of " + shortDuration(best.p99)
	case needWorst:
		text = "a WorstCase of " + shortDuration(best.worst)
	case needLoad:
		text = fmt.Sprintf("a Load of %.4g", best.load)
	default:
		text = "an Outage of " + shortDuration(best.outage)
	}
	return text, found
}

// required returns a requirement with its value.
func (s *solver) required(need needs) string {
	switch need {
	case needSuccess:
		return fmt.Sprintf("Success %s at Failure %s", plainNumber(s.r.Success), plainNumber(s.r.Failure))
	case needP99:
		return "P99 " + shortDuration(s.r.P99)
	case needWorst:
		return "WorstCase " + shortDuration(s.r.WorstCase)
	case needLoad:
		return fmt.Sprintf("Load %s at Failure %s", plainNumber(s.r.Load), plainNumber(s.r.Failure))
	case needOutage:
		return "Outage " + shortDuration(s.r.Outage)
	default:
		return "Fleet"
	}
}

func plainNumber(x float64) string { return strconv.FormatFloat(x, 'g', 6, 64) }

// shortDuration returns d without what it does not need to say: "1m" rather than "1m0s", and three digits.
func shortDuration(d time.Duration) string {
	if d == math.MaxInt64 {
		return "any length"
	}
	return cutOff(d, 3).String()
}
