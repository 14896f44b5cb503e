package contest

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"runtime"
	"slices"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

// clock is a time that only op and sample pass.
type clock struct {
	mu    sync.Mutex
	now   time.Time
	calls []string // who was called, except in a warm-up or a calibration
}

func (c *clock) Now() time.Time {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.now
}

// op returns a contender of which each operation takes cost. It notes the calls for n operations.
func (c *clock) op(name string, form Form, cost time.Duration, n int) Contender {
	return Contender{Name: name, Form: form, New: func() func(int) {
		return func(ops int) {
			c.mu.Lock()
			defer c.mu.Unlock()
			c.now = c.now.Add(time.Duration(ops) * cost)
			if ops == n {
				c.calls = append(c.calls, name)
			}
		}
	}}
}

func (c *clock) sample(name string, form Form, value float64) Contender {
	return Contender{Name: name, Form: form, Sample: func() float64 {
		c.calls = append(c.calls, name)
		return value
	}}
}

func (c *clock) runner(cores, rounds int) *runner {
	options := Options{Rounds: rounds, SampleTime: time.Millisecond}
	return &runner{Options: options.WithDefaults(), cores: cores, now: c.Now}
}

func TestRunSamplesInTurns(t *testing.T) {
	var c clock
	s := Scenario{Name: "s", Unit: "ns/op", Contenders: []Contender{
		c.sample("a", Ours, 7), c.sample("b", Usual, 8), c.sample("c", Usual, 9), c.sample("d", Limit, 5),
	}}
	results, err := c.runner(1, 4).run(context.Background(), []Scenario{s})
	require.NoError(t, err)
	require.Equal(t, []string{
		"a", "b", "d", "c",
		"b", "c", "a", "d",
		"c", "d", "b", "a",
		"d", "a", "c", "b",
	}, c.calls)
	require.Len(t, results, 1)
	require.Equal(t, []int{1}, results[0].Cores)
	require.Empty(t, results[0].Skipped())
	var centers []float64
	for _, row := range results[0].Rows {
		require.Len(t, row.Medians, 1)
		centers = append(centers, row.Medians[0].Center)
	}
	require.Equal(t, []float64{7, 8, 9, 5}, centers)
}

func TestRunMeasuresThroughput(t *testing.T) {
	var c clock
	s := Scenario{Name: "s", Unit: "ns/op", Cores: []int{1, 2}, Contenders: []Contender{
		c.op("slow", Ours, time.Microsecond, -1), c.op("fast", Usual, 10*time.Nanosecond, -1),
	}}
	results, err := c.runner(2, 6).run(context.Background(), []Scenario{s})
	require.NoError(t, err)
	// The clock of two cores passes twice as fast, which is no scaling at all.
	for i, want := range []float64{1000, 10} {
		for k := range 2 {
			median := results[0].Rows[i].Medians[k]
			require.Equal(t, []float64{want, want, want}, []float64{median.Lo, median.Center, median.Hi})
		}
	}
}

func TestRunMakesEachWorkOnce(t *testing.T) {
	made := 0
	contender := Contender{Name: "a", Form: Ours, New: func() func(int) {
		made++
		return func(int) {}
	}}
	s := Scenario{Name: "s", Unit: "ns/op", Cores: []int{1, 2}, Contenders: []Contender{contender}}
	var c clock
	_, err := c.runner(2, 3).run(context.Background(), []Scenario{s})
	require.NoError(t, err)
	require.Equal(t, 1+2, made, "for the allocations and for each number of cores")
}

func TestRunSkipsCoresThatAreNotThere(t *testing.T) {
	var c clock
	var progress bytes.Buffer
	s := Scenario{Name: "s", Unit: "B", Cores: []int{1, 3}, Contenders: []Contender{c.sample("a", Ours, 1)}}
	r := c.runner(2, 1)
	r.Progress = &progress
	results, err := r.run(context.Background(), []Scenario{s})
	require.NoError(t, err)
	require.Equal(t, []int{1}, results[0].Cores)
	require.Equal(t, []int{3}, results[0].Skipped())
	require.Equal(t, "1/1 s: 1 core\n1/1 s: 3 cores skipped, this machine has 2\n", progress.String())
}

func TestRunRestoresGOMAXPROCS(t *testing.T) {
	before := runtime.GOMAXPROCS(0)
	var during int
	s := Scenario{Name: "s", Unit: "B", Cores: []int{before + 1}, Contenders: []Contender{
		{Name: "a", Form: Ours, Sample: func() float64 { during = runtime.GOMAXPROCS(0); return 0 }},
	}}
	var c clock
	_, err := c.runner(before+1, 1).run(context.Background(), []Scenario{s})
	require.NoError(t, err)
	require.Equal(t, before+1, during)
	require.Equal(t, before, runtime.GOMAXPROCS(0))
}

func TestRunStopsWhenCancelled(t *testing.T) {
	cause := errors.New("enough")
	ctx, cancel := context.WithCancelCause(context.Background())
	calls := 0
	s := Scenario{Name: "s", Unit: "B", Contenders: []Contender{{Name: "a", Form: Ours, Sample: func() float64 {
		if calls++; calls == 3 {
			cancel(cause)
		}
		return 0
	}}}}
	var c clock
	results, err := c.runner(1, 10).run(ctx, []Scenario{s})
	require.ErrorIs(t, err, cause)
	require.EqualError(t, err, `contest: scenario "s": enough`)
	require.Nil(t, results)
	require.Equal(t, 3, calls)
}

func TestRunRefusesBeforeItMeasures(t *testing.T) {
	var c clock
	s := Scenario{Name: "s", Unit: "B", Contenders: []Contender{c.sample("a", Ours, 1)}}
	_, err := Run(context.Background(), []Scenario{s, s, {Name: "t", Unit: "B"}}, Options{Rounds: -1, SampleTime: -1})
	require.EqualError(t, err, `contest: Options.SampleTime -1ns is negative
contest: Options.Rounds -1 is negative
contest: scenario "s" is there twice
contest: scenario "t": there are no contenders`)
	require.Empty(t, c.calls)
}

func TestCalibrate(t *testing.T) {
	for _, row := range []struct {
		name  string
		cost  time.Duration
		cores int
		want  int
	}{
		{"an op that fits many times", 100 * time.Nanosecond, 1, 10_000},
		{"an op that fits twice", 500 * time.Microsecond, 1, 2},
		{"an op that does not fit is done once", time.Second, 1, 1},
		{"an op that takes no time", 0, 1, 1_000_000_000},
		{"n is of each core", 100 * time.Nanosecond, 2, 5_000}, // the clock passes twice as fast
	} {
		t.Run(row.name, func(t *testing.T) {
			var c clock
			op := c.op("a", Ours, row.cost, -1).New()
			require.Equal(t, row.want, c.runner(row.cores, 1).calibrate(op, row.cores))
		})
	}
}

func TestCalibrateForgivesOnePause(t *testing.T) {
	var c clock
	op := c.op("a", Ours, 100*time.Nanosecond, -1).New()
	calls := 0
	paused := func(n int) {
		if calls++; calls == 2 { // the first is the warm-up
			c.now = c.now.Add(time.Second)
		}
		op(n)
	}
	require.Equal(t, 10_000, c.runner(1, 1).calibrate(paused, 1))
}

func TestOrderIsBalanced(t *testing.T) {
	for n := 1; n <= 12; n++ {
		t.Run(fmt.Sprint(n), func(t *testing.T) {
			first := make([]int, n)
			follows := map[[2]int]int{}
			for round := range 2 * n {
				o := order(n, round)
				first[o[0]]++
				for i := 1; i < n; i++ {
					follows[[2]int{o[i-1], o[i]}]++
				}
				sorted := slices.Sorted(slices.Values(o))
				for i := range n {
					require.Equal(t, i, sorted[i])
				}
			}
			for i := range n {
				require.Equal(t, 2, first[i])
				for j := range n {
					if i != j {
						require.Equal(t, 2, follows[[2]int{i, j}], "%d after %d", j, i)
					}
				}
			}
		})
	}
}

func TestTogether(t *testing.T) {
	for _, k := range []int{1, 4} {
		var mu sync.Mutex
		var calls []int
		begun := 0
		Together(k, func() { begun++ }, func(i int) {
			mu.Lock()
			defer mu.Unlock()
			calls = append(calls, begun*10+i)
		})
		slices.Sort(calls)
		require.Equal(t, []int{10, 11, 12, 13}[:k], calls)
	}
}
