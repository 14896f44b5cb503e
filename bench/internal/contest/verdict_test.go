package contest_test

import (
	"math"
	"testing"

	"github.com/stretchr/testify/require"
	"golang.org/x/perf/benchmath"

	"github.com/retrygo/retry/bench/internal/contest"
)

func nothing() func(int) { return func(int) {} }

func medians(centers ...float64) []benchmath.Summary {
	var all []benchmath.Summary
	for _, c := range centers {
		all = append(all, benchmath.Summary{Center: c, Lo: c, Hi: c})
	}
	return all
}

// measured is a result on 1 and 4 cores: against the fast peer ours is at 1.1 and 1.25 times, and 2.5 times as fast on 4
// cores as on one.
func measured(targets ...contest.Target) contest.Result {
	return contest.Result{
		Scenario: contest.Scenario{
			Name: "work", Unit: "ns/op", Cores: []int{1, 4}, Targets: targets,
			Contenders: []contest.Contender{
				{Name: "loop", Form: contest.Limit, New: nothing},
				{Name: "retry", Form: contest.Ours, New: nothing},
				{Name: "slow", Form: contest.Usual, New: nothing},
				{Name: "fast", Form: contest.Fastest, New: nothing},
				{Name: "sampled", Form: contest.Usual, Sample: func() float64 { return 0 }},
			},
		},
		Cores: []int{1, 4},
		Rows: []contest.Row{
			{Medians: medians(50, 20), Allocs: 1},
			{Medians: medians(110, 44), Allocs: 3},
			{Medians: medians(200, 35.2), Allocs: 2},
			{Medians: medians(100, 40), Allocs: 4},
			{Medians: medians(300, 300)},
		},
	}
}

func below(x float64) float64 { return math.Nextafter(x, math.Inf(-1)) }
func above(x float64) float64 { return math.Nextafter(x, math.Inf(1)) }

func TestJudge(t *testing.T) {
	for _, row := range []struct {
		name     string
		target   contest.Target
		measured float64
		met      bool
	}{
		{"a ratio at the bound is met", contest.Target{Kind: contest.Ratio, Against: "loop", Most: 2.2}, 2.2, true},
		{"a ratio over the bound is not", contest.Target{Kind: contest.Ratio, Against: "loop", Most: below(2.2)}, 2.2, false},
		{"a ratio is that of the worst number of cores", contest.Target{Kind: contest.Ratio, Against: "slow", Most: 1}, 1.25, false},
		{"ours may be named", contest.Target{Kind: contest.Ratio, Ours: "retry", Against: "fast", Most: 1.1}, 1.1, true},
		{"best is against the fastest peer on each number of cores", contest.Target{Kind: contest.Best, Most: 1.25}, 1.25, true},
		{"best over the bound is not met", contest.Target{Kind: contest.Best, Most: below(1.25)}, 1.25, false},
		{"a value at the bound is met", contest.Target{Kind: contest.Value, Most: 110}, 110, true},
		{"a value over the bound is not", contest.Target{Kind: contest.Value, Most: below(110)}, 110, false},
		{"allocations at the bound are met", contest.Target{Kind: contest.Allocs, Most: 3}, 3, true},
		{"allocations over the bound are not", contest.Target{Kind: contest.Allocs, Most: 2}, 3, false},
		{"allocations beyond another's at the bound are met", contest.Target{Kind: contest.Beyond, Against: "loop", Most: 2}, 2, true},
		{"allocations beyond another's over the bound are not", contest.Target{Kind: contest.Beyond, Against: "loop", Most: 1}, 2, false},
		{"fewer than another's is below zero", contest.Target{Kind: contest.Beyond, Against: "fast", Most: 0}, -1, true},
		{"fewest is against the peer with the fewest", contest.Target{Kind: contest.Fewest, Most: 1}, 1, true},
		{"fewest over the bound is not met", contest.Target{Kind: contest.Fewest, Most: 0}, 1, false},
		{"scaling at the bound is met", contest.Target{Kind: contest.Scaling, Most: 2.5}, 2.5, true},
		{"scaling below the bound is not", contest.Target{Kind: contest.Scaling, Most: above(2.5)}, 2.5, false},
		{"a bound that is not a number is not met", contest.Target{Kind: contest.Value, Most: math.NaN()}, 110, false},
	} {
		t.Run(row.name, func(t *testing.T) {
			verdicts, err := contest.Judge(measured(row.target))
			require.NoError(t, err)
			require.Len(t, verdicts, 1)
			v := verdicts[0]
			require.Equal(t, row.measured, v.Measured)
			require.Equal(t, row.met, v.Met)
			require.Empty(t, v.Missing)
			require.Equal(t, row.target.Kind, v.Kind)
		})
	}
}

func TestJudgeOfZero(t *testing.T) {
	for _, row := range []struct {
		name          string
		ours, against float64
		measured      float64
		met           bool
	}{
		{"nothing against nothing is as good", 0, 0, 1, true},
		{"something against nothing is infinitely worse", 1, 0, math.Inf(1), false},
		{"less than a negative difference is as good", -2, -1, 1, true},
		{"more than a negative difference is infinitely worse", 0, -1, math.Inf(1), false},
	} {
		t.Run(row.name, func(t *testing.T) {
			r := measured(contest.Target{Kind: contest.Ratio, Against: "loop", Most: 1})
			r.Rows[0].Medians = medians(row.against, row.against)
			r.Rows[1].Medians = medians(row.ours, row.ours)
			verdicts, err := contest.Judge(r)
			require.NoError(t, err)
			require.Equal(t, row.measured, verdicts[0].Measured)
			require.Equal(t, row.met, verdicts[0].Met)
		})
	}
}

func TestAnUnmeasuredTimeIsNeverMet(t *testing.T) {
	t.Run("not a number", func(t *testing.T) {
		for _, kind := range []contest.Kind{contest.Ratio, contest.Best, contest.Value} {
			target := contest.Target{Kind: kind, Most: math.Inf(1)}
			if kind == contest.Ratio {
				target.Against = "loop"
			}
			for _, missing := range []int{0, 1, 3} {
				r := measured(target)
				r.Rows[missing].Medians = medians(math.NaN(), math.NaN())
				verdicts, err := contest.Judge(r)
				require.NoError(t, err)
				unused := kind == contest.Ratio && missing == 3 || kind == contest.Best && missing == 0 || kind == contest.Value && missing != 1
				require.Equal(t, unused, verdicts[0].Met, "%s, row %d", kind, missing)
			}
		}
	})
	t.Run("scaling to zero", func(t *testing.T) {
		r := measured(contest.Target{Kind: contest.Scaling, Most: 2})
		r.Rows[1].Medians = medians(110, 0)
		verdicts, err := contest.Judge(r)
		require.NoError(t, err)
		require.False(t, verdicts[0].Met)
	})
}

func TestASkippedNumberOfCoresIsNotMeasured(t *testing.T) {
	targets := []contest.Target{
		{Kind: contest.Ratio, Against: "loop", Most: 100},
		{Kind: contest.Best, Most: 100},
		{Kind: contest.Value, Most: 1000},
		{Kind: contest.Scaling, Most: 0},
		{Kind: contest.Allocs, Most: 3},
	}
	r := measured(targets...)
	r.Scenario.Cores = []int{1, 4, 64, 128}
	verdicts, err := contest.Judge(r)
	require.NoError(t, err)
	const missing = "not measured on 64 and 128 cores"
	require.Equal(t, []contest.Verdict{
		{Target: targets[0], Missing: missing},
		{Target: targets[1], Missing: missing},
		{Target: targets[2], Missing: missing},
		{Target: targets[3], Missing: missing},
		{Target: targets[4], Measured: 3, Met: true},
	}, verdicts)
}

func TestJudgeRefuses(t *testing.T) {
	const prefix = `contest: scenario "work", target "rule": `
	for _, row := range []struct {
		name   string
		target contest.Target
		err    string
	}{
		{"ours that is not there", contest.Target{Kind: contest.Value, Ours: "none"}, `Ours "none" must name one contender of form ours, but names 0`},
		{"ours that is a peer", contest.Target{Kind: contest.Value, Ours: "fast"}, `Ours "fast" must name one contender of form ours, but names 0`},
		{"against that is not there", contest.Target{Kind: contest.Ratio, Against: "none"}, `Against "none" must name one contender, but names 0`},
		{"against that is empty", contest.Target{Kind: contest.Beyond}, `Against "" must name one contender, but names 0`},
		{"against of a kind without", contest.Target{Kind: contest.Best, Against: "fast"}, `Against "fast" is not for Kind best`},
		{"allocations of a sample", contest.Target{Kind: contest.Beyond, Against: "sampled"}, `contender "sampled" has no New, so its allocations are not counted`},
		{"an unknown kind", contest.Target{Kind: "worst"}, `Kind "worst" is unknown`},
	} {
		t.Run(row.name, func(t *testing.T) {
			row.target.Rule = "rule"
			_, err := contest.Judge(measured(row.target))
			require.EqualError(t, err, prefix+row.err)
		})
	}
	t.Run("ours that is two", func(t *testing.T) {
		r := measured(contest.Target{Rule: "rule", Kind: contest.Value})
		r.Scenario.Contenders[2].Form = contest.Ours
		_, err := contest.Judge(r)
		require.EqualError(t, err, prefix+`Ours "" must name one contender of form ours, but names 2`)
	})
	t.Run("best without peers", func(t *testing.T) {
		r := measured(contest.Target{Rule: "rule", Kind: contest.Fewest})
		r.Scenario.Contenders, r.Rows = r.Scenario.Contenders[:2], r.Rows[:2]
		_, err := contest.Judge(r)
		require.EqualError(t, err, prefix+"there is no peer to compare with")
	})
	t.Run("scaling without one core", func(t *testing.T) {
		r := measured(contest.Target{Rule: "rule", Kind: contest.Scaling})
		r.Scenario.Cores = []int{4}
		_, err := contest.Judge(r)
		require.EqualError(t, err, prefix+"Cores [4] must have 1 and more")
	})
	t.Run("a result without a row", func(t *testing.T) {
		r := measured()
		r.Rows = r.Rows[1:]
		_, err := contest.Judge(r)
		require.EqualError(t, err, `contest: scenario "work" has 5 contenders, but 4 rows`)
	})
	t.Run("a result without a median", func(t *testing.T) {
		r := measured()
		r.Rows[1].Medians = medians(1)
		_, err := contest.Judge(r)
		require.EqualError(t, err, `contest: scenario "work": contender "retry" has 1 medians, but was measured on 2 numbers of cores`)
	})
}
