package cli

import (
	"cmp"
	"errors"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/retrygo/retry"
	"github.com/retrygo/retry/cmd/retryplan/internal/plots"
	"github.com/retrygo/retry/cmd/retryplan/internal/say"
	"github.com/retrygo/retry/cmd/retryplan/internal/wire"
	"github.com/retrygo/retry/retryplan"
)

// compared is what --json prints of one policy.
type compared struct {
	shown
	Certificate *wire.Certificate `json:"certificate,omitempty"`
	Simulation  *wire.Result      `json:"simulation,omitempty"`
}

// comparison is one policy with all that is said of it.
type comparison struct {
	named
	plan        *retryplan.Plan // at the failure rate of --failure
	findings    []retryplan.Finding
	certificate *retryplan.Certificate
	result      *retryplan.Result
}

func (a *app) compareCommand() *cobra.Command {
	var (
		flags   policyFlags
		setting wire.Setting
		model   = wire.Model{Failure: []float64{0.1}}
		fleet   fleetFlags
		guard   guard
		graph   graph
		seed    uint64
	)
	cmd := &cobra.Command{
		Use:   "compare POLICY POLICY...",
		Short: "Set policies side by side",
		Long: `compare prints the waits, totals, success, load and findings of two or more policies beside each other; with the flags of
a fleet (--rate and --capacity), also their certificates and what a simulation of the fleet came to, in which all meet the
same arrivals. Flags of a policy change all of them. --plot draws the schedules.`,
		Example: `  retryplan compare policy.json preset:standard
  retryplan compare email@policies.json search@policies.json --failure 0.3
  retryplan compare policies.json --attempt-timeout 1s --rate 70 --capacity 100 --trigger "stall 10s"`,
		Args: func(_ *cobra.Command, args []string) error {
			if len(args) == 0 {
				return errors.New("give two policies or more, or a catalog: there is nothing to compare")
			}
			return nil
		},
		RunE: func(cmd *cobra.Command, args []string) error {
			found, err := a.chosen(cmd, &flags, args, setting, &graph)
			if err != nil {
				return err
			}
			if len(found) < 2 {
				return misusef("%s is one policy: there is nothing to compare it with", args[0])
			}
			model.Duration, model.Deadline = setting.Duration, setting.Deadline
			var f *retryplan.Fleet
			if fleet.given(cmd) {
				fleet.fleet.Clients, fleet.fleet.Deadline = setting.Clients, setting.Deadline
				got, err := fleet.get(a, cmd)
				if err != nil {
					return err
				}
				f = &got
			}
			planned, err := plan(found, model.Model())
			if err != nil {
				return blame(err)
			}
			all := make([]comparison, len(found))
			var stopped, disagree error
			for i, n := range found {
				all[i] = comparison{named: n, plan: planned[i].Plan, findings: retryplan.Lint(funded(n.policy, fleet.fleet.Budget.Config()), setting.Setting())}
				guard.findings(n.name, all[i].findings)
				if f == nil || stopped != nil {
					continue
				}
				c, err := retryplan.Certify(n.policy, *f)
				if err != nil {
					return blame(err)
				}
				all[i].certificate = &c
				guard.stability(n.name, c.Stability)
				r, err := a.simulate(cmd.Context(), n.name, f.Scenario(n.policy, seed))
				if err != nil && cmd.Context().Err() == nil {
					return blame(err)
				}
				if stopped = err; err == nil {
					all[i].result = &r
					disagree = cmp.Or(disagree, contradiction(n.name, &c, &r, f))
				}
			}
			if a.json {
				if err := a.compareJSON(all); err != nil {
					return err
				}
			} else {
				a.sideBySide(all, model, f)
			}
			if stopped != nil {
				return stopped
			}
			drawn := a.draw(&graph, func() (*plots.Picture, error) { return plots.Plans(planned...) })
			return cmp.Or(drawn, guard.err(), disagree)
		},
	}
	failureVar(cmd.Flags(), &model.Failure, "0.1")
	cmd.Flags().IntVar(&model.Horizon, "horizon", 0, "how many attempts to look at, up to 1000 (default 100)")
	settingFlags(cmd.Flags(), &setting)
	fleet.add(cmd.Flags())
	fleet.addFailure(cmd.Flags())
	cmd.Flags().Uint64Var(&seed, "seed", 1, "chooses the random numbers of the simulation")
	flags.change(cmd.Flags())
	guard.add(cmd.Flags(), "")
	graph.add(cmd.Flags())
	return cmd
}

// contradiction returns an error if certificate and simulation do not agree whether the fleet comes back.
func contradiction(name string, c *retryplan.Certificate, r *retryplan.Result, f *retryplan.Fleet) error {
	if f.Trigger.Kind == 0 || !r.Judged || c.Stability.Survives() == r.Recovered {
		return nil
	}
	return fmt.Errorf("%s: certificate and simulation disagree: the certificate says %s, the simulation %s; trust neither, and try other seeds and rates",
		name, c.Stability, outcome(r, f))
}

// mostWaits is how many waits are set side by side; the rest shows in the total.
const mostWaits = 20

// sideBySide prints a column for each policy.
func (a *app) sideBySide(all []comparison, m wire.Model, f *retryplan.Fleet) {
	header := []string{""}
	waits := 0
	for _, c := range all {
		header = append(header, c.name)
		waits = max(waits, len(c.plan.Attempts)-1)
	}
	g := newGrid(header...).words(0)
	row := func(what string, of func(comparison) string) {
		cells := []string{what}
		for _, c := range all {
			cells = append(cells, of(c))
		}
		g.row(cells...)
	}
	row("attempts", func(c comparison) string {
		switch n := len(c.plan.Attempts); {
		case c.plan.Truncated:
			return strconv.Itoa(n) + " and more"
		case c.plan.CanStart < n:
			return fmt.Sprintf("%d, %d can start", n, c.plan.CanStart)
		default:
			return strconv.Itoa(n)
		}
	})
	limit := func(what string, of func(retry.Policy) time.Duration) {
		if !slices.ContainsFunc(all, func(c comparison) bool { return of(c.policy) > 0 }) {
			return
		}
		row(what, func(c comparison) string {
			if d := of(c.policy); d > 0 {
				return say.Span(d)
			}
			return "-"
		})
	}
	limit("attempt timeout", func(p retry.Policy) time.Duration { return p.AttemptTimeout })
	limit("TTL", func(p retry.Policy) time.Duration { return p.TTL })
	limit("longest hint", func(p retry.Policy) time.Duration { return p.MaxHint })
	limit("reset after", func(p retry.Policy) time.Duration { return p.ResetAfter })
	for i := 1; i <= min(waits, mostWaits); i++ {
		row("wait "+strconv.Itoa(i), func(c comparison) string {
			if i >= len(c.plan.Attempts) {
				return "-"
			}
			w := c.plan.Attempts[i].Wait
			return say.Between(w.Lo, w.Hi)
		})
	}
	total := func(what string, of func(retryplan.Distribution) time.Duration) {
		row(what, func(c comparison) string { return say.Span(of(c.plan.TotalWait)) })
	}
	total("total wait, mean", func(d retryplan.Distribution) time.Duration { return d.Mean() })
	total("total wait, p99", func(d retryplan.Distribution) time.Duration { return d.Quantile(.99) })
	total("total wait, most", func(d retryplan.Distribution) time.Duration { return d.Max() })
	row("worst case", func(c comparison) string { return say.Span(c.plan.WorstCase) })
	row("success at "+failure(m), func(c comparison) string { return say.Percent(c.plan.Success) })
	if m.Deadline > 0 {
		row("in time at "+failure(m), func(c comparison) string { return say.Percent(c.plan.InTime) })
	}
	row("load at "+failure(m), func(c comparison) string { return say.Number(c.plan.Load) })
	row("findings", func(c comparison) string {
		if len(c.findings) == 0 {
			return "none"
		}
		return strconv.Itoa(len(c.findings))
	})
	if f != nil {
		certificates(f.Trigger.Kind != 0, row)
	}
	a.print(g)
	for _, c := range all {
		if len(c.findings) > 0 {
			a.line("")
			a.line("%s: %s", c.name, codes(c.findings))
		}
	}
}

// certificates adds the rows of a fleet, which a trigger hits or not.
func certificates(triggered bool, row func(string, func(comparison) string)) {
	of := func(what string, text func(*retryplan.Certificate, *retryplan.Result) string) {
		row(what, func(c comparison) string {
			if c.certificate == nil {
				return "?" // interrupted
			}
			return text(c.certificate, c.result)
		})
	}
	of("verdict", func(c *retryplan.Certificate, _ *retryplan.Result) string { return c.Stability.String() })
	of("hidden capacity", func(c *retryplan.Certificate, _ *retryplan.Result) string { return say.Number(c.HiddenCapacity) + "/s" })
	of("tipping point", func(c *retryplan.Certificate, _ *retryplan.Result) string { return orNever(c.Tipping) })
	of("recovery by law", func(c *retryplan.Certificate, _ *retryplan.Result) string { return orNever(c.Recovery) })
	of("recovery simulated", func(_ *retryplan.Certificate, r *retryplan.Result) string {
		switch {
		case r == nil:
			return "?"
		case !triggered:
			return "no trigger"
		case !r.Judged:
			return "not known"
		case r.Recovered:
			return say.Span(r.Recovery)
		}
		return "never"
	})
	of("failed simulated", func(_ *retryplan.Certificate, r *retryplan.Result) string {
		if r == nil {
			return "?"
		}
		return say.Percent(r.Failed)
	})
	of("attempts per run simulated", func(_ *retryplan.Certificate, r *retryplan.Result) string {
		if r == nil {
			return "?"
		}
		return say.Number(r.Amplification)
	})
}

func orNever(d time.Duration) string {
	if d < 0 {
		return "never"
	}
	return say.Span(d)
}

// failure returns the failure rate of a model as rows name it.
func failure(m wire.Model) string {
	var texts []string
	for _, f := range m.Failure {
		texts = append(texts, say.Percent(f))
	}
	return strings.Join(texts, ", ") + " failing"
}

// codes returns what was found, the gravest first.
func codes(findings []retryplan.Finding) string {
	var texts []string
	for _, f := range findings {
		texts = append(texts, f.Level.String()+" "+f.Code)
	}
	return strings.Join(texts, ", ")
}

func (a *app) compareJSON(all []comparison) error {
	list := make([]compared, len(all))
	for i, c := range all {
		one, err := newShown(c.named, c.plan, c.findings)
		if err != nil {
			return err
		}
		list[i].shown = one
		if c.certificate != nil {
			w := wire.NewCertificate(c.certificate)
			list[i].Certificate = &w
		}
		if c.result != nil {
			w := wire.NewResult(c.result)
			list[i].Simulation = &w
		}
	}
	return a.printJSON(policiesJSON[compared]{list})
}
