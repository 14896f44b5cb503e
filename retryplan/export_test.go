package retryplan

import (
	"context"
	"time"

	"github.com/retrygo/retry"
	"github.com/retrygo/retry/retryplan/internal/event"
)

// Draws returns the first n random numbers that Simulate draws for delays.
func Draws(seed uint64, n int) (u []float64) {
	for rng := newStream(seed, jitterStream); len(u) < n; {
		u = append(u, rng.Float64())
	}
	return u
}

// Scenario is a node to simulate, of which tests can set more than a Question can.
type (
	Scenario = scenario
	Server   = backend
)

// Seen is the Result of a scenario, with what the simulation knows beside it.
type Seen struct {
	Result
	Simulated time.Duration
	Events    uint64
	Recovered bool // see recovery
}

// Run simulates a scenario to its end.
func Run(ctx context.Context, s Scenario) (Seen, error) {
	s.Clients = max(s.Clients, 1)
	sim := newSimulation(&s, s)
	sim.recovery.share = 1 - s.Server.FailureRate
	err := sim.play(ctx)
	return seen(sim), err
}

// Tokens simulates a scenario to its end and returns the tokens that are left in all budgets.
func Tokens(ctx context.Context, s Scenario) (float64, error) {
	s.Clients = max(s.Clients, 1)
	sim := newSimulation(&s, s)
	err := sim.play(ctx)
	return float64(sim.nodes[0].tokens) / 1e6, err
}

func seen(s *simulation) Seen {
	r := s.finish()
	out := Seen{Result: r, Simulated: s.simulated, Events: s.recorder.events, Recovered: s.recovery.found}
	if out.Recovered {
		out.Recovery = time.Duration(s.recovery.at * second)
	}
	return out
}

// Question is the changed question of a.
func (a Advice) Question() Question { return a.question }

// AsDist returns the lognormal distribution with the median and the 99th percentile of d.
func (d Distribution) AsDist() Dist { return LogNormal(d.Quantile(.5), d.Quantile(.99)) }

// ChangedBy returns the policy that Advise simulates for a finding, and whether it has a budget then.
func ChangedBy(f Finding) (p *retry.Policy, funded bool) { return f.changed, f.funded }

// Horizon returns the time until which the runs that a trigger hit can retry, with a time of health after the trigger.
func Horizon(s Scenario) time.Duration {
	r := newRecovery(&s)
	if r.from == never {
		return 0
	}
	return time.Duration(later(later(r.from, r.echo), r.while*second))
}

// followed is Simulate with a call of note before the first event and after each.
func followed(ctx context.Context, s Scenario, note func(s *simulation, now time.Duration)) (Seen, error) {
	s.Clients = max(s.Clients, 1)
	sim := newSimulation(&s, s)
	sim.recovery.share = 1 - s.Server.FailureRate
	sim.planArrivals()
	note(sim, 0)
	for e := (event.Event{}); sim.events.Next(&e) && (e.At < int64(s.Duration) || sim.runs.Len() > 0); note(sim, time.Duration(e.At)) {
		sim.reach(e.At)
		sim.happen(&e)
	}
	sim.passed = true
	return seen(sim), nil
}

// Traced is Simulate for a herd of one client. It also returns the times at which each attempt was sent and ended.
func Traced(ctx context.Context, s Scenario) (r Seen, sent, ended []time.Duration, err error) {
	attempt, under := uint32(0), false
	r, err = followed(ctx, s, func(s *simulation, now time.Duration) {
		run := s.runs.At(0)
		if run.attempt != attempt {
			sent, attempt, under = append(sent, now), run.attempt, true
		}
		if under && run.calls == 0 {
			ended, under = append(ended, now), false
		}
	})
	return r, sent, ended, err
}

// Watched is Simulate. It also returns the times at which runs began and ended, and whether each succeeded.
func Watched(ctx context.Context, s Scenario) (r Seen, begun, ended []time.Duration, well []bool, err error) {
	successes := 0
	r, err = followed(ctx, s, func(s *simulation, now time.Duration) {
		n := 0
		for _, of := range s.result.Endings {
			n += of
		}
		for len(ended) < n {
			ended, well = append(ended, now), append(well, s.result.Endings[0] > successes)
			successes = s.result.Endings[0]
		}
		for len(begun) < n+s.runs.Len() {
			begun = append(begun, now)
		}
	})
	return r, begun, ended, well, err
}

// End returns the time at which t ends.
func End(t Trigger) time.Duration { return time.Duration(t.end()) }
