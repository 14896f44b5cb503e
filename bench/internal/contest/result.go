package contest

import (
	"fmt"
	"slices"

	"golang.org/x/perf/benchmath"
)

// Result is what was measured of a scenario.
type Result struct {
	Scenario Scenario
	// Cores are those of the scenario's numbers of cores that were measured, in the scenario's order.
	Cores []int
	// Rows are one for each of Scenario.Contenders, in that order.
	Rows []Row
}

// Row is what was measured of a contender.
type Row struct {
	// Medians are one for each of Result.Cores, in the scenario's unit, with the 95% confidence interval. On k
	// cores ns/op is the time that passed for each operation of all goroutines together, so that perfect scaling
	// divides it by k. Fewer than 6 rounds give an infinite interval.
	Medians []benchmath.Summary
	// Allocs and Bytes are of one operation, on one core, rounded down. They are 0 of a contender that has Sample.
	Allocs, Bytes int
}

// Skipped returns the scenario's numbers of cores that were not measured.
func (r *Result) Skipped() []int {
	return slices.DeleteFunc(slices.Clone(r.Scenario.cores()), func(cores int) bool {
		return slices.Contains(r.Cores, cores)
	})
}

// check returns an error unless there is a row for each contender and in it a median for each number of cores.
func (r *Result) check() error {
	if len(r.Rows) != len(r.Scenario.Contenders) {
		return fmt.Errorf("contest: scenario %q has %d contenders, but %d rows", r.Scenario.Name, len(r.Scenario.Contenders), len(r.Rows))
	}
	for i, row := range r.Rows {
		if len(row.Medians) != len(r.Cores) {
			return fmt.Errorf("contest: scenario %q: contender %q has %d medians, but was measured on %d numbers of cores",
				r.Scenario.Name, r.Scenario.Contenders[i].Name, len(row.Medians), len(r.Cores))
		}
	}
	return nil
}

// summary returns the median of values and its confidence interval. It makes no assumption about their distribution:
// times have a long tail. It reorders values.
func summary(values []float64) benchmath.Summary {
	const confidence = 0.95 // benchstat's
	sample := benchmath.NewSample(values, &benchmath.DefaultThresholds)
	return benchmath.AssumeNothing.Summary(sample, confidence)
}
