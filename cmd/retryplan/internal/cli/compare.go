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

	"github.com/retrygo/retry/cmd/retryplan/internal/plots"
	"github.com/retrygo/retry/cmd/retryplan/internal/say"
	"github.com/retrygo/retry/cmd/retryplan/internal/wire"
	"github.com/retrygo/retry/retryplan"
)

// comparison is one policy with all that is said of it.
type comparison struct {
	named
	plan        *retryplan.Plan // at the failure rate of --failure
	findings    []retryplan.Finding
	certificate *retryplan.Certificate // nil without a fleet, and if it was interrupted, as is result
	result      *retryplan.Result
}

func (a *app) compareCommand() *cobra.Command {
	var (
		flags   policyFlags
		setting retryplan.Setting
		model   = retryplan.Model{Failure: []float64{0.1}}
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
		RunE: func(_ *cobra.Command, args []string) error {
			found, err := a.chosen(&flags, args, setting, &graph)
			if err != nil {
				return err
			}
			if len(found) < 2 {
				return misusef("%s is one policy: there is nothing to compare it with", args[0])
			}
			model.Duration, model.Deadline = setting.Duration, setting.Deadline
			f := &fleet.fleet
			f.Clients, f.Deadline = setting.Clients, setting.Deadline
			certify := fleet.given(a)
			if certify {
				if err := fleet.complete(a); err != nil {
					return err
				}
			}
			var all []comparison
			var planned []plots.Plan
			var stopped, disagree error
			for _, n := range found {
				p, err := retryplan.New(n.policy, model)
				if err != nil {
					return err
				}
				planned = append(planned, plots.Plan{Name: n.name, Plan: p})
				c := comparison{named: n, plan: p, findings: retryplan.Lint(funded(n.policy, f.Budget), setting)}
				data := shown{Name: n.name, Policy: wire.Policy(n.policy), Plan: wire.JSON(p), Findings: wire.NewFindings(c.findings)}
				guard.findings(n.name, c.findings)
				if certify && stopped == nil {
					cert, err := retryplan.Certify(n.policy, *f)
					if err != nil {
						return err
					}
					guard.stability(n.name, cert.Stability)
					c.certificate, data.Certificate = &cert, wire.JSON(cert)
					r, err := a.simulate(n.name, f.Scenario(n.policy, seed))
					if err != nil && a.ctx.Err() == nil {
						return err
					}
					if stopped = err; err == nil {
						c.result, data.Simulation = &r, wire.JSON(r)
						disagree = cmp.Or(disagree, contradiction(n.name, cert.Stability, &r, outcome(&r, f)))
					}
				}
				all = append(all, c)
				a.all = append(a.all, data)
			}
			if !a.json {
				a.sideBySide(all, model, certify, f.Trigger.Kind != 0)
			}
			drawn := func() (*plots.Picture, error) { return plots.Plans(planned...) }
			return cmp.Or(a.finish(), stopped, a.draw(&graph, drawn), guard.err(), disagree)
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

// contradiction returns an error if certificate and simulation do not agree whether a fleet comes back from its trigger.
func contradiction(name string, s retryplan.Stability, r *retryplan.Result, saw string) error {
	if r == nil || !r.Judged || s == 0 || s.Survives() == r.Recovered {
		return nil
	}
	return fmt.Errorf("%s: certificate and simulation disagree: the certificate says %v, the simulation %s; near the boundary chance decides: try other seeds and rates",
		name, s, saw)
}

// mostWaits is how many waits are set side by side; the rest shows in the total.
const mostWaits = 20

// sideBySide prints a column for each policy.
func (a *app) sideBySide(all []comparison, m retryplan.Model, certified, triggered bool) {
	header := []string{""}
	waits := 0
	for _, c := range all {
		header = append(header, c.name)
		waits = max(waits, len(c.plan.Attempts)-1)
	}
	g := newGrid(header...).words(0)
	row := func(what string, of func(comparison) string) { // unless no policy has it
		cells := []string{what}
		for _, c := range all {
			cells = append(cells, of(c))
		}
		if slices.ContainsFunc(cells[1:], func(cell string) bool { return cell != "-" }) {
			g.row(cells...)
		}
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
	limit := func(d time.Duration) string { return spanOr("-", d, d > 0) }
	row("attempt timeout", func(c comparison) string { return limit(c.policy.AttemptTimeout) })
	row("TTL", func(c comparison) string { return limit(c.policy.TTL) })
	row("longest hint", func(c comparison) string { return limit(c.policy.MaxHint) })
	row("reset after", func(c comparison) string { return limit(c.policy.ResetAfter) })
	for i := 1; i <= min(waits, mostWaits); i++ {
		row("wait "+strconv.Itoa(i), func(c comparison) string {
			if i >= len(c.plan.Attempts) {
				return "-"
			}
			w := c.plan.Attempts[i].Wait
			return say.Between(w.Lo, w.Hi)
		})
	}
	row("total wait, mean", func(c comparison) string { return say.Span(c.plan.TotalWait.Mean()) })
	row("total wait, p99", func(c comparison) string { return say.Span(c.plan.TotalWait.Quantile(.99)) })
	row("total wait, most", func(c comparison) string { return say.Span(c.plan.TotalWait.Max()) })
	row("worst case", func(c comparison) string { return say.Span(c.plan.WorstCase) })
	var rates []string
	for _, f := range m.Failure {
		rates = append(rates, say.Percent(f))
	}
	failing := strings.Join(rates, ", ") + " failing"
	row("success at "+failing, func(c comparison) string { return say.Percent(c.plan.Success) })
	if m.Deadline > 0 {
		row("in time at "+failing, func(c comparison) string { return say.Percent(c.plan.InTime) })
	}
	row("load at "+failing, func(c comparison) string { return say.Number(c.plan.Load) })
	row("findings", func(c comparison) string {
		if len(c.findings) == 0 {
			return "none"
		}
		return strconv.Itoa(len(c.findings))
	})
	if certified {
		certificates(row, triggered)
	}
	a.print(g)
	for _, c := range all {
		var codes []string
		for _, f := range c.findings {
			codes = append(codes, f.Level.String()+" "+f.Code)
		}
		if len(codes) > 0 {
			a.line("\n%s: %s", c.name, strings.Join(codes, ", "))
		}
	}
}

// certificates adds the rows of a fleet. What was not computed before an interrupt is a question mark.
func certificates(row func(string, func(comparison) string), triggered bool) {
	law := func(what string, text func(*retryplan.Certificate) string) {
		row(what, func(c comparison) string {
			if c.certificate == nil {
				return "?"
			}
			return text(c.certificate)
		})
	}
	saw := func(what string, text func(*retryplan.Result) string) {
		row(what+" simulated", func(c comparison) string {
			if c.result == nil {
				return "?"
			}
			return text(c.result)
		})
	}
	law("verdict", func(c *retryplan.Certificate) string { return c.Stability.String() })
	law("hidden capacity", func(c *retryplan.Certificate) string { return say.Number(c.HiddenCapacity) + "/s" })
	law("tipping point", func(c *retryplan.Certificate) string { return spanOr("never", c.Tipping, c.Tipping >= 0) })
	law("recovery by law", func(c *retryplan.Certificate) string { return spanOr("never", c.Recovery, c.Recovery >= 0) })
	saw("recovery", func(r *retryplan.Result) string {
		if !triggered {
			return "no trigger"
		}
		return recovered(r, "not known", "", "never")
	})
	saw("failed", func(r *retryplan.Result) string { return say.Percent(r.Failed) })
	saw("attempts per run", func(r *retryplan.Result) string { return say.Number(r.Amplification) })
}

// spanOr returns d, or what stands for it unless it is known.
func spanOr(otherwise string, d time.Duration, known bool) string {
	if !known {
		return otherwise
	}
	return say.Span(d)
}
