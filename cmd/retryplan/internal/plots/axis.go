package plots

import (
	"math"
	"slices"
	"time"

	"github.com/retrygo/retry/cmd/retryplan/internal/say"
)

// axis is a scale with its name. Durations are in seconds.
type axis struct {
	name     string
	min, max float64
	log      bool                 // logarithmic: min stands for everything at or below it
	zero     bool                 // of which there is something, so that min is labeled 0
	steps    []float64            // rising distances between ticks; of a logarithmic axis, the ticks
	text     func(float64) string // of a value
}

// norm returns the place of v between the ends of a: 0 at the lower one and below it, 1 at the upper one and above it.
func (a axis) norm(v float64) float64 {
	at := (v - a.min) / (a.max - a.min)
	if a.log {
		at = math.Log(max(v, a.min)/a.min) / math.Log(a.max/a.min)
	}
	return min(max(at, 0), 1)
}

// title returns what is written beside a.
func (a axis) title() string {
	if a.log {
		return a.name + " (log scale)"
	}
	return a.name
}

// withRoom returns a with more room at its upper end, as a share of its length.
func (a axis) withRoom(share float64) axis {
	if a.log {
		a.max *= math.Pow(a.max/a.min, share)
	} else {
		a.max += (a.max - a.min) * share
	}
	return a
}

// tick is a labeled place of an axis.
type tick struct {
	value float64
	label string
}

// ticks returns as many ticks as have room for their labels, each of which takes size of it.
func (a axis) ticks(room float64, size func(label string) float64) (ticks []tick) {
	put := func(v float64) (fits bool) {
		t := tick{v, a.text(v)}
		for _, u := range ticks {
			if math.Abs(a.norm(t.value)-a.norm(u.value))*room < (size(t.label)+size(u.label))/2 {
				return false
			}
		}
		ticks = append(ticks, t)
		return true
	}
	if a.log {
		if a.zero {
			ticks = append(ticks, tick{a.min, "0"})
		}
		for _, every := range []int{6, 3, 1} { // the roundest first
			for i := 0; i < len(a.steps); i += every {
				if v := a.steps[i]; a.min <= v && v <= a.max {
					put(v)
				}
			}
		}
		return ticks
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

// durationAxis returns the axis of all durations, from 0 on. It is logarithmic if a linear one would press the typical
// durations flat: full jitter reaches down to 0, which would ask for a logarithmic axis every time.
func durationAxis(typical, all []time.Duration) axis {
	least, most := time.Duration(math.MaxInt64), time.Nanosecond
	for _, d := range typical {
		if d > 0 {
			least = min(least, d)
		}
	}
	for _, d := range all {
		most = max(most, d)
	}
	a := axis{max: most.Seconds(), steps: clock, text: seconds}
	if least > most/50 {
		return a
	}
	lo := least
	for _, d := range all {
		if d > least/30 { // less is next to nothing, and is drawn as 0
			lo = min(lo, d)
		}
	}
	a.log = true
	for _, v := range clock {
		if v < lo.Seconds() {
			a.min = v
		}
	}
	a.zero = slices.ContainsFunc(all, func(d time.Duration) bool { return d.Seconds() < a.min })
	return a
}

func seconds(s float64) string {
	if s >= time.Duration(math.MaxInt64).Seconds() {
		return say.Span(math.MaxInt64)
	}
	return say.Span(time.Duration(math.Round(s * 1e9)))
}

// clock are round durations in seconds. Every third one is a unit, or ten of it.
var clock = slices.Concat(
	decades(1, -10, 0),
	[]float64{1, 2, 5, 10, 20, 30, 60, 120, 300, 600, 1200, 1800, 3600, 7200, 21600},
	decades(24*3600, 0, 6),
)

// decades returns 1, 2 and 5 units times each power of ten from one exponent to below another.
func decades(unit float64, from, to int) (all []float64) {
	for e := from; e < to; e++ {
		for _, m := range []float64{1, 2, 5} {
			if e < 0 {
				all = append(all, unit*m/math.Pow10(-e)) // 2/10 is 0.2, 2*0.1 need not be
			} else {
				all = append(all, unit*m*math.Pow10(e))
			}
		}
	}
	return all
}
