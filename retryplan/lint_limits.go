package retryplan

import (
	"fmt"
	"strings"
	"time"

	"github.com/retrygo/retry"
)

// The rules about what ends a run: attempts, TTL, deadline, timeouts, hints.

func (l *linter) unreachableAttempts() Finding {
	can, late := l.startable(0, l.fastest())
	if l.attempts == retry.Unlimited || can >= l.attempts || l.earlyDeadline() {
		return Finding{}
	}
	bound, name := l.bound()
	f := Finding{Level: Warning, Figures: map[string]float64{
		"attempts": float64(l.attempts), "can_start": float64(can), "earliest": late.Seconds(), name2key(name): bound.Seconds(),
	}}
	if can == 1 {
		f.Level = Severe
	}
	f.Text = fmt.Sprintf("Only %d of %d attempts can start: the %s would start %s after the first one at the earliest, too late for the %s of %s.",
		can, l.attempts, ordinal(can+1), past(late, bound), name, plainly(bound))
	f.Change = fmt.Sprintf("Set MaxAttempts to %d, or make the waits shorter.", can)
	if can == 1 {
		f.Change = "Set MaxAttempts to 1, or make the waits shorter."
		if ttl, ok := l.longEnough(0, l.fastest()); ok {
			f.Change = fmt.Sprintf("Set TTL to %s, or make the waits shorter.", plainly(ttl))
		}
	}
	return f
}

// longEnough returns the TTL that lets every attempt start, and whether there is one.
func (l *linter) longEnough(u float64, spent time.Duration) (time.Duration, bool) {
	ttl, ok := l.lastStart(u, spent)
	if !ok || ttl <= l.p.TTL || l.p.TTL == 0 {
		return 0, false
	}
	longer := *l
	longer.p.TTL = ttl
	n, _ := longer.startable(u, spent)
	return raised(ttl), n == l.attempts
}

func (l *linter) unlikelyAttempts() Finding {
	can, _ := l.startable(0, l.fastest())
	likely, late := l.startable(0.5, l.usual())
	if l.attempts == retry.Unlimited || likely >= can || l.set.Wait != nil {
		return Finding{}
	}
	bound, name := l.bound()
	f := Finding{Level: Note, Figures: map[string]float64{
		"attempts": float64(l.attempts), "can_start": float64(can), "likely_start": float64(likely), name2key(name): bound.Seconds(),
	}}
	f.Text = fmt.Sprintf("%d of %d attempts can start, but only %d where waits are of mean length: the %s would then start %s after the first one, too late for the %s of %s.",
		can, l.attempts, likely, ordinal(likely+1), past(late, bound), name, plainly(bound))
	f.Change = fmt.Sprintf("Set MaxAttempts to %d, or make the waits shorter.", likely)
	if likely == 1 {
		if ttl, ok := l.longEnough(0.5, l.usual()); ok {
			f.Change = fmt.Sprintf("Set TTL to %s, or make the waits shorter.", plainly(ttl))
		}
	}
	return f
}

// earlyDeadline reports whether the caller's deadline alone forbids the second attempt.
func (l *linter) earlyDeadline() bool {
	if !l.retries || l.s.Deadline == 0 {
		return false
	}
	free := *l
	free.p.TTL = 0
	n, _ := free.startable(0, l.fastest())
	return n == 1
}

func (l *linter) deadlineBeforeFirstRetry() Finding {
	if !l.earlyDeadline() {
		return Finding{}
	}
	lo, _ := l.p.Bounds(1)
	f := Finding{Level: Severe, Figures: map[string]float64{"deadline": l.s.Deadline.Seconds(), "wait": lo.Seconds()}}
	f.Text = fmt.Sprintf("The first retry comes %s after the first attempt at the earliest, and the deadline is %s: no retry can start.",
		past(sum(lo, l.fastest()), l.s.Deadline), plainly(l.s.Deadline))
	switch room := rounded(max(l.s.Deadline-l.fastest(), 0) / 8); { // three doublings fit
	case room == 0:
		f.Change = "Set MaxAttempts to 1, since no wait is short enough."
	case l.mode == retry.List:
		f.Change = fmt.Sprintf("Set Cap to %s.", plainly(room))
	default:
		f.Change = fmt.Sprintf("Set Base to %s.", plainly(room))
	}
	return f
}

func (l *linter) timeoutEatsTTL() Finding {
	timeout := l.p.AttemptTimeout
	bound, name := l.bound()
	if !l.retries || timeout == 0 || bound == 0 {
		return Finding{}
	}
	const few = 2
	hung, _ := l.startable(0.5, timeout)
	well, _ := l.startable(0.5, l.usual())
	if hung > few || hung >= well {
		return Finding{}
	}
	// What is shorter leaves more room; in the end it is no longer than what an attempt takes.
	shorter := *l
	for shorter.p.AttemptTimeout = rounded(timeout / 2); ; shorter.p.AttemptTimeout = rounded(shorter.p.AttemptTimeout / 2) {
		if shorter.p.AttemptTimeout == 0 {
			return Finding{} // the waits leave no room, and not the timeout
		}
		if shorter.timeoutLeavesRoom(few) {
			break
		}
	}
	f := Finding{Level: Note, Figures: map[string]float64{
		"attempt_timeout": timeout.Seconds(), name2key(name): bound.Seconds(), "start_if_hung": float64(hung),
	}}
	room := "one more"
	if hung == 1 {
		f.Level, room = Warning, "no other"
	}
	f.Text = fmt.Sprintf("An AttemptTimeout of %s within a %s of %s leaves room for %s once an attempt has hung, where %s could start otherwise.",
		plainly(timeout), name, plainly(bound), room, attemptsText(well))
	if timeout > bound && name == "TTL" {
		longest := sum(bound, timeout)
		f.Figures["longest_run"] = longest.Seconds()
		f.Text = fmt.Sprintf("An AttemptTimeout of %s is above the TTL of %s, which bounds starts only: once an attempt has hung no other follows, where %s could start otherwise, and a run can take %s.",
			plainly(timeout), plainly(bound), attemptsText(well), plainly(longest))
	}
	f.Change = fmt.Sprintf("Set AttemptTimeout to %s.", plainly(shorter.p.AttemptTimeout))
	return f
}

// timeoutLeavesRoom reports whether more than few attempts can start if all hang, or as many as otherwise.
func (l *linter) timeoutLeavesRoom(few int) bool {
	hung, _ := l.startable(0.5, l.p.AttemptTimeout)
	well, _ := l.startable(0.5, l.usual())
	return hung > few || hung >= well
}

func attemptsText(n int) string {
	if n >= lintHorizon {
		return "10,000 attempts and more"
	}
	return count(n, "attempt")
}

func (l *linter) timeoutBelowDuration() Finding {
	const rare, half = 0.05, 0.5
	timeout := l.p.AttemptTimeout
	if timeout == 0 || l.s.Duration == (Dist{}) {
		return Finding{}
	}
	share := 1 - l.s.Duration.CDF(timeout)
	if share <= rare {
		return Finding{}
	}
	f := Finding{Level: Warning, Figures: map[string]float64{"attempt_timeout": timeout.Seconds(), "cut_off": share}}
	if share > half {
		f.Level = Severe
	}
	f.Text = fmt.Sprintf("An AttemptTimeout of %s cuts off %s %% of the attempts of a healthy backend, whose duration is %s.",
		plainly(timeout), figure(share*100), worded(l.s.Duration.String()))
	longer := raised(l.s.Duration.At(0.999))
	f.Change = fmt.Sprintf("Set AttemptTimeout to %s.", plainly(longer))
	if l.p.TTL > 0 && l.p.TTL < longer {
		f.Change = fmt.Sprintf("Set AttemptTimeout to %s and TTL to %s.", plainly(longer), plainly(raised(product(4, longer))))
	}
	return f
}

func (l *linter) noAttemptTimeout() Finding {
	if l.p.AttemptTimeout > 0 {
		return Finding{}
	}
	end := "."
	if l.retries {
		end = ", and no retry ever follows it."
	}
	f := Finding{Level: Note, Text: "An attempt that hangs is waited for without end" + end}
	value := 30 * time.Second
	if l.s.Inline {
		f.Level, value = Warning, 2*time.Second
	}
	if l.s.Deadline > 0 {
		f.Level = Note
		f.Text = fmt.Sprintf("An attempt that hangs uses up all of the deadline of %s", plainly(l.s.Deadline)) + end
	}
	if usual := l.s.Duration.At(0.999); usual > 0 {
		value = raised(usual)
	}
	if bound, _ := l.bound(); bound > 0 {
		value = max(min(value, rounded(bound/4)), 1)
	}
	f.Change = fmt.Sprintf("Set AttemptTimeout to %s.", plainly(value))
	return f
}

func (l *linter) unlimitedWithoutTTL() Finding {
	if l.attempts != retry.Unlimited || l.p.TTL > 0 || l.s.Deadline > 0 {
		return Finding{}
	}
	f := Finding{Level: Warning, Text: "Attempts are unlimited and TTL is not set: a run that keeps failing ends only when its caller is cancelled."}
	ttl := 24 * time.Hour
	if l.s.Inline {
		f.Level, ttl = Severe, patience
	}
	f.Change = fmt.Sprintf("Set TTL to %s.", plainly(max(ttl, l.p.AttemptTimeout)))
	return f
}

func (l *linter) inlineWaitTooLong() Finding {
	bound, name := l.bound()
	wait := l.hi
	if bound > 0 {
		wait = min(wait, bound)
	}
	if !l.s.Inline || !l.retries || wait <= patience {
		return Finding{}
	}
	f := Finding{Level: Warning, Figures: map[string]float64{"wait": wait.Seconds(), "patience": patience.Seconds()}}
	if wait > hangUp {
		f.Level = Severe
	}
	much := "up to " + roughly(wait)
	switch {
	case bound > 0 && wait == bound:
		much += ", all of the " + name + ","
	case l.attempts == retry.Unlimited:
		much = "without end"
	}
	f.Text = fmt.Sprintf("A caller waits %s between the attempts of one call, and users give up after 10s, proxies after 60s.", much)
	f.Change = l.quicker()
	return f
}

// quicker returns the change that makes all waits together no longer than patience.
func (l *linter) quicker() string {
	each := time.Duration(0)
	if l.attempts != retry.Unlimited {
		each = rounded(patience / time.Duration(l.waits()))
	}
	switch base := rounded(each / 8); { // three doublings up to the cap
	case base < time.Millisecond: // too many attempts for any wait
		if l.p.AttemptTimeout > patience {
			return fmt.Sprintf("Set TTL to %s and AttemptTimeout to %s.", plainly(patience), plainly(patience/4))
		}
		return fmt.Sprintf("Set TTL to %s.", plainly(patience))
	case l.mode == retry.List:
		return fmt.Sprintf("Set Cap to %s.", plainly(each))
	default:
		return fmt.Sprintf("Set Base to %s and Cap to %s.", plainly(base), plainly(each))
	}
}

func (l *linter) hintBeyondTTL() Finding {
	bound, name := l.bound()
	if !l.retries || bound == 0 || l.p.MaxHint <= bound {
		return Finding{}
	}
	return Finding{
		Level: Note,
		Text: fmt.Sprintf("MaxHint is %s, but a hint above the %s of %s ends the run anyway.",
			plainly(l.p.MaxHint), name, plainly(bound)),
		Change:  fmt.Sprintf("Set MaxHint to %s.", plainly(bound)),
		Figures: map[string]float64{"max_hint": l.p.MaxHint.Seconds(), name2key(name): bound.Seconds()},
	}
}

func (l *linter) longHintInline() Finding {
	wait := l.inForce.MaxHint
	if bound, _ := l.bound(); bound > 0 {
		wait = min(wait, bound)
	}
	if !l.s.Inline || !l.retries || wait <= patience {
		return Finding{}
	}
	f := Finding{Level: Note, Figures: map[string]float64{"wait": wait.Seconds(), "patience": patience.Seconds()}}
	if wait > hangUp {
		f.Level = Warning
	}
	f.Text = fmt.Sprintf("A server's hint can make a caller wait for up to %s, and users give up after 10s, proxies after 60s.", plainly(wait))
	f.Change = fmt.Sprintf("Set MaxHint to %s.", plainly(patience))
	return f
}

func (l *linter) disabled() Finding {
	unread := l.unread()
	if !l.p.Disabled || len(unread) == 0 {
		return Finding{}
	}
	return Finding{
		Level:   Note,
		Text:    fmt.Sprintf("Disabled allows one attempt, and nothing reads %s.", strings.Join(unread, ", ")),
		Change:  "Set Disabled to false, or take the other fields away.",
		Figures: map[string]float64{"unread": float64(len(unread))},
	}
}

func (l *linter) singleAttempt() Finding {
	unread := l.unread()
	if l.p.Disabled || l.set.MaxAttempts != 1 || len(unread) <= 1 { // MaxAttempts itself
		return Finding{}
	}
	return Finding{
		Level:   Note,
		Text:    fmt.Sprintf("MaxAttempts counts the first attempt, so that 1 is no retry, and nothing reads %s.", strings.Join(unread[1:], ", ")),
		Change:  "Set MaxAttempts to 2 for one retry, or take the other fields away.",
		Figures: map[string]float64{"unread": float64(len(unread) - 1)},
	}
}

// unread lists the fields that are set and matter to retries only. Budget is not among them, since successes fund it, nor
// Classify, whose answer Observe sees; and a Gate's wait is bounded by TTL.
func (l *linter) unread() (names []string) {
	p := &l.set
	for _, field := range []struct {
		name string
		set  bool
	}{
		{"MaxAttempts", p.MaxAttempts != 0}, {"Mode", p.Mode != 0}, {"Base", p.Base != 0}, {"Factor", p.Factor != 0},
		{"Cap", p.Cap != 0}, {"Delays", len(p.Delays) > 0}, {"Jitter", p.Jitter != 0}, {"TTL", p.TTL != 0 && p.Gate == nil},
		{"MaxHint", p.MaxHint != 0}, {"ResetAfter", p.ResetAfter != 0}, {"Wait", p.Wait != nil}, {"Pay", p.Pay != nil},
	} {
		if field.set {
			names = append(names, field.name)
		}
	}
	return names
}

// name2key returns the key of a figure for what bound names.
func name2key(name string) string { return strings.ToLower(name) }
