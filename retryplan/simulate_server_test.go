package retryplan_test

import (
	"math"
	"testing"
	"time"

	"github.com/retrygo/retry/retryplan"
	"github.com/stretchr/testify/require"
)

func TestSimulateTriggers(t *testing.T) {
	four := retryplan.Scenario{
		Policy:  waits(),
		Clients: 4,
		Server:  retryplan.Server{Workers: 2, Service: retryplan.Constant(10 * ms)},
	}
	for _, row := range []struct {
		name    string
		workers int
		trigger retryplan.Trigger
		want    []int // when runs succeed
	}{
		{name: "none", workers: 2, want: []int{10, 10, 20, 20}},
		{name: "a stall suspends work", workers: 2, trigger: retryplan.Trigger{Kind: retryplan.Stall, From: 5 * ms, For: 100 * ms}, want: []int{110, 110, 120, 120}},
		{name: "a stall suspends work of an unlimited server", trigger: retryplan.Trigger{Kind: retryplan.Stall, From: 5 * ms, For: 100 * ms}, want: []int{110, 110, 110, 110}},
		{name: "a stall from the start puts all in the queue", workers: 2, trigger: retryplan.Trigger{Kind: retryplan.Stall, For: 7 * ms}, want: []int{17, 17, 27, 27}},
		{name: "work that ends when a stall begins has ended", workers: 2, trigger: retryplan.Trigger{Kind: retryplan.Stall, From: 10 * ms, For: 5 * ms}, want: []int{10, 10, 25, 25}},
		{name: "a slowdown concerns work that begins", workers: 2, trigger: retryplan.Trigger{Kind: retryplan.Slowdown, From: 5 * ms, For: 10 * ms, Factor: 3}, want: []int{10, 10, 40, 40}},
		{name: "a cut takes workers when they are done", workers: 2, trigger: retryplan.Trigger{Kind: retryplan.CapacityCut, From: 5 * ms, For: 10 * ms, Factor: 0.5}, want: []int{10, 10, 20, 25}},
		{name: "a cut rounds up", workers: 3, trigger: retryplan.Trigger{Kind: retryplan.CapacityCut, For: 100 * ms, Factor: 0.34}, want: []int{10, 10, 20, 20}},
		{name: "an outage lets work go on", workers: 2, trigger: retryplan.Trigger{Kind: retryplan.Outage, From: ms, For: 100 * ms}, want: []int{10, 10, 20, 20}},
		{name: "an outage rejects", workers: 2, trigger: retryplan.Trigger{Kind: retryplan.Outage, For: ms}},
		{name: "failing at the end of work", workers: 2, trigger: retryplan.Trigger{Kind: retryplan.Failing, From: 10 * ms, For: 10 * ms, Factor: 1}, want: []int{20, 20}},
	} {
		t.Run(row.name, func(t *testing.T) {
			s := four
			s.Server.Workers, s.Trigger = row.workers, row.trigger
			require.Equal(t, row.want, when(simulated(t, s), goodput))
		})
	}
}

func TestSimulateSurges(t *testing.T) {
	r := simulated(t, retryplan.Scenario{
		Policy:   waits(),
		Rate:     1000,
		Trigger:  retryplan.Trigger{Kind: retryplan.Surge, From: 10 * time.Second, For: 10 * time.Second, Factor: 3},
		Duration: 30 * time.Second,
		Step:     5 * time.Second,
	})
	for i, mean := range []float64{5000, 5000, 15000, 15000, 5000, 5000} {
		require.InDelta(t, mean, r.Series[i].Offered, 4*math.Sqrt(mean), "step %d", i)
	}
}
