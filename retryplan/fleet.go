package retryplan

import (
	"math"
	"time"

	"github.com/retrygo/retry"
)

// Fleet is clients with one policy against one backend that works in the order of arrival, with an unbounded queue, and
// does not notice clients that have gone. It is the commonest backend, and the worst for storms.
type Fleet struct {
	// Rate is the number of runs that the fleet begins in a second, in an open loop. Above 0.
	Rate float64
	// Capacity is the number of attempts that the backend completes in a second. Above 0.
	Capacity float64
	// Workers is the number of them that it works on at the same time, so that one takes Workers/Capacity. Zero means 1,
	// or with a Service as many as have this Capacity.
	Workers int
	// Service is the time for which the backend works on one attempt. Zero means always Workers/Capacity.
	Service Dist
	// Clients is the number of clients, each with its own budget. Zero means 1, so that all calls share one budget.
	Clients int
	// Budget is the retry budget of each client. Nil means none.
	Budget *retry.BudgetConfig
	// Hedge starts second calls beside slow attempts. Zero means none.
	Hedge Hedge
	// Deadline is the callers', counted from the start of each run. Zero means none.
	Deadline time.Duration
	// Failure is the probability, in [0,1], that an attempt fails once the backend has worked on it, in the calm as
	// well. Zero means that none does.
	Failure float64
	// Trigger is the trouble. Its From is not used. A Trigger without a Kind is none.
	Trigger Trigger
}

// Storm returns the number of attempts a second that reach the backend if every attempt of every run fails, and whether
// that is less than its Capacity. It is arithmetic, which holds for every trigger. It is the rate of runs, multiplied by the
// attempts that attempts, TTL and Deadline of p allow if attempts take no time and each wait is as short as it can be. A
// hedge doubles them. With a Budget it is the number after all tokens are spent, which is the first attempts and the
// retries that Trickle grants. It is +Inf if nothing limits the attempts. p is valid.
func (f Fleet) Storm(p retry.Policy) (attempts float64, fits bool) {
	attempts = f.Rate * mostAttempts(p, f.Deadline)
	if f.Hedge != (Hedge{}) {
		attempts *= 2
	}
	if b := f.Budget; b != nil {
		granted := 0.0
		if b.Trickle > 0 {
			granted = float64(max(f.Clients, 1)) / b.Trickle.Seconds()
		}
		attempts = min(attempts, f.Rate+granted)
	}
	return attempts, attempts < f.Capacity
}

// mostAttempts returns the largest number of attempts of a run, or +Inf.
func mostAttempts(p retry.Policy, deadline time.Duration) float64 {
	l := newLinter(p, Setting{Deadline: deadline})
	n, _ := l.startable(0, 0)
	resets := p.ResetAfter > 0 && (p.AttemptTimeout == 0 || p.AttemptTimeout >= p.ResetAfter)
	if resets || l.attempts == retry.Unlimited && n == lintHorizon {
		return math.Inf(1)
	}
	return float64(n)
}

// scenario returns the backend and its clients, without a trigger and without a length.
func (f *Fleet) scenario(p retry.Policy) scenario {
	s := scenario{
		Policy:   p,
		Deadline: f.Deadline,
		Clients:  max(f.Clients, 1),
		Rate:     f.Rate,
		Server:   backend{Workers: max(f.Workers, 1), Service: f.Service, FailureRate: f.Failure},
		Budget:   filled(f.Budget),
		Hedge:    f.Hedge,
	}
	if f.Service == (Dist{}) {
		s.Server.Service = Constant(serviceTime(f.Workers, f.Capacity))
	} else if f.Workers == 0 {
		s.Server.Workers = max(1, int(math.Round(f.Capacity*f.Service.Mean().Seconds())))
	}
	return s
}

// filled returns c with a full bucket, as after a long calm if successes fund it. Nil stays nil.
func filled(c *retry.BudgetConfig) *retry.BudgetConfig {
	if c == nil {
		return nil
	}
	full := c.Effective()
	if full.Ratio > 0 {
		full.Initial = full.Burst
	}
	return &full
}

// serviceTime returns the time that one attempt takes a backend with so many workers, of which 0 means 1.
func serviceTime(workers int, capacity float64) time.Duration {
	return whole(math.Round(float64(max(workers, 1)) / capacity * float64(time.Second)))
}

// validate adds every bad field of f.
func (f *Fleet) validate(bad *retry.FieldErrors) {
	inRange(bad, "Fleet.Rate", f.Rate)
	inRange(bad, "Fleet.Capacity", f.Capacity)
	negative(bad, "Fleet.Workers", f.Workers)
	refuse(bad, f.Workers > 0 && f.Service != (Dist{}), "Fleet.Workers", f.Workers, "is set beside Service, whose mean and Capacity say how many there are")
	refuse(bad, f.Clients < 0 || f.Clients > maxClients, "Fleet.Clients", f.Clients, "is outside [0,10000000]")
	negative(bad, "Fleet.Deadline", f.Deadline)
	refuse(bad, !(f.Failure >= 0 && f.Failure <= 1), "Fleet.Failure", f.Failure, "is outside [0,1]")
	f.Hedge.validate(bad, "Fleet.Hedge")
	f.Trigger.validate("Fleet.Trigger", bad)
}
