package page

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/retrygo/retry/cmd/retryplan/internal/plots"
	"github.com/retrygo/retry/cmd/retryplan/internal/say"
	"github.com/retrygo/retry/retryplan"
)

const (
	// maxEvents is the number of events that a simulation may have. They take about a second, which is as long as a user
	// should wait for a picture that follows a slider.
	maxEvents = 4_000_000
	// maxHeld is the number of runs, attempts and events that a simulation may keep. They take about 100 MiB as they grow.
	maxHeld = 1_000_000
)

// simulation is a fleet's simulation.
type simulation struct {
	Load  chart  `json:"load"`
	Queue chart  `json:"queue"`
	Note  string `json:"note"`
	Facts []fact `json:"facts"`
	// Outcome is one of outcomes, or empty if it is not known.
	Outcome string `json:"outcome"`
}

// outcomes say whether the fleet came back.
var outcomes = map[bool]string{true: "back", false: "lost"}

// Why a simulation ended early.
var (
	errLimit = errors.New("took too long")
	errLarge = errors.New("is too large for this page")
)

// simulated runs a scenario until ctx is done or a limit is reached.
func simulated(ctx context.Context, s retryplan.Scenario, z Size, pause func()) (simulation, error) {
	ctx, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	s.Progress = func(_ time.Duration, events uint64, held int) {
		if held > maxHeld || events > maxEvents {
			cancel(errLarge)
		}
		if pause != nil {
			pause()
		}
	}
	note := ""
	r, err := retryplan.Simulate(ctx, s)
	if errors.Is(err, errLimit) || errors.Is(err, errLarge) {
		note = fmt.Sprintf("The simulation %v and was ended after %s of %s: what is shown is partial.", err, say.Span(r.Simulated), say.Span(s.Duration))
	} else if err != nil {
		return simulation{}, err
	}
	// The figures of an interval that was cut short would look like a fall.
	r.Series = slices.DeleteFunc(r.Series, func(p retryplan.Point) bool { return p.Start+r.Step > r.Simulated })
	peak := 0
	for _, p := range r.Series {
		peak = max(peak, p.Queue)
	}
	facts := []fact{
		{"Runs", fmt.Sprint(r.Runs), ""},
		{"Attempts per run", say.Number(r.Amplification), ""},
		{"Runs that failed", say.Percent(r.Failed), ""},
		{"Longest queue", fmt.Sprint(peak), ""},
		{"Work that no client waited for", fmt.Sprintf("%d attempts", r.Wasted), ""},
	}
	summary := fmt.Sprintf("Simulation of %s: %d runs, %s attempts per run, %s of the runs failed, longest queue %d.",
		say.Span(r.Simulated), r.Runs, say.Number(r.Amplification), say.Percent(r.Failed), peak)
	for _, t := range s.Triggers { // one, or none
		back := recovery(r)
		facts = slices.Insert(facts, 0, fact{"Back after the trigger", back, ""})
		summary += fmt.Sprintf(" The trigger lasts from %s to %s; back after it: %s.", say.Span(t.From), say.Span(t.End()), back)
	}
	outcome := ""
	if r.Judged {
		outcome = outcomes[r.Recovered]
	}
	if r.Endings[0] > 0 {
		facts = append(facts, fact{"99 % of successes within", say.Span(r.Latency.Quantile(.99)), ""})
	}
	picture := plots.Simulation(plots.Run{Result: r, Triggers: s.Triggers})
	low := Size{z.Width, min(z.Most, 170)}
	return simulation{chart{z.part(picture, 0), summary}, chart{low.part(picture, 1), "Queue. " + summary}, note, facts, outcome}, nil
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
