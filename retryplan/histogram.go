package retryplan

import (
	"math/bits"
	"time"
)

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
