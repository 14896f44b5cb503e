package bench_test

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/retrygo/retry/bench/internal/contest"
	"github.com/retrygo/retry/bench/internal/contest/contesttest"
	"github.com/retrygo/retry/bench/internal/scenario"
)

// BenchmarkScenario runs each contender of each scenario by itself. To compare them take turns: go run ./bench/cmd/report.
func BenchmarkScenario(b *testing.B) { contesttest.Bench(b, scenario.All()) }

// TestAllocations holds what the scenarios promise of our allocations, which does not depend on the machine.
func TestAllocations(t *testing.T) {
	held := 0
	for _, s := range scenario.All() {
		for _, target := range s.Targets {
			if target.Kind != contest.Allocs && target.Kind != contest.Beyond {
				continue
			}
			held++
			t.Run(s.Name+": "+target.Rule, func(t *testing.T) {
				most := target.Most
				for _, c := range s.Contenders {
					if target.Kind == contest.Beyond && c.Name == target.Against {
						most += float64(contest.AllocsPerOp(c))
					}
				}
				for _, c := range s.Contenders {
					if c.Form == contest.Ours {
						require.LessOrEqual(t, float64(contest.AllocsPerOp(c)), most)
					}
				}
			})
		}
	}
	require.Positive(t, held)
}
