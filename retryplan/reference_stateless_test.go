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
// unlimited capacity that fails attempts at random, and retries without backoff. Each hop takes an exponential time of
// mean 10 ms.
func stateless(failing, rate float64, clients, attempts int, throttle func() retryplan.Throttle) retryplan.Scenario {
	s := retryplan.Scenario{
		Policy:   retry.Policy{MaxAttempts: attempts},
		Delay:    immediately,
		Clients:  clients,
		Arrivals: retryplan.Arrivals{Rate: rate},
		Network:  retryplan.Exponential(10 * time.Millisecond),
		Server:   retryplan.Server{FailureRate: failing},
		Duration: 10 * time.Second,
		Drain:    true,
	}
	retryplan.SetThrottle(&s, throttle)
	return s
}

// loadAndSuccess are attempts per run, and the share of the runs that succeed.
func loadAndSuccess(r retryplan.Result) []float64 {
	return []float64{r.Amplification, 1 - r.Failed}
}

func TestReferenceStatelessFailures(t *testing.T) {
	// The bucket alone bounds its retries: there is no limit of attempts beside it.
	variants := []struct {
		name     string
		attempts int
		throttle func() retryplan.Throttle
	}{
		{"none", 1, nil},
		{"3 retries", 4, nil},
		{"bucket .1/5", retry.Unlimited, newBrookerBucket},
		{"breaker 10%", 4, func() retryplan.Throttle { return &failureShare{share: 0.1} }},
	}
	c := compare(t, "Stateless failures: load amplification and success rate, 100 clients of 10 runs a second")
	for _, row := range []struct {
		failing float64
		cells   [4]struct{ load, success figure }
	}{
		{.01, stateCells([4][4]float64{{1, 0, .990, .0009}, {1.010, .00095, 1, 0}, {1.010, .00095, 1, 0}, {1.009, .00086, .999, .00038}})},
		{.10, stateCells([4][4]float64{{1, 0, .900, .0032}, {1.111, .0036, .9999, .00009}, {1.101, .0025, .9915, .0015}, {1.030, .0028, .924, .0052}})},
		{.30, stateCells([4][4]float64{{1, 0, .696, .0043}, {1.418, .0072, .992, .00085}, {1.140, .0006, .796, .0047}, {1.001, .00026, .700, .0044}})},
		{.50, stateCells([4][4]float64{{1, 0, .497, .0044}, {1.872, .0108, .937, .0021}, {1.142, .0006, .572, .0051}, {1.000, .00006, .498, .0044}})},
		{.75, stateCells([4][4]float64{{1, 0, .249, .0038}, {2.745, .0118, .681, .0044}, {1.143, .0006, .283, .0040}, {1.000, 0, .249, .0038}})},
	} {
		for i, v := range variants {
			values := sample(t, seeds(3, 50), func(uint64) retryplan.Scenario {
				return stateless(row.failing, 1000, 100, v.attempts, v.throttle)
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
	c.done()
}

// stateCells reads load, its sd, success rate and its sd. The reference has 5 runs, and three digits for most figures.
func stateCells(rows [4][4]float64) (cells [4]struct{ load, success figure }) {
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

// A bucket and the samples of a breaker belong to one process: the more clients share the same load, the less they
// protect. The reference's clients begin with a call at once, so that each makes one call more than its rate says.
func TestReferenceProtectionIsPerClient(t *testing.T) {
	c := compare(t, "100 runs a second over more and more clients, half of the attempts fail: load amplification")
	for _, row := range []struct {
		clients int
		bucket  figure
	}{
		{10, measured(1.142, 5, .0019, .001)},
		{100, measured(1.459, 5, .013, .001)},
		{1000, measured(1.902, 5, .023, .001)},
	} {
		values := sample(t, seeds(10, 100), func(seed uint64) retryplan.Scenario {
			s := stateless(.5, 100, row.clients, retry.Unlimited, nil)
			s.Arrivals = retryplan.Arrivals{Closed: true}
			s.Drain = false
			gap := time.Duration(row.clients) * 10 * time.Millisecond
			retryplan.SetThrottle(&s, paced(seed, gap, newBrookerBucket))
			return s
		}, func(r retryplan.Result) []float64 {
			// Each client has a run that waits for its time to begin.
			waiting := r.Series[len(r.Series)-1].Waiting
			return []float64{float64(r.Attempts) / float64(r.Runs-waiting)}
		})
		c.mean(fmt.Sprintf("bucket, %d clients", row.clients), values[0], row.bucket)
	}
	c.done()
}

// Backoff takes load off a server only if the number of runs under way is bounded. The reference does not say what its
// serial clients do; its figures are those of clients that begin a call in exponential gaps of 100 ms, or as soon as
// the one before has ended, and of waits of 100, 200 and 400 ms.
func TestReferenceClosedLoop(t *testing.T) {
	doubling := func(attempt int, _ time.Duration, _ float64) time.Duration {
		return 100 * time.Millisecond << (attempt - 1)
	}
	c := compare(t, "Open and closed loop, half of the attempts fail, 3 retries: attempts a second")
	for _, row := range []struct {
		name   string
		delay  func(int, time.Duration, float64) time.Duration
		serial bool
		want   figure
	}{
		{"unbounded", immediately, false, measured(1885, 5, 23, 1)},
		{"unbounded, 100 ms doubling", doubling, false, measured(1891, 5, 23, 1)},
		{"serial clients", immediately, true, measured(1735, 5, 19, 1)},
		{"serial clients, 100 ms doubling", doubling, true, measured(813, 5, 6, 1)},
	} {
		values := sample(t, seeds(10, 100), func(seed uint64) retryplan.Scenario {
			s := stateless(.5, 1000, 100, 4, nil)
			s.Delay = row.delay
			if row.serial {
				s.Arrivals = retryplan.Arrivals{Closed: true}
				retryplan.SetThrottle(&s, paced(seed, 100*time.Millisecond, func() retryplan.Throttle { return free{} }))
			}
			return s
		}, func(r retryplan.Result) []float64 {
			return []float64{perSecond(r, 0, 10, func(p retryplan.Point) int { return p.Attempts }), r.Amplification}
		})
		c.mean(row.name, values[0], row.want)
		c.mean(row.name+", amplification", values[1], measured(1.87, 5, .0115, .01))
	}
	c.done()
}
