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
	limited := slices.ContainsFunc(plans, func(p Plan) bool { return !p.Plan.Truncated })
	var left []string
	c := distributions(plans, "Total wait, if every attempt fails", 0, func(p Plan) *retryplan.Distribution {
		if limited && p.Plan.Truncated {
			left = append(left, p.Name)
			return nil
		}
		return &p.Plan.TotalWait
	})
	if left != nil {
		c.note = "Without a last attempt, and not shown: " + strings.Join(left, ", ") + "."
	}
	c.x.name = "total wait of a run that never succeeds"
	return c
}

// elapsed draws how long runs take.
func elapsed(plans []Plan, deadline time.Duration) chart {
	c := distributions(plans, "Time that a run takes", deadline, func(p Plan) *retryplan.Distribution { return &p.Plan.Elapsed })
	c.x.name = "time since the start of a run"
	return c
}

// distributions draws those of plans, nil for none, with the median, the 99th percentile and the worst case marked.
func distributions(plans []Plan, title string, deadline time.Duration, of func(Plan) *retryplan.Distribution) chart {
	const n = 200 // stretches of a curve
	c := chart{title: title, height: 265}
	var typical, longest []time.Duration
	for i, p := range plans {
		d := of(p)
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
			c.title += ": " + p.Name
		} else {
			s.name = p.Name + ": " + s.name
		}
		c.series = append(c.series, s)
	}
	if deadline > 0 {
		s := series{name: "deadline " + say.Span(deadline), look: look{class: "red", dash: "2 2"}}
		if deadline/3 < slices.Max(longest) { // one farther off would leave no room for the curves
			longest = append(longest, deadline)
			s.points = []point{{deadline.Seconds(), 0}, {deadline.Seconds(), 1}}
		} else {
			s.name += ", beyond this picture"
		}
		c.series = append(c.series, s)
	}
	c.x = durationAxis(typical, longest).withRoom(0.04)
	c.y = axis{name: "share of runs", max: 1.03, steps: []float64{.05, .1, .25, .5}, text: say.Percent}
	return c
}
