package retryplan

import (
	"math"
	"time"
)

// Distribution is a computed or measured distribution of durations: exact durations, each with its probability, and a
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

// Quantile returns the smallest duration whose CDF is q or more. q is clamped to [0,1]; NaN counts as 0. 0 gives Min.
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

// Min returns the lower bound of all durations, computed from the bounds of each part rather than from the density: the
// probability of durations near it may be negligible.
func (d Distribution) Min() time.Duration { return d.min }

// Max returns the upper bound; see Min.
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
