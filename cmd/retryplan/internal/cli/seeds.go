package cli

import (
	"context"
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
func (a *app) simulateSeeds(ctx context.Context, name string, s retryplan.Scenario, seeds int) (results []retryplan.Result, err error) {
	for range seeds {
		r, err := a.simulate(ctx, name, s)
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
	of := func(value func(*retryplan.Result) (float64, bool)) figures {
		var all []float64
		for i := range results {
			if v, ok := value(&results[i]); ok {
				all = append(all, v)
			}
		}
		if len(all) == 0 {
			return figures{}
		}
		slices.Sort(all)
		median := (all[(len(all)-1)/2] + all[len(all)/2]) / 2
		return figures{&median, &all[0], &all[len(all)-1]}
	}
	latency := func(q float64) figures {
		return of(func(r *retryplan.Result) (float64, bool) {
			return r.Latency.Quantile(q).Seconds(), r.Latency.Count() > 0
		})
	}
	s := spread{
		Seeds:         len(results),
		Amplification: of(func(r *retryplan.Result) (float64, bool) { return r.Amplification, r.Runs > 0 }),
		Failed:        of(func(r *retryplan.Result) (float64, bool) { return r.Failed, r.Runs > 0 }),
		Wasted:        of(func(r *retryplan.Result) (float64, bool) { return ratio(r.Wasted, r.Attempts), r.Attempts > 0 }),
		Peak:          of(func(r *retryplan.Result) (float64, bool) { return float64(r.Peak), true }),
		LatencyP50:    latency(.5),
		LatencyP99:    latency(.99),
		RecoverySeconds: of(func(r *retryplan.Result) (float64, bool) {
			return r.Recovery.Seconds(), r.Judged && r.Recovered
		}),
	}
	for _, r := range results {
		if r.Judged {
			s.Judged++
		}
		if r.Judged && r.Recovered {
			s.Recovered++
		}
	}
	return s
}

// spread prints the figures of several seeds, the first of which is given.
func (a *app) spread(s *spread, first uint64) {
	a.line("%s, %d to %d: %s", plural(s.Seeds, "seed"), first, first+uint64(s.Seeds)-1, s.recovered())
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

// recovered says how many came back.
func (s *spread) recovered() string {
	if s.Judged == 0 {
		return "recovery is not judged"
	}
	return fmt.Sprintf("%d of %d recovered", s.Recovered, s.Judged)
}
