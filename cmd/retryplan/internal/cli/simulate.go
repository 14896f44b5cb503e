package cli

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"

	"github.com/spf13/cobra"

	"github.com/retrygo/retry/cmd/retryplan/internal/plots"
	"github.com/retrygo/retry/cmd/retryplan/internal/say"
	"github.com/retrygo/retry/retryplan"
)

func (a *app) simulateCommand() *cobra.Command {
	var band bool
	cmd := &cobra.Command{
		Use:   "simulate [POLICY]... --rate N --capacity N",
		Short: "Count the simulations in which a fleet comes back from a stall, an outage or a surge",
		Long: `simulate runs a fleet attempt by attempt, with the library's own decisions, and counts the seeds in which it comes back
from a trigger. The fleet begins --rate runs a second. Its backend completes --capacity attempts a second, in the order
of their arrival, and does not notice that a client has gone. A seed is a calm of 2 minutes, the trigger, and 10 minutes
in which the fleet has to be well; then it is watched for 2 minutes more, or until the last retry of what the trigger
hit. The verdict is a count of these seeds, with 95 % bounds for others. It says nothing about another trigger. Ten
seeds are enough if none of them comes back.

A share --failure-rate of the attempts fails after the backend has worked on them, in the calm as well. A --trigger has a
kind and a length, and some have a factor:

  stall 10s              the backend works on nothing
  outage 10s             it rejects every attempt at once
  slowdown 10s 3         work takes three times as long
  capacity_cut 10s 0.5   half of the workers remain
  surge 10s 3            three times as many runs begin
  failing 10s 0.5        half of the attempts fail once the backend has worked on them
  none

Advice follows that was simulated on the same seeds: it loses no more of them, and fails no more runs of the calm.
--band looks for the longest trigger of which no seed is lost and the shortest of which half are. Attempts take
--duration, if that is given. --hedge-delay or --hedge-share makes a second call beside an attempt that is slow, as
package retryhedge does. The same --seed gives the same numbers, and several policies meet the same arrivals.

--from reads the metrics of contrib/retryotel as Prometheus text, or others by name (--calls, --errors, --took); --over is
the time between two scrapes, or since the process began.

For --fail-on, a verdict of which half of the seeds or more are lost is severe, and of which any is a warning. --plot draws
a seed with the commoner outcome; --json has its time series.`,
		Example: `  retryplan simulate policy.json --from price@metrics.txt --over 30s --capacity 100
  retryplan simulate --attempts 4 --base 100ms --cap 10s --jitter full --attempt-timeout 1s --rate 70 --capacity 100 --trigger "stall 10s"
  retryplan simulate policy.json --rate 70 --capacity 100 --budget --clients 20 --seeds 60 --fail-on severe`,
		RunE: func(_ *cobra.Command, args []string) error {
			if band && a.fleet.Trigger.Kind == 0 {
				return misusef("--band is about the length of a --trigger, and there is none")
			}
			found, err := a.policies(args)
			if err != nil {
				return err
			}
			for _, n := range found {
				if err := a.simulated(n, band); err != nil {
					return cmp.Or(a.printed(), err)
				}
			}
			return a.finish()
		},
	}
	a.policyFlags(cmd.Flags())
	a.fleetFlags(cmd.Flags())
	a.settingFlags(cmd.Flags())
	a.seedFlags(cmd.Flags())
	cmd.Flags().BoolVar(&band, "band", false, "find between which lengths of the trigger chance decides")
	a.configFlag(cmd.Flags())
	a.failOnFlag(cmd.Flags())
	a.plotFlag(cmd.Flags())
	return cmd
}

// simulated shows the verdict about the fleet with a policy.
func (a *app) simulated(n named, band bool) error {
	q := a.question(n)
	v, err := a.judge(n.name, q)
	if v.Seeds == 0 && err != nil {
		return err
	}
	a.report(n, lost(&v))
	data := shown{Fleet: q.Fleet, Verdict: v}
	var lengths say.Facts
	if err == nil {
		var r retryplan.Result
		if r, err = retryplan.Simulate(a.ctx, q, v.Drawn); err == nil {
			a.runs = append(a.runs, plots.Run{Name: n.name, Result: r})
			data.Simulation = &r
		}
	}
	if err == nil {
		data.Findings, data.Advice, err = a.advised(n, q, v)
	}
	if err == nil && band {
		data.Band, lengths, err = a.band(q)
	}
	a.show(n, data, func() {
		facts := say.Verdict(&v)
		facts.Add("arithmetic", say.Storm(q.Policy, q.Fleet), "")
		a.facts(append(facts, lengths...))
		if r, ok := data.Simulation.(*retryplan.Result); ok {
			a.line("\n%s", say.Drawn(&v))
			a.facts(say.Simulation(r))
		}
		a.showFindings(data.Findings, false)
		a.showAdvice(&v, data.Advice)
	})
	return err
}

// question returns the question about the fleet with a policy. Attempts take --duration if --workers does not say how
// long the backend takes.
func (a *app) question(n named) retryplan.Question {
	f := a.fleet
	if f.Workers == 0 {
		f.Service = a.setting.Duration
	}
	if a.shared {
		f.Clients = 1
	}
	return retryplan.Question{Policy: n.policy, Fleet: f, Seeds: a.seeds, Seed: a.seed}
}

// errLimit is the end of --limit.
var errLimit = errors.New("the time limit was reached")

// judge returns the verdict about q within --limit. A limit that leaves fewer seeds is no error, but a remark.
func (a *app) judge(name string, q retryplan.Question) (retryplan.Verdict, error) {
	ctx := a.ctx
	if a.limit > 0 {
		limited, cancel := context.WithTimeoutCause(ctx, a.limit, errLimit)
		defer cancel()
		ctx = limited
	}
	v, err := retryplan.Judge(ctx, q)
	if errors.Is(err, errLimit) && v.Seeds > 0 {
		a.remark("%s: the time limit of %s left %d seeds", name, say.Duration(a.limit), v.Seeds)
		err = nil
	}
	return v, err
}

// lost returns the finding that seeds are lost, of level 0 if none is.
func lost(v *retryplan.Verdict) retryplan.Finding {
	return retryplan.Finding{Code: lostCode, Level: say.Gravity(v), Text: "The fleet " + v.String() + "."}
}

// advised returns the findings about a policy and the advice for its fleet. A finding whose change does not hold in a
// simulation has none.
func (a *app) advised(n named, q retryplan.Question, v retryplan.Verdict) ([]finding, []retryplan.Advice, error) {
	findings := a.findings(n)
	given := make([]retryplan.Finding, len(findings))
	for i, f := range findings {
		given[i] = f.Finding
	}
	advice, err := retryplan.Advise(a.ctx, q, v, given...)
	for i := range findings {
		f := &findings[i]
		if !slices.ContainsFunc(advice, func(one retryplan.Advice) bool { return one.Change == f.Change }) {
			f.Change = ""
		}
	}
	return findings, advice, err
}

// band returns the verdicts about the two lengths of a trigger between which chance decides.
func (a *app) band(q retryplan.Question) (any, say.Facts, error) {
	none, half, err := retryplan.Band(a.ctx, q)
	var f say.Facts
	add := func(name string, v retryplan.Verdict) {
		if v.Seeds > 0 {
			f.Add(name, v.String(), "")
		} else {
			f.Add(name, "not found", " between 1ms and 10m")
		}
	}
	add("none lost", none)
	add("half lost", half)
	return []retryplan.Verdict{none, half}, f, err
}

// showAdvice prints the changes that were simulated beside the count of the given fleet.
func (a *app) showAdvice(given *retryplan.Verdict, advice []retryplan.Advice) {
	if len(advice) == 0 {
		return
	}
	a.line("\nadvice, simulated on the same seeds: %s come back as it is", say.Count(given))
	for _, one := range advice {
		effect := ""
		if one.Verdict.Back*given.Seeds == given.Back*one.Verdict.Seeds {
			effect = " It changes nothing about the count."
		}
		a.wrapped(fmt.Sprintf("  %-8s  ", say.Count(&one.Verdict)), one.Change+effect, 12)
	}
}
