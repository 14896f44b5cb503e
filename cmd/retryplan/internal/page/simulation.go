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
	Load, Queue chart
	Note        string
	Facts       say.Facts
	Outcome     string // one of outcomes, or empty if it is not known
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
	facts, outcome := say.Simulation(&r, &s), ""
	summary := "Simulation."
	for _, f := range facts {
		summary += " " + f.Name + ": " + f.Figure + f.More + "."
	}
	if r.Judged {
		outcome = outcomes[r.Recovered]
	}
	picture := plots.Simulation(plots.Run{Result: r, Triggers: s.Triggers})
	low := Size{z.Width, min(z.Most, 170)}
	return simulation{chart{z.part(picture, 0), summary}, chart{low.part(picture, 1), "Queue. " + summary}, note, facts, outcome}, nil
}
