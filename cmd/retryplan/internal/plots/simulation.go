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

// Simulation draws a run over time, with its trigger shaded: the load and the goodput, and below them the queue. If the
// series is empty, the picture says so.
func Simulation(r retryplan.Result) Picture {
	return overTime([]retryplan.Result{r}, chart{y: axis{name: "load, per second", steps: parts}, series: []series{
		{name: "attempts sent", class: "red", points: rates(r, attempts)},
		{name: "goodput: runs that succeeded", class: "blue", points: rates(r, goodput)},
		{name: "runs offered", class: "ink", dash: "3 3", points: rates(r, offered)},
	}}, chart{y: axis{name: "queue, attempts", steps: decades(1, 0, 30)}, series: []series{ // whole numbers
		{class: "green", points: points(r, queue, 1), area: true},
	}})
}

// parts are steps of an axis of numbers.
var parts = decades(1, -12, 30)

// overTime gives charts the axes of runs over time, and shades the triggers of these.
func overTime(runs []retryplan.Result, top, below chart) Picture {
	begin, end := beforeTriggers(runs), time.Second
	for _, r := range runs {
		if n := len(r.Series); n > 0 {
			end = max(end, r.Series[n-1].Start+r.Step)
		}
	}
	if begin > end-time.Second {
		begin = 0
	}
	shade := triggers(runs)
	top.height, below.height = 194, 139
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
func beforeTriggers(runs []retryplan.Result) time.Duration {
	first := time.Duration(math.MaxInt64)
	for _, r := range runs {
		if len(r.Series) > 0 {
			first = min(first, r.Trigger.From)
		}
	}
	if first == math.MaxInt64 {
		return 0
	}
	return max(first-30*time.Second, 0)
}

// triggers shades the triggers of the runs. The last one names them all: they differ in when they begin.
func triggers(runs []retryplan.Result) (shade series) {
	for _, r := range runs {
		t := r.Trigger
		if t == (retryplan.Trigger{}) {
			continue
		}
		if b := upright(t.From.Seconds(), t.From.Seconds()+t.For.Seconds()); !slices.Contains(shade.boxes, b) {
			shade.boxes = append(shade.boxes, b)
		}
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
