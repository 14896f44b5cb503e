package retryplan

import (
	"cmp"
	"math"
	"slices"
	"strconv"
	"strings"
	"time"
)

// conflict says why a search for all requirements found nothing: it gives up one after the other for as long as what is
// left cannot be met, and so comes to one that cannot be met, or to some of which each but for the others can.
func (s *solver) conflict(fewest *search) *InfeasibleError {
	unsure := s.short
	for _, name := range slices.Backward(fewest.set) {
		without := s.search(slices.DeleteFunc(slices.Clone(fewest.set), func(n Requirement) bool { return n == name }))
		s.effort, s.short = eachEffort, false
		if len(without.set) > 0 && len(without.run()) == 0 && !s.short {
			fewest, unsure = without, false
		}
	}
	s.effort, s.short = eachEffort, false
	e := &InfeasibleError{A: fewest.set[0], Why: fewest.why()}
	if len(fewest.set) > 1 {
		e.B = fewest.set[1]
	}
	if unsure {
		e.Why += "; that is said of the policies that were looked at, which are not all of the family"
	}
	return e
}

// why says why the requirements cannot be met together, each but for the others of which can.
func (s *search) why() string {
	last := len(s.set) - 1
	a, name, rest := s.set[0], s.set[last], s.search(s.set[:last])
	best, policies := "", "policies of the family"
	if last > 0 {
		policies = "policies that meet " + s.required(a)
	}
	switch deadline := shortDuration(s.deadline); {
	case last > 1:
		text := string(a)
		for _, name := range s.set[1:last] {
			text += ", " + string(name)
		}
		return "any two of " + text + " and " + string(name) + " can be met, but not all of them together"
	case name != "Fleet":
		best = rest.best(policies, name)
	case s.refused != "" && last == 0:
		return s.refused
	case s.refused != "":
		return "no policy that meets " + s.required(a) + " does for the fleet: " + s.refused
	case a == "Outage" && s.deadline > 0:
		return "its Deadline of " + deadline + " ends runs before they make an attempt after an outage of " + shortDuration(s.r.Outage)
	case s.deadline > 0:
		best = s.search(s.set[last:]).best("within its Deadline of "+deadline+" runs", a)
	}
	return cmp.Or(best, "no policy of the family meets "+s.required(a)+strings.Repeat(" and "+s.required(name), last))
}

// best returns the sentence about the best that the policies of s, in words, have for a requirement, or "" if that is
// enough by what closed forms say.
func (s *search) best(policies string, name Requirement) string {
	var best figures
	least := math.Inf(1)
	s.grid(name, func(o *option) {
		if name == "P99" {
			if o.base != roundBases[0] {
				return
			}
			o.p99 = s.plan(o.member).p99
		}
		if by, _ := s.miss(&o.figures, name); by < least {
			best, least = o.figures, by
		}
	})
	if least <= 0 || math.IsInf(least, 1) {
		return ""
	}
	have := " have a " + string(name) + " of "
	switch name {
	case "Success":
		have = " succeed with probability "
	case "Outage":
		have = " have an Outage of "
	}
	return policies + have + figureOf(name, best) + " at best, and " + s.required(name) + " is required"
}

// required returns a requirement with its value.
func (s *solver) required(name Requirement) string {
	r := &s.r
	text := string(name)
	if name != "Fleet" {
		text += " " + figureOf(name, figures{success: r.Success, load: r.Load, p99: r.P99, worst: r.WorstCase, outage: r.Outage})
	}
	if name == "Success" || name == "Load" {
		text += " at Failure " + plainNumber(r.Failure)
	}
	return text
}

// figureOf returns what a requirement is about as text.
func figureOf(name Requirement, f figures) string {
	switch name {
	case "Success":
		return plainNumber(f.success)
	case "Load":
		return plainNumber(f.load)
	}
	return shortDuration(map[Requirement]time.Duration{"P99": f.p99, "WorstCase": f.worst, "Outage": f.outage}[name])
}

func plainNumber(x float64) string { return strconv.FormatFloat(x, 'g', 6, 64) }

// shortDuration returns d as plainly does, cut off after three digits.
func shortDuration(d time.Duration) string {
	if d == math.MaxInt64 {
		return "any length"
	}
	return plainly(cutOff(d, 3))
}
