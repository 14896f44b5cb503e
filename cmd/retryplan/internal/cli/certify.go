package cli

import (
	"cmp"

	"github.com/spf13/cobra"

	"github.com/retrygo/retry/cmd/retryplan/internal/plots"
	"github.com/retrygo/retry/cmd/retryplan/internal/wire"
	"github.com/retrygo/retry/retryplan"
)

func (a *app) certifyCommand() *cobra.Command {
	cmd := &cobra.Command{
		Use:   "certify [POLICY]... --rate N --capacity N",
		Short: "Predict by law whether a storm of retries can become permanent",
		Long: `certify predicts what becomes of a fleet when a trigger hits it. The fleet begins --rate runs a second. Its backend
completes --capacity attempts a second, in the order of their arrival, and does not notice that a client has gone. The
verdict is one of these:

  safe         the fleet comes back from any trigger
  vulnerable   it comes back from this trigger, but a larger one would tip it
  metastable   it does not come back: the retries keep the backend busy with work that no client waits for
  overloaded   it does not come back: the calm alone is more than the backend can do, or an attempt takes it too long

A share --failure-rate of the attempts fails after the backend has worked on them, in the calm as well. During an
outage the backend rejects all attempts at once; while it is failing, it works on them first.

--from reads the metrics of contrib/retryotel as Prometheus text, or others by name (--calls, --errors, --took); --over is
the time between two scrapes, or since the process began.

For --fail-on, metastable and overloaded are severe and vulnerable is a note. --plot simulates the fleet and draws it.`,
		Example: `  retryplan certify policy.json --from charge@metrics.txt --over 30s --capacity 100
  retryplan certify --attempts 4 --base 100ms --cap 10s --jitter full --attempt-timeout 1s --rate 70 --capacity 100 --trigger "stall 10s"
  retryplan certify policy.json --rate 70 --capacity 100 --budget --clients 20 --fail-on severe`,
		RunE: func(cmd *cobra.Command, args []string) error {
			_, args, err := a.configure(cmd, args)
			if err != nil {
				return err
			}
			if err := a.complete(); err != nil {
				return err
			}
			found, err := a.policies(args)
			if err != nil {
				return err
			}
			f := &a.fleet
			var runs []plots.Run
			var disagree error
			for _, n := range found {
				c, err := retryplan.Certify(n.policy, *f)
				if err != nil {
					return err
				}
				findings := a.findings(n.policy)
				a.noteFindings(n.name, findings)
				a.note(gravity[c.Stability], n.name+" is "+c.Stability.String())
				if a.plot != "" {
					s := f.Scenario(n.policy, a.seed)
					r, err := retryplan.Simulate(a.ctx, s)
					if err != nil {
						return err
					}
					runs = append(runs, plots.Run{Name: n.name, Result: r, Triggers: s.Triggers})
					disagree = cmp.Or(disagree, contradiction(n.name, c.Stability, &r))
				}
				data := shown{Policy: wire.Policy(n.policy), Fleet: wire.JSON(*f), Certificate: wire.JSON(c), Findings: wire.NewFindings(findings)}
				a.policy(n, data, func() {
					a.printFacts(certificateFacts(&c, f))
					a.showFindings(findings)
				})
			}
			return a.finish(func() plots.Picture { return plots.Simulation(runs...) }, disagree)
		},
	}
	a.policyFlags(cmd.Flags())
	a.fleetFlags(cmd.Flags())
	a.failureRateFlag(cmd.Flags())
	a.settingFlags(cmd.Flags())
	a.configFlag(cmd.Flags())
	a.failOnFlag(cmd.Flags())
	a.seedFlag(cmd.Flags())
	a.plotFlag(cmd.Flags())
	return cmd
}
