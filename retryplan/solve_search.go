package retryplan

import (
	"cmp"
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

// How much a search and what explains its failure may look at, in plans of one attempt: a millisecond or so each.
const (
	searchEffort   = 1200
	conflictEffort = 1200
	eachEffort     = 300 // of these, one search
	bestEffort     = 200
	workPerEffort  = 100_000 // of fluids
)

// solver searches the family. It remembers what was expensive to know.
type solver struct {
	ctx          context.Context
	r            Requirements
	all          needs
	choices      map[bool][]time.Duration // of AttemptTimeout, without and with a fleet
	usualTimeout time.Duration            // with a fleet
	plans        map[planKey]figures
	fleets       map[memberKey]fleetFit
	effort       int       // that is left
	short        bool      // effort did not suffice
	unsure       bool      // nor did that of the last search of conflict that found nothing
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

func newSolver(ctx context.Context, r Requirements) *solver {
	s := &solver{ctx: ctx, r: r, all: r.needs(), plans: map[planKey]figures{}, fleets: map[memberKey]fleetFit{}, effort: searchEffort}
	s.choices = map[bool][]time.Duration{false: s.timeouts(0)}
	if r.Fleet != nil {
		s.usualTimeout = s.fleetTimeout()
		s.choices[true] = s.timeouts(needFleet)
	}
	return s
}

// deadline returns that of the fleet where a set has it, else 0.
func (s *solver) deadline(set needs) time.Duration {
	if set&needFleet == 0 {
		return 0
	}
	return s.r.Fleet.Deadline
}

func (s *solver) model(set needs) Model {
	return Model{Failure: []float64{s.r.Failure}, Duration: s.r.Duration, Deadline: s.deadline(set), Horizon: mostSolved}
}

// over reports whether nobody waits any more, or nothing more may be looked at.
func (s *solver) over() bool {
	if s.effort <= 0 {
		s.short = true
	}
	return s.short || s.ctx.Err() != nil
}

func keyOf(p retry.Policy) memberKey {
	return memberKey{p.MaxAttempts, p.Base, p.AttemptTimeout, p.TTL, p.Jitter}
}

// search returns the options that meet a set of requirements, the best first, and none where there is none.
func (s *solver) search(set needs) []*option {
	s.refused = shortfall{}
	jitters := []retry.JitterMode{retry.FullJitter}
	if set&needOutage != 0 {
		jitters = []retry.JitterMode{retry.EqualJitter, retry.RatioJitter}
	}
	var found []*option
	for _, jitter := range jitters {
		for _, timeout := range s.choices[set&needFleet != 0] {
			found = append(found, s.attemptsFor(set, timeout, jitter)...)
			if s.over() || slices.ContainsFunc(found, (*option).ample) || len(found) > 0 && len(s.plans) > enoughPlans {
				break // other timeouts are no simpler
			}
		}
	}
	if len(found) == 0 && set&needWorst != 0 && set&needOutage == 0 {
		found = s.bounded(set)
	}
	slices.SortStableFunc(found, func(x, y *option) int { return cmp.Compare(y.score, x.score) })
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
	for n := 1; n <= mostSolved && more < most && !s.over(); n++ {
		f := s.closed(member(n, roundBases[0], timeout, jitter), set)
		switch {
		case set&needLoad != 0 && f.load > s.r.Load && !f.cut:
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
	cut := false
	for _, base := range s.bases(n, jitter) {
		p := member(n, base, timeout, jitter)
		f := s.closed(p, set)
		if f.cut {
			f.load = 1
		}
		if s.meets(f, set&^(needP99|needFleet)) {
			policies = append(policies, p)
			cut = cut || f.cut
		}
		if n == 1 {
			break
		}
	}
	exact := set&needP99 != 0 || cut
	if exact && len(policies) > 0 {
		if policies, late = s.early(set, policies, cut); len(policies) == 0 {
			return nil, late
		}
	}
	// Of what is allowed the usual Base, or what is nearest to it with a fifth to spare in WorstCase and Outage.
	var best *option
	for _, p := range policies {
		o := &option{policy: p, figures: s.closed(p, set)}
		if exact {
			outage := o.outage
			o.figures = s.plan(p, set)
			o.outage = outage
		}
		s.rate(o, set)
		if best == nil || o.score > best.score {
			best = o
		}
	}
	if best != nil && set&needFleet != 0 && !s.survives(best, set) {
		return nil, false
	}
	return best, false
}

// early returns those of some policies, whose Base ascends, that plans find to be early and successful enough: the one with the
// longest waits, since with longer waits runs end later and a deadline cuts more of them off; or where a deadline has to keep
// Load low, all. late is baseFor's.
func (s *solver) early(set needs, policies []retry.Policy, cut bool) (_ []retry.Policy, late bool) {
	good := func(p retry.Policy, limit time.Duration) bool {
		f := s.plan(p, set)
		return (set&needP99 == 0 || f.p99 <= limit) && (set&needSuccess == 0 || f.success >= s.r.Success)
	}
	// Longer waits than usual are not looked at where the usual ones are early enough.
	usual := policies
	if i := slices.IndexFunc(policies, func(p retry.Policy) bool { return p.Base > usualBase }); i > 0 {
		usual = policies[:i]
	}
	if cut && set&needLoad != 0 {
		return slices.DeleteFunc(slices.Clone(usual), func(p retry.Policy) bool { return !s.meets(s.plan(p, set), set&(needP99|needSuccess|needLoad)) }), false
	}
	if !good(policies[0], s.r.P99) {
		return nil, set&needP99 != 0 && s.plan(policies[0], set).p99 > s.r.P99
	}
	among := func(limit time.Duration) []retry.Policy {
		return usual[:sort.Search(len(usual), func(i int) bool { return !good(usual[i], limit) })]
	}
	found := among(s.r.P99 / 5 * 4)
	if len(found) == 0 {
		found = among(s.r.P99)
	}
	if len(found) == 0 { // the search met a plan that was not made for lack of time
		return nil, false
	}
	return found[len(found)-1:], false
}

// bounded returns options with a TTL, which bounds the worst case of many attempts that are mostly short.
func (s *solver) bounded(set needs) (found []*option) {
	for _, timeout := range s.choices[set&needFleet != 0] {
		ttl := cutOff(s.r.WorstCase-timeout, 2)
		if timeout == 0 || ttl < timeout {
			continue
		}
		extra := 0
		for n := 2; n <= 16 && extra < 3 && !s.over(); n++ {
			p := member(n, roundBases[0], timeout, retry.FullJitter)
			if f := s.closed(p, set); set&needSuccess != 0 && f.success < s.r.Success {
				continue // a TTL only takes attempts away
			}
			extra++
			p.TTL = ttl
			o := &option{policy: p, figures: s.plan(p, set)}
			if !s.meets(o.figures, set&^needFleet) || set&needFleet != 0 && !s.survives(o, set) {
				continue
			}
			s.rate(o, set)
			found = append(found, o)
		}
	}
	return found
}

// plan returns the figures of a policy's plan, all but outage, and such that nothing meets where there is no time to make it.
func (s *solver) plan(p retry.Policy, set needs) figures {
	key := planKey{keyOf(p), s.deadline(set)}
	if f, ok := s.plans[key]; ok {
		return f
	}
	f := figures{load: math.Inf(1), p99: maxDuration, worst: maxDuration}
	if s.over() {
		return f
	}
	s.effort -= p.MaxAttempts
	if plan, err := New(p, s.model(set)); err == nil {
		f = planned(plan)
	}
	s.plans[key] = f
	return f
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
		o.score -= 0.25 * (1 - s.r.Duration.CDF(p.AttemptTimeout)) // attempts that it cuts off
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
