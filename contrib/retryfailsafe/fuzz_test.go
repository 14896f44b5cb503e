package retryfailsafe_test

import (
	"context"
	"testing"
	"testing/synctest"
	"time"

	"github.com/failsafe-go/failsafe-go"
	"github.com/stretchr/testify/require"

	"github.com/retrygo/retry"
	"github.com/retrygo/retry/contrib/retryfailsafe"
)

// Every policy is either refused as Validate does, or waits as Decide says; none panics.
func FuzzPolicy(f *testing.F) {
	f.Add(3, uint8(0), int64(0), 0.0, int64(0), int64(0), int64(0), uint8(0), 0.0, int64(0), int64(0), int64(0), false, 0.5, int64(0))
	f.Add(-1, uint8(1), int64(1), 3.0, int64(1e9), int64(0), int64(0), uint8(4), 0.0, int64(0), int64(1e12), int64(0), false, 0.9, int64(5e9))
	f.Add(0, uint8(4), int64(0), 0.0, int64(0), int64(1e9), int64(0), uint8(3), 0.1, int64(1e9), int64(0), int64(0), true, 0.1, int64(0))
	f.Add(5, uint8(2), int64(1e18), 1e300, int64(0), int64(0), int64(0), uint8(1), 0.0, int64(0), int64(0), int64(0), false, 1.5, int64(-1))
	f.Fuzz(func(t *testing.T, attempts int, mode uint8, base int64, factor float64, limit, d1, d2 int64, jitter uint8, ratio float64,
		timeout, ttl, maxHint int64, disabled bool, u float64, hint int64) {
		p := retry.Policy{
			MaxAttempts: attempts,
			Backoff: retry.Backoff{
				Mode: retry.Mode(mode), Base: time.Duration(base), Factor: factor, Cap: time.Duration(limit),
				Jitter: retry.JitterMode(jitter), JitterRatio: ratio,
			},
			AttemptTimeout: time.Duration(timeout), TTL: time.Duration(ttl), MaxHint: time.Duration(maxHint), Disabled: disabled,
			Rand: func() float64 { return u },
		}
		if d1 != 0 || d2 != 0 {
			p.Delays = []time.Duration{time.Duration(d1), time.Duration(d2)}
		}
		rp, lost, err := retryfailsafe.Policy[int](p)
		require.Equal(t, p.Validate(), err)
		if err != nil {
			require.Nil(t, rp)
			return
		}
		require.Len(t, lost, min(1, int(p.AttemptTimeout)))
		const most = 20 // attempts, also of an unlimited policy
		fail := func(attempt int) error {
			err := retry.After(time.Duration(hint), errDown)
			if attempt == most {
				return retry.Permanent(err)
			}
			return err
		}
		want, end := delays(p, fail)
		var total time.Duration
		for _, wait := range want {
			if total += wait; total > 100*365*24*time.Hour || total < 0 {
				return // longer than a virtual clock can show
			}
		}
		synctest.Test(t, func(t *testing.T) {
			var got []time.Duration
			var last time.Time
			made := 0
			err := failsafe.With(rp).WithContext(context.Background()).Run(func() error {
				if made++; made > 1 {
					got = append(got, time.Since(last))
				}
				last = time.Now()
				return fail(made)
			})
			require.Equal(t, want, got)
			require.ErrorIs(t, err, end.Reason)
		})
	})
}
