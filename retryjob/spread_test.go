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
	c := &clock{epoch}
	s := stepper(p, c)
	kept, stored := record(c), record(c)
	for attempt := 1; attempt < 20; attempt++ {
		prev := kept.Prev
		v, err := s.Step(t.Context(), &kept, attempt, ending(retry.After(2*time.Minute, errFlaky)))
		require.NoError(t, err)
		require.GreaterOrEqual(t, kept.Prev, p.Base)
		require.LessOrEqual(t, kept.Prev, min(3*max(prev, p.Base), p.Cap), "a hint does not count")

		text, err := json.Marshal(stored)
		require.NoError(t, err)
		stored = retryjob.Record{}
		require.NoError(t, json.Unmarshal(text, &stored))
		w, err := s.Step(t.Context(), &stored, attempt, ending(retry.After(2*time.Minute, errFlaky)))
		require.NoError(t, err)
		require.Equal(t, v, w)
		require.Equal(t, kept.Prev, stored.Prev)
		c.now = v.Due
	}
	require.Equal(t, kept, stored)
	t.Run("a record keeps the last delay for decorrelated jitter only", func(t *testing.T) {
		r := record(c)
		_, err := stepper(retry.Policy{Backoff: retry.Backoff{Jitter: retry.FullJitter}}, c).Step(t.Context(), &r, 1, ending(errFlaky))
		require.NoError(t, err)
		require.Zero(t, r.Prev)
	})
}

func TestJitterIsTheSameForEveryCaller(t *testing.T) {
	p := retry.Policy{MaxAttempts: 9, Backoff: retry.Backoff{Base: time.Hour, Factor: 1, Jitter: retry.FullJitter}}
	dues := map[time.Time]bool{}
	for _, id := range []string{"a", "b", "c"} {
		for replays := range 3 {
			for attempt := 1; attempt < 9; attempt++ {
				r := retryjob.NewRecord(&retryjob.Job{ID: id, Policy: "p"}, epoch)
				r.Replays, r.Attempts = replays, attempt-1
				if attempt > 1 {
					r.Status = retryjob.WaitingRetry
				}
				one, two, three := clone(r), clone(r), clone(r)
				v, err := stepper(p, &clock{epoch}).Step(t.Context(), &one, attempt, ending(errFlaky))
				require.NoError(t, err)
				w, err := stepper(p, &clock{epoch}).Step(t.Context(), &two, attempt, ending(errors.New("another")))
				require.NoError(t, err)
				require.Equal(t, v, w)
				w, err = stepper(p, &clock{epoch}).Lost(t.Context(), &three, attempt)
				require.NoError(t, err)
				require.Equal(t, v, w)
				require.False(t, dues[v.Due], "two waits are the same")
				dues[v.Due] = true
				require.Equal(t, time.Duration(float64(time.Hour)*u(id, replays, attempt)), v.Due.Sub(epoch))
			}
		}
	}
}
