package main

import (
	"math"
	"strconv"
	"strings"

	"golang.org/x/perf/benchmath"
)

// significant returns x rounded to the given number of significant digits, 3 being readable, with separators between
// thousands: 0.512, 12.3, 1,230.
func significant(x float64, digits int) string {
	switch {
	case math.IsNaN(x):
		return "?"
	case math.IsInf(x, 1):
		return "∞"
	case math.IsInf(x, -1):
		return "−∞"
	case x == 0:
		return "0"
	}
	// First to the power of ten that x has once it is rounded: 9.996 is 10.0, not 10.00.
	scientific := strconv.FormatFloat(x, 'e', digits-1, 64)
	_, power, _ := strings.Cut(scientific, "e")
	exponent, _ := strconv.Atoi(power)
	rounded, _ := strconv.ParseFloat(scientific, 64)
	return separated(strconv.FormatFloat(rounded, 'f', max(digits-1-exponent, 0), 64))
}

// exact returns x with all its digits, with separators between thousands.
func exact(x float64) string {
	if math.IsNaN(x) || math.IsInf(x, 0) {
		return significant(x, 3)
	}
	return separated(strconv.FormatFloat(x, 'f', -1, 64))
}

func count(n int) string { return separated(strconv.Itoa(n)) }

// separated returns a decimal number with commas between thousands and a true minus sign.
func separated(number string) string {
	sign := ""
	if strings.HasPrefix(number, "-") {
		sign, number = "−", number[1:]
	}
	whole, fraction, found := strings.Cut(number, ".")
	for i := len(whole) - 3; i > 0; i -= 3 {
		whole = whole[:i] + "," + whole[i:]
	}
	if found {
		whole += "." + fraction
	}
	return sign + whole
}

// spread returns the width of the confidence interval: the farther of its ends, in per cent of the median.
func spread(s benchmath.Summary) string { return "± " + s.PctRangeString() }

// times returns a as a multiple of b.
func times(a, b float64) string {
	if !(b > 0) {
		return "–"
	}
	return significant(a/b, 3)
}

// superscript returns a number as a footnote's mark.
func superscript(n int) string {
	digits := []rune("⁰¹²³⁴⁵⁶⁷⁸⁹")
	var mark strings.Builder
	for _, d := range strconv.Itoa(n) {
		mark.WriteRune(digits[d-'0'])
	}
	return mark.String()
}
