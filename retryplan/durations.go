package retryplan

import (
	"math/bits"
	"time"
)

// Durations is a set of durations that were seen, as a histogram. The zero Durations is empty.
type Durations struct {
	count    uint64
	sum      float64
	min, max time.Duration
	buckets  []uint64
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
		return min(max(bucketMiddle(i), d.min), d.max)
	}
	return d.max
}

// Mean returns the mean, or 0 if there are none.
func (d Durations) Mean() time.Duration {
	if d.count == 0 {
		return 0
	}
	return min(whole(d.sum/float64(d.count)), d.max)
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
	d.sum += float64(x)
	i := bucket(x)
	if more := i + 1 - len(d.buckets); more > 0 {
		d.buckets = append(d.buckets, make([]uint64, more)...)
	}
	d.buckets[i]++
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
