package retryjob_test

import (
	"encoding/json"
	"errors"
	"hash/fnv"
	"math/big"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/retrygo/retry"
	"github.com/retrygo/retry/retryjob"
)

// u is the number in [0,1) of the wait after an attempt, computed by hand: FNV-1a (64 bits) of the job's ID, then
// SplitMix64's step and finalizer for each count n, n+1 golden gammas on; the upper 53 bits are kept.
func u(jobID string, replays, attempt int) float64 {
	word := func(n uint64) *big.Int { return new(big.Int).SetUint64(n) }
	size := new(big.Int).Lsh(big.NewInt(1), 64)
	times := func(a, b *big.Int) *big.Int { a = new(big.Int).Mul(a, b); return a.Mod(a, size) }
	fold := func(a *big.Int, by uint) *big.Int { return new(big.Int).Xor(a, new(big.Int).Rsh(a, by)) }
	hash := fnv.New64a()
	_, _ = hash.Write([]byte(jobID))
	h := word(hash.Sum64())
	for _, n := range []int{replays, attempt} {
		h.Add(h, new(big.Int).Mul(big.NewInt(int64(n)+1), word(0x9e3779b97f4a7c15))).Mod(h, size)
		h = times(fold(h, 30), word(0xbf58476d1ce4e5b9))
		h = times(fold(h, 27), word(0x94d049bb133111eb))
		h = fold(h, 31)
	}
	f, _ := new(big.Rat).SetFrac(h.Rsh(h, 11), new(big.Int).Lsh(big.NewInt(1), 53)).Float64()
	return f
}

// TestSpread fixes the numbers: another release must compute the same due times for stored records.
func TestSpread(t *testing.T) {
	for _, row := range []struct {
		id               string
		replays, attempt int
		want             float64
	}{
		{"", 0, 1, 0.7362174295996156},
		{"j", 0, 1, 0.12442181850915501},
		{"j", 0, 2, 0.3905894114111449},
		{"j", 1, 1, 0.30939022041540676},
	} {
		require.Equal(t, row.want, u(row.id, row.replays, row.attempt), "%+v", row)
	}
}

func TestDecorrelatedJitterSurvivesJSON(t *testing.T) {
	p := retry.Policy{MaxAttempts: 20, Backoff: retry.Backoff{Base: sec, Cap: time.Hour, Jitter: retry.DecorrelatedJitter}}
	kept, stored := newTrial(t, p), newTrial(t, p)
	for attempt := 1; attempt < 20; attempt++ {
		prev := kept.r.Prev
		next := kept.step(attempt, ending(retry.After(2*time.Minute, errFlaky)))
		require.GreaterOrEqual(t, kept.r.Prev, p.Base)
		require.LessOrEqual(t, kept.r.Prev, min(3*max(prev, p.Base), p.Cap), "a hint does not count")

		text, err := json.Marshal(stored.r)
		require.NoError(t, err)
		stored.r = retryjob.Record{}
		require.NoError(t, json.Unmarshal(text, &stored.r))
		require.Equal(t, next, stored.step(attempt, ending(retry.After(2*time.Minute, errFlaky))))
		require.Equal(t, kept.r, stored.r)
		kept.c.now, stored.c.now = next.Due, next.Due
	}
	t.Run("a record keeps the last delay for decorrelated jitter only", func(t *testing.T) {
		x := newTrial(t, retry.Policy{Backoff: retry.Backoff{Jitter: retry.FullJitter}})
		x.step(1, ending(errFlaky))
		require.Zero(t, x.r.Prev)
	})
}

func TestJitterIsTheSameForEveryCaller(t *testing.T) {
	dues := map[time.Time]bool{}
	for _, id := range []string{"a", "b", "c"} {
		for replays := range 3 {
			for attempt := 1; attempt < 9; attempt++ {
				next := retryjob.Next{Status: retryjob.WaitingRetry, Due: epoch.Add(time.Duration(float64(time.Hour) * u(id, replays, attempt)))}
				for _, wait := range []func(*trial) retryjob.Next{
					func(x *trial) retryjob.Next { return x.step(attempt, ending(errFlaky)) },
					func(x *trial) retryjob.Next { return x.step(attempt, ending(errors.New("another"))) },
					func(x *trial) retryjob.Next { return x.lost(attempt) },
				} {
					x := newTrial(t, retry.Policy{MaxAttempts: 9, Backoff: retry.Backoff{Base: time.Hour, Factor: 1, Jitter: retry.FullJitter}})
					x.r.JobID, x.r.Replays, x.r.Attempts = id, replays, attempt-1
					if attempt > 1 {
						x.r.Status = retryjob.WaitingRetry
					}
					require.Equal(t, next, wait(x))
				}
				require.False(t, dues[next.Due], "two waits are the same")
				dues[next.Due] = true
			}
		}
	}
}
