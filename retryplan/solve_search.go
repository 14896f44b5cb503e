package retryplan

import (
	"cmp"
	"context"
	"fmt"
	"maps"
	"math"
	"slices"
	"time"

	"github.com/retrygo/retry"
)

const (
	mostSolved = 64                     // attempts
	usualBase  = 100 * time.Millisecond // if nothing requires another: twice what AWS SDKs begin with since 2026
	chancy     = 0.05                   // a Margin below which chance may decide
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

// member is a policy of the family.
type member struct {
	attempts      int
	base, timeout time.Duration
	jitter        retry.JitterMode
}

// policy returns m as a Policy. From the sixth attempt on, waits are capped at ten times the first, which keeps the
// schedule easy to say.
func (m member) policy() retry.Policy {
	p := retry.Policy{MaxAttempts: m.attempts, AttemptTimeout: m.timeout}
	if m.attempts == 1 {
		return p
	}
	p.Base, p.Jitter = m.base, m.jitter
	switch {
	case m.attempts > 5:
		p.Cap = 10 * m.base
	case m.base<<(m.attempts-2) > time.Hour:
		p.Cap = m.base << (m.attempts - 2) // above the default
	}
	return p
}

// figures are the values that requirements other than Fleet limit: a probability, a number of attempts, or nanoseconds.
type figures map[Requirement]float64

func (r *Requirements) limits() figures {
	return figures{"Success": r.Success, "P99": float64(r.P99), "WorstCase": float64(r.WorstCase), "Load": r.Load, "Outage": float64(r.Outage)}
}

// option is a policy of the grid with its figures.
type option struct {
	member
	fit
	figures figures
	binding Requirement // with the least to spare
	score   float64
}

// search looks for policies that meet a set of the requirements.
type search struct {
	ctx      context.Context
	required Requirements
	limits   figures
	set      []Requirement
	fleet    *Fleet                   // if the set has it
	deadline time.Duration            // the fleet's, if any
	usual    time.Duration            // the timeout that suits the fleet
	refused  string                   // why the first policy that does not suit the fleet does not
	ruledOut map[member]time.Duration // the shortest Base that is too long, by member without its Base
}

func newSearch(ctx context.Context, r Requirements, set []Requirement) *search {
	s := &search{ctx: ctx, required: r, limits: r.limits(), set: set, ruledOut: map[member]time.Duration{}}
	if slices.Contains(set, "Fleet") {
		s.fleet, s.deadline, s.usual = r.Fleet, r.Fleet.Deadline, usualTimeout(r.Fleet, r.Duration)
	}
	return s
}

// of returns a search with another set of the requirements.
func (s *search) of(set []Requirement) *search { return newSearch(s.ctx, s.required, set) }

// run returns the best option that meets the set, or nil. It verifies the options of the grid in the order of their
// scores, which plans and certificates only lower, until no other option can be better, or enough were found to choose
// from.
func (s *search) run(enough int) (best *option) {
	var candidates []*option
	s.grid("", func(o *option) {
		s.rate(o)
		candidates = append(candidates, o)
	})
	slices.SortStableFunc(candidates, func(x, y *option) int { return cmp.Compare(y.score, x.score) })
	met := 0
	for _, o := range candidates {
		if s.ctx.Err() != nil || met == enough || best != nil && best.score >= o.score {
			break
		}
		if s.verify(o) {
			met++
			if s.rate(o); best == nil || o.score > best.score {
				best = o
			}
		}
	}
	return best
}

// grid calls visit with the policies of the family that meet the set by their closed forms, all but the requirement
// best, for which it visits all that may be good. Otherwise it visits those with few more attempts than needed.
func (s *search) grid(best Requirement, visit func(o *option)) {
	jitters, most := []retry.JitterMode{retry.FullJitter}, 4
	if best == "Outage" || slices.Contains(s.set, "Outage") {
		jitters, most = []retry.JitterMode{retry.EqualJitter, retry.RatioJitter}, 8 // more attempts bridge it with shorter waits
	}
	if best == "Outage" || best == "Success" {
		most = mostSolved
	}
	timeouts := s.timeouts()
	for _, jitter := range jitters {
		for _, timeout := range timeouts {
			more := 0
			for n := 1; n <= mostSolved && more < most && s.ctx.Err() == nil; n++ {
				some := false
				for _, base := range roundBases {
					o := &option{member: member{n, base, timeout, jitter}}
					o.figures = s.close(o.member)
					if s.meets(o.figures, best) {
						some = true
						visit(o)
					}
					if n == 1 {
						break // there is no wait
					}
				}
				if some {
					more++
				}
			}
		}
	}
}

// timeouts returns the AttemptTimeouts of the family: none, and those of one or two digits between the first decile of
// Duration and what all but one attempt in a million meet, or around what suits the fleet.
func (s *search) timeouts() []time.Duration {
	d, all := s.required.Duration, []time.Duration{0}
	from, to := d.At(0.1), d.At(1-1e-6)
	for unit := time.Millisecond; unit <= 100*time.Hour; unit *= 10 {
		for _, tenths := range []time.Duration{10, 12, 15, 20, 25, 30, 40, 50, 60, 70, 80, 90} {
			t := unit / 10 * tenths
			near := t >= from && t/2 <= to && to > 0 || s.fleet != nil && t >= s.usual/5 && t/5 <= s.usual
			// A timeout up to what the backend takes for one attempt lets none succeed.
			if near && !(s.fleet != nil && (t <= s.fleet.service() || s.deadline > 0 && t >= s.deadline)) {
				all = append(all, t)
			}
		}
	}
	return all
}

// usualTimeout returns a timeout that suits the fleet: three times what 99 % of the attempts take or, if that is more,
// long enough that random arrivals at a tenth more than Rate hardly ever make an attempt wait for it, to one digit.
func usualTimeout(f *Fleet, d Dist) time.Duration {
	t := product(3, d.At(0.99))
	if f.Rate < f.Capacity {
		c := &certifier{fleet: *f}
		t = max(t, saturatingAdd(seconds(c.quiet(min(1.1*f.Rate, (f.Rate+f.Capacity)/2))), f.service()))
	}
	return raisedTo(min(max(t, time.Millisecond), time.Hour), 1)
}

// close returns the figures that have a closed form, within the deadline. With φ = 1 − (1−f)·P(D ≤ T), the
// probability that an attempt fails or is cut off, n attempts succeed with 1 − φⁿ and are (1−φⁿ)/(1−φ) on average (a
// geometric distribution cut off at n). The p99 is a bound from below; if the deadline may end runs, so is the load,
// and the success is one from above.
func (s *search) close(m member) figures {
	good, longest, n := 1-s.required.Failure, s.required.Duration.Max(), m.attempts
	for _, limit := range []time.Duration{m.timeout, s.deadline} {
		if limit > 0 && limit < longest {
			longest = limit
		}
	}
	good *= s.required.Duration.CDF(longest)
	success, load := 1-math.Pow(1-good, float64(n)), float64(n)
	if good > 0 {
		load = success / good
	}
	p := m.policy()
	lo, hi := p.TotalWait()
	outage, worst := lo, saturatingAdd(hi, product(int64(n), longest))
	var p99 time.Duration
	switch failed := 1 - good; {
	case s.deadline > 0 && worst >= s.deadline:
		worst, load = s.deadline, 1
		// However long the waits turn out, one of the attempts is between the outage and the deadline.
		_, longestWait := p.Bounds(max(n-1, 1))
		outage = max(min(outage, s.deadline-longestWait), 0)
	case failed > 0.01: // more than one run in a hundred makes so many attempts
		p.MaxAttempts = int(min(1+math.Log(0.01)/math.Log(failed), float64(n)))
		p99, _ = p.TotalWait()
	}
	return figures{"Success": success, "P99": float64(p99), "WorstCase": float64(worst), "Load": load, "Outage": float64(outage)}
}

// verify reports whether an option meets the set by its plan and its certificate, and gives it their figures.
func (s *search) verify(o *option) bool {
	group := o.member
	group.base = 0
	if least, ok := s.ruledOut[group]; ok && o.base >= least {
		return false
	}
	o.figures = s.plan(o)
	if !s.meets(o.figures, "Load") {
		// Longer waits are later, and leave less time for a success before the deadline.
		s.ruledOut[group] = o.base
		shortest := *o
		shortest.base = roundBases[0]
		if f := s.plan(&shortest); !s.meets(f, "Load") {
			s.ruledOut[group] = 0
		}
		return false
	}
	if !s.meets(o.figures, "") {
		return false
	}
	if s.fleet == nil {
		return true
	}
	if o.fit = s.fitOf(o); o.refused != "" {
		s.refused = cmp.Or(s.refused, o.refused)
		s.ruledOut[group] = 0 // since a fleet's fate hardly depends on the Base
	}
	return o.refused == ""
}

// plan returns the figures of an option with those that its plan knows better.
func (s *search) plan(o *option) figures {
	f := maps.Clone(o.figures)
	if plan, err := New(o.policy(), s.model()); err == nil {
		f["Success"], f["Load"], f["P99"] = plan.InTime, plan.Load, float64(plan.Elapsed.Quantile(0.99))
	}
	return f
}

func (s *search) model() Model {
	return Model{Failure: []float64{s.required.Failure}, Duration: s.required.Duration, Deadline: s.deadline, Horizon: mostSolved}
}

// slack returns how much figures have to spare in a requirement, as a share of it: of Success and Load as a share of
// the failures and the retries that are allowed. It is infinite for Fleet, which has no figure.
func (s *search) slack(f figures, name Requirement) float64 {
	limit := s.limits[name]
	spare, of := limit-f[name], limit
	switch name {
	case "Fleet":
		return math.Inf(1)
	case "Success":
		spare, of = rounding-spare, 1-limit
	case "Load":
		spare, of = rounding+spare, limit-1
	case "Outage":
		spare, of = -spare, f[name]
	}
	if spare == 0 {
		return 0
	}
	return spare / of
}

// meets reports whether figures meet the set, all but Fleet and one other.
func (s *search) meets(f figures, but Requirement) bool {
	return !slices.ContainsFunc(s.set, func(name Requirement) bool { return name != but && s.slack(f, name) < 0 })
}

// rate scores an option: what it has to spare in the requirement that binds, up to a fifth, less what makes it harder
// to understand or costs its backend more. The weights are a matter of taste.
func (s *search) rate(o *option) {
	least := math.Inf(1)
	o.binding = ""
	for _, name := range s.set {
		slack := s.slack(o.figures, name)
		if name == "Fleet" && o.binds {
			slack = o.certificate.Margin
		}
		if slack < least {
			least, o.binding = slack, name
		}
	}
	o.score = min(least, 0.2) - 0.01*float64(o.attempts)
	less := func(is bool, by float64) {
		if is {
			o.score -= by
		}
	}
	cuts := o.timeout > 0
	less(cuts, 1-s.required.Duration.CDF(o.timeout)) // attempts that it cuts off
	less(cuts && s.fleet == nil, 0.01)
	less(cuts && o.timeout != cutOff(o.timeout, 1), 0.01)
	less(!cuts && s.fleet != nil, 0.1)
	less(cuts && s.fleet != nil, 0.02*apart(o.timeout, s.usual))
	less(cuts && o.certificate.Law != 0 && o.certificate.Margin < chancy, 0.5)
	less(o.attempts > 1, 0.02*apart(o.base, usualBase))
	less(o.budget != nil, 0.02)
}

// apart returns how many decades two durations above 0 are apart.
func apart(x, y time.Duration) float64 { return math.Abs(math.Log10(float64(x) / float64(y))) }

// prove returns an option as a Solution, with its plan, its certificate and a simulation.
func (s *search) prove(o *option) (Solution, error) {
	plan, err := New(o.policy(), s.model())
	if err != nil {
		return Solution{}, err
	}
	solution := Solution{Policy: o.policy(), Budget: o.budget, Binding: o.binding, Plan: plan}
	if s.fleet == nil {
		return solution, nil
	}
	target := *s.fleet
	target.Budget = o.budget
	result, err := Simulate(s.ctx, target.Scenario(o.policy(), 1))
	if err != nil {
		return Solution{}, err
	}
	if o.certificate.Margin < chancy && target.Trigger.Kind != 0 && !result.Recovered {
		return Solution{}, &InfeasibleError{A: "Fleet", Why: fmt.Sprintf("in a simulation it does not recover with %v", o.policy())}
	}
	solution.Certificate, solution.Simulation = &o.certificate, &result
	return solution, nil
}
