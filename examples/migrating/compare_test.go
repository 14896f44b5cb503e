package migrating_test

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

// pair is a call-site before and after.
type pair struct {
	name   string
	before call
	after  call
}

// fivePairs make 5 attempts, 100ms ×2, at most 1s, and end at errNotFound.
var fivePairs = []pair{
	{"backoff v4", client.backoffV4, client.afterBackoff},
	{"backoff v5", client.backoffV5, client.afterBackoff},
	{"backoff v6", client.backoffV6, client.afterBackoff},
	{"backoff v7", client.backoffV7, client.afterBackoff},
	{"retry-go v4", client.retryGoV4, client.afterRetryGo},
	{"retry-go v5", client.retryGoV5, client.afterRetryGo},
	{"sethvargo", client.sethvargo, client.afterSethvargo},
	{"failsafe", client.failsafe, client.afterFailsafe},
	{"by hand", client.byHand, client.afterByHand},
	{"by hand, with a loop", client.byHand, client.afterByHandLoop},
}

// constantPairs make 3 attempts with 1s between them.
var constantPairs = []pair{
	{"backoff v4", client.constantBackoffV4, client.afterConstant},
	{"backoff v5", client.constantBackoffV5, client.afterConstant},
	{"backoff v6", client.constantBackoffV6, client.afterConstant},
	{"backoff v7", client.constantBackoffV7, client.afterConstant},
	{"retry-go v4", client.constantRetryGoV4, client.afterConstant},
	{"retry-go v5", client.constantRetryGoV5, client.afterConstant},
	{"sethvargo", client.constantSethvargo, client.afterConstant},
	{"failsafe", client.constantFailsafe, client.afterConstant},
}

// both runs a subtest for the call-site before and the one after.
func both(t *testing.T, pairs []pair, check func(t *testing.T, do call)) {
	t.Helper()
	for _, p := range pairs {
		t.Run(p.name+" before", func(t *testing.T) { check(t, p.before) })
		t.Run(p.name+" after", func(t *testing.T) { check(t, p.after) })
	}
}

func TestTheSameAttemptsAtTheSameTimes(t *testing.T) {
	for _, row := range []struct {
		name string
		s    script
		at   []time.Duration
		err  error
	}{
		{name: "a first try that succeeds", s: failing(), at: ms(0)},
		{name: "the third succeeds", s: failing(errBusy, errBusy), at: ms(0, 100, 300)},
		{name: "the fifth succeeds", s: failing(errBusy, errBusy, errBusy, errBusy), at: ms(0, 100, 300, 700, 1500)},
		{name: "none succeeds", s: always(errBusy), at: ms(0, 100, 300, 700, 1500), err: errBusy},
		{name: "not found is final", s: failing(errBusy, errNotFound), at: ms(0, 100), err: errNotFound},
	} {
		t.Run(row.name, func(t *testing.T) {
			both(t, fivePairs, func(t *testing.T, do call) {
				r := watch(t, do, row.s)
				require.Equal(t, row.at, r.at)
				if row.err != nil {
					require.ErrorIs(t, r.err, row.err)
					return
				}
				require.NoError(t, r.err)
				require.Equal(t, "page 1", r.value)
			})
		})
	}
}

func TestTheSameConstantWaits(t *testing.T) {
	both(t, constantPairs, func(t *testing.T, do call) {
		r := watch(t, do, always(errBusy))
		require.Equal(t, ms(0, 1000, 2000), r.at)
		require.Equal(t, 2*time.Second, r.took)
		require.ErrorIs(t, r.err, errBusy)
	})
}

func TestTheSameLines(t *testing.T) {
	waits := []string{"busy, again in 100ms", "busy, again in 200ms"}
	for _, do := range []call{
		client.backoffV4, client.backoffV5, client.backoffV6, client.backoffV7, client.afterBackoff,
	} {
		require.Equal(t, waits, watch(t, do, failing(errBusy, errBusy)).lines)
	}
	attempts := []string{"attempt 1: busy", "attempt 2: busy"}
	for _, do := range []call{client.retryGoV4, client.retryGoV5, client.afterRetryGo} {
		require.Equal(t, attempts, watch(t, do, failing(errBusy, errBusy)).lines)
	}
}

// defaults are the calls without any option, and ours that come closest.
func TestDefaults(t *testing.T) {
	bounds := func(t *testing.T, do call, attempts int, lo, hi []time.Duration) {
		t.Helper()
		for range 20 {
			r := watch(t, do, always(errBusy))
			require.ErrorIs(t, r.err, errBusy)
			waits := r.waits()
			if attempts > 0 {
				require.Len(t, r.at, attempts)
			}
			for n := range lo {
				require.GreaterOrEqual(t, waits[n], lo[n])
				require.LessOrEqual(t, waits[n], hi[n]+1) // theirs can be a nanosecond more
			}
		}
	}
	t.Run("backoff: 500ms ×1.5 by half either way, until 15m", func(t *testing.T) {
		both(t, []pair{
			{"v4", client.defaultBackoffV4, client.afterDefaultBackoff},
			{"v5", client.defaultBackoffV5, client.afterDefaultBackoff},
			{"v6", client.defaultBackoffV6, client.afterDefaultBackoff},
			{"v7", client.defaultBackoffV7, client.afterDefaultBackoff},
		}, func(t *testing.T, do call) {
			bounds(t, do, 0, ms(250, 375, 562), ms(750, 1125, 1688))
			r := watch(t, do, always(errBusy))
			require.LessOrEqual(t, r.took, 15*time.Minute)
			require.Greater(t, r.took, 15*time.Minute-90*time.Second) // the wait that did not fit is at most 1m ×1.5
		})
	})
	t.Run("retry-go: 10 attempts, 100ms ×2 plus up to 100ms", func(t *testing.T) {
		for _, do := range []call{client.defaultRetryGoV4, client.defaultRetryGoV5} {
			bounds(t, do, 10, ms(100, 200, 400, 800, 1600, 3200, 6400, 12800, 25600),
				ms(200, 300, 500, 900, 1700, 3300, 6500, 12900, 25700))
		}
		bounds(t, client.afterDefaultRetryGo, 10, ms(100, 201, 402), ms(200, 399, 798))
	})
	t.Run("failsafe: 3 attempts without a wait", func(t *testing.T) {
		for _, do := range []call{client.defaultFailsafe, client.afterDefaultFailsafe} {
			r := watch(t, do, always(errBusy))
			require.Equal(t, ms(0, 0, 0), r.at)
			require.ErrorIs(t, r.err, errBusy)
		}
	})
}
