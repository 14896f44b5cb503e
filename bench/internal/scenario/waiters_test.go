package scenario

import (
	"context"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"
)

// TestWaitersWaitAnHour shows that each waiter makes one attempt, is then blocked on nothing but its timer and the
// context, and makes the next after an hour.
func TestWaitersWaitAnHour(t *testing.T) {
	for _, w := range waiters[1:] { // the limit has no next attempt
		t.Run(w.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				ctx, cancel := context.WithCancel(t.Context())
				defer cancel()
				start, calls := time.Now(), make(chan time.Duration, 2)
				w.start(ctx, 1, func(context.Context) error {
					calls <- time.Since(start)
					return errFlaky
				}, func(error) {})
				synctest.Wait()
				require.Equal(t, time.Duration(0), <-calls)
				require.Equal(t, time.Hour, <-calls)
			})
		})
	}
}

// TestWaitersReturnWhenCancelled shows that they all wait until then, and return at once.
func TestWaitersReturnWhenCancelled(t *testing.T) {
	const n = 10
	for _, w := range waiters {
		t.Run(w.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				ctx, cancel := context.WithCancel(t.Context())
				start, errs := time.Now(), make(chan error, n)
				var called atomic.Int32
				w.start(ctx, n, func(context.Context) error {
					called.Add(1)
					return errFlaky
				}, func(err error) { errs <- err })
				synctest.Wait()
				require.EqualValues(t, n, called.Load())
				require.Empty(t, errs)
				cancel()
				synctest.Wait()
				require.Len(t, errs, n)
				for range n {
					require.ErrorIs(t, <-errs, context.Canceled)
				}
				require.EqualValues(t, n, called.Load())
				require.Equal(t, start, time.Now())
			})
		})
	}
}

func TestBytesPerWaiterCountsAStackAtLeast(t *testing.T) {
	const smallest = 1536 // three quarters of runtime.stackMin: meanwhile others give theirs back
	for _, w := range waiters {
		t.Run(w.name, func(t *testing.T) {
			require.Greater(t, bytesPerWaiter(w, 2000), float64(smallest))
		})
	}
}

// TestGatheredWaitersAreParked shows that nobody has returned before the party is dismissed, and all have after.
func TestGatheredWaitersAreParked(t *testing.T) {
	var returned atomic.Int32
	counted := waiter{start: func(ctx context.Context, n int, fn func(context.Context) error, done func(error)) {
		waitOurs(ctx, n, fn, func(err error) {
			returned.Add(1)
			done(err)
		})
	}}
	p := gather(counted, 100)
	require.Zero(t, returned.Load())
	p.dismiss()
	require.EqualValues(t, 100, returned.Load())
}
