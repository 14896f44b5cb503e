package retryplan_test

import (
	"math"
	"math/rand/v2"
	"os"
	"strconv"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/retrygo/retry"
	"github.com/retrygo/retry/retryplan"
)

// at100 returns a fleet whose backend does 100 attempts a second.
func at100(rate float64, kind retryplan.TriggerKind, lasts time.Duration) retryplan.Fleet {
	return retryplan.Fleet{Rate: rate, Capacity: 100, Trigger: retryplan.Trigger{Kind: kind, For: lasts}}
}

// judge returns the verdict about a fleet.
func judge(t *testing.T, p retry.Policy, f retryplan.Fleet) retryplan.Verdict {
	t.Helper()
	return judged(t, retryplan.Question{Policy: p, Fleet: f})
}

func judged(t *testing.T, q retryplan.Question) retryplan.Verdict {
	t.Helper()
	v, err := retryplan.Judge(t.Context(), q)
	require.NoError(t, err)
	return v
}

// result returns what a seed of q does.
func result(t *testing.T, q retryplan.Question, seed uint64) retryplan.Result {
	t.Helper()
	r, err := retryplan.Simulate(t.Context(), q, seed)
	require.NoError(t, err)
	return r
}

// between returns an even point of [lo, hi].
func between(rnd *rand.Rand, lo, hi float64) float64 { return lo + rnd.Float64()*(hi-lo) }

// spread returns a point of [lo, hi] whose logarithm is even.
func spread(rnd *rand.Rand, lo, hi float64) float64 {
	return lo * math.Exp(rnd.Float64()*math.Log(hi/lo))
}

func inSeconds(s float64) time.Duration {
	return time.Duration(s * float64(time.Second)).Round(time.Millisecond)
}

// generatorSeed returns the seed of the generator of random fleets: RETRYPLAN_SEED, or the usual one.
func generatorSeed(usual uint64) uint64 {
	if seed, err := strconv.ParseUint(os.Getenv("RETRYPLAN_SEED"), 10, 64); err == nil {
		return seed
	}
	return usual
}

// randomFleet returns the fleet of a row. Every other one is near its limit: the attempts of a storm, or those of the
// calm in the trigger, are about the Capacity.
func randomFleet(row uint64) (retry.Policy, retryplan.Fleet) {
	rnd := rand.New(rand.NewPCG(row, generatorSeed(8)))
	f := retryplan.Fleet{Capacity: math.Round(spread(rnd, 15, 300))}
	if rnd.IntN(3) == 0 {
		f.Workers = 1 + rnd.IntN(20)
	}
	timeout := spread(rnd, 0.1, 3)
	p := retry.Policy{MaxAttempts: min(1+rnd.IntN(8), 6), AttemptTimeout: inSeconds(timeout)}
	if rnd.IntN(4) == 0 {
		p.Delays = []time.Duration{0}
	} else {
		p.Base = inSeconds(spread(rnd, 0.01, 2) * timeout)
		p.Cap = p.Base * time.Duration(1+rnd.IntN(4))
		p.Jitter = retry.JitterMode(rnd.IntN(5))
		if p.Jitter == retry.DecorrelatedJitter && p.Cap == p.Base {
			p.Jitter = retry.FullJitter
		}
	}
	f.Rate = f.Capacity * between(rnd, 0.2, 0.95)
	if row%2 == 1 {
		f.Rate = min(f.Capacity/float64(p.MaxAttempts)*between(rnd, 0.9, 1.3), 0.95*f.Capacity)
	}
	f.Clients = int(spread(rnd, 1, 1000))
	switch rnd.IntN(4) {
	case 1:
		f.Budget = &retry.BudgetConfig{Ratio: spread(rnd, 0.05, 0.5), Burst: 1 + rnd.IntN(20)}
	case 2:
		f.Budget, f.Clients = &retry.BudgetConfig{Ratio: spread(rnd, 0.05, 0.5), Burst: 1 + rnd.IntN(200)}, 1
	}
	if f.Budget != nil && rnd.IntN(3) == 0 {
		f.Budget.Trickle = inSeconds(spread(rnd, 0.5, 20))
	}
	switch rnd.IntN(6) {
	case 0:
		f.Hedge.Share = between(rnd, 0.01, 0.2)
	case 1:
		f.Hedge.Delay = inSeconds(timeout * between(rnd, 0.2, 1.1))
	}
	if rnd.IntN(4) == 0 {
		f.Failure = spread(rnd, 0.001, 0.1)
	}
	f.Trigger = retryplan.Trigger{Kind: retryplan.TriggerKind(1 + rnd.IntN(6)), For: inSeconds(spread(rnd, 0.3, 20) * timeout)}
	switch f.Trigger.Kind {
	case retryplan.Slowdown:
		f.Trigger.Factor = spread(rnd, 1.1, 20)
	case retryplan.CapacityCut:
		f.Trigger.Factor = between(rnd, 0, 0.9)
	case retryplan.Surge:
		f.Trigger.Factor = spread(rnd, 1.2, 10)
	case retryplan.Failing:
		f.Trigger.Factor = between(rnd, 0.1, 1)
	}
	return p, f
}
