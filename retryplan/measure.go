package retryplan

import "time"

// measure is a distribution of times with a mass of up to 1, the sum of its grids.
type measure []grid

// grid has masses at origin, origin + step, and so on, each spread evenly over one step around its time. The whole
// nanosecond t stands for [t−½, t+½), so that a single cell with a step of 1ns is an exact time. A mass that falls
// between two cells is split between them so that the mean does not change.
type grid struct {
	origin time.Duration // 0 or more
	step   time.Duration // 2^k nanoseconds; 1ns if the times fit, so that short spans are exact
	cells  []float64
}

// mostCells is the maximum number of cells of a grid.
const mostCells = 4096

// edgeMass is the mass that may move to the edge of a grid to shorten it.
const edgeMass = 1e-10

// exactly returns the measure of one exact time.
func exactly(at time.Duration, mass float64) measure { return measure{{at, 1, []float64{mass}}} }

// exact reports whether all times of g are the same.
func (g *grid) exact() bool { return g.step == 1 && len(g.cells) == 1 }

func (g *grid) mass() (total float64) {
	for _, v := range g.cells {
		total += v
	}
	return total
}

func (m measure) mass() (total float64) {
	for i := range m {
		total += m[i].mass()
	}
	return total
}

// span returns the length of g in nanoseconds.
func (g *grid) span() float64 { return float64(len(g.cells)) * float64(g.step) }

// end returns an upper bound of the times of m.
func (m measure) end() (at float64) {
	for i := range m {
		at = max(at, float64(m[i].origin)+m[i].span())
	}
	return at
}

// time returns the time of cell i.
func (g *grid) time(i int) time.Duration {
	return saturatingAdd(g.origin, whole(float64(i)*float64(g.step)))
}

// saturatingAdd returns x+y for y ≥ 0, or the largest Duration if that overflows.
func saturatingAdd(x, y time.Duration) time.Duration {
	if x > maxDuration-y {
		return maxDuration
	}
	return x + y
}

// weighted returns m with each mass times the weight of its time.
func (m measure) weighted(weight func(at time.Duration) float64) (out measure) {
	for _, g := range m {
		cells := make([]float64, len(g.cells))
		for i, v := range g.cells {
			cells[i] = v * weight(g.time(i))
		}
		if g.cells = cells; g.mass() > 0 {
			out = append(out, g)
		}
	}
	return out
}

// scaled returns m with f times its mass.
func (m measure) scaled(f float64) measure {
	return m.weighted(func(time.Duration) float64 { return f })
}

// shifted returns m later by d ≥ 0. Times saturate at the largest Duration.
func (m measure) shifted(d time.Duration) measure {
	out := make(measure, len(m))
	for i, g := range m {
		if g.origin > maxDuration-d {
			g.step, g.cells = 1, []float64{g.mass()}
		}
		g.origin = saturatingAdd(g.origin, d)
		out[i] = g
	}
	return out
}

// before returns the part of m before limit, or all of m if limit is the largest Duration.
func (m measure) before(limit time.Duration) (out measure) {
	if limit == maxDuration {
		return m
	}
	for _, g := range m {
		if g.time(len(g.cells)) < limit {
			out = append(out, g)
			continue
		}
		var cells []float64
		for i, v := range g.cells {
			// The cell is half a step around its time, and limit is the end of the nanosecond before.
			share := (float64(limit-g.origin)-0.5)/float64(g.step) - float64(i) + 0.5
			if share <= 0 {
				break
			}
			cells = append(cells, min(share, 1)*v)
		}
		if g.cells = cells; cells != nil {
			out = append(out, g)
		}
	}
	return out
}

// coarsened returns g with the given step, if that is not finer than its own.
func (g grid) coarsened(step time.Duration) grid {
	for g.step < step {
		cells := make([]float64, len(g.cells)/2+1)
		for i, v := range g.cells {
			if i%2 == 0 {
				cells[i/2] += v
			} else {
				cells[i/2] += v / 2
				cells[i/2+1] += v / 2
			}
		}
		g.cells = cells
		g.step *= 2
	}
	return g
}

// stepFor returns the finest step, not finer than least, with which a span of nanoseconds takes so many cells at most.
func stepFor(span float64, cells int, least time.Duration) time.Duration {
	for span/float64(least) > float64(cells-8) && least < 1<<61 {
		least *= 2
	}
	return least
}

// add adds the masses of o, which has the same step and does not begin before g.
func (g *grid) add(o grid) {
	first, part := int((o.origin-g.origin)/g.step), float64((o.origin-g.origin)%g.step)/float64(g.step)
	if more := first + len(o.cells) + 1 - len(g.cells); more > 0 {
		g.cells = append(g.cells, make([]float64, more)...)
	}
	for i, v := range o.cells {
		g.cells[first+i] += float64((1 - part) * v)
		g.cells[first+i+1] += float64(part * v)
	}
}

// merged returns m in one grid.
func (m measure) merged() grid {
	if len(m) == 1 {
		return m[0]
	}
	out := grid{maxDuration, 1, nil}
	for _, g := range m {
		out.origin, out.step = min(out.origin, g.origin), max(out.step, g.step)
	}
	out.step = stepFor(m.end()-float64(out.origin), mostCells, out.step)
	for _, g := range m {
		out.add(g.coarsened(out.step))
	}
	return out
}

// plus returns the sum of two measures as one grid and the exact times.
func (m measure) plus(o measure) (out measure) {
	var rest measure
	for _, g := range append(m[:len(m):len(m)], o...) {
		if g.exact() {
			out = append(out, g)
		} else {
			rest = append(rest, g)
		}
	}
	if rest != nil {
		out = append(out, rest.merged())
	}
	return out
}

// convolved returns the distribution of the sum of two independent times.
func (m measure) convolved(o measure) measure {
	if len(m) == 1 && m[0].exact() {
		m, o = o, m
	}
	if len(m) == 0 || len(o) == 0 {
		return nil
	}
	if len(o) == 1 && o[0].exact() {
		return m.shifted(o[0].origin).scaled(o[0].cells[0])
	}
	x, y := m.merged(), o.merged()
	step := stepFor(x.span()+y.span(), mostCells, max(x.step, y.step))
	for x.span()/float64(step)*(y.span()/float64(step)) > mostProducts {
		step *= 2
	}
	x, y = x.coarsened(step), y.coarsened(step)
	sum := grid{x.origin, step, convolve(x.cells, y.cells)}
	mass := x.mass() * y.mass() / sum.mass() // but for rounding
	return measure{sum.trimmed(edgeMass)}.shifted(y.origin).scaled(mass)
}

// waited returns the sum of m and a wait that is even over the whole nanoseconds of [lo, hi), or lo if they are equal.
func (m measure) waited(lo, hi time.Duration) measure {
	return m.convolved(Uniform(lo, hi).before(maxDuration))
}

// trimmed returns g without edges of no more than the given mass, which it moves to the new edges.
func (g grid) trimmed(most float64) grid {
	first, last := 0, len(g.cells)-1
	var before, after float64
	for first < last && before+g.cells[first] <= most {
		before += g.cells[first]
		first++
	}
	for last > first && after+g.cells[last] <= most {
		after += g.cells[last]
		last--
	}
	g.origin = g.time(first)
	g.cells = g.cells[first : last+1]
	g.cells[0] += before
	g.cells[len(g.cells)-1] += after
	return g
}

// mostProducts is the maximum number of products in a convolution, which take up to a millisecond.
const mostProducts = 1 << 20

// convolve returns the sums Σ x[j]·y[i−j].
func convolve(x, y []float64) []float64 {
	if len(x) < len(y) {
		x, y = y, x
	}
	out := make([]float64, len(x)+len(y)-1)
	for j, weight := range y {
		to := out[j:][:len(x)]
		for i, value := range x {
			to[i] += float64(weight * value)
		}
	}
	return out
}
