package retryplan

import (
	"cmp"
	"errors"
	"math"
	"strconv"
	"strings"
	"time"

	"github.com/retrygo/retry"
)

const (
	// lintHorizon is how many attempts are looked at one by one, as many as Policy.TotalWait adds exactly.
	lintHorizon = 10_000

	// patience is the limit of a user's attention to one dialogue: Nielsen, "Usability Engineering" (1993), section 5.5.
	patience = 10 * time.Second
	// hangUp is when proxies stop waiting for a handler: nginx's proxy_read_timeout is 60s unless it is set.
	hangUp = time.Minute

	// herd is the fleet for which the effect of jitter was measured: 1,000 clients that fail together, a server that
	// takes 20 attempts each 100 ms after 10 s, waits of 100 ms ×2 up to 10 s. Without jitter 24,500 attempts were
	// rejected after the server's return and the last client was done after 493 s; with full jitter 18 and 11.6 s.
	herd = 1_000
)

// linter is a valid policy in its setting, with what most rules ask about it.
type linter struct {
	p        retry.Policy // if Wait is set, with a Backoff of waits of any length up to Cap
	set      retry.Policy // as it was given
	inForce  retry.Policy // Effective of p
	s        Setting
	mode     retry.Mode    // in force
	attempts int           // in force: retry.Unlimited, or 1 and more
	retries  bool          // whether a second attempt is allowed at all
	longest  time.Duration // the supremum of every wait
	lo, hi   time.Duration // the sum of all waits

	// What startable returns at best, for the fastest attempts, and likely, for usual ones and mean waits.
	can, likely       int
	late, lateUsually time.Duration
}

// errLint is the failure of every attempt. A policy of startable has no classifier.
var errLint = errors.New("failed")

func newLinter(p retry.Policy, s Setting) *linter {
	s.Deadline, s.Layers, s.Clients = max(s.Deadline, 0), max(s.Layers, 1), max(s.Clients, 0)
	l := &linter{p: p, set: p, s: s}
	l.lo, l.hi = p.TotalWait()
	if p.Wait != nil {
		inForce := p.Effective()
		limit := cmp.Or(inForce.Cap, math.MaxInt64)
		l.p.MaxAttempts = inForce.MaxAttempts
		l.p.Backoff = retry.Backoff{Mode: retry.Fixed, Base: limit, Cap: limit, Jitter: retry.FullJitter}
	}
	l.inForce = l.p.Effective()
	l.mode, l.attempts = l.inForce.Mode, l.inForce.MaxAttempts
	if p.Disabled {
		l.attempts = 1
	}
	l.retries = l.attempts != 1
	l.longest = l.longestWait()
	l.can, l.late = l.startable(0, l.cut(l.s.Duration.Min()))
	l.likely, l.lateUsually = l.startable(0.5, l.usual())
	return l
}

// waits is how many waits a run that never succeeds has; the largest int if there is no end.
func (l *linter) waits() int {
	if l.attempts == retry.Unlimited {
		return math.MaxInt
	}
	return l.attempts - 1
}

func (l *linter) longestWait() (longest time.Duration) {
	if !l.retries {
		return 0
	}
	if l.mode != retry.List {
		_, longest = l.p.Bounds(l.waits()) // formulas do not fall
		return longest
	}
	for n := range min(len(l.p.Delays), l.waits()) {
		_, hi := l.p.Bounds(n + 1)
		longest = max(longest, hi)
	}
	return longest
}

// bound returns the shorter of TTL and deadline with its name, or 0 if there is neither.
func (l *linter) bound() (time.Duration, string) {
	if l.s.Deadline > 0 && (l.p.TTL == 0 || l.s.Deadline <= l.p.TTL) {
		return l.s.Deadline, "deadline"
	}
	return l.p.TTL, "TTL"
}

// startable returns how many attempts can start if each takes spent and each wait is at the point u of its window; the
// next one, which cannot, would start at late if there were no limits.
func (l *linter) startable(u float64, spent time.Duration) (n int, late time.Duration) {
	free := retry.Policy{MaxAttempts: l.attempts, Backoff: l.p.Backoff}
	limited := free
	limited.TTL = l.p.TTL
	var pr retry.Progress
	for pr.Attempt = 1; ; pr.Attempt++ {
		if pr.Attempt == lintHorizon && l.attempts != lintHorizon {
			return max(l.attempts, lintHorizon), 0
		}
		pr.Elapsed, pr.Deadline = saturatingAdd(pr.Elapsed, spent), 0
		d := free.Decide(pr, errLint, u)
		if d.Status != retry.Waiting { // it was the last one
			return pr.Attempt, late
		}
		late = saturatingAdd(pr.Elapsed, d.Delay)
		pr.Deadline = l.s.Deadline
		if limited.Admit(pr, d.Delay).Status != retry.Waiting {
			return pr.Attempt, late
		}
		pr.Elapsed, pr.Prev = late, d.Backoff
	}
}

// usual is the median of what an attempt takes; 0 if it is not known.
func (l *linter) usual() time.Duration { return l.cut(l.s.Duration.At(0.5)) }

func (l *linter) cut(d time.Duration) time.Duration {
	if l.p.AttemptTimeout > 0 {
		return min(d, l.p.AttemptTimeout)
	}
	return d
}

// product returns n·d for n, d ≥ 0, or the largest Duration if that overflows.
func product(n int64, d time.Duration) time.Duration {
	if n > 0 && int64(d) > math.MaxInt64/n {
		return math.MaxInt64
	}
	return time.Duration(n) * d
}

// plainly prints d exactly, without the zero units that Duration.String ends with: "1h".
func plainly(d time.Duration) string {
	text := d.String()
	for _, zero := range []string{"m0s", "h0m"} {
		if strings.HasSuffix(text, zero) {
			text = text[:len(text)-len("0s")]
		}
	}
	return text
}

// roughly prints d to three digits.
func roughly(d time.Duration) string {
	return plainly(d.Round(unitOf(d, 3)))
}

// past prints a time that is not below bound, to three digits if that does not look as if it were below it.
func past(d, bound time.Duration) string {
	if d == math.MaxInt64 || d.Round(unitOf(d, 3)) < bound {
		return plainly(d)
	}
	return roughly(d)
}

// rounded returns d cut to two digits, never above d, and above 0 if d is.
func rounded(d time.Duration) time.Duration { return cutOff(d, 2) }

// raised returns d raised to two digits, or the largest Duration if that overflows.
func raised(d time.Duration) time.Duration { return raisedTo(d, 2) }

// cutOff returns d ≥ 0 cut off after so many digits.
func cutOff(d time.Duration, n int) time.Duration { return d - d%unitOf(d, n) }

// raisedTo returns d ≥ 0 raised to so many digits.
func raisedTo(d time.Duration, n int) time.Duration {
	cut := cutOff(d, n)
	if cut == d {
		return d
	}
	return saturatingAdd(cut, unitOf(d, n))
}

// unitOf returns the unit of the last of so many digits of d ≥ 0.
func unitOf(d time.Duration, n int) time.Duration {
	unit := time.Duration(1)
	for limit := time.Duration(math.Pow10(n)); d/unit >= limit; {
		unit *= 10
	}
	return unit
}

// worded returns text, a distribution or a rule, with its durations as plainly prints them.
func worded(text string) string {
	words := strings.Fields(text)
	for i, word := range words {
		if d, err := time.ParseDuration(word); err == nil {
			words[i] = plainly(d)
		}
	}
	return strings.Join(words, " ")
}

// listed prints the delays as one word: "1s,5s,30s".
func listed(delays []time.Duration) string {
	words := make([]string, len(delays))
	for i, d := range delays {
		words[i] = plainly(d)
	}
	return strings.Join(words, ",")
}

// figure prints f to three digits, without an exponent if that is readable.
func figure(f float64) string {
	if f >= 1000 && f < 1e6 {
		return strconv.FormatFloat(f, 'f', 0, 64)
	}
	return strconv.FormatFloat(f, 'g', 3, 64)
}

// count prints "1 attempt", "2 attempts".
func count(n int, what string) string {
	if n == 1 {
		return "1 " + what
	}
	return strconv.Itoa(n) + " " + what + "s"
}

// ordinal prints "1st", "2nd", "11th".
func ordinal(n int) string {
	suffix := "th"
	switch {
	case n/10%10 == 1:
	case n%10 == 1:
		suffix = "st"
	case n%10 == 2:
		suffix = "nd"
	case n%10 == 3:
		suffix = "rd"
	}
	return strconv.Itoa(n) + suffix
}
