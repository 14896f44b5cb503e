package gates

import (
	"context"
	"math"
	"slices"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"
	"golang.org/x/time/rate"

	"github.com/retrygo/retry"
)

// sends makes one run of attempts that fail and returns when they were sent, since now.
func sends(ctx context.Context, p retry.Policy) (sent []time.Duration, err error) {
	start := time.Now()
	err = retry.Do(ctx, p, func(context.Context) error {
		sent = append(sent, time.Since(start))
		return errDown
	})
	return sent, err
}

func TestALimiterGivesEachAttemptAToken(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		p := retry.Policy{MaxAttempts: 6, Backoff: fixed, Gate: Rate(rate.NewLimiter(rate.Every(100*ms), 2))}
		sent, err := sends(t.Context(), p)
		require.ErrorIs(t, err, retry.AttemptsExhausted)
		require.Equal(t, []time.Duration{0, 20 * ms, 100 * ms, 200 * ms, 300 * ms, 400 * ms}, sent)
	})
	t.Run("waits that are longer than the limiter's are not made longer", func(t *testing.T) {
		synctest.Test(t, func(t *testing.T) {
			p := retry.Policy{MaxAttempts: 3, Gate: Rate(rate.NewLimiter(rate.Every(time.Second), 1))}
			sent, err := sends(t.Context(), p)
			require.ErrorIs(t, err, retry.AttemptsExhausted)
			require.Equal(t, []time.Duration{0, 5 * time.Second, 15 * time.Second}, sent)
		})
	})
}

func TestALimiterPastTheTTLExpiresTheRunAtOnceAndTakesNoToken(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		limiter := rate.NewLimiter(rate.Every(100*ms), 1)
		require.True(t, limiter.Allow())
		start := time.Now()
		for range 10 {
			sent, err := sends(t.Context(), retry.Policy{TTL: 100*ms - 1, Gate: Rate(limiter)})
			require.ErrorIs(t, err, retry.TTLElapsed)
			require.Empty(t, sent)
		}
		require.Zero(t, time.Since(start))
		sent, err := sends(t.Context(), retry.Policy{TTL: 100 * ms, Gate: Rate(limiter)}) // exactly at the TTL is in time
		require.ErrorIs(t, err, retry.TTLElapsed)
		require.Equal(t, []time.Duration{100 * ms}, sent)
	})
}

func TestACancelledWaitOwesNothing(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		limiter := rate.NewLimiter(rate.Every(100*ms), 1)
		require.True(t, limiter.Allow())
		ctx, cancel := context.WithTimeout(t.Context(), time.Hour)
		time.AfterFunc(50*ms, cancel)
		_, err := sends(ctx, retry.Policy{Gate: Rate(limiter)})
		require.ErrorIs(t, err, retry.CallerCanceled)
		require.Equal(t, 50*ms, Rate(limiter)(t.Context()))
	})
}

func TestLimitsAtTheEdge(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		require.Zero(t, Rate(rate.NewLimiter(rate.Inf, 0))(t.Context()))
		require.Equal(t, time.Duration(math.MaxInt64), Rate(rate.NewLimiter(0, 0))(t.Context()))
		require.Equal(t, time.Duration(math.MaxInt64), Rate(rate.NewLimiter(rate.Every(time.Duration(math.MaxInt64)), 0))(t.Context()))
		require.Equal(t, time.Duration(math.MaxInt64), Rate(rate.NewLimiter(-1, 0))(t.Context()))
		ctx, cancel := context.WithTimeout(t.Context(), time.Hour)
		defer cancel()
		for _, never := range []*rate.Limiter{rate.NewLimiter(0, 0), rate.NewLimiter(20, 0), rate.NewLimiter(20, -1)} {
			start, asked, gate := time.Now(), 0, Rate(never)
			_, err := sends(ctx, retry.Policy{Gate: func(ctx context.Context) time.Duration { asked++; return gate(ctx) }})
			require.ErrorIs(t, err, retry.DeadlineTooNear)
			require.Zero(t, time.Since(start))
			require.Equal(t, 1, asked)
		}
	})
}

// If 100 runs wait at once, each token admits one of them at the instant when it is there: none is lost and none is
// used twice.
func TestALimiterSharedByManyGoroutines(t *testing.T) {
	for name, row := range map[string]struct {
		limit rate.Limit
		burst int
	}{
		"every 100ms":         {rate.Every(100 * ms), 3},
		"seven a second":      {7, 1},
		"a thousand a second": {1000, 10},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				gate := Rate(rate.NewLimiter(row.limit, row.burst))
				start := time.Now()
				var mu sync.Mutex
				var sent []time.Duration
				var all sync.WaitGroup
				for range 100 {
					all.Go(func() {
						_ = retry.Do(t.Context(), retry.Policy{Gate: gate}, func(context.Context) error {
							mu.Lock()
							defer mu.Unlock()
							sent = append(sent, time.Since(start))
							return nil
						})
					})
				}
				all.Wait()
				slices.Sort(sent)
				require.Len(t, sent, 100)
				for i, at := range sent {
					due := float64(max(0, i+1-row.burst)) / float64(row.limit) * float64(time.Second)
					require.InDelta(t, due, float64(at), float64(i+1), "attempt %d", i+1) // a nanosecond's rounding each
				}
			})
		})
	}
}

// Why the gate does not ask Reserve and Cancel for the delay: two that cross lose a token.
func TestReservationsThatCrossLoseAToken(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		limiter := rate.NewLimiter(rate.Every(100*ms), 1)
		require.True(t, limiter.Allow())
		first, second := limiter.Reserve(), limiter.Reserve()
		first.Cancel()
		second.Cancel()
		require.Equal(t, -1.0, limiter.Tokens())
	})
}

// A gate of several gates asks the limiter last, so that an attempt that another gate refuses takes no token.
func TestALimiterIsAskedAfterOtherGates(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		limiter := rate.NewLimiter(rate.Every(time.Hour), 1)
		start, limited := time.Now(), Rate(limiter)
		p := retry.Policy{MaxAttempts: 1, Gate: func(ctx context.Context) time.Duration {
			if closed := 50*ms - time.Since(start); closed > 0 {
				require.Equal(t, 1.0, limiter.Tokens())
				return closed
			}
			return limited(ctx)
		}}
		sent, err := sends(t.Context(), p)
		require.ErrorIs(t, err, retry.AttemptsExhausted)
		require.Equal(t, []time.Duration{50 * ms}, sent)
	})
}

// Callers that wait in the limiter itself came first.
func TestALimiterThatOthersWaitFor(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		limiter := rate.NewLimiter(rate.Every(100*ms), 1)
		require.True(t, limiter.Allow())
		require.Equal(t, 100*ms, limiter.Reserve().Delay())
		sent, err := sends(t.Context(), retry.Policy{MaxAttempts: 1, Gate: Rate(limiter)})
		require.ErrorIs(t, err, retry.AttemptsExhausted)
		require.Equal(t, []time.Duration{200 * ms}, sent)
	})
}
