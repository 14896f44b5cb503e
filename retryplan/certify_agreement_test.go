package retryplan_test

import (
	"context"
	"fmt"
	"math"
	"math/rand/v2"
	"os"
	"runtime"
	"strconv"
	"sync"
	"testing"
	"time"

	"github.com/retrygo/retry"
	"github.com/retrygo/retry/retryplan"
	"github.com/stretchr/testify/require"
)

// between returns an even point of [lo, hi].
func between(rnd *rand.Rand, lo, hi float64) float64 { return lo + rnd.Float64()*(hi-lo) }

// spread returns a point of [lo, hi] whose logarithm is even.
func spread(rnd *rand.Rand, lo, hi float64) float64 {
	return lo * math.Exp(rnd.Float64()*math.Log(hi/lo))
}

func inSeconds(s float64) time.Duration {
	return time.Duration(s * float64(time.Second)).Round(time.Millisecond)
}

// generatorSeed returns the seed of a generator of random fleets: RETRYPLAN_SEED, or the usual one.
func generatorSeed(usual uint64) uint64 {
	if seed, err := strconv.ParseUint(os.Getenv("RETRYPLAN_SEED"), 10, 64); err == nil {
		return seed
	}
	return usual
}

// randomFleet returns the fleet of a row.
func randomFleet(row uint64) (retry.Policy, retryplan.Fleet) {
	rnd := rand.New(rand.NewPCG(row, generatorSeed(8)))
	f := retryplan.Fleet{Rate: math.Round(spread(rnd, 40, 400))}
	f.Capacity = math.Round(f.Rate * spread(rnd, 0.95, 5))
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
	f.Clients = int(spread(rnd, 1, 1000))
	switch rnd.IntN(4) {
	case 1:
		f.Budget = &retry.BudgetConfig{Ratio: spread(rnd, 0.05, 0.5), Burst: 1 + rnd.IntN(20)}
	case 2:
		f.Budget = &retry.BudgetConfig{Ratio: spread(rnd, 0.05, 0.5), Burst: 1 + rnd.IntN(200)}
		f.Shared = true
	}
	if f.Budget != nil && rnd.IntN(3) == 0 {
		f.Budget.Trickle = inSeconds(spread(rnd, 0.5, 20))
	}
	f.Trigger = retryplan.Trigger{For: inSeconds(spread(rnd, 0.3, 20) * timeout)}
	switch rnd.IntN(4) {
	case 0:
		f.Trigger.Kind = retryplan.Stall
	case 1:
		f.Trigger.Kind, f.Trigger.Factor = retryplan.Slowdown, spread(rnd, 1.1, 20)
	case 2:
		f.Trigger.Kind, f.Trigger.Factor = retryplan.CapacityCut, between(rnd, 0, 0.9)
	case 3:
		f.Trigger.Kind, f.Trigger.Factor = retryplan.Surge, spread(rnd, 1.2, 10)
	}
	return p, f
}

// TestCertificatesAgreeWithSimulations compares the verdict on random fleets with what their simulation does: a fleet
// that is Safe or Vulnerable recovers, one that is Metastable or Overloaded does not. Fleets within 5 % of a boundary
// are left out. Each row that disagrees is listed, and comes again from randomFleet(row).
//
// The short form has 60 rows, RETRYPLAN_FULL=1 has 1,000; RETRYPLAN_SEED=1 and so on give others.
func TestCertificatesAgreeWithSimulations(t *testing.T) {
	rows := trials(60, 1000)
	type outcome struct {
		p           retry.Policy
		f           retryplan.Fleet
		certificate retryplan.Certificate
		result      retryplan.Result
		err         error
	}
	outcomes := make([]outcome, rows)
	next := make(chan int)
	var workers sync.WaitGroup
	for range runtime.GOMAXPROCS(0) {
		workers.Go(func() {
			for row := range next {
				o := &outcomes[row]
				o.p, o.f = randomFleet(uint64(row))
				if o.certificate, o.err = retryplan.Certify(o.p, o.f); o.err == nil && o.certificate.Margin >= 0.05 {
					o.result, o.err = retryplan.Simulate(context.Background(), o.f.Scenario(o.p, uint64(row)))
					o.result.Series = nil
				}
			}
		})
	}
	for row := range outcomes {
		next <- row
	}
	close(next)
	workers.Wait()

	judged, agreed := 0, 0
	verdicts := map[string]int{}
	for row, o := range outcomes {
		require.NoError(t, o.err, "row %d", row)
		if o.certificate.Margin < 0.05 {
			verdicts["within 5 % of a boundary"]++
			continue
		}
		judged++
		verdicts[fmt.Sprintf("%v (%v)", o.certificate.Stability, o.certificate.Law)]++
		if o.certificate.Stability.Survives() == o.result.Recovered {
			agreed++
			continue
		}
		t.Logf("row %d disagrees: recovered %v after %v\n  %+v\n  %+v %+v\n  %v, timeout %v", row, o.result.Recovered,
			o.result.Recovery, o.certificate, o.f, o.f.Budget, o.p, o.p.AttemptTimeout)
	}
	t.Logf("%d of %d agree (%.2f %%): %v", agreed, judged, 100*float64(agreed)/float64(judged), verdicts)
	require.GreaterOrEqual(t, float64(agreed), 0.99*float64(judged))
	require.GreaterOrEqual(t, judged, rows/3, "most of the fleets are no test")
}
