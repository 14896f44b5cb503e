package retryplan

import (
	"fmt"
	"math"
	"strings"
	"time"
)

// Dist is a distribution of durations of 0 or more: how long an attempt, a hop on the network or a server's work takes.
// Dists are plain data, comparable with ==, and read and write themselves as text: "10ms", "exponential 10ms",
// "normal 10ms 2ms", "uniform 5ms 20ms", "lognormal 20ms 200ms"; see ParseDist. The zero Dist is always 0.
//
// What is drawn from a Dist is cut to whole nanoseconds and to the largest Duration.
type Dist struct {
	shape shape
	a, b  time.Duration
	sigma float64 // of a lognormal: the standard deviation of its logarithm
}

type shape uint8

const (
	constant    shape = iota // a
	exponential              // mean a
	normal                   // |N(a, b)|
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

// Normal returns the distribution of |X| for a normal X with the given mean and standard deviation. Negative ones count
// as 0.
func Normal(mean, sd time.Duration) Dist {
	return Dist{shape: normal, a: max(mean, 0), b: max(sd, 0)}
}

// Uniform returns the distribution that is even over [lo, hi). A negative lo counts as 0, a hi below lo as lo.
func Uniform(lo, hi time.Duration) Dist {
	lo = max(lo, 0)
	return Dist{shape: uniform, a: lo, b: max(hi, lo)}
}

// LogNormal returns the lognormal distribution with the given median and 99th percentile, which is how latencies are
// reported. A median below 1ns counts as 1ns, a p99 below the median as the median.
func LogNormal(median, p99 time.Duration) Dist {
	median = max(median, 1)
	p99 = max(p99, median)
	return Dist{shape: lognormal, a: median, b: p99, sigma: ln(float64(p99)/float64(median)) / z99}
}

// At returns the quantile at u in [0,1): the duration that the share u of all is below. With a random u it draws from
// d. A u below 0 or NaN counts as 0, one of 1 or more as the largest float64 below 1. It allocates nothing, rises with
// u but for rounding, and gives the same duration on every platform.
func (d Dist) At(u float64) time.Duration {
	if d.fixed() {
		return d.a
	}
	u = unit(u)
	switch d.shape {
	case exponential:
		return whole(float64(d.a) * -ln(1-u))
	case normal:
		return whole(float64(d.b) * foldedQuantile(float64(d.a)/float64(d.b), u))
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
	// What is drawn is cut to whole nanoseconds: x stands for all below x+1ns.
	return d.below(float64(x-d.Min()) + 1)
}

// below returns the probability that the duration, before it is cut to whole nanoseconds, is less than Min + x, for a d
// that is not fixed. For one whose Min is 0, x is above 0. It counts from Min since a float64 does not distinguish
// nanoseconds beyond 2^53 of them.
func (d Dist) below(x float64) float64 {
	a, b := float64(d.a), float64(d.b)
	switch d.shape {
	case exponential:
		return -math.Expm1(-x / a)
	case normal:
		// Φ((x−a)/b) − Φ((−x−a)/b)
		return (math.Erf((x-a)/(b*math.Sqrt2)) + math.Erf((x+a)/(b*math.Sqrt2))) / 2
	case uniform:
		return min(max(x/float64(d.b-d.a), 0), 1)
	default:
		return math.Erfc(-math.Log(x/a)/(d.sigma*math.Sqrt2)) / 2
	}
}

// before returns the durations that are below limit, on a grid of at most so many cells. Their mass is their
// probability.
func (d Dist) before(limit time.Duration, cells int) measure {
	if d.fixed() {
		return exactly(d.a, 1).before(limit)
	}
	// All times are counted from the shortest, and the far tail is cut off.
	most := min(float64(d.At(1-1e-6)-d.Min())+1, float64(d.Max()-d.Min()))
	chance := 1.
	if limit < maxDuration {
		within := float64(limit - d.Min())
		most, chance = min(most, within), min(d.below(max(within, 0)), 1)
	}
	if most <= 0 || chance <= 0 {
		return nil
	}
	step := stepFor(most, cells, 1)
	g := grid{d.Min() + step/2, step, make([]float64, int(most/float64(step))+1)}
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
	a, b := float64(d.a), float64(d.b)
	switch {
	case d.fixed(), d.shape == exponential:
		return d.a
	case d.shape == uniform:
		return d.a + (d.b-d.a)/2
	case d.shape == normal:
		// b·√(2/π)·exp(−a²/2b²) + a·erf(a/(b√2)): Leone, Nelson, Nottingham, "The Folded Normal Distribution",
		// Technometrics 3 (1961).
		m := a / b
		return whole(b*math.Sqrt(2/math.Pi)*math.Exp(-m*m/2) + a*math.Erf(m/math.Sqrt2))
	default:
		return whole(a * math.Exp(d.sigma*d.sigma/2))
	}
}

// Max returns the supremum of what can be drawn: hi of a uniform distribution, and the largest Duration if there is no
// bound.
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

// Min returns the infimum of what can be drawn.
func (d Dist) Min() time.Duration {
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
	case normal:
		return d.b == 0
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

// unit returns u clamped to [0,1); NaN gives 0.
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

// shapes are the words of the text form, with the number of durations that follow each.
var shapes = [...]struct {
	word  string
	takes int
	form  string
}{
	constant:    {"", 1, "10ms"},
	exponential: {"exponential", 1, "exponential MEAN"},
	normal:      {"normal", 2, "normal MEAN SD"},
	uniform:     {"uniform", 2, "uniform LO HI"},
	lognormal:   {"lognormal", 2, "lognormal MEDIAN P99"},
}

// distForms names every text form, for errors.
const distForms = `the forms are "10ms", "exponential MEAN", "normal MEAN SD", "uniform LO HI" and "lognormal MEDIAN P99"`

// String returns the text form: "10ms", "lognormal 20ms 200ms".
func (d Dist) String() string {
	s := shapes[d.shape]
	text := strings.TrimSpace(s.word + " " + d.a.String())
	if s.takes == 2 {
		text += " " + d.b.String()
	}
	return text
}

// MarshalText returns the text form. It never fails.
func (d Dist) MarshalText() ([]byte, error) { return []byte(d.String()), nil }

// UnmarshalText reads the text form, as ParseDist does. On an error it leaves d as it is.
func (d *Dist) UnmarshalText(text []byte) error {
	parsed, err := ParseDist(string(text))
	if err == nil {
		*d = parsed
	}
	return err
}

// ParseDist reads the text form of a Dist: a word for its kind and then durations as time.ParseDuration reads them, all
// separated by spaces. One duration alone is always that long.
//
//	10ms                     always 10ms
//	exponential MEAN         as Exponential
//	normal MEAN SD           as Normal
//	uniform LO HI            as Uniform; HI is not below LO
//	lognormal MEDIAN P99     as LogNormal; MEDIAN is above 0, P99 is not below it
//
// Anything else, a negative duration included, is an error that says what is wrong and names the forms.
func ParseDist(text string) (Dist, error) {
	words := strings.Fields(text)
	if len(words) == 0 {
		return Dist{}, distError(text, "is empty")
	}
	kind, given := constant, words
	for i, s := range shapes {
		if words[0] == s.word {
			kind, given = shape(i), words[1:]
		}
	}
	var read [2]time.Duration
	for i, word := range given {
		d, err := time.ParseDuration(word)
		switch {
		case err != nil && i == 0 && kind == constant:
			return Dist{}, distError(text, fmt.Sprintf("begins with %q, which is neither a kind nor a duration", word))
		case err != nil:
			return Dist{}, distError(text, fmt.Sprintf("has %q, which is not a duration", word))
		case d < 0:
			return Dist{}, distError(text, fmt.Sprintf("has %s, which is negative", word))
		case i < len(read):
			read[i] = d
		}
	}
	if takes := shapes[kind].takes; len(given) != takes {
		return Dist{}, distError(text, fmt.Sprintf("has %s, not %d as %q", howMany(len(given)), takes, shapes[kind].form))
	}
	a, b := read[0], read[1]
	switch {
	case kind == uniform && b < a:
		return Dist{}, distError(text, fmt.Sprintf("has HI %s below LO %s", b, a))
	case kind == lognormal && a == 0:
		return Dist{}, distError(text, "has a MEDIAN of 0")
	case kind == lognormal && b < a:
		return Dist{}, distError(text, fmt.Sprintf("has P99 %s below MEDIAN %s", b, a))
	case kind == lognormal:
		return LogNormal(a, b), nil
	default:
		return Dist{shape: kind, a: a, b: b}, nil
	}
}

// howMany returns "1 duration", "2 durations", ...
func howMany(durations int) string {
	if durations == 1 {
		return "1 duration"
	}
	return fmt.Sprintf("%d durations", durations)
}

func distError(text, what string) error {
	return fmt.Errorf("retryplan: distribution %q %s; %s", text, what, distForms)
}
