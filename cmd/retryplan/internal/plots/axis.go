package plots

import (
	"math"
	"slices"
	"time"

	"github.com/retrygo/retry/cmd/retryplan/internal/say"
)

// axis is a scale. Durations are in seconds.
type axis struct {
	name     string
	min, max float64
	steps    []float64            // possible distances between ticks, in rising order
	text     func(float64) string // returns the label of a value
}

// norm returns the place of v on a: 0 at the lower end or below it, 1 at the upper end or above it.
func (a axis) norm(v float64) float64 { return min(max((v-a.min)/(a.max-a.min), 0), 1) }

// ticks returns values for labels that do not overlap. The axis is room pixels long, and a label takes size of them.
func (a axis) ticks(room float64, size func(label string) float64) (ticks []float64) {
	put := func(v float64) (fits bool) {
		for _, u := range ticks {
			if math.Abs(a.norm(v)-a.norm(u))*room < (size(a.text(v))+size(a.text(u)))/2 {
				return false
			}
		}
		ticks = append(ticks, v)
		return true
	}
	for _, step := range a.steps {
		fit := step*100 > a.max-a.min // no axis has room for more
		ticks = nil
		for n := math.Ceil(a.min / step); fit && n*step <= a.max*(1+1e-9); n++ {
			fit = put(n * step)
		}
		if fit {
			break
		}
	}
	return ticks
}

// durationAxis returns an axis from 0 to most.
func durationAxis(name string, most time.Duration) axis {
	return axis{name: name, max: max(most, 1).Seconds(), steps: clock, text: seconds}
}

func seconds(s float64) string {
	if s >= time.Duration(math.MaxInt64).Seconds() {
		return say.Span(math.MaxInt64)
	}
	return say.Span(time.Duration(math.Round(s * 1e9)))
}

// clock has round durations in seconds.
var clock = slices.Concat(
	decades(1, -10, 0),
	[]float64{1, 2, 5, 10, 20, 30, 60, 120, 300, 600, 1200, 1800, 3600, 7200, 21600},
	decades(24*3600, 0, 6),
)

// decades returns 1, 2 and 5 units times each power of ten, from the exponent from to below the exponent to.
func decades(unit float64, from, to int) (all []float64) {
	for e := from; e < to; e++ {
		for _, m := range []float64{1, 2, 5} {
			all = append(all, unit*m*math.Pow10(e))
		}
	}
	return all
}
