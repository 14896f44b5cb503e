package retryplan_test

import (
	"context"
	"fmt"
	"math"
	"math/rand/v2"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/retrygo/retry"
	"github.com/retrygo/retry/retryplan"
)

// at100 returns a fleet whose backend does 100 attempts a second.
func at100(rate float64, kind retryplan.TriggerKind, lasts time.Duration, factor float64) retryplan.Fleet {
	return retryplan.Fleet{Rate: rate, Capacity: 100, Trigger: retryplan.Trigger{Kind: kind, For: lasts, Factor: factor}}
}

// comesBack returns how many of so many seeds recover, and how many seconds that takes on average.
func comesBack(t *testing.T, p retry.Policy, f retryplan.Fleet, seeds uint64) (recovered int, mean float64) {
	t.Helper()
	for seed := range seeds {
		r, err := retryplan.Simulate(context.Background(), f.Scenario(p, seed))
		require.NoError(t, err)
		if r.Recovered {
			recovered++
			mean += r.Recovery.Seconds()
		}
	}
	return recovered, mean / float64(max(recovered, 1))
}

func TestCalmFailuresChangeTheCalmAndNotTheStorm(t *testing.T) {
	p := waiting(2, time.Second, 0)
	for _, failure := range []float64{0, 0.05, 0.1, 0.2} {
		f := at100(45, retryplan.Stall, 10*time.Second, 0)
		f.Failure = failure
		c := certify(t, p, f)
		require.Equal(t, retryplan.Safe, c.Stability)
		require.Equal(t, 50., c.HiddenCapacity)
		require.InDelta(t, 80, c.Recovery.Seconds(), 10, "%v: (λaD − μT)/(μ − λa)", failure)
		recovered, mean := comesBack(t, p, f, 4)
		require.Equal(t, 4, recovered)
		require.InDelta(t, c.Recovery.Seconds(), mean, 20)

		f.Rate = 84
		want := failure == 0.2 // 84·1.2 attempts a second
		require.Equal(t, want, certify(t, p, f).Stability == retryplan.Overloaded)
	}
}

func TestCalmFailuresEmptyABudget(t *testing.T) {
	p := waiting(4, time.Second, 0)
	for _, row := range []struct{ failure, recovery float64 }{{0, 27.0}, {0.05, 26.1}, {0.1, 23.3}, {0.2, 20.5}} {
		f := at100(70, retryplan.Stall, 10*time.Second, 0)
		f.Failure, f.Budget, f.Clients = row.failure, &retry.BudgetConfig{Ratio: 0.1, Burst: 10}, 20
		c := certify(t, p, f)
		require.Equal(t, "success-funded-budget", c.Law)
		require.InDelta(t, row.recovery, c.Recovery.Seconds(), 2, "failure %v", row.failure)
	}
}

// An outage leaves the backend idle. What comes back after it are the runs that wait.
func TestReferenceOutages(t *testing.T) {
	jittered := func(attempts int, base time.Duration) retry.Policy {
		return retry.Policy{MaxAttempts: attempts, AttemptTimeout: time.Second, Backoff: retry.Backoff{Base: base, Jitter: retry.FullJitter}}
	}
	budget := at100(70, retryplan.Outage, 300*time.Second, 0)
	budget.Budget, budget.Clients = &retry.BudgetConfig{Ratio: 0.1, Burst: 10}, 1
	for _, row := range []struct {
		name     string
		p        retry.Policy
		f        retryplan.Fleet
		survives bool
	}{
		{"immediate retries, 60s", waiting(4, time.Second, 0), at100(70, retryplan.Outage, 60*time.Second, 0), true},
		{"immediate retries, 300s", waiting(4, time.Second, 0), at100(70, retryplan.Outage, 300*time.Second, 0), true},
		{"base 200ms, 50/s: Q* .12 of μT", jittered(4, 200*time.Millisecond), at100(50, retryplan.Outage, 60*time.Second, 0), true},
		{"base 200ms, 70/s: Q* .30", jittered(4, 200*time.Millisecond), at100(70, retryplan.Outage, 60*time.Second, 0), true},
		{"base 2s, 50/s: Q* 1.17", jittered(4, 2*time.Second), at100(50, retryplan.Outage, 60*time.Second, 0), false},
		{"base 2s, 70/s: Q* 3.0", jittered(4, 2*time.Second), at100(70, retryplan.Outage, 60*time.Second, 0), false},
		{"a budget", jittered(8, 5*time.Second), budget, true},
	} {
		t.Run(row.name, func(t *testing.T) {
			c := certify(t, row.p, row.f)
			require.Equal(t, row.survives, c.Stability.Survives(), "%+v", c)
			n := trials(4, 4)
			recovered, mean := comesBack(t, row.p, row.f, uint64(n))
			t.Logf("%v by %v, tipping %v, margin %.2f; %d of %d after %.0fs", c.Stability, c.Law, c.Tipping, c.Margin, recovered, n, mean)
			require.Equal(t, row.survives, 2*recovered >= n)
		})
	}
}

// failingGrowth returns by how many seconds a second the queue of a failing backend grows. In a queue that grows by g,
// attempts leave at 1/(1+g) = x of the rate at which they came, and so does the retry after each: λ·Σ p^(k−1)·x^k = μ
// for k from 1 to a.
func failingGrowth(rate, p float64, attempts int) float64 {
	lo, hi := 0.0, 1.0
	for range 60 {
		x := (lo + hi) / 2
		sum := 0.0
		for k := range attempts {
			sum += rate * math.Pow(p, float64(k)) * math.Pow(x, float64(k+1))
		}
		if sum < 100 {
			lo = x
		} else {
			hi = x
		}
	}
	return 1/lo - 1
}

// The queue of a backend that fails grows if λ > μ/A, A the attempts of a run at that probability.
func TestReferenceFailingBackends(t *testing.T) {
	p := waiting(4, time.Second, 0)
	for _, row := range []struct {
		fails, rate, lasts float64
		survives           bool
	}{
		{1, 24, 300, true}, {1, 28, 10, true}, {1, 28, 60, false},
		{0.5, 50, 300, true}, {0.5, 65, 4, true}, {0.5, 65, 30, false}, {0.2, 70, 120, true},
	} {
		t.Run(fmt.Sprintf("%v at %v for %vs", row.fails, row.rate, row.lasts), func(t *testing.T) {
			f := at100(row.rate, retryplan.Failing, inSeconds(row.lasts), row.fails)
			c := certify(t, p, f)
			n := trials(4, 4)
			recovered, mean := comesBack(t, p, f, uint64(n))
			t.Logf("%v by %v, tipping %v, margin %.2f; %d of %d after %.0fs", c.Stability, c.Law, c.Tipping, c.Margin, recovered, n, mean)
			require.Equal(t, row.survives, c.Stability.Survives(), "%+v", c)
			require.Equal(t, row.survives, 2*recovered >= n)
			if growth := failingGrowth(row.rate, row.fails, 4); growth > 1e-9 {
				require.InDelta(t, 1/growth, c.Tipping.Seconds(), 0.1/growth, "T over the growth")
			} else {
				require.Equal(t, time.Duration(-1), c.Tipping, "no length tips")
			}
		})
	}
}

// failingFleet returns the fleet of a row, with an outage or a failing backend, and with failures in the calm.
func failingFleet(row uint64) (retry.Policy, retryplan.Fleet) {
	p, f := randomFleet(row)
	rnd := rand.New(rand.NewPCG(row, 9))
	f.Trigger = retryplan.Trigger{Kind: retryplan.Outage, For: inSeconds(spread(rnd, 1, 60) * p.AttemptTimeout.Seconds())}
	if rnd.IntN(2) == 0 {
		f.Trigger.Kind, f.Trigger.Factor = retryplan.Failing, min(between(rnd, 0.3, 1.2), 1)
	}
	if rnd.IntN(2) == 0 {
		f.Failure = between(rnd, 0, 0.3)
	}
	return p, f
}

// TestCertificatesOfFailuresAgreeWithSimulations is TestCertificatesAgreeWithSimulations for outages, failing backends
// and failures in the calm. A row comes again from failingFleet(row).
func TestCertificatesOfFailuresAgreeWithSimulations(t *testing.T) {
	rows := uint64(trials(60, 1000))
	judged, agreed := 0, 0
	verdicts := map[string]int{}
	for row := range rows {
		p, f := failingFleet(row)
		c := certify(t, p, f)
		if c.Margin < 0.05 {
			verdicts["within 5 % of a boundary"]++
			continue
		}
		judged++
		verdicts[fmt.Sprintf("%v (%v)", c.Stability, c.Law)]++
		if recovered, _ := comesBack(t, p, f, 1); c.Stability.Survives() == (recovered == 1) {
			agreed++
			continue
		}
		t.Logf("row %d disagrees\n  %+v\n  %+v %+v\n  %v, timeout %v", row, c, f, f.Budget, p, p.AttemptTimeout)
	}
	t.Logf("%d of %d agree: %v", agreed, judged, verdicts)
	require.GreaterOrEqual(t, float64(agreed), 0.97*float64(judged))
	require.GreaterOrEqual(t, judged, int(rows)/3, "most of the fleets are no test")
}
