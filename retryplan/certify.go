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
	// Law names what Stability follows from.
	Law Law
	// Attempts is how many attempts a run makes on average during a storm, when all of them fail and the budgets hold
	// nothing but what Trickle grants: load amplification at its worst. At most 1,000 are counted, even if the policy
	// has no limit.
	Attempts float64
	// HiddenCapacity is the rate of runs that the backend can serve during a storm, in runs a second: Capacity /
	// Attempts. A fleet with a lower Rate is safe.
	HiddenCapacity float64
	// Recovery is the predicted time from the end of the trigger until runs succeed as before: precisely, until the
	// last attempt that times out has been sent. It is 0 if no attempt times out after the trigger, and negative if
	// that never ends. If stored tokens can carry a storm for a while and chance decides whether one begins, Recovery
	// assumes the storm. It saturates at the largest Duration.
	Recovery time.Duration
	// Tipping is how long the trigger would have to last to make the fleet metastable; for a fleet without a trigger it
	// is the length of a Stall. It is 0 if random arrivals suffice without a trigger. It is negative if no length does,
	// if it would be above 5,000 timeouts (1,000 of a Failing), or if it would take too long to compute. An Outage
	// longer than the waits of a run has no more effect than one as long as these.
	Tipping time.Duration
	// Margin is how far the fleet is from the boundary of another stability, as a share of that boundary: 0.05 means
	// that 5 % more or less of Rate, Capacity or the trigger would change it. Margin is at most 1, and less than the
	// distance if random arrivals blur the boundary: within the blur, where chance decides, it is 0. It is also 0 if it
	// would take too long to compute, as when waits are many thousands of timeouts long.
	Margin float64
}

// Certify returns the certificate of f with p. It is computed by law and by a deterministic model, without a
// simulation, within about a tenth of a second, or a second or two if waits are thousands of timeouts long: then it
// leaves out Margin and Tipping rather than take longer.
//
// Every run is taken to begin on its own, every attempt to reach the backend at once, and a budget to be full, as after
// a long calm (or to hold Initial if successes do not fund it), or as full as Fleet.Failure leaves it. The trigger is
// the only trouble; the calm before it and after it has no other failures but timeouts.
//
// Errors are retry.FieldErrors: each field that is out of its range, those of Policy.Validate included. A policy with a
// Budget, a Gate or Pay is refused: these are state of a running program. A trigger without a Kind is none.
func Certify(p retry.Policy, f Fleet) (Certificate, error) {
	if err := f.validate(p); err != nil {
		return Certificate{}, err
	}
	c := newCertifier(p, f)
	return c.certificate(c.find(change{rate: 1, trigger: 1})), nil
}

// certifier is a fleet with what its policy does in a storm.
type certifier struct {
	fleet Fleet
	storm storm
	calm  float64 // attempts of a run that only Fleet.Failure makes fail
	// refused is storm with attempts that are answered with an error at once, if the trigger has such.
	refused *storm
	work    int // of fluids that is left
}

func newCertifier(p retry.Policy, f Fleet) *certifier {
	c := &certifier{fleet: f, storm: f.storm(p, false), calm: f.calm(p), work: allWork}
	c.refused = &c.storm
	if (f.Trigger.Kind == Outage || f.Trigger.Kind == Failing) && c.storm.timeout < math.Inf(1) {
		refused := f.storm(p, true)
		c.refused = &refused
	}
	return c
}

// finding is what a Certificate says, in short.
type finding struct {
	stability Stability
	law       Law
	recovery  float64 // seconds
	decided   bool
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
		cert.Tipping = c.tipping(found)
	}
	cert.Margin = c.margin(found)
	return cert
}

// change is a fleet with other figures than its own.
type change struct {
	rate    float64 // factor
	trigger float64 // factor of its length
}

// find returns the stability of the fleet with a change.
func (c *certifier) find(ch change) finding {
	f := &c.fleet
	rate, service := f.Rate*ch.rate, c.service()
	attempts := c.attempts(ch.rate)
	switch {
	case rate*c.calm >= f.Capacity:
		return finding{stability: Overloaded, law: Overload, decided: true}
	case service >= c.storm.timeout: // an answer at the moment of the timeout is late
		return finding{stability: Overloaded, law: SlowService, decided: true}
	case math.IsInf(c.storm.timeout, 1):
		return finding{stability: Safe, law: NoTimeout, decided: true}
	}
	safe := rate*attempts < f.Capacity
	trouble := f.trouble()
	trouble.lasts *= ch.trigger
	flow := c.flow(ch, trouble)
	if safe && rate*c.storm.attempts >= f.Capacity {
		return finding{Safe, SuccessFunded, c.carried(ch, trouble, flow), true}
	}
	return c.verdict(rate, safe, flow)
}

// verdict returns how a fleet fares whose trigger comes to flow.
func (c *certifier) verdict(rate float64, safe bool, flow flow) finding {
	switch {
	case safe:
		return finding{Safe, HiddenCapacity, flow.recovery, true}
	case !flow.recovers:
		return finding{Metastable, HiddenCapacity, 0, flow.decided}
	case c.excursions(rate) > tooMany:
		return finding{Metastable, RandomArrivals, 0, true}
	case !flow.failed:
		return finding{Vulnerable, TriggerBelowTimeout, 0, true}
	default:
		return finding{Vulnerable, Fluid, flow.recovery, flow.decided}
	}
}

// carried returns the recovery of a fleet whose stored tokens can carry a storm until they are spent. If chance decides
// whether there is a storm, it is the recovery from the storm.
func (c *certifier) carried(ch change, t trouble, calm flow) float64 {
	stormy := t
	stormy.lasts += c.blur(t.lasts)
	if stormy := c.flow(ch, stormy); stormy.recovery > 2*calm.recovery {
		return stormy.recovery
	}
	rate := c.fleet.Rate * ch.rate
	if c.excursions(rate) <= tooFew {
		return calm.recovery
	}
	stored := c.fleet.purse().stored()
	return max(calm.recovery, stored/(c.fleet.Capacity-rate*c.attempts(ch.rate)))
}

// flow computes the fluid of the fleet with a change and a trouble.
func (c *certifier) flow(ch change, t trouble) flow {
	f := &c.fleet
	fl := fluid{
		rate:     f.Rate * ch.rate,
		capacity: f.Capacity,
		service:  c.service(),
		storm:    c.refused,
		fails:    f.Failure,
		trouble:  t,
		purse:    f.purse(),
		attempts: c.attempts(ch.rate),
		work:     &c.work,
	}
	switch {
	case t.refuses:
		fl.trouble.lasts = min(t.lasts, c.refused.feeds(math.Inf(1))+c.storm.timeout) // whose runs are all over by then
	case t.fails > 0:
		fl.trouble.lasts = min(t.lasts, c.refused.feeds(math.Inf(1))+longestFailing*c.storm.timeout)
	case c.fleet.bears(fl.rate*c.calm, c.storm.timeout):
		fl.trouble.lasts = min(t.lasts, t.job+100*c.storm.timeout) // the longer it lasts, the more of the same
	}
	return fl.run()
}

// tipping returns the shortest trigger that makes the fleet metastable.
func (c *certifier) tipping(found finding) time.Duration {
	if c.excursions(c.fleet.Rate) > tooMany {
		return 0
	}
	most := math.Inf(1) // a length that is known to tip
	if found.stability == Metastable && found.decided {
		most = c.fleet.Trigger.For.Seconds()
	}
	enough := c.work / 2 // the rest is for the margin
	tips := func(lasts float64) bool {
		t := c.fleet.trouble()
		if c.fleet.Trigger.Kind == 0 {
			t.work = 0
		}
		t.lasts = lasts
		return !c.flow(change{rate: 1}, t).recovers
	}
	switch t := c.fleet.trouble(); {
	case t.refuses || t.fails > 0:
		most = min(most, c.refused.feeds(math.Inf(1))+longestFailing*c.storm.timeout)
		if !tips(most) {
			return -1
		}
	case c.fleet.Trigger.Kind != 0 && c.fleet.bears(c.fleet.Rate*c.calm, c.storm.timeout):
		return -1
	}
	lo, hi := 0.0, min(c.storm.timeout, most)
	for hi < most && !tips(hi) {
		if lo, hi = hi, min(hi*2, most); hi < most && (hi > 5000*c.storm.timeout || c.work < enough) {
			lo, hi = most, most
		}
	}
	if math.IsInf(hi, 1) {
		return -1
	}
	_, hi = bisect(lo, hi, 12, func(lasts float64) bool { return c.work < enough || !tips(lasts) })
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

// attempts returns how many attempts a run makes while all fail, with the rate multiplied by a factor. Trickle gives
// each client a token a period that it takes if it asks in it, which it does with probability 1 − exp(−asks·period).
func (c *certifier) attempts(factor float64) float64 {
	f := &c.fleet
	if f.Budget == nil {
		return c.storm.attempts
	}
	if f.Budget.Trickle <= 0 {
		return 1
	}
	rate, purses, period := f.Rate*factor, 1.0, f.Budget.Trickle.Seconds()
	if !f.Shared {
		purses = float64(f.clients())
	}
	// The share of those who ask that is paid: the more are paid, the more ask again.
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
