package retryplan

import (
	"cmp"
	"fmt"
	"math"
	"strconv"
	"strings"
	"time"

	"github.com/retrygo/retry"
)

// The rules about what ends a run: attempts, TTL, deadline, timeouts, hints.

func (l *linter) noRetryCanStart() Finding {
	if !l.retries || min(l.can, l.likely) > 1 || l.can > 1 && l.set.Wait != nil {
		return Finding{}
	}
	bound, name := l.bound()
	level, when, late := Severe, "at the earliest", l.late
	if l.can > 1 {
		level, when, late = Note, "if it waits for the mean", l.lateUsually
	}
	change := l.sooner(bound - l.usual())
	if name == "TTL" && late < math.MaxInt64 {
		change += ", or TTL to " + plainly(raised(late))
	}
	return Finding{
		Level: level,
		Text: fmt.Sprintf("The first retry comes %s after the first attempt %s, too late for the %s of %s.",
			past(late, bound), when, name, plainly(bound)),
		Change:  change + ".",
		Figures: map[string]float64{"first_retry": late.Seconds(), name2key(name): bound.Seconds()},
	}
}

// sooner returns the change that makes the first wait so short that several fit into room.
func (l *linter) sooner(room time.Duration) string {
	switch first := rounded(room / 8); { // three doublings
	case first < time.Microsecond:
		return "Set MaxAttempts to 1"
	case len(l.set.Delays) > 0:
		return "Set Cap to " + plainly(first)
	default:
		return "Set Base to " + plainly(first)
	}
}

func (l *linter) unreachableAttempts() Finding {
	likely := l.likely
	if l.set.Wait != nil {
		likely = l.can
	}
	if l.attempts == retry.Unlimited || min(l.can, likely) == 1 || likely >= l.attempts {
		return Finding{}
	}
	bound, name := l.bound()
	f := Finding{
		Level: Note,
		Text: fmt.Sprintf("%d attempts can start, but only %d if waits are of mean length: the %s would then start %s after the first one, too late for the %s of %s.",
			l.can, likely, ordinal(likely+1), past(l.lateUsually, bound), name, plainly(bound)),
		Change: fmt.Sprintf("Set MaxAttempts to %d, or make the waits shorter.", likely),
		Figures: map[string]float64{
			"attempts": float64(l.attempts), "can_start": float64(l.can), "likely_start": float64(likely), name2key(name): bound.Seconds(),
		},
	}
	if l.can < l.attempts {
		f.Level = Warning
		f.Figures["earliest"] = l.late.Seconds()
		f.Text = fmt.Sprintf("Only %d of %d attempts can start: the %s would start %s after the first one at the earliest, too late for the %s of %s.",
			l.can, l.attempts, ordinal(l.can+1), past(l.late, bound), name, plainly(bound))
	}
	return f
}

func (l *linter) timeoutEatsTTL() Finding {
	timeout := l.p.AttemptTimeout
	bound, name := l.bound()
	if !l.retries || timeout == 0 || bound == 0 {
		return Finding{}
	}
	const all = 4 // attempts in a row that hang; of more, nothing is to be expected
	hung, _ := l.startable(0.5, timeout)
	well, _ := l.startable(0.5, l.usual())
	well = min(well, all)
	if hung >= well {
		return Finding{}
	}
	// The last of them starts after one timeout less and the waits between them.
	free := linter{p: l.p, attempts: well}
	free.p.TTL = 0
	_, waiting := free.startable(0.5, 0)
	shorter := rounded((bound - waiting - 1) / time.Duration(well-1))
	if shorter < time.Microsecond || l.cutOff(shorter) > rare {
		return Finding{} // it is the waits or the work that leave no room
	}
	f := Finding{Level: Note, Figures: map[string]float64{
		"attempt_timeout": timeout.Seconds(), name2key(name): bound.Seconds(), "start_if_hung": float64(hung),
	}}
	if hung == 1 {
		f.Level = Warning
	}
	f.Text = fmt.Sprintf("An AttemptTimeout of %s within a %s of %s leaves room for %s if all hang; otherwise %s could start.",
		plainly(timeout), name, plainly(bound), count(hung, "attempt"), strconv.Itoa(well))
	if timeout > bound && name == "TTL" {
		longest := saturatingAdd(bound, timeout)
		f.Figures["longest_run"] = longest.Seconds()
		f.Text = fmt.Sprintf("An AttemptTimeout of %s is above the TTL of %s, which bounds starts only: no attempt follows one that has hung, although %s could start, and a run can take %s.",
			plainly(timeout), plainly(bound), count(well, "attempt"), plainly(longest))
	}
	f.Change = fmt.Sprintf("Set AttemptTimeout to %s.", plainly(shorter))
	return f
}

// rare is how many healthy attempts a timeout may cut off.
const rare = 0.05

// cutOff returns the share of healthy attempts that take longer than timeout, 0 if it is not known.
func (l *linter) cutOff(timeout time.Duration) float64 {
	if l.s.Duration == (Dist{}) {
		return 0
	}
	return 1 - l.s.Duration.CDF(timeout)
}

// enough returns the timeout that cuts off one healthy attempt of 1,000.
func (l *linter) enough() time.Duration {
	return max(raised(l.s.Duration.At(0.999)), time.Microsecond)
}

func (l *linter) timeoutBelowDuration() Finding {
	timeout := l.p.AttemptTimeout
	share := l.cutOff(timeout)
	if timeout == 0 || share <= rare {
		return Finding{}
	}
	return Finding{
		Level: oneMore(Warning, share > 0.5),
		Text: fmt.Sprintf("An AttemptTimeout of %s cuts off %s %% of the attempts of a healthy backend, whose duration is %s.",
			plainly(timeout), figure(share*100), worded(l.s.Duration.String())),
		Change:  "Set AttemptTimeout to " + plainly(l.enough()) + ".",
		Figures: map[string]float64{"attempt_timeout": timeout.Seconds(), "cut_off": share},
	}
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
	if bound, _ := l.bound(); l.s.Duration != (Dist{}) {
		value = l.enough()
	} else if bound > 0 {
		value = max(min(value, rounded(bound/4)), time.Microsecond)
	}
	f.Change = fmt.Sprintf("Set AttemptTimeout to %s.", plainly(value))
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
		Level:  oneMore(Warning, l.s.Inline),
		Text:   "Attempts are unlimited and TTL is not set: a run that keeps failing ends only when its caller is cancelled.",
		Change: "Set TTL to " + plainly(ttl) + ".",
	}
}

func (l *linter) inlineWaitTooLong() Finding {
	bound, name := l.bound()
	wait := min(l.hi, cmp.Or(bound, maxDuration))
	if !l.s.Inline || !l.retries || wait <= patience {
		return Finding{}
	}
	much := "up to " + roughly(wait)
	switch {
	case wait == bound:
		much += ", all of the " + name + ","
	case l.attempts == retry.Unlimited:
		much = "without end"
	}
	return Finding{
		Level:   oneMore(Warning, wait > hangUp),
		Text:    fmt.Sprintf("A caller waits %s between the attempts of one call, and users give up after 10s, proxies after 60s.", much),
		Change:  l.quicker(),
		Figures: map[string]float64{"wait": wait.Seconds(), "patience": patience.Seconds()},
	}
}

// quicker returns the change that makes all waits together no longer than patience.
func (l *linter) quicker() string {
	each := time.Duration(0)
	if l.attempts != retry.Unlimited {
		each = rounded(patience / time.Duration(l.waits()))
	}
	switch base := rounded(each / 8); { // three doublings up to the cap
	case base < time.Millisecond: // too many attempts for any wait
		return fmt.Sprintf("Set TTL to %s.", plainly(patience))
	case len(l.set.Delays) > 0:
		return fmt.Sprintf("Set Cap to %s.", plainly(each))
	default:
		return fmt.Sprintf("Set Base to %s and Cap to %s.", plainly(base), plainly(each))
	}
}

func (l *linter) hintBeyondTTL() Finding {
	bound, name := l.bound()
	if !l.retries || bound == 0 || l.p.MaxHint <= max(bound, time.Microsecond) {
		return Finding{}
	}
	return Finding{
		Level: Note,
		Text: fmt.Sprintf("MaxHint is %s, but a hint above the %s of %s ends the run anyway.",
			plainly(l.p.MaxHint), name, plainly(bound)),
		Change:  fmt.Sprintf("Set MaxHint to %s.", plainly(max(bound, time.Microsecond))),
		Figures: map[string]float64{"max_hint": l.p.MaxHint.Seconds(), name2key(name): bound.Seconds()},
	}
}

func (l *linter) longHintInline() Finding {
	bound, _ := l.bound()
	wait := min(l.inForce.MaxHint, cmp.Or(bound, maxDuration))
	if !l.s.Inline || !l.retries || wait <= patience {
		return Finding{}
	}
	return Finding{
		Level:   oneMore(Note, wait > hangUp),
		Text:    fmt.Sprintf("A server's hint can make a caller wait for up to %s, and users give up after 10s, proxies after 60s.", plainly(wait)),
		Change:  "Set MaxHint to " + plainly(patience) + ".",
		Figures: map[string]float64{"wait": wait.Seconds(), "patience": patience.Seconds()},
	}
}

// unreadFields is about the fields that matter to retries only, if there are none. Budget is not among them, since
// successes fund it, nor Classify, whose answer Observe sees; and a Gate's wait is bounded by TTL.
func (l *linter) unreadFields() Finding {
	if l.retries {
		return Finding{}
	}
	p := &l.set
	var names, changes []string
	for _, field := range []struct {
		name, unset string
		set         bool
	}{
		{"MaxAttempts", "0", p.Disabled && p.MaxAttempts != 0}, {"Mode", "0", p.Mode != 0}, {"Base", "0", p.Base != 0},
		{"Factor", "0", p.Factor != 0}, {"Cap", "0", p.Cap != 0}, {"Delays", "nil", len(p.Delays) > 0}, {"Jitter", "0", p.Jitter != 0},
		{"JitterRatio", "0", p.JitterRatio != 0}, {"TTL", "0", p.TTL != 0 && p.Gate == nil}, {"MaxHint", "0", p.MaxHint != 0},
		{"ResetAfter", "0", p.ResetAfter != 0}, {"Wait", "nil", p.Wait != nil}, {"Pay", "nil", p.Pay != nil},
	} {
		if field.set {
			names, changes = append(names, field.name), append(changes, field.name+" to "+field.unset)
		}
	}
	if len(names) == 0 {
		return Finding{}
	}
	text, change := "MaxAttempts counts the first attempt, so that 1 is no retry", ", or MaxAttempts to 2 if one retry is meant."
	if p.Disabled {
		text, change = "Disabled allows one attempt", ", or Disabled to false."
	}
	return Finding{
		Level:   Note,
		Text:    fmt.Sprintf("%s, and nothing reads %s.", text, strings.Join(names, ", ")),
		Change:  "Set " + strings.Join(changes, " and ") + change,
		Figures: map[string]float64{"unread": float64(len(names))},
	}
}

// name2key returns the key of a figure for what bound names.
func name2key(name string) string { return strings.ToLower(name) }
