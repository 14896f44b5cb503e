package retryplan_test

import (
	"fmt"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/retrygo/retry"
	"github.com/retrygo/retry/retryplan"
)

const (
	stallFrom = 60 // seconds
	stallFor  = 10
)

// stalledQueue is the canonical storm: a server that works on attempts one after the other, 10 ms each, whether their
// clients still wait or not, and stands still from 60 s to 70 s; clients that give an attempt up after 1 s and make
// four.
func stalledQueue(rate float64) retryplan.Scenario {
	return retryplan.Scenario{
		Policy:   retry.Policy{MaxAttempts: 4, AttemptTimeout: time.Second, Backoff: immediately},
		Rate:     rate,
		Server:   retryplan.Server{Workers: 1, Service: retryplan.Constant(10 * time.Millisecond)},
		Trigger:  retryplan.Trigger{Kind: retryplan.Stall, From: stallFrom * time.Second, For: stallFor * time.Second},
		Duration: 240 * time.Second,
	}
}

// recovery returns the first second after the trigger from which the goodput of every 5 s is at least 0.9 of the rate
// for 20 s, counted from the trigger's end at second end.
func recovery(r retryplan.Seen, rate float64, end int) float64 {
	for from := end; from+20 <= len(r.Series); from++ {
		good := true
		for i := from; i+5 <= from+20 && good; i++ {
			good = perSecond(r, i, i+5, func(p retryplan.Point) int { return p.Goodput }) >= float64(0.9*rate)
		}
		if good {
			return float64(from - end)
		}
	}
	return never
}

// queueFigures are goodput in [70,100) and [200,235), attempts a second in the latter, the time to recovery in seconds,
// and the share of all runs that failed.
func queueFigures(rate float64) func(retryplan.Seen) []float64 {
	return func(r retryplan.Seen) []float64 {
		goodput := func(p retryplan.Point) int { return p.Goodput }
		attempts := func(p retryplan.Point) int { return p.Attempts }
		failed := r.Runs - r.Unfinished - r.Endings[0]
		return []float64{
			perSecond(r, 70, 100, goodput), perSecond(r, 200, 235, goodput), perSecond(r, 200, 235, attempts),
			recovery(r, rate, stallFrom+stallFor), float64(failed) / float64(r.Runs),
		}
	}
}

// queueRow is a row of the reference's table, the sd of each mean in the second line.
type queueRow struct {
	name                                  string
	change                                func(*retryplan.Scenario)
	after, late, attempts, lo, hi, failed float64
	sd                                    [4]float64
}

// The goodput of 70 to 100 s and of 200 to 235 s, the attempts a second then, the recovery in s, and the share that failed.
func TestReferenceStalledQueue(t *testing.T) {
	const rate, reference = 70, 5
	c := comparison{t}
	for _, row := range []queueRow{
		{"no retry", func(s *retryplan.Scenario) { s.Policy.MaxAttempts = 1 },
			23.0, 69.5, 69.5, 17, 22, .125, [4]float64{3.5, 1.46, 1.46, .0085}},
		{"3 retries, immediate", func(*retryplan.Scenario) {},
			0, 0, 277, never, never, .734, [4]float64{0, 0, 5.9, .0028}},
		{"3 retries, full jitter .1..10 s", func(s *retryplan.Scenario) {
			s.Policy.Backoff = retry.Backoff{Base: 100 * time.Millisecond, Cap: 10 * time.Second, Jitter: retry.FullJitter}
		}, 0, 0, 277, never, never, .733, [4]float64{0, 0, 5.9, .0029}},
		{"bucket .1 per success, cap 10", func(s *retryplan.Scenario) {
			s.Budget = &retry.BudgetConfig{Ratio: .1, Burst: 10, Initial: 10}
		}, 22.3, 69.5, 69.5, 17, 23, .126, [4]float64{3.45, 1.46, 1.46, .0085}},
	} {
		values := sample(t, seeds(8, 60), func(uint64) retryplan.Scenario {
			s := stalledQueue(rate)
			row.change(&s)
			return s
		}, queueFigures(rate))
		c.mean(row.name+", goodput 70-100", values[0], measured(row.after, reference, row.sd[0], .1))
		c.mean(row.name+", goodput 200-235", values[1], measured(row.late, reference, row.sd[1], .1))
		unit := .1
		if row.attempts > 100 || row.attempts == 0 {
			unit = 1
		}
		c.mean(row.name+", attempts/s", values[2], measured(row.attempts, reference, row.sd[2], unit))
		c.spread(row.name+", recovery", values[3], 5, row.lo, row.hi, 1)
		c.mean(row.name+", failed", values[4], measured(row.failed, reference, row.sd[3], .001))
	}
}

// perSecond is the mean of the counts of f in the seconds [from, to) of a series with steps of a second.
func perSecond(r retryplan.Seen, from, to int, f func(retryplan.Point) int) float64 {
	n := 0
	for _, p := range r.Series[from:to] {
		n += f(p)
	}
	return float64(n) / float64(to-from)
}

// recoveries returns the time to recovery of n runs, in seconds, by the published criterion, a goodput of 0.9 of the rate
// of arrivals. Result.Recovery is never later. It can be sooner, since of 70 runs a second now and then fewer than 63
// begin in some 5 s, although nothing is wrong.
func recoveries(t *testing.T, n int, s func(uint64) retryplan.Scenario) []float64 {
	t.Helper()
	rate := s(0).Rate
	values := sample(t, n, s, func(r retryplan.Seen) []float64 {
		told := never
		if r.Recovered {
			told = r.Recovery.Seconds()
		}
		return []float64{told, recovery(r, rate, stallFrom+stallFor)}
	})
	for i, told := range values[0] {
		require.LessOrEqual(t, told, values[1][i])
	}
	return values[1]
}

// The time to recovery is (rate·(1+q)·stall + S − capacity·timeout)/(capacity − rate·(1+q)), for retries funded
// by a share q of the requests and S tokens stored in the whole fleet.
func TestReferenceRecovery(t *testing.T) {
	c := comparison{t}
	for _, row := range []struct {
		name       string
		rate, q, s float64
		lo, hi     float64
		change     func(*retryplan.Scenario)
	}{
		{"no retries", 70, 0, 0, 17, 22, func(s *retryplan.Scenario) { s.Policy.MaxAttempts = 1 }},
		{"100 clients of 10 tokens", 70, 0, 1000, 53, 59, func(s *retryplan.Scenario) {
			s.Clients, s.Budget = 100, &retry.BudgetConfig{Ratio: .1, Burst: 10, Initial: 10}
		}},
		{"100 clients of 5 tokens", 70, 0, 500, 34, 59, func(s *retryplan.Scenario) {
			s.Clients, s.Budget = 100, &retry.BudgetConfig{Ratio: .1, Burst: 5, Initial: 5}
		}},
	} {
		values := recoveries(t, seeds(8, 60), func(uint64) retryplan.Scenario {
			s := stalledQueue(row.rate)
			row.change(&s)
			return s
		})
		load := row.rate * (1 + row.q)
		law := (load*stallFor + row.s - 100*1) / (100 - load)
		c.spread(fmt.Sprintf("%s, by the formula %.1f", row.name, law), values, 5, row.lo, row.hi, 1)
	}
}

// A budget that successes fund delays the recovery by no more than its stored tokens.
func TestReferenceSuccessFundedBudget(t *testing.T) {
	c := comparison{t}
	for _, row := range []struct{ rate, lo, hi float64 }{{85, 53, 69}, {90, 69, 107}} {
		at := func(change func(*retryplan.Scenario)) []float64 {
			return recoveries(t, seeds(8, 60), func(uint64) retryplan.Scenario {
				s := stalledQueue(row.rate)
				change(&s)
				return s
			})
		}
		plain := at(func(s *retryplan.Scenario) { s.Policy.MaxAttempts = 1 })
		values := at(func(s *retryplan.Scenario) { s.Budget = &retry.BudgetConfig{Ratio: .2, Burst: 10, Initial: 10} })
		c.spread(fmt.Sprintf("%v/s", row.rate), values, 5, row.lo, row.hi, 1)
		for i := range values { // run by run, since a seed gives both the same arrivals
			values[i] -= plain[i]
		}
		c.spread(fmt.Sprintf("%v/s, later than no retry", row.rate), values, 5, 0, 5, 0)
	}
}
