package cli

import (
	"cmp"
	"fmt"
	"maps"
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

func (a *app) planCommand() *cobra.Command {
	var (
		p       planning
		model   retryplan.Model
		traffic measured
	)
	cmd := &cobra.Command{
		Use:   "plan [POLICY]...",
		Short: "Say how a run ends, how long it takes and how much load it makes",
		Long: `plan computes what becomes of one run if its attempts fail with a given probability and take a given time: for each
attempt the probability that a run makes it and succeeds with it; the chance of success, in time as well; the load, which
is attempts per run; how runs end; and how long they wait and take. Nothing is sampled: the figures are exact to what is
shown. --plot draws the waits, their total, and how long runs take, with the deadline.

--failure 0.1 is the same for every attempt; --failure 0.9,0.5,0.1 is for attempt 1, 2, 3, and the last one repeats.`,
		Example: `  retryplan plan --preset aggressive --failure 0.3
  retryplan plan policy.json --failure 0.9,0.5,0.1 --duration "lognormal 20ms 200ms" --deadline 10s
  retryplan plan email@policies.json --failure 0.2 --json`,
		RunE: func(_ *cobra.Command, args []string) error {
			if t, err := traffic.read(a); err != nil {
				return err
			} else if t != nil {
				set(!a.given("failure"), &model.Failure, []float64{t.Failure()})
				set(!a.given("duration"), &p.setting.Duration, t.Duration)
			}
			model.Duration, model.Deadline = p.setting.Duration, p.setting.Deadline
			return p.run(a, args, func(retry.Policy) retryplan.Model { return model },
				func(p *retryplan.Plan) { a.outlook(p, model.Deadline) },
				func(all ...plots.Plan) (*plots.Picture, error) { return plots.Outlook(model.Deadline, all...) })
		},
	}
	failureVar(cmd.Flags(), &model.Failure, "1")
	cmd.Flags().IntVar(&model.Horizon, "horizon", 0, "how many attempts to look at, up to 1000 (default 100)")
	traffic.add(cmd.Flags())
	p.add(cmd.Flags())
	return cmd
}

// outlook prints what becomes of a run.
func (a *app) outlook(p *retryplan.Plan, deadline time.Duration) {
	g := newGrid("attempt", "starts after", "wait before", "a run makes it", "succeeds with it", "cannot start").words(5)
	for _, at := range p.Attempts {
		cells := []string{strconv.Itoa(at.Number), say.Between(at.Earliest, at.Latest), "", say.Percent(at.Starts), say.Percent(at.Succeeds), ""}
		if at.Number > 1 {
			cells[2] = say.Between(at.Wait.Lo, at.Wait.Hi)
		}
		if at.Never != 0 {
			cells[1], cells[5] = "", wire.Reason(at.Never)
		}
		g.row(cells...)
	}
	a.print(g)
	if p.Truncated {
		a.line("... and more attempts: a run is taken as given up after %d; --horizon looks further", len(p.Attempts))
	}
	a.line("")
	var s facts
	s.add("success", say.Percent(p.Success))
	if deadline > 0 {
		s.add("success in time", say.Percent(p.InTime)+" by "+wire.Duration(deadline).String())
	}
	s.add("load", say.Number(p.Load)+" attempts per run")
	s.add("attempts that can start", fmt.Sprintf("%d of %d", p.CanStart, len(p.Attempts)))
	s.add("total wait, all fail", distribution(p.TotalWait))
	s.add("a run takes", distribution(p.Elapsed))
	s.add("takes at most", say.Span(p.WorstCase))
	s.add("runs end as", endings(p.Endings))
	a.printFacts(s)
}

// endings returns the probabilities of endings, the likeliest first.
func endings(of map[retry.Reason]float64) string {
	reasons := slices.SortedFunc(maps.Keys(of), func(a, b retry.Reason) int {
		return cmp.Or(cmp.Compare(of[b], of[a]), cmp.Compare(a, b))
	})
	var texts []string
	for _, r := range reasons {
		if of[r] >= say.Noise {
			texts = append(texts, wire.Reason(r)+" "+say.Percent(of[r]))
		}
	}
	return strings.Join(texts, ", ")
}
