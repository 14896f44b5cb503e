// Package retry stands in for the package of CockroachDB, whose module cannot be had: the same names, numbers of attempts
// and waits.
package retry

import (
	"context"
	"math/rand"
	"time"
)

// Options are the settings; 0 means the default of the package.
type Options struct {
	InitialBackoff, MaxBackoff      time.Duration
	Multiplier, RandomizationFactor float64
	MaxRetries                      int // after the first attempt; 0 means no limit
	Closer                          <-chan struct{}
}

// Retry counts the attempts of a loop.
type Retry struct {
	o       Options
	done    <-chan struct{}
	next    float64
	attempt int
	begun   bool
}

// Start returns a Retry without a context.
func Start(o Options) Retry { return StartWithCtx(context.Background(), o) }

// StartWithCtx returns a Retry that ends with ctx, but for its first attempt.
func StartWithCtx(ctx context.Context, o Options) Retry {
	for _, f := range []struct {
		of      *time.Duration
		nothing time.Duration
	}{{&o.InitialBackoff, 50 * time.Millisecond}, {&o.MaxBackoff, 2 * time.Second}} {
		if *f.of == 0 {
			*f.of = f.nothing
		}
	}
	if o.Multiplier == 0 {
		o.Multiplier = 2
	}
	if o.RandomizationFactor == 0 {
		o.RandomizationFactor = 0.15
	}
	return Retry{o: o, done: ctx.Done(), next: float64(o.InitialBackoff)}
}

// CurrentAttempt returns the number of the attempt, from 0.
func (r *Retry) CurrentAttempt() int { return r.attempt }

// Next waits for the next attempt and reports whether there is one.
func (r *Retry) Next() bool {
	if !r.begun {
		r.begun = true
		return true
	}
	if r.o.MaxRetries > 0 && r.attempt >= r.o.MaxRetries {
		return false
	}
	d := min(r.next, float64(r.o.MaxBackoff))
	r.next *= r.o.Multiplier
	select {
	case <-time.After(time.Duration(d * (1 + r.o.RandomizationFactor*(2*rand.Float64()-1)))):
		r.attempt++
		return true
	case <-r.o.Closer:
		return false
	case <-r.done:
		return false
	}
}
