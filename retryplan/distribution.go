package retryplan

import (
	"math"
	"math/bits"
	"time"
)

// Distribution is a computed or measured distribution of durations, with exact durations, each with its probability, and a
// density. The zero Distribution is always 0.
type Distribution struct {
	parts    []part
	min, max time.Duration
	mean     float64 // from min on
}

// part is a grid of probabilities, cumulated.
type part struct {
	origin time.Duration
	step   float64
	below  []float64 // below[i] is the probability below origin + (i−½)·step; the last one is that of all
}

// CDF returns the probability of x or less, in [0,1]. It is 0 below Min and 1 from Max on.
func (d Distribution) CDF(x time.Duration) float64 {
	switch {
	case x < d.min:
		return 0
	case x >= d.max:
		return 1
	}
	var p float64
	for i := range d.parts {
		p += d.parts[i].cdf(x)
	}
	return min(p, 1)
}

// cdf returns the probability of x or less. The whole nanosecond x stands for [x−½, x+½).
func (p *part) cdf(x time.Duration) float64 {
	position := (float64(x-p.origin)+0.5)/p.step + 0.5
	last := len(p.below) - 1
	switch {
	case position <= 0:
		return 0
	case position >= float64(last):
		return p.below[last]
	}
	i := int(position)
	return p.below[i] + float64((position-float64(i))*(p.below[i+1]-p.below[i]))
}

// Quantile returns the smallest duration whose CDF is q or more. q is clamped to [0,1]. NaN counts as 0. 0 gives Min.
func (d Distribution) Quantile(q float64) time.Duration {
	if !(q > 0) {
		return d.min
	}
	q = min(q, 1)
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
	return min(saturatingAdd(d.min, whole(max(math.Round(d.mean), 0))), d.max)
}

// Min returns the lower bound of all durations, computed from the bounds of each part rather than from the density. The
// probability of durations near it may be negligible.
func (d Distribution) Min() time.Duration { return d.min }

// Max returns the upper bound (see Min).
func (d Distribution) Max() time.Duration { return d.max }

// add adds m. The caller calls finish once all is added.
func (d *Distribution) add(m measure) {
	for _, g := range m {
		below := make([]float64, len(g.cells)+1)
		for i, v := range g.cells {
			below[i+1] = below[i] + v
		}
		d.parts = append(d.parts, part{g.origin, float64(g.step), below})
	}
}

// finish scales the parts to a probability of 1 and sets the bounds.
func (d *Distribution) finish(lo, hi time.Duration) {
	d.min, d.max = lo, max(lo, hi)
	var total, mean float64
	for _, p := range d.parts {
		total += p.below[len(p.below)-1]
		for i, below := range p.below[1:] {
			mean += float64((below - p.below[i]) * (float64(p.origin-lo) + float64(float64(i)*p.step)))
		}
	}
	if total <= 0 {
		return
	}
	for _, p := range d.parts {
		for i := range p.below {
			p.below[i] /= total
		}
	}
	d.mean = mean / total
}

// histogram has the mass of the durations, or how many there are, in buckets. A bucket holds those that agree in their
// leading 10 bits: 512 buckets for each octave, and the middle of a bucket is within 1/1024 of everything in it.
// Durations below 1024ns have a bucket each.
type histogram struct {
	buckets           []float64
	shortest, longest time.Duration
}

const (
	leadingBits = 10
	page        = 1 << (leadingBits - 1)
)

// add adds the mass of a duration of 0 or more.
func (h *histogram) add(d time.Duration, mass float64) {
	if h.buckets == nil {
		h.shortest = d
	}
	h.shortest, h.longest = min(h.shortest, d), max(h.longest, d)
	shift := max(bits.Len64(uint64(d))-leadingBits, 0)
	i := shift*page + int(uint64(d)>>shift) // the duration itself below 1024ns, and then page for each doubling
	if more := i + 1 - len(h.buckets); more > 0 {
		h.buckets = append(h.buckets, make([]float64, more)...)
	}
	h.buckets[i] += mass
}

// merge adds the durations of o.
func (h *histogram) merge(o *histogram) {
	if o.buckets == nil {
		return
	}
	if h.buckets == nil {
		h.shortest = o.shortest
	}
	h.shortest, h.longest = min(h.shortest, o.shortest), max(h.longest, o.longest)
	if more := len(o.buckets) - len(h.buckets); more > 0 {
		h.buckets = append(h.buckets, make([]float64, more)...)
	}
	for i, mass := range o.buckets {
		h.buckets[i] += mass
	}
}

// measure returns a grid for each width of buckets.
func (h *histogram) measure() (out measure) {
	for from, to, step := 0, 2*page, time.Duration(1); from < len(h.buckets); from, to, step = to, to+page, 2*step {
		origin := time.Duration(from)
		if step > 1 {
			origin = page*step + step/2 // the middle of the first bucket
		}
		if g := (grid{origin, step, h.buckets[from:min(to, len(h.buckets))]}); g.mass() > 0 {
			out = append(out, g)
		}
	}
	return out
}

// distribution returns the durations as a distribution.
func (h *histogram) distribution() (d Distribution) {
	d.add(h.measure())
	d.finish(h.shortest, h.longest)
	return d
}
