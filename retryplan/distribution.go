package retryplan

import (
	"math"
	"slices"
	"time"
)

// Distribution is a computed distribution of durations: exact durations, each with its probability, and a density over
// the rest. The zero Distribution is always 0.
type Distribution struct {
	atoms    []atom // by time
	grids    []grid
	min, max time.Duration
	mean     float64 // from min on
	levels   []level // by below
}

// level is a part of the CDF that is known more exactly than from the grids over all of it: that below a time.
type level struct {
	below time.Duration
	parts Distribution // not finished: only its atoms and grids count
	most  float64      // the CDF at below
}

// atom is a probability at one exact time.
type atom struct {
	at   time.Duration
	mass float64
}

// grid is the density part: probabilities below the middle between two nodes.
type grid struct {
	origin time.Duration
	step   float64
	below  []float64 // below[i] is the probability below origin + (i−½)·step; the last one is that of all
}

// CurvePoint is one point of the curve of a CDF.
type CurvePoint struct {
	At time.Duration
	// Below and CDF are the probabilities of less than At, and of At or less. They differ by what falls on At exactly.
	Below, CDF float64
}

// CDF returns the probability of x or less, in [0,1]. It is 0 below Min and 1 from Max on.
func (d Distribution) CDF(x time.Duration) float64 {
	switch {
	case x < d.min:
		return 0
	case x >= d.max:
		return 1
	}
	for i := range d.levels {
		if l := &d.levels[i]; x < l.below {
			return min(l.parts.mass(x), l.most)
		}
	}
	return d.mass(x)
}

// mass returns the probability of x or less by atoms and grids.
func (d *Distribution) mass(x time.Duration) (p float64) {
	for _, a := range d.atoms {
		if a.at > x {
			break
		}
		p += a.mass
	}
	for i := range d.grids {
		p += d.grids[i].cdf(x)
	}
	return min(p, 1)
}

// cdf returns the probability of x or less. The whole nanosecond x stands for [x−½, x+½).
func (g *grid) cdf(x time.Duration) float64 {
	position := (nanos(x, g.origin)+0.5)/g.step + 0.5
	last := len(g.below) - 1
	switch {
	case position <= 0:
		return 0
	case position >= float64(last):
		return g.below[last]
	}
	i := int(position)
	return g.below[i] + float64((position-float64(i))*(g.below[i+1]-g.below[i]))
}

// Quantile returns the smallest duration whose CDF is q or more. q is clamped to [0,1]; NaN counts as 0. 0 gives Min.
func (d Distribution) Quantile(q float64) time.Duration {
	switch {
	case !(q > 0):
		return d.min
	case q >= 1:
		q = 1
	}
	lo, hi := d.min, d.max
	for lo < hi { // 63 times at most
		middle := lo + (hi-lo)/2
		if d.CDF(middle) >= q {
			hi = middle
		} else {
			lo = middle + 1
		}
	}
	return lo
}

// Mean returns the mean.
func (d Distribution) Mean() time.Duration {
	if len(d.atoms) == 1 && len(d.grids) == 0 {
		return d.atoms[0].at
	}
	return min(saturatingAdd(d.min, whole(max(math.Round(d.mean), 0))), d.max)
}

// Min and Max bound what can happen: no probability lies outside [Min, Max]. They are not computed from the density but
// from the bounds of each part, and need not have a probability to speak of.
func (d Distribution) Min() time.Duration { return d.min }

// Max is the other bound; see Min.
func (d Distribution) Max() time.Duration { return d.max }

// Curve returns the CDF as a curve to draw: n points, 2 at least, evenly spaced from Min to Max, and one more for each
// duration with a probability of its own. They are in order of At, and no two have the same. If Min is Max there is
// one.
func (d Distribution) Curve(n int) []CurvePoint {
	n = max(n, 2)
	times := make([]time.Duration, 0, n+len(d.atoms))
	span := float64(d.max - d.min)
	for i := range n {
		step := time.Duration(min(span*(float64(i)/float64(n-1)), span))
		times = append(times, d.min+min(max(step, 0), d.max-d.min))
	}
	times[n-1] = d.max
	for _, a := range d.atoms {
		times = append(times, a.at)
	}
	slices.Sort(times)
	times = slices.Compact(times)
	points := make([]CurvePoint, len(times))
	for i, at := range times {
		p := CurvePoint{At: at, CDF: d.CDF(at)}
		p.Below = p.CDF
		if _, exact := d.atom(at); exact {
			p.Below = d.CDF(at - 1)
		}
		points[i] = p
	}
	return points
}

func (d *Distribution) atom(at time.Duration) (int, bool) {
	return slices.BinarySearchFunc(d.atoms, at, func(a atom, at time.Duration) int {
		switch {
		case a.at < at:
			return -1
		case a.at > at:
			return 1
		default:
			return 0
		}
	})
}

// add adds a part to the distribution, before its finish.
func (d *Distribution) add(m measure) {
	if m.atom > 0 {
		if i, there := d.atom(m.at); there {
			d.atoms[i].mass += m.atom
		} else {
			d.atoms = slices.Insert(d.atoms, i, atom{m.at, m.atom})
		}
	}
	if m.cells == nil {
		return
	}
	below := make([]float64, len(m.cells)+1)
	for i, v := range m.cells {
		below[i+1] = below[i] + v
	}
	d.grids = append(d.grids, grid{m.origin, float64(m.step), below})
}

// finish scales what was added to a probability of 1 within the given bounds.
func (d *Distribution) finish(lo, hi time.Duration) {
	d.min, d.max = lo, max(lo, hi)
	var total, mean float64
	for _, a := range d.atoms {
		total += a.mass
		mean += a.mass * float64(a.at-lo)
	}
	for _, g := range d.grids {
		last := len(g.below) - 1
		total += g.below[last]
		for i := range last {
			mean += (g.below[i+1] - g.below[i]) * (float64(g.origin-lo) + float64(i)*g.step)
		}
	}
	if total <= 0 {
		return
	}
	for i := range d.atoms {
		d.atoms[i].mass /= total
	}
	for _, g := range d.grids {
		for i := range g.below {
			g.below[i] /= total
		}
	}
	d.mean = mean / total
}

// refine makes the CDF below a time that of the given parts. Times are refined from the latest to the earliest.
func (d *Distribution) refine(below time.Duration, parts Distribution) {
	d.levels = append([]level{{below, parts, d.CDF(below)}}, d.levels...)
}

// refinements returns the times below which a distribution should be computed again with finer grids, from the latest
// to the earliest: it returns any only if half of all lies within a small part of [Min, Max].
func (d *Distribution) refinements() (times []time.Duration) {
	span := float64(d.Quantile(0.9999) - d.min)
	near := 6 * float64(d.Quantile(0.5)-d.min)
	for ; near > 1000 && near < span; near *= 6 {
		times = append([]time.Duration{d.min + time.Duration(near)}, times...)
	}
	return times
}

// roughness estimates by how much the CDF below a time can be wrong because of the steps of grids: between nodes it is
// straight, which for a mass m over n steps is wrong by about m/n².
func (d *Distribution) roughness(below time.Duration) (total float64) {
	for i := range d.grids {
		g := &d.grids[i]
		if steps := nanos(below, g.origin) / g.step; steps > 0 {
			steps = max(steps, 1)
			total += g.cdf(below) / (steps * steps)
		}
	}
	return total
}

// addPart adds the part that one of so many attempts contributes. If there are many, each has fewer steps.
func (d *Distribution) addPart(m measure, attempts int) {
	if attempts > manyAttempts {
		m = m.coarsened(stepFor(m.span(), lateCells, m.step))
	}
	d.add(m)
}
