// Package contesttest runs the scenarios of package contest by go test.
package contesttest

import (
	"fmt"
	"runtime"
	"strings"
	"testing"

	"github.com/retrygo/retry/bench/internal/contest"
)

// Bench runs each contender of the scenarios as a sub-benchmark "scenario/contender/form/cores=k", with its
// allocations, and skips those with more cores than the machine has. A slash within a name becomes a dash. On k cores
// ns/op is the time that passed for each operation of all goroutines together. A contender that has Sample is sampled
// b.N times, and reports the mean in the scenario's unit. Unlike contest.Run it takes no turns: to compare contenders,
// use that.
func Bench(b *testing.B, scenarios []contest.Scenario) {
	for _, s := range scenarios {
		cores := s.Cores
		if len(cores) == 0 {
			cores = []int{1}
		}
		for _, c := range s.Contenders {
			for _, k := range cores {
				b.Run(name(s, c, k), func(b *testing.B) {
					if k > runtime.NumCPU() {
						b.Skipf("%d cores are more than this machine has", k)
					}
					defer runtime.GOMAXPROCS(runtime.GOMAXPROCS(k))
					if c.New != nil {
						benchOp(b, c.New(), k)
					} else {
						benchSample(b, c.Sample, s.Unit)
					}
				})
			}
		}
	}
}

func name(s contest.Scenario, c contest.Contender, cores int) string {
	level := func(text string) string { return strings.ReplaceAll(text, "/", "-") }
	return fmt.Sprintf("%s/%s/%s/cores=%d", level(s.Name), level(c.Name), c.Form, cores)
}

func benchOp(b *testing.B, op func(n int), cores int) {
	b.ReportAllocs()
	contest.Together(cores, b.ResetTimer, func(i int) {
		n := b.N / cores
		if i < b.N%cores {
			n++ // the rest of b.N
		}
		if n > 0 {
			op(n)
		}
	})
}

func benchSample(b *testing.B, sample func() float64, unit string) {
	var sum float64
	for range b.N {
		sum += sample()
	}
	b.ReportMetric(0, "ns/op") // hides the time of a sample, unless that is the unit
	b.ReportMetric(sum/float64(b.N), strings.ReplaceAll(unit, " ", "-"))
}
