package cli

import (
	"cmp"
	"fmt"
	"time"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"github.com/retrygo/retry/cmd/retryplan/internal/plots"
	"github.com/retrygo/retry/cmd/retryplan/internal/say"
	"github.com/retrygo/retry/retryplan"
)

func (a *app) simulateCommand() *cobra.Command {
	var (
		scenario retryplan.Scenario
		seeds    uint
		atOnce   bool
	)
	cmd := &cobra.Command{
		Use:   "simulate [POLICY]...",
		Short: "Run a fleet of clients against a model of a server",
		Long: `simulate runs a fleet of clients, attempt by attempt, against a model of a server, with the library's own decisions.
It prints the load, how runs ended, and whether the fleet came back from a trigger; --plot draws the time series, and
--json has it. The same --seed gives the same numbers, and several policies meet the same arrivals. --seeds 20 simulates
with --seed and the 19 seeds after it, and adds how many of the fleets recovered; all else is about the first.

Runs begin in an open loop (--rate) or all at once (--at-once). A server with --workers works on that many attempts at a time, for --service each,
and queues the others; without --workers it answers everything. A --trigger has a kind, a length, and a start:

  stall 10s at 60s              the server works on nothing
  outage 10s at 60s             it rejects every attempt
  slowdown 10s 3 at 60s         work takes three times as long
  capacity_cut 10s 0.5 at 60s   half of the workers or of the rate limit remains
  surge 10s 3 at 60s            three times as many runs begin
  failing 10s 0.5 at 60s        half of the attempts fail

For --fail-on, a fleet that does not come back from its triggers is a severe finding. Without --duration, the
simulation lasts until the last retries of what the triggers hit are over, and at least 4m: before that, whether a
fleet stays well is not known.

--hedge-delay or --hedge-share makes a second call beside an attempt that is slow, as package retryhedge does: compare
shows what that is worth.`,
		Example: `  retryplan simulate --attempts 4 --base 100ms --cap 10s --jitter full --attempt-timeout 1s --rate 70 --workers 1 --service 10ms --trigger "stall 10s at 60s" --duration 4m
  retryplan simulate policy.json --rate 70 --workers 1 --service 10ms --trigger "stall 5s at 20s" --duration 1m --budget
  retryplan simulate policy.json --at-once --clients 100 --rate-limit 20 --rate-window 100ms --trigger "outage 10s" --duration 60s --drain`,
		RunE: func(_ *cobra.Command, args []string) error {
			if seeds == 0 {
				return misusef("--seeds 0 is below 1")
			}
			found, err := a.policies(args)
			if err != nil {
				return err
			}
			if atOnce == (a.fleet.Rate != 0) {
				return misusef("give one of --rate and --at-once")
			}
			scenario.Clients, scenario.Deadline, scenario.Seed = a.setting.Clients, a.setting.Deadline, a.seed
			scenario.Rate, scenario.Server.Workers = a.fleet.Rate, a.fleet.Workers
			scenario.Server.Service = cmp.Or(scenario.Server.Service, a.setting.Duration)
			scenario.Server.FailureRate = a.fleet.Failure
			scenario.Budget, scenario.Shared, scenario.Hedge = a.fleet.Budget, a.fleet.Shared, a.setting.Hedge
			var stopped error
			for _, n := range found {
				scenario.Policy = n.policy
				s := scenario
				set(!a.given("duration"), &s.Duration, max(s.Duration, s.Horizon()))
				var results []retryplan.Result
				for ; len(results) < int(seeds) && err == nil; s.Seed++ {
					var r retryplan.Result
					// The result of an interrupted simulation counts if it is all that there is.
					if r, err = retryplan.Simulate(a.ctx, s); err == nil || len(results) == 0 && r.Simulated > 0 {
						results = append(results, r)
					}
				}
				if s.Seed = a.seed; err != nil && (a.ctx.Err() == nil || len(results) == 0) {
					return err
				}
				result := &results[0]
				a.runs = append(a.runs, plots.Run{Name: n.name, Result: *result, Triggers: s.Triggers})
				seen := tally{Seeds: len(results)}
				for _, r := range results {
					set(r.Judged, &seen.Judged, seen.Judged+1)
					set(r.Judged && r.Recovered, &seen.Recovered, seen.Recovered+1)
				}
				if ill := seen.Judged - seen.Recovered; ill > 0 && err == nil {
					a.note(retryplan.Severe, fmt.Sprintf("%s did not recover with %d of %d seeds", n.name, ill, len(results)))
				}
				a.show(n, shown{Scenario: scenario, Result: result, Seeds: seen}, func() {
					a.facts(say.Simulation(result, &s))
					if seeds > 1 {
						last := s.Seed + uint64(len(results)) - 1
						a.line("\nseeds %d to %d: %d of %d recovered", s.Seed, last, seen.Recovered, seen.Judged)
					}
				})
				if err != nil {
					stopped = fmt.Errorf("%s after %s of %s: %w", n.name, say.Span(result.Simulated), say.Span(s.Duration), err)
					break
				}
			}
			return a.finish(stopped)
		},
	}
	a.policyFlags(cmd.Flags())
	a.callerFlags(cmd.Flags())
	a.measuredFlags(cmd.Flags())
	a.scenarioFlags(cmd.Flags(), &scenario)
	cmd.Flags().BoolVar(&atOnce, "at-once", false, "every client begins one run, at the start")
	a.budgetFlags(cmd.Flags())
	cmd.Flags().BoolVar(&a.fleet.Shared, "shared", false, "let all clients share one budget")
	a.hedgeFlags(cmd.Flags())
	a.seedFlag(cmd.Flags())
	cmd.Flags().UintVar(&seeds, "seeds", 1, "number of seeds, from --seed on, to simulate with")
	a.failOnFlag(cmd.Flags())
	a.plotFlag(cmd.Flags())
	return cmd
}

// tally is with how many seeds a fleet recovered.
type tally struct{ Seeds, Judged, Recovered int }

// scenarioFlags adds the flags of how runs begin, of the server, and of the simulation.
func (a *app) scenarioFlags(flags *pflag.FlagSet, s *retryplan.Scenario) {
	flags.Float64Var(&a.fleet.Rate, "rate", 0, "runs that begin in a second")
	textVar(flags, &s.Network, "distribution", "network", "time of one hop between client and server")
	flags.IntVar(&a.fleet.Workers, "workers", 0, "number of attempts that the server works on at a time (default any number)")
	textVar(flags, &s.Server.Service, "distribution", "service", "how long it works on one")
	flags.IntVar(&s.Server.Queue, "queue", 0, "number of attempts that may wait for a worker, -1 for none (default any number)")
	flags.Float64Var(&a.fleet.Failure, "failure-rate", 0, "probability that an attempt fails after the server has worked on it")
	flags.IntVar(&s.Server.RateLimit, "rate-limit", 0, "number of attempts to accept in each window; the others are rejected")
	flags.DurationVar(&s.Server.RateWindow, "rate-window", 0, "window of --rate-limit (default 1s)")
	textVar(flags, &s.Server.RetryAfter, "distribution", "retry-after", "hint of a rejection")
	flags.Var(&funcFlag{"trigger", func(text string) error {
		t, err := say.ParseTrigger(text)
		set(t.Kind != 0, &s.Triggers, append(s.Triggers, t))
		return err
	}}, "trigger", `"stall 10s at 60s" and so on; can be repeated`)

	flags.DurationVar(&s.Duration, "duration", 4*time.Minute, "how long runs begin")
	flags.BoolVar(&s.Drain, "drain", false, "then go on until every run has ended")
	flags.DurationVar(&s.Step, "step", 0, "interval of the time series (default 1s)")
}
