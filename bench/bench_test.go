package bench_test

import (
	"context"
	"errors"
	"runtime"
	"sync"
	"testing"
	"time"

	"github.com/retrygo/retry"
)

// contender is one of the ways to do the work of a scenario. work does it n times, and panics if it was not done as the
// scenario says.
type contender struct {
	name string
	work func(n int)
}

// alone runs each contender as a sub-benchmark, in one goroutine.
func alone(b *testing.B, contenders []contender) { run(b, 1, contenders) }

// shared runs each contender as a sub-benchmark, in as many goroutines as -cpu says. An operation is one of all of them.
func shared(b *testing.B, contenders []contender) { run(b, runtime.GOMAXPROCS(0), contenders) }

func run(b *testing.B, goroutines int, contenders []contender) {
	for _, c := range contenders {
		b.Run(c.name, func(b *testing.B) {
			c.work(1)
			b.ReportAllocs()
			b.ResetTimer()
			together(goroutines, b.N, c.work)
		})
	}
}

// together splits n operations of work among goroutines.
func together(goroutines, n int, work func(n int)) {
	if goroutines == 1 {
		work(n)
		return
	}
	var wg sync.WaitGroup
	for i := range goroutines {
		wg.Go(func() { work((n + i) / goroutines) })
	}
	wg.Wait()
}

// serving is the context of all calls. It can be canceled, as that of any server can, and never is.
var serving, _ = context.WithCancel(context.Background())

var errFlaky = errors.New("flaky")

// calls returns the loops as contenders that call fn, which succeeds.
func calls(c config, fn attempt, loops ...loop) []contender {
	var all []contender
	for _, l := range loops {
		all = append(all, contender{l.name, repeated(l.make(serving, c, fn))})
	}
	return all
}

// repeated returns what calls do n times and panics if it fails.
func repeated(do func() error) func(n int) {
	return func(n int) {
		for range n {
			if err := do(); err != nil {
				panic(err)
			}
		}
	}
}

// failing returns the loops as contenders whose calls fail the given number of times before they succeed, if the
// attempts suffice. They are for one goroutine.
func failing(c config, failures int, loops ...loop) []contender {
	due, succeeds := min(failures+1, c.attempts), failures < c.attempts
	var all []contender
	for _, l := range loops {
		made := 0
		call := l.make(serving, c, func(context.Context) error {
			if made++; made <= failures {
				return errFlaky
			}
			return nil
		})
		all = append(all, contender{l.name, repeated(func() error {
			made = 0
			if err := call(); (err == nil) != succeeds || made != due {
				return errors.Join(errors.New(l.name+" made the wrong attempts"), err)
			}
			return nil
		})})
	}
	return all
}

var (
	patient     = config{attempts: 8, delay: 5 * time.Second} // what the zero Policy begins with
	timed       = config{8, 5 * time.Second, time.Second, retry.Policy{AttemptTimeout: time.Second}}
	atOnce      = retry.Backoff{Delays: []time.Duration{0}}
	eightAtOnce = config{attempts: 8, policy: retry.Policy{MaxAttempts: 8, Backoff: atOnce}}
	tenAtOnce   = config{attempts: 10, policy: retry.Policy{MaxAttempts: 10, Backoff: atOnce}}
	oneNano     = config{attempts: 8, delay: 1, policy: retry.Policy{Backoff: retry.Backoff{Mode: retry.Fixed, Base: 1}}}
)

func firstTry() []contender {
	return calls(patient, succeed, append([]loop{bareLoop, bareCall, ours, oursByRange}, peers...)...)
}

func firstTryBudget() []contender { return calls(patient, succeed, bareLoop, oursWithBudget) }
func firstTryValue() []contender  { return calls(patient, succeed, bareLoop, oursWithValue) }

// attemptTimeout is about what fn does with its context, since contexts are lazy.
func attemptTimeout(fn attempt) []contender {
	return calls(timed, fn, append([]loop{bareDeadline, ours}, peers...)...)
}

func threeFailures() []contender {
	return failing(eightAtOnce, 3, append([]loop{bareRun, bareClock, bareLoop, ours}, peers...)...)
}

func threeWaits() []contender {
	return failing(oneNano, 3, append([]loop{bareLoop, ours}, peers...)...)
}

func tenFailures() []contender {
	return failing(tenAtOnce, 10, append([]loop{bareRun, bareClock, bareLoop, ours}, peers...)...)
}

func BenchmarkClock(b *testing.B) {
	alone(b, []contender{{"bare-reading", func(n int) {
		for range n {
			sinkDuration = time.Since(epoch)
		}
	}}})
}

func BenchmarkFirstTry(b *testing.B)              { shared(b, firstTry()) }
func BenchmarkFirstTryBudget(b *testing.B)        { shared(b, firstTryBudget()) }
func BenchmarkFirstTryValue(b *testing.B)         { shared(b, firstTryValue()) }
func BenchmarkAttemptTimeoutIgnored(b *testing.B) { alone(b, attemptTimeout(succeed)) }
func BenchmarkAttemptTimeoutErr(b *testing.B)     { alone(b, attemptTimeout(readErr)) }
func BenchmarkAttemptTimeoutDone(b *testing.B)    { alone(b, attemptTimeout(selectOnDone)) }
func BenchmarkAttemptTimeoutDerived(b *testing.B) { alone(b, attemptTimeout(deriveContext)) }
func BenchmarkThreeFailures(b *testing.B)         { alone(b, threeFailures()) }
func BenchmarkThreeWaits(b *testing.B)            { alone(b, threeWaits()) }
func BenchmarkTenFailures(b *testing.B)           { alone(b, tenFailures()) }

//go:noinline
func succeed(context.Context) error { return nil }

//go:noinline
func readErr(ctx context.Context) error { return ctx.Err() }

//go:noinline
func selectOnDone(ctx context.Context) error {
	select {
	case <-ctx.Done():
		return ctx.Err()
	default:
		return nil
	}
}

//go:noinline
func deriveContext(ctx context.Context) error {
	_, cancel := context.WithCancel(ctx)
	cancel()
	return nil
}
