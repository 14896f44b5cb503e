package web

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/retrygo/retry"
	"github.com/retrygo/retry/cmd/retryplan/internal/plots"
	"github.com/retrygo/retry/cmd/retryplan/internal/say"
	"github.com/retrygo/retry/retryplan"
)

const (
	// maxRuns is how many runs a simulation may begin. They take about a second, which is as long as a user waits for a
	// picture that follows a slider.
	maxRuns = 300_000
	// maxHeld is how many runs, attempts and events a simulation may keep: they take about 100 MiB while they grow.
	maxHeld = 1_000_000
	// seriesPoints is about how many intervals are drawn.
	seriesPoints = 200
)

// simulation is a fleet's simulation.
type simulation struct {
	Load  chart  `json:"load"`
	Queue chart  `json:"queue"`
	Note  string `json:"note"`
	Facts []fact `json:"facts"`
}

// Why a simulation ended before its time.
var (
	errLimit = errors.New("took too long")
	errHeld  = errors.New("needs too much memory")
)

// scenario returns the certificate's own scenario, with the failure rate of the page, and what is to be said of it.
func (q question) scenario() (s retryplan.Scenario, note string, err error) {
	s = q.fleet.Scenario(q.policy, 1)
	s.Server.FailureRate = q.model.Failure[0]
	var over time.Duration
	for _, t := range s.Triggers {
		over = t.End()
	}
	if runs := q.fleet.Rate * s.Duration.Seconds(); runs > maxRuns {
		short := time.Duration(maxRuns / q.fleet.Rate * float64(time.Second))
		if short < over+over/10 {
			return s, "", &retry.FieldError{Field: "Fleet.Rate", Value: say.Number(q.fleet.Rate), Rule: fmt.Sprintf(
				"runs a second for %s are more than the %d runs that this page simulates; retryplan simulate has no such limit",
				say.Span(s.Duration), maxRuns)}
		}
		note = fmt.Sprintf("Only the first %s of %s are simulated: this page stops at %d runs. ", say.Span(short), say.Span(s.Duration), maxRuns)
		s.Duration = short
	}
	s.Step = step(s.Duration)
	return s, note, nil
}

// simulated runs a scenario until ctx ends.
func simulated(ctx context.Context, s retryplan.Scenario, note string, z size) (simulation, error) {
	ctx, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	s.Progress = func(p retryplan.Progress) {
		if p.Held > maxHeld {
			cancel(errHeld)
		}
	}
	r, err := retryplan.Simulate(ctx, s)
	if errors.Is(err, errLimit) || errors.Is(err, errHeld) {
		note += fmt.Sprintf("The simulation %v and was ended after %s of %s: what is shown is partial. ", err, say.Span(r.Simulated), say.Span(s.Duration))
	} else if err != nil {
		return simulation{}, err
	}
	peak := 0
	for i, p := range r.Series {
		if p.Start+r.Step > r.Simulated { // whole intervals only: the rate of a begun one says nothing
			r.Series = r.Series[:i]
			break
		}
		peak = max(peak, p.Queue)
	}
	facts := []fact{
		{"Runs", fmt.Sprint(r.Runs)},
		{"Attempts per run", say.Number(r.Amplification)},
		{"Runs that failed", say.Percent(r.Failed)},
		{"Longest queue", fmt.Sprint(peak)},
		{"Work that no client waited for", fmt.Sprintf("%d attempts", r.Wasted)},
	}
	summary := fmt.Sprintf("Simulation of %s: %d runs, %s attempts per run, %s of the runs failed, longest queue %d.",
		say.Span(r.Simulated), r.Runs, say.Number(r.Amplification), say.Percent(r.Failed), peak)
	for _, t := range s.Triggers { // one, or none
		back := recovery(r)
		facts = slices.Insert(facts, 0, fact{"Back after the trigger", back})
		summary += fmt.Sprintf(" The trigger lasts from %s to %s; back after it: %s.", say.Span(t.From), say.Span(t.End()), back)
	}
	if r.Latency.Count() > 0 {
		facts = append(facts, fact{"99 % of successes within", say.Span(r.Latency.Quantile(.99))})
	}
	picture, err := plots.Simulation(plots.Run{Result: r, Triggers: s.Triggers})
	if err != nil {
		return simulation{}, err
	}
	low := size{z.width, min(z.most, 170)}
	return simulation{newChart(picture, 0, z, summary), newChart(picture, 1, low, "Queue. "+summary), note, facts}, nil
}

// step returns an interval that divides d into about seriesPoints, a round one.
func step(d time.Duration) time.Duration {
	for unit := time.Millisecond; ; unit *= 10 {
		for _, n := range []time.Duration{1, 2, 5} {
			if n*unit*seriesPoints >= d {
				return n * unit
			}
		}
	}
}

func recovery(r retryplan.Result) string {
	switch {
	case !r.Judged:
		return "not known: the simulation ends before the last retries of what the trigger hit"
	case r.Recovered:
		return "after " + say.Span(r.Recovery)
	}
	return "not within the simulation"
}
