package cli

import (
	"cmp"
	"fmt"
	"math"
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

func (a *app) compareCommand() *cobra.Command {
	cmd := &cobra.Command{
		Use:   "compare [POLICY]...",
		Short: "Set policies side by side",
		Long: `compare prints the waits of two or more policies beside each other, with the figures of show --failure and the findings.
Without a POLICY it prints a line for each of one attempt, two attempts, and the presets, as a start for a policy of
your own. With the flags of a fleet (--rate and --capacity), it adds their certificates and the results of a simulation,
in which all policies meet the same arrivals. It fails if a certificate and a simulation disagree. Flags that change a
policy change all of them. --plot draws the simulations, or without a fleet the schedules. With --hedge-delay or
--hedge-share each fleet is simulated without hedges too, with attempts that take --duration.`,
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
			if a.hasFleet() {
				if err := a.complete(); err != nil {
					return err
				}
			}
			set(!a.given("failure"), &a.model.Failure, []float64{0.1})
			a.model.Duration, a.model.Deadline = a.setting.Duration, a.setting.Deadline
			header := []string{"-"}
			var all []facts
			var plans []plots.Plan
			var runs []plots.Run
			var stopped, disagree error
			for _, n := range found {
				p, err := retryplan.New(n.policy, a.model)
				if err != nil {
					return err
				}
				findings := a.findings(n.policy)
				a.noteFindings(n.name, findings)
				plans = append(plans, plots.Plan{Name: n.name, Plan: p})
				header = append(header, n.name)
				f := append(waits(p), planFacts(p, a.model.Deadline)...)
				f.add("total wait, p99", say.Span(p.TotalWait.Quantile(.99)), "")
				f.add("a run takes, p99", say.Span(p.Elapsed.Quantile(.99)), "")
				data := shown{Policy: wire.Policy(n.policy), Plan: wire.JSON(p), Findings: wire.NewFindings(findings)}
				if a.hasFleet() && stopped == nil {
					c, err := retryplan.Certify(n.policy, a.fleet)
					if err != nil {
						return err
					}
					a.note(gravity[c.Stability], n.name+" is "+c.Stability.String())
					f, data.Certificate = append(f, certificateFacts(&c, &a.fleet)...), wire.JSON(c)
					s := a.fleet.Scenario(n.policy, a.seed)
					if d := a.setting.Duration; s.Hedge != (retryplan.Hedge{}) && d != (retryplan.Dist{}) {
						s.Server.Service, s.Server.Workers = d, max(1, int(math.Round(a.fleet.Capacity*d.Mean().Seconds())))
					}
					r, err := retryplan.Simulate(a.ctx, s)
					if err != nil && a.ctx.Err() == nil {
						return err
					}
					if stopped = err; err == nil {
						if err := a.hedged(&f, n, s, &r); err != nil {
							return err
						}
						for _, seen := range append(resultFacts(&r), fact{"recovery", recovery(&r), ""}) {
							f.add(seen.name+", simulated", seen.figure, "")
						}
						data.Simulation = wire.JSON(r)
						runs = append(runs, plots.Run{Name: n.name, Result: r, Triggers: s.Triggers})
						disagree = cmp.Or(disagree, contradiction(n.name, c.Stability, &r))
					}
				}
				all = append(all, f)
				if data.Name = n.name; len(args) == 0 {
					a.all = append(a.all, data)
				} else {
					a.policy(n, data, func() { a.line("findings: %s", codes(findings)) })
				}
			}
			switch {
			case a.json:
			case len(args) == 0:
				a.oneBelowTheOther(header[1:], all)
			default:
				a.line("")
				a.sideBySide(header, all)
			}
			return a.finish(func() plots.Picture {
				if len(runs) > 0 {
					return plots.Simulation(runs...)
				}
				return plots.Plans(plans...)
			}, stopped, disagree)
		},
	}
	a.policyFlags(cmd.Flags())
	a.modelFlags(cmd.Flags(), "0.1")
	a.settingFlags(cmd.Flags())
	a.fleetFlags(cmd.Flags())
	a.failureRateFlag(cmd.Flags())
	a.seedFlag(cmd.Flags())
	a.failOnFlag(cmd.Flags())
	a.plotFlag(cmd.Flags())
	return cmd
}

// hedged adds what hedges are worth: how long runs take with them and without, and the load that they add. The fleet's
// attempts take --duration there, or as long as the backend works on one.
func (a *app) hedged(f *facts, n named, s retryplan.Scenario, with *retryplan.Result) error {
	if s.Hedge == (retryplan.Hedge{}) {
		return nil
	}
	s.Hedge = retryplan.Hedge{}
	without, err := retryplan.Simulate(a.ctx, s)
	for _, q := range []struct {
		name string
		of   float64
	}{{"p50", .5}, {"p99", .99}, {"p99.9", .999}} {
		f.add(q.name+", simulated", say.Span(with.Latency.Quantile(q.of)), "")
		f.add(q.name+" without hedges", say.Span(without.Latency.Quantile(q.of)), "")
	}
	f.add("extra load of hedges", say.Percent(with.Amplification/max(without.Amplification, 1)-1), "")
	return err
}

// contradiction returns an error if certificate and simulation disagree on whether a fleet comes back.
func contradiction(name string, s retryplan.Stability, r *retryplan.Result) error {
	if !r.Judged || s == 0 || s.Survives() == r.Recovered {
		return nil
	}
	return fmt.Errorf("%s: %s", name, say.Contradiction(s))
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

// waits returns the first 20 waits of p.
func waits(p *retryplan.Plan) (f facts) {
	for i, at := range p.Attempts[1:min(len(p.Attempts), 21)] {
		f.add("wait "+strconv.Itoa(i+1), say.Between(at.Wait.Min(), at.Wait.Max()), "")
	}
	return f
}

// codes returns the codes of findings with their levels.
func codes(findings []retryplan.Finding) string {
	var all []string
	for _, f := range findings {
		all = append(all, f.Level.String()+" "+f.Code)
	}
	return cmp.Or(strings.Join(all, ", "), "none")
}

// oneBelowTheOther prints the chief facts of each policy in a line.
func (a *app) oneBelowTheOther(names []string, all []facts) {
	columns := []string{"success", "load", "takes at most", "verdict", "hidden capacity", "recovery, simulated"}
	g := newGrid("-policy", "success", "load", "takes at most", "-verdict", "serves", "recovery")
	for i, name := range names {
		cells := []string{name}
		for _, column := range columns {
			figure := ""
			if j := slices.IndexFunc(all[i], func(f fact) bool { return f.name == column }); j >= 0 {
				figure = all[i][j].figure
			}
			cells = append(cells, figure)
		}
		g.row(cells...)
	}
	a.print(g)
}

// sideBySide prints the facts of each policy in a column, in the order of each.
func (a *app) sideBySide(header []string, all []facts) {
	var names []string
	for _, column := range all {
		next := 0
		for _, f := range column {
			i := slices.Index(names, f.name)
			if i < 0 && f.figure != "" {
				names, i = slices.Insert(names, next, f.name), next
			}
			next = max(next, i+1)
		}
	}
	g := newGrid(header...)
	for _, name := range names {
		cells := []string{name}
		for _, column := range all {
			figure := "-"
			if i := slices.IndexFunc(column, func(f fact) bool { return f.name == name }); i >= 0 {
				figure = column[i].figure
			}
			cells = append(cells, figure)
		}
		g.row(cells...)
	}
	a.print(g)
}
