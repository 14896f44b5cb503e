package cli

import (
	"cmp"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/retrygo/retry"
	"github.com/retrygo/retry/cmd/retryplan/internal/plots"
	"github.com/retrygo/retry/cmd/retryplan/internal/say"
	"github.com/retrygo/retry/retryplan"
)

func (a *app) compareCommand() *cobra.Command {
	cmd := &cobra.Command{
		Use:   "compare [POLICY]...",
		Short: "Set policies side by side",
		Long: `compare prints a line of figures for each of two or more policies. Without a POLICY it compares one attempt, two
attempts, and the presets, as a start for a policy of your own. Flags that change a policy change all of them.

  success    the share of runs that succeed if --failure of the attempts fail, within --deadline
  load       the mean number of attempts per run then
  at most    the longest that a run takes

With the flags of a fleet (--rate and --capacity), it adds

  back       the number of seeds in which the fleet comes back from --trigger, as simulate counts them; all policies
             meet the same arrivals
  median     the median time that it takes to come back
  worst      the longest of these seeds
  failed     the share of the runs of one seed that fail

--plot draws that seed, or without a fleet the schedules.`,
		Example: `  retryplan compare policy.json preset:standard
  retryplan compare email@policies.json search@policies.json --failure 0.3
  retryplan compare --failure 0.1 --attempt-timeout 1s --rate 70 --capacity 100
  retryplan compare policies.json --attempt-timeout 1s --rate 70 --capacity 100 --trigger "stall 10s"`,
		RunE: func(_ *cobra.Command, args []string) error {
			found, err := a.policies(args, schedules...)
			if err != nil {
				return err
			}
			if len(found) < 2 {
				return misusef("give two policies or more, a catalog, or none")
			}
			set(!a.given("failure"), &a.model.Failure, []float64{0.1})
			a.model.Duration, a.model.Deadline = a.setting.Duration, a.setting.Deadline
			table := newGrid("-policy", "success", "load", "at most", "back", "median", "worst", "failed")
			for _, n := range found {
				p, err := retryplan.New(n.policy, a.model)
				if err != nil {
					return err
				}
				a.plans = append(a.plans, plots.Plan{Name: n.name, Plan: p})
				findings := a.findings(n)
				data := shown{Name: n.name, Policy: n.policy, Plan: p, Findings: findings}
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
					a.runs = append(a.runs, plots.Run{Name: n.name, Result: r})
					data.Verdict, data.Simulation = v, r
					cells[4], cells[5], cells[6] = say.Count(&v), say.Median(&v), say.Worst(&v)
					cells[7] = say.Percent(float64(r.Runs-r.Endings[0]) / float64(max(r.Runs, 1)))
				}
				table.row(cells...)
				a.all = append(a.all, data)
				if !a.json && len(args) > 0 {
					a.title(n)
					a.line("  findings: %s", codes(findings))
				}
			}
			if !a.json {
				if len(args) > 0 {
					a.line("")
				}
				a.print(table)
			}
			return a.finish()
		},
	}
	a.policyFlags(cmd.Flags())
	a.failureFlag(cmd.Flags(), "0.1")
	a.settingFlags(cmd.Flags())
	a.fleetFlags(cmd.Flags())
	a.seedFlags(cmd.Flags())
	a.failOnFlag(cmd.Flags())
	a.plotFlag(cmd.Flags())
	return cmd
}

// schedules are compared if there is no POLICY: no retry, one, and the presets.
var schedules = []named{
	{name: "once", policy: retry.Policy{MaxAttempts: 1}},
	{name: "twice", policy: retry.Policy{MaxAttempts: 2, Backoff: retry.Backoff{Base: 100 * time.Millisecond, Jitter: retry.FullJitter}}},
	{name: "inline", policy: retry.Inline()},
	{name: "aggressive", policy: retry.Aggressive()},
	{name: "standard", policy: retry.Standard()},
	{name: "patient", policy: retry.Patient()},
	{name: "cautious", policy: retry.Cautious()},
}

// codes returns the codes of findings with their levels.
func codes(findings []finding) string {
	var all []string
	for _, f := range findings {
		all = append(all, f.Level.String()+" "+f.Code)
	}
	return cmp.Or(strings.Join(all, ", "), "none")
}
