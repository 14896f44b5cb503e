package retryplan_test

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/retrygo/retry"
	"github.com/retrygo/retry/retryplan"
)

// slowTail returns a fleet of which one attempt in 100 takes 50 times as long as the median.
func slowTail(h retryplan.Hedge) retryplan.Scenario {
	return retryplan.Scenario{
		Policy: waiting(3, 5*time.Second, 0), Rate: 100, Duration: 10 * time.Minute, Step: time.Second, Hedge: h,
		Server: retryplan.Server{Service: retryplan.LogNormal(10*time.Millisecond, 500*time.Millisecond)},
	}
}

func TestHedgesCutTheTail(t *testing.T) {
	without := simulated(t, slowTail(retryplan.Hedge{}))
	require.Zero(t, without.Hedges)
	for _, share := range []float64{0.02, 0.05} {
		r := simulated(t, slowTail(retryplan.Hedge{Share: share}))
		require.InDelta(t, share, float64(r.Hedges)/float64(r.Runs), 0.005)
		require.Equal(t, r.Runs+r.Hedges, r.Attempts)
		require.Less(t, r.Latency.Quantile(.999), without.Latency.Quantile(.999)/2)
		require.Positive(t, r.Wasted, "what a loser is worked on is of no use")
	}
	delay := 100 * time.Millisecond
	r := simulated(t, slowTail(retryplan.Hedge{Delay: delay}))
	d := retryplan.LogNormal(10*time.Millisecond, 500*time.Millisecond)
	require.InDelta(t, 1-d.CDF(delay), float64(r.Hedges)/float64(r.Runs), 0.003)
	x := r.Latency.Quantile(.999)
	require.InDelta(t, 0.001, (1-d.CDF(x))*(1-d.CDF(x-delay)), 0.0003)
}

// In a slowdown of everything the budget pays for each hedge, from the first second on.
func TestABudgetBoundsHedges(t *testing.T) {
	s := slowTail(retryplan.Hedge{Delay: 100 * time.Millisecond})
	s.Trigger = retryplan.Trigger{Kind: retryplan.Slowdown, From: 5 * time.Minute, For: time.Minute, Factor: 100}
	s.Policy = waiting(1, 0, 0)
	free := simulated(t, s)
	s.Budget = &retry.BudgetConfig{Ratio: 0.1, Burst: 10}
	paid := simulated(t, s)
	extra := func(r retryplan.Seen) (n int) {
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
		{retryplan.Hedge{Delay: -1}, "Hedge.Delay -1ns is negative"},
		{retryplan.Hedge{Delay: 1, Share: 0.1}, "Hedge.Delay 1ns is set beside Share, which chooses it"},
		{retryplan.Hedge{Share: 0.6}, "Hedge.Share 0.6 is outside [0,0.5]"},
	} {
		_, err := retryplan.Judge(t.Context(), retryplan.Question{Fleet: retryplan.Fleet{Rate: 1, Capacity: 2, Hedge: row.h}})
		require.EqualError(t, err, "retryplan: Fleet."+row.err)
		c := layers(1, time.Second)
		c.Layers[0].Hedge = row.h
		_, _, err = c.Loads()
		require.EqualError(t, err, "retryplan: Chain.Layers[0]."+row.err)
	}
}

// A fixed delay doubles a storm, unless a budget has to pay for it.
func TestHedgesCanKeepAStormAlive(t *testing.T) {
	for _, row := range []struct {
		name   string
		rate   float64
		h      retryplan.Hedge
		budget *retry.BudgetConfig
		p      retry.Policy
		back   int
	}{
		{"a share, once the trackers have followed", 40, retryplan.Hedge{Share: 0.1}, nil, waiting(2, s, 0), 20},
		{"a delay", 40, retryplan.Hedge{Delay: 300 * time.Millisecond}, nil, waiting(2, s, 0), 0},
		{"a delay with a budget", 40, retryplan.Hedge{Delay: 300 * time.Millisecond}, &retry.BudgetConfig{}, waiting(2, s, 0), 20},
		{"a queue as long as the delay, though no client gives up", 60, retryplan.Hedge{Delay: 300 * time.Millisecond}, nil, waiting(2, 0, 0), 0},
	} {
		t.Run(row.name, func(t *testing.T) {
			f := at100(row.rate, retryplan.Stall, 10*time.Second)
			f.Hedge, f.Budget = row.h, row.budget
			require.Equal(t, row.back, judge(t, row.p, f).Back)
		})
	}
}

// Hedges multiply through a chain as retries do: in a hang every layer's attempts double, and in an outage, which is
// answered at once, none is slow.
func TestHedgesMultiplyInAChain(t *testing.T) {
	c := layers(2, 10*s, 4*s, s)
	for i := range c.Layers {
		c.Layers[i].Hedge.Delay = 200 * time.Millisecond
	}
	got := atBottom(t, c)
	require.Equal(t, 8.0, got.Outage)
	require.Equal(t, 64.0, got.Hang)
	require.Equal(t, 1.0, got.Calm)
	c.Layers[2].Budget = &retry.BudgetConfig{}
	require.Equal(t, 16.0, atBottom(t, c).Hang, "of the bottom's calls nothing is paid for")

	c = layers(1, s, s)
	c.Layers[0].Hedge.Share, c.Layers[1].Hedge.Share = 0.1, 0.2
	require.Equal(t, 1.0, atBottom(t, c).Calm, "no attempt is slow")
	require.InDelta(t, 1, atBottom(t, c).Hang, 0.1, "the trackers follow")
}
