package retryplan

import (
	"math/bits"
	"time"
)

// Durations is a set of durations that were seen, as a histogram. The zero Durations is empty.
type Durations struct {
	count    uint64
	sum      sum128
	min, max time.Duration
	octave   int      // of the first page of buckets
	buckets  []uint64 // whole pages
}

// A bucket holds the durations that agree in their leading 10 bits: 512 of them in each octave, and the middle of a
// bucket is within 1/1024 of everything in it. Those below 1024ns have a bucket each.
const (
	leadingBits = 10
	page        = 1 << (leadingBits - 1)
)

// Count returns how many there are.
func (d Durations) Count() int { return int(d.count) }

// Quantile returns the smallest duration that the share q of all is not above, exact to 0.1 %; q is clamped to [0,1],
// and 0 and 1 give the exact extremes. It is 0 if there are none.
func (d Durations) Quantile(q float64) time.Duration {
	rank := d.rank(q)
	switch {
	case rank <= 1:
		return d.min
	case rank >= d.count:
		return d.max
	}
	for i, n := range d.buckets {
		if n < rank {
			rank -= n
			continue
		}
		return min(max(bucketMiddle(i+d.octave*page), d.min), d.max)
	}
	return d.max
}

// Mean returns the mean, or 0 if there are none.
func (d Durations) Mean() time.Duration {
	if d.count == 0 {
		return 0
	}
	return d.sum.over(d.count)
}

// rank returns the smallest k with k/count ≥ q, at least 1.
func (d *Durations) rank(q float64) uint64 {
	if !(q > 0) {
		return 1
	}
	if q >= 1 {
		return d.count
	}
	n := float64(d.count)
	k := min(uint64(q*n)+1, d.count)
	for k > 1 && float64(k-1)/n >= q {
		k--
	}
	return k
}

// add adds a duration of 0 or more.
func (d *Durations) add(x time.Duration) {
	if d.count == 0 {
		d.min, d.max = x, x
	} else {
		d.min, d.max = min(d.min, x), max(d.max, x)
	}
	d.count++
	d.sum.add(x)
	i := bucket(x)
	if k := i - d.octave*page; k < 0 || k >= len(d.buckets) {
		d.cover(i / page)
	}
	d.buckets[i-d.octave*page]++
}

// cover adds the pages up to the given one.
func (d *Durations) cover(octave int) {
	first, end := octave, octave+1
	if len(d.buckets) > 0 {
		first, end = min(first, d.octave), max(end, d.octave+len(d.buckets)/page)
	}
	grown := make([]uint64, (end-first)*page)
	copy(grown[max(d.octave-first, 0)*page:], d.buckets)
	d.octave, d.buckets = first, grown
}

// bucket returns the number of the bucket of a duration of 0 or more: the duration itself below 1024ns, and then page
// for each doubling.
func bucket(x time.Duration) int {
	shift := max(bits.Len64(uint64(x))-leadingBits, 0)
	return shift*page + int(uint64(x)>>shift)
}

// bucketMiddle returns the duration in the middle of a bucket.
func bucketMiddle(bucket int) time.Duration {
	if bucket < 2*page {
		return time.Duration(bucket)
	}
	shift := bucket/page - 1
	low := uint64(bucket-shift*page) << shift
	return time.Duration(low + 1<<shift>>1)
}
