package retryplan_test

import (
	"fmt"
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
	return []float64{float64(r.Attempts) / float64(r.Runs), float64(r.Endings[0]) / float64(r.Runs-r.Unfinished)}
}

// The load amplification and the success rate of 100 clients that make 10 runs a second each, with the sd of each figure
// in 5 runs.
func TestReferenceStatelessFailures(t *testing.T) {
	c := comparison{t}
	for _, row := range []struct {
		failing                          float64
		attempts                         int
		load, loadSD, success, successSD float64
		unit                             float64 // of the last digit of the success rate
	}{
		{.01, 1, 1, 0, .990, .0009, .001},
		{.01, 4, 1.010, .00095, 1, 0, .001},
		{.10, 1, 1, 0, .900, .0032, .001},
		{.10, 4, 1.111, .0036, .9999, .00009, .0001},
		{.30, 1, 1, 0, .696, .0043, .001},
		{.30, 4, 1.418, .0072, .992, .00085, .001},
		{.50, 1, 1, 0, .497, .0044, .001},
		{.50, 4, 1.872, .0108, .937, .0021, .001},
		{.75, 1, 1, 0, .249, .0038, .001},
		{.75, 4, 2.745, .0118, .681, .0044, .001},
	} {
		values := sample(t, seeds(3, 50), func(uint64) retryplan.Scenario {
			return stateless(row.failing, 1000, 100, row.attempts)
		}, loadAndSuccess)
		name := fmt.Sprintf("f=%.2f, %d attempts", row.failing, row.attempts)
		c.mean(name+", load", values[0], measured(row.load, 5, row.loadSD, .001))
		c.mean(name+", success", values[1], measured(row.success, 5, row.successSD, row.unit))
	}
}
