package cli

import (
	"cmp"
	"fmt"
	"time"

	"github.com/schollz/progressbar/v3"
	"github.com/spf13/cobra"

	"github.com/retrygo/retry/cmd/retryplan/internal/plots"
	"github.com/retrygo/retry/cmd/retryplan/internal/say"
	"github.com/retrygo/retry/cmd/retryplan/internal/wire"
	"github.com/retrygo/retry/retryplan"
)

func (a *app) simulateCommand() *cobra.Command {
	var (
		flags policyFlags
		fleet scenarioFlags
		guard guard
		graph graph
		rows  int
		seeds int
		mixed mix
	)
	cmd := &cobra.Command{
		Use:   "simulate [POLICY]...",
		Short: "Run a fleet of clients against a model of a server",
		Long: `simulate runs a fleet of clients, attempt by attempt, against a model of a server, with the decisions that the library
itself would make, and prints what it saw: the load, how runs ended, whether the fleet came back from a trigger, and a time
series. The same --seed gives the same numbers; several policies meet the same arrivals. --seeds 20 simulates 20 times, with
--seed and those after it, and adds the median and the range of what they came to; all else is about the first.

Runs begin in an open loop (--rate), a closed one (--closed: each client has one run at a time, and thinks before each) or
all at once (--at-once). A server with --workers works on so many attempts at a time for --service each and queues the
others; one without answers everything. A trigger is its kind, when it begins and how long it lasts, and for some a factor:

  stall 60s 10s              the server works on nothing
  outage 60s 10s             it rejects every attempt
  slowdown 60s 10s 3         work takes three times as long
  capacity_cut 60s 10s 0.5   half of the workers, or of the rate limit, is there
  surge 60s 10s 3            three times as many runs begin (open loop)
  failing 60s 10s 0.5        half of the attempts fail

Interrupted, it prints what it has seen. A fleet that does not come back from its triggers is a severe finding for
--fail-on. Without --duration the simulation goes on until the last retries of what the triggers hit are over, and for 4m at
least: before that, whether a fleet stays well is not known. With --mix several policies are one fleet.`,
		Example: `  retryplan simulate --attempts 4 --base 100ms --cap 10s --jitter full --attempt-timeout 1s --rate 70 --workers 1 --service 10ms --trigger "stall 60s 10s" --duration 4m
  retryplan simulate policy.json --rate 70 --workers 1 --service 10ms --trigger "stall 20s 5s" --duration 1m --budget
  retryplan simulate policy.json --at-once --clients 100 --rate-limit 20 --rate-window 100ms --trigger "outage 0s 10s" --duration 60s --drain`,
		RunE: func(_ *cobra.Command, args []string) error {
			if rows < 0 {
				return misusef("--rows %d is below 0", rows)
			}
			if seeds < 1 {
				return misusef("--seeds %d is below 1", seeds)
			}
			found, err := a.policies(&flags, args)
			if err != nil {
				return err
			}
			if found, fleet.s.Others, err = mixed.of(found); err != nil {
				return err
			}
			if err := cmp.Or(graph.fits(len(found)), fleet.complete(a)); err != nil {
				return err
			}
			var runs []plots.Run
			var stopped error
			for _, n := range found {
				given := fleet.s
				given.Policy = n.policy
				s := given // as long as it takes
				if !a.given("duration") {
					s.Duration = max(s.Duration, s.Horizon())
				}
				results, err := a.simulateSeeds(n.name, s, seeds)
				if err != nil && (a.ctx.Err() == nil || len(results) == 0) {
					return err
				}
				result, spread := &results[0], newSpread(results)
				runs = append(runs, plots.Run{Name: n.name, Result: *result, Triggers: s.Triggers})
				if ill := spread.Judged - spread.Recovered; ill > 0 && err == nil {
					in := ""
					if seeds > 1 {
						in = fmt.Sprintf(" with %d of %d seeds", ill, spread.Seeds)
					}
					guard.note(retryplan.Severe, n.name+" did not recover"+in)
				}
				data := shown{Name: n.name, Scenario: wire.JSON(given), Result: wire.JSON(result), Interrupted: err != nil}
				if seeds > 1 {
					data.Spread = &spread
				}
				a.policy(n, data, func() {
					a.summary(result, &s)
					for i, p := range result.Populations {
						a.line("%s: %s of its %d runs succeeded", wire.OneLine(n.all()[i].name), say.Percent(ratio(p.Succeeded, p.Runs)), p.Runs)
					}
					a.line("")
					if seeds > 1 {
						a.spread(&spread, s.Seed)
						a.line("")
					}
					a.series(result, &s, rows)
				})
				if err != nil {
					stopped = fmt.Errorf("%s after %s of %s: %w", n.name, say.Span(result.Simulated), say.Span(s.Duration), err)
					break
				}
			}
			drawn := func() (*plots.Picture, error) { return plots.Simulation(runs...) }
			return cmp.Or(a.finish(), a.draw(&graph, drawn), stopped, guard.err())
		},
	}
	fleet.add(cmd.Flags())
	cmd.Flags().IntVar(&seeds, "seeds", 1, "simulate with so many seeds, from --seed on, and print their spread")
	cmd.Flags().IntVar(&rows, "rows", 24, "lines of the time series, 0 for one for each step")
	mixed.add(cmd.Flags())
	flags.add(cmd.Flags())
	guard.add(cmd.Flags(), "")
	graph.add(cmd.Flags())
	return cmd
}

// simulate calls retryplan.Simulate, and shows its progress if stderr is a terminal.
func (a *app) simulate(name string, s retryplan.Scenario) (retryplan.Result, error) {
	if a.Progress {
		const parts = 1000
		bar := progressbar.NewOptions(parts,
			progressbar.OptionSetWriter(a.err), progressbar.OptionSetDescription("simulating "+wire.OneLine(name)), progressbar.OptionSetWidth(30),
			progressbar.OptionThrottle(100*time.Millisecond), progressbar.OptionClearOnFinish(), progressbar.OptionSetPredictTime(true))
		defer func() { _ = bar.Finish() }()
		s.Progress = func(p retryplan.Progress) {
			// The bar stays near its end while the queue drains: how long that takes is not known.
			_ = bar.Set(int(min(float64(p.Simulated)/float64(s.Duration), 0.999) * parts))
		}
	}
	return retryplan.Simulate(a.ctx, s)
}
