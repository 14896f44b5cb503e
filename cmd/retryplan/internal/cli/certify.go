package cli

import (
	"cmp"
	"fmt"
	"math"

	"github.com/spf13/cobra"

	"github.com/retrygo/retry/cmd/retryplan/internal/plots"
	"github.com/retrygo/retry/cmd/retryplan/internal/say"
	"github.com/retrygo/retry/retryplan"
)

func (a *app) certifyCommand() *cobra.Command {
	var simulate bool
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

A share --failure-rate of the attempts fails after the backend has worked on them, in the calm as well. A --trigger has a
kind and a length, and some have a factor:

  stall 10s              the backend works on nothing
  outage 10s             it rejects every attempt at once
  slowdown 10s 3         work takes three times as long
  capacity_cut 10s 0.5   half of the workers remain
  surge 10s 3            three times as many runs begin
  failing 10s 0.5        half of the attempts fail once the backend has worked on them
  none

--simulate runs the fleet attempt by attempt as well, with the library's own decisions, and prints the load, how runs
ended, and whether the fleet came back; --json has the time series. The same --seed gives the same numbers, and several
policies meet the same arrivals. Attempts take --duration there, if that is given. --hedge-delay or --hedge-share makes a
second call beside an attempt that is slow, as package retryhedge does. certify fails if verdict and simulation disagree.

--from reads the metrics of contrib/retryotel as Prometheus text, or others by name (--calls, --errors, --took); --over is
the time between two scrapes, or since the process began.

For --fail-on, metastable and overloaded are severe and vulnerable is a note. --plot draws the simulation.`,
		Example: `  retryplan certify policy.json --from price@metrics.txt --over 30s --capacity 100
  retryplan certify --attempts 4 --base 100ms --cap 10s --jitter full --attempt-timeout 1s --rate 70 --capacity 100 --trigger "stall 10s" --simulate
  retryplan certify policy.json --rate 70 --capacity 100 --budget --clients 20 --fail-on severe`,
		RunE: func(_ *cobra.Command, args []string) error {
			found, err := a.policies(args)
			if err != nil {
				return err
			}
			for _, n := range found {
				c, err := a.certify(n)
				if err != nil {
					return err
				}
				data := shown{Fleet: a.fleet, Certificate: c, Findings: a.findings(n)}
				var seen say.Facts
				if simulate || a.plot != "" {
					s, r, err := a.simulate(n, c.Stability)
					if err != nil {
						return err
					}
					data.Simulation, seen = r, say.Simulation(r, &s)
				}
				a.show(n, data, func() {
					a.facts(append(say.Certificate(c, a.fleet), say.Storm(c)...))
					if seen != nil {
						a.line("\nsimulation")
						a.facts(seen)
					}
					a.showFindings(data.Findings)
				})
			}
			return a.finish()
		},
	}
	a.policyFlags(cmd.Flags())
	a.fleetFlags(cmd.Flags())
	a.settingFlags(cmd.Flags())
	a.configFlag(cmd.Flags())
	a.failOnFlag(cmd.Flags())
	cmd.Flags().BoolVar(&simulate, "simulate", false, "simulate the fleet as well")
	a.seedFlag(cmd.Flags())
	a.plotFlag(cmd.Flags())
	return cmd
}

// certify returns the certificate of the fleet with a policy, and notes the verdict for --fail-on.
func (a *app) certify(n named) (retryplan.Certificate, error) {
	c, err := retryplan.Certify(n.policy, a.fleet)
	if err == nil {
		a.note(gravity[c.Stability], n.name+" is "+c.Stability.String())
	}
	return c, err
}

// simulate simulates the fleet with a policy, for which there is a certificate, and keeps the result for --plot.
func (a *app) simulate(n named, certified retryplan.Stability) (retryplan.Scenario, *retryplan.Result, error) {
	s := a.fleet.Scenario(n.policy, a.seed)
	if d := a.setting.Duration; d != (retryplan.Dist{}) {
		s.Server.Service, s.Server.Workers = d, max(1, int(math.Round(a.fleet.Capacity*d.Mean().Seconds())))
	}
	r, err := retryplan.Simulate(a.ctx, s)
	if err == nil {
		a.runs = append(a.runs, plots.Run{Name: n.name, Result: r, Triggers: s.Triggers})
		a.contradict(n.name, certified, &r)
	}
	return s, &r, err
}

// contradict notes if certificate and simulation disagree on whether a fleet comes back.
func (a *app) contradict(name string, s retryplan.Stability, r *retryplan.Result) {
	if r.Judged && s != 0 && s.Survives() != r.Recovered {
		a.disagree = cmp.Or(a.disagree, fmt.Errorf("%s: %s", name, say.Contradiction(s)))
	}
}
