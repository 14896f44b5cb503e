package plots

import (
	"fmt"
	"math"
	"slices"
	"strings"
	"time"

	"github.com/retrygo/retry/retryplan"
)

// stretches is into how many parts a series is thinned: two points of a picture each.
const stretches = 240

// measure is what a panel shows of an interval.
type measure struct {
	name string
	of   func(retryplan.Point) float64
	rate bool // shown for each second, not for each interval
}

var (
	offered  = measure{"runs offered", func(p retryplan.Point) float64 { return float64(p.Offered) }, true}
	attempts = measure{"attempts sent", func(p retryplan.Point) float64 { return float64(p.Attempts) }, true}
	goodput  = measure{"goodput", func(p retryplan.Point) float64 { return float64(p.Goodput) }, true}
	queue    = measure{"queue", func(p retryplan.Point) float64 { return float64(p.Queue) }, false}
)

// values returns m of each interval of r; rates in events a second.
func (m measure) values(r retryplan.Result) []float64 {
	unit := 1.0
	if m.rate {
		unit = r.Step.Seconds()
	}
	vs := make([]float64, len(r.Series))
	for i, p := range r.Series {
		if v := m.of(p) / unit; !math.IsNaN(v) && !math.IsInf(v, 0) {
			vs[i] = v
		}
	}
	return vs
}

// points places the values of m in the middle of their intervals, and keeps only their peaks if there are too many.
func (m measure) points(r retryplan.Result) []point {
	vs := m.values(r)
	ps := make([]point, len(vs))
	for i, v := range vs {
		ps[i] = point{r.Series[i].Start.Seconds() + r.Step.Seconds()/2, v}
	}
	if len(ps) == 1 { // a line has two ends
		half := r.Step.Seconds() / 2
		return []point{{ps[0].x - half, ps[0].y}, {ps[0].x + half, ps[0].y}}
	}
	return thin(ps, stretches)
}

func simulationSection(runs []Run, width float64) section {
	end, some := 0.0, false
	for _, r := range runs {
		end = max(end, length(r.Result).Seconds())
		some = some || len(r.Result.Series) > 0
	}
	s := section{title: "Simulation"}
	if len(runs) == 1 {
		s.title += ": " + runs[0].Name
	}
	x := linearDurations(0, end, int(width/66))
	if !some {
		p := newPanel(160, x, "time", countAxis(1, 4), "")
		p.add(message("no data: nothing was simulated"))
		s.panels = []panel{p}
		return s
	}
	named := nameTriggers(runs, x, width-110) // about the width of a panel
	if len(runs) == 1 {
		s.keys, s.panels = oneRun(runs[0].Result, x, named)
	} else {
		s.keys, s.panels = manyRuns(runs, x, named)
	}
	if len(named) > 0 {
		s.keys = append(s.keys, boxKey("trigger", "orange"))
		if left := len(slices.DeleteFunc(slices.Clone(named), func(t trigger) bool { return t.row < mostNameRows })); left > 0 {
			s.note = fmt.Sprintf("%d triggers that begin close to others have no name.", left)
		}
	}
	return s
}

func oneRun(r retryplan.Result, x axis, named []trigger) ([]key, []panel) {
	begun, sent, good := stroke{"ink", "3 3"}, stroke{class: "red"}, stroke{class: "blue"}
	load := timePanel(230, x, "load, per second", named, true, attempts.values(r), offered.values(r), goodput.values(r))
	load.add(line(sent, attempts.points(r)), line(good, goodput.points(r)), line(begun, offered.points(r)))
	backlog := timePanel(165, x, "queue, attempts", named, false, queue.values(r), []float64{timeLabels})
	backlog.add(area(stroke{class: "green"}, queue.points(r)), line(stroke{class: "green"}, queue.points(r)))
	backlog.xLabel = "time since the start"
	return []key{
		lineKey("runs offered", begun, "curve"),
		lineKey("attempts sent", sent, "curve"),
		lineKey("goodput: runs that succeeded", good, "curve"),
	}, []panel{load, backlog}
}

func manyRuns(runs []Run, x axis, named []trigger) ([]key, []panel) {
	var keys []key
	var panels []panel
	for i, m := range []measure{goodput, attempts} {
		var all [][]float64
		for _, r := range runs {
			all = append(all, m.values(r.Result))
		}
		p := timePanel(185, x, m.name+", per second", named, i == 0, all...)
		for j, r := range runs {
			p.add(line(looks[j].stroke, m.points(r.Result)))
		}
		panels = append(panels, p)
	}
	panels[1].xLabel = "time since the start"
	for j, r := range runs {
		keys = append(keys, lineKey(r.Name, looks[j].stroke, "curve"))
	}
	return keys, panels
}

// timeLabels is how many labels the upright axis of a time panel has.
const timeLabels = 5

// timePanel returns a panel over time with the triggers shaded. The names of the triggers stand in the first panel,
// above all values.
func timePanel(height float64, x axis, yLabel string, named []trigger, first bool, values ...[]float64) panel {
	most := 0.0
	for _, vs := range values {
		most = max(most, upper(vs...))
	}
	y := countAxis(most, timeLabels)
	rows := 0
	if first {
		for _, t := range named {
			rows = min(max(rows, t.row+1), mostNameRows)
		}
		free := 0.11 * float64(rows) // a row is 0.1 of the height
		y.max /= 1 - free
	}
	p := newPanel(height, x, "", y, yLabel)
	for _, t := range named {
		p.add(stripe(t.From.Seconds(), end(t.Trigger).Seconds()))
	}
	p.add(gridLines(nil, y.ticks))
	if !first {
		return p
	}
	var names []label
	for _, t := range named {
		if t.row >= mostNameRows {
			continue
		}
		names = append(names, label{
			at: point{max(t.From.Seconds(), 0), y.max * (1 - 0.1*(float64(t.row)+0.6))}, dx: 4, text: t.name, boxed: true,
		})
	}
	p.add(labels(names...))
	return p
}

// mostNameRows is how many rows of names there are: names in more of them would leave no room for the values.
const mostNameRows = 5

// length is how much time r covers.
func length(r retryplan.Result) time.Duration {
	l := r.Simulated
	if n := len(r.Series); n > 0 {
		l = max(l, r.Series[n-1].Start+r.Step)
	}
	return l
}

// trigger is a Trigger with its name and the row that the name stands in.
type trigger struct {
	retryplan.Trigger
	name string
	row  int
}

func end(t retryplan.Trigger) time.Duration {
	if t.For > math.MaxInt64-max(t.From, 0) {
		return math.MaxInt64
	}
	return t.From + max(t.For, 0)
}

// nameTriggers returns the triggers of all runs that begin within x, each once, by time, with names in rows so that
// none runs into another in a panel of that room.
func nameTriggers(runs []Run, x axis, room float64) []trigger {
	var all []trigger
	for _, r := range runs {
		for _, t := range r.Triggers {
			same := func(u trigger) bool { return u.Trigger == t }
			if t.From.Seconds() <= x.max && end(t) >= 0 && !slices.ContainsFunc(all, same) {
				all = append(all, trigger{Trigger: t, name: triggerName(t)})
			}
		}
	}
	slices.SortStableFunc(all, func(a, b trigger) int { return int(min(max(a.From-b.From, -1), 1)) })
	var ends []float64
	for i := range all {
		width := widthOf(all[i].name, tickSize) + 10
		left := min(max(x.norm(all[i].From.Seconds()), 0)*room, room-width) // one at the right edge is moved to the left
		row := slices.IndexFunc(ends, func(e float64) bool { return e <= left })
		if row < 0 {
			row, ends = len(ends), append(ends, 0)
		}
		all[i].row, ends[row] = row, left+width
	}
	return all
}

func triggerName(t retryplan.Trigger) string {
	percent := func(v float64) string { return countText(v*100) + " %" }
	var name string
	switch t.Kind {
	case retryplan.Stall:
		name = "stall"
	case retryplan.Outage:
		name = "outage"
	case retryplan.Slowdown:
		name = "slowdown ×" + countText(t.Factor)
	case retryplan.CapacityCut:
		name = "capacity cut to " + percent(t.Factor)
	case retryplan.Surge:
		name = "surge ×" + countText(t.Factor)
	case retryplan.Failing:
		name = percent(t.Factor) + " failing"
	default:
		name = fmt.Sprintf("trigger %d", t.Kind)
	}
	return strings.TrimSpace(name + " " + durationText(t.For))
}
