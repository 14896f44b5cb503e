package retryplan

import (
	"math"
	"time"
)

// measure is a distribution of times whose mass may be below 1: one exact time, and masses on a grid of times. Grids
// have an exact origin and a step of 2^k nanoseconds, 1ns for as long as the times fit, so that short spans and shifts
// are exact. What falls between two nodes of a grid is split between them so that mass and mean are kept. A mass stands
// for times spread evenly over one step around its node.
type measure struct {
	at     time.Duration // of the atom
	atom   float64       // its mass
	origin time.Duration // of the grid
	step   time.Duration // a power of two
	cells  []float64     // mass at origin + i·step; nil if there is no grid
}

// edgeMass is the mass that may be moved to the edge of a grid to shorten it.
const edgeMass = 1e-11

func atomAt(at time.Duration, mass float64) measure { return measure{at: at, atom: mass} }

// mass returns the mass of all.
func (m *measure) mass() float64 { return m.atom + massOf(m.cells) }

func massOf(values []float64) (total float64) {
	for _, v := range values {
		total += v
	}
	return total
}

// scaled returns m with f times its mass.
func (m measure) scaled(f float64) measure {
	m.atom *= f
	cells := make([]float64, len(m.cells))
	for i, v := range m.cells {
		cells[i] = f * v
	}
	m.cells = cells
	if f == 0 || len(cells) == 0 {
		m.cells = nil
	}
	return m
}

// shifted returns m later by d ≥ 0. What would be later than the largest Duration is then.
func (m measure) shifted(d time.Duration) measure {
	m.at = saturatingAdd(m.at, d)
	if m.cells != nil && m.origin > maxDuration-d {
		m.at, m.atom, m.cells = maxDuration, m.mass(), nil
	}
	m.origin = saturatingAdd(m.origin, d)
	return m
}

// before returns what of m is before the given time.
func (m measure) before(limit time.Duration) measure {
	if m.at >= limit {
		m.atom = 0
	}
	kept := 0
	cells := make([]float64, 0, len(m.cells))
	for i, v := range m.cells {
		share := m.shareBefore(i, limit)
		if share <= 0 {
			break
		}
		cells = append(cells, share*v)
		kept++
	}
	m.cells = cells
	if kept == 0 {
		m.cells = nil
	}
	return m
}

// shareBefore returns which share of cell i is before limit. The whole nanosecond t stands for [t−½, t+½).
func (m *measure) shareBefore(i int, limit time.Duration) float64 {
	if limit == maxDuration {
		return 1
	}
	left := limit
	if m.origin < 0 { // by a cell or so, which no time is in
		left = saturatingAdd(limit, -m.origin)
	} else {
		left -= m.origin
	}
	step := float64(m.step)
	return min(max((float64(left)-0.5)/step-float64(i)+0.5, 0), 1)
}

// coarsened returns m with a grid of the given step, which is not finer than its own.
func (m measure) coarsened(step time.Duration) measure {
	for m.step < step && m.cells != nil {
		n := len(m.cells)
		cells := make([]float64, n/2+1)
		for i, v := range m.cells {
			if i%2 == 0 {
				cells[i/2] += v
			} else {
				cells[i/2] += v / 2
				cells[i/2+1] += v / 2
			}
		}
		m.cells = cells
		m.step *= 2
	}
	m.step = step
	return m
}

// stepFor returns the finest step, not finer than least, with which a span of nanoseconds takes so many cells at most.
func stepFor(span float64, cells int, least time.Duration) time.Duration {
	step := max(least, 1)
	for span/float64(step) > float64(cells-8) && step < 1<<61 {
		step *= 2
	}
	return step
}

// span returns the length of the grid in nanoseconds.
func (m *measure) span() float64 { return float64(len(m.cells)) * float64(m.step) }

// put adds mass at the given time to the grid. It makes or extends the grid if necessary; the step stays.
func (m *measure) put(at time.Duration, mass float64) {
	if mass == 0 {
		return
	}
	if m.cells == nil {
		m.origin, m.cells = at, []float64{mass}
		return
	}
	if m.origin < 0 {
		at = min(at, maxDuration+m.origin) // so that their difference is a Duration
	}
	if at < m.origin {
		more := int((m.origin - at + m.step - 1) / m.step)
		m.cells = append(make([]float64, more, more+len(m.cells)), m.cells...)
		m.origin -= time.Duration(more) * m.step
	}
	i := int((at - m.origin) / m.step)
	part := float64((at-m.origin)%m.step) / float64(m.step)
	for len(m.cells) < i+2 {
		m.cells = append(m.cells, 0)
	}
	m.cells[i] += mass * (1 - part)
	m.cells[i+1] += mass * part
}

// dissolved returns m with its atom on its grid of at most so many cells, with a span of room to spare.
func (m measure) dissolved(cells int, room float64) measure {
	lo, hi := float64(m.origin), float64(m.origin)+m.span()
	if m.cells == nil {
		m.step, lo, hi = 1, float64(m.at), float64(m.at)
	}
	if m.atom > 0 {
		lo, hi = min(lo, float64(m.at)), max(hi, float64(m.at))
	}
	m = m.coarsened(stepFor(hi-lo+room, cells, m.step))
	m.cells = append([]float64(nil), m.cells...)
	if len(m.cells) == 0 {
		m.cells = nil
	}
	m.put(m.at, m.atom)
	m.atom = 0
	return m
}

// plus returns the sum of two measures, with grids of so many cells at most. Atoms at different times go to the grid
// but for the larger.
func (m measure) plus(o measure, cells int) measure {
	if o.atom > m.atom {
		m.at, m.atom, o.at, o.atom = o.at, o.atom, m.at, m.atom
	}
	if o.atom > 0 && o.at == m.at {
		m.atom += o.atom
		o.atom = 0
	}
	if o.cells == nil && o.atom == 0 {
		return m
	}
	at, atom := m.at, m.atom
	m.atom = 0
	if m.cells == nil {
		o = o.dissolved(cells, 0)
		o.at, o.atom = at, atom
		return o
	}
	if o.cells == nil {
		o.origin, o.step = o.at, 1
	}
	lo := min(float64(m.origin), float64(o.origin))
	hi := max(float64(m.origin)+m.span(), float64(o.origin)+o.span())
	if o.atom > 0 {
		lo, hi = min(lo, float64(o.at)), max(hi, float64(o.at))
	}
	step := stepFor(hi-lo, cells, max(m.step, o.step))
	m, o = m.coarsened(step), o.coarsened(step)
	m.cells = append([]float64(nil), m.cells...)
	if len(o.cells) > 0 {
		if o.origin < m.origin {
			m.put(o.origin, math.SmallestNonzeroFloat64) // which begins the grid early enough
		}
		offset := o.origin - m.origin
		first, part := int(offset/step), float64(offset%step)/float64(step)
		for len(m.cells) < first+len(o.cells)+1 {
			m.cells = append(m.cells, 0)
		}
		for i, v := range o.cells {
			m.cells[first+i] += v * (1 - part)
			m.cells[first+i+1] += v * part
		}
	}
	m.put(o.at, o.atom)
	m.at, m.atom = at, atom
	return m
}

// waited returns the sum of m and a wait that is drawn evenly from the whole nanoseconds of [lo, hi), or is lo if they
// are equal, with so many cells at most.
func (m measure) waited(lo, hi time.Duration, cells int) measure {
	if hi <= lo {
		return m.shifted(lo)
	}
	width := float64(hi - lo)
	m = m.dissolved(cells, width).shifted(lo)
	if m.cells == nil {
		return m
	}
	step := float64(m.step)
	if m.step == 1 {
		m.cells = ranged(m.cells, 0, int(hi-lo), width)
		return m
	}
	// The sum begins half a nanosecond before a node, since t stands for [t−½, t+½); hence one cell more in front.
	m.origin -= m.step
	begin := 1 - 0.5/step
	f := newBox(begin, begin+width/step)
	cumulated := f.cumulate(m.cells, nil)
	out := make([]float64, len(m.cells)+f.longer())
	f.apply(out, cumulated, 1)
	m.cells = out
	return m.trimmed()
}

// ranged returns the sums of n cells each, from first before the cell on, over width.
func ranged(cells []float64, first, n int, width float64) []float64 {
	out := make([]float64, len(cells)+first+n-1)
	var running float64
	for i := first; i < len(out); i++ {
		if j := i - first; j < len(cells) {
			running += cells[j]
		}
		if j := i - first - n; j >= 0 && j < len(cells) {
			running -= cells[j]
		}
		out[i] = max(running, 0) / width
	}
	return out
}

// trimmed returns m without edges of the grid that carry no mass to speak of.
func (m measure) trimmed() measure {
	n := len(m.cells)
	if n == 0 {
		return m
	}
	var before, after float64
	first, last := 0, n-1
	for first < n-1 && before+m.cells[first] <= edgeMass {
		before += m.cells[first]
		first++
	}
	for last > first && after+m.cells[last] <= edgeMass {
		after += m.cells[last]
		last--
	}
	m.cells = m.cells[first : last+1]
	m.cells[0] += before
	m.cells[len(m.cells)-1] += after
	m.origin += time.Duration(first) * m.step
	return m
}

// farCell is the number of a cell that no grid has.
const farCell = 1 << 30

// taking returns the sum of m and a duration of d that is below limit, whose probability is its mass, with so many
// cells at most. d is not fixed.
func (m measure) taking(d Dist, limit time.Duration, cells int) measure {
	mass := m.mass()
	if mass <= 0 || limit <= d.Min() {
		return measure{}
	}
	within := float64(limit - d.Min()) // all times from here on are counted from the shortest duration
	most := min(within, quantileBound(d))
	chance := d.below(most)
	switch {
	case limit == maxDuration: // longer ones are cut to it
		chance = 1
	case most < within: // the far tail is counted at its edge
		chance = min(d.below(within), 1)
	}
	if chance <= 0 || most <= 0 {
		return measure{}
	}
	m = m.dissolved(cells, most)
	step := float64(m.step)
	n := int(most/step) + 2
	weights := make([]float64, n)
	var center, total float64
	last := 0.
	for i := range weights {
		// A cell is the step that begins at its position, so that none reaches below the shortest; the mean moves them
		// all by half.
		below := d.below(min(float64(i+1)*step, most))
		weights[i] = max(below-last, 0)
		last = max(below, last)
		total += weights[i]
		center += weights[i] * float64(i) * step
	}
	if total <= 0 {
		return measure{}
	}
	m.cells = convolve(m.cells, weights)
	if m = m.shifted(d.Min()); m.cells == nil {
		return m.scaled(chance)
	}
	if m.step > 1 {
		mean := d.partial(most)/d.below(most) - 0.5
		m.origin += time.Duration(math.Round(mean - center/total))
	}
	if got := massOf(m.cells); got > 0 {
		for i := range m.cells {
			m.cells[i] *= mass * chance / got
		}
	}
	return m.trimmed()
}

// quantileBound returns by how much d exceeds its Min in one of ten million cases only.
func quantileBound(d Dist) float64 {
	return min(float64(d.At(1-1e-7)-d.Min())+1, float64(d.Max()-d.Min()))
}

// time returns the time of cell i.
func (m *measure) time(i int) time.Duration {
	past := whole(float64(i) * float64(m.step))
	if m.origin < 0 {
		return past + m.origin
	}
	return saturatingAdd(m.origin, past)
}

// nanos returns x − y in nanoseconds, for an x of 0 or more: exact if they are near each other, which float64(x) −
// float64(y) is not beyond 2^53.
func nanos(x, y time.Duration) float64 {
	if y < 0 { // by a cell or so, and their difference need not be a Duration
		return float64(x) - float64(y)
	}
	return float64(x - y)
}

// saturatingAdd returns x+y for y ≥ 0, or the largest Duration if that overflows.
func saturatingAdd(x, y time.Duration) time.Duration {
	if x > maxDuration-y {
		return maxDuration
	}
	return x + y
}

// weighted returns m with each mass times the weight of its time.
func (m measure) weighted(weight func(at time.Duration) float64) measure {
	if m.atom > 0 {
		m.atom *= weight(m.at)
	}
	cells := make([]float64, len(m.cells))
	for i, v := range m.cells {
		cells[i] = v * weight(m.time(i))
	}
	if m.cells != nil {
		m.cells = cells
	}
	return m
}

// convolved returns the distribution of the sum of independent times of m, which has no atom, and o, with so many cells
// at most.
func (m measure) convolved(o measure, cells int) measure {
	if o.cells == nil {
		return m.shifted(o.at).scaled(o.atom)
	}
	o = o.dissolved(cells, m.span())
	step := stepFor(m.span()+o.span(), cells, max(m.step, o.step))
	m, o = m.coarsened(step), o.coarsened(step)
	sum := measure{origin: m.origin, step: step, cells: convolve(m.cells, o.cells)}
	if o.origin < 0 {
		sum.origin += o.origin
		return sum.trimmed()
	}
	return sum.shifted(o.origin).trimmed()
}
