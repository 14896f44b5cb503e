package plots

import (
	"fmt"
	"math"
	"slices"
	"strings"
	"time"

	"github.com/retrygo/retry/cmd/retryplan/internal/say"
)

// schedule draws the wait before each attempt: a bar from the shortest to the longest, and a line through the means. If
// there is one plan, it also shades the attempts that can never start.
func schedule(plans []Plan) chart {
	c := chart{title: "Wait before each attempt", height: 244, empty: "one attempt: there is no wait"}
	last, cut := lastShown(plans)
	if cut {
		c.title = fmt.Sprintf("Wait before each of the first %d attempts", last)
	}
	var means []time.Duration
	var most time.Duration
	never := series{class: "faint"}
	wide := 0.8 / float64(len(plans))
	for i, p := range plans {
		s := series{name: short(p.Name), class: looks[i].class, dash: looks[i].dash}
		for j, a := range p.Plan.Attempts[1:min(len(p.Plan.Attempts), last)] {
			w, n := a.Wait, float64(j+2)
			x := n + (float64(i)+.5)*wide - 0.4
			means, most = append(means, w.Mean()), max(most, w.Max())
			s.points = append(s.points, point{x, w.Mean().Seconds()})
			s.boxes = append(s.boxes, box{x - wide/2, x + wide/2, w.Min().Seconds(), w.Max().Seconds()})
			if a.Never != 0 {
				never.name = "can never start (" + a.Never.Error() + ")"
				never.boxes = append(never.boxes, upright(n-.5, n+.5))
			}
		}
		c.series = append(c.series, s)
	}
	if len(plans) == 1 {
		c.title += ": " + c.series[0].name
		c.series[0].name = ""
		c.series = []series{never, c.series[0]}
	}
	c.x = axis{name: "attempt", min: 1.4, max: float64(max(last, 2)) + 0.6, steps: decades(1, 0, 6), text: say.Number}
	c.y = durationAxis("wait, mean and range", most+most/25, means...)
	return c
}

// lastShown returns the attempt up to which plans are drawn: the last attempt of the plans that have one, but at least
// the eighth. All attempts of a plan without end would leave the others no room. It reports whether some are left out.
func lastShown(plans []Plan) (last int, cut bool) {
	ended := 0
	for _, p := range plans {
		last, cut = max(last, len(p.Plan.Attempts)), cut || p.Plan.Truncated
		if !p.Plan.Truncated {
			ended = max(ended, len(p.Plan.Attempts), 8)
		}
	}
	if ended > 0 {
		last = min(last, ended)
	}
	return last, cut
}

// totalWait draws how long runs wait. It leaves out plans without a last attempt if there are others: their waits are
// as long as the attempts that were looked at.
func totalWait(plans []Plan) chart {
	const n, name = 200, "total wait of a run if every attempt fails" // segments of a curve
	limited := slices.ContainsFunc(plans, func(p Plan) bool { return !p.Plan.Truncated })
	c := chart{title: strings.ToUpper(name[:1]) + name[1:], height: 229}
	var typical []time.Duration
	var most time.Duration
	for i, p := range plans {
		s, d := series{class: looks[i].class, dash: looks[i].dash}, &p.Plan.TotalWait
		if limited && p.Plan.Truncated {
			d = nil
		}
		switch {
		case d == nil:
			s.name = "not shown: it has no last attempt"
		case d.Min() == d.Max():
			s.name = "always " + say.Span(d.Max())
		default:
			s.name = "p50 " + say.Span(d.Quantile(.5)) + ", p99 " + say.Span(d.Quantile(.99)) + ", worst " + say.Span(d.Max())
		}
		if len(plans) > 1 {
			s.name = short(p.Name) + ": " + s.name
		}
		if d != nil {
			typical, most = append(typical, d.Quantile(.01), d.Quantile(.5)), max(most, d.Max())
			for j := range n + 1 {
				q := math.Round(500*(1-math.Cos(math.Pi*float64(j)/n))) / 1000 // closer at the ends
				s.points = append(s.points, point{d.Quantile(q).Seconds(), q})
			}
		}
		c.series = append(c.series, s)
	}
	c.x = durationAxis(name, most+most/25, typical...)
	c.y = axis{name: "share of runs", max: 1.03, steps: []float64{.05, .1, .25, .5}, text: say.Percent}
	return c
}
