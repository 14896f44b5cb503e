package retryplan_test

import (
	"math/rand/v2"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/retrygo/retry"
	"github.com/retrygo/retry/retryplan"
)

// slowTail returns a fleet of which one attempt in 100 takes 50 times as long as the median.
func slowTail(h retryplan.Hedge) retryplan.Scenario {
	return retryplan.Scenario{
		Policy: waiting(3, 5*time.Second, 0), Rate: 100, Duration: 10 * time.Minute, Hedge: h,
		Server: retryplan.Server{Service: retryplan.LogNormal(10*time.Millisecond, 500*time.Millisecond)},
	}
}

func simulate(t *testing.T, s retryplan.Scenario) retryplan.Result {
	t.Helper()
	r, err := retryplan.Simulate(t.Context(), s)
	require.NoError(t, err)
	return r
}

// A share of hedges is what it says, and cuts the tail as two independent draws do: P(min > d + x) = P(> d + x)·P(> x).
func TestHedgesCutTheTail(t *testing.T) {
	without := simulate(t, slowTail(retryplan.Hedge{}))
	require.Zero(t, without.Hedges)
	for _, share := range []float64{0.02, 0.05} {
		r := simulate(t, slowTail(retryplan.Hedge{Share: share}))
		require.InDelta(t, share, float64(r.Hedges)/float64(r.Runs), 0.005)
		require.Equal(t, r.Runs+r.Hedges, r.Attempts)
		require.Less(t, r.Latency.Quantile(.999), without.Latency.Quantile(.999)/2)
		require.Positive(t, r.Wasted, "what a loser is worked on is of no use")
	}
	delay := 100 * time.Millisecond
	r := simulate(t, slowTail(retryplan.Hedge{Delay: delay}))
	d := retryplan.LogNormal(10*time.Millisecond, 500*time.Millisecond)
	require.InDelta(t, 1-d.CDF(delay), float64(r.Hedges)/float64(r.Runs), 0.003)
	x := r.Latency.Quantile(.999)
	require.InDelta(t, 0.001, (1-d.CDF(x))*(1-d.CDF(x-delay)), 0.0003)
}

// In a slowdown of everything hedges are what the budget pays for, from the first second on.
func TestABudgetBoundsHedges(t *testing.T) {
	s := slowTail(retryplan.Hedge{Delay: 100 * time.Millisecond})
	s.Triggers = []retryplan.Trigger{{Kind: retryplan.Slowdown, From: 5 * time.Minute, For: time.Minute, Factor: 100}}
	s.Policy = waiting(1, 0, 0)
	free := simulate(t, s)
	s.Budget = &retry.BudgetConfig{Ratio: 0.1, Burst: 10}
	paid := simulate(t, s)
	extra := func(r retryplan.Result) (n int) {
		for _, p := range r.Series[300:360] {
			n += p.Attempts - p.Offered
		}
		return n
	}
	require.Greater(t, extra(free), 5000, "all of 6,000 runs")
	require.LessOrEqual(t, extra(paid), 10+600)
	require.Less(t, paid.Hedges, free.Hedges)
}

func TestValidateOfHedges(t *testing.T) {
	for _, row := range []struct {
		h   retryplan.Hedge
		err string
	}{
		{retryplan.Hedge{Delay: -1}, "retryplan: Scenario.Hedge.Delay -1ns is negative"},
		{retryplan.Hedge{Delay: 1, Share: 0.1}, "retryplan: Scenario.Hedge.Delay 1ns is set beside Share, which chooses it"},
		{retryplan.Hedge{Share: 0.6}, "retryplan: Scenario.Hedge.Share 0.6 is outside [0,0.5]"},
	} {
		_, err := retryplan.Simulate(t.Context(), slowTail(row.h))
		require.EqualError(t, err, row.err)
		_, err = retryplan.Certify(retry.Policy{}, retryplan.Fleet{Rate: 1, Capacity: 2, Hedge: row.h})
		require.ErrorContains(t, err, "Fleet.Hedge")
		c := layers(1, time.Second)
		c.Layers[0].Hedge = row.h
		_, err = retryplan.CertifyChain(c)
		require.ErrorContains(t, err, "Chain.Layers[0].Hedge")
	}
}

// A share is load in the calm and in a storm; a fixed delay doubles a storm, unless a budget has to pay for it.
func TestCertificatesCountHedges(t *testing.T) {
	p := waiting(2, time.Second, 0)
	certified := func(rate float64, h retryplan.Hedge, b *retry.BudgetConfig) retryplan.Certificate {
		f := at100(rate, retryplan.Stall, 10*time.Second, 0)
		f.Hedge, f.Budget = h, b
		return certify(t, p, f)
	}
	share, delay := retryplan.Hedge{Share: 0.1}, retryplan.Hedge{Delay: 300 * time.Millisecond}
	require.InDelta(t, 2.2, certified(40, share, nil).Attempts, 1e-9, "once the trackers have followed")
	require.Equal(t, 4.0, certified(40, delay, nil).Attempts)
	require.Equal(t, 1.0, certified(40, delay, &retry.BudgetConfig{}).Attempts)
	require.Equal(t, retryplan.Safe, certified(40, share, nil).Stability)
	require.Equal(t, retryplan.Safe, certified(40, share, &retry.BudgetConfig{}).Stability)
	require.Equal(t, retryplan.Metastable, certified(40, delay, nil).Stability)
	require.Equal(t, retryplan.Safe, certified(40, delay, &retry.BudgetConfig{}).Stability)
	require.Equal(t, retryplan.Overloaded, certified(92, share, nil).Stability)
	require.NotEqual(t, retryplan.Overloaded, certified(88, share, nil).Stability)
	require.Equal(t, retryplan.Overloaded, certified(60, retryplan.Hedge{Delay: time.Millisecond}, nil).Stability, "all are hedged")
	require.Greater(t, certified(40, retryplan.Hedge{Delay: time.Minute}, nil).Attempts, 1.99, "no attempt lasts so long")

	f := at100(60, retryplan.Stall, 10*time.Second, 0)
	f.Hedge = delay
	c := certify(t, waiting(2, 0, 0), f)
	require.Equal(t, retryplan.Metastable, c.Stability, "a queue of 300ms doubles the load for ever, though no client gives up")
	back, _ := comesBack(t, waiting(2, 0, 0), f, 3)
	require.Zero(t, back)
}

// hedgedFleet returns the fleet of a row with hedges.
func hedgedFleet(row uint64) (retry.Policy, retryplan.Fleet) {
	p, f := randomFleet(row)
	rnd := rand.New(rand.NewPCG(row, 41))
	if rnd.IntN(2) == 0 {
		f.Hedge.Share = between(rnd, 0.01, 0.2)
	} else {
		f.Hedge.Delay = inSeconds(p.AttemptTimeout.Seconds() * between(rnd, 0.2, 1.1))
	}
	return p, f
}

// TestCertificatesOfHedgesAgreeWithSimulations is TestCertificatesAgreeWithSimulations for fleets with hedges.
func TestCertificatesOfHedgesAgreeWithSimulations(t *testing.T) {
	rows := uint64(trials(60, 1000))
	judged, agreed := 0, 0
	for row := range rows {
		p, f := hedgedFleet(row)
		c := certify(t, p, f)
		if c.Margin < 0.05 {
			continue
		}
		judged++
		if recovered, _ := comesBack(t, p, f, 1); c.Stability.Survives() == (recovered == 1) {
			agreed++
			continue
		}
		t.Logf("row %d disagrees\n  %+v\n  %+v %+v\n  %v, timeout %v", row, c, f, f.Budget, p, p.AttemptTimeout)
	}
	t.Logf("%d of %d agree", agreed, judged)
	require.GreaterOrEqual(t, float64(agreed), 0.97*float64(judged))
	require.GreaterOrEqual(t, judged, int(rows)/3, "most of the fleets are no test")
}

// Hedges multiply through a chain as retries do: in a hang every layer's attempts double, and in an outage, which is
// answered at once, none is slow.
func TestHedgesMultiplyInAChain(t *testing.T) {
	c := layers(2, 10*s, 4*s, s)
	for i := range c.Layers {
		c.Layers[i].Hedge.Delay = 200 * time.Millisecond
	}
	got := certifyChain(t, c)
	require.Equal(t, 8.0, atBottom(got).Outage)
	require.Equal(t, 64.0, atBottom(got).Hang)
	require.Equal(t, 1.0, atBottom(got).Calm)
	c.Layers[2].Budget = &retry.BudgetConfig{}
	require.Equal(t, 16.0, atBottom(certifyChain(t, c)).Hang, "of the bottom's calls nothing is paid for")

	c = layers(1, s, s)
	c.Rate, c.Layers[0].Hedge.Share, c.Layers[1].Hedge.Share = 500, 0.1, 0.2
	got = certifyChain(t, c)
	require.InDelta(t, 1.1*1.2, atBottom(got).Calm, 1e-9)
}
