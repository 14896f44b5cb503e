package plots

import (
	"math"
	"strconv"
	"time"
)

// tick is a labeled place of an axis.
type tick struct {
	value float64
	label string
}

// axis is a scale with its ticks. Durations are in seconds.
type axis struct {
	min, max float64
	log      bool // logarithmic: min stands for everything at or below it, 0 included
	ticks    []tick
}

// norm returns the position of x between the ends of a: 0 at the lower end, 1 at the upper one.
func (a axis) norm(x float64) float64 {
	switch {
	case !a.log:
		return (x - a.min) / (a.max - a.min)
	case x <= a.min:
		return 0
	}
	return math.Log(x/a.min) / math.Log(a.max/a.min)
}

// withRoom returns a with some more room at its upper end, as a share of its length.
func (a axis) withRoom(share float64) axis {
	a.max = a.at(1 + share)
	return a
}

// at returns the value that norm turns into share.
func (a axis) at(share float64) float64 {
	if a.log {
		return a.min * math.Pow(a.max/a.min, share)
	}
	return a.min + (a.max-a.min)*share
}

// spans says whether the positive values cover so much that a linear scale would press the small ones flat.
func spans(values []float64) bool {
	lo := leastPositive(values)
	return lo > 0 && upper(values...) >= 30*lo
}

// leastPositive returns the least of values above 0, or 0 if there is none.
func leastPositive(values []float64) float64 {
	least := 0.0
	for _, v := range values {
		if v > 0 && (least == 0 || v < least) {
			least = v
		}
	}
	return least
}

// durationAxis returns the axis for durations in seconds from lo to hi with about the given number of labels. On a log
// scale lo is the least positive duration, and zero says that there are durations of 0 or below lo as well: they lie on
// the lower end, which is labeled 0.
func durationAxis(lo, hi float64, log, zero bool, labels int) axis {
	if !log || lo <= 0 || hi <= lo {
		return linearDurations(lo, hi, labels)
	}
	a := axis{log: true, min: fineLadder[0], max: hi}
	for _, v := range fineLadder {
		if v < lo || (v == lo && !zero) {
			a.min = v
		}
	}
	in := inside(fineLadder, a.min, a.max)
	if len(in) > labels {
		in = inside(coarseLadder, a.min, a.max)
	}
	every := (len(in) + labels - 1) / max(labels, 1)
	for i, v := range in {
		switch {
		case zero && a.norm(v) < 0.06: // it would run into the 0
		case i%every != 0:
		default:
			a.ticks = append(a.ticks, tick{value: v, label: secondsText(v)})
		}
	}
	if zero {
		a.ticks = append([]tick{{value: a.min, label: "0"}}, a.ticks...)
	}
	return a
}

func linearDurations(lo, hi float64, labels int) axis {
	if hi <= 0 {
		hi = 1
	}
	a := axis{min: 0, max: hi}
	if lo > hi/2 && hi-lo > hi/5 { // a narrow range far from 0; a narrower one has labels that do not differ
		a.min = lo
	}
	step := roundSteps[len(roundSteps)-1]
	for i := len(roundSteps) - 1; i >= 0 && (a.max-a.min)/roundSteps[i] <= float64(labels); i-- {
		step = roundSteps[i]
	}
	a.min = math.Floor(a.min/step) * step
	for n := math.Ceil(a.min / step); n*step <= a.max*(1+1e-9); n++ {
		a.ticks = append(a.ticks, tick{value: n * step, label: secondsText(n * step)})
	}
	return a
}

// countAxis returns the axis for counts and rates from 0 to hi. If hi is labels or more, the ticks are whole.
func countAxis(hi float64, labels int) axis {
	if !(hi > 0) {
		hi = 1
	}
	least := math.Pow(10, math.Floor(math.Log10(hi))-1)
	step := least
	for _, m := range []float64{1, 2, 5, 10, 20, 50} {
		if step = least * m; hi/step <= float64(labels) {
			break
		}
	}
	a := axis{max: hi * 1.05}
	for n := 0.0; n*step <= a.max; n++ {
		a.ticks = append(a.ticks, tick{value: n * step, label: countText(n * step)})
	}
	return a
}

// attemptAxis returns the axis for attempts from the first to the last.
func attemptAxis(first, last, labels int) axis {
	step := 1
	for _, s := range []int{1, 2, 5, 10, 20, 50, 100, 200, 500} {
		if step = s; (last-first)/s <= labels {
			break
		}
	}
	a := axis{min: float64(first) - 0.6, max: float64(last) + 0.6}
	for n := first; n <= last; n++ {
		if n%step == 0 || step == 1 {
			a.ticks = append(a.ticks, tick{value: float64(n), label: strconv.Itoa(n)})
		}
	}
	return a
}

func shareAxis() axis {
	a := axis{max: 1.03}
	for _, v := range []int{0, 25, 50, 75, 100} {
		a.ticks = append(a.ticks, tick{value: float64(v) / 100, label: strconv.Itoa(v) + " %"})
	}
	return a
}

const (
	minute = 60.0
	hour   = 60 * minute
	day    = 24 * hour
	year   = 365 * day
)

var (
	// roundSteps are the distances between ticks that a reader can add up, in seconds.
	roundSteps = ladder([]float64{1, 2, 5, 10, 15, 20, 30}, []float64{1, 2, 3, 4, 6, 12}, []float64{1, 2, 5})
	// fineLadder and coarseLadder are ticks of a log scale, in seconds.
	fineLadder   = ladder([]float64{1, 2, 5, 10, 20, 30}, []float64{1, 2, 5, 10}, []float64{1, 2, 5})
	coarseLadder = ladder([]float64{1, 10}, []float64{1, 10}, []float64{1})
)

// ladder returns rising durations from 1ns to 1000 years: decimal parts of a second, then the given numbers of seconds
// and minutes, of hours, and decimal multiples of days and years.
func ladder(sixties, hours, decimal []float64) []float64 {
	var l []float64
	for exp := -9; exp < 0; exp++ {
		for _, m := range decimal {
			l = append(l, m/math.Pow10(-exp)) // divided: 2/10 is 0.2, 2*0.1 need not be
		}
	}
	scaled := func(unit float64, ms ...float64) {
		for _, m := range ms {
			l = append(l, m*unit)
		}
	}
	scaled(1, sixties...)
	scaled(minute, sixties...)
	scaled(hour, hours...)
	for _, unit := range []float64{day, 10 * day, 100 * day} {
		for _, m := range decimal {
			if m*unit < year {
				l = append(l, m*unit)
			}
		}
	}
	for _, unit := range []float64{year, 10 * year, 100 * year} {
		scaled(unit, decimal...)
	}
	return append(l, 1000*year)
}

func inside(values []float64, lo, hi float64) []float64 {
	var in []float64
	for _, v := range values {
		if lo <= v && v <= hi {
			in = append(in, v)
		}
	}
	return in
}

// durationText returns d with the units that a reader would use and no more than about three digits: "1.25s", "1m30s",
// "3h31m", "2d12h", "292y".
func durationText(d time.Duration) string { return secondsText(d.Seconds()) }

func secondsText(s float64) string {
	if !(s > 0) {
		return "0"
	}
	switch { // rounded before the unit is chosen, so that 59.999s is 1m and not 60s
	case s < minute:
		digits := math.Pow(10, 2-math.Floor(math.Log10(s)))
		s = math.Round(s*digits) / digits
	case s < hour:
		s = math.Round(s)
	case s < day:
		s = math.Round(s/minute) * minute
	case s < year:
		s = math.Round(s/hour) * hour
	}
	number := func(v float64) string { return strconv.FormatFloat(v, 'g', 3, 64) }
	pair := func(unit, part float64, a, b string) string {
		whole := math.Floor(s / unit)
		text := strconv.FormatFloat(whole, 'f', 0, 64) + a
		if rest := math.Round((s - whole*unit) / part); rest > 0 {
			text += strconv.FormatFloat(rest, 'f', 0, 64) + b
		}
		return text
	}
	switch {
	case s < 1e-6:
		return strconv.FormatFloat(math.Max(1, math.Round(s*1e9)), 'f', 0, 64) + "ns"
	case s < 1e-3:
		return number(s*1e6) + "µs"
	case s < 1:
		return number(s*1e3) + "ms"
	case s < minute:
		return number(s) + "s"
	case s < hour:
		return pair(minute, 1, "m", "s")
	case s < day:
		return pair(hour, minute, "h", "m")
	case s < year:
		return pair(day, hour, "d", "h")
	}
	years := s / year
	if years < 100 {
		years = math.Round(years*10) / 10
	} else {
		years = math.Floor(years) // the longest Duration is 292 years and a half
	}
	return strconv.FormatFloat(years, 'f', -1, 64) + "y"
}

// countText returns v as "0.5", "20", "1500", "15k", "2.5M", and what is not a number as "?".
func countText(v float64) string {
	if math.IsNaN(v) || math.IsInf(v, 0) {
		return "?"
	}
	for _, u := range []struct {
		unit float64
		text string
	}{{1e9, "G"}, {1e6, "M"}, {1e4, ""}} {
		if v < u.unit {
			continue
		}
		if u.text == "" {
			return strconv.FormatFloat(v/1e3, 'g', 4, 64) + "k"
		}
		return strconv.FormatFloat(v/u.unit, 'g', 4, 64) + u.text
	}
	return strconv.FormatFloat(v, 'g', 4, 64)
}
