package plots

import (
	"cmp"
	"slices"
	"time"

	"github.com/retrygo/retry/cmd/retryplan/internal/say"
	"github.com/retrygo/retry/cmd/retryplan/internal/wire"
	"github.com/retrygo/retry/retryplan"
)

// The measures of an interval.
func offered(p retryplan.Point) int  { return p.Offered }
func attempts(p retryplan.Point) int { return p.Attempts }
func goodput(p retryplan.Point) int  { return p.Goodput }
func queue(p retryplan.Point) int    { return p.Queue }

// simulation draws runs over time, with their triggers shaded.
func simulation(runs []Run) []chart {
	var top, below chart
	if len(runs) == 1 {
		r := runs[0].Result
		top = chart{title: "Simulation: " + runs[0].Name, y: axis{name: "load, per second"}, series: []series{
			{name: "attempts sent", look: look{class: "red"}, points: rates(r, attempts)},
			{name: "goodput: runs that succeeded", look: look{class: "blue"}, points: rates(r, goodput)},
			{name: "runs offered", look: look{class: "ink", dash: "3 3"}, points: rates(r, offered)},
		}}
		below = chart{y: axis{name: "queue, attempts"}, series: []series{
			{look: look{class: "green"}, points: points(r, queue, 1), area: true},
		}}
	} else {
		top = chart{title: "Simulation", y: axis{name: "goodput, per second"}}
		below = chart{y: axis{name: "attempts sent, per second"}}
		for i, r := range runs {
			top.series = append(top.series, series{name: r.Name, look: looks[i], points: rates(r.Result, goodput)})
			below.series = append(below.series, series{look: looks[i], points: rates(r.Result, attempts)})
		}
	}
	end := time.Second
	for _, r := range runs {
		end = max(end, r.Result.Simulated)
		if n := len(r.Result.Series); n > 0 {
			end = max(end, r.Result.Series[n-1].Start+r.Result.Step)
		}
	}
	top.height, below.height = 230, 175
	for _, c := range []*chart{&top, &below} {
		c.empty = "no data: nothing was simulated"
		c.x = durationAxis(nil, []time.Duration{end})
		c.x.name = "time since the start"
		c.y.steps, c.y.text = decades(1, -12, 30), say.Number
		for _, s := range c.series {
			for _, q := range s.points {
				c.y.max = max(c.y.max, q.y)
			}
		}
		c.y.max = cmp.Or(c.y.max, 1)
		c.y = c.y.withRoom(0.05)
	}
	if len(runs) == 1 {
		below.y.steps = decades(1, 0, 30) // a queue is whole
	}
	shade := series{name: "trigger", look: look{class: "orange"}}
	for _, r := range runs {
		for _, t := range r.Triggers {
			b := upright(t.From.Seconds(), t.End().Seconds())
			if t.From > end || t.End() < 0 || slices.Contains(shade.boxes, b) {
				continue
			}
			shade.boxes = append(shade.boxes, b)
			top.labels = append(top.labels, label{point{(max(b.left, 0) + min(b.right, end.Seconds())) / 2, top.y.max}, wire.Lasting(t)})
		}
	}
	if shade.boxes != nil {
		top.y = top.y.withRoom(0.12) // for their names
		top.series = append([]series{shade}, top.series...)
		shade.name = "" // the legend above has it
		below.series = append([]series{shade}, below.series...)
	}
	return []chart{top, below}
}

// rates places a measure, per second.
func rates(r retryplan.Result, measure func(retryplan.Point) int) []point {
	return points(r, measure, r.Step.Seconds())
}

// points places a measure, divided by a unit, in the middle of the intervals of r.
func points(r retryplan.Result, measure func(retryplan.Point) int, unit float64) (all []point) {
	for _, p := range r.Series {
		all = append(all, point{(p.Start + r.Step/2).Seconds(), float64(measure(p)) / unit})
	}
	return thin(all, 240)
}

// thin returns the lowest and the highest point of each of so many stretches, in order, so that no peak is lost. Fewer
// points are returned as they are.
func thin(points []point, stretches int) (kept []point) {
	if len(points) <= 2*stretches {
		return points
	}
	byHeight := func(a, b point) int { return cmp.Compare(a.y, b.y) }
	for stretch := range slices.Chunk(points, (len(points)+stretches-1)/stretches) {
		a, b := slices.MinFunc(stretch, byHeight), slices.MaxFunc(stretch, byHeight)
		if a.x > b.x {
			a, b = b, a
		}
		if kept = append(kept, a); a != b {
			kept = append(kept, b)
		}
	}
	return kept
}
