package retryplan

import (
	"cmp"
	"time"

	"github.com/retrygo/retry"
)

// Breaker is a circuit breaker before every attempt, first ones included. It opens when at least MinSamples attempts
// ended within Window and the share Failures of them or more failed; after Open it lets Probes attempts through, closes
// when all of them succeed and opens again when one fails. An attempt that was sent before the breaker last opened or
// closed does not count.
type Breaker struct {
	Failures   float64       // in (0,1]. Zero means 0.5
	MinSamples int           // Zero means 20
	Window     time.Duration // Zero means 10s
	Open       time.Duration // Zero means 5s
	Probes     int           // Zero means 5
	// Defer makes attempts wait until the breaker lets them through, as Policy.Gate does; those that find all probes
	// under way look again after a tenth of Open. Otherwise an attempt that meets an open breaker fails without being
	// sent, and Decide is called.
	Defer bool
}

func (b *Breaker) validate(bad *retry.FieldErrors) {
	const of = "Scenario.Breaker."
	refuse(bad, !(b.Failures >= 0 && b.Failures <= 1), of+"Failures", b.Failures, "is outside (0,1]")
	negative(bad, of+"MinSamples", b.MinSamples)
	negative(bad, of+"Window", b.Window)
	negative(bad, of+"Open", b.Open)
	negative(bad, of+"Probes", b.Probes)
}

// withDefaults returns b with what is zero set.
func (b Breaker) withDefaults() Breaker {
	b.Failures = cmp.Or(b.Failures, 0.5)
	b.MinSamples = cmp.Or(b.MinSamples, 20)
	b.Window = cmp.Or(b.Window, 10*time.Second)
	b.Open = cmp.Or(b.Open, 5*time.Second)
	b.Probes = cmp.Or(b.Probes, 5)
	return b
}

// breakerThrottle is a Breaker at work.
type breakerThrottle struct {
	*Breaker
	closings *[]time.Duration // when the open breakers of the fleet stop being open, in order
	state    breakerState
	since    time.Duration // when the state began: what was sent before it does not count
	sent     int           // probes
	passed   int           // probes that succeeded
	failures int           // among samples
	samples  []breakerSample
}

type breakerSample struct {
	at     time.Duration
	failed bool
}

type breakerState uint8

const (
	breakerClosed breakerState = iota
	breakerOpen
	breakerProbing
)

// Send is a method of Throttle.
func (b *breakerThrottle) Send(now time.Duration, _ int) (wait time.Duration, ok bool) {
	if b.state == breakerOpen {
		if until := saturatingAdd(b.since, b.Open); now < until {
			return until - now, b.Defer
		}
		b.turn(now, breakerProbing)
	}
	if b.state == breakerProbing {
		if b.sent >= b.Probes {
			// It is not known how long the probes take, so an attempt asks again soon.
			return max(b.Open/10, 1), b.Defer
		}
		b.sent++
	}
	return 0, true
}

// Done is a method of Throttle.
func (b *breakerThrottle) Done(now, lasted time.Duration, _ int, ok bool) {
	if now-lasted < b.since {
		return
	}
	switch b.state {
	case breakerProbing:
		b.passed++
		switch {
		case !ok:
			b.trip(now)
		case b.passed == b.Probes:
			b.turn(now, breakerClosed)
		}
	case breakerClosed:
		for len(b.samples) > 0 && b.samples[0].at <= now-b.Window {
			if b.samples[0].failed {
				b.failures--
			}
			b.samples = b.samples[1:]
		}
		b.samples = append(b.samples, breakerSample{now, !ok})
		if !ok {
			b.failures++
		}
		if n := len(b.samples); n >= b.MinSamples && float64(b.failures) >= float64(b.Breaker.Failures*float64(n)) {
			b.trip(now)
		}
	}
}

// Retry is a method of Throttle.
func (b *breakerThrottle) Retry(time.Duration, int) bool { return true }

// trip opens the breaker.
func (b *breakerThrottle) trip(now time.Duration) {
	b.turn(now, breakerOpen)
	*b.closings = append(*b.closings, saturatingAdd(now, b.Open))
}

func (b *breakerThrottle) turn(now time.Duration, to breakerState) {
	b.state, b.since = to, now
	b.sent, b.passed, b.failures = 0, 0, 0
	b.samples = nil
}
