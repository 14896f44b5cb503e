package retryplan

import (
	"fmt"
	"math"
	"slices"
	"strconv"
	"time"

	"github.com/retrygo/retry"
)

// conflict says why nothing meets all requirements: it gives up one after the other for as long as what is left cannot
// be met, and so comes to one that cannot be met, or to some of which each but for the others can.
func (s *solver) conflict() *InfeasibleError {
	fewest, unsure := s.all, s.short
	for _, n := range slices.Backward(namedNeeds) {
		without := fewest &^ n.need
		if without == fewest || without == 0 {
			continue
		}
		s.effort, s.short = eachEffort, false
		if len(s.search(without)) == 0 && !s.short {
			fewest, unsure = without, false
		}
	}
	s.effort, s.short = eachEffort, false
	s.search(fewest) // for refused
	var set []needs
	var names []Requirement
	for _, n := range namedNeeds {
		if fewest&n.need != 0 {
			set, names = append(set, n.need), append(names, n.name)
		}
	}
	e := &InfeasibleError{A: names[0]}
	if len(names) > 1 {
		e.B = names[1]
	}
	switch len(names) {
	case 1:
		e.Why = s.alone(set[0])
	case 2:
		e.Why = s.pair(set[0], set[1])
	default:
		e.Why = "any two of " + namesOf(names, "and") + " can be met, but not all of them together"
	}
	if unsure {
		e.Why += "; that is said of the policies that were looked at, which are not all of the family"
	}
	return e
}

// namesOf returns "A, B and C".
func namesOf(names []Requirement, and string) string {
	text := string(names[0])
	for i, name := range names[1:] {
		if i == len(names)-2 {
			text += " " + and + " " + string(name)
		} else {
			text += ", " + string(name)
		}
	}
	return text
}

// alone says why one requirement cannot be met.
func (s *solver) alone(need needs) string {
	switch need {
	case needSuccess:
		best := option{policy: member(mostSolved, roundBases[0], 0, retry.FullJitter)}
		s.close(&best, need)
		return fmt.Sprintf("at Failure %v even %d attempts succeed with probability %s only, and %s is required", plainNumber(s.r.Failure),
			mostSolved, plainNumber(best.success), plainNumber(s.r.Success))
	case needFleet:
		return s.aloneFleet()
	default:
		return s.required(need) + " is required, and no policy of the family gives it"
	}
}

// pair says why two requirements cannot be met together: the best that the one leaves for the other.
func (s *solver) pair(a, b needs) string {
	if b == needFleet {
		return s.pairWithFleet(a)
	}
	best := s.bestFor(a, b)
	if best == nil || s.meets(&best.figures, b) { // by what closed forms say
		return s.required(a) + " and " + s.required(b) + " are required, and no policy of the family gives both"
	}
	return fmt.Sprintf("policies that meet %s have %s at best, and %s is required", s.required(a), s.figure(&best.figures, b), s.required(b))
}

// pairWithFleet says why no policy that meets a does for the fleet, after the search for both.
func (s *solver) pairWithFleet(a needs) string {
	deadline := s.r.Fleet.Deadline
	switch {
	case s.refused.refused != refusedUnseen:
		return fmt.Sprintf("no policy that meets %s does for the fleet: %s", s.required(a), s.refusedFleet())
	case a == needSuccess && deadline > 0:
		return fmt.Sprintf("within its Deadline of %s runs succeed with probability %s at best, and %s is required", shortDuration(deadline),
			figure(s.successWithin()), plainNumber(s.r.Success))
	case a == needOutage && deadline > 0:
		return fmt.Sprintf("its Deadline of %s ends runs before they make an attempt after an outage of %s", shortDuration(deadline), shortDuration(s.r.Outage))
	default:
		return s.required(a) + " leaves no policy that the fleet can be certified with"
	}
}

// successWithin returns the greatest success of the family within the fleet's deadline.
func (s *solver) successWithin() (best float64) {
	s.effort, s.short = eachEffort, false
	s.grid(needFleet, true, func(o *option) {
		if n := o.policy.MaxAttempts; o.success <= best || o.policy.Base != roundBases[0] && n > 1 || n&(n-1) != 0 {
			return
		}
		if o.cut {
			o.figures = s.plan(&o.policy, needFleet)
		}
		best = max(best, o.success)
	})
	return best
}

// bestFor returns the option that is best for b among those that meet a, nil if closed forms do not say.
func (s *solver) bestFor(a, b needs) (best *option) {
	if a == needP99 {
		return nil
	}
	s.effort, s.short = eachEffort, false
	value := func(o *option) float64 { // the less the better
		switch b {
		case needP99:
			return float64(o.p99)
		case needWorst:
			return float64(o.worst)
		case needLoad:
			return o.load
		default:
			return -float64(o.outage)
		}
	}
	s.grid(a, b == needOutage, func(o *option) {
		switch {
		case b == needOutage:
			o.policy.Jitter = retry.RatioJitter // the widest floor
			s.close(o, a)
			if !s.meets(&o.figures, a) {
				return
			}
		case o.policy.Base != roundBases[0] && o.policy.MaxAttempts > 1:
			return
		case b == needP99:
			o.p99 = s.plan(&o.policy, a).p99
		}
		if best == nil || value(o) < value(best) {
			best = o
		}
	})
	return best
}

// figure returns one of some figures as text.
func (s *solver) figure(f *figures, need needs) string {
	switch need {
	case needP99:
		return "a P99 of " + shortDuration(f.p99)
	case needWorst:
		return "a WorstCase of " + shortDuration(f.worst)
	case needLoad:
		return fmt.Sprintf("a Load of %.4g", f.load)
	default:
		return "an Outage of " + shortDuration(f.outage)
	}
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

// shortDuration returns d as plainly does, cut off after three digits.
func shortDuration(d time.Duration) string {
	if d == math.MaxInt64 {
		return "any length"
	}
	return plainly(cutOff(d, 3))
}
