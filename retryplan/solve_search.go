package retryplan

import (
	"cmp"
	"context"
	"fmt"
	"math"
	"slices"
	"time"

	"github.com/retrygo/retry"
)

const (
	mostSolved = 64                     // attempts
	usualBase  = 100 * time.Millisecond // if nothing requires another: twice what AWS SDKs begin with since 2026

	// What a search looks at before it is content with what it has found, and before it gives up: in attempts of plans,
	// a millisecond or so each, and in workPerEffort of fluids.
	enoughEffort  = 300
	searchEffort  = 1200
	eachEffort    = 300 // of one search for what explains that nothing was found
	workPerEffort = 100_000
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

// policy returns m as a Policy. Waits that would go on doubling are capped: from the sixth attempt on at ten times the
// first, which keeps the schedule easy to say.
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

// option is a policy of the grid with its figures.
type option struct {
	member
	figures
	fit
	score float64
}

// figures are what requirements are about.
type figures struct {
	success, load      float64
	p99, worst, outage time.Duration
	// cut says that a deadline may end runs, so that success is a bound from above, and a Plan knows better.
	cut bool
}

// solver is what all searches for a solution share.
type solver struct {
	ctx    context.Context
	r      Requirements
	plans  map[planKey]figures
	waits  map[member]Wait
	fits   map[member]fit
	effort int  // that is left
	short  bool // effort did not suffice
}

type planKey struct {
	member
	deadline time.Duration
}

// over reports whether the context has ended, or nothing more may be looked at.
func (s *solver) over() bool {
	s.short = s.short || s.effort <= 0
	return s.short || s.ctx.Err() != nil
}

// search looks for policies that meet a set of the requirements.
type search struct {
	*solver
	set      []Requirement
	fleet    bool          // is in the set
	deadline time.Duration // the fleet's, 0 without
	usual    time.Duration // the timeout that suits the fleet
	refused  string        // why the fleet fares badly with the policy that needs the fewest attempts for it
	fewest   float64       // these
	ruled    []*option     // whose plans are too late, or succeed too seldom
	hopeless map[member]bool
}

func (s *solver) search(set []Requirement) *search {
	x := &search{solver: s, set: set, fewest: math.Inf(1), hopeless: map[member]bool{}}
	if x.has("Fleet") {
		x.fleet, x.deadline, x.usual = true, s.r.Fleet.Deadline, s.usualTimeout()
	}
	return x
}

func (s *search) has(name Requirement) bool { return slices.Contains(s.set, name) }

// run returns options that meet the set, the best first, or none. It verifies the options of the grid in the order of
// their scores. These can only become less by what plans and certificates show, so that the best is found when no other
// can be better.
func (s *search) run() (found []*option) {
	var candidates []*option
	s.grid("", func(o *option) {
		s.rate(o)
		candidates = append(candidates, o)
	})
	byScore := func(x, y *option) int { return cmp.Compare(y.score, x.score) }
	slices.SortStableFunc(candidates, byScore)
	before, best := s.effort, math.Inf(-1)
	for _, o := range candidates {
		if s.over() || best >= o.score || len(found) > 0 && before-s.effort > enoughEffort {
			break
		}
		if s.verify(o) {
			s.rate(o)
			found = append(found, o)
			best = max(best, o.score)
		}
	}
	slices.SortStableFunc(found, byScore)
	return found
}

// grid calls visit with the policies of the family that meet the set as far as closed forms say, and with no more
// attempts than some above what is needed, unless more of them are better for what is wanted.
func (s *search) grid(want Requirement, visit func(o *option)) {
	jitters, most := []retry.JitterMode{retry.FullJitter}, 4
	if s.has("Outage") {
		jitters, most = []retry.JitterMode{retry.EqualJitter, retry.RatioJitter}, 8 // more attempts bridge it with shorter waits
	}
	if want == "Outage" {
		jitters = []retry.JitterMode{retry.RatioJitter} // the highest floor
	}
	if want == "Outage" || want == "Success" {
		most = mostSolved
	}
	timeouts := s.timeouts()
	for _, jitter := range jitters {
		for _, timeout := range timeouts {
			more := 0
			for n := 1; n <= mostSolved && more < most && s.ctx.Err() == nil; n++ {
				some := false
				for _, base := range s.bases(n, jitter) {
					o := &option{member: member{n, base, timeout, jitter}}
					o.figures = s.close(o.member)
					if s.meets(&o.figures, "P99") {
						some = true
						visit(o)
					}
				}
				if some {
					more++
				}
			}
		}
	}
}

// timeouts returns the AttemptTimeouts of the family, the longest first: none; round ones, from one that one attempt in
// ten meets to one that all but one in a million meet; what WorstCase or a deadline leaves each of n attempts; and,
// with a fleet, what is sensible there.
func (s *search) timeouts() []time.Duration {
	d := s.r.Duration
	all := []time.Duration{0}
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
	for n := range 16 {
		each := time.Duration(n + 1)
		_, waits := member{n + 1, roundBases[0], 0, retry.FullJitter}.policy().TotalWait()
		all = append(all, cutOff(max(s.r.WorstCase-waits, 0)/each, 2), cutOff(max(s.deadline/each-1, 0), 1))
	}
	if s.fleet {
		all = append(all, s.usual, 2*s.usual, 5*s.usual, cutOff(s.usual/2, 1), cutOff(s.usual/5, 1))
		// A timeout up to what the backend takes for one attempt lets none succeed.
		service := s.r.Fleet.service()
		all = slices.DeleteFunc(all, func(t time.Duration) bool {
			return t > 0 && (t <= service || s.deadline > 0 && t >= s.deadline)
		})
	}
	slices.SortFunc(all, func(x, y time.Duration) int { return cmp.Compare(uint64(y-1), uint64(x-1)) }) // 0 is none
	return slices.Compact(all)
}

// usualTimeout returns a timeout that suits the fleet: three times what 99 % of the attempts take or, if that is more,
// long enough that random arrivals at a tenth more than Rate hardly ever make an attempt wait for it, to one digit.
func (s *solver) usualTimeout() time.Duration {
	f := s.r.Fleet
	t := product(3, s.r.Duration.At(0.99))
	if f.Rate < f.Capacity {
		c := &certifier{fleet: *f}
		t = max(t, saturatingAdd(seconds(c.quiet(min(1.1*f.Rate, (f.Rate+f.Capacity)/2))), f.service()))
	}
	return raisedTo(min(max(t, time.Millisecond), time.Hour), 1)
}

// bases returns the Bases of the family for so many attempts, ascending; with an Outage also the least that bridges it.
func (s *search) bases(attempts int, jitter retry.JitterMode) []time.Duration {
	if attempts == 1 {
		return roundBases[:1]
	}
	lo, _ := member{attempts, time.Second, 0, jitter}.policy().TotalWait()
	least := float64(s.r.Outage) / lo.Seconds()
	if s.r.Outage == 0 || lo == 0 || least > float64(maxDuration>>min(attempts, 8)) {
		return roundBases
	}
	all := append(slices.Clone(roundBases), raised(time.Duration(least)+1))
	slices.Sort(all)
	return slices.Compact(all)
}

// close returns the figures that have a closed form, all but p99, within the deadline. With φ = 1 − (1−f)·P(D ≤ T), the
// probability that an attempt fails or is cut off, n attempts succeed with 1 − φⁿ and are (1−φⁿ)/(1−φ) on average (a
// geometric distribution cut off at n).
func (s *search) close(m member) (f figures) {
	good, longest, n := 1-s.r.Failure, s.r.Duration.Max(), m.attempts
	for _, timeout := range []time.Duration{m.timeout, s.deadline} {
		if timeout > 0 {
			longest = min(longest, timeout)
		}
	}
	if m.timeout > 0 || s.deadline > 0 {
		good *= s.r.Duration.CDF(longest)
	}
	f.load, f.success = float64(n), 1-math.Pow(1-good, float64(n))
	if good > 0 {
		f.load = f.success / good
	}
	key := member{n, m.base, 0, m.jitter}
	waits, ok := s.waits[key]
	if !ok {
		waits.Lo, waits.Hi = key.policy().TotalWait()
		s.waits[key] = waits
	}
	f.outage, f.worst = waits.Lo, saturatingAdd(waits.Hi, product(int64(n), longest))
	if s.deadline == 0 || f.worst < s.deadline {
		return f
	}
	f.cut, f.worst, f.load = true, s.deadline, 1 // or more
	if waits.Hi >= s.deadline {
		// No history steps over what is left after the longest wait.
		_, longestWait := m.policy().Bounds(max(n-1, 1)) // waits do not fall
		f.outage = max(min(f.outage, s.deadline-longestWait), 0)
	}
	return f
}

// verify reports whether an option meets the set by its plan and its certificate, and gives it their figures. How a
// fleet fares hardly depends on the Base.
func (s *search) verify(o *option) bool {
	if s.has("P99") || o.cut {
		if slices.ContainsFunc(s.ruled, func(r *option) bool { return s.rulesOut(r, o) }) {
			return false
		}
		outage := o.outage
		o.figures = s.plan(o.member)
		o.outage = outage
		if !s.meets(&o.figures, "") {
			shortest := &option{member: o.member}
			shortest.base = roundBases[0]
			shortest.figures = s.plan(shortest.member)
			s.ruled = append(s.ruled, o, shortest)
			return false
		}
	}
	group := o.member
	group.base = 0
	if s.fleet && (s.hopeless[group] || !s.survives(o)) {
		s.hopeless[group] = true
		return false
	}
	return true
}

// rulesOut reports whether an option whose plan was made shows that another fails like it: with waits that are no
// shorter, more attempts are as late, and fewer succeed as seldom.
func (s *search) rulesOut(r, o *option) bool {
	late := s.has("P99") && r.p99 > s.r.P99 && r.attempts <= o.attempts
	seldom := s.has("Success") && r.success < s.r.Success && r.attempts >= o.attempts
	return r.timeout == o.timeout && r.jitter == o.jitter && r.base <= o.base && (late || seldom)
}

// plan returns the figures of a policy's plan, all but outage. If there is no time to make the plan, they meet no
// requirement.
func (s *search) plan(m member) figures {
	key := planKey{m, s.deadline}
	if f, ok := s.plans[key]; ok {
		return f
	}
	f := figures{load: math.Inf(1), p99: maxDuration, worst: maxDuration}
	if s.over() {
		return f
	}
	s.effort -= m.attempts
	if plan, err := New(m.policy(), s.model()); err == nil {
		f = planned(plan)
	}
	s.plans[key] = f
	return f
}

func (s *search) model() Model {
	return Model{Failure: []float64{s.r.Failure}, Duration: s.r.Duration, Deadline: s.deadline, Horizon: mostSolved}
}

// planned returns the figures that a plan has, all but outage.
func planned(p *Plan) figures {
	return figures{success: p.InTime, load: p.Load, worst: p.WorstCase, p99: p.Elapsed.Quantile(0.99)}
}

// miss returns by how much figures miss a requirement other than Fleet, and of what that is a share: of Success and
// Load the failures and the retries that are allowed. It is negative if they have room to spare.
func (s *solver) miss(f *figures, name Requirement) (by, of float64) {
	r := &s.r
	switch name {
	case "Success":
		return r.Success - f.success, 1 - r.Success
	case "P99":
		return float64(f.p99 - r.P99), float64(r.P99)
	case "WorstCase":
		return float64(f.worst - r.WorstCase), float64(r.WorstCase)
	case "Load":
		return f.load - r.Load, r.Load - 1
	default:
		return float64(r.Outage - f.outage), float64(f.outage)
	}
}

// meets reports whether figures meet the set, but for the fleet's and one other.
func (s *search) meets(f *figures, but Requirement) bool {
	return !slices.ContainsFunc(s.set, func(name Requirement) bool {
		by, _ := s.miss(f, name)
		return name != but && name != "Fleet" && by > 0
	})
}

// slack returns how much an option has to spare in a requirement, as a share of it.
func (s *solver) slack(o *option, name Requirement) float64 {
	if name == "Fleet" {
		if o.binds {
			return o.certificate.Margin
		}
		return math.Inf(1)
	}
	by, of := s.miss(&o.figures, name)
	if of <= 0 {
		return 0
	}
	return -by / of
}

// rate scores an option: what it has to spare in the requirement that binds, up to a fifth, less what makes it harder
// to understand or costs its backend more. The weights are a matter of taste.
func (s *search) rate(o *option) {
	o.score = 0.2 - 0.01*float64(o.attempts)
	for _, name := range s.set {
		if name != "Fleet" {
			o.score = min(o.score, s.slack(o, name)-0.01*float64(o.attempts))
		}
	}
	less := func(is bool, by float64) {
		if is {
			o.score -= by
		}
	}
	less(o.timeout > 0, 1-s.r.Duration.CDF(o.timeout)) // attempts that it cuts off
	less(o.timeout > 0 && !s.fleet, 0.01)
	less(o.timeout != cutOff(o.timeout, 1), 0.01)
	less(o.timeout == 0 && s.fleet, 0.1)
	less(o.timeout > 0 && s.fleet, 0.02*apart(o.timeout, s.usual))
	less(o.certificate.Margin < 0.05 && o.timeout > 0 && s.fleet, 0.05) // chance may decide
	less(o.attempts > 1, 0.02*apart(o.base, usualBase))
	less(o.base != cutOff(o.base, 1) && !slices.Contains(roundBases, o.base), 0.02)
	less(o.budget != nil, 0.02)
}

// apart returns how many decades two durations above 0 are apart.
func apart(x, y time.Duration) float64 { return math.Abs(math.Log10(float64(x) / float64(y))) }

// prove checks an option by what the package says of it, rather than by the formulas that found it.
func (s *search) prove(o *option) (Solution, error) {
	if s.ctx.Err() != nil {
		return Solution{}, context.Cause(s.ctx)
	}
	refuse := func(by Requirement, format string, a ...any) (Solution, error) {
		why := "policies were found that should meet all that is required, but none passes its proof: "
		return Solution{}, &InfeasibleError{A: by, Why: why + fmt.Sprintf(format, a...)}
	}
	p := o.policy()
	plan, err := New(p, s.model())
	if err != nil {
		return Solution{}, err
	}
	f := planned(plan)
	f.outage, f.worst = o.outage, max(f.worst, o.worst)
	least := math.Inf(1)
	solution := Solution{Policy: p, Budget: o.budget, Plan: plan}
	for _, name := range s.set {
		if by, _ := s.miss(&f, name); by > 1e-9 && name != "Fleet" {
			return refuse(name, "the plan of %v does not meet %s", p, s.required(name))
		}
		if slack := s.slack(o, name); slack < least {
			least, solution.Binding = slack, name
		}
	}
	if !s.fleet {
		return solution, nil
	}
	target := *s.r.Fleet
	target.Budget = o.budget
	result, err := Simulate(s.ctx, target.Scenario(p, 1))
	if err != nil {
		return Solution{}, err
	}
	if o.certificate.Margin < 0.05 && target.Trigger.Kind != 0 && !result.Recovered {
		return refuse("Fleet", "with %v, it does not recover in a simulation", p)
	}
	solution.Certificate, solution.Simulation = &o.certificate, &result
	return solution, nil
}
