package retryplan

import (
	"fmt"
	"math"
	"slices"
	"sort"
	"strconv"
	"time"

	"github.com/retrygo/retry"
)

// conflict says why nothing meets all requirements: one that cannot be met, two that cannot be met together, or the fewest that
// cannot.
func (s *solver) conflict() *InfeasibleError {
	left := conflictEffort
	return s.conflictOf(func(set needs) bool {
		given := min(eachEffort, left)
		s.effort, s.short = given, false
		found := s.search(set)
		left -= given - s.effort
		s.unsure = len(found) == 0 && s.short
		return len(found) == 0
	})
}

// lookedAt is what is added to a reason that was not found by looking at the whole family.
const lookedAt = "; that is said of the policies that were looked at, which are not all of the family"

func (s *solver) conflictOf(none func(needs) bool) *InfeasibleError {
	var set []int
	for i, n := range namedNeeds {
		if s.all&n.need != 0 {
			set = append(set, i)
		}
	}
	for _, i := range set {
		if n := namedNeeds[i]; none(n.need) {
			return &InfeasibleError{A: n.name, Why: s.alone(n.need)}
		}
	}
	for at, i := range set {
		for _, j := range set[at+1:] {
			if a, b := namedNeeds[i], namedNeeds[j]; none(a.need | b.need) {
				if why, ok := s.pair(a.need, b.need); ok {
					return &InfeasibleError{A: a.name, B: b.name, Why: why}
				}
			}
		}
	}
	if len(set) < 3 { // what is left is that the search for all had more time than these, and even so found less
		e := &InfeasibleError{A: namedNeeds[set[0]].name, Why: "a policy was found that is near to it, but none that meets it"}
		if len(set) == 2 {
			e.B = namedNeeds[set[1]].name
			e.Why = "policies were found that are near to both, but none that meets both"
		}
		return e
	}
	return s.several(set, none)
}

// several says which requirements conflict where any two can be met.
func (s *solver) several(set []int, none func(needs) bool) *InfeasibleError {
	fewest, left, unsure := s.all, len(set), false
	for _, i := range set {
		if left == 3 {
			break // any two can be met
		}
		if without := fewest &^ namedNeeds[i].need; none(without) {
			fewest, left, unsure = without, left-1, s.unsure
		}
	}
	var names, either []Requirement
	for _, i := range set {
		n := namedNeeds[i]
		if fewest&n.need == 0 {
			continue
		}
		names = append(names, n.name)
		if fewest == s.all || !none(s.all&^n.need) {
			either = append(either, n.name)
		}
	}
	e := &InfeasibleError{A: names[0], B: names[1], Why: "any two of the requirements can be met, but not " + namesOf(names, "and") + " together"}
	switch {
	case len(either) > 1:
		e.A, e.B = either[0], either[1]
		e.Why += "; giving up " + namesOf(either, "or") + " would do"
	case len(either) == 1:
		if e.A != either[0] {
			e.A, e.B = either[0], e.A
		}
		e.Why += "; giving up " + string(either[0]) + " would do"
	default:
		e.Why += ", and to give up one of them is not enough"
	}
	if unsure {
		e.Why += lookedAt
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
		best := s.closed(member(mostSolved, roundBases[0], 0, retry.FullJitter), need)
		return fmt.Sprintf("at Failure %v even %d attempts succeed with probability %s only, and %s is required", plainNumber(s.r.Failure),
			mostSolved, plainNumber(best.success), plainNumber(s.r.Success))
	case needFleet:
		return s.aloneFleet()
	default:
		return s.required(need) + " is required, and no policy of the family gives it"
	}
}

// pair says why two requirements cannot be met together: the best that the one leaves for the other. It is not ok where they can
// after all, which a search that had to be short has not found.
func (s *solver) pair(a, b needs) (why string, ok bool) {
	if b == needFleet {
		return s.pairWithFleet(a)
	}
	f, best, found := s.bestFor(a, b)
	if !found {
		why = s.required(a) + " and " + s.required(b) + " are required, and no policy of the family gives both"
		if s.unsure {
			why += lookedAt
		}
		return why, true
	}
	if s.meets(f, b) {
		return "", false
	}
	of := "policies that meet"
	if s.short || s.unsure || a == needP99 && b == needOutage {
		of = "those policies that were looked at and meet" // not all, or not all for each timeout
	}
	return fmt.Sprintf("%s %s have %s at best, and %s is required", of, s.required(a), best, s.required(b)), true
}

// pairWithFleet says why no policy that meets a does for the fleet, after the search for both.
func (s *solver) pairWithFleet(a needs) (why string, ok bool) {
	of := ""
	if s.unsure {
		of = lookedAt
	}
	if s.refused.refused != refusedUnseen {
		return fmt.Sprintf("no policy that meets %s does for the fleet: %s", s.required(a), s.refusedFleet()) + of, true
	}
	deadline := s.r.Fleet.Deadline
	switch {
	case a == needSuccess && deadline > 0:
		best := s.successWithin()
		return fmt.Sprintf("within its Deadline of %s runs succeed with probability %s at best, and %s is required", shortDuration(deadline),
			shortNumber(best), plainNumber(s.r.Success)) + of, best < s.r.Success
	case a == needOutage && deadline > 0:
		return fmt.Sprintf("its Deadline of %s ends runs before they make an attempt after an outage of %s", shortDuration(deadline), shortDuration(s.r.Outage)), true
	default:
		return s.required(a) + " leaves no policy that the fleet can be certified with" + of, true
	}
}

// successWithin returns the greatest success of the family within the fleet's deadline.
func (s *solver) successWithin() (best float64) {
	s.effort, s.short = bestEffort, false
	for _, timeout := range s.choices[true] {
		for _, n := range []int{1, 2, 3, 5, 8, 16} {
			p := member(n, roundBases[0], timeout, retry.FullJitter)
			f := s.closed(p, needFleet)
			if f.success <= best {
				continue
			}
			if f.cut {
				f = s.plan(p, needFleet)
			}
			best = max(best, f.success)
		}
	}
	return best
}

// bestFor returns the figures that are best for b among the policies that meet a, and that for b as text.
func (s *solver) bestFor(a, b needs) (best figures, text string, found bool) {
	s.effort, s.short = bestEffort, false
	least := math.Inf(1)
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
	jitters, choices, most := []retry.JitterMode{retry.FullJitter}, s.choices[false], mostSolved
	if (a|b)&needOutage != 0 {
		jitters = append(jitters, retry.EqualJitter, retry.RatioJitter)
	}
	if a == needP99 {
		most = 8
		if b == needOutage { // a plan for each: of these the widest floor under the waits, and few timeouts
			jitters = jitters[2:]
			choices = slices.DeleteFunc(slices.Clone(choices), func(t time.Duration) bool { return slices.Index(choices, t)%(1+len(choices)/4) != 0 })
		}
	}
	for _, jitter := range jitters {
		for _, timeout := range choices {
			for n := 1; n <= most && s.ctx.Err() == nil; n++ {
				f, ok := s.bestOf(a, b, n, timeout, jitter)
				if !ok {
					continue
				}
				found = true
				if v := value(f); v < least {
					least, best = v, f
				}
				if b != needOutage {
					break // more attempts are no better
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
	return best, text, found
}

// bestOf returns the figures of the best policy for b that meets a with so many attempts: the one with the longest waits that
// meets a where b is Outage, else the one with the shortest.
func (s *solver) bestOf(a, b needs, n int, timeout time.Duration, jitter retry.JitterMode) (figures, bool) {
	set := a | b
	bases := s.bases(n, jitter)
	if n == 1 {
		bases = bases[:1]
	}
	meets := func(base time.Duration) bool {
		p := member(n, base, timeout, jitter)
		if a == needP99 {
			return s.plan(p, set).p99 <= s.r.P99
		}
		return s.meets(s.closed(p, set), a)
	}
	at := 0
	if b == needOutage { // longer waits are only worse for what else is required
		at = sort.Search(len(bases), func(i int) bool { return !meets(bases[i]) }) - 1
	} else if !meets(bases[0]) {
		at = -1
	}
	if at < 0 {
		return figures{}, false
	}
	p := member(n, bases[at], timeout, jitter)
	f := s.closed(p, set)
	if b == needP99 {
		planned := s.plan(p, set)
		if s.short {
			return figures{}, false
		}
		f.p99 = planned.p99
	}
	return f, true
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

func shortNumber(x float64) string { return strconv.FormatFloat(x, 'g', 3, 64) }

// shortDuration returns d without what it does not need to say: "1m" rather than "1m0s", and three digits.
func shortDuration(d time.Duration) string {
	if d == math.MaxInt64 {
		return "any length"
	}
	return cutOff(d, 3).String()
}
