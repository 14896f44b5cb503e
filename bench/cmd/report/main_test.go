package main

import (
	"flag"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

// twoRounds are results on a machine with two cores.
const twoRounds = `cores: 2
go: go1.26.8
date: 2026-11-22
rounds: 2
benchtime: 20ms
goos: linux
goarch: amd64
cpu: AMD EPYC
BenchmarkFirstTry/bare-loop	100	30 ns/op	0 B/op	0 allocs/op
BenchmarkFirstTry/bare-loop-2	100	15 ns/op	0 B/op	0 allocs/op
BenchmarkFirstTry/retry	100	36 ns/op	0 B/op	0 allocs/op
BenchmarkFirstTry/retry-2	100	30 ns/op	0 B/op	0 allocs/op
BenchmarkFirstTry/avast-v5	100	20 ns/op	0 B/op	0 allocs/op
BenchmarkFirstTry/avast-v5-2	100	40 ns/op	0 B/op	0 allocs/op
BenchmarkFirstTry/failsafe-go	100	400 ns/op	464 B/op	14 allocs/op
BenchmarkFirstTry/failsafe-go-2	100	250 ns/op	464 B/op	14 allocs/op
BenchmarkFirstTry/retry	100	38 ns/op	0 B/op	0 allocs/op
BenchmarkHTTP200/bare-client	100	200 ns/op	8 B/op	5 allocs/op
BenchmarkHTTP200/retryhttp	100	300 ns/op	8 B/op	7 allocs/op
BenchmarkHTTP200/rehttp	100	400 ns/op	8 B/op	6 allocs/op
BenchmarkHTTP200/go-retryablehttp-usual	100	400 ns/op	8 B/op	9 allocs/op
BenchmarkClock/bare-reading	100	25 ns/op	0 B/op	0 allocs/op
BenchmarkTenFailures/bare-run	100	300 ns/op	0 B/op	0 allocs/op
BenchmarkThreeFailures/bare-clock	100	300 ns/op	0 B/op	0 allocs/op
BenchmarkTenFailures/retry	100	390 ns/op	0 B/op	0 allocs/op
`

func rendered(t *testing.T, results string) string {
	text, err := render([]byte(results), "| example.com/peer | v1.2.3 |")
	require.NoError(t, err)
	return string(text)
}

func TestReportBeginsWithTheOperationsAtWhichAPeerIsAhead(t *testing.T) {
	text := rendered(t, twoRounds)
	require.Less(t, strings.Index(text, "## Where a peer is ahead"), strings.Index(text, "## Targets"))
	section := text[strings.Index(text, "## Where"):strings.Index(text, "## Targets")]
	require.Contains(t, section, "- First try, 1 goroutine: retry 37.00ns ± ∞, after **avast-v5** 20.00ns ± ∞ (within the noise)\n")
	require.Contains(t, text, "| avast-v5 | keeps the last error only; ")
	require.NotContains(t, section, "First try, 2 goroutines")
	require.Contains(t, section, "- HTTP 200: retryhttp 7 allocs, after **rehttp** 6 allocs\n")
	require.NotContains(t, section, "bare-")
}

func TestReportNamesCoresAndWhatDoesNotApply(t *testing.T) {
	text := rendered(t, twoRounds)
	require.Contains(t, text, "2 cores, AMD EPYC, linux/amd64, go1.26.8")
	require.Contains(t, text, "Rows of 4 goroutines do not apply to this machine: First try.\n")
	require.Contains(t, text, "| contender | 1 goroutine | 2 goroutines on 2 cores | × limit |")

	single := rendered(t, strings.ReplaceAll(twoRounds, "cores: 2", "cores: 1"))
	require.Contains(t, single, "1 core, AMD EPYC")
	require.Contains(t, single, "Rows of 2 goroutines do not apply to this machine: First try.\n")
	require.Contains(t, single, "| First try | more cores help as they help the limit |  | needs 2 cores | does not apply |")
	require.NotContains(t, rendered(t, strings.ReplaceAll(twoRounds, "cores: 2", "cores: 4")), "do not apply")
}

func TestTargetsAreJudgedOnTheWorstNumberOfCores(t *testing.T) {
	text := rendered(t, strings.Repeat(twoRounds, 6))
	for _, line := range []string{
		"| First try | near a loop written by hand | 1.20 × bare-loop | 2.00 | **red** |",
		"| First try | ahead of the peer that can say how long a run took | 1.00 × failsafe-go | 0.12 | green |",
		"| First try | allocations | 0 allocs | 0 allocs | green |",
		"| First try | more cores help as they help the limit | 1.20 × bare-loop | 1.62 | **red** |",
		"| HTTP 200 | as fast as rehttp | 1.00 × rehttp | 0.75 | green |",
		"| HTTP 200 | allocations | bare-client +1 | bare-client +2 | **red** |",
		"| Ten failures, then giving up | near the same record by hand | 1.30 × bare-run | 1.30 | green |",
	} {
		require.Contains(t, text, line+"\n")
	}
}

func TestATargetThatIsMissedByLessThanTheNoiseIsNotRed(t *testing.T) {
	const missed = "| First try | near a loop written by hand | 1.20 × bare-loop | 2.00 | within the noise |\n"
	require.Contains(t, rendered(t, twoRounds), missed, "two rounds say nothing")
}

func TestFloorIsNamedWithTheTimeOfAReading(t *testing.T) {
	require.Contains(t, rendered(t, twoRounds), "| bare-clock | 300.0ns ± ∞ | 1.00 | 1.00 | 0 | 0 | the four calls and 4 readings of the clock at 25.00ns:")
}

func TestWhatIsNoResultIsRefused(t *testing.T) {
	for _, text := range []string{"", "BenchmarkOther 1 2 ns/op\n", "BenchmarkFirstTry/retry 1 many ns/op\n"} {
		_, err := render([]byte(text), "")
		require.Error(t, err, text)
	}
}

// TestCatalogueIsTheBenchmarks runs every benchmark once, as a run begins.
func TestCatalogueIsTheBenchmarks(t *testing.T) {
	binary := binary(filepath.Join(t.TempDir(), "bench.test"))
	_, err := goCommand(t.Context(), "../..", "test", "-c", "-o", string(binary), ".")
	require.NoError(t, err)
	listed, err := exec.CommandContext(t.Context(), string(binary), "-test.list", "^Benchmark").Output()
	require.NoError(t, err)
	var benchmarks []string
	for _, s := range scenarios {
		benchmarks = append(benchmarks, "Benchmark"+s.Bench)
	}
	require.ElementsMatch(t, strings.Fields(string(listed)), slices.Compact(benchmarks))

	all, err := binary.run(t.Context(), ".", "1x", []int{1}, "-test.short")
	require.NoError(t, err)
	r, err := parse(all)
	require.NoError(t, err)
	for _, s := range scenarios {
		table := r.table(s)
		require.True(t, table.Rows[0].limit(), s.Bench)
		for _, row := range table.Rows {
			note := table.Notes[row.Name] != "" || strings.Contains(resultsTemplate, "\n| "+row.Name+" | ") ||
				strings.Contains(resultsTemplate, "\n| "+row.Name+", ")
			require.True(t, row.ours() || note, "%s/%s has no note", s.Bench, row.Name)
			require.GreaterOrEqual(t, row.Medians[0].Center, 0.0, "%s/%s has no %s", s.Bench, row.Name, table.Unit)
		}
		for _, target := range s.Targets {
			require.True(t, target.Against == "" || target.Against == fastestPeer || slices.Contains(r.names[s.Bench], target.Against),
				"%s: %s", s.Bench, target.Against)
		}
	}
}

func TestRunMeasuresRendersAndReadsItsOwnResults(t *testing.T) {
	dir := t.TempDir()
	file, results := filepath.Join(dir, "RESULTS.md"), filepath.Join(dir, "RESULTS.txt")
	require.NoError(t, run(t.Context(), []string{"-run", "^(Clock|FirstTryValue)$", "-rounds", "2", "-benchtime", "1us", "-o", file}))
	written, err := os.ReadFile(file)
	require.NoError(t, err)
	require.Contains(t, string(written), "## First try, with a value\n")
	require.Contains(t, string(written), "| github.com/avast/retry-go/v5 | v5.")
	raw, err := os.ReadFile(results)
	require.NoError(t, err)
	require.Equal(t, 2, strings.Count(string(raw), "BenchmarkFirstTryValue/retry "))

	again := filepath.Join(t.TempDir(), "again.md")
	require.NoError(t, run(t.Context(), []string{"-from", results, "-o", again}))
	require.NoFileExists(t, filepath.Join(filepath.Dir(again), "again.txt"))
	rewritten, err := os.ReadFile(again)
	require.NoError(t, err)
	require.Equal(t, string(written), string(rewritten))
}

func TestWrongFlagsAreRefusedBeforeMeasuring(t *testing.T) {
	for want, args := range map[string][]string{
		"-rounds 0 is below 1": {"-rounds", "0"}, "missing closing )": {"-run", "("},
		`no benchmark matches -run "none such"`: {"-run", "none such"}, `unexpected argument "more"`: {"more"},
	} {
		require.ErrorContains(t, run(t.Context(), args), want)
	}
	require.ErrorIs(t, run(t.Context(), []string{"-h"}), flag.ErrHelp)
}
