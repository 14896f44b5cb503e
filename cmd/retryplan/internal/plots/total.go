package plots

import (
	"cmp"
	"math"
	"slices"
	"strings"
	"time"
)

// distribution is what a retryplan.Distribution answers.
type distribution interface {
	CDF(time.Duration) float64
	Quantile(float64) time.Duration
	Min() time.Duration
	Max() time.Duration
}

// total is the distribution of a plan, drawn with one of looks.
type total struct {
	name string
	d    distribution
	look look
}

// totals are the distributions of plans, and what they are of.
type totals struct {
	title, x, key string
	all           []total
	note          string
	deadline      time.Duration // zero for none
}

// totalWaits leaves out plans without a last attempt beside others: their totals are as long as attempts were looked at.
func totalWaits(plans []Plan) totals {
	ts := totals{
		title: "Total wait, if every attempt fails", x: "total wait of a run that never succeeds", key: "share of runs that have waited no longer",
	}
	limited := slices.ContainsFunc(plans, func(p Plan) bool { return !p.Plan.Truncated })
	var left []string
	for i, p := range plans {
		if limited && p.Plan.Truncated {
			left = append(left, p.Name)
			continue
		}
		ts.all = append(ts.all, total{p.Name, p.Plan.TotalWait, looks[i]})
	}
	if left != nil {
		ts.note = "Without a last attempt, and not shown: " + strings.Join(left, ", ") + "."
	}
	return ts
}

func elapsedTimes(plans []Plan, deadline time.Duration) totals {
	ts := totals{title: "Time that a run takes", x: "time since the start of a run", key: "share of runs that have ended", deadline: deadline}
	for i, p := range plans {
		ts.all = append(ts.all, total{p.Name, p.Plan.Elapsed, looks[i]})
	}
	return ts
}

func (t total) figures() string {
	return "p50 " + durationText(t.d.Quantile(0.5)) + ", p99 " + durationText(t.d.Quantile(0.99)) + ", worst " + longest(t.d.Max())
}

func totalSection(ts totals, width float64) section {
	labels := int(width / 76)
	var typical []float64
	hi := 0.0
	least := ts.all[0].d.Min()
	for _, t := range ts.all {
		for _, q := range []float64{0.01, 0.5, 1} {
			typical = append(typical, t.d.Quantile(q).Seconds())
		}
		hi = max(hi, t.d.Max().Seconds())
		least = min(least, t.d.Min())
	}
	if due := ts.deadline.Seconds(); due < 3*hi { // one that is farther off would leave no room for the curves
		hi = max(hi, due)
	}
	lo := leastPositive(typical)
	x := durationAxis(lo, hi, spans(typical) && hi > 100*lo, least.Seconds() < lo, labels)
	if !x.log {
		x = linearDurations(least.Seconds(), hi, labels)
	}
	x = x.withRoom(0.04)
	xLabel := ts.x
	if x.log {
		xLabel += " (log scale)"
	}
	p := newPanel(265, x, xLabel, shareAxis(), "share of runs")
	s := section{title: ts.title, note: ts.note}
	upright := func(style stroke, name string, at, height float64) {
		if at <= x.max {
			p.add(line(style, []point{{at, 0}, {at, height}}))
		}
		s.keys = append(s.keys, lineKey(name, style, "curve"))
	}
	if ts.deadline > 0 {
		upright(stroke{class: "red"}, "deadline "+durationText(ts.deadline), ts.deadline.Seconds(), 1)
	}
	for _, t := range ts.all {
		p50, p99, worst := t.d.Quantile(0.5), t.d.Quantile(0.99), t.d.Max()
		ends := []point{{p50.Seconds(), 0.5}, {p99.Seconds(), 0.99}, {worst.Seconds(), 1}}
		p.add(line(t.look.stroke, cdfCurve(t.d, x)))
		if len(ts.all) > 1 || ts.note != "" {
			p.add(marks(t.look, 3.7, ends))
			s.keys = append(s.keys, lookKey(t.name+": "+t.figures(), t.look, 3.7))
			continue
		}
		s.title += ": " + t.name
		s.keys = append([]key{lineKey(ts.key, t.look.stroke, "curve")}, s.keys...)
		if t.d.Min() == worst {
			upright(stroke{class: "ink"}, "always "+longest(worst), worst.Seconds(), 1)
			continue
		}
		// The figures stand in the legend: beside their lines they would cover those that are close.
		upright(stroke{"ink", "5 3"}, "p50 "+durationText(p50), p50.Seconds(), 0.5)
		upright(stroke{"ink", "2 2"}, "p99 "+durationText(p99), p99.Seconds(), 0.99)
		upright(stroke{class: "ink"}, "worst case "+longest(worst), worst.Seconds(), 1)
		p.add(marks(look{stroke: stroke{class: "ink"}, glyph: circle}, 3.5, ends))
	}
	s.panels = []panel{p}
	return s
}

// cdfCurve returns the curve of d over x, from its left end to its right one. Places even in x show slopes, places even
// in probability show steps.
func cdfCurve(d distribution, x axis) []point {
	const n = 150
	curve := []point{{x.min, 0}}
	for i := 0; i <= n; i++ {
		q := float64(i) / n
		curve = append(curve, point{d.Quantile(q).Seconds(), q})
		if s := x.at(q) * 1e9; s < math.MaxInt64 {
			at := time.Duration(s)
			curve = append(curve, point{at.Seconds(), d.CDF(at)})
		}
	}
	curve = append(curve, point{x.max, 1})
	slices.SortFunc(curve, func(a, b point) int { return cmp.Or(cmp.Compare(a.x, b.x), cmp.Compare(a.y, b.y)) })
	rising := curve[:0]
	top := 0.0
	for _, q := range curve {
		top = max(top, q.y)
		rising = append(rising, point{max(q.x, x.min), top})
	}
	return rising
}
