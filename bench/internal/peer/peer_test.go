package peer_test

import (
	"context"
	"errors"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/failsafe-go/failsafe-go"
	"github.com/failsafe-go/failsafe-go/retrypolicy"
	"github.com/stretchr/testify/require"
	"k8s.io/apimachinery/pkg/util/wait"

	"github.com/retrygo/retry"
	"github.com/retrygo/retry/bench/internal/contest"
	"github.com/retrygo/retry/bench/internal/peer"
)

var errFlaky = errors.New("flaky")

// loops are all of them.
func loops() []peer.Loop {
	return append([]peer.Loop{peer.Hand, peer.Ours, peer.OursWithBudget, peer.OursWithValue}, peer.Peers()...)
}

// config is a Config that says the same to all loops.
func config(attempts int, delay, attemptTimeout time.Duration) peer.Config {
	return peer.Config{
		Attempts:       attempts,
		Delay:          delay,
		AttemptTimeout: attemptTimeout,
		Policy: retry.Policy{
			MaxAttempts:    attempts,
			Backoff:        retry.Backoff{Delays: []time.Duration{delay}},
			AttemptTimeout: attemptTimeout,
		},
	}
}

// row is one run in virtual time.
type row struct {
	name     string
	delay    time.Duration
	failures int // of each call; the attempt after them succeeds
	attempts int // that are made
	elapsed  time.Duration
}

func TestEveryLoopMakesExactlyTheAttemptsAndWaitsThatItIsToldTo(t *testing.T) {
	const attempts = 10
	for _, r := range []row{
		{name: "a first-try success is one attempt", delay: 7 * time.Second, failures: 0, attempts: 1, elapsed: 0},
		{name: "a delay of 0 is no wait", delay: 0, failures: 3, attempts: 4, elapsed: 0},
		{name: "a delay of 1ns is one of 1ns", delay: 1, failures: 3, attempts: 4, elapsed: 3},
		{name: "a delay stays the same", delay: 7 * time.Second, failures: 3, attempts: 4, elapsed: 21 * time.Second},
		{name: "the last attempt can succeed", delay: 0, failures: 9, attempts: 10, elapsed: 0},
		{name: "ten failures are the end", delay: 0, failures: 10, attempts: 10, elapsed: 0},
		{name: "the last failure has no wait", delay: 7 * time.Second, failures: 10, attempts: 10, elapsed: 63 * time.Second},
	} {
		t.Run(r.name, func(t *testing.T) {
			for _, l := range loops() {
				t.Run(l.Name, func(t *testing.T) {
					synctest.Test(t, func(t *testing.T) {
						made := 0
						call := l.New(cancellable(t), config(attempts, r.delay, 0), func(context.Context) error {
							if made++; made <= r.failures {
								return errFlaky
							}
							return nil
						})
						for range 2 { // a loop that is built once must not remember the call before
							made = 0
							start := time.Now()
							err := call()
							require.Equal(t, r.elapsed, time.Since(start))
							require.Equal(t, r.attempts, made)
							requireEnd(t, l, r.failures < attempts, err)
						}
					})
				})
			}
		})
	}
}

// requireEnd requires that err is nil exactly where the call succeeded, and else is what fn returned, as far as the
// library tells.
func requireEnd(t *testing.T, l peer.Loop, succeeded bool, err error) {
	t.Helper()
	switch {
	case succeeded:
		require.NoError(t, err)
	case l.Name == "k8s.io/apimachinery wait":
		require.True(t, wait.Interrupted(err))
	default:
		require.ErrorIs(t, err, errFlaky)
	}
}

func TestEveryLoopEndsAnAttemptAtItsTimeout(t *testing.T) {
	for _, l := range loops() {
		t.Run(l.Name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				made := 0
				call := l.New(cancellable(t), config(10, 0, time.Second), func(ctx context.Context) error {
					if made++; made <= 2 {
						<-ctx.Done()
					}
					return ctx.Err()
				})
				start := time.Now()
				require.NoError(t, call())
				require.Equal(t, 2*time.Second, time.Since(start))
				require.Equal(t, 3, made)
			})
		})
	}
}

func TestEveryLoopWaitsUnderItsContext(t *testing.T) {
	for _, l := range loops() {
		t.Run(l.Name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				ctx, cancel := context.WithCancel(t.Context())
				made := 0
				// cenkalti does not begin a wait beyond its limit of 15 minutes in all.
				call := l.New(ctx, config(10, 10*time.Minute, 0), func(context.Context) error {
					made++
					return errFlaky
				})
				time.AfterFunc(time.Minute, cancel)
				start := time.Now()
				require.Error(t, call())
				require.Equal(t, time.Minute, time.Since(start))
				require.Equal(t, 1, made)
			})
		})
	}
}

func TestEveryLoopServesSeveralGoroutines(t *testing.T) {
	const goroutines, calls = 4, 25
	for _, l := range loops() {
		t.Run(l.Name, func(t *testing.T) {
			var made atomic.Int64
			call := l.New(cancellable(t), config(3, 0, 0), func(context.Context) error {
				made.Add(1)
				return errFlaky
			})
			var wg sync.WaitGroup
			for range goroutines {
				wg.Go(func() {
					for range calls {
						if call() == nil {
							t.Error("a call that failed returned nil")
						}
					}
				})
			}
			wg.Wait()
			require.EqualValues(t, 3*goroutines*calls, made.Load())
		})
	}
}

func TestOursKeepsTheHistoryOfTenFailures(t *testing.T) {
	err := peer.Ours.New(cancellable(t), config(10, 0, 0), func(context.Context) error { return errFlaky })()
	var failed *retry.Error
	require.ErrorAs(t, err, &failed)
	require.Len(t, failed.History, 10)
	require.Equal(t, retry.AttemptsExhausted, failed.Reason)
}

func TestOnlyFailsafeAmongThePeersTellsElapsed(t *testing.T) {
	var names []string
	for _, l := range peer.Peers() {
		if l.TellsElapsed {
			names = append(names, l.Name)
		}
	}
	require.Equal(t, []string{"failsafe-go", "failsafe-go, usual form"}, names)

	synctest.Test(t, func(t *testing.T) {
		var elapsed time.Duration
		executor := failsafe.With[any](retrypolicy.NewWithDefaults[any]()).OnDone(func(e failsafe.ExecutionDoneEvent[any]) {
			elapsed = e.ElapsedTime()
		})
		require.NoError(t, executor.Run(func() error {
			<-time.After(3 * time.Second) // in virtual time
			return nil
		}))
		require.Equal(t, 3*time.Second, elapsed)
	})
}

func TestEveryPeerHasOneFastestForm(t *testing.T) {
	forms := map[contest.Form]int{}
	names := map[string]bool{}
	for _, l := range peer.Peers() {
		forms[l.Form]++
		require.False(t, names[l.Name], "%s is there twice", l.Name)
		names[l.Name] = true
	}
	require.Equal(t, map[contest.Form]int{contest.Fastest: 9, contest.Usual: 8}, forms)
}

// cancellable returns a context that can be cancelled, as that of any server can.
func cancellable(t *testing.T) context.Context {
	ctx, cancel := context.WithCancel(context.Background())
	t.Cleanup(cancel)
	return ctx
}
