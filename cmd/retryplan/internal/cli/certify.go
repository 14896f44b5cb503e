package cli

import (
	"cmp"
	"fmt"
	"time"

	"github.com/spf13/cobra"

	"github.com/retrygo/retry"
	"github.com/retrygo/retry/cmd/retryplan/internal/say"
	"github.com/retrygo/retry/cmd/retryplan/internal/wire"
	"github.com/retrygo/retry/retryplan"
)

func (a *app) certifyCommand() *cobra.Command {
	var (
		flags policyFlags
		fleet fleetFlags
		guard guard
		mixed mix
		file  string
	)
	cmd := &cobra.Command{
		Use:   "certify [POLICY]... --rate N --capacity N",
		Short: "Say by law whether a storm of retries can become permanent",
		Long: `certify says what becomes of a fleet that begins --rate runs a second against a backend that completes --capacity
attempts a second, in the order of their arrival and without noticing that a client has gone, when a trigger hits it:

  safe         it comes back from any trigger
  vulnerable   it comes back from this one, but a larger one would tip it
  metastable   it does not come back: the retries keep the backend busy with work that no client waits for
  overloaded   it does not come back: the calm alone is more than the backend can do, or one attempt takes it longer than
               a client waits

--failure-rate of the attempts fail once the backend has worked on them, in the calm as well. During an outage it rejects all
at once; while it is failing, it works on them first. With --mix several policies, with the same attempt timeout, are one fleet.

--from reads rate, failure rate and duration of attempts from the metrics of contrib/retryotel: Prometheus text, or OTLP/JSON of
the collector's file exporter, of one policy (NAME@FILE if there are several). Two files are two scrapes. Prometheus text does
not say over what time it counts: --over does, the time between two scrapes or since the process began.

For --fail-on, metastable and overloaded are severe, and vulnerable is a note.`,
		Example: `  retryplan certify policy.json --from charge@metrics.txt --over 30s --capacity 100
  retryplan certify --attempts 4 --base 100ms --cap 10s --jitter full --attempt-timeout 1s --rate 70 --capacity 100 --trigger "stall 10s"
  retryplan certify policy.json --rate 70 --capacity 100 --budget --clients 20 --fail-on severe
  retryplan certify policies.json --rate 70 --capacity 100 --trigger "surge 30s 2" --json
  retryplan certify policy.json --attempt-timeout 1s --rate 50 --capacity 100 --failure-rate 0.01 --trigger "outage 5m"
  retryplan certify policy.json preset:inline --mix 0.9,0.1 --attempt-timeout 1s --rate 50 --capacity 100`,
		RunE: func(cmd *cobra.Command, args []string) error {
			_, args, err := a.configure(cmd, file, args)
			if err != nil {
				return err
			}
			if err := fleet.complete(a); err != nil {
				return err
			}
			found, err := a.policies(&flags, args)
			if err != nil {
				return err
			}
			f := fleet.fleet
			if found, f.Others, err = mixed.of(found); err != nil {
				return err
			}
			setting := retryplan.Setting{Deadline: f.Deadline, Clients: f.Clients, Duration: fleet.attempt}
			for _, n := range found {
				c, err := retryplan.Certify(n.policy, f)
				if err != nil {
					return err
				}
				var findings []retryplan.Finding
				for _, o := range n.all() {
					some := retryplan.Lint(funded(o.policy, f.Budget), setting)
					guard.findings(o.name, some)
					findings = append(findings, some...)
				}
				guard.stability(n.name, c.Stability)
				data := shown{Name: n.name, Policy: wire.Policy(n.policy), Fleet: wire.JSON(f), Certificate: wire.JSON(c), Findings: wire.NewFindings(findings)}
				a.policy(n, data, func() {
					a.certificate(&c, f)
					a.line("")
					a.showFindings(findings)
				})
			}
			return cmp.Or(a.finish(), guard.err())
		},
	}
	fleet.add(cmd.Flags())
	fleet.addFailure(cmd.Flags())
	mixed.add(cmd.Flags())
	configFlag(cmd.Flags(), &file)
	fleet.addClients(cmd.Flags())
	flags.add(cmd.Flags())
	guard.add(cmd.Flags(), "")
	return cmd
}

// funded returns p with the budget of a fleet, if any: Lint looks for one in the policy.
func funded(p retry.Policy, c *retry.BudgetConfig) retry.Policy {
	if c != nil {
		p.Budget = retry.NewBudget(*c)
	}
	return p
}

// certificate prints c in words.
func (a *app) certificate(c *retryplan.Certificate, f retryplan.Fleet) {
	what, why := say.Stability(c, f)
	a.wrapped(fmt.Sprintf("%v: ", c.Stability), what+" "+why, 2)
	a.line("")
	var g facts
	g.add("trigger", wire.Lasting(f.Trigger))
	g.add("attempts in a storm", say.Number(c.Attempts)+" per run")
	g.add("hidden capacity", fmt.Sprintf("%s runs/s; the fleet begins %s, the backend could do %s without retries", say.Number(c.HiddenCapacity), say.Number(f.Rate), say.Number(f.Capacity)))
	g.add("recovery", predicted(c.Recovery))
	switch {
	case c.Tipping == 0:
		g.add("tipping point", "none needed: chance is enough")
	case c.Tipping > 0:
		g.add("tipping point", fmt.Sprintf("%s of this trigger", say.Span(c.Tipping)))
	default:
		g.add("tipping point", "no length of this trigger changes the verdict")
	}
	g.add("margin", say.Percent(c.Margin)+" from the boundary of another verdict")
	g.add("law", fmt.Sprintf("%v: %s", c.Law, say.Law(c.Law)))
	a.printFacts(g)
}

// predicted says when a law predicts recovery.
func predicted(recovery time.Duration) string {
	if recovery < 0 {
		return "never by itself"
	}
	return say.Span(recovery) + " after the trigger's end"
}
