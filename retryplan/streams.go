package retryplan

import "math/rand/v2"

// The streams of random numbers of a simulation, one for each purpose, so that more draws for one do not change the
// others.
const (
	arrivalStream = iota + 1
	clientStream
	serviceStream = iota + 2 // 3 was that of a network; other numbers would change every simulation
	failureStream
	jitterStream = iota + 3
)

// newStream returns the stream of a seed for one purpose.
func newStream(seed, purpose uint64) *rand.Rand {
	return rand.New(rand.NewPCG(scrambled(seed^purpose<<56), scrambled(purpose+scrambled(seed))))
}

// scrambled is the output function of SplitMix64 (Steele, Lea, Flood, "Fast splittable pseudorandom number generators",
// 2014), which makes neighboring seeds independent.
func scrambled(x uint64) uint64 {
	x += 0x9e3779b97f4a7c15
	x = (x ^ x>>30) * 0xbf58476d1ce4e5b9
	x = (x ^ x>>27) * 0x94d049bb133111eb
	return x ^ x>>31
}

// sampler draws from a Dist.
type sampler struct {
	dist  Dist
	fixed bool
	rng   *rand.Rand
}

func newSampler(d Dist, rng *rand.Rand) sampler { return sampler{d, d.fixed(), rng} }

// draw returns a duration in nanoseconds. A constant needs no random number.
func (s *sampler) draw() int64 {
	if s.fixed {
		return int64(s.dist.a)
	}
	return int64(s.dist.At(s.rng.Float64()))
}

// nanoseconds converts an f ≥ 0 or NaN and saturates. Go leaves a conversion that overflows to the implementation.
func nanoseconds(f float64) int64 { return int64(whole(f)) }

// unitExponential returns a number from the exponential distribution with mean 1, as −ln(1−U).
func unitExponential(rng *rand.Rand) float64 { return -ln(1 - rng.Float64()) }
