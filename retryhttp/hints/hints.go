// Package hints reads from the headers of a response how long its server asks to stay away, by Retry-After and in the
// dialects of services that send another header.
//
// This package is of the stable core. Its names are meant for v1.
package hints

import (
	"math"
	"net/http"
	"strings"
	"time"
)

// RateLimit returns the time for which the rate limit headers of resp ask to stay away. It is never negative, and 0 if
// they ask for no wait or resp is nil. It is ready-made for the Hint of a retryhttp.Transport, which takes the longer
// of it and Retry-After. The current time counts only if resp has no Date.
//
// It reads these headers, and of several values the longest wait:
//
//	RateLimit: "default";r=0;t=30                  draft-ietf-httpapi-ratelimit-headers-08 and later
//	RateLimit: limit=100, remaining=0, reset=30    draft -07
//	RateLimit-Reset, with RateLimit-Remaining      draft -06 and earlier; GitLab, with a Unix time
//	X-RateLimit-Reset, with X-RateLimit-Remaining, X-Rate-Limit-Reset, with X-Rate-Limit-Remaining
//	X-RateLimit-Reset-After                        decimal seconds, Discord
//	Retry-After-Ms, X-Ms-Retry-After-Ms            decimal milliseconds, Azure
//
// A reset below 9e8 is a number of seconds, from 9e8 on a Unix time in seconds, and from 9e11 on a Unix time in
// milliseconds, measured against the response's Date. Numbers too large for a Duration give the largest one. Junk,
// negative numbers and times that are over give no wait.
//
// Services send the reset with every response, GitHub also with a 502, whose reset is not the time to come back. So a
// reset counts if it goes with a remaining count of 0. If there is no such reset and the status is 429, a reset without
// a count counts. If there is no such reset either, and no Retry-After, a reset whose count is above 0 counts. The
// items of a RateLimit list that have something left never count, because of several limits those did not refuse. The
// two headers in milliseconds always count, since they ask for a wait and not for a reset.
//
// It does not read the resets of one service alone, in formats of their own, such as X-RateLimit-Reset-Tokens or
// RateLimit-ResetTime, nor any body. Such a service needs a Hint of its own.
func RateLimit(resp *http.Response) time.Duration {
	return rateLimit(resp, time.Now())
}

// rateLimit is RateLimit at the time now.
func rateLimit(resp *http.Response, now time.Time) time.Duration {
	if resp == nil {
		return 0
	}
	h := resp.Header
	var r resets
	r.addPairs(h, now)
	r.addRateLimit(h["Ratelimit"])
	return max(r.wait(resp.StatusCode, h, now), retryAfterMs(h))
}

// RetryAfter returns the time for which h asks to stay away by Retry-After. It is never negative, and 0 if there is no
// hint. The value is a number of seconds or an HTTP date (RFC 9110 section 10.2.3). A date is measured against the
// response's own Date, so that the two clocks need not agree, and against now if Date is absent or unreadable. Optional
// whitespace around a value is ignored. Digits too many for a Duration give the largest Duration, never an immediate
// retry. Zero, negative numbers, times that are over and junk, which "+5", "1e9", "5,5" and "5s" are, give no hint. Of
// several values the longest wins.
//
// A decimal fraction such as "299.997" is against the grammar, but accepted and rounded up to the nanosecond. Microsoft
// Graph, Shopify and others send it (microsoft/dotnet#955, wojtekmach/req#507), and a client that ignored it would come
// early.
func RetryAfter(h http.Header, now time.Time) time.Duration {
	var wait time.Duration
	for _, value := range h["Retry-After"] {
		if d, ok := decimal(value, time.Second); ok {
			wait = max(wait, d)
		} else if t, ok := httpDate(value, now); ok {
			wait = max(wait, t.Sub(serverTime(h, now))) // Sub saturates
		}
	}
	return wait
}

// retryAfterMs returns the wait of the two headers in milliseconds. Azure App Configuration sends Retry-After-Ms with
// 429 and 503 (Azure/AppConfiguration, docs/REST/throttling.md), other services of Azure X-Ms-Retry-After-Ms, and
// Azure's clients read both (@azure/core-rest-pipeline, throttlingRetryStrategy).
func retryAfterMs(h http.Header) time.Duration {
	return max(longest(h["Retry-After-Ms"], time.Millisecond), longest(h["X-Ms-Retry-After-Ms"], time.Millisecond))
}

// quota is how much of a limit remains, according to a response.
type quota uint8

const (
	notSaid quota = iota
	usedUp        // below 1, so that no whole request is left
	someLeft
)

// resets holds the longest wait until a reset by how much of its limit remains.
type resets struct {
	notSaid, usedUp, someLeft time.Duration
}

func (r *resets) add(left quota, wait time.Duration) {
	switch left {
	case usedUp:
		r.usedUp = max(r.usedUp, wait)
	case someLeft:
		r.someLeft = max(r.someLeft, wait)
	default:
		r.notSaid = max(r.notSaid, wait)
	}
}

// wait returns the one of the resets that counts for a response of that status.
func (r *resets) wait(status int, h http.Header, now time.Time) time.Duration {
	switch {
	case r.usedUp > 0:
		return r.usedUp
	case status != http.StatusTooManyRequests:
		return 0 // another thing failed, whatever the limits are
	case r.notSaid > 0:
		return r.notSaid
	case RetryAfter(h, now) > 0:
		return 0 // refused by a limit other than the one sent, as by GitHub's secondary limits
	default:
		return r.someLeft
	}
}

// addPairs adds the limits that have a header for the remaining count and another for the reset. The names are in
// canonical form, as a Header has them.
func (r *resets) addPairs(h http.Header, now time.Time) {
	r.add(least(h["Ratelimit-Remaining"]), latest(h["Ratelimit-Reset"], h, now))
	r.add(least(h["X-Rate-Limit-Remaining"]), latest(h["X-Rate-Limit-Reset"], h, now))
	left := least(h["X-Ratelimit-Remaining"])
	r.add(left, latest(h["X-Ratelimit-Reset"], h, now))
	r.add(left, longest(h["X-Ratelimit-Reset-After"], time.Second))
}

// addRateLimit adds the limits of the RateLimit field. It reads no more of structured fields (RFC 9651) than it needs
// and passes over each member that it does not understand.
func (r *resets) addRateLimit(lines []string) {
	var list, dict resets
	var listLeft, dictLeft quota
	var dictWait time.Duration
	for _, rest := range lines {
		for rest != "" {
			var member string
			member, rest = cut(rest, ',')
			head, params := cut(member, ';')
			switch key, value, _ := strings.Cut(head, "="); trim(key) {
			case "remaining":
				dictLeft = remaining(value)
				continue
			case "reset":
				dictWait, _ = decimal(value, time.Second)
				continue
			}
			left, wait := item(params)
			listLeft = max(listLeft, left)
			list.add(left, wait)
		}
	}
	dict.add(dictLeft, dictWait)
	if listLeft != notSaid {
		list.notSaid = 0 // r is required, so an item without it, beside one with it, is malformed
	}
	r.add(usedUp, max(list.usedUp, dict.usedUp))
	r.add(notSaid, max(list.notSaid, dict.notSaid))
	r.add(someLeft, dict.someLeft)
}

// item returns the parameters r and t of a service limit item.
func item(params string) (left quota, wait time.Duration) {
	for params != "" {
		var param string
		param, params = cut(params, ';')
		switch key, value, _ := strings.Cut(param, "="); trim(key) {
		case "r":
			left = remaining(value)
		case "t":
			wait, _ = decimal(value, time.Second)
		}
	}
	return left, wait
}

// cut is strings.Cut at the first sep outside a quoted string.
func cut(s string, sep byte) (before, after string) {
	quoted := false
	for i := 0; i < len(s); i++ {
		switch {
		case quoted && s[i] == '\\':
			i++ // the next byte is escaped
		case s[i] == '"':
			quoted = !quoted
		case s[i] == sep && !quoted:
			return s[:i], s[i+1:]
		}
	}
	return s, ""
}

// least returns the least of the remaining counts.
func least(values []string) quota {
	left := notSaid
	for _, value := range values {
		if q := remaining(value); left == notSaid || q == usedUp {
			left = q
		}
	}
	return left
}

// remaining returns the quota of a remaining count. Reddit sends decimals, such as "0.0". A negative count is notSaid,
// because some services send it if there is no limit.
func remaining(value string) quota {
	count, ok := decimal(value, time.Second)
	switch {
	case !ok:
		return notSaid
	case count < time.Second:
		return usedUp
	default:
		return someLeft
	}
}

// longest returns the longest of the values, each a decimal number of units.
func longest(values []string, unit time.Duration) time.Duration {
	var wait time.Duration
	for _, value := range values {
		d, _ := decimal(value, unit)
		wait = max(wait, d)
	}
	return wait
}

// latest returns the longest wait until one of the resets in the headers h.
func latest(values []string, h http.Header, now time.Time) time.Duration {
	var wait time.Duration
	for _, value := range values {
		wait = max(wait, untilReset(value, h, now))
	}
	return wait
}

// unixTimes is the least value that is read as a Unix time, not as a number of seconds. 9e8 seconds are 28 years,
// longer than any limit, and the Unix time 9e8 was in July 1998, before any service sent such a header and before the
// time of a testing/synctest bubble, which begins in 2000. The same instant is 9e11 in milliseconds, which Rocket.Chat
// sends (RocketChat/docs-old#1358). As seconds, 9e11 would be the year 33658.
const unixTimes = 9e8 * time.Second

// untilReset returns the time until the reset in value, or 0 if value has no reset or it is over. Only a Unix time
// needs the time of the response, which is the Date of h, or now.
func untilReset(value string, h http.Header, now time.Time) time.Duration {
	d, _ := decimal(value, time.Second)
	if d < unixTimes {
		return d
	}
	if d == math.MaxInt64 { // beyond the year 2262 in seconds
		d, _ = decimal(value, time.Millisecond)
		if d < unixTimes || d == math.MaxInt64 {
			return math.MaxInt64
		}
	}
	return max(0, time.Unix(0, 0).Add(d).Sub(serverTime(h, now)))
}

// serverTime returns the time at which the response was made. It is the Date of h, or now if that is absent or
// unreadable.
func serverTime(h http.Header, now time.Time) time.Time {
	if date := h["Date"]; len(date) > 0 {
		if t, ok := httpDate(date[0], now); ok {
			return t
		}
	}
	return now
}

// httpDate parses an HTTP date in any of its three forms. A year of two digits means the latest year with these digits
// that is not more than 50 years after now (RFC 9110 section 5.6.7). time.Parse has 1969 to 2068 instead.
func httpDate(value string, now time.Time) (time.Time, bool) {
	value = trim(value)
	t, err := http.ParseTime(value)
	if err != nil {
		return time.Time{}, false
	}
	if strings.IndexByte(value, ',') <= len("Mon") {
		return t, true // four digits
	}
	if !strings.HasSuffix(value, " GMT") {
		return time.Time{}, false // time.Parse reads "EST" by the machine's time zone
	}
	t = t.UTC()
	horizon := now.UTC().AddDate(50, 0, 0)
	year := horizon.Year() - horizon.Year()%100 + t.Year()%100
	date := time.Date(year, t.Month(), t.Day(), t.Hour(), t.Minute(), t.Second(), t.Nanosecond(), time.UTC)
	if date.After(horizon) {
		date = date.AddDate(-100, 0, 0)
	}
	return date, true
}

// decimal returns value, a decimal number of units, as a Duration, rounded up to the nanosecond and at most the largest
// Duration. It accepts 1*DIGIT [ "." 1*DIGIT ] with optional whitespace around it, and reports whether value has this
// form. A sign, an exponent or another base is not allowed. unit is a power of ten nanoseconds, as Second and
// Millisecond are.
func decimal(value string, unit time.Duration) (time.Duration, bool) {
	whole, fraction, dotted := strings.Cut(trim(value), ".")
	if !digits(whole) || dotted && !digits(fraction) {
		return 0, false
	}
	var n time.Duration
	for _, c := range []byte(whole) {
		if n = 10*n + time.Duration(c-'0'); n > math.MaxInt64/unit {
			return math.MaxInt64, true
		}
	}
	n *= unit
	var part time.Duration
	for _, c := range []byte(fraction) {
		if unit /= 10; unit > 0 {
			part += time.Duration(c-'0') * unit
		} else if c != '0' {
			part++ // below a nanosecond, so round up once
			break
		}
	}
	if part > math.MaxInt64-n {
		return math.MaxInt64, true
	}
	return n + part, true
}

// digits reports whether s is 1*DIGIT.
func digits(s string) bool {
	for _, c := range []byte(s) {
		if c < '0' || c > '9' {
			return false
		}
	}
	return s != ""
}

// trim removes optional whitespace (RFC 9110 section 5.6.3) from both ends.
func trim(s string) string { return strings.Trim(s, " \t") }
