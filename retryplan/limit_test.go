package retryplan_test

import (
	"math/rand/v2"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/retrygo/retry"
	"github.com/retrygo/retry/retryplan"
)

// nearTheLimit returns a fleet that a trigger takes near the limit of its backend, of seconds to half an hour.
func nearTheLimit(row uint64) (retry.Policy, retryplan.Fleet) {
	rnd := rand.New(rand.NewPCG(row, generatorSeed(38)))
	timeout := spread(rnd, 0.1, 2)
	p := retry.Policy{MaxAttempts: 2 + rnd.IntN(4), AttemptTimeout: inSeconds(timeout), Backoff: retry.Backoff{
		Base: inSeconds(spread(rnd, 0.02, 0.5)), Jitter: oneOf(rnd, retry.FullJitter, retry.FullJitter, retry.EqualJitter, retry.NoJitter),
	}}
	f := retryplan.Fleet{Capacity: spread(rnd, 30, 300), Workers: 1 + rnd.IntN(3)}
	calm, triggered := between(rnd, 0.3, 0.85), between(rnd, 0.75, 1.05)
	f.Rate = f.Capacity * calm
	f.Trigger.For = inSeconds(spread(rnd, 5, 1800))
	ratio := max(triggered/calm, 1.02)
	switch rnd.IntN(4) {
	case 0, 1:
		f.Trigger.Kind, f.Trigger.Factor = retryplan.Slowdown, ratio
	case 2:
		f.Trigger.Kind, f.Trigger.Factor = retryplan.Surge, ratio
	default:
		f.Workers = 10
		f.Trigger.Kind, f.Trigger.Factor = retryplan.CapacityCut, min(1/ratio, 0.98)
	}
	return p, f
}

// TestFleetsNearTheLimit has the false all-clears: fleets that are said to come back, with room to spare, from a trigger
// that takes them near the limit of their backend, where chance tips them if it lasts. No seed of any may be lost.
//
// The short form simulates 10 such fleets with 3 seeds each, RETRYPLAN_FULL=1 simulates 644 with 10.
func TestFleetsNearTheLimit(t *testing.T) {
	wanted, seeds := trials(10, 644), uint64(seeds(3, 10))
	found, lost, halfLost, alarms, falseAlarms, rows := 0, 0, 0, 0, 0, uint64(0)
	for ; found < wanted; rows++ {
		p, f := nearTheLimit(rows)
		c := certify(t, p, f)
		if c.Margin < 0.05 || c.Stability == retryplan.Overloaded {
			continue
		}
		found++
		back, _ := comesBack(t, p, f, seeds)
		switch {
		case !c.Stability.Survives():
			if alarms++; back > 0 {
				falseAlarms++
			}
		case back < int(seeds):
			if lost++; 2*back <= int(seeds) {
				halfLost++
			}
			t.Logf("row %d: %d of %d come back: %+v %v\n  %+v", rows, back, seeds, f, p, c)
		}
	}
	t.Logf("%d of %d fleets have a margin: %d lose a seed, %d half of them; %d alarms, of which %d see a seed come back", found, rows, lost, halfLost, alarms, falseAlarms)
	require.Zero(t, lost)
}

// With these round numbers none, one and six of ten seeds come back, and a certificate that looked at the calm alone said
// that any length of the trigger is survived.
func TestATriggerThatFillsTheBackendTipsByChance(t *testing.T) {
	p := retry.Policy{MaxAttempts: 3, AttemptTimeout: 500 * time.Millisecond, Backoff: retry.Backoff{Base: 100 * time.Millisecond, Jitter: retry.FullJitter}}
	for _, row := range []struct {
		lasts  time.Duration
		factor float64
		want   retryplan.Stability
	}{
		{10 * time.Minute, 1.85, retryplan.Metastable}, {10 * time.Minute, 1.8, retryplan.Metastable}, {30 * time.Minute, 1.7, retryplan.Vulnerable},
		{10 * time.Minute, 1.3, retryplan.Vulnerable},
	} {
		f := at100(50, retryplan.Slowdown, row.lasts, row.factor)
		c := certify(t, p, f)
		require.Equal(t, row.want, c.Stability, "factor %v", row.factor)
		if row.factor > 1.5 {
			require.Zero(t, c.Margin)
			require.Positive(t, c.Tipping, "it is not survived however long it lasts")
		} else {
			require.Greater(t, c.Margin, 0.05)
			require.Negative(t, c.Tipping)
		}
	}
	f := at100(50, retryplan.Slowdown, 10*time.Minute, 1.85)
	back, _ := comesBack(t, p, f, 3)
	require.Zero(t, back)
}

// A chain at 1.2 of its hidden capacity is vulnerable on average, and chance decides.
func TestAChainNearItsBoundaryHasNoMargin(t *testing.T) {
	c := retryplan.Chain{Rate: 5, Trigger: retryplan.Trigger{Kind: retryplan.Stall}}
	for range 3 {
		c.Layers = append(c.Layers, retryplan.Layer{Policy: waiting(3, time.Second, 0)})
	}
	c.Layers[2].Capacity = 5 / 1.2 * 27
	for _, row := range []struct {
		stall  time.Duration
		margin float64
	}{{500 * time.Millisecond, 0.2}, {1500 * time.Millisecond, 0.15}, {2 * time.Second, 0}, {2500 * time.Millisecond, 0}} {
		c.Trigger.For = row.stall
		cert := certifyChain(t, c)
		require.Equal(t, retryplan.Vulnerable, cert.Stability)
		require.InDelta(t, row.margin, cert.Margin, 0.05, "%+v", cert)
	}
	c.Trigger.For = 20 * time.Second
	require.Equal(t, retryplan.Metastable, certifyChain(t, c).Stability)
	c.Rate = 3
	require.InDelta(t, 0.25, certifyChain(t, c).Margin, 0.05, "Safe, with the hidden capacity as the boundary")
}

// A certificate and its own simulation begin with the tokens that a calm leaves: with .2 of the attempts failing and a
// ratio of .1 that is none, and the storm is over after 6s rather than 18s.
func TestBudgetsBeginAsACalmLeavesThem(t *testing.T) {
	f := at100(70, retryplan.Stall, 5*time.Second, 0)
	f.Budget, f.Clients, f.Failure = &retry.BudgetConfig{Ratio: 0.1, Burst: 10}, 40, 0.2
	p := waiting(4, time.Second, 0)
	require.Equal(t, -1, f.Scenario(p, 1).Budget.Initial)
	c := certify(t, p, f)
	back, mean := comesBack(t, p, f, 5)
	require.Equal(t, 5, back)
	require.InDelta(t, c.Recovery.Seconds(), mean, 4)

	f.Failure = 0
	require.Equal(t, 10, f.Scenario(p, 1).Budget.Initial)
	f.Budget.Ratio, f.Budget.Initial = -1, 3
	require.Equal(t, 3, f.Scenario(p, 1).Budget.Initial, "successes do not fund it")
}

// In this calm one attempt in 1,000 waits for the timeout, which is enough to spend all stored tokens on a storm now and
// then. A certificate that looked at the share alone said Safe, Margin .099 and Recovery 0.
func TestACalmCanSpendStoredTokens(t *testing.T) {
	p := retry.Policy{MaxAttempts: 6, AttemptTimeout: 215 * time.Millisecond, Backoff: retry.Backoff{
		Base: 3 * time.Millisecond, Cap: 9 * time.Millisecond, Jitter: retry.RatioJitter,
	}}
	f := retryplan.Fleet{Rate: 42, Capacity: 58, Clients: 361, Budget: &retry.BudgetConfig{Ratio: 0.0884, Burst: 19}}
	c := certify(t, p, f)
	require.Equal(t, retryplan.Safe, c.Stability)
	require.Zero(t, c.Margin)
	require.InDelta(t, 361*19/(58-42), c.Recovery.Seconds(), 1, "S/(μ − λ)")

	f.Budget.Burst, f.Clients = 1, 20
	c = certify(t, p, f)
	require.LessOrEqual(t, c.Recovery, 2*time.Second, "the storm of 20 tokens")
	require.Greater(t, c.Margin, 0.05)
}

// At .9 of the capacity of a backend that does ten attempts in a timeout, an attempt in six is late without a trigger.
func TestACalmIsOverloadedByChance(t *testing.T) {
	p, f := waiting(1, time.Second, 0), at100(9.3, 0, 0, 0)
	for _, row := range []struct {
		capacity float64
		want     retryplan.Stability
		late     float64
	}{{10.33, retryplan.Overloaded, 0.16}, {11.5, retryplan.Safe, 0.01}, {20, retryplan.Safe, 0}} {
		f.Capacity = row.capacity
		c := certify(t, p, f)
		require.Equal(t, row.want, c.Stability, "%+v", c)
		require.Equal(t, row.late == 0, c.Margin > 0, "%+v", c)
		require.Equal(t, row.want == retryplan.Overloaded, c.Law == "random-arrivals")
		calm := f.Scenario(p, 1)
		calm.Duration = time.Hour
		r, err := retryplan.Simulate(t.Context(), calm)
		require.NoError(t, err)
		require.InDelta(t, row.late, r.Failed, 0.01)
	}
}

// Retries that cannot start are no load.
func TestCalmHonorsTTLAndDeadline(t *testing.T) {
	p := retry.Policy{MaxAttempts: 2, AttemptTimeout: time.Second, Backoff: retry.Backoff{Mode: retry.Fixed, Base: 9 * time.Second}}
	f := at100(92, retryplan.Stall, time.Second/2, 0)
	f.Failure = 0.2
	require.Equal(t, retryplan.Overloaded, certify(t, p, f).Stability)
	f.Deadline = 6 * time.Second
	require.NotEqual(t, retryplan.Overloaded, certify(t, p, f).Stability)
	f.Deadline, p.TTL = 0, 6*time.Second
	c := certify(t, p, f)
	require.NotEqual(t, retryplan.Overloaded, c.Stability)
	require.Equal(t, 1.0, c.Attempts)
	back, _ := comesBack(t, p, f, 2)
	require.Equal(t, 2, back)
}

// nearTheLimitOfAChain returns a chain of 2 or 3 layers near its hidden capacity, whose bottom has a short trouble.
func nearTheLimitOfAChain(row uint64) retryplan.Chain {
	rnd := rand.New(rand.NewPCG(row, generatorSeed(39)))
	c := retryplan.Chain{PassOn: rnd.IntN(2) == 0, DoNotRetry: rnd.IntN(4) == 0}
	for range 2 + rnd.IntN(2) {
		c.Layers = append(c.Layers, retryplan.Layer{Policy: waiting(1+rnd.IntN(3), time.Second, 0)})
	}
	bottom := &c.Layers[len(c.Layers)-1]
	bottom.Capacity = spread(rnd, 50, 300)
	if rnd.IntN(2) == 0 {
		c.Layers[0].Capacity = bottom.Capacity * between(rnd, 0.5, 2)
	}
	cert, _ := retryplan.CertifyChain(c)
	c.Rate = min(cert.HiddenCapacity*spread(rnd, 0.8, 3), 0.9*bottom.Capacity)
	c.Trigger = retryplan.Trigger{Kind: retryplan.Stall, For: inSeconds(spread(rnd, 0.3, 10))}
	if rnd.IntN(3) == 0 {
		c.Trigger.Kind, c.Trigger.Factor = retryplan.Slowdown, spread(rnd, 1.2, 10)
		c.Trigger.For = inSeconds(spread(rnd, 1, 600))
	}
	return c
}

// TestChainsNearTheLimit is TestFleetsNearTheLimit for chains.
//
// The short form simulates 6 chains with 3 seeds each, RETRYPLAN_FULL=1 simulates 84 that survive with 10.
func TestChainsNearTheLimit(t *testing.T) {
	wanted, seeds := trials(6, 84), uint64(seeds(3, 10))
	found, lost, rows, survive := 0, 0, uint64(0), 0
	for ; found < wanted; rows++ {
		c := nearTheLimitOfAChain(rows)
		cert := certifyChain(t, c)
		if cert.Stability.Survives() {
			survive++
		}
		if cert.Margin < 0.05 || !cert.Stability.Survives() {
			continue
		}
		found++
		back := uint64(0)
		for seed := range seeds {
			r, err := retryplan.SimulateChain(t.Context(), c, seed)
			require.NoError(t, err)
			if r.Recovered {
				back++
			}
		}
		if back < seeds {
			lost++
			t.Logf("row %d: %d of %d come back: %+v\n  %+v", rows, back, seeds, c, cert)
		}
	}
	t.Logf("%d of %d chains that survive have a margin: %d lose a seed", found, survive, lost)
	require.Zero(t, lost)
}
