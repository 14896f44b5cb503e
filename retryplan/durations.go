package retryplan

import (
	"math"
	"math/bits"
	"time"
)

// Durations is a histogram of measured durations. The zero Durations is empty.
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

// Count returns the number of durations.
func (d Durations) Count() int { return int(d.count) }

// Quantile returns the smallest duration that is not exceeded by the share q of all, to 0.1 %. It clamps q to [0,1], and
// is exact for 0 and 1. Without durations it returns 0.
func (d Durations) Quantile(q float64) time.Duration {
	if !(q > 0) {
		return d.min
	}
	rank := max(uint64(math.Ceil(min(q, 1)*float64(d.count)*(1-1e-12))), 1) // but for rounding
	if rank >= d.count {
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
