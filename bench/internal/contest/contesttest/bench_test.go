package contesttest_test

import (
	"flag"
	"sync/atomic"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/retrygo/retry/bench/internal/contest"
	"github.com/retrygo/retry/bench/internal/contest/contesttest"
)

// scenarios count their operations in ops and their samples in samples.
func scenarios(ops, samples *atomic.Int64) []contest.Scenario {
	return []contest.Scenario{
		{Name: "first try", Unit: "ns/op", Cores: []int{1, 2, 1 << 20}, Contenders: []contest.Contender{
			{Name: "a/retry v1", Form: contest.Ours, New: func() func(int) {
				return func(n int) { ops.Add(int64(n)) }
			}},
		}},
		{Name: "memory", Unit: "B a call", Contenders: []contest.Contender{
			{Name: "a", Form: contest.Ours, Sample: func() float64 { return float64(samples.Add(1)) }},
		}},
	}
}

// BenchmarkScenarios shows the names and the metrics: go test -bench . -v.
func BenchmarkScenarios(b *testing.B) {
	contesttest.Bench(b, scenarios(new(atomic.Int64), new(atomic.Int64)))
}

func TestBenchRunsEach(t *testing.T) {
	benchtime := flag.Lookup("test.benchtime")
	before := benchtime.Value.String()
	require.NoError(t, benchtime.Value.Set("1x"))
	defer func() { require.NoError(t, benchtime.Value.Set(before)) }()

	var ops, samples atomic.Int64
	testing.Benchmark(func(b *testing.B) { contesttest.Bench(b, scenarios(&ops, &samples)) })
	require.Positive(t, ops.Load())
	require.Positive(t, samples.Load())
}
