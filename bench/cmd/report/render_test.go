package main

import (
	"flag"
	"math"
	"os"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"golang.org/x/perf/benchmath"

	"github.com/retrygo/retry/bench/internal/contest"
)

var update = flag.Bool("update", false, "write testdata/RESULTS.md instead of comparing with it")

func nothing() func(int) { return func(int) {} }

// median is one with a confidence interval of plus and minus the given share.
func median(center, share float64) benchmath.Summary {
	return benchmath.Summary{Center: center, Lo: center * (1 - share), Hi: center * (1 + share)}
}

func handMade() []contest.Result {
	firstTry := contest.Result{
		Scenario: contest.Scenario{
			Name: "First try", About: "Nothing fails. What is left is the price of the call.", Unit: "ns/op", Cores: []int{1, 2, 64},
			Contenders: []contest.Contender{
				{Name: "hand-written loop", Form: contest.Limit, New: nothing},
				{Name: "retry", Form: contest.Ours, New: nothing},
				{Name: "slow v1", Form: contest.Usual, Remark: "keeps no record", New: nothing},
				{Name: "quick|v2", Form: contest.Fastest, Remark: "has no timeout", New: nothing},
				{Name: "close v3", Form: contest.Usual, Remark: "keeps no record", New: nothing},
			},
			Targets: []contest.Target{
				{Rule: "no allocation", Kind: contest.Allocs, Most: 0},
				{Rule: "as few as the best", Kind: contest.Fewest, Most: -1},
				{Rule: "scales", Kind: contest.Scaling, Most: 1.8, Why: "the machine"},
			},
		},
		Cores: []int{1, 2},
		Rows: []contest.Row{
			{Medians: []benchmath.Summary{median(10, 0.01), median(5, 0.01)}},
			{Medians: []benchmath.Summary{median(20.04, 0.02), median(10, 0.02)}, Bytes: 1024, Allocs: 1},
			{Medians: []benchmath.Summary{median(1234567, 0.1), median(0.5, math.Inf(1))}, Bytes: 123456, Allocs: 1000},
			{Medians: []benchmath.Summary{median(15, 0.03), median(10.5, 0.03)}},
			{Medians: []benchmath.Summary{median(20, 0.03), median(30, 0.03)}, Allocs: 2},
		},
	}
	waiters := contest.Result{
		Scenario: contest.Scenario{
			Name: "Waiters", About: "What a call that waits keeps in memory.", Unit: "B",
			Contenders: []contest.Contender{
				{Name: "retry", Form: contest.Ours, Sample: func() float64 { return 0 }},
				{Name: "slow v1", Form: contest.Fastest, Sample: func() float64 { return 0 }},
			},
			Targets: []contest.Target{
				{Rule: "at most half", Kind: contest.Ratio, Against: "slow v1", Most: 0.5, Why: "it is the same"},
				{Rule: "at most 2,500 B", Kind: contest.Value, Most: 2500},
			},
		},
		Cores: []int{1},
		Rows: []contest.Row{
			{Medians: []benchmath.Summary{median(2501, 0)}},
			{Medians: []benchmath.Summary{median(5002, 0)}},
		},
	}
	return []contest.Result{firstTry, waiters}
}

func handMadeEnvironment() environment {
	return environment{
		Command: "go run ./bench/cmd/report", Date: time.Date(2026, time.February, 3, 4, 5, 6, 0, time.UTC),
		Rounds: 15, SampleTime: 20 * time.Millisecond,
		Cores: 4, GOOS: "linux", GOARCH: "amd64", Go: "go1.26.0",
		Peers: []peer{{"example.com/quick", "v2.0.1"}, {"example.com/slow", "v1.2.3"}},
	}
}

func TestRender(t *testing.T) {
	const golden = "testdata/RESULTS.md"
	text, err := render(handMadeEnvironment(), handMade())
	require.NoError(t, err)
	if *update {
		require.NoError(t, os.WriteFile(golden, []byte(text), 0o644))
	}
	want, err := os.ReadFile(golden)
	require.NoError(t, err)
	require.Equal(t, string(want), text)
}

func TestRenderWhereNothingWasMeasured(t *testing.T) {
	results := handMade()[:1]
	results[0].Scenario.Cores, results[0].Cores = []int{64}, nil
	for i := range results[0].Rows {
		results[0].Rows[i].Medians = nil
	}
	results[0].Scenario.Targets = results[0].Scenario.Targets[:1]
	text, err := render(environment{}, results)
	require.NoError(t, err)
	require.Contains(t, text, "Not measured on 64 cores: this machine has fewer.")
	require.Contains(t, text, "The versions of the peers are unknown")
}

func TestRenderSaysThatNoPeerIsAhead(t *testing.T) {
	results := handMade()[1:]
	text, err := render(handMadeEnvironment(), results)
	require.NoError(t, err)
	require.Contains(t, text, "Nowhere: no peer's median is below ours, nor does one allocate less often.\n")
}

func TestRenderRefusesATargetOfNobody(t *testing.T) {
	results := handMade()
	results[1].Scenario.Targets[0].Against = "none"
	_, err := render(handMadeEnvironment(), results)
	require.EqualError(t, err, `contest: scenario "Waiters", target "at most half": Against "none" must name one contender, but names 0`)
}
