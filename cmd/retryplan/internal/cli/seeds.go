package cli

import (
	"fmt"
	"math"
	"slices"
	"time"

	"github.com/retrygo/retry/cmd/retryplan/internal/say"
	"github.com/retrygo/retry/retryplan"
)

// spread is what simulations that differ in their seed alone came to.
type spread struct {
	Seeds           int     `json:"seeds"`
	Judged          int     `json:"judged"`
	Recovered       int     `json:"recovered"`
	Amplification   figures `json:"amplification"`
	Failed          figures `json:"failed"`
	Wasted          figures `json:"wasted"`
	Peak            figures `json:"peak"`
	LatencyP50      figures `json:"latency_p50_seconds"`
	LatencyP99      figures `json:"latency_p99_seconds"`
	RecoverySeconds figures `json:"recovery_seconds"` // of those that recovered
}

// figures are the median and the range of one figure; null if there is none.
type figures struct {
	Median *float64 `json:"median"`
	Least  *float64 `json:"least"`
	Most   *float64 `json:"most"`
}

// simulateSeeds simulates s with so many seeds from s.Seed on and returns what each came to. An error is about the last
// of them, which is not among the results unless it is the first.
func (a *app) simulateSeeds(name string, s retryplan.Scenario, seeds int) (results []retryplan.Result, err error) {
	for range seeds {
		r, err := a.simulate(name, s)
		if err == nil || len(results) == 0 && r.Simulated > 0 {
			results = append(results, r)
		}
		if err != nil {
			return results, err
		}
		s.Seed++
	}
	return results, nil
}

func newSpread(results []retryplan.Result) spread {
	s := spread{Seeds: len(results)}
	all := map[*figures][]float64{}
	for _, r := range results {
		note := func(to *figures, value float64, known bool) {
			if known {
				all[to] = append(all[to], value)
			}
		}
		note(&s.Amplification, r.Amplification, r.Runs > 0)
		note(&s.Failed, r.Failed, r.Runs > 0)
		note(&s.Wasted, ratio(r.Wasted, r.Attempts), r.Attempts > 0)
		note(&s.Peak, float64(r.Peak), true)
		note(&s.LatencyP50, r.Latency.Quantile(.5).Seconds(), r.Latency.Count() > 0)
		note(&s.LatencyP99, r.Latency.Quantile(.99).Seconds(), r.Latency.Count() > 0)
		note(&s.RecoverySeconds, r.Recovery.Seconds(), r.Judged && r.Recovered)
		if r.Judged {
			s.Judged++
		}
		if r.Judged && r.Recovered {
			s.Recovered++
		}
	}
	for to, values := range all {
		slices.Sort(values)
		median := (values[(len(values)-1)/2] + values[len(values)/2]) / 2
		*to = figures{&median, &values[0], &values[len(values)-1]}
	}
	return s
}

// spread prints the figures of several seeds, the first of which is given.
func (a *app) spread(s *spread, first uint64) {
	recovered := "recovery is not judged"
	if s.Judged > 0 {
		recovered = fmt.Sprintf("%d of %d recovered", s.Recovered, s.Judged)
	}
	a.line("%s, %d to %d: %s", plural(s.Seeds, "seed"), first, first+uint64(s.Seeds)-1, recovered)
	g := newGrid("", "median", "least", "most").words(0)
	row := func(what string, f figures, text func(float64) string) {
		if f.Median != nil {
			g.row(what, text(*f.Median), text(*f.Least), text(*f.Most))
		}
	}
	duration := func(seconds float64) string {
		return say.Span(time.Duration(math.Round(seconds * float64(time.Second))))
	}
	row("attempts per run", s.Amplification, say.Number)
	row("failed", s.Failed, say.Percent)
	row("wasted", s.Wasted, say.Percent)
	row("peak", s.Peak, say.Number)
	row("success takes, p50", s.LatencyP50, duration)
	row("success takes, p99", s.LatencyP99, duration)
	row("recovery", s.RecoverySeconds, duration)
	a.print(g)
}
