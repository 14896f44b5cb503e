package cli

import (
	"github.com/spf13/cobra"

	"github.com/retrygo/retry/cmd/retryplan/internal/say"
	"github.com/retrygo/retry/retryplan"
)

func (a *app) compareCommand() *cobra.Command {
	cmd := &cobra.Command{
		Use:   "compare POLICY POLICY...",
		Short: "Set policies side by side",
		Long: `compare prints a line of figures for each of two or more policies, such as the presets. Flags that change a
policy change all of them.

  success    the share of runs that succeed if --failure of the attempts fail, within --deadline
  load       the mean number of attempts per run then
  at most    the longest that a run takes
  back       with --rate and --capacity: the seeds in which the fleet comes back from --trigger, as simulate counts them
  median     the median time that it takes to come back, and worst the longest
  failed     the share of the runs of one seed that fail`,
		Example: `  retryplan compare policy.json preset:standard
  retryplan compare email@policies.json search@policies.json --failure 0.3
  retryplan compare policies.json --attempt-timeout 1s --rate 70 --capacity 100 --trigger "stall 10s"`,
		RunE: func(_ *cobra.Command, args []string) error {
			found, err := a.policies(args)
			if err != nil {
				return err
			}
			if len(found) < 2 {
				return misusef("give two policies or more, or a catalog")
			}
			set(!a.given("failure"), &a.model.Failure, []float64{0.1})
			a.model.Duration, a.model.Deadline = a.setting.Duration, a.setting.Deadline
			table := newGrid("-policy", "success", "load", "at most", "back", "median", "worst", "failed")
			for _, n := range found {
				p, err := retryplan.New(n.policy, a.model)
				if err != nil {
					return err
				}
				cells := []string{n.name, say.Percent(p.Success), say.Number(p.Load), say.Span(p.WorstCase), "", "", "", ""}
				if a.hasFleet() {
					q := a.question(n)
					v, err := a.judge(n.name, q)
					if err != nil {
						return err
					}
					r, err := retryplan.Simulate(a.ctx, q, v.Drawn)
					if err != nil {
						return err
					}
					a.report(n, lost(&v))
					cells[4] = say.Count(&v)
					cells[5], cells[6] = say.Times(&v)
					cells[7] = say.Percent(float64(r.Runs-r.Endings[0]) / float64(max(r.Runs, 1)))
				}
				table.row(cells...)
				a.title(n)
			}
			a.line("")
			a.print(table)
			return a.guard()
		},
	}
	a.policyFlags(cmd.Flags())
	a.failureFlag(cmd.Flags(), "0.1")
	a.callerFlags(cmd.Flags())
	textVar(cmd.Flags(), &a.setting.Duration, "distribution", "duration", "how long an attempt takes")
	a.fleetFlags(cmd.Flags())
	a.seedFlags(cmd.Flags())
	a.failOnFlag(cmd.Flags())
	return cmd
}
