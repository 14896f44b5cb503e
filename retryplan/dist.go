package retryplan

import (
	"fmt"
	"math"
	"strings"
	"time"
)

// Dist is a distribution of durations of 0 or more, such as those of an attempt or of a server's work.
// It is comparable with == and has a text form such as "10ms" or "lognormal 20ms 200ms" (see UnmarshalText). The zero Dist is
// always 0.
//
// Samples are cut to whole nanoseconds and to the largest Duration.
type Dist struct {
	shape shape
	a, b  time.Duration
	sigma float64 // of a lognormal: the standard deviation of its logarithm
}

type shape uint8

const (
	constant    shape = iota // a
	exponential              // mean a
	uniform                  // [a, b)
	lognormal                // median a, 99th percentile b
)

const (
	maxDuration = time.Duration(math.MaxInt64)
	z99         = 2.3263478740408408 // the 99th percentile of the standard normal distribution
)

// Constant returns the distribution that is always d. A negative d counts as 0.
func Constant(d time.Duration) Dist { return Dist{shape: constant, a: max(d, 0)} }

// Exponential returns the exponential distribution with the given mean. A negative mean counts as 0.
func Exponential(mean time.Duration) Dist { return Dist{shape: exponential, a: max(mean, 0)} }

// Uniform returns the distribution that is even over [lo, hi). A negative lo counts as 0, a hi below lo as lo.
func Uniform(lo, hi time.Duration) Dist {
	lo = max(lo, 0)
	return Dist{shape: uniform, a: lo, b: max(hi, lo)}
}

// LogNormal returns the lognormal distribution with the given median and 99th percentile, as latencies are reported. A
// median below 1ns counts as 1ns, a p99 below the median as the median.
func LogNormal(median, p99 time.Duration) Dist {
	median = max(median, 1)
	p99 = max(p99, median)
	return Dist{shape: lognormal, a: median, b: p99, sigma: ln(float64(p99)/float64(median)) / z99}
}

// At returns the quantile at u in [0,1), the duration that the share u of all is below. A random u makes it a sample of
// d. A u below 0 or NaN counts as 0, and one of 1 or more as the largest float64 below 1. At does not allocate, is exact
// to about 1e-8 of itself, and returns the same duration on every platform.
func (d Dist) At(u float64) time.Duration {
	if d.fixed() {
		return d.a
	}
	u = unit(u)
	switch d.shape {
	case exponential:
		return whole(float64(d.a) * -ln(1-u))
	case uniform:
		return d.a + time.Duration(u*float64(d.b-d.a))
	default:
		return whole(float64(d.a) * exp(float64(d.sigma*probit(u))))
	}
}

// CDF returns the probability of x or less, in [0,1].
func (d Dist) CDF(x time.Duration) float64 {
	switch {
	case x < 0:
		return 0
	case x == maxDuration:
		return 1
	case d.fixed():
		if x < d.a {
			return 0
		}
		return 1
	}
	// Samples are cut to whole nanoseconds, so that x stands for all below x+1ns.
	return d.below(float64(x-d.least()) + 1)
}

// below returns the probability that a duration, before it is cut to whole nanoseconds, is less than least + x, for a d
// that is not fixed and an x above 0. It counts from least since a float64 does not hold more than 2^53 nanoseconds
// exactly.
func (d Dist) below(x float64) float64 {
	a := float64(d.a)
	switch d.shape {
	case exponential:
		return -math.Expm1(-x / a)
	case uniform:
		return min(max(x/float64(d.b-d.a), 0), 1)
	default:
		return math.Erfc(-math.Log(x/a)/(d.sigma*math.Sqrt2)) / 2
	}
}

// before returns the durations below limit.
func (d Dist) before(limit time.Duration) measure {
	if d.fixed() {
		return exactly(d.a, 1).before(limit)
	}
	// All times are counted from the shortest. A tail without end is cut off.
	most := float64(d.Max() - d.least())
	if d.Max() == maxDuration {
		most = min(most, float64(d.At(1-1e-6)-d.least())+1)
	}
	chance := 1.
	if limit < maxDuration {
		within := float64(limit - d.least())
		most, chance = min(most, within), min(d.below(max(within, 0)), 1)
	}
	if most <= 0 || chance <= 0 {
		return nil
	}
	step := stepFor(most, mostCells, 1)
	g := grid{d.least() + step/2, step, make([]float64, int(math.Ceil(most/float64(step))))}
	var last float64
	for i := range g.cells {
		below := d.below(min(float64(i+1)*float64(step), most))
		g.cells[i] = max(below-last, 0)
		last = max(below, last)
	}
	return measure{g}.scaled(chance / last)
}

// Mean returns the mean, or the largest Duration if the mean is larger.
func (d Dist) Mean() time.Duration {
	switch {
	case d.fixed(), d.shape == exponential:
		return d.a
	case d.shape == uniform:
		return d.a + (d.b-d.a)/2
	default:
		return whole(float64(d.a) * math.Exp(d.sigma*d.sigma/2))
	}
}

// Max returns the supremum of the samples, hi of a uniform distribution, and the largest Duration if there is no bound.
func (d Dist) Max() time.Duration {
	switch {
	case d.fixed():
		return d.a
	case d.shape == uniform:
		return d.b
	default:
		return maxDuration
	}
}

// least returns the infimum of the samples.
func (d Dist) least() time.Duration {
	if d.fixed() || d.shape == uniform {
		return d.a
	}
	return 0
}

// fixed reports whether d is always d.a.
func (d Dist) fixed() bool {
	switch d.shape {
	case exponential:
		return d.a == 0
	case uniform, lognormal:
		return d.a == d.b
	default:
		return true
	}
}

// whole returns f ≥ 0 cut to whole nanoseconds and to the largest Duration.
func whole(f float64) time.Duration {
	if !(f < 1<<63) {
		return maxDuration
	}
	return time.Duration(f)
}

// unit returns u clamped to [0,1). NaN gives 0.
func unit(u float64) float64 {
	switch {
	case u >= 1:
		return 1 - 0x1p-53
	case u > 0:
		return u
	default:
		return 0
	}
}

// shapes are the words of the text form, with the names of the durations that follow each.
var shapes = [...][]string{
	constant:    {"", "10ms"},
	exponential: {"exponential", "MEAN"},
	uniform:     {"uniform", "LO", "HI"},
	lognormal:   {"lognormal", "MEDIAN", "P99"},
}

// String returns the text form: "10ms", "lognormal 20ms 200ms".
func (d Dist) String() string {
	text := strings.TrimSpace(shapes[d.shape][0] + " " + d.a.String())
	if len(shapes[d.shape]) > 2 {
		text += " " + d.b.String()
	}
	return text
}

// MarshalText returns the text form. It never fails.
func (d Dist) MarshalText() ([]byte, error) { return []byte(d.String()), nil }

// UnmarshalText reads the text form, a word for its kind and then durations as time.ParseDuration reads them, separated
// by spaces. A duration alone is always that long.
//
//	10ms                     always 10ms
//	exponential MEAN         as Exponential
//	uniform LO HI            as Uniform; HI is not below LO
//	lognormal MEDIAN P99     as LogNormal; MEDIAN is above 0, P99 is not below it
//
// Anything else, a negative duration included, is an error that names the fault and lists the forms, and leaves d as
// it is.
func (d *Dist) UnmarshalText(text []byte) error {
	bad := func(format string, a ...any) error {
		const forms = `the forms are "10ms", "exponential MEAN", "uniform LO HI" and "lognormal MEDIAN P99"`
		return fmt.Errorf("retryplan: distribution %q %s; %s", text, fmt.Sprintf(format, a...), forms)
	}
	kind, given := constant, strings.Fields(string(text))
	for i, form := range shapes {
		if len(given) > 0 && given[0] == form[0] {
			kind, given = shape(i), given[1:]
		}
	}
	form := shapes[kind]
	var read [2]time.Duration
	for i, word := range given {
		x, err := time.ParseDuration(word)
		switch {
		case err != nil:
			return bad("has %q, which is not a duration", word)
		case x < 0:
			return bad("has %s, which is negative", word)
		case i < len(read):
			read[i] = x
		}
	}
	a, b := read[0], read[1]
	switch {
	case len(given) != len(form)-1:
		return bad("has %s, not %d", count(len(given), "duration"), len(form)-1)
	case (kind == uniform || kind == lognormal) && b < a:
		return bad("has %s %s below %s %s", form[2], b, form[1], a)
	case kind == lognormal && a == 0:
		return bad("has a MEDIAN of 0")
	case kind == lognormal:
		*d = LogNormal(a, b)
	default:
		*d = Dist{shape: kind, a: a, b: b}
	}
	return nil
}
