package retryplan_test

// The TestReference tests hold Simulate against figures that others published or measured with simulators of their own:
// the contention model of the AWS article on jitter, Brooker's retry and collapse simulations, a queue whose clients
// time out, and a herd behind an outage. A normal test run uses few seeds and correspondingly wide bounds. The full
// form takes a minute or two; both print the comparison with -v:
//
//	RETRYPLAN_FULL=1 go test -v -run TestReference -timeout 20m ./retryplan

import (
	"fmt"
	"math"
	"os"
	"runtime"
	"slices"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"text/tabwriter"
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
		wg.Add(1)
		go func() {
			defer wg.Done()
			for i := int(next.Add(1)) - 1; i < n; i = int(next.Add(1)) - 1 {
				one := s(uint64(i + 1))
				one.Seed = uint64(i + 1)
				var r retryplan.Seen
				if r, errs[i] = retryplan.Run(t.Context(), one); errs[i] == nil {
					rows[i] = measure(r)
				}
			}
		}()
	}
	wg.Wait()
	for _, err := range errs {
		require.NoError(t, err)
	}
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

// comparison is a table of our figures beside those of the reference.
type comparison struct {
	t      *testing.T
	lines  []string
	misses []string
}

func compare(t *testing.T, title string) *comparison {
	return &comparison{t: t, lines: []string{title, "case\tours\treference\tbound\t"}}
}

func (c *comparison) row(ok bool, name, ours, reference, bound string) {
	verdict := ""
	if !ok {
		verdict = "MISSED"
		c.misses = append(c.misses, fmt.Sprintf("%s: %s, not %s (%s)", name, ours, reference, bound))
	}
	c.lines = append(c.lines, strings.Join([]string{name, ours, reference, bound, verdict}, "\t"))
}

// mean compares the mean of one value per run with a reference mean. Both are estimates, so they may differ by four
// standard errors of their difference, and by the rounding of the reference.
func (c *comparison) mean(name string, values []float64, f figure) {
	m, sd := meanAndSD(values)
	bound := 4*f.sd*math.Sqrt(1/float64(f.runs)+1/float64(len(values))) + f.unit/2
	c.row(math.Abs(m-f.want) <= bound, name, withSD(m, sd), short(f.want), "±"+short(bound))
	if fullForm && f.measured && f.sd > 1.4*sd {
		c.misses = append(c.misses, fmt.Sprintf("%s: an sd of %s is assumed, %s was measured", name, short(f.sd), short(sd)))
	}
}

// share compares how many of the runs of a reference had some property with the share of ours that have it, 1 or 0 each:
// were ours the true share, a count as low or as high as the reference's must have a probability of 1 % at least.
func (c *comparison) share(name string, values []float64, count, runs int) {
	had, _ := meanAndSD(values)
	n := float64(len(values))
	p := (float64(had*n) + 1) / (n + 2) // Laplace: a few runs cannot say that something never happens
	low, high := 0.0, 0.0
	ways := 1.0
	for k := range runs + 1 {
		chance := ways * math.Pow(p, float64(k)) * math.Pow(1-p, float64(runs-k))
		if k <= count {
			low += chance
		}
		if k >= count {
			high += chance
		}
		ways *= float64(runs-k) / float64(k+1)
	}
	chance := min(low, high)
	c.row(chance >= 0.01, name, short(had), fmt.Sprintf("%d of %d", count, runs), fmt.Sprintf("chance %s, not below 0.01", short(chance)))
}

// exact compares a figure that is the same in every run.
func (c *comparison) exact(name string, values []float64, want float64) {
	lo, hi := slices.Min(values), slices.Max(values)
	c.row(lo == want && hi == want, name, span(lo, hi), short(want), "exact")
}

// spread compares with the smallest and largest of a few reference runs, to the reference's resolution of unit: if ours
// and its runs came from one distribution, so many of ours beyond either of its extremes must have a probability of
// 1/32 at least. With many runs of ours and five of the reference that says that our median is between the extremes.
// The short form has too few runs for that, one of its rows is easily unlucky, and so the limit is 1/1000 there.
func (c *comparison) spread(name string, values []float64, runs int, lo, hi, unit float64) {
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
	ours := fmt.Sprintf("%s, median %s", span(sorted[0], sorted[len(sorted)-1]), short(sorted[len(sorted)/2]))
	limit := 1.0 / float64(seeds(1000, 32))
	c.row(chance >= limit, name, ours, span(lo, hi), fmt.Sprintf("chance %s, not below %s", short(chance), short(limit)))
}

// allOurs returns the probability that the k largest of n values of ours and m others, in random order, are all ours.
func allOurs(k, n, m int) float64 {
	p := 1.0
	for i := range k {
		p *= float64(n-i) / float64(n+m-i)
	}
	return p
}

// done prints the table and fails the test if a figure is missed.
func (c *comparison) done() {
	c.t.Helper()
	var b strings.Builder
	w := tabwriter.NewWriter(&b, 0, 0, 2, ' ', 0)
	for _, line := range c.lines {
		fmt.Fprintln(w, line)
	}
	w.Flush()
	c.t.Log(b.String())
	require.Empty(c.t, c.misses)
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

func withSD(mean, sd float64) string {
	if math.IsNaN(sd) || sd < 1e-9*mean {
		return short(mean)
	}
	return fmt.Sprintf("%s (sd %s)", short(mean), short(sd))
}

// short writes v with four digits or so.
func short(v float64) string {
	if math.IsInf(v, 1) {
		return "never"
	}
	if math.Abs(v) >= 1000 {
		return strconv.FormatFloat(v, 'f', 0, 64)
	}
	return strconv.FormatFloat(v, 'g', 4, 64)
}

func span(lo, hi float64) string {
	if lo == hi {
		return short(lo)
	}
	return short(lo) + ".." + short(hi)
}

// immediately is the backoff of retries that do not wait.
var immediately = retry.Backoff{Delays: []time.Duration{0}}
