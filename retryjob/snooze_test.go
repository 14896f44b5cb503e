package retryjob_test

import (
	"context"
	"math"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/retrygo/retry"
	"github.com/retrygo/retry/retryjob"
)

func TestASnoozeThatEndsAfterTheTTLEndsTheJobAtOnce(t *testing.T) {
	for _, row := range []struct {
		name     string
		by, life time.Duration // how long the job lives
	}{
		{"far beyond", 48 * time.Hour, 0},
		{"without end", math.MaxInt64, 0},
		{"the second one", 40 * time.Minute, 40 * time.Minute},
		{"ends with the TTL", time.Hour, time.Hour},
	} {
		t.Run(row.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				start := time.Now()
				e := open(t, retry.Policy{TTL: time.Hour}, func(context.Context, retryjob.Job) error { return retryjob.Snooze(row.by) })
				put(t, e, "a", 0)
				time.Sleep(2 * time.Hour) // of virtual time
				i := get(t, e, "a")
				require.Equal(t, []any{retryjob.Expired, retry.TTLElapsed, 0}, []any{i.Status, i.Reason, i.Attempts})
				require.Equal(t, row.life, i.Ended.Sub(start))
				require.Empty(t, shutdown(t, e))
			})
		})
	}
}

func TestASnoozeThatEndsAJobPaysItsRetryBack(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		p := fixed(3, time.Minute)
		p.TTL, p.Budget = time.Hour, retry.NewBudget(retry.BudgetConfig{})
		e := open(t, p, func(ctx context.Context, _ retryjob.Job) error {
			if i, _ := retryjob.AttemptFrom(ctx); i.Number == 1 {
				return errDown
			}
			require.Zero(t, p.Budget.Tokens())
			return retryjob.Snooze(2 * time.Hour)
		})
		put(t, e, "a", 0)
		time.Sleep(2 * time.Minute) // of virtual time
		i := get(t, e, "a")
		require.Equal(t, []any{retryjob.Expired, 1}, []any{i.Status, i.Attempts})
		require.Equal(t, 1., p.Budget.Tokens())
		require.Empty(t, shutdown(t, e))
	})
}
