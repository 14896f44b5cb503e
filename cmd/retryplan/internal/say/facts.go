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
	Name, Figure string
	More         string // what the terminal adds to the figure, after a space or a comma of its own
	Help         string // what the page adds instead, for a reader who does not know the name
}

// Facts are in the order in which they are read.
type Facts []Fact

// Add adds a fact without help.
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

// Plan returns what becomes of a run whose caller has a deadline, or none if it is 0.
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

// Certificate returns what the certificates of fleets and of chains say, the verdict first.
func Certificate(c retryplan.Certificate, f retryplan.Fleet) (v Facts) {
	what, why := Stability(&c, f)
	v.Add("verdict", c.Stability.String(), ": "+what+" "+why)
	v.Add("trigger", Trigger(f.Trigger), "")
	v = append(v, Fact{"hidden capacity", Number(c.HiddenCapacity) + " runs/s", "; " + Number(f.Rate) + " begin",
		"what the backend can serve in a storm, while every attempt is too late and is retried"})
	if c.Recovery < 0 {
		v.Add("recovery by law", "never", " by itself")
	} else {
		v.Add("recovery by law", Span(c.Recovery), " after the trigger's end")
	}
	v.Add("law", c.Law, ": "+Law(c.Law))
	v.Add("margin", Percent(c.Margin), " from the boundary of another verdict")
	return v
}

// Storm returns what the certificate of a fleet says beside that.
func Storm(c retryplan.Certificate) (f Facts) {
	f.Add("attempts in a storm", Number(c.Attempts), " per run")
	tipping := Fact{"tipping point", Span(c.Tipping), " of this trigger", "the shortest trigger that makes the storm permanent"}
	if c.Tipping == 0 {
		tipping.More = ": random arrivals are enough, without a trigger"
	} else if c.Tipping < 0 {
		tipping.Figure, tipping.More = "none", ": no length of this trigger changes the verdict"
	}
	return append(f, tipping)
}

// Simulation returns what a simulation came to.
func Simulation(r *retryplan.Result, s *retryplan.Scenario) (f Facts) {
	f.Add("simulated", Span(r.Simulated), fmt.Sprintf(", seed %d", s.Seed))
	end := time.Duration(0)
	for _, t := range s.Triggers {
		f.Add("trigger", Trigger(t), "")
		end = max(end, t.End())
	}
	if len(s.Triggers) > 0 {
		more := ""
		switch {
		case r.Judged && r.Recovered:
			more = " after the trigger's end"
		case r.Judged:
			more = " in the " + Span(r.Simulated-end) + " after the trigger's end"
		default:
			more = ": the last retries of what the trigger hit come later"
		}
		f.Add("recovery", Recovery(r), more)
	}
	share := func(name string, n, of int, more string) {
		if n > 0 {
			f.Add(name, Percent(ratio(n, of)), more)
		}
	}
	f.Add("attempts per run", Number(r.Amplification), fmt.Sprintf(", %d in all", r.Attempts))
	share("hedges", r.Hedges, r.Attempts-r.Hedges, " of the attempts got a second call")
	f.Add("failed", Percent(r.Failed), fmt.Sprintf(" of %d runs", r.Runs))
	share("rejected", r.Rejected, r.Attempts, " of the attempts")
	share("wasted", r.Wasted, r.Attempts, " of the attempts: no client waited for the result")
	share("unfinished", r.Unfinished, r.Runs, fmt.Sprintf(" of the runs, %d", r.Unfinished))
	f.Add("peak", strconv.Itoa(r.Peak), fmt.Sprintf(" attempts in the %s from %s on", Span(r.Step), Span(r.PeakAt)))
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

// Recovery returns after how long a fleet came back from its trigger, which may not be known.
func Recovery(r *retryplan.Result) string {
	switch {
	case !r.Judged:
		return "not known"
	case r.Recovered:
		return Span(r.Recovery)
	}
	return "never"
}

func ratio(n, of int) float64 { return float64(n) / float64(max(of, 1)) }
