package cli

import (
	"slices"
	"strconv"
	"time"

	"github.com/spf13/cobra"

	"github.com/retrygo/retry/cmd/retryplan/internal/say"
	"github.com/retrygo/retry/retryplan"
)

func (a *app) showCommand() *cobra.Command {
	cmd := &cobra.Command{
		Use:   "show [POLICY]...",
		Short: "Show the schedule of a policy and its findings, and what becomes of a run",
		Long: `show prints the schedule of each policy: when each attempt starts at the earliest and at the latest if all fail at
once, and the wait before it with its spread. Findings follow, with what to change; more can be found if flags say where
the policy is used.

With --failure, or the metrics of --from, show computes what becomes of one run whose attempts fail with that
probability and take --duration. All digits that are shown are exact, except with decorrelated jitter, whose waits are
sampled. --failure 0.9,0.5,0.1 applies to attempts 1, 2 and 3, and the last one repeats.`,
		Example: `  retryplan show preset:standard
  retryplan show --attempts 4 --base 50ms --cap 1s --jitter full --inline --deadline 5s
  retryplan show policies.json --fail-on warning
  retryplan show policy.json --failure 0.9,0.5,0.1 --duration "lognormal 20ms 200ms" --deadline 10s`,
		RunE: func(_ *cobra.Command, args []string) error {
			found, err := a.policies(args)
			if err != nil {
				return err
			}
			odds := a.given("failure", "from")
			if odds { // otherwise the schedule is the policy's own, of which a deadline cuts nothing off
				set(!a.given("failure"), &a.model.Failure, []float64{a.fleet.Failure})
				a.model.Duration, a.model.Deadline = a.setting.Duration, a.setting.Deadline
			}
			for _, n := range found {
				p, err := retryplan.New(n.policy, a.model)
				if err != nil {
					return err
				}
				findings := a.findings(n)
				a.show(n, func() {
					a.attempts(p, odds)
					if odds {
						a.line("")
						a.facts(say.Plan(p, a.model.Deadline))
					} else if len(p.Attempts) > 1 {
						var f say.Facts
						f.Distribution("total wait", p.TotalWait)
						a.line("")
						a.facts(f)
					}
					a.showFindings(findings, true)
				})
			}
			return a.guard()
		},
	}
	a.policyFlags(cmd.Flags())
	a.failureFlag(cmd.Flags(), "1")
	a.settingFlags(cmd.Flags())
	a.measuredFlags(cmd.Flags())
	a.failOnFlag(cmd.Flags())
	return cmd
}

// attempts prints the attempts of p with the waits before them: with their odds, or with the spread of the waits.
func (a *app) attempts(p *retryplan.Plan, odds bool) {
	jittered := slices.ContainsFunc(p.Attempts, func(at retryplan.PlannedAttempt) bool { return at.Wait.Min() != at.Wait.Max() })
	g := newGrid("attempt", "starts after", "wait", "mean", "p50", "p90", "p99", "a run makes it", "succeeds with it", "-cannot start")
	rows := p.Attempts
	if p.Truncated {
		rows = rows[:20] // whose waits have reached the cap
	}
	for i, at := range rows {
		cells := make([]string, 10)
		cells[0] = strconv.Itoa(i + 1)
		if at.Never != 0 {
			cells[9] = say.Reason(at.Never)
		} else {
			cells[1] = say.Between(at.Earliest, at.Latest)
		}
		if i > 0 {
			cells[2] = say.Between(at.Wait.Min(), at.Wait.Max())
		}
		if odds {
			cells[7], cells[8] = say.Percent(at.Starts), say.Percent(at.Succeeds)
		} else if i > 0 && jittered {
			for j, d := range []time.Duration{at.Wait.Mean(), at.Wait.Quantile(.5), at.Wait.Quantile(.9), at.Wait.Quantile(.99)} {
				cells[3+j] = say.Span(d)
			}
		}
		g.row(cells...)
	}
	a.print(g)
	if p.Truncated {
		a.line("... and more attempts: figures are those of the first %d", len(p.Attempts))
	}
}
