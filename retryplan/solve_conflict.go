package retryplan

import (
	"cmp"
	"math"
	"slices"
	"strconv"
	"strings"
)

// conflict says why a search found nothing. It leaves out each requirement without which the others cannot be met
// either. What remains is one that cannot be met, or several that can be met if any one of them is left out.
func (s *search) conflict() *InfeasibleError {
	fewest := s
	for _, name := range slices.Backward(fewest.set) {
		without := s.of(slices.DeleteFunc(slices.Clone(fewest.set), func(n Requirement) bool { return n == name }))
		if len(without.set) > 0 && without.run(1) == nil {
			fewest = without
		}
	}
	e := &InfeasibleError{A: fewest.set[0], Why: fewest.why()}
	if len(fewest.set) > 1 {
		e.B = fewest.set[1]
	}
	return e
}

// why returns the reason that the set cannot be met, as one sentence.
func (s *search) why() string {
	last := len(s.set) - 1
	name, policies := s.set[last], "policies of the family"
	if last > 0 {
		var others []string
		for _, other := range s.set[:last] {
			others = append(others, s.limits.text(other))
		}
		policies = "policies that meet " + strings.Join(others, " and ")
	}
	rest := s.of(s.set[:last])
	if s.fleet != nil {
		if s.refused != "" || s.deadline == 0 {
			takes := "one attempt takes its backend " + plainly(s.fleet.service())
			return "no " + policies + " suit the fleet: " + cmp.Or(s.refused, takes)
		}
		// Its Deadline leaves too little time for another requirement.
		name, policies = s.set[0], "policies within its Deadline of "+plainly(s.deadline)
		rest = s.of(s.set[1:])
	}
	best, most := figures{}, math.Inf(-1)
	rest.grid(name, func(o *option) {
		if name == "P99" {
			if o.base != roundBases[0] {
				return
			}
			o.figures = rest.plan(o)
		}
		if slack := s.slack(o.figures, name); slack > most {
			best, most = o.figures, slack
		}
	})
	if most >= 0 || math.IsInf(most, -1) { // the closed forms do not say
		return "no " + policies + " meet " + s.limits.text(name)
	}
	return policies + " have at best " + best.text(name) + ", and " + s.limits.text(name) + " is required"
}

// text returns a requirement with its value.
func (f figures) text(name Requirement) string {
	switch name {
	case "Fleet":
		return string(name)
	case "Success", "Load":
		return string(name) + " " + plainNumber(f[name])
	}
	return string(name) + " " + plainly(cutOff(whole(f[name]), 3))
}

func plainNumber(x float64) string { return strconv.FormatFloat(x, 'g', 6, 64) }
