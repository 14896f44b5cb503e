package plots

import (
	"math"
	"slices"
	"strings"
	"time"

	"github.com/retrygo/retry/cmd/retryplan/internal/say"
	"github.com/retrygo/retry/retryplan"
)

// totalWait draws how long runs have waited. It leaves out plans without a last attempt beside others: their waits are
// as long as attempts were looked at.
func totalWait(plans []Plan) chart {
	c := chart{title: "Total wait, if every attempt fails"}
	limited := slices.ContainsFunc(plans, func(p Plan) bool { return !p.Plan.Truncated })
	var left []string
	all := make([]*retryplan.Distribution, len(plans))
	for i, p := range plans {
		if limited && p.Plan.Truncated {
			left = append(left, p.Name)
		} else {
			all[i] = &p.Plan.TotalWait
		}
	}
	if left != nil {
		c.note = "Without a last attempt, and not shown: " + strings.Join(left, ", ") + "."
	}
	return c.distributions(plans, all, 0, "total wait of a run that never succeeds", "runs that have waited no longer")
}

// elapsed draws how long runs take.
func elapsed(plans []Plan, deadline time.Duration) chart {
	all := make([]*retryplan.Distribution, len(plans))
	for i, p := range plans {
		all[i] = &p.Plan.Elapsed
	}
	return chart{title: "Time that a run takes"}.distributions(plans, all, deadline, "time since the start of a run", "runs that have ended")
}

// distributions draws those of plans, nil for none, with the median, the 99th percentile and the worst case marked.
func (c chart) distributions(plans []Plan, all []*retryplan.Distribution, deadline time.Duration, x, y string) chart {
	const n = 200 // stretches of a curve
	var typical, longest []time.Duration
	for i, d := range all {
		if d == nil {
			continue
		}
		p50, p99, worst := d.Quantile(.5), d.Quantile(.99), d.Max()
		typical, longest = append(typical, d.Quantile(.01), p50, worst), append(longest, d.Min(), worst)
		s := series{look: looks[i]}
		for j := range n + 1 {
			q := math.Round(500*(1-math.Cos(math.Pi*float64(j)/n))) / 1000 // closer at the ends
			s.points = append(s.points, point{d.Quantile(q).Seconds(), q})
		}
		s.marks = []point{{p50.Seconds(), .5}, {p99.Seconds(), .99}, {worst.Seconds(), 1}}
		s.name = "p50 " + say.Span(p50) + ", p99 " + say.Span(p99) + ", worst " + say.Span(worst)
		if d.Min() == worst {
			s.name = "always " + say.Span(worst)
		}
		if len(plans) == 1 {
			c.title += ": " + plans[i].Name
		} else {
			s.name = plans[i].Name + ": " + s.name
		}
		c.series = append(c.series, s)
	}
	if deadline > 0 {
		s := series{name: "deadline " + say.Span(deadline), look: look{class: "red", dash: "2 2"}}
		if due := deadline; due/3 < slices.Max(longest) { // one farther off would leave no room for the curves
			longest = append(longest, due)
			s.points = []point{{due.Seconds(), 0}, {due.Seconds(), 1}}
		}
		c.series = append(c.series, s)
	}
	c.height = 265
	c.x = durationAxis(x, typical, longest).withRoom(0.04)
	c.y = axis{name: y, max: 1.03, steps: []float64{.05, .1, .25, .5}, text: say.Percent}
	return c
}
