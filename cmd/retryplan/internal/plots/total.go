package plots

import (
	"cmp"
	"math"
	"slices"
	"time"

	"gonum.org/v1/plot/vg"
	"gonum.org/v1/plot/vg/draw"
)

// distribution is what a retryplan.Distribution answers.
type distribution interface {
	CDF(time.Duration) float64
	Quantile(float64) time.Duration
	Min() time.Duration
	Max() time.Duration
}

type total struct {
	name string
	d    distribution
}

func totalsOf(plans []Plan) []total {
	var ts []total
	for _, p := range plans {
		ts = append(ts, total{p.Name, p.Plan.TotalWait})
	}
	return ts
}

func (t total) figures() string {
	return "p50 " + durationText(t.d.Quantile(0.5)) + ", p99 " + durationText(t.d.Quantile(0.99)) + ", worst " + longest(t.d.Max())
}

func totalSection(totals []total) section {
	var typical []float64
	hi := 0.0
	least := totals[0].d.Min()
	for _, t := range totals {
		for _, q := range []float64{0.01, 0.5, 1} {
			typical = append(typical, t.d.Quantile(q).Seconds())
		}
		hi = max(hi, t.d.Max().Seconds())
		least = min(least, t.d.Min())
	}
	lo := leastPositive(typical)
	x := durationAxis(lo, hi, spans(typical) && hi > 100*lo, least.Seconds() < lo, 9)
	if !x.log {
		x = linearDurations(least.Seconds(), hi, 9)
	}
	x = x.withRoom(0.04)
	xLabel := "total wait of a run that never succeeds"
	if x.log {
		xLabel += " (log scale)"
	}
	p := newPanel(200, x, xLabel, shareAxis(), "share of runs")
	s := section{title: "Total wait, if every attempt fails"}
	for i, t := range totals {
		l := looks[i]
		curve := cdfCurve(t.d, x)
		p.add(line{l.line(1.6), curve})
		if len(totals) > 1 {
			ends := []point{{t.d.Quantile(0.5).Seconds(), 0.5}, {t.d.Quantile(0.99).Seconds(), 0.99}, {t.d.Max().Seconds(), 1}}
			p.add(marks{l.mark(2.8), ends})
			s.keys = append(s.keys, lineKey(t.name+": "+t.figures(), l.line(1.6), l.mark(2.8)))
			continue
		}
		s.title += ": " + t.name
		s.keys = append(s.keys, lineKey("share of runs that have waited no longer", l.line(1.6), draw.GlyphStyle{}))
		if t.d.Min() == t.d.Max() {
			p.add(labels{{at: point{hi, 0.5}, dx: 4, text: "always " + longest(t.d.Max()), boxed: true}})
			continue
		}
		for _, m := range []struct {
			text   string
			at     point
			height float64
			dashes []vg.Length
		}{
			{"p50 " + durationText(t.d.Quantile(0.5)), point{t.d.Quantile(0.5).Seconds(), 0.5}, 0.36, []vg.Length{4, 2}},
			{"p99 " + durationText(t.d.Quantile(0.99)), point{t.d.Quantile(0.99).Seconds(), 0.99}, 0.22, []vg.Length{2, 2}},
			{"worst case " + longest(t.d.Max()), point{t.d.Max().Seconds(), 1}, 0.08, nil},
		} {
			style := draw.LineStyle{Color: ink, Width: 0.8, Dashes: m.dashes}
			p.add(line{style, []point{{m.at.x, 0}, m.at}})
			p.add(marks{draw.GlyphStyle{Color: ink, Radius: 2.6, Shape: draw.CircleGlyph{}}, []point{m.at}})
			p.add(labels{{at: point{m.at.x, m.height}, dx: 4, text: m.text, boxed: true}})
		}
	}
	s.panels = []panel{p}
	return s
}

// cdfCurve returns the curve of d over x, from its left end to its right one. Places even in x show slopes, places even in
// probability show steps.
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
