package retryplan

import (
	"cmp"
	"errors"
	"math"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/retrygo/retry"
)

const (
	// lintHorizon is the number of attempts to look at one by one, which takes 0.2 ms.
	lintHorizon = 1_000

	// patience is the limit of a user's attention to one dialogue: Nielsen, "Usability Engineering" (1993), section 5.5.
	patience = 10 * time.Second
	// hangUp is the time after which proxies stop waiting for a handler. nginx's proxy_read_timeout is 60s unless it is set.
	hangUp = time.Minute

	// herd is the fleet for which the effect of jitter was measured: 1,000 clients that fail together, waits of 100 ms ×2
	// up to 10 s, and a server that is back after 10 s and rejects all but 20 attempts each 100 ms, as no Server of this
	// package does. Without jitter it rejected 24,500 and the last client was done after 493 s, with it 18 and 11.6 s.
	herd = 1_000
)

// linter is a valid policy in its setting, with values that most rules use.
type linter struct {
	given    retry.Policy
	p        retry.Policy // given; if that has a Wait, with a Backoff whose waits have any length up to Cap
	s        Setting
	inForce  retry.Policy  // Effective of p
	attempts int           // the number allowed: retry.Unlimited, or at least 1
	waiting  time.Duration // the supremum of the sum of all waits
}

// errLint is the failure of every attempt. A policy of startable has no classifier.
var errLint = errors.New("failed")

func newLinter(p retry.Policy, s Setting) *linter {
	s.Deadline, s.Clients = max(s.Deadline, 0), max(s.Clients, 0)
	l := &linter{given: p, p: p, s: s}
	_, l.waiting = p.TotalWait()
	if p.Wait != nil {
		l.inForce = p.Effective()
		limit := cmp.Or(l.inForce.Cap, math.MaxInt64)
		l.p.MaxAttempts = l.inForce.MaxAttempts
		l.p.Backoff = retry.Backoff{Mode: retry.Fixed, Base: limit, Cap: limit, Jitter: retry.FullJitter}
	}
	l.inForce = l.p.Effective()
	l.attempts = l.inForce.MaxAttempts
	if p.Disabled {
		l.attempts = 1
	}
	return l
}

// with returns the policy with a change.
func (l *linter) with(change func(p *retry.Policy)) *retry.Policy {
	p := l.given
	p.Delays = slices.Clone(p.Delays)
	change(&p)
	return &p
}

// retries reports whether a second attempt is allowed.
func (l *linter) retries() bool { return l.attempts != 1 }

// waits returns the number of waits of a run that never succeeds, or the largest int if there is no end.
func (l *linter) waits() int {
	if l.attempts == retry.Unlimited {
		return math.MaxInt
	}
	return l.attempts - 1
}

// bound returns the shorter of TTL and deadline with its name, or 0 if there is neither.
func (l *linter) bound() (time.Duration, string) {
	if l.s.Deadline > 0 && (l.p.TTL == 0 || l.s.Deadline <= l.p.TTL) {
		return l.s.Deadline, "deadline"
	}
	return l.p.TTL, "TTL"
}

// startable returns the number of attempts that can start if each takes spent and each wait is at the point u of its window.
// Without limits the next one would start at late.
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
		if d.Status != retry.WaitingRetry { // the last attempt
			return pr.Attempt, late
		}
		late = saturatingAdd(pr.Elapsed, d.Delay)
		pr.Deadline = l.s.Deadline
		if limited.Admit(pr, d.Delay).Status != retry.WaitingRetry {
			return pr.Attempt, late
		}
		pr.Elapsed, pr.Prev = late, d.Backoff
	}
}

// usual returns the median duration of an attempt, or 0 if it is not known.
func (l *linter) usual() time.Duration { return l.cut(l.s.Duration.At(0.5)) }

// cut returns d, or AttemptTimeout if that is shorter.
func (l *linter) cut(d time.Duration) time.Duration {
	if l.p.AttemptTimeout > 0 {
		return min(d, l.p.AttemptTimeout)
	}
	return d
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

// roughly prints d raised to three digits.
func roughly(d time.Duration) string { return plainly(raisedTo(d, 3)) }

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
