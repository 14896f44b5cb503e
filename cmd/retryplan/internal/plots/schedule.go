package plots

import (
	"fmt"
	"strings"
	"time"

	"github.com/retrygo/retry/cmd/retryplan/internal/say"
	"github.com/retrygo/retry/retryplan"
)

// Up to how many attempts a chart has room for more about each.
const (
	labeled = 12 // its longest wait as text
	marked  = 25 // a marker
	divided = 40 // its quantiles
)

// schedule draws the wait before each attempt: a bar from the shortest to the longest, and a line through the means. Of
// a plan alone it also draws quantiles, and which attempts can never start.
func schedule(plans []Plan) chart {
	c := chart{title: "Wait before each attempt", height: 280, empty: "one attempt: there is no wait"}
	last, cut := lastShown(plans)
	if cut {
		c.note = fmt.Sprintf("Attempts go on after the last one shown, %d.", last)
	}
	var attempts []retryplan.PlannedAttempt
	var typical, all []time.Duration
	var lines []series // above all bars
	wide := 0.8 / float64(len(plans))
	for i, p := range plans {
		attempts = p.Plan.Attempts[1:min(len(p.Plan.Attempts), last)]
		spread := series{look: looks[i]}
		mean := series{name: p.Name, look: looks[i]}
		for _, a := range attempts {
			w, x := a.Wait, float64(a.Number)+(float64(i)+.5)*wide-0.4
			typical, all = append(typical, w.Mean), append(all, w.Lo, w.Mean, w.Hi)
			mean.points = append(mean.points, point{x, w.Mean.Seconds()})
			if w.Lo < w.Hi {
				spread.boxes = append(spread.boxes, box{x - wide/2, x + wide/2, w.Lo.Seconds(), w.Hi.Seconds()})
			}
		}
		if len(attempts) <= marked {
			mean.marks = mean.points
		}
		if len(attempts) == 0 {
			mean.name += " (no retry)"
		}
		c.series, lines = append(c.series, spread), append(lines, mean)
	}
	c.series = append(c.series, lines...)
	c.x = axis{name: "attempt", min: 1.4, max: float64(max(last, 2)) + 0.6, steps: decades(1, 0, 6), text: say.Number}
	c.y = durationAxis(typical, all).withRoom(0.08) // for the labels above the highest
	c.y.name = "wait"
	if len(plans) == 1 {
		c.title += ": " + plans[0].Name
		c.alone(attempts)
	} else {
		c.note = strings.TrimSpace(c.note + " A bar goes from the shortest wait to the longest, a line through the means.")
	}
	return c
}

// alone draws what there is room for if there is one plan.
func (c *chart) alone(attempts []retryplan.PlannedAttempt) {
	spread, mean := &c.series[0], &c.series[1]
	spread.name, mean.name = "shortest to longest", "mean"
	if spread.boxes == nil {
		spread.name, mean.name = "", "wait, no jitter"
	}
	never := series{look: look{class: "faint"}}
	quantiles := []series{{name: "p50"}, {name: "p90", look: look{dash: "5 3"}}, {name: "p99", look: look{dash: "1.6 2.2"}}}
	for _, a := range attempts {
		x := float64(a.Number)
		if a.Never != 0 {
			never.name = "can never start (" + a.Never.Error() + ")"
			never.boxes = append(never.boxes, upright(x-.5, x+.5))
		}
		if len(attempts) <= labeled {
			c.labels = append(c.labels, label{point{x, a.Wait.Hi.Seconds()}, say.Span(a.Wait.Hi)})
		}
		for i, q := range []time.Duration{a.Wait.P50, a.Wait.P90, a.Wait.P99} {
			s := &quantiles[i]
			s.look.class = "ink"
			s.boxes = append(s.boxes, box{x - .4, x + .4, q.Seconds(), q.Seconds()})
		}
	}
	c.series = append([]series{never}, c.series...)
	if spread.boxes != nil && len(attempts) <= divided {
		c.series = append(c.series, quantiles...)
	}
}

// lastShown returns the attempt up to which plans are drawn: the last one of the plans that have an end, and 8 at
// least. The attempts of a plan without end would leave the others no room. It reports whether some are left out.
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
