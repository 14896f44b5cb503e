package retryplan_test

// The TestReference tests hold Simulate against figures that others published or measured with simulators of their own:
// Brooker's retry simulation, and a queue whose clients time out. A normal test run uses few seeds and correspondingly
// wide bounds. The full form takes a minute or two. Both print the comparison with -v:
//
//	RETRYPLAN_FULL=1 go test -v -run TestReference -timeout 20m ./retryplan

import (
	"errors"
	"math"
	"os"
	"runtime"
	"slices"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/retrygo/retry"
	"github.com/retrygo/retry/retryplan"
)

// fullForm says whether the tests run with as many seeds as the reference figures deserve.
var fullForm = os.Getenv("RETRYPLAN_FULL") != ""

// seeds chooses between the two forms, mostly how many runs a figure is the mean of.
func seeds(short, full int) int {
	if fullForm {
		return full
	}
	return short
}

// trials is seeds, with a tenth of the short form under go test -short, and under the race detector, which finds nothing
// in a plan or a simulation, of one goroutine each.
func trials(short, full int) int {
	if retryplan.RaceDetector || testing.Short() {
		short = max(short/10, 1)
	}
	return seeds(short, full)
}

// never is a recovery that did not happen.
var never = math.Inf(1)

// sample simulates s under the seeds 1 to n, on all cores, and returns for each figure that measure takes of a result
// its value in every run.
func sample(t *testing.T, n int, s func(seed uint64) retryplan.Scenario, measure func(retryplan.Seen) []float64) [][]float64 {
	t.Helper()
	rows := make([][]float64, n)
	errs := make([]error, n)
	var next atomic.Int64
	var wg sync.WaitGroup
	for range min(n, runtime.GOMAXPROCS(0)) {
		wg.Go(func() {
			for i := int(next.Add(1)) - 1; i < n; i = int(next.Add(1)) - 1 {
				one := s(uint64(i + 1))
				one.Seed = uint64(i + 1)
				var r retryplan.Seen
				if r, errs[i] = retryplan.Run(t.Context(), one); errs[i] == nil {
					rows[i] = measure(r)
				}
			}
		})
	}
	wg.Wait()
	require.NoError(t, errors.Join(errs...))
	columns := make([][]float64, len(rows[0]))
	for _, row := range rows {
		for i, v := range row {
			columns[i] = append(columns[i], v)
		}
	}
	return columns
}

// figure is one number of a reference table.
type figure struct {
	want float64 // a mean over runs
	runs int     // how many there were
	// sd is the standard deviation of a single run. If the reference does not give it, it is the figure that the full form
	// measures here, and the full form refuses one that is more than 1.4 times that.
	sd       float64
	measured bool
	unit     float64 // of the last digit that the reference prints; 0 if its rounding need not be allowed for
}

// measured returns the figure of a reference that does not give an sd.
func measured(want float64, runs int, sd, unit float64) figure {
	return figure{want: want, runs: runs, sd: sd, measured: true, unit: unit}
}

// comparison logs our figures beside those of the reference, and fails the test for each that is missed.
type comparison struct{ *testing.T }

func (c comparison) log(ok bool, format string, args ...any) {
	c.Helper()
	if ok {
		c.Logf(format, args...)
	} else {
		c.Errorf("MISSED "+format, args...)
	}
}

// mean compares the mean of one value per run with a reference mean. Both are estimates, so they may differ by four
// standard errors of their difference, and by the rounding of the reference.
func (c comparison) mean(name string, values []float64, f figure) {
	c.Helper()
	m, sd := meanAndSD(values)
	bound := 4*f.sd*math.Sqrt(1/float64(f.runs)+1/float64(len(values))) + f.unit/2
	c.log(math.Abs(m-f.want) <= bound, "%s: %.4g (sd %.4g), in the reference %.4g ± %.4g", name, m, sd, f.want, bound)
	if fullForm && f.measured && f.sd > 1.4*sd {
		c.Errorf("%s: an sd of %.4g is assumed, %.4g was measured", name, f.sd, sd)
	}
}

// spread compares with the smallest and largest of a few reference runs, to the reference's resolution of unit: if ours
// and its runs came from one distribution, so many of ours beyond either of its extremes must have a probability of
// 1/32 at least. With many runs of ours and five of the reference that says that our median is between the extremes.
// The short form has too few runs for that, one of its rows is easily unlucky, and so the limit is 1/1000 there.
func (c comparison) spread(name string, values []float64, runs int, lo, hi, unit float64) {
	c.Helper()
	sorted := slices.Sorted(slices.Values(values))
	below, above := 0, 0
	for _, v := range sorted {
		if v < lo-unit {
			below++
		}
		if v > hi+unit {
			above++
		}
	}
	chance := min(allOurs(below, len(values), runs), allOurs(above, len(values), runs))
	limit := 1.0 / float64(seeds(1000, 32))
	c.log(chance >= limit, "%s: %.4g to %.4g, median %.4g, in the reference %.4g to %.4g, chance %.4g, not below %.4g",
		name, sorted[0], sorted[len(sorted)-1], sorted[len(sorted)/2], lo, hi, chance, limit)
}

// allOurs returns the probability that the k largest of n values of ours and m others, in random order, are all ours.
func allOurs(k, n, m int) float64 {
	p := 1.0
	for i := range k {
		p *= float64(n-i) / float64(n+m-i)
	}
	return p
}

// meanAndSD returns the mean and the standard deviation, which is NaN if there is only one value.
func meanAndSD(values []float64) (mean, sd float64) {
	for _, v := range values {
		mean += v / float64(len(values))
	}
	for _, v := range values {
		sd += (v - mean) * (v - mean)
	}
	return mean, math.Sqrt(sd / float64(len(values)-1))
}

// immediately is the backoff of retries that do not wait.
var immediately = retry.Backoff{Delays: []time.Duration{0}}
