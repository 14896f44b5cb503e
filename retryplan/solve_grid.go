package retryplan

import (
	"cmp"
	"context"
	"math"
	"slices"
	"time"

	"github.com/retrygo/retry"
)

// needs is a set of requirements.
type needs uint8

const (
	needSuccess needs = 1 << iota
	needP99
	needWorst
	needLoad
	needOutage
	needFleet
)

var namedNeeds = []struct {
	need needs
	name Requirement
}{{needSuccess, "Success"}, {needP99, "P99"}, {needWorst, "WorstCase"}, {needLoad, "Load"}, {needOutage, "Outage"}, {needFleet, "Fleet"}}

func (r *Requirements) needs() (all needs) {
	for i, set := range []bool{r.Success > 0, r.P99 > 0, r.WorstCase > 0, r.Load > 0, r.Outage > 0, r.Fleet != nil} {
		if set {
			all |= 1 << i
		}
	}
	return all
}

// What is looked at before a search is content with what it has found, and before it gives up: in attempts of plans, a
// millisecond or so each, and in workPerEffort of fluids.
const (
	enoughEffort  = 300
	searchEffort  = 1200
	eachEffort    = 300 // of one search for what explains that nothing was found
	workPerEffort = 100_000
)

// option is a policy of the grid with its figures.
type option struct {
	policy retry.Policy
	budget *retry.BudgetConfig
	figures
	margin float64 // of the certificate
	binds  bool    // retries make it less, as far as margins are exact, than Capacity above Rate leaves to any policy
	score  float64
}

// figures are what requirements are about.
type figures struct {
	success, load      float64
	p99, worst, outage time.Duration
	// cut says that a deadline or a TTL may end runs, so that success is a bound from above, and a Plan knows better.
	cut bool
}

// planned returns the figures that a plan has, all but outage.
func planned(p *Plan) figures {
	return figures{success: p.InTime, load: p.Load, worst: p.WorstCase, p99: p.Elapsed.Quantile(0.99)}
}

// solver searches the grid.
type solver struct {
	ctx          context.Context
	r            Requirements
	all          needs
	usualTimeout time.Duration // with a fleet
	plans        map[planKey]figures
	waits        map[memberKey]Wait
	fleets       map[memberKey]fleetFit
	effort       int       // that is left
	short        bool      // effort did not suffice
	refused      shortfall // of the search: how near the fleet came
}

type memberKey struct {
	attempts           int
	base, timeout, ttl time.Duration
	jitter             retry.JitterMode
}

type planKey struct {
	memberKey
	deadline time.Duration
}

func keyOf(p *retry.Policy) memberKey {
	return memberKey{p.MaxAttempts, p.Base, p.AttemptTimeout, p.TTL, p.Jitter}
}

func newSolver(ctx context.Context, r Requirements) *solver {
	s := &solver{ctx: ctx, r: r, all: r.needs(), plans: map[planKey]figures{}, waits: map[memberKey]Wait{}, fleets: map[memberKey]fleetFit{}, effort: searchEffort}
	if r.Fleet != nil {
		s.usualTimeout = s.fleetTimeout()
	}
	return s
}

// deadline returns that of the fleet if the set has it, otherwise 0.
func (s *solver) deadline(set needs) time.Duration {
	if set&needFleet == 0 {
		return 0
	}
	return s.r.Fleet.Deadline
}

func (s *solver) model(set needs) Model {
	return Model{Failure: []float64{s.r.Failure}, Duration: s.r.Duration, Deadline: s.deadline(set), Horizon: mostSolved}
}

// over reports whether the context has ended, or nothing more may be looked at.
func (s *solver) over() bool {
	if s.effort <= 0 {
		s.short = true
	}
	return s.short || s.ctx.Err() != nil
}

// grid calls visit with the policies of the family that meet a set of requirements as far as closed forms say, and with
// no more attempts than some above what is needed, unless all are wanted.
func (s *solver) grid(set needs, all bool, visit func(o *option)) {
	jitters, most := []retry.JitterMode{retry.FullJitter}, 4
	if set&needOutage != 0 {
		jitters, most = []retry.JitterMode{retry.EqualJitter, retry.RatioJitter}, 8 // more attempts bridge it with shorter waits
	}
	if all {
		most = mostSolved
	}
	for _, jitter := range jitters {
		for _, timeout := range s.timeouts(set) {
			more := 0
			for n := 1; n <= mostSolved && more < most && s.ctx.Err() == nil; n++ {
				some := false
				for _, base := range s.bases(n, jitter) {
					o := &option{policy: member(n, base, timeout, jitter)}
					s.close(o, set)
					if s.meets(&o.figures, set&^(needP99|needFleet)) {
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

// close gives an option the figures that have a closed form, all but p99, within the deadline of the set. With φ = 1 −
// (1−f)·P(D ≤ T), the probability that an attempt fails or is cut off, n attempts succeed with 1 − φⁿ and are
// (1−φⁿ)/(1−φ) on average (a geometric distribution cut off at n). If there are too many attempts for WorstCase a TTL
// ends them.
func (s *solver) close(o *option, set needs) {
	p, f := &o.policy, &o.figures
	good, longest, deadline := 1-s.r.Failure, s.r.Duration.Max(), s.deadline(set)
	timeout := p.AttemptTimeout
	if deadline > 0 && (timeout == 0 || deadline < timeout) {
		timeout = deadline
	}
	if timeout > 0 {
		good *= s.r.Duration.CDF(timeout)
		longest = min(longest, timeout)
	}
	n := p.MaxAttempts
	f.load = float64(n)
	f.success = 1 - math.Pow(1-good, float64(n))
	if good > 0 {
		f.load = f.success / good
	}
	key := memberKey{attempts: n, base: p.Base, jitter: p.Jitter}
	waits, ok := s.waits[key]
	if !ok {
		waits.Lo, waits.Hi = p.TotalWait()
		s.waits[key] = waits
	}
	f.outage, f.worst = waits.Lo, maxDuration
	if longest <= (maxDuration-waits.Hi)/time.Duration(n) {
		f.worst = waits.Hi + longest*time.Duration(n)
	}
	if deadline > 0 {
		f.cut = f.worst >= deadline
		f.worst = min(f.worst, deadline)
		if waits.Hi >= deadline {
			// No history steps over what is left after the longest wait.
			longestWait := time.Duration(0)
			for i := 1; i < n; i++ {
				_, wait := p.Bounds(i)
				longestWait = max(longestWait, wait)
			}
			f.outage = max(min(f.outage, deadline-longestWait), 0)
		}
	}
	if set&needWorst != 0 && set&needOutage == 0 && f.worst > s.r.WorstCase && n > 1 && n <= 16 && p.Base == roundBases[0] {
		if ttl := cutOff(s.r.WorstCase-p.AttemptTimeout, 2); p.AttemptTimeout > 0 && ttl >= p.AttemptTimeout {
			p.TTL, f.worst, f.cut = ttl, s.r.WorstCase, true
		}
	}
	if f.cut {
		f.load = 1 // or more
	}
}

// search returns options that meet a set of requirements, the best first, or none. It verifies the options of the grid
// in the order of their scores. These can only become less by what plans and certificates show, so that the best is
// found when no other can be better.
func (s *solver) search(set needs) (found []*option) {
	s.refused = shortfall{}
	var candidates []*option
	s.grid(set, false, func(o *option) {
		s.rate(o, set)
		candidates = append(candidates, o)
	})
	slices.SortStableFunc(candidates, func(x, y *option) int { return cmp.Compare(y.score, x.score) })
	v, before := verifier{solver: s, set: set, hopeless: map[memberKey]bool{}}, s.effort
	best := math.Inf(-1)
	for _, o := range candidates {
		if s.over() || best >= o.score || len(found) > 0 && before-s.effort > enoughEffort {
			break
		}
		if v.verify(o) {
			found = append(found, o)
			best = max(best, o.score)
		}
	}
	slices.SortStableFunc(found, func(x, y *option) int { return cmp.Compare(y.score, x.score) })
	return found
}

// verifier verifies options by plans and certificates, and remembers what they rule out.
type verifier struct {
	*solver
	set      needs
	ruled    []*option
	hopeless map[memberKey]bool // of a fleet, whatever the Base
}

// verify reports whether an option meets the requirements, and gives it its figures.
func (v *verifier) verify(o *option) bool {
	p := &o.policy
	if v.set&needP99 != 0 || o.cut {
		if slices.ContainsFunc(v.ruled, func(r *option) bool { return v.rulesOut(r, o) }) {
			return false
		}
		outage := o.outage
		o.figures = v.plan(p, v.set)
		o.outage = outage
		if !v.meets(&o.figures, v.set) {
			v.ruled = append(v.ruled, o)
			if first := member(p.MaxAttempts, roundBases[0], p.AttemptTimeout, p.Jitter); p.TTL == 0 && p.Base > first.Base && v.late(o) {
				shortest := &option{policy: first, figures: v.plan(&first, v.set)}
				if v.late(shortest) {
					v.ruled = append(v.ruled, shortest)
				}
			}
			return false
		}
	}
	if v.set&needFleet != 0 {
		key := keyOf(p)
		key.base = 0
		if v.hopeless[key] || !v.survives(o) {
			v.hopeless[key] = true
			return false
		}
	}
	v.rate(o, v.set)
	return true
}

// late reports whether an option's plan is too late for P99.
func (v *verifier) late(o *option) bool { return v.set&needP99 != 0 && o.p99 > v.r.P99 }

// rulesOut reports whether an option whose plan was made shows that another fails like it: with waits that are no
// shorter, more attempts are as late, and fewer succeed as seldom.
func (v *verifier) rulesOut(r, o *option) bool {
	p, q := &r.policy, &o.policy
	return p.AttemptTimeout == q.AttemptTimeout && p.Jitter == q.Jitter && p.TTL == q.TTL && p.Base <= q.Base &&
		(v.late(r) && p.MaxAttempts <= q.MaxAttempts || v.set&needSuccess != 0 && r.success < v.r.Success && p.MaxAttempts >= q.MaxAttempts)
}

// plan returns the figures of a policy's plan, all but outage. If there is no time to make the plan, they meet no
// requirement.
func (s *solver) plan(p *retry.Policy, set needs) figures {
	key := planKey{keyOf(p), s.deadline(set)}
	if f, ok := s.plans[key]; ok {
		return f
	}
	f := figures{load: math.Inf(1), p99: maxDuration, worst: maxDuration}
	if s.over() {
		return f
	}
	s.effort -= p.MaxAttempts
	if plan, err := New(*p, s.model(set)); err == nil {
		f = planned(plan)
	}
	s.plans[key] = f
	return f
}

// meets reports whether figures meet the requirements of a set, but for the fleet's.
func (s *solver) meets(f *figures, set needs) bool {
	return (set&needSuccess == 0 || f.success >= s.r.Success) &&
		(set&needP99 == 0 || f.p99 <= s.r.P99) &&
		(set&needWorst == 0 || f.worst <= s.r.WorstCase) &&
		(set&needLoad == 0 || f.load <= s.r.Load) &&
		(set&needOutage == 0 || f.outage >= s.r.Outage)
}

// slack returns how much an option has to spare in one requirement, as a share of it; of Success and Load that is the
// share of the failures and of the retries that are allowed.
func (s *solver) slack(o *option, need needs) float64 {
	share := func(got, allowed float64) float64 {
		if allowed <= 0 {
			return 0
		}
		return 1 - got/allowed
	}
	switch need {
	case needSuccess:
		return share(1-o.success, 1-s.r.Success)
	case needP99:
		return share(float64(o.p99), float64(s.r.P99))
	case needWorst:
		return share(float64(o.worst), float64(s.r.WorstCase))
	case needLoad:
		if s.r.Load == 1 {
			return 0
		}
		return share(o.load-1, s.r.Load-1)
	case needOutage:
		return share(float64(s.r.Outage), float64(o.outage))
	default:
		if !o.binds {
			return math.Inf(1)
		}
		return o.margin
	}
}

// rate scores an option: what it has to spare in the requirement that binds, up to a fifth, less what makes it harder to
// understand or costs its backend more.
func (s *solver) rate(o *option, set needs) {
	o.score = 0.2
	for _, n := range namedNeeds {
		if set&n.need != 0 && n.need != needFleet {
			o.score = min(o.score, s.slack(o, n.need))
		}
	}
	p := &o.policy
	o.score -= 0.01 * float64(p.MaxAttempts)
	switch fleet := set&needFleet != 0; {
	case fleet && p.AttemptTimeout == 0:
		o.score -= 0.1
	case fleet:
		o.score -= 0.02 * apart(p.AttemptTimeout, s.usualTimeout)
		if o.margin < 0.05 {
			o.score -= 0.05 // chance may decide
		}
	case p.AttemptTimeout > 0:
		o.score -= 0.01
	}
	if p.AttemptTimeout > 0 {
		o.score -= 1 - s.r.Duration.CDF(p.AttemptTimeout) // attempts that it cuts off
	}
	if p.AttemptTimeout != cutOff(p.AttemptTimeout, 1) {
		o.score -= 0.01
	}
	if p.Base > 0 {
		away := float64(max(p.Base, usualBase)) / float64(min(p.Base, usualBase))
		o.score -= 0.02 * math.Log10(away)
	}
	if p.Base != cutOff(p.Base, 1) && !slices.Contains(roundBases, p.Base) {
		o.score -= 0.02
	}
	if o.budget != nil {
		o.score -= 0.02
	}
}

// binding returns the requirement that an option meets with the least to spare.
func (s *solver) binding(o *option) Requirement {
	least, name := math.Inf(1), Requirement("")
	for _, n := range namedNeeds {
		if s.all&n.need == 0 {
			continue
		}
		if slack := s.slack(o, n.need); slack < least {
			least, name = slack, n.name
		}
	}
	return name
}
