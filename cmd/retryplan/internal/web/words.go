package web

import (
	"math"
	"strconv"
	"time"

	"github.com/retrygo/retry/cmd/retryplan/internal/wire"
)

// exactly returns d as a text that reads back as d: "1h", "1m30s".
func exactly(d time.Duration) string { return wire.Duration(d).String() }

// span returns d rounded to what a reader takes in: three digits below a minute, whole seconds below an hour, whole minutes
// below four days, whole hours above.
func span(d time.Duration) string {
	switch {
	case d == math.MaxInt64:
		return "no bound"
	case d < time.Minute:
		digit := time.Duration(1)
		for d >= 1000*digit {
			digit *= 10
		}
		return exactly(d.Round(digit))
	case d < time.Hour:
		return exactly(d.Round(time.Second))
	case d < 96*time.Hour:
		return exactly(d.Round(time.Minute))
	default:
		return exactly(d.Round(time.Hour))
	}
}

// between returns "1s to 2s", and "1s" where both ends are the same.
func between(lo, hi time.Duration) string {
	if lo == hi {
		return span(lo)
	}
	return span(lo) + " to " + span(hi)
}

// share returns a probability in per cent. Only certainties are "0 %" and "100 %".
func share(p float64) string {
	switch percent := 100 * p; {
	case p == 0 || p == 1:
		return number(percent) + " %"
	case percent < 0.01:
		return "below 0.01 %"
	case percent > 99.99:
		return "above 99.99 %"
	case percent > 99 || percent < 1:
		return strconv.FormatFloat(percent, 'f', 2, 64) + " %"
	default:
		return number(percent) + " %"
	}
}

// number returns x with three digits, and whole from 100 on.
func number(x float64) string {
	if math.Abs(x) >= 100 {
		return strconv.FormatFloat(math.Round(x), 'f', -1, 64)
	}
	text, err := strconv.ParseFloat(strconv.FormatFloat(x, 'g', 3, 64), 64)
	if err != nil {
		return strconv.FormatFloat(x, 'g', -1, 64)
	}
	return strconv.FormatFloat(text, 'f', -1, 64)
}
