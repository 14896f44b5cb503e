// Inside the package on purpose: rateLimit takes the time that RateLimit fills in.
package hints

import (
	"math"
	"math/big"
	"net/http"
	"regexp"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

const forever = time.Duration(math.MaxInt64)

// hintNow is the client's clock, Unix time 1790000000, and hintDate a server's that is ten minutes ahead of it.
var hintNow = time.Date(2026, time.September, 21, 14, 13, 20, 0, time.UTC)

const hintDate = "Mon, 21 Sep 2026 14:23:20 GMT"

// fields returns a Header with the lines of the form "Name: value".
func fields(lines ...string) http.Header {
	h := http.Header{}
	for _, line := range lines {
		name, value, _ := strings.Cut(line, ": ")
		h.Add(name, value)
	}
	return h
}

func TestRetryAfter(t *testing.T) {
	for _, row := range []struct {
		name   string
		header []string
		want   time.Duration
	}{
		{name: "an absent header is not a hint", want: 0},
		{name: "digits are seconds", header: []string{"Retry-After: 120"}, want: 2 * time.Minute},
		{name: "one second is the least whole number", header: []string{"Retry-After: 1"}, want: time.Second},
		{name: "leading zeros are digits", header: []string{"Retry-After: 00120"}, want: 2 * time.Minute},
		{name: "spaces around are ignored", header: []string{"Retry-After:  5 "}, want: 5 * time.Second},
		{name: "tabs around are ignored", header: []string{"Retry-After: \t5\t"}, want: 5 * time.Second},
		{name: "zero is not a hint", header: []string{"Retry-After: 0"}},
		{name: "a negative number is not a hint", header: []string{"Retry-After: -5"}},
		{name: "a sign is junk", header: []string{"Retry-After: +5"}},
		{name: "an empty value is junk", header: []string{"Retry-After: "}},
		{name: "a blank value is junk", header: []string{"Retry-After:   "}},
		{name: "an exponent is junk", header: []string{"Retry-After: 1e9"}},
		{name: "a hexadecimal number is junk", header: []string{"Retry-After: 0x10"}},
		{name: "an underscore is junk", header: []string{"Retry-After: 1_000"}},
		{name: "NaN is junk", header: []string{"Retry-After: NaN"}},
		{name: "Inf is junk", header: []string{"Retry-After: Inf"}},
		{name: "a unit is junk", header: []string{"Retry-After: 5s"}},
		{name: "a decimal comma is junk", header: []string{"Retry-After: 5,5"}},
		{name: "a list is junk", header: []string{"Retry-After: 5, 10"}},
		{name: "a space inside is junk", header: []string{"Retry-After: 5 5"}},
		{name: "digits of another script are junk", header: []string{"Retry-After: \u0665"}},

		{name: "a fraction is accepted", header: []string{"Retry-After: 299.997"}, want: 299997 * time.Millisecond},
		{name: "a fraction of zeros is a whole number", header: []string{"Retry-After: 2.0"}, want: 2 * time.Second},
		{name: "a fraction of nothing is not a hint", header: []string{"Retry-After: 0.000"}},
		{name: "a nanosecond is exact", header: []string{"Retry-After: 0.000000001"}, want: 1},
		{name: "less than a nanosecond rounds up", header: []string{"Retry-After: 0.00000000001"}, want: 1},
		{name: "the tenth digit rounds up once", header: []string{"Retry-After: 1.00000000199"}, want: time.Second + 2},
		{name: "zeros after the ninth digit do not round", header: []string{"Retry-After: 1.00000000100"}, want: time.Second + 1},
		{name: "a point without digits after it is junk", header: []string{"Retry-After: 1."}},
		{name: "a point without digits before it is junk", header: []string{"Retry-After: .5"}},
		{name: "two points are junk", header: []string{"Retry-After: 1.5.5"}},

		{name: "the largest whole number of seconds fits", header: []string{"Retry-After: 9223372036"}, want: 9223372036 * time.Second},
		{name: "the largest Duration fits", header: []string{"Retry-After: 9223372036.854775807"}, want: forever},
		{name: "one nanosecond more saturates", header: []string{"Retry-After: 9223372036.854775808"}, want: forever},
		{name: "one second more saturates", header: []string{"Retry-After: 9223372037"}, want: forever},
		{name: "more than 64 bits saturate", header: []string{"Retry-After: 18446744073709551617"}, want: forever},
		{name: "a thousand digits saturate", header: []string{"Retry-After: " + strings.Repeat("9", 1000)}, want: forever},

		{name: "a date is measured against the server's clock", header: []string{"Retry-After: Mon, 21 Sep 2026 14:24:20 GMT", "Date: " + hintDate}, want: time.Minute},
		{name: "a date without Date is measured against now", header: []string{"Retry-After: Mon, 21 Sep 2026 14:14:20 GMT"}, want: time.Minute},
		{name: "a date with an unreadable Date is measured against now", header: []string{"Retry-After: Mon, 21 Sep 2026 14:14:20 GMT", "Date: yesterday"}, want: time.Minute},
		{name: "a date that is over is not a hint", header: []string{"Retry-After: Mon, 21 Sep 2026 14:23:19 GMT", "Date: " + hintDate}},
		{name: "the response's own date is not a hint", header: []string{"Retry-After: " + hintDate, "Date: " + hintDate}},
		{name: "RFC 850 dates are read", header: []string{"Retry-After: Monday, 21-Sep-26 14:14:20 GMT"}, want: time.Minute},
		{name: "asctime dates are read", header: []string{"Retry-After: Mon Sep 21 14:14:20 2026"}, want: time.Minute},
		{name: "spaces around a date are ignored", header: []string{"Retry-After:  Mon, 21 Sep 2026 14:14:20 GMT "}, want: time.Minute},
		{name: "Date may be in an old form too", header: []string{"Retry-After: Monday, 21-Sep-26 14:24:20 GMT", "Date: Mon Sep 21 14:23:20 2026"}, want: time.Minute},
		{name: "two digits mean up to 50 years ahead", header: []string{"Retry-After: Sunday, 20-Sep-76 14:13:20 GMT"}, want: 18262 * 24 * time.Hour},
		{name: "two digits exactly 50 years ahead are the future", header: []string{"Retry-After: Monday, 21-Sep-76 14:13:20 GMT"}, want: 18263 * 24 * time.Hour},
		{name: "two digits more than 50 years ahead are the past", header: []string{"Retry-After: Monday, 21-Sep-76 14:13:21 GMT"}},
		{name: "two digits of the last century are the past", header: []string{"Retry-After: Sunday, 06-Nov-94 08:49:37 GMT"}},
		{name: "a far date saturates", header: []string{"Retry-After: Fri, 31 Dec 9999 23:59:59 GMT"}, want: forever},
		{name: "a date of another zone is junk", header: []string{"Retry-After: Monday, 21-Sep-26 14:14:20 EST"}},
		{name: "a date of an offset from GMT is junk", header: []string{"Retry-After: Monday, 21-Sep-26 14:14:20 GMT-3"}},
		{name: "an ISO date is junk", header: []string{"Retry-After: 2026-09-21T14:14:20Z"}},
		{name: "an impossible date is junk", header: []string{"Retry-After: Mon, 31 Sep 2026 14:14:20 GMT"}},

		{name: "the longest of several wins", header: []string{"Retry-After: 5", "Retry-After: 9", "Retry-After: 7"}, want: 9 * time.Second},
		{name: "a date competes with seconds", header: []string{"Retry-After: 59", "Retry-After: Mon, 21 Sep 2026 14:14:20 GMT"}, want: time.Minute},
		{name: "junk does not hide a value", header: []string{"Retry-After: soon", "Retry-After: 5", "Retry-After: -1"}, want: 5 * time.Second},
	} {
		t.Run(row.name, func(t *testing.T) {
			require.Equal(t, row.want, RetryAfter(fields(row.header...), hintNow))
		})
	}
}

func TestRetryAfterOfANilHeaderIsNoHint(t *testing.T) {
	require.Zero(t, RetryAfter(nil, hintNow))
}

func TestTwoDigitYearsTurnWithTheCentury(t *testing.T) {
	for _, row := range []struct {
		name string
		now  time.Time
		date string
		want time.Time
	}{
		{name: "94 was the past in 2026", now: hintNow, date: "Sunday, 06-Nov-94 08:49:37 GMT", want: time.Date(1994, 11, 6, 8, 49, 37, 0, time.UTC)},
		{name: "94 is the future in 2060", now: hintNow.AddDate(34, 0, 0), date: "Sunday, 06-Nov-94 08:49:37 GMT", want: time.Date(2094, 11, 6, 8, 49, 37, 0, time.UTC)},
		{name: "05 is the next century in 2090", now: hintNow.AddDate(64, 0, 0), date: "Thursday, 01-Jan-05 00:00:00 GMT", want: time.Date(2105, 1, 1, 0, 0, 0, 0, time.UTC)},
		{name: "99 is the last century in 2001", now: hintNow.AddDate(-25, 0, 0), date: "Friday, 01-Jan-99 00:00:00 GMT", want: time.Date(1999, 1, 1, 0, 0, 0, 0, time.UTC)},
	} {
		t.Run(row.name, func(t *testing.T) {
			date, ok := httpDate(row.date, row.now)
			require.True(t, ok)
			require.Equal(t, row.want, date)
		})
	}
}

func TestRateLimitReset(t *testing.T) {
	const ok, badGateway, unavailable, tooMany = 200, 502, 503, 429
	for _, row := range []struct {
		name   string
		status int
		header []string
		want   time.Duration
	}{
		{name: "no header means no wait", status: tooMany},
		{name: "RateLimit-Reset is seconds", status: tooMany, header: []string{"RateLimit-Reset: 30"}, want: 30 * time.Second},
		{name: "X-RateLimit-Reset may be seconds", status: tooMany, header: []string{"X-RateLimit-Reset: 30"}, want: 30 * time.Second},
		{name: "X-Rate-Limit-Reset may be seconds", status: tooMany, header: []string{"X-Rate-Limit-Reset: 30"}, want: 30 * time.Second},
		{name: "X-RateLimit-Reset-After is decimal seconds", status: tooMany, header: []string{"X-RateLimit-Reset-After: 1.25"}, want: 1250 * time.Millisecond},
		{name: "X-RateLimit-Reset may be a Unix time", status: tooMany, header: []string{"X-RateLimit-Reset: 1790000030"}, want: 30 * time.Second},
		{name: "X-Rate-Limit-Reset may be a Unix time", status: tooMany, header: []string{"X-Rate-Limit-Reset: 1790000030"}, want: 30 * time.Second},
		{name: "GitLab's RateLimit-Reset is a Unix time", status: tooMany, header: []string{"RateLimit-Reset: 1790000030"}, want: 30 * time.Second},
		{name: "Discord's Unix time has a fraction", status: tooMany, header: []string{"X-RateLimit-Reset: 1790000030.123"}, want: 30123 * time.Millisecond},
		{name: "Rocket.Chat's Unix time is in milliseconds", status: tooMany, header: []string{"X-RateLimit-Reset: 1790000030123"}, want: 30123 * time.Millisecond},
		{name: "a Unix time is measured against the server's clock", status: tooMany, header: []string{"X-RateLimit-Reset: 1790000630", "Date: " + hintDate}, want: 30 * time.Second},
		{name: "seconds do not depend on the server's clock", status: tooMany, header: []string{"X-RateLimit-Reset: 30", "Date: " + hintDate}, want: 30 * time.Second},
		{name: "a Unix time that is over means no wait", status: tooMany, header: []string{"X-RateLimit-Reset: 1789999999"}},
		{name: "the current Unix time means no wait", status: tooMany, header: []string{"X-RateLimit-Reset: 1790000000"}},
		{name: "one below 9e8 is seconds", status: tooMany, header: []string{"X-RateLimit-Reset: 899999999"}, want: 899999999 * time.Second},
		{name: "9e8 is a time in 1998", status: tooMany, header: []string{"X-RateLimit-Reset: 900000000"}},
		{name: "the last Duration is a time in 2262", status: tooMany, header: []string{"X-RateLimit-Reset: 9223372036"}, want: 7433372036 * time.Second},
		{name: "beyond the last Duration is too long", status: tooMany, header: []string{"X-RateLimit-Reset: 9223372037"}, want: forever},
		{name: "one below 9e11 is too long", status: tooMany, header: []string{"X-RateLimit-Reset: 899999999999"}, want: forever},
		{name: "9e11 is a time in 1998", status: tooMany, header: []string{"X-RateLimit-Reset: 900000000000"}},
		{name: "nanoseconds are too long", status: tooMany, header: []string{"X-RateLimit-Reset: 1790000030000000000"}, want: forever},
		{name: "a thousand digits are too long", status: tooMany, header: []string{"X-RateLimit-Reset: " + strings.Repeat("9", 1000)}, want: forever},
		{name: "a negative number means no wait", status: tooMany, header: []string{"X-RateLimit-Reset: -30"}},
		{name: "a duration with units means no wait", status: tooMany, header: []string{"X-RateLimit-Reset: 6m0s"}},
		{name: "a date means no wait", status: tooMany, header: []string{"X-RateLimit-Reset: 2026-09-21T14:14:20Z"}},

		{name: "GitHub's reset with a 502 says nothing", status: badGateway, header: []string{"X-RateLimit-Remaining: 4999", "X-RateLimit-Reset: 1790003000"}},
		{name: "a reset without a count says nothing with a 502", status: badGateway, header: []string{"X-RateLimit-Reset: 1790003000"}},
		{name: "a count of 0 counts with any status", status: badGateway, header: []string{"X-RateLimit-Remaining: 0", "X-RateLimit-Reset: 1790003000"}, want: 3000 * time.Second},
		{name: "a count of 0 counts with a 200", status: ok, header: []string{"RateLimit-Remaining: 0", "RateLimit-Reset: 30"}, want: 30 * time.Second},
		{name: "a count of 0 counts with decimals", status: unavailable, header: []string{"X-Ratelimit-Remaining: 0.0", "X-Ratelimit-Reset: 30"}, want: 30 * time.Second},
		{name: "less than one request left is none", status: unavailable, header: []string{"X-Ratelimit-Remaining: 0.9", "X-Ratelimit-Reset: 30"}, want: 30 * time.Second},
		{name: "a count of 0 counts for X-Rate-Limit", status: unavailable, header: []string{"X-Rate-Limit-Remaining: 0", "X-Rate-Limit-Reset: 30"}, want: 30 * time.Second},
		{name: "a count of 0 counts for Reset-After", status: unavailable, header: []string{"X-RateLimit-Remaining: 0", "X-RateLimit-Reset-After: 0.5"}, want: 500 * time.Millisecond},
		{name: "a count of 0 among several counts", status: unavailable, header: []string{"RateLimit-Remaining: 7", "RateLimit-Remaining: 0", "RateLimit-Remaining: 5", "RateLimit-Reset: 30"}, want: 30 * time.Second},
		{name: "a negative count is not said", status: unavailable, header: []string{"X-RateLimit-Remaining: -1", "X-RateLimit-Reset: 30"}},
		{name: "a negative count does not hinder a 429", status: tooMany, header: []string{"X-RateLimit-Remaining: -1", "X-RateLimit-Reset: 30", "Retry-After: 1"}, want: 30 * time.Second},
		{name: "a 429 with something left and no Retry-After waits for the reset", status: tooMany, header: []string{"RateLimit-Remaining: 595", "RateLimit-Reset: 1790000060"}, want: time.Minute},
		{name: "GitHub's secondary limit leaves it to Retry-After", status: tooMany, header: []string{"X-RateLimit-Remaining: 4000", "X-RateLimit-Reset: 1790003000", "Retry-After: 60"}},
		{name: "a Retry-After of 0 asks for nothing", status: tooMany, header: []string{"X-RateLimit-Remaining: 1", "X-RateLimit-Reset: 30", "Retry-After: 0"}, want: 30 * time.Second},
		{name: "the limit that is used up counts alone", status: tooMany, header: []string{"RateLimit-Remaining: 0", "RateLimit-Reset: 1", "X-RateLimit-Remaining: 900", "X-RateLimit-Reset: 40000", "X-Rate-Limit-Reset: 50000"}, want: time.Second},
		{name: "of two limits used up the longer wins", status: tooMany, header: []string{"RateLimit-Remaining: 0", "RateLimit-Reset: 1", "X-RateLimit-Remaining: 0", "X-RateLimit-Reset: 40"}, want: 40 * time.Second},
		{name: "of several resets the longest wins", status: tooMany, header: []string{"X-RateLimit-Reset: 5", "X-RateLimit-Reset: 9", "X-RateLimit-Reset: 7", "X-RateLimit-Reset-After: 8.5"}, want: 9 * time.Second},

		{name: "draft 8 gives r and t", status: unavailable, header: []string{`RateLimit: "default";r=0;t=30`}, want: 30 * time.Second},
		{name: "draft 8 may have spaces and a partition key", status: unavailable, header: []string{`RateLimit: "100-in-1min"; r=0; t=30; pk=:cHsdsRa894==:`}, want: 30 * time.Second},
		{name: "draft 8 with something left says nothing", status: unavailable, header: []string{`RateLimit: "default";r=5;t=30`}},
		{name: "draft 8 with something left says nothing with a 429", status: tooMany, header: []string{`RateLimit: "minute";r=3;t=20, "day";r=900;t=40000`}},
		{name: "draft 8 without r counts with a 429", status: tooMany, header: []string{`RateLimit: "a";t=20, "b";t=30`}, want: 30 * time.Second},
		{name: "draft 8 without r says nothing otherwise", status: unavailable, header: []string{`RateLimit: "a";t=20`}},
		{name: "an item without r beside one with r does not count", status: tooMany, header: []string{`RateLimit: "a";t=20, "b";r=1;t=30`}},
		{name: "of several policies the one used up counts", status: tooMany, header: []string{`RateLimit: "burst";r=0;t=2, "daily";r=900;t=40000`}, want: 2 * time.Second},
		{name: "of several policies used up the longest counts", status: tooMany, header: []string{`RateLimit: "burst";r=0;t=2, "daily";r=0;t=40000`}, want: 40000 * time.Second},
		{name: "a list may be split over lines", status: tooMany, header: []string{`RateLimit: "daily";r=900;t=40000`, `RateLimit: "burst";r=0;t=2`}, want: 2 * time.Second},
		{name: "an unlimited wait has no t", status: tooMany, header: []string{`RateLimit: "default";r=0`}},
		{name: "a name may have anything in quotes", status: tooMany, header: []string{`RateLimit: "a,\";r=0;t=9";r=0;t=30`}, want: 30 * time.Second},
		{name: "an open quote swallows the rest", status: tooMany, header: []string{`RateLimit: "a;r=0;t=30`}},
		{name: "the order of parameters is free", status: tooMany, header: []string{`RateLimit: "a";t=30;x;r=0`}, want: 30 * time.Second},
		{name: "too many digits saturate", status: tooMany, header: []string{`RateLimit: "a";r=0;t=99999999999999`}, want: forever},
		{name: "draft 7 gives remaining and reset", status: unavailable, header: []string{"RateLimit: limit=100, remaining=0, reset=30"}, want: 30 * time.Second},
		{name: "draft 7 may be split over lines", status: unavailable, header: []string{"RateLimit: limit=100", "RateLimit: remaining=0", "RateLimit: reset=30"}, want: 30 * time.Second},
		{name: "draft 7 ignores parameters", status: unavailable, header: []string{"RateLimit: limit=100;w=60, remaining=0;r=5, reset=30;t=90"}, want: 30 * time.Second},
		{name: "draft 7 with something left says nothing", status: unavailable, header: []string{"RateLimit: limit=100, remaining=5, reset=30"}},
		{name: "draft 7 with something left waits on a 429", status: tooMany, header: []string{"RateLimit: limit=100, remaining=5, reset=30"}, want: 30 * time.Second},
		{name: "draft 7 need not give remaining", status: tooMany, header: []string{"RateLimit: limit=100, reset=30"}, want: 30 * time.Second},

		{name: "Retry-After-Ms is milliseconds", status: unavailable, header: []string{"Retry-After-Ms: 787"}, want: 787 * time.Millisecond},
		{name: "X-Ms-Retry-After-Ms is milliseconds", status: tooMany, header: []string{"x-ms-retry-after-ms: 10.5"}, want: 10500 * time.Microsecond},
		{name: "milliseconds saturate", status: tooMany, header: []string{"Retry-After-Ms: 9223372036855"}, want: forever},
		{name: "milliseconds compete with a reset", status: tooMany, header: []string{"Retry-After-Ms: 31000", "RateLimit-Reset: 30"}, want: 31 * time.Second},
		{name: "Retry-After is not read", status: tooMany, header: []string{"Retry-After: 30"}},
	} {
		t.Run(row.name, func(t *testing.T) {
			resp := &http.Response{StatusCode: row.status, Header: fields(row.header...)}
			require.Equal(t, row.want, rateLimit(resp, hintNow))
		})
	}
}

func TestRateLimitResetOfNoResponseIsNoWait(t *testing.T) {
	require.Zero(t, RateLimit(nil))
	require.Zero(t, RateLimit(&http.Response{StatusCode: 429}))
}

func TestRateLimitResetAsksTheClockOnlyWithoutDate(t *testing.T) {
	resp := &http.Response{StatusCode: 429, Header: fields("X-RateLimit-Reset: 1790000630", "Date: "+hintDate)}
	require.Equal(t, 30*time.Second, RateLimit(resp))
}

var (
	decimalForm = regexp.MustCompile(`^[ \t]*([0-9]+(?:\.[0-9]+)?)[ \t]*$`)
	rfc850Form  = regexp.MustCompile(`^[^,]{4,}, ?.* GMT$`)
)

// slowDecimal is decimal by math/big.
func slowDecimal(value string, unit time.Duration) (time.Duration, bool) {
	match := decimalForm.FindStringSubmatch(value)
	if match == nil {
		return 0, false
	}
	r, _ := new(big.Rat).SetString(match[1])
	r.Mul(r, new(big.Rat).SetInt64(int64(unit)))
	n, rest := new(big.Int).QuoRem(r.Num(), r.Denom(), new(big.Int))
	if rest.Sign() > 0 {
		n.Add(n, big.NewInt(1))
	}
	if !n.IsInt64() {
		return forever, true
	}
	return time.Duration(n.Int64()), true
}

// slowDate is httpDate by a search over centuries.
func slowDate(value string, now time.Time) (time.Time, bool) {
	value = strings.Trim(value, " \t")
	t, err := http.ParseTime(value)
	if err != nil {
		return t, false
	}
	if _, err := time.Parse(time.RFC850, value); err != nil {
		return t, true
	}
	if !rfc850Form.MatchString(value) {
		return t, false
	}
	t = t.UTC()
	for year := 2400 + t.Year()%100; ; year -= 100 {
		date := time.Date(year, t.Month(), t.Day(), t.Hour(), t.Minute(), t.Second(), t.Nanosecond(), time.UTC)
		if !date.After(now.AddDate(50, 0, 0)) {
			return date, true
		}
	}
}

// slowSub is the time from now until t, by math/big: at least 0, at most the largest Duration.
func slowSub(t, now time.Time) time.Duration {
	nanos := func(t time.Time) *big.Int {
		n := new(big.Int).Mul(big.NewInt(t.Unix()), big.NewInt(1e9))
		return n.Add(n, big.NewInt(int64(t.Nanosecond())))
	}
	d := new(big.Int).Sub(nanos(t), nanos(now))
	switch {
	case d.Sign() < 0:
		return 0
	case !d.IsInt64():
		return forever
	default:
		return time.Duration(d.Int64())
	}
}

func FuzzRetryAfter(f *testing.F) {
	for _, value := range []string{"120", "1.5", "0.0000000001", "9223372036.854775807", "9223372037", "-1", "1e9", "5,5", " 5\t",
		hintDate, "Monday, 21-Sep-26 14:14:20 GMT", "Monday, 21-Sep-76 14:13:21 GMT", "Mon Sep 21 14:14:20 2026",
		"Monday, 21-Sep-26 14:14:20 EST", "Fri, 31 Dec 9999 23:59:59 GMT"} {
		f.Add(value, hintDate, "3")
		f.Add("7", value, value)
	}
	f.Fuzz(func(t *testing.T, value, date, second string) {
		base := hintNow
		if at, ok := slowDate(date, hintNow); ok {
			base = at
		}
		var want time.Duration
		for _, v := range []string{value, second} {
			if d, ok := slowDecimal(v, time.Second); ok {
				want = max(want, d)
			} else if at, ok := slowDate(v, hintNow); ok {
				want = max(want, slowSub(at, base))
			}
		}
		h := http.Header{"Retry-After": {value, second}, "Date": {date}}
		require.Equal(t, want, RetryAfter(h, hintNow))
		require.GreaterOrEqual(t, want, time.Duration(0))
	})
}

// slowReset is untilReset by cases of the rounded number.
func slowReset(value string, now time.Time) time.Duration {
	seconds, _ := slowDecimal(value, time.Second)
	millis, _ := slowDecimal(value, time.Millisecond)
	switch {
	case seconds < 9e8*time.Second:
		return seconds
	case seconds < forever:
		return slowSub(time.Unix(0, int64(seconds)), now)
	case millis >= 9e8*time.Second && millis < forever:
		return slowSub(time.Unix(0, int64(millis)), now)
	default:
		return forever
	}
}

func FuzzRateLimitReset(f *testing.F) {
	for _, reset := range []string{"30", "1790000030", "1790000030.123", "1790000030123", "899999999.9999999999", "1e9", "-1", "9223372036.9"} {
		f.Add(reset, "0", `"a";r=0;t=30, "b";r=9;t=40`, "1.5", 429)
		f.Add(reset, "7", "limit=100, remaining=0, reset="+reset, reset, 502)
	}
	f.Fuzz(func(t *testing.T, reset, left, limits, ms string, status int) {
		wait := func(status int, h http.Header) time.Duration {
			return rateLimit(&http.Response{StatusCode: status, Header: h}, hintNow)
		}
		whole := http.Header{"X-Ratelimit-Reset": {reset}, "X-Ratelimit-Remaining": {left}, "Ratelimit": {limits}, "Retry-After-Ms": {ms}}
		require.GreaterOrEqual(t, wait(status, whole), time.Duration(0))

		want := slowReset(reset, hintNow)
		require.Equal(t, want, wait(429, http.Header{"X-Ratelimit-Reset": {reset}}), "a 429 without a count counts")
		require.Equal(t, want, wait(status, http.Header{"Ratelimit-Reset": {reset}, "Ratelimit-Remaining": {"0"}}), "a count of 0 counts")
		if status != 429 {
			require.Zero(t, wait(status, http.Header{"X-Rate-Limit-Reset": {reset}}), "nothing else counts")
			count, ok := slowDecimal(left, time.Second)
			if !ok || count >= time.Second {
				require.Zero(t, wait(status, http.Header{"X-Ratelimit-Reset": {reset}, "X-Ratelimit-Remaining": {left}}))
			}
		}
		want, _ = slowDecimal(ms, time.Millisecond)
		require.Equal(t, want, wait(status, http.Header{"X-Ms-Retry-After-Ms": {ms}}))

		// Whatever one line holds, a limit that is used up in another is not overlooked.
		both := http.Header{"Ratelimit": {limits, `"z";r=0;t=3600`}}
		require.GreaterOrEqual(t, wait(status, both), time.Hour)
	})
}

func BenchmarkRetryAfter(b *testing.B) {
	for _, row := range []struct {
		name   string
		header http.Header
	}{
		{name: "absent", header: fields("Date: " + hintDate)},
		{name: "seconds", header: fields("Retry-After: 120", "Date: "+hintDate)},
		{name: "date", header: fields("Retry-After: Mon, 21 Sep 2026 14:24:20 GMT", "Date: "+hintDate)},
	} {
		b.Run(row.name, func(b *testing.B) {
			b.ReportAllocs()
			for b.Loop() {
				RetryAfter(row.header, hintNow)
			}
		})
	}
}

func BenchmarkRateLimitReset(b *testing.B) {
	for _, row := range []struct {
		name   string
		header http.Header
	}{
		{name: "absent", header: fields("Date: " + hintDate)},
		{name: "unix", header: fields("X-RateLimit-Remaining: 0", "X-RateLimit-Reset: 1790000630", "Date: "+hintDate)},
		{name: "structured", header: fields(`RateLimit: "burst";r=0;t=2, "daily";r=900;t=40000`, "Date: "+hintDate)},
	} {
		resp := &http.Response{StatusCode: 429, Header: row.header}
		b.Run(row.name, func(b *testing.B) {
			b.ReportAllocs()
			for b.Loop() {
				rateLimit(resp, hintNow)
			}
		})
	}
}

func TestHintsInNumbersAllocateNothing(t *testing.T) {
	h := fields("Retry-After: 120", "X-RateLimit-Remaining: 0", "X-RateLimit-Reset: 1790000630", `RateLimit: "a";r=0;t=30`, "Date: "+hintDate)
	resp := &http.Response{StatusCode: 429, Header: h}
	require.Zero(t, testing.AllocsPerRun(100, func() { RetryAfter(h, hintNow) }))
	require.Zero(t, testing.AllocsPerRun(100, func() { rateLimit(resp, hintNow) }))
}
