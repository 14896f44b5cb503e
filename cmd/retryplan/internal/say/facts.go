package say

import (
	"cmp"
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/retrygo/retry"
	"github.com/retrygo/retry/retryplan"
)

// Fact is a figure with its name.
type Fact struct {
	Name   string `json:"name"`
	Figure string `json:"figure"`
	More   string `json:"more"` // follows the figure, and begins with a space or a comma
}

// Facts are in the order in which they are read.
type Facts []Fact

// Add adds a fact.
func (f *Facts) Add(name, figure, more string) {
	*f = append(*f, Fact{Name: name, Figure: figure, More: more})
}

// Distribution adds the range of durations, their mean and some quantiles.
func (f *Facts) Distribution(name string, d retryplan.Distribution) {
	more := ""
	if d.Min() != d.Max() {
		more = fmt.Sprintf(", mean %s, p50 %s, p90 %s, p99 %s",
			Span(d.Mean()), Span(d.Quantile(.5)), Span(d.Quantile(.9)), Span(d.Quantile(.99)))
	}
	f.Add(name, Between(d.Min(), d.Max()), more)
}

// Plan returns the figures of a run whose caller has a deadline, or none if it is 0.
func Plan(p *retryplan.Plan, deadline time.Duration) (f Facts) {
	by := ""
	if deadline > 0 {
		by = " by " + Duration(deadline)
	}
	f.Add("success", Percent(p.Success), by)
	f.Add("load", Number(p.Load), " attempts per run")
	f.Add("attempts that can start", strconv.Itoa(p.CanStart), fmt.Sprintf(" of %d", len(p.Attempts)))
	f.Distribution("total wait", p.TotalWait)
	f.Distribution("a run takes", p.Elapsed)
	f.Add("takes at most", Span(p.WorstCase), "")
	f.Add("runs end as", "", endings(p.Endings))
	return f
}

// endings returns the probabilities of endings, the likeliest first.
func endings(of map[retry.Reason]float64) string {
	reasons := slices.SortedFunc(maps.Keys(of), func(a, b retry.Reason) int {
		return cmp.Or(cmp.Compare(of[b], of[a]), cmp.Compare(a, b))
	})
	var texts []string
	for _, r := range reasons {
		if of[r] >= Noise {
			texts = append(texts, Reason(r)+" "+Percent(of[r]))
		}
	}
	return strings.Join(texts, ", ")
}

// Simulation returns the figures of one seed.
func Simulation(r *retryplan.Result) (f Facts) {
	switch {
	case r.Trigger.Kind == 0:
	case r.Recovery < 0:
		f.Add("recovery", "none", "")
	default:
		f.Add("recovery", Span(r.Recovery), " after the trigger's end")
	}
	share := func(name string, n, of int, more string) {
		if n > 0 {
			f.Add(name, Percent(ratio(n, of)), more)
		}
	}
	f.Add("attempts per run", Number(ratio(r.Attempts, r.Runs)), fmt.Sprintf(", %d in all", r.Attempts))
	share("hedges", r.Hedges, r.Attempts-r.Hedges, " of the attempts got a second call")
	f.Add("failed", Percent(ratio(r.Runs-r.Endings[0], r.Runs)), fmt.Sprintf(" of %d runs", r.Runs))
	share("rejected", r.Rejected, r.Attempts, " of the attempts")
	share("wasted", r.Wasted, r.Attempts, " of the attempts: no client waited for the result")
	share("unfinished", r.Unfinished, r.Runs, fmt.Sprintf(" of the runs, %d", r.Unfinished))
	if len(r.Series) > 0 {
		peak := slices.MaxFunc(r.Series, func(a, b retryplan.Point) int { return cmp.Compare(a.Attempts, b.Attempts) })
		f.Add("peak", strconv.Itoa(peak.Attempts), fmt.Sprintf(" attempts in the %s from %s on", Span(r.Step), Span(peak.Start)))
	}
	if r.Endings[0] > 0 {
		f.Distribution("success takes", r.Latency)
	}
	shares := map[retry.Reason]float64{}
	for reason, n := range r.Endings {
		shares[reason] = ratio(n, r.Runs)
	}
	if len(shares) > 0 {
		f.Add("runs ended as", "", endings(shares))
	}
	return f
}

func ratio(n, of int) float64 { return float64(n) / float64(max(of, 1)) }
