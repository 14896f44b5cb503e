package retryplan

import (
	"context"
	"math"
	"slices"
	"sort"
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
	for need, set := range map[needs]bool{needSuccess: r.Success > 0, needP99: r.P99 > 0, needWorst: r.WorstCase > 0, needLoad: r.Load > 0,
		needOutage: r.Outage > 0, needFleet: r.Fleet != nil} {
		if set {
			all |= need
		}
	}
	return all
}

// enoughPlans is how many plans a search makes before it is content with what it has found.
const enoughPlans = 100

// solver searches the family. It remembers what was expensive to know.
type solver struct {
	ctx       context.Context
	r         Requirements
	all       needs
	choices   []time.Duration // of AttemptTimeout
	quantiles map[memberKey]time.Duration
	fleets    map[memberKey]verdictOf
}

type memberKey struct {
	attempts           int
	base, timeout, ttl time.Duration
	jitter             retry.JitterMode
}

// verdictOf is how the fleet fares with a policy.
type verdictOf struct {
	budget *retry.BudgetConfig
	margin float64
	ok     bool
}

func newSolver(ctx context.Context, r Requirements) *solver {
	s := &solver{ctx: ctx, r: r, all: r.needs(), quantiles: map[memberKey]time.Duration{}, fleets: map[memberKey]verdictOf{}}
	s.choices = s.timeouts()
	return s
}

func (s *solver) model() Model {
	return Model{Failure: []float64{s.r.Failure}, Duration: s.r.Duration, Horizon: mostSolved}
}

func keyOf(p retry.Policy) memberKey {
	return memberKey{p.MaxAttempts, p.Base, p.AttemptTimeout, p.TTL, p.Jitter}
}

// search returns the options that meet a set of requirements, the best first, and none where there is none.
func (s *solver) search(set needs) []*option {
	jitters := []retry.JitterMode{retry.FullJitter}
	if set&needOutage != 0 {
		jitters = []retry.JitterMode{retry.EqualJitter, retry.RatioJitter}
	}
	var found []*option
	for _, jitter := range jitters {
		for _, timeout := range s.choices {
			found = append(found, s.attemptsFor(set, timeout, jitter)...)
			if s.ctx.Err() != nil {
				return nil
			}
			if slices.ContainsFunc(found, (*option).ample) || len(found) > 0 && len(s.quantiles) > enoughPlans {
				break // shorter timeouts are no simpler
			}
		}
	}
	if len(found) == 0 && set&needWorst != 0 && set&needOutage == 0 {
		found = s.bounded(set)
	}
	slices.SortStableFunc(found, func(x, y *option) int {
		switch {
		case x.score > y.score:
			return -1
		case x.score < y.score:
			return 1
		default:
			return 0
		}
	})
	return found
}

// attemptsFor returns one option for each number of attempts with a timeout that meets the requirements: as many as are
// needed, and a few more.
func (s *solver) attemptsFor(set needs, timeout time.Duration, jitter retry.JitterMode) (found []*option) {
	more, most := 0, 4
	switch {
	case set&needOutage != 0:
		most = 8 // more attempts bridge it with shorter waits
	case set&needP99 != 0:
		most = 2 // each costs a few plans
	}
	for n := 1; n <= mostSolved && more < most; n++ {
		f := s.closed(member(n, roundBases[0], timeout, jitter))
		switch {
		case set&needLoad != 0 && f.load > s.r.Load:
			return found
		case set&needSuccess != 0 && f.success < s.r.Success:
			continue
		case set&needWorst != 0 && f.worst > s.r.WorstCase:
			return found
		case set&needOutage != 0 && n == 1:
			continue
		}
		more++
		o, late := s.baseFor(set, n, timeout, jitter)
		if o != nil {
			found = append(found, o)
		}
		if late && set&needOutage == 0 {
			return found // with more attempts it is later
		}
	}
	return found
}

// baseFor returns the option for a number of attempts, nil where there is none. late says that even the shortest waits are
// too long for P99.
func (s *solver) baseFor(set needs, n int, timeout time.Duration, jitter retry.JitterMode) (o *option, late bool) {
	var policies []retry.Policy
	for _, base := range s.bases(n, jitter) {
		p := member(n, base, timeout, jitter)
		if f := s.closed(p); s.meets(f, set&^(needP99|needFleet)) {
			policies = append(policies, p)
		}
		if n == 1 {
			break
		}
	}
	if set&needP99 != 0 && len(policies) > 0 {
		if s.quantile(policies[0]) > s.r.P99 {
			return nil, true
		}
		early := func(among []retry.Policy, limit time.Duration) []retry.Policy {
			return among[:sort.Search(len(among), func(i int) bool { return s.quantile(among[i]) > limit })]
		}
		// Longer waits than usual are not looked at where the usual ones are early enough.
		usual := policies
		if i := slices.IndexFunc(policies, func(p retry.Policy) bool { return p.Base > usualBase }); i > 0 {
			usual = policies[:i]
		}
		if roomy := early(usual, s.r.P99/5*4); len(roomy) > 0 {
			policies = roomy
		} else {
			policies = early(usual, s.r.P99)
		}
		policies = policies[len(policies)-1:]
	}
	// Of what is allowed the usual Base, or what is nearest to it with a fifth to spare in WorstCase and Outage.
	var best *option
	for _, p := range policies {
		o := &option{policy: p, figures: s.closed(p)}
		if set&needP99 != 0 {
			o.p99 = s.quantile(p)
		}
		s.rate(o, set)
		if best == nil || o.score > best.score {
			best = o
		}
	}
	if best != nil && set&needFleet != 0 {
		v := s.survives(best)
		if !v.ok {
			return nil, false
		}
		best.budget, best.margin = v.budget, v.margin
		s.rate(best, set)
	}
	return best, false
}

// bounded returns options with a TTL, which bounds the worst case of many attempts that are mostly short.
func (s *solver) bounded(set needs) (found []*option) {
	for _, timeout := range s.choices {
		ttl := cutOff(s.r.WorstCase-timeout, 2)
		if timeout == 0 || ttl < timeout || s.ctx.Err() != nil {
			continue
		}
		extra := 0
		for n := 2; n <= 16 && extra < 3; n++ {
			p := member(n, roundBases[0], timeout, retry.FullJitter)
			if f := s.closed(p); set&needSuccess != 0 && f.success < s.r.Success {
				continue // a TTL only takes attempts away
			}
			extra++
			p.TTL = ttl
			plan, err := New(p, s.model())
			if err != nil {
				continue
			}
			o := &option{policy: p, figures: figures{success: plan.Success, load: plan.Load, worst: plan.WorstCase, p99: plan.Elapsed.Quantile(0.99)}}
			if !s.meets(o.figures, set&^needFleet) {
				continue
			}
			if set&needFleet != 0 {
				v := s.survives(o)
				if !v.ok {
					continue
				}
				o.budget, o.margin = v.budget, v.margin
			}
			s.rate(o, set)
			found = append(found, o)
		}
	}
	return found
}

// quantile returns the 99th percentile of a run's time.
func (s *solver) quantile(p retry.Policy) time.Duration {
	if q, ok := s.quantiles[keyOf(p)]; ok {
		return q
	}
	q := time.Duration(math.MaxInt64)
	if plan, err := New(p, s.model()); err == nil {
		q = plan.Elapsed.Quantile(0.99)
	}
	s.quantiles[keyOf(p)] = q
	return q
}

// survives says how the fleet fares: with its own budget, or without one, or where that does not do with one that pays for the
// retries at Failure and a tenth more.
func (s *solver) survives(o *option) verdictOf {
	k := keyOf(o.policy)
	if v, ok := s.fleets[k]; ok {
		return v
	}
	var v verdictOf
	target := *s.r.Fleet
	if target.Rate*o.load < target.Capacity {
		try := func(b *retry.BudgetConfig) bool {
			target.Budget = b
			c := certifier{fleet: target, storm: newStorm(o.policy, target.Deadline)}
			if found := c.find(change{rate: 1, trigger: 1}); found.verdict.Survives() && s.pays(b, o) {
				v = verdictOf{budget: b, margin: c.margin(found), ok: true}
			}
			return v.ok && v.margin >= 0.05 // otherwise chance may decide
		}
		if own := s.r.Fleet.Budget; own != nil || o.policy.MaxAttempts == 1 {
			try(own)
		} else if !try(nil) {
			for _, ratio := range []float64{0.1, 0.2, 0.5, 1, 2, 5, 10} {
				b := &retry.BudgetConfig{Ratio: ratio}
				if s.pays(b, o) {
					try(b)
					break
				}
			}
		}
	}
	s.fleets[k] = v
	return v
}

// pays reports whether a budget pays for the retries of runs outside a storm: ratio·success ≥ 1.1·(load − 1).
func (s *solver) pays(b *retry.BudgetConfig, o *option) bool {
	if b == nil {
		return true
	}
	ratio, _, _ := budgetFigures(*b)
	income := ratio * o.success
	if b.Trickle > 0 {
		purses := 1.0
		if !s.r.Fleet.Shared {
			purses = float64(s.r.Fleet.clients())
		}
		income += purses / b.Trickle.Seconds() / s.r.Fleet.Rate
	}
	return income >= 1.1*(o.load-1)-1e-12
}

// meets reports whether figures meet the requirements of a set, but for the fleet's.
func (s *solver) meets(f figures, set needs) bool {
	return (set&needSuccess == 0 || f.success >= s.r.Success) &&
		(set&needP99 == 0 || f.p99 <= s.r.P99) &&
		(set&needWorst == 0 || f.worst <= s.r.WorstCase) &&
		(set&needLoad == 0 || f.load <= s.r.Load) &&
		(set&needOutage == 0 || f.outage >= s.r.Outage)
}

// slack returns how much an option has to spare in one requirement, as a share of it; of Success and Load that is the share of
// the failures and of the retries that are allowed.
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
	if p.AttemptTimeout > 0 {
		o.score -= 0.01
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

// ample reports whether an option has a fifth to spare in each requirement and loses little by the rest of its score.
func (o *option) ample() bool {
	least := 0.2 - 0.01*float64(o.policy.MaxAttempts) - 0.03
	if o.budget != nil {
		least -= 0.02
	}
	return o.score >= least
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
