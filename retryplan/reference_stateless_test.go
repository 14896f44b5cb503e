package retryplan_test

import (
	"fmt"
	"math"
	"testing"
	"time"

	"github.com/retrygo/retry"
	"github.com/retrygo/retry/retryplan"
)

// stateless is Brooker's retry simulation: clients that call at rate runs a second in all for 10 s, a server of
// unlimited capacity that fails attempts at random, and retries without backoff. An attempt takes an exponential time of
// mean 20 ms, which has no part in its figures.
func stateless(failing, rate float64, clients, attempts int) retryplan.Scenario {
	return retryplan.Scenario{
		Policy:   retry.Policy{MaxAttempts: attempts, Backoff: immediately},
		Clients:  clients,
		Rate:     rate,
		Server:   retryplan.Server{FailureRate: failing, Service: retryplan.Exponential(20 * time.Millisecond)},
		Duration: 10 * time.Second,
	}
}

// loadAndSuccess are attempts per run, and the share of the runs that succeed of those that end.
func loadAndSuccess(r retryplan.Seen) []float64 {
	return []float64{r.Amplification, float64(r.Endings[0]) / float64(r.Runs-r.Unfinished)}
}

// The load amplification and the success rate of 100 clients that make 10 runs a second each.
func TestReferenceStatelessFailures(t *testing.T) {
	variants := []struct {
		name     string
		attempts int
	}{{"none", 1}, {"3 retries", 4}}
	c := comparison{t}
	for _, row := range []struct {
		failing float64
		cells   [2]struct{ load, success figure }
	}{
		{.01, stateCells([2][4]float64{{1, 0, .990, .0009}, {1.010, .00095, 1, 0}})},
		{.10, stateCells([2][4]float64{{1, 0, .900, .0032}, {1.111, .0036, .9999, .00009}})},
		{.30, stateCells([2][4]float64{{1, 0, .696, .0043}, {1.418, .0072, .992, .00085}})},
		{.50, stateCells([2][4]float64{{1, 0, .497, .0044}, {1.872, .0108, .937, .0021}})},
		{.75, stateCells([2][4]float64{{1, 0, .249, .0038}, {2.745, .0118, .681, .0044}})},
	} {
		for i, v := range variants {
			values := sample(t, seeds(3, 50), func(uint64) retryplan.Scenario {
				return stateless(row.failing, 1000, 100, v.attempts)
			}, loadAndSuccess)
			name := fmt.Sprintf("f=%.2f %s", row.failing, v.name)
			if i == 0 {
				c.exact(name+", load", values[0], 1)
			} else {
				c.mean(name+", load", values[0], row.cells[i].load)
			}
			c.mean(name+", success", values[1], row.cells[i].success)
		}
	}
}

// stateCells reads load, its sd, success rate and its sd. The reference has 5 runs, and three digits for most figures.
func stateCells(rows [2][4]float64) (cells [2]struct{ load, success figure }) {
	read := func(want, sd float64) figure {
		unit := 0.001
		if math.Abs(want-math.Round(want*1000)/1000) > 1e-9 {
			unit = 0.0001
		}
		return measured(want, 5, sd, unit)
	}
	for i, r := range rows {
		cells[i].load, cells[i].success = read(r[0], r[1]), read(r[2], r[3])
	}
	return cells
}
