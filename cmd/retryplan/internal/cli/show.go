package cli

import (
	"cmp"
	"strconv"

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
	Policy   wire.Policy    `json:"policy"`
	Plan     *wire.Plan     `json:"plan,omitempty"`
	Findings []wire.Finding `json:"findings"`
}

// policiesJSON is what commands print that take any number of policies.
type policiesJSON[T any] struct {
	Policies []T `json:"policies"`
}

func (a *app) showCommand() *cobra.Command {
	var (
		flags   policyFlags
		setting wire.Setting
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
		Args: cobra.ArbitraryArgs,
		RunE: func(cmd *cobra.Command, args []string) error {
			found, err := a.chosen(cmd, &flags, args, setting, &graph)
			if err != nil {
				return err
			}
			// The plan says when the deadline cuts the schedule; this schedule is the policy's own.
			var planned []plots.Plan
			for _, n := range found {
				var m retryplan.Model
				if n.policy.MaxAttempts == retry.Unlimited {
					m.Horizon = horizon
				}
				some, err := plan([]named{n}, m)
				if err != nil {
					return blame(err)
				}
				planned = append(planned, some...)
			}
			if err := a.showAll(found, planned, setting, &guard, a.schedule); err != nil {
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
func (a *app) chosen(cmd *cobra.Command, flags *policyFlags, args []string, setting wire.Setting, g *graph) ([]named, error) {
	if err := checked(g.validate(), checkSetting(setting)); err != nil {
		return nil, err
	}
	found, err := a.policies(cmd, flags, args)
	if err != nil {
		return nil, err
	}
	return found, g.fits(len(found))
}

// showAll prints each policy with what body prints of its plan, and its findings; or all of them as JSON.
func (a *app) showAll(found []named, planned []plots.Plan, setting wire.Setting, g *guard, body func(*retryplan.Plan)) error {
	var all []shown
	for i, n := range found {
		findings := retryplan.Lint(n.policy, setting.Setting())
		g.findings(n.name, findings)
		if a.json {
			one, err := newShown(n, planned[i].Plan, findings)
			if err != nil {
				return err
			}
			all = append(all, one)
			continue
		}
		if i > 0 {
			a.line("")
		}
		a.title(n)
		a.line("")
		body(planned[i].Plan)
		a.line("")
		a.showFindings(findings)
	}
	if a.json {
		return a.printJSON(policiesJSON[shown]{all})
	}
	return nil
}

func newShown(n named, p *retryplan.Plan, findings []retryplan.Finding) (shown, error) {
	policy, err := wire.NewPolicy(n.policy)
	if err != nil {
		return shown{}, err
	}
	one := shown{Name: n.name, Policy: policy, Findings: wire.NewFindings(findings)}
	if p != nil {
		plan := wire.NewPlan(p)
		one.Plan = &plan
	}
	return one, nil
}

// plan returns the plan of each policy.
func plan(found []named, m retryplan.Model) ([]plots.Plan, error) {
	var planned []plots.Plan
	for _, n := range found {
		p, err := retryplan.New(n.policy, m)
		if err != nil {
			return nil, err
		}
		planned = append(planned, plots.Plan{Name: n.name, Plan: p})
	}
	return planned, nil
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
	spread := false
	for _, at := range p.Attempts {
		spread = spread || at.Wait.Lo != at.Wait.Hi
	}
	g := newGrid("attempt", "starts after", "wait", "wait", "mean", "p50", "p90", "p99", "cannot start").words(8)
	for _, at := range p.Attempts {
		w := at.Wait
		cells := []string{strconv.Itoa(at.Number), say.Between(at.Earliest, at.Latest)}
		switch {
		case at.Number == 1:
			cells = append(cells, "", "", "", "", "", "")
		case spread:
			cells = append(cells, "", say.Between(w.Lo, w.Hi), say.Span(w.Mean), say.Span(w.P50), say.Span(w.P90), say.Span(w.P99))
		default:
			cells = append(cells, say.Span(w.Lo), "", "", "", "", "")
		}
		if at.Never != 0 {
			cells = append(cells, wire.Reason(at.Never))
			cells[1] = ""
		}
		g.row(cells...)
	}
	a.print(g)
	if p.Truncated {
		a.line("... and more attempts: the first %d are shown", len(p.Attempts))
	}
	switch {
	case p.Truncated:
		a.line("")
		a.wrapped("total wait of these  ", distribution(p.TotalWait), 2)
	case len(p.Attempts) > 1:
		a.line("")
		a.wrapped("total wait  ", distribution(p.TotalWait), 2)
	}
}

// distribution returns the figures of d on one line.
func distribution(d retryplan.Distribution) string {
	if d.Min() == d.Max() {
		return say.Span(d.Min())
	}
	return say.Between(d.Min(), d.Max()) + ", mean " + say.Span(d.Mean()) +
		", p50 " + say.Span(d.Quantile(.5)) + ", p90 " + say.Span(d.Quantile(.9)) + ", p99 " + say.Span(d.Quantile(.99))
}
