package cli

import (
	"cmp"
	"slices"
	"strconv"
	"time"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"github.com/retrygo/retry"
	"github.com/retrygo/retry/cmd/retryplan/internal/plots"
	"github.com/retrygo/retry/cmd/retryplan/internal/say"
	"github.com/retrygo/retry/cmd/retryplan/internal/wire"
	"github.com/retrygo/retry/retryplan"
)

// planning is what show and plan have in common.
type planning struct {
	flags   policyFlags
	setting retryplan.Setting
	guard   guard
	graph   graph
}

func (p *planning) add(flags *pflag.FlagSet) {
	p.flags.add(flags)
	settingFlags(flags, &p.setting)
	p.guard.add(flags, "")
	p.graph.add(flags)
}

// run prints each policy with what body prints of its plan, and its findings, and draws a picture of all.
func (p *planning) run(
	a *app, args []string, model func(retry.Policy) retryplan.Model, body func(*retryplan.Plan), picture func(...plots.Plan) (*plots.Picture, error),
) error {
	found, err := a.chosen(&p.flags, args, p.setting, &p.graph)
	if err != nil {
		return err
	}
	var plans []plots.Plan
	for _, n := range found {
		plan, err := retryplan.New(n.policy, model(n.policy))
		if err != nil {
			return err
		}
		plans = append(plans, plots.Plan{Name: n.name, Plan: plan})
		findings := retryplan.Lint(n.policy, p.setting)
		p.guard.findings(n.name, findings)
		data := shown{Name: n.name, Policy: wire.Policy(n.policy), Plan: wire.JSON(plan), Findings: wire.NewFindings(findings)}
		a.policy(n, data, func() {
			body(plan)
			a.line("")
			a.showFindings(findings)
		})
	}
	return cmp.Or(a.finish(), a.draw(&p.graph, func() (*plots.Picture, error) { return picture(plans...) }), p.guard.err())
}

func (a *app) showCommand() *cobra.Command {
	var p planning
	cmd := &cobra.Command{
		Use:   "show [POLICY]...",
		Short: "Show the schedule of a policy, and what is wrong with it",
		Long: `show prints the schedule of each policy: when each attempt starts at the earliest and latest if all fail at once, and
the wait before it with its spread; the total wait, worst case and exact quantiles; and findings, with what to change.
Say where the policy is used (--inline, --deadline, --layers, --clients, --duration) to find more.`,
		Example: `  retryplan show --preset standard
  retryplan show policy.json
  retryplan show email@policies.json --attempts 6
  retryplan show --attempts 4 --base 50ms --cap 1s --jitter full --inline --deadline 5s
  retryplan show policies.json --fail-on warning`,
		RunE: func(_ *cobra.Command, args []string) error {
			// The plan says when the deadline cuts the schedule; this schedule is the policy's own.
			model := func(p retry.Policy) (m retryplan.Model) {
				set(p.MaxAttempts == retry.Unlimited, &m.Horizon, horizon)
				return m
			}
			return p.run(a, args, model, a.schedule, plots.Plans)
		},
	}
	p.add(cmd.Flags())
	return cmd
}

// horizon is how many attempts show prints of a policy that has no last one: by then its waits have reached their cap.
const horizon = 20

// chosen returns the policies that a command is about, once its setting is checked and its picture has room for them.
func (a *app) chosen(flags *policyFlags, args []string, setting retryplan.Setting, g *graph) ([]named, error) {
	if err := checkSetting(setting); err != nil {
		return nil, err
	}
	found, err := a.policies(flags, args)
	if err != nil {
		return nil, err
	}
	return found, g.fits(len(found))
}

// title prints the policy on one line.
func (a *app) title(n named) {
	share := ""
	if n.share > 0 {
		share = say.Percent(n.share) + " "
	}
	a.wrapped("", share+n.name+": "+wire.Schedule(n.policy), 2)
	if hint := n.policy.MaxHint; hint > 0 {
		a.line("longest hint that is obeyed: %s", say.Span(hint))
	}
	for _, o := range n.others {
		a.title(o)
	}
}

// schedule prints the attempts of p with the waits before them, and the total wait.
func (a *app) schedule(p *retryplan.Plan) {
	spread := slices.ContainsFunc(p.Attempts, func(at retryplan.PlannedAttempt) bool { return at.Wait.Lo != at.Wait.Hi })
	g := newGrid("attempt", "starts after", "wait", "mean", "p50", "p90", "p99", "cannot start").words(7)
	for _, at := range p.Attempts {
		cells := make([]string, 8)
		cells[0] = strconv.Itoa(at.Number)
		if at.Never != 0 {
			cells[7] = wire.Reason(at.Never)
		} else {
			cells[1] = say.Between(at.Earliest, at.Latest)
		}
		if at.Number > 1 {
			cells[2] = say.Between(at.Wait.Lo, at.Wait.Hi)
		}
		if at.Number > 1 && spread {
			for i, d := range []time.Duration{at.Wait.Mean, at.Wait.P50, at.Wait.P90, at.Wait.P99} {
				cells[3+i] = say.Span(d)
			}
		}
		g.row(cells...)
	}
	a.print(g)
	label := "total wait  "
	if p.Truncated {
		a.line("... and more attempts: the first %d are shown", len(p.Attempts))
		label = "total wait of these  "
	}
	if len(p.Attempts) > 1 {
		a.line("")
		a.wrapped(label, distribution(p.TotalWait), 2)
	}
}

// distribution returns the figures of d on one line.
func distribution(d retryplan.Distribution) string {
	if d.Min() == d.Max() {
		return say.Span(d.Min())
	}
	return say.Between(d.Min(), d.Max()) + ", mean " + say.Span(d.Mean()) + ", " + quantiles(d)
}

// quantiles returns some quantiles on one line.
func quantiles(d interface{ Quantile(q float64) time.Duration }) string {
	return "p50 " + say.Span(d.Quantile(.5)) + ", p90 " + say.Span(d.Quantile(.9)) + ", p99 " + say.Span(d.Quantile(.99))
}
