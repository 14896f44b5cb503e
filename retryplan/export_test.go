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

// followed is Simulate with a call of note before the first event and after each.
func followed(ctx context.Context, s Scenario, note func(s *simulation, now time.Duration)) (Result, error) {
	if err := s.validate(ctx); err != nil {
		return Result{}, err
	}
	sim := newSimulation(&s, s)
	sim.planArrivals()
	note(sim, 0)
	for e := (event.Event{}); sim.events.Next(&e) && (e.At < int64(s.Duration) || sim.runs.Len() > 0); note(sim, time.Duration(e.At)) {
		sim.reach(e.At)
		sim.happen(&e)
	}
	sim.passed = true
	return sim.finish(), nil
}

// Traced is Simulate for a herd of one client. It also returns when each attempt was sent and when it ended.
func Traced(ctx context.Context, s Scenario) (r Result, sent, ended []time.Duration, err error) {
	attempt, under := uint32(0), false
	r, err = followed(ctx, s, func(s *simulation, now time.Duration) {
		run := s.runs.At(0)
		if under && run.calls == 0 {
			ended, under = append(ended, now), false
		}
		if run.attempt != attempt {
			sent, attempt, under = append(sent, now), run.attempt, true
		}
	})
	return r, sent, ended, err
}

// Watched is Simulate. It also returns when runs began, when they ended, and whether with success.
func Watched(ctx context.Context, s Scenario) (r Result, begun, ended []time.Duration, well []bool, err error) {
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

// StabilityOf is the Stability that Certify finds, without the rest of the certificate, which takes twenty times as long.
func StabilityOf(p retry.Policy, f Fleet) (Stability, error) {
	if err := f.validate(p); err != nil {
		return 0, err
	}
	return newCertifier(p, f).find(change{rate: 1, trigger: 1}).stability, nil
}

// CalmDuration returns how long attempts of a fleet without retries take, in the queue of the backend too, by the law of
// random arrivals.
func CalmDuration(f Fleet) Dist {
	load := f.Rate / f.Capacity
	quantile := func(late float64) time.Duration {
		_, wait := bisect(0, 100/(f.Capacity*decay(load)), 40, func(wait float64) bool {
			return waiting(load, f.Capacity, f.workers(), wait) > late
		})
		return f.service() + seconds(wait)
	}
	return LogNormal(quantile(.5), quantile(.01))
}
