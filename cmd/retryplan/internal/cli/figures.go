package cli

import (
	"cmp"
	"fmt"
	"maps"
	"math"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/retrygo/retry"
	"github.com/retrygo/retry/cmd/retryplan/internal/say"
	"github.com/retrygo/retry/cmd/retryplan/internal/wire"
	"github.com/retrygo/retry/retryplan"
)

// distribution adds the range of durations, their mean and some quantiles.
func (f *facts) distribution(name string, d retryplan.Distribution) {
	more := ""
	if d.Min() != d.Max() {
		more = fmt.Sprintf(", mean %s, p50 %s, p90 %s, p99 %s",
			say.Span(d.Mean()), say.Span(d.Quantile(.5)), say.Span(d.Quantile(.9)), say.Span(d.Quantile(.99)))
	}
	f.add(name, say.Between(d.Min(), d.Max()), more)
}

// planFacts returns what becomes of a run.
func planFacts(p *retryplan.Plan, deadline time.Duration) (f facts) {
	by := ""
	set(deadline > 0, &by, " by "+wire.Duration(deadline).String())
	f.add("success", say.Percent(p.Success), by)
	f.add("load", say.Number(p.Load), " attempts per run")
	f.add("attempts that can start", strconv.Itoa(p.CanStart), fmt.Sprintf(" of %d", len(p.Attempts)))
	f.distribution("total wait", p.TotalWait)
	f.distribution("a run takes", p.Elapsed)
	f.add("takes at most", say.Span(p.WorstCase), "")
	f.add("runs end as", "", endings(p.Endings))
	return f
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

// verdict returns what the certificates of fleets and of chains say.
func verdict(c *retryplan.Certificate, f *retryplan.Fleet) (v facts) {
	what, why := say.Stability(c, *f)
	v.add("verdict", c.Stability.String(), ": "+what+" "+why)
	v.add("trigger", "", wire.Lasting(f.Trigger))
	v.add("hidden capacity", say.Number(c.HiddenCapacity)+" runs/s", "; "+say.Number(f.Rate)+" begin")
	if c.Recovery < 0 {
		v.add("recovery by law", "never", " by itself")
	} else {
		v.add("recovery by law", say.Span(c.Recovery), " after the trigger's end")
	}
	v.add("law", "", c.Law+": "+say.Law(c.Law))
	return v
}

// certificateFacts returns what the certificate of a fleet says.
func certificateFacts(c *retryplan.Certificate, f *retryplan.Fleet) facts {
	v := verdict(c, f)
	v.add("attempts in a storm", say.Number(c.Attempts), " per run")
	switch {
	case c.Tipping == 0:
		v.add("tipping point", "0s", ": random arrivals are enough, without a trigger")
	case c.Tipping > 0:
		v.add("tipping point", say.Span(c.Tipping), " of this trigger")
	default:
		v.add("tipping point", "none", ": no length of this trigger changes the verdict")
	}
	v.add("margin", say.Percent(c.Margin), " from the boundary of another verdict")
	return v
}

// resultFacts returns what a simulation came to, as far as it can be compared.
func resultFacts(r *retryplan.Result) (f facts) {
	f.add("attempts per run", say.Number(r.Amplification), fmt.Sprintf(", %d in all", r.Attempts))
	if r.Hedges > 0 {
		f.add("hedges", say.Percent(ratio(r.Hedges, r.Attempts-r.Hedges)), " of the attempts got a second call")
	}
	f.add("failed", say.Percent(r.Failed), fmt.Sprintf(" of %d runs", r.Runs))
	if r.Rejected > 0 {
		f.add("rejected", say.Percent(ratio(r.Rejected, r.Attempts)), " of the attempts")
	}
	if r.Wasted > 0 {
		f.add("wasted", say.Percent(ratio(r.Wasted, r.Attempts)), " of the attempts: no client waited for the result")
	}
	if r.Unfinished > 0 {
		f.add("unfinished", say.Percent(ratio(r.Unfinished, r.Runs)), fmt.Sprintf(" of the runs, %d", r.Unfinished))
	}
	f.add("peak", strconv.Itoa(r.Peak), fmt.Sprintf(" attempts in the %s from %s on", say.Span(r.Step), say.Span(r.PeakAt)))
	if r.Endings[0] > 0 {
		f.distribution("success takes", r.Latency)
	}
	return f
}

// recovery returns after how long a fleet came back from its trigger, which may not be known.
func recovery(r *retryplan.Result) string {
	switch {
	case !r.Judged:
		return "not known"
	case r.Recovered:
		return say.Span(r.Recovery)
	}
	return "never"
}

// summary prints what a simulation came to.
func (a *app) summary(r *retryplan.Result, s *retryplan.Scenario) {
	var f facts
	f.add("simulated", "", fmt.Sprintf("%s, seed %d", say.Span(r.Simulated), s.Seed))
	end := time.Duration(0)
	for _, t := range s.Triggers {
		f.add("trigger", "", wire.Trigger(t))
		end = max(end, t.End())
	}
	f = append(f, resultFacts(r)...)
	shares := map[retry.Reason]float64{}
	for reason, n := range r.Endings {
		shares[reason] = ratio(n, r.Runs)
	}
	if len(shares) > 0 {
		f.add("runs ended as", "", endings(shares))
	}
	if len(s.Triggers) > 0 && s.Rate > 0 {
		more := ""
		switch needed := s.Horizon(); {
		case r.Judged && r.Recovered:
			more = " after the trigger's end"
		case r.Judged:
			more = " in the " + say.Span(min(r.Simulated, s.Duration)-end) + " after the trigger's end"
		case max(end, needed) == math.MaxInt64:
			more = ": the trigger has no end"
		case s.Duration < needed: // otherwise the simulation was interrupted
			needed = (needed + time.Second - 1).Truncate(time.Second)
			more = fmt.Sprintf(": the last retries of what the trigger hit come later; give --duration %v", wire.Duration(needed))
		}
		f.add("recovery", recovery(r), more)
	}
	a.printFacts(f)
}

func ratio(n, of int) float64 { return float64(n) / float64(max(of, 1)) }
