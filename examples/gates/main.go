// Gates shows retries that wait for the circuit breaker or rate limiter of a peer: sony/gobreaker, failsafe-go's
// breaker and golang.org/x/time/rate as Policy.Gate. It needs no network: the peer is a function.
//
//	go run ./examples/gates
package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"time"

	"github.com/failsafe-go/failsafe-go/circuitbreaker"
	"github.com/sony/gobreaker/v2"
	"golang.org/x/time/rate"

	"github.com/retrygo/retry"
)

func main() { run(os.Stdout) }

// run plays the three scenes and writes to w the events and their times.
func run(w io.Writer) {
	fmt.Fprintln(w, "sony/gobreaker: opens for 300ms at the third failure in a row")
	withGobreaker(newScene(w))
	fmt.Fprintln(w, "\nfailsafe-go's circuit breaker: the same")
	withFailsafe(newScene(w))
	fmt.Fprintln(w, "\ngolang.org/x/time/rate: one attempt in 100ms, two at once")
	withRate(newScene(w))
}

func withGobreaker(s scene) {
	breaker, gate := gobreakerGate[struct{}](gobreaker.Settings{
		Timeout:     300 * time.Millisecond,
		ReadyToTrip: func(c gobreaker.Counts) bool { return c.ConsecutiveFailures >= 3 },
	})
	s.outage(gate, func(_ context.Context, attempt func() error) error {
		_, err := breaker.Execute(func() (struct{}, error) { return struct{}{}, attempt() })
		return err
	})
}

func withFailsafe(s scene) {
	breaker := circuitbreaker.NewBuilder[struct{}]().
		WithFailureThreshold(3).
		WithDelay(300 * time.Millisecond).
		WithSuccessThreshold(1).
		Build()
	s.outage(failsafeGate(breaker), func(ctx context.Context, attempt func() error) error {
		_, err := failsafeThrough(ctx, breaker, func(context.Context) (struct{}, error) { return struct{}{}, attempt() })
		return err
	})
}

func withRate(s scene) {
	gate := rateGate(rate.NewLimiter(rate.Every(100*time.Millisecond), 2))
	direct := func(_ context.Context, attempt func() error) error { return attempt() }
	s.do("A", retry.Policy{Gate: gate}, nil, direct)
	s.do("B", retry.Policy{Gate: gate}, nil, direct)
	s.do("C", retry.Policy{Gate: gate, TTL: 50 * time.Millisecond}, nil, direct)
	// Its retries also take tokens: the policy's 20ms are much shorter than the limiter's 100ms.
	s.do("D", retry.Policy{Gate: gate, MaxAttempts: 3, Backoff: fixed}, errDown, direct)
}

var (
	errDown = errors.New("down")
	fixed   = retry.Backoff{Mode: retry.Fixed, Base: 20 * time.Millisecond}
)

// scene is a clock that begins at 0.
type scene struct {
	w     io.Writer
	start time.Time
}

func newScene(w io.Writer) scene { return scene{w, time.Now()} }

// tell writes a line. Times are rounded, so that the text is the same on every run.
func (s scene) tell(format string, args ...any) {
	fmt.Fprintf(s.w, "%6v  %s\n", time.Since(s.start).Round(10*time.Millisecond), fmt.Sprintf(format, args...))
}

// outage makes three runs against a peer that is down until A has given up.
func (s scene) outage(gate func(context.Context) time.Duration, through guard) {
	s.do("A", retry.Policy{Gate: gate, MaxAttempts: 3, Backoff: fixed}, errDown, through)
	s.do("B", retry.Policy{Gate: gate, TTL: 100 * time.Millisecond}, nil, through)
	s.do("C", retry.Policy{Gate: gate, TTL: time.Second}, nil, through)
}

// guard makes an attempt through the peer's breaker or limiter.
type guard func(ctx context.Context, attempt func() error) error

// do makes one run, whose attempts the peer answers with the given error.
func (s scene) do(name string, p retry.Policy, answer error, through guard) {
	p.Observe = func(_ context.Context, e retry.Event) {
		if e.Outcome != nil {
			s.tell("%s ends: %v, sent %d", name, e.Decision, e.Outcome.Attempts)
		}
	}
	_ = retry.Do(context.Background(), p, func(ctx context.Context) error { // Observe has printed the error
		return through(ctx, func() error {
			s.tell("%s sends attempt %d", name, retry.AttemptNumber(ctx))
			return answer
		})
	})
}
