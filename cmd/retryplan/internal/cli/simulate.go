package cli

import (
	"context"
	"errors"
	"fmt"
	"slices"

	"github.com/spf13/cobra"

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
of their arrival, and does not notice that a client has gone. A share --failure-rate of the attempts fails after the
backend has worked on them. The verdict is a count of seeds, with 95 % bounds for others; it says nothing about another
trigger, which is one of

  stall 10s              the backend works on nothing
  outage 10s             it rejects every attempt at once
  slowdown 10s 3         work takes three times as long
  capacity_cut 10s 0.5   half of the workers remain
  surge 10s 3            three times as many runs begin
  failing 10s 0.5        half of the attempts fail once the backend has worked on them
  none

Advice follows that was simulated on the same seeds: it loses no more of them, and fails no more runs of the calm. For
--fail-on, a verdict of which half of the seeds or more are lost is severe, and of which any is a warning.`,
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
					return err
				}
			}
			return a.guard()
		},
	}
	a.policyFlags(cmd.Flags())
	a.fleetFlags(cmd.Flags())
	a.settingFlags(cmd.Flags())
	a.seedFlags(cmd.Flags())
	cmd.Flags().BoolVar(&band, "band", false, "find between which lengths of the trigger chance decides")
	a.failOnFlag(cmd.Flags())
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
	var lengths, seed say.Facts
	var findings []finding
	var advice []retryplan.Advice
	if err == nil {
		var r retryplan.Result
		if r, err = retryplan.Simulate(a.ctx, q, v.Drawn); err == nil {
			seed = say.Simulation(&r)
		}
	}
	if err == nil {
		findings, advice, err = a.advised(n, q, v)
	}
	if err == nil && band {
		lengths, err = a.band(q)
	}
	a.show(n, func() {
		facts := say.Verdict(&v)
		facts.Add("arithmetic", say.Storm(q.Policy, q.Fleet), "")
		a.facts(append(facts, lengths...))
		if seed != nil {
			a.line("\n%s", say.Drawn(&v))
			a.facts(seed)
		}
		a.showFindings(findings, false)
		a.showAdvice(&v, advice)
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
func (a *app) band(q retryplan.Question) (f say.Facts, err error) {
	none, half, err := retryplan.Band(a.ctx, q)
	add := func(name string, v retryplan.Verdict) {
		if v.Seeds > 0 {
			f.Add(name, v.String(), "")
		} else {
			f.Add(name, "not found", " between 1ms and 10m")
		}
	}
	add("none lost", none)
	add("half lost", half)
	return f, err
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
