package retryplan

import (
	"cmp"
	"fmt"
	"math"
	"time"

	"github.com/retrygo/retry"
)

// The rules about the ends of a run, by attempts, TTL, deadline, timeouts and hints.

// reach returns the number of attempts that can start within the bound, with the shortest attempts and waits and with
// usual ones. After the usual ones the next would start at late. It returns the largest int if nothing limits them.
func (l *linter) reach() (can, usually int, late time.Duration) {
	bound, _ := l.bound()
	if !l.retries() || bound == 0 || l.p.Wait != nil {
		return math.MaxInt, math.MaxInt, 0
	}
	can, _ = l.startable(0, l.cut(l.s.Duration.least()))
	usually, late = l.startable(0.5, l.usual())
	return can, usually, late
}

func (l *linter) noRetryCanStart() Finding {
	can, usually, late := l.reach()
	if usually > 1 {
		return Finding{}
	}
	bound, name := l.bound()
	f := l.shorter((bound-l.usual())/8, Finding{
		Change: "Set MaxAttempts to 1", changed: l.with(func(p *retry.Policy) { p.MaxAttempts = 1 }),
	})
	f.Level, f.Text = Severe, "No retry can start"
	if can > 1 {
		f.Level, f.Text = Note, "A retry can start only if its wait is shorter than the mean"
	}
	f.Text += fmt.Sprintf(": it would come %s after the first attempt began, too late for the %s of %s.",
		roughly(late), name, plainly(bound))
	if name == "TTL" && late < math.MaxInt64 {
		f.Change += ", or TTL to " + plainly(raised(late))
	}
	f.Change += "."
	return f
}

// shorter returns a finding with the change that makes no wait longer than most, or otherwise if that leaves no sensible
// waits.
func (l *linter) shorter(most time.Duration, otherwise Finding) Finding {
	most = cutOff(most, 2)
	base := cutOff(most/8, 2) // three doublings up to the cap
	switch {
	case base < time.Millisecond:
		return otherwise
	case len(l.given.Delays) > 0:
		return Finding{Change: "Set Cap to " + plainly(most), changed: l.with(func(p *retry.Policy) { p.Cap = most })}
	default:
		return Finding{
			Change:  "Set Base to " + plainly(base) + " and Cap to " + plainly(most),
			changed: l.with(func(p *retry.Policy) { p.Base, p.Cap = base, most }),
		}
	}
}

func (l *linter) unreachableAttempts() Finding {
	can, usually, late := l.reach()
	if l.attempts == retry.Unlimited || can == 1 || usually == 1 && can >= l.attempts {
		return Finding{}
	}
	if usually >= l.attempts {
		return l.unreachableInAHang()
	}
	bound, name := l.bound()
	do := "can"
	if can > usually {
		do = "usually"
	}
	left := usually
	if usually == 1 { // noRetryCanStart speaks of the second
		left = can
	}
	return Finding{
		Level: oneMore(Note, can < l.attempts),
		Text: fmt.Sprintf("Only %d of %d attempts %s start: attempt %d would come %s after the first one began, too late for the %s of %s.",
			usually, l.attempts, do, usually+1, roughly(late), name, plainly(bound)),
		Change:  fmt.Sprintf("Set MaxAttempts to %d, or make the waits shorter.", left),
		changed: l.with(func(p *retry.Policy) { p.MaxAttempts = left }),
	}
}

// unreachableInAHang finds attempts that cannot start if those before them hang until AttemptTimeout, although all can
// if attempts are as short as usual.
func (l *linter) unreachableInAHang() Finding {
	bound, name := l.bound()
	timeout := l.p.AttemptTimeout
	if bound == 0 || timeout == 0 || !l.retries() || l.p.Wait != nil {
		return Finding{}
	}
	can, late := l.startable(0, timeout)
	if can >= l.attempts {
		return Finding{}
	}
	f := Finding{
		Level: Note,
		Text: fmt.Sprintf("If attempts hang until the AttemptTimeout of %s, only %d of %d can start: attempt %d would come %s after the first one began, too late for the %s of %s.",
			plainly(timeout), can, l.attempts, can+1, roughly(late), name, plainly(bound)),
	}
	_, waits := l.startable(0, 0) // of the last attempt, if the others take no time
	shorter := cutOff((bound-waits)/time.Duration(l.attempts), 2)
	if shorter < time.Millisecond || l.s.Duration != (Dist{}) && shorter < l.enough() {
		f.Change = fmt.Sprintf("Set MaxAttempts to %d.", can)
		f.changed = l.with(func(p *retry.Policy) { p.MaxAttempts = can })
		return f
	}
	f.Change = "Set AttemptTimeout to " + plainly(shorter) + "."
	f.changed = l.with(func(p *retry.Policy) { p.AttemptTimeout = shorter })
	return f
}

// rare is the share of healthy attempts that a timeout may cut off.
const rare = 0.05

// cutOff returns the share of healthy attempts that take longer than timeout, or 0 if it is not known.
func (l *linter) cutOff(timeout time.Duration) float64 {
	if l.s.Duration == (Dist{}) {
		return 0
	}
	return 1 - l.s.Duration.CDF(timeout)
}

// enough returns twice the time within which 999 of 1,000 healthy attempts end, so that attempts that wait in a queue for
// as long as they are worked on are not cut off.
func (l *linter) enough() time.Duration {
	most := l.s.Duration.At(0.999)
	return max(raised(saturatingAdd(saturatingAdd(most, most), 1)), time.Microsecond)
}

func (l *linter) timeoutBelowDuration() Finding {
	timeout := l.p.AttemptTimeout
	share := l.cutOff(timeout)
	if timeout == 0 || share <= rare {
		return Finding{}
	}
	return Finding{
		Level: oneMore(Warning, share > 0.5),
		Text: fmt.Sprintf("An AttemptTimeout of %s cuts off %s %% of the attempts of a healthy backend, whose duration is %v.",
			plainly(timeout), figure(share*100), l.s.Duration),
		Change:  "Set AttemptTimeout to " + plainly(l.enough()) + ".",
		changed: l.with(func(p *retry.Policy) { p.AttemptTimeout = l.enough() }),
	}
}

func (l *linter) noAttemptTimeout() Finding {
	if l.p.AttemptTimeout > 0 {
		return Finding{}
	}
	f := Finding{Level: Note, Text: "Nothing ends an attempt that hangs."}
	value := 30 * time.Second
	if l.s.Inline {
		f.Level, value = Warning, 2*time.Second
	}
	if l.s.Deadline > 0 {
		f.Level, f.Text = Note, "An attempt that hangs uses up the deadline of "+plainly(l.s.Deadline)+"."
	}
	if bound, _ := l.bound(); l.s.Duration != (Dist{}) {
		value = l.enough()
	} else if bound > 0 {
		value = max(min(value, cutOff(bound/4, 2)), time.Microsecond)
	}
	f.Change = "Set AttemptTimeout to " + plainly(value) + "."
	f.changed = l.with(func(p *retry.Policy) { p.AttemptTimeout = value })
	return f
}

func (l *linter) unlimitedWithoutTTL() Finding {
	if l.attempts != retry.Unlimited || l.p.TTL > 0 || l.s.Deadline > 0 {
		return Finding{}
	}
	ttl := 24 * time.Hour
	if l.s.Inline {
		ttl = patience
	}
	return Finding{
		Level:   oneMore(Warning, l.s.Inline),
		Text:    "Attempts are unlimited and TTL is not set: a run that keeps failing ends only when its caller cancels it.",
		Change:  "Set TTL to " + plainly(ttl) + ".",
		changed: l.with(func(p *retry.Policy) { p.TTL = ttl }),
	}
}

func (l *linter) inlineWaitTooLong() Finding {
	bound, _ := l.bound()
	wait := min(l.waiting, cmp.Or(bound, maxDuration))
	if !l.s.Inline || !l.retries() || wait <= patience {
		return Finding{}
	}
	each := time.Duration(0)
	if l.attempts != retry.Unlimited {
		each = patience / time.Duration(l.waits())
	}
	much := "up to " + roughly(wait)
	if wait == maxDuration {
		much = "without end"
	}
	f := l.shorter(each, Finding{
		Change: "Set TTL to " + plainly(patience), changed: l.with(func(p *retry.Policy) { p.TTL = patience }),
	})
	f.Change += "."
	f.Level = oneMore(Warning, wait > hangUp)
	f.Text = fmt.Sprintf("A caller waits %s between the attempts of one call; users give up after 10s, proxies after 60s.", much)
	return f
}

func (l *linter) longHintInline() Finding {
	bound, _ := l.bound()
	wait := min(l.inForce.MaxHint, cmp.Or(bound, maxDuration))
	if !l.s.Inline || !l.retries() || wait <= patience {
		return Finding{}
	}
	return Finding{
		Level:  oneMore(Note, wait > hangUp),
		Text:   fmt.Sprintf("A server's hint can make a caller wait up to %s; users give up after 10s, proxies after 60s.", plainly(wait)),
		Change: "Set MaxHint to " + plainly(patience) + ".",
	}
}
