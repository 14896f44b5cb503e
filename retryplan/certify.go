package retryplan

import (
	"math"
	"time"

	"github.com/retrygo/retry"
)

// Certificate says whether a fleet survives its trigger, and why.
type Certificate struct {
	// Stability says whether the fleet comes back from its trigger.
	Stability Stability
	// Law names the law of storms that Stability follows from. λ is Fleet.Rate, μ Fleet.Capacity, A Attempts, T the
	// client's timeout (the shorter of Policy.AttemptTimeout and Fleet.Deadline), D the length of the trigger and S the
	// tokens stored in all budgets of the fleet.
	//
	//   - "overload": λ ≥ μ, or λ·A ≥ μ, A the attempts of a run of which Fleet.Failure makes some fail. Even without a
	//     trigger more attempts arrive than the backend completes, so that its queue never drains.
	//   - "slow-service": one attempt takes the backend T or longer, so that none ever succeeds.
	//   - "no-timeout": no client ever gives up, so that no work is wasted and nothing is retried. The queue drains if λ
	//     < μ.
	//   - "hidden-capacity": a storm in which all attempts fail feeds itself iff λ·A > μ, so that the backend has the
	//     hidden capacity μ/A. Below it a fleet is Safe; above it a trigger that is large enough makes it Metastable.
	//     (HotOS 2021, section 2.)
	//   - "success-funded-budget": in a storm a budget that only successes fund pays for S retries, those stored, and
	//     for those of Trickle. Then A is 1 plus the share of Trickle, and the fleet recovers once S is spent: from a
	//     stall after (λ·D + S − μ·T)/(μ − λ).
	//   - "trigger-below-timeout": the longest queue that the trigger leaves makes attempts wait for less than T. None
	//     fails, so that nothing is retried.
	//   - "fluid": some attempts fail. A model in which runs flow, rather than arrive one by one, computes whether their
	//     retries suffice for a storm.
	//   - "random-arrivals": random arrivals alone, in the calm or in what the trigger leaves, make attempts wait for T
	//     so often that this decides whether a storm begins, or more than a tenth of the attempts do so in the calm. Such
	//     a certificate has no Margin. From the tail of the M/D/c queue, exp(−θ·T)
	//     with λ·(exp(θ/μ) − 1) = θ. (Asmussen, "Applied Probability and Queues", chapter XIII.)
	Law string
	// Attempts is the mean number of attempts of a run during a storm, when all of them fail and the budgets hold only
	// what Trickle grants: load amplification at its worst. At most 1,000 are counted, even if the policy has no limit.
	Attempts float64
	// HiddenCapacity is the rate of runs that the backend can serve during a storm, in runs a second: Capacity /
	// Attempts. A fleet with a lower Rate is safe.
	HiddenCapacity float64
	// Recovery is the predicted time from the end of the trigger until the last attempt that times out is sent; runs
	// that begin later succeed as before. It is 0 if no attempt times out after the trigger, and negative if attempts
	// never stop timing out. If chance decides whether the trigger or the calm starts a storm, and the fleet is Safe,
	// Recovery assumes the storm. It saturates at the largest Duration.
	Recovery time.Duration
	// Tipping is how long the trigger must last to make the fleet metastable; for a fleet without a trigger it is the
	// length of a Stall. It is 0 if random arrivals suffice without a trigger, and negative if no length up to 5,000
	// timeouts (1,000 of a Failing) does. An Outage longer than the waits of a run has no more effect than one as long
	// as these.
	Tipping time.Duration
	// Margin is the distance of the fleet from the boundary of another stability, as a share of that boundary: 0.05
	// means that 5 % more or less of Rate, Capacity or the trigger would change the stability. Margin is at most 1, and
	// less than the distance if random arrivals blur the boundary: within the blur, in which chance decides, it is 0.
	// It is also 0 if it would take too long to compute, as with waits of many thousands of timeouts.
	Margin float64
}

// Certify returns the certificate of f with p. It computes laws and a deterministic model, without a simulation, within
// about a tenth of a second, or a second if waits are thousands of timeouts long.
//
// It assumes that runs begin independently, that attempts reach the backend at once, and that a budget is as full as
// Fleet.Failure leaves it after a long calm, or holds Initial if successes do not fund it. The trigger is the only
// trouble; in the calm before and after it attempts fail by Fleet.Failure and by timeouts only.
//
// Errors are retry.FieldErrors: each field that is out of its range, including those of Policy.Validate. A policy with a
// Budget, a Gate or Pay is refused: these are state of a running program. A trigger without a Kind is none.
func Certify(p retry.Policy, f Fleet) (Certificate, error) {
	if err := f.validate(p); err != nil {
		return Certificate{}, err
	}
	c := newCertifier(p, f)
	return c.certificate(c.find(change{rate: 1, trigger: 1})), nil
}

// certifier is a fleet, or a node of a chain, with what its policy does in a storm.
type certifier struct {
	fleet   Fleet
	trouble trouble
	storm   storm
	refused *storm        // storm if the trigger answers attempts with an error at once
	calm    float64       // attempts of a run of which only Fleet.Failure makes some fail
	stored  float64       // attempts that are paid for beside those of the storm, once some fail
	warm    time.Duration // the delay of hedges in the calm
}

func newCertifier(p retry.Policy, f Fleet) *certifier {
	c := &certifier{fleet: f, trouble: f.trouble(), storm: f.storm(p, false), calm: f.calm(p)}
	if h := &c.fleet.Hedge; math.IsInf(c.storm.timeout, 1) && h.Delay > f.service() {
		// No client gives up, but an attempt that waits for the delay is made a second time: a storm of hedges.
		c.storm = storm{attempts: 2, stages: []stage{{timeout: h.Delay.Seconds(), goes: 1, waits: []piece{{share: 1}}}, {timeout: h.Delay.Seconds()}}, timeout: h.Delay.Seconds()}
		h.Delay = 0
	}
	c.warm = c.fleet.warm(c.calm)
	c.refused = &c.storm
	if c.trouble.answers() && c.storm.timeout < math.Inf(1) {
		refused := f.storm(p, true)
		c.refused = &refused
	}
	return c
}

// finding is what a Certificate says, in short.
type finding struct {
	stability Stability
	law       string
	recovery  float64 // seconds
	decided   bool
	chance    bool // random arrivals can make it worse
}

func (c *certifier) certificate(found finding) Certificate {
	worst := c.attempts(1)
	cert := Certificate{
		Stability:      found.stability,
		Law:            found.law,
		Attempts:       worst,
		HiddenCapacity: c.fleet.Capacity / worst,
		Recovery:       -1,
		Tipping:        -1,
	}
	if found.stability.Survives() {
		cert.Recovery = seconds(found.recovery)
	}
	if found.stability == Vulnerable || found.stability == Metastable {
		cert.Tipping = c.tipping()
	}
	cert.Margin = c.margin(found)
	return cert
}

// change is a fleet with other figures than its own.
type change struct {
	rate    float64 // factor
	trigger float64 // factor of its length
	blur    float64 // of the trigger: 1 if it is longer by as much as random arrivals make it worse, -1 if it is shorter
}

// find returns the stability of the fleet with a change.
func (c *certifier) find(ch change) finding {
	rate, capacity := c.fleet.Rate*ch.rate, c.fleet.Capacity
	switch {
	case c.load(rate) >= 1:
		return finding{stability: Overloaded, law: lawOverload, decided: true}
	case c.service() >= c.storm.timeout: // an answer at the moment of the timeout is late
		return finding{stability: Overloaded, law: lawSlowService, decided: true}
	case math.IsInf(c.storm.timeout, 1):
		return finding{stability: Safe, law: lawNoTimeout, decided: true}
	}
	t := c.trouble
	t.lasts *= ch.trigger
	if t.lasts > 0 {
		t.lasts = max(t.lasts+ch.blur*c.blur(t.lasts), 0)
	}
	flow, attempts := c.flow(ch, t), c.attempts(ch.rate)
	calm, triggered := c.excursions(rate), c.excursionsIn(rate, t.lasts)
	if rate*attempts < capacity {
		if c.tail(rate) > tooLate {
			return finding{stability: Overloaded, law: lawRandomArrivals, decided: true}
		}
		found := finding{stability: Safe, law: lawHiddenCapacity, recovery: flow.recovery, decided: true, chance: c.tail(rate) > tooLong}
		if load := c.loadIn(rate); triggered > tooOften || load >= 1 && load < 1.1 && !t.refuses {
			// If chance decides whether the trigger starts a storm, or when, it does at once.
			queue := max(rate*t.arrive*attempts-capacity*t.work, 0) * t.lasts
			found.recovery = max(found.recovery, queue/(capacity-rate*attempts))
		}
		if hedged := c.hedgesTip(rate); hedged || rate*c.storm.attempts >= capacity {
			found.law = lawSuccessFunded
			t.lasts += c.blur(t.lasts) // if chance decides whether stored tokens carry a storm, they do
			if stormy := c.flow(ch, t); stormy.recovery > 2*flow.recovery {
				found.recovery = max(found.recovery, stormy.recovery)
			}
			if calm > tooOften { // and so they do if a queue of the calm can start one, at any time
				spends := (c.fleet.purse().stored() + c.stored) / (capacity - rate*attempts)
				found.recovery, found.chance = max(found.recovery, spends), found.chance || spends > tooShort
			}
		}
		return found
	}
	switch found := (finding{stability: Vulnerable, law: lawFluid, recovery: flow.recovery, decided: flow.decided, chance: calm+triggered > tooOften}); {
	case !flow.recovers:
		return finding{stability: Metastable, law: lawHiddenCapacity, decided: flow.decided}
	case calm+c.stormsIn(rate, t.lasts) > tooMany:
		return finding{stability: Metastable, law: lawRandomArrivals, decided: true}
	case !flow.failed:
		found.law, found.decided = lawTriggerBelowTimeout, true
		return found
	default:
		return found
	}
}

// flow computes the fluid of the fleet with a change and a trouble.
func (c *certifier) flow(ch change, t trouble) flow {
	f := &c.fleet
	timeout, rate := c.storm.timeout, f.Rate*ch.rate
	switch all := c.refused.feeds(math.Inf(1)); {
	case t.refuses:
		t.lasts = min(t.lasts, all+timeout) // whose runs are all over by then
	case t.fails > 0:
		t.lasts = min(t.lasts, all+longestFailing*timeout)
	case c.bears(rate):
		t.lasts = min(t.lasts, t.job+100*timeout) // the longer it lasts, the more of the same
	}
	return fluid{
		rate:     rate,
		capacity: f.Capacity,
		service:  c.service(),
		storm:    c.refused,
		fails:    f.Failure,
		trouble:  t,
		purse:    f.purse(),
		stored:   c.stored,
		hedge:    f.Hedge,
		warm:     c.warm,
		follows:  c.following(),
		attempts: c.attempts(ch.rate),
	}.run()
}

// bears reports whether the trigger leaves the backend capacity to spare at a rate, however long it lasts.
func (c *certifier) bears(rate float64) bool {
	t := &c.trouble
	return !t.answers() && rate*c.calm*t.arrive < c.fleet.Capacity*t.work && c.service()*t.service < c.storm.timeout
}

// tipping returns the shortest trigger that makes the fleet metastable, negative if none does.
func (c *certifier) tipping() time.Duration {
	rate, t, most := c.fleet.Rate, c.trouble, longestTrigger*c.storm.timeout
	if c.excursions(rate) > tooMany {
		return 0
	}
	if c.fleet.Trigger.Kind == 0 {
		t.work = 0
	}
	byChance := func() time.Duration {
		if c.stormsIn(rate, max(most, t.lasts)) <= seldom {
			return -1
		}
		_, lasts := bisect(0, 1e9*c.storm.timeout, 80, func(lasts float64) bool { return c.stormsIn(rate, lasts) <= tooMany })
		return seconds(lasts)
	}
	if c.fleet.Trigger.Kind != 0 && c.bears(rate) {
		return byChance()
	}
	tips := func(lasts float64) bool {
		t.lasts = lasts
		return !c.flow(change{rate: 1}, t).recovers
	}
	lo, hi := 0.0, c.storm.timeout
	for !tips(hi) {
		if hi == most {
			return byChance()
		}
		lo, hi = hi, min(2*hi, most)
	}
	_, hi = bisect(lo, hi, 12, func(lasts float64) bool { return !tips(lasts) })
	return seconds(hi)
}

// bisect halves [lo, hi], within which a property that lo has ends, so many times.
func bisect(lo, hi float64, times int, has func(x float64) bool) (float64, float64) {
	for range times {
		if mid := (lo + hi) / 2; has(mid) {
			lo = mid
		} else {
			hi = mid
		}
	}
	return lo, hi
}

// attempts returns the mean number of attempts of a run while all fail, with the rate multiplied by a factor. Trickle
// grants each client one token in each period in which it asks for one; it does so with probability 1 − exp(−asks·period).
func (c *certifier) attempts(factor float64) float64 {
	f := &c.fleet
	if f.Budget == nil {
		if f.Hedge.Delay > 0 && inTime(c.warm, seconds(c.storm.timeout)) {
			return 2 * c.storm.attempts
		}
		return c.storm.attempts * (1 + f.Hedge.Share)
	}
	if f.Budget.Trickle <= 0 {
		return 1
	}
	rate, purses, period := f.Rate*factor, 1.0, f.Budget.Trickle.Seconds()
	if !f.Shared {
		purses = float64(f.clients())
	}
	// The share of the asked retries that is paid: the more are paid, the more are asked for.
	grant, _ := bisect(0, 1, 50, func(grant float64) bool {
		paid := rate * (c.storm.attemptsAt(grant) - 1)
		return purses/period*(1-exp(-paid/grant*period/purses)) > paid
	})
	return c.storm.attemptsAt(grant)
}

// service returns how long the backend works on one attempt, in seconds: whole nanoseconds, as timeouts are.
func (c *certifier) service() float64 { return c.fleet.service().Seconds() }

// seconds returns s as a Duration. Fluids are no better than a microsecond.
func seconds(s float64) time.Duration {
	if s >= math.MaxInt64/float64(time.Second) {
		return math.MaxInt64
	}
	return time.Duration(s * float64(time.Second)).Round(time.Microsecond)
}

// Stability says what a trigger does to a fleet.
type Stability uint8

// The stabilities, from the best to the worst.
const (
	// Safe fleets come back from any trigger: even if every attempt fails, the retries leave capacity to spare.
	Safe Stability = iota + 1
	// Vulnerable fleets come back from this trigger, but a larger one would tip them into a storm that feeds itself.
	Vulnerable
	// Metastable fleets do not come back from this trigger by themselves: the retries keep the backend busy with work
	// that no client waits for.
	Metastable
	// Overloaded fleets do not come back, and retries are not the cause. Under the law Overload the runs alone are more
	// than the backend can do, and no policy mends that; under SlowService no attempt is answered while its client
	// waits, and under RandomArrivals too few are, which a longer AttemptTimeout or Deadline mends.
	Overloaded
)

// String returns "safe", "vulnerable", "metastable" or "overloaded", "" for the zero Stability, and "Stability(5)" for
// one that does not exist.
func (s Stability) String() string {
	return named(uint8(s), "Stability", "", "safe", "vulnerable", "metastable", "overloaded")
}

// Survives reports whether a fleet comes back from its trigger: it is Safe or Vulnerable.
func (s Stability) Survives() bool { return s == Safe || s == Vulnerable }

// The laws of storms: see Certificate.Law. They are derived for a server that works in the order of arrival and executes
// abandoned work, as in Bronson et al., "Metastable Failures in Distributed Systems" (HotOS 2021), and Huang et al.,
// "Metastable Failures in the Wild" (OSDI 2022).
const (
	lawOverload            = "overload"
	lawSlowService         = "slow-service"
	lawNoTimeout           = "no-timeout"
	lawHiddenCapacity      = "hidden-capacity"
	lawSuccessFunded       = "success-funded-budget"
	lawTriggerBelowTimeout = "trigger-below-timeout"
	lawFluid               = "fluid"
	lawRandomArrivals      = "random-arrivals"
)
