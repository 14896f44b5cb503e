package cli

import (
	"cmp"
	"slices"
	"strconv"
	"time"

	"github.com/spf13/cobra"

	"github.com/retrygo/retry"
	"github.com/retrygo/retry/cmd/retryplan/internal/plots"
	"github.com/retrygo/retry/cmd/retryplan/internal/say"
	"github.com/retrygo/retry/cmd/retryplan/internal/wire"
	"github.com/retrygo/retry/retryplan"
)

// shown is what --json prints of one policy.
type shown struct {
	Name     string         `json:"name"` // as the output calls it
	Policy   any            `json:"policy"`
	Plan     any            `json:"plan,omitempty"`
	Findings []wire.Finding `json:"findings"`
}

func (a *app) showCommand() *cobra.Command {
	var (
		flags   policyFlags
		setting retryplan.Setting
		guard   guard
		graph   graph
	)
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
			found, err := a.chosen(&flags, args, setting, &graph)
			if err != nil {
				return err
			}
			// The plan says when the deadline cuts the schedule; this schedule is the policy's own.
			model := func(p retry.Policy) (m retryplan.Model) {
				if p.MaxAttempts == retry.Unlimited {
					m.Horizon = horizon
				}
				return m
			}
			planned, err := a.planned(found, setting, model, &guard, a.schedule)
			if err != nil {
				return err
			}
			return cmp.Or(a.draw(&graph, func() (*plots.Picture, error) { return plots.Plans(planned...) }), guard.err())
		},
	}
	flags.add(cmd.Flags())
	settingFlags(cmd.Flags(), &setting)
	guard.add(cmd.Flags(), "")
	graph.add(cmd.Flags())
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

// planned prints each policy with what body prints of its plan, and its findings, and returns the plans.
func (a *app) planned(
	found []named, setting retryplan.Setting, model func(retry.Policy) retryplan.Model, g *guard, body func(*retryplan.Plan),
) (all []plots.Plan, err error) {
	for _, n := range found {
		p, err := retryplan.New(n.policy, model(n.policy))
		if err != nil {
			return nil, err
		}
		findings := retryplan.Lint(n.policy, setting)
		g.findings(n.name, findings)
		a.policy(n, shown{n.name, wire.Policy(n.policy), wire.JSON(p), wire.NewFindings(findings)}, func() {
			body(p)
			a.line("")
			a.showFindings(findings)
		})
		all = append(all, plots.Plan{Name: n.name, Plan: p})
	}
	return all, a.finish()
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
