package contest

import (
	"errors"
	"fmt"
	"slices"
)

// nsPerOp is the unit of contenders that have New.
const nsPerOp = "ns/op"

// Validate returns an error for each rule of Scenario, Contender and Target that s breaks, joined, or nil. Run calls it
// for every scenario before it measures the first.
func (s *Scenario) Validate() error {
	var errs []error
	wrong := func(format string, args ...any) {
		errs = append(errs, fmt.Errorf("contest: scenario %q: "+format, append([]any{s.Name}, args...)...))
	}
	if s.Name == "" {
		wrong("Name is empty")
	}
	if s.Unit == "" {
		wrong("Unit is empty")
	}
	for i, cores := range s.Cores {
		if cores < 1 || slices.Contains(s.Cores[:i], cores) {
			wrong("Cores %d is below 1 or there twice", cores)
		}
	}
	if len(s.Contenders) == 0 {
		wrong("there are no contenders")
	}
	for i, c := range s.Contenders {
		same := func(o Contender) bool { return o.Name == c.Name && o.Form == c.Form }
		switch {
		case c.Name == "" || !slices.Contains([]Form{Limit, Ours, Fastest, Usual}, c.Form):
			wrong("contender %q of form %q has no name or an unknown form", c.Name, c.Form)
		case slices.ContainsFunc(s.Contenders[:i], same):
			wrong("contender %q of form %q is there twice", c.Name, c.Form)
		case (c.New == nil) == (c.Sample == nil):
			wrong("contender %q must have one of New and Sample", c.Name)
		case c.New != nil && s.Unit != nsPerOp:
			wrong("contender %q has New, so Unit must be %s, not %s", c.Name, nsPerOp, s.Unit)
		}
	}
	for _, t := range s.Targets {
		if _, _, err := s.resolve(t); err != nil {
			errs = append(errs, err)
		}
	}
	return errors.Join(errs...)
}

// cores returns the numbers of cores to measure on, of which there is at least one.
func (s *Scenario) cores() []int {
	if len(s.Cores) == 0 {
		return []int{1}
	}
	return s.Cores
}

// resolve returns the indices of the contender that t is about and of those to compare it with, which are none for the
// kinds that compare with nothing. It is an error if one of them is not there, not alone, or without what t compares.
func (s *Scenario) resolve(t Target) (ours int, against []int, err error) {
	fail := func(format string, args ...any) (int, []int, error) {
		return 0, nil, fmt.Errorf("contest: scenario %q, target %q: %s", s.Name, t.Rule, fmt.Sprintf(format, args...))
	}
	candidates := s.indices(func(c Contender) bool {
		return c.Form == Ours && (t.Ours == "" || t.Ours == c.Name)
	})
	if len(candidates) != 1 {
		return fail("Ours %q must name one contender of form %s, but names %d", t.Ours, Ours, len(candidates))
	}
	ours = candidates[0]

	switch t.Kind {
	case Ratio, Beyond:
		against = s.indices(func(c Contender) bool { return c.Name == t.Against })
		if len(against) != 1 {
			return fail("Against %q must name one contender, but names %d", t.Against, len(against))
		}
	case Best, Fewest:
		against = s.indices(func(c Contender) bool {
			return c.peer() && (t.Kind == Best || c.New != nil)
		})
		if len(against) == 0 {
			return fail("there is no peer to compare with")
		}
	case Scaling:
		if !slices.Contains(s.cores(), 1) || slices.Max(s.cores()) == 1 {
			return fail("Cores %v must have 1 and more", s.cores())
		}
	case Value, Allocs:
	default:
		return fail("Kind %q is unknown", t.Kind)
	}
	if t.Against != "" && t.Kind != Ratio && t.Kind != Beyond {
		return fail("Against %q is not for Kind %s", t.Against, t.Kind)
	}
	if t.Kind.ofAllocs() {
		for _, i := range append([]int{ours}, against...) {
			if s.Contenders[i].New == nil {
				return fail("contender %q has no New, so its allocations are not counted", s.Contenders[i].Name)
			}
		}
	}
	return ours, against, nil
}

func (s *Scenario) indices(match func(Contender) bool) []int {
	var found []int
	for i, c := range s.Contenders {
		if match(c) {
			found = append(found, i)
		}
	}
	return found
}

func (c *Contender) peer() bool { return c.Form == Fastest || c.Form == Usual }

// ofAllocs says that k compares allocations, which do not depend on the number of cores.
func (k Kind) ofAllocs() bool { return k == Allocs || k == Beyond || k == Fewest }
