package retryplan

import (
	"math"
	"math/rand/v2"
	"time"

	"github.com/retrygo/retry"
)

// Fleet is what a certificate is about: clients with one policy against one backend that works in the order of arrival,
// with an unbounded queue, and does not notice clients that have gone. It is the commonest backend, and the worst for
// storms.
type Fleet struct {
	// Rate is how many runs a second the fleet begins, in an open loop. Above 0.
	Rate float64
	// Capacity is how many attempts a second the backend completes. Above 0.
	Capacity float64
	// Workers is how many of them it works on at the same time, so that one takes Workers/Capacity. Zero means 1.
	Workers int
	// Clients is the number of clients, each with its own budget unless Shared. Zero means 1.
	Clients int
	// Budget is the retry budget of each client. Nil means none.
	Budget *retry.BudgetConfig
	// Shared makes all clients share one budget. False means a budget for each.
	Shared bool
	// Hedge starts second calls beside slow attempts. Zero means none.
	Hedge Hedge
	// Deadline is the callers', counted from the start of each run. Zero means none.
	Deadline time.Duration
	// Failure is the probability, in [0,1), that an attempt fails once the backend has worked on it, in the calm as
	// well. Zero means that none does.
	Failure float64
	// Trigger is the trouble to survive; its From is not used. A Trigger without a Kind is none.
	Trigger Trigger
}

// Scenario returns the simulation of f with p: a while of calm, the trigger, and a time after it that is long enough to
// see a recovery if there is one. A budget that successes fund begins with the tokens that it has after a long calm. A
// fleet that Certify refuses gives a scenario that Simulate refuses, or one without meaning.
func (f Fleet) Scenario(p retry.Policy, seed uint64) Scenario {
	s := Scenario{
		Policy:   p,
		Deadline: f.Deadline,
		Clients:  f.Clients,
		Rate:     f.Rate,
		Server:   Server{Workers: f.workers(), Service: Constant(f.service()), FailureRate: f.Failure},
		Budget:   afterCalm(f.Budget, f.Failure+f.Hedge.Share),
		Shared:   f.Shared,
		Hedge:    f.Hedge,
		warm:     f.warm(f.calm(p)),
		Seed:     seed,
	}
	after := 2 * time.Minute
	if f.validate(p) == nil {
		after = f.aftermath(p, &s)
	}
	s.last(p.AttemptTimeout, f.Trigger, after)
	return s
}

// last makes s a calm, a trigger and a time after it. longest is the longest timeout: queues in a calm forget within
// some timeouts, and Result.Recovered looks at arrivals of 5 s.
func (s *Scenario) last(longest time.Duration, t Trigger, after time.Duration) {
	t.From = 10*time.Second + min(10*longest, time.Minute)
	s.Duration = saturatingAdd(t.From, after)
	if t.Kind != 0 {
		s.Triggers = []Trigger{t}
		s.Duration = saturatingAdd(s.Duration, max(t.For, 0))
	}
	s.Step = max(time.Second, s.Duration/100_000)
}

// aftermath returns how long to look at a fleet after its trigger: one and a half minutes, three times the predicted
// recovery, the time in which all stored tokens are spent and worked off, should chance start a storm, and until the
// last retry of the trigger's victims, which may come as a herd (Scenario.Horizon), for mostRuns runs at most; if no
// recovery is predicted, until all attempts that can fail have.
func (f *Fleet) aftermath(p retry.Policy, s *Scenario) time.Duration {
	const least, most = 90, 24 * 3600. // seconds
	const mostRuns = 2e6               // about half a minute
	c, after := newCertifier(p, *f), 0.
	switch found := c.find(change{rate: 1, trigger: 1}); {
	case found.stability.Survives():
		recovery := found.recovery
		if spare := f.Capacity - f.Rate*c.attempts(1); f.Budget != nil && spare > 0 {
			recovery += f.purse().stored() / spare / 2
		}
		after = recovery + min(2*recovery, most)
		if f.Trigger.Kind != 0 {
			after = max(after, min(float64(s.echo())/second+healthyWhile, mostRuns/f.Rate))
		}
	case c.storm.timeout < math.Inf(1):
		after = min(2*c.storm.feeds(f.Capacity/f.Rate), most)
	}
	return seconds(least + after)
}

// service returns how long the backend works on one attempt.
func (f *Fleet) service() time.Duration { return inNanoseconds(float64(f.workers()) / f.Capacity) }

func (f *Fleet) workers() int { return max(f.Workers, 1) }

func (f *Fleet) clients() int { return max(f.Clients, 1) }

// calm returns how many attempts a run makes of which only Failure makes some fail.
func (f *Fleet) calm(p retry.Policy) float64 {
	return calmAttempts(&p, f.Budget, f.Deadline, f.service(), f.Failure, f.Failure, f.Failure)
}

// calmAttempts returns how many attempts a run makes if each takes the given time, the first is repeated with one
// probability and the others with another; fails is the probability that one fails. A budget of ratio r pays for
// r·(1−fails) retries an attempt; if more are asked for, these are 1/(1 − r·(1−fails)) attempts, whatever the policy
// allows.
func calmAttempts(p *retry.Policy, b *retry.BudgetConfig, deadline, takes time.Duration, first, repeated, fails float64) (n float64) {
	most := Layer{Policy: *p}
	if n = amplification(repeated, most.attempts()); (p.TTL > 0 || deadline > 0) && n > 1 {
		rnd, runs := rand.New(rand.NewPCG(1, 2)), stormRuns
		if p.Jitter == retry.NoJitter && p.Wait == nil {
			runs = 1
		}
		n = 0
		for range runs {
			play(p, deadline, takes, ErrWorkFailed, rnd.Float64, func(pr *retry.Progress, _ time.Duration, _ retry.Decision) {
				n += power(repeated, pr.Attempt-1) / float64(runs)
			})
		}
	}
	if first != repeated {
		n = 1 + (n-1)*first/repeated
	}
	if b != nil {
		if ratio, _, _ := budgetFigures(*b); n-1 > ratio*n*(1-fails) {
			n = 1 / (1 - ratio*(1-fails))
		}
	}
	return n
}

// purse returns the budgets of the fleet after a long calm, nil for none.
func (f *Fleet) purse() *purse {
	return newPurse(f.Budget, f.clients(), f.Shared, f.Failure+f.Hedge.Share)
}

// trouble returns the trigger as the fluid knows it.
func (f *Fleet) trouble() trouble {
	t := trouble{lasts: f.Trigger.For.Seconds(), arrive: 1, work: 1, service: 1}
	switch f.Trigger.Kind {
	case Stall:
		t.work = 0
	case Slowdown:
		t.work, t.service = 1/f.Trigger.Factor, f.Trigger.Factor
		t.job = float64(f.workers()) / f.Capacity * f.Trigger.Factor
	case CapacityCut:
		t.work = math.Ceil(f.Trigger.Factor*float64(f.workers())) / float64(f.workers())
	case Surge:
		t.arrive = f.Trigger.Factor
	case Outage:
		t.refuses = true
	case Failing:
		t.fails = f.Trigger.Factor
	default:
		t.lasts = 0
	}
	return t
}

// validate returns every bad field of f and p.
func (f *Fleet) validate(p retry.Policy) error {
	var bad retry.FieldErrors
	bad.Append(p.Validate())
	stateless(&bad, p, "Policy.", ": use Fleet.Budget")
	inRange(&bad, "Fleet.Rate", f.Rate)
	inRange(&bad, "Fleet.Capacity", f.Capacity)
	negative(&bad, "Fleet.Workers", f.Workers)
	negative(&bad, "Fleet.Clients", f.Clients)
	negative(&bad, "Fleet.Deadline", f.Deadline)
	refuse(&bad, !(f.Failure >= 0 && f.Failure < 1), "Fleet.Failure", f.Failure, "is outside [0,1)")
	f.Hedge.validate(&bad, "Fleet.Hedge")
	f.Trigger.validate("Fleet.Trigger", &bad)
	return bad.Err()
}

// inNanoseconds returns s seconds as a Duration, to the nanosecond.
func inNanoseconds(s float64) time.Duration {
	return whole(math.Round(s * float64(time.Second)))
}
