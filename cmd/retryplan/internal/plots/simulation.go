package plots

import (
	"cmp"
	"math"
	"slices"
	"time"

	"github.com/retrygo/retry/cmd/retryplan/internal/say"
	"github.com/retrygo/retry/retryplan"
)

// The measures of an interval.
func offered(p retryplan.Point) int  { return p.Offered }
func attempts(p retryplan.Point) int { return p.Attempts }
func goodput(p retryplan.Point) int  { return p.Goodput }
func queue(p retryplan.Point) int    { return p.Queue }

// simulation draws runs over time, with their triggers shaded.
func simulation(runs []Run) Picture {
	parts := decades(1, -12, 30)
	top := chart{title: "Simulation", height: 194, y: axis{name: "goodput, per second", steps: parts}}
	below := chart{height: 139, y: axis{name: "attempts sent, per second", steps: parts}}
	begin, end := beforeTriggers(runs), time.Second
	for i, r := range runs {
		l := looks[i]
		top.series = append(top.series, series{name: short(r.Name), class: l.class, dash: l.dash, points: rates(r.Result, goodput)})
		below.series = append(below.series, series{class: l.class, dash: l.dash, points: rates(r.Result, attempts)})
		if n := len(r.Result.Series); n > 0 {
			end = max(end, r.Result.Series[n-1].Start+r.Result.Step)
		}
	}
	if len(runs) == 1 {
		r := runs[0].Result
		top.title += ": " + top.series[0].name
		top.y.name, top.series = "load, per second", []series{
			{name: "attempts sent", class: "red", points: rates(r, attempts)},
			{name: "goodput: runs that succeeded", class: "blue", points: rates(r, goodput)},
			{name: "runs offered", class: "ink", dash: "3 3", points: rates(r, offered)},
		}
		below.y = axis{name: "queue, attempts", steps: decades(1, 0, 30)} // whole numbers
		below.series = []series{{class: "green", points: points(r, queue, 1), area: true}}
	}
	if begin > end-time.Second {
		begin = 0
	}
	shade := triggers(runs)
	for _, c := range []*chart{&top, &below} {
		c.empty = "no data: nothing was simulated"
		c.x, c.y.text = durationAxis("time since the start", end), say.Number
		c.x.min = begin.Seconds()
		for i := range c.series {
			s := &c.series[i]
			s.points = slices.DeleteFunc(s.points, func(p point) bool { return p.x < c.x.min })
			for _, q := range s.points {
				c.y.max = max(c.y.max, q.y*1.05)
			}
		}
		c.y.max = cmp.Or(c.y.max, 1)
		c.series = append([]series{shade}, c.series...)
		shade.name = "" // in one legend only
	}
	return Picture{top, below}
}

// beforeTriggers returns the time from which on runs are drawn: half a minute before the first trigger, or 0 without one.
func beforeTriggers(runs []Run) time.Duration {
	first := time.Duration(math.MaxInt64)
	for _, r := range runs {
		if len(r.Result.Series) > 0 {
			first = min(first, r.Result.Trigger.From)
		}
	}
	if first == math.MaxInt64 {
		return 0
	}
	return max(first-30*time.Second, 0)
}

// triggers shades the triggers of the runs. The last one names them all: they differ in when they begin.
func triggers(runs []Run) (shade series) {
	for _, r := range runs {
		t := r.Result.Trigger
		if t == (retryplan.Trigger{}) {
			continue
		}
		if b := upright(t.From.Seconds(), t.From.Seconds()+t.For.Seconds()); !slices.Contains(shade.boxes, b) {
			shade.boxes = append(shade.boxes, b)
		}
		t.From = 0
		shade.name, shade.class = "trigger: "+say.Trigger(t), "orange"
	}
	return shade
}

// rates returns a measure per second.
func rates(r retryplan.Result, measure func(retryplan.Point) int) []point {
	return points(r, measure, r.Step.Seconds())
}

// points returns a measure, divided by unit, in the middle of each interval of r.
func points(r retryplan.Result, measure func(retryplan.Point) int, unit float64) (all []point) {
	for _, p := range r.Series {
		all = append(all, point{(p.Start + r.Step/2).Seconds(), float64(measure(p)) / unit})
	}
	return thin(all, 240)
}

// thin keeps the lowest and the highest point of each of so many stretches, in order, so that no peak is lost. It
// returns a shorter list as it is.
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
