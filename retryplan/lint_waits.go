package retryplan

import (
	"fmt"
	"math"
	"slices"
	"strings"
	"time"

	"github.com/retrygo/retry"
)

// The rules about single waits: their jitter, their cap, their list.

func (l *linter) noJitter() Finding {
	first, lo, hi := l.firstWait()
	spreads := l.p.Jitter != retry.NoJitter
	if l.p.Jitter == retry.DecorrelatedJitter {
		spreads = l.p.Delay(1) < l.p.Delay(math.MaxInt32) // Base at the cap leaves no window
	}
	if spreads || first == 0 || l.s.Clients == 1 {
		return Finding{}
	}
	figures := map[string]float64{"wait": lo.Seconds()}
	who := "all clients that failed together return in the same instant"
	if l.s.Clients > 0 {
		who = fmt.Sprintf("all %d clients return in the same instant if they failed together", l.s.Clients)
		figures["clients"] = float64(l.s.Clients)
	}
	change := "Set Jitter to retry.FullJitter."
	if l.mode == retry.List {
		change = "Set Jitter to retry.RatioJitter and JitterRatio to 0.5, which keeps the mean of each wait that Cap does not clip."
	}
	return Finding{
		Level: oneMore(Warning, l.s.Clients >= herd),
		Text: fmt.Sprintf("The waits have no jitter: %s, %s after their %s attempt, where full jitter would spread them evenly.",
			who, plainly(hi), ordinal(first)),
		Change:  change,
		Figures: figures,
	}
}

// firstWait returns the first attempt with a wait above 0 and that wait's bounds, or 0 if there is none.
func (l *linter) firstWait() (attempt int, lo, hi time.Duration) {
	for n := 1; n <= l.waits() && n <= max(len(l.p.Delays), 1); n++ {
		if lo, hi = l.p.Bounds(n); hi > 0 {
			return n, lo, hi
		}
	}
	return 0, 0, 0
}

func (l *linter) narrowJitter() Finding {
	// Half of the wait to each side is as good as full jitter in the herd (8 rejections, full 18); 0.1 to 0.2 of it
	// left 786 and 1,483.
	const enough = 0.5
	first, lo, hi := l.firstWait()
	ratio := l.inForce.JitterRatio
	if first == 0 || l.p.Jitter != retry.RatioJitter || ratio >= enough || l.s.Clients == 1 {
		return Finding{}
	}
	figures, rate := map[string]float64{"ratio": ratio, "window": (hi - lo).Seconds()}, ""
	if l.s.Clients > 0 {
		figures["clients"] = float64(l.s.Clients)
		rate = fmt.Sprintf(" of %d clients", l.s.Clients)
	}
	return Finding{
		Level: oneMore(Note, l.s.Clients >= herd),
		Text: fmt.Sprintf("A JitterRatio of %v returns a herd%s within %s of each other after the %s attempt; in a simulation of 1,000 clients whose server is away for 10s and then takes 200 attempts a second, waits spread over a fifth of their length had 786 attempts rejected after its return, and full jitter 18.",
			ratio, rate, roughly(hi-lo), ordinal(first)),
		Change:  "Set JitterRatio to 0.5.",
		Figures: figures,
	}
}

func (l *linter) capNeverReached() Finding {
	// A cap within an order of magnitude is a guard for a later change; beyond that its author has another schedule in
	// mind.
	if !l.retries || l.p.Cap == 0 || l.longest > l.p.Cap/10 {
		return Finding{}
	}
	return Finding{
		Level:   Note,
		Text:    fmt.Sprintf("Cap is %s, but no wait is longer than %s, so that it never acts.", plainly(l.p.Cap), roughly(l.longest)),
		Change:  fmt.Sprintf("Set Cap to %s, or make the waits grow until they reach it.", plainly(raised(l.longest))),
		Figures: map[string]float64{"cap": l.p.Cap.Seconds(), "longest_wait": l.longest.Seconds()},
	}
}

func (l *linter) capStopsGrowth() Finding {
	const (
		ever = math.MaxInt32
		room = 8 // three doublings
	)
	first := l.p.Delay(1)
	grows := l.mode == retry.Linear || l.mode == retry.Exponential && l.p.Factor != 1
	if l.waits() < 2 || !grows || l.p.Jitter == retry.DecorrelatedJitter || l.p.Delay(ever) != first {
		return Finding{}
	}
	var text, change string
	switch {
	case l.p.Cap == first && first >= room*time.Microsecond:
		text = fmt.Sprintf("Every wait is Cap, %s, from the first one on, so that nothing grows.", plainly(first))
		change = "Base to " + plainly(rounded(first/room))
	case l.p.Cap == 0 && first == l.inForce.Cap && first < math.MaxInt64:
		text = fmt.Sprintf("Every wait is Base, %s, since a Base of 1h or more raises the default Cap to itself only.", plainly(first))
		change = "Cap to " + plainly(raised(product(room, first)))
	default:
		return Finding{}
	}
	return Finding{
		Level: Note, Text: text, Change: "Set " + change + ", or Mode to retry.Fixed if that is what is meant.",
		Figures: map[string]float64{"wait": first.Seconds()},
	}
}

func (l *linter) decorrelatedWithoutCap() Finding {
	const (
		steps = 5  // 3^5 = 243
		most  = 32 // what a factor of 2 comes to in as many
	)
	base := l.p.Delay(1)
	if l.p.Jitter != retry.DecorrelatedJitter || l.p.Cap > 0 || l.waits() < steps || l.longest/base < 243 {
		return Finding{}
	}
	return Finding{
		Level: Note,
		Text: fmt.Sprintf("Decorrelated jitter can triple each wait, which comes to %s from a Base of %s, while the means grow by half only and Cap is not set.",
			roughly(l.longest), plainly(base)),
		Change:  fmt.Sprintf("Set Cap to %s, or to the longest wait that is of use.", plainly(raised(product(most, base)))),
		Figures: map[string]float64{"base": base.Seconds(), "longest_wait": l.longest.Seconds()},
	}
}

func (l *linter) listShorter() Finding {
	// A list for unlimited attempts is meant to repeat, and a single delay is a fixed one.
	repeats := l.waits() - len(l.p.Delays)
	if !l.retries || l.attempts == retry.Unlimited || len(l.p.Delays) < 2 || repeats <= 0 {
		return Finding{}
	}
	last := l.p.Delay(len(l.p.Delays))
	const few = 20 // that anybody would list
	more := count(repeats, "time") + " more"
	change := fmt.Sprintf("Set MaxAttempts to %d, or list %s.", len(l.p.Delays)+1, count(repeats, "more delay"))
	if repeats > few {
		more = "for all of the others"
		change = fmt.Sprintf("Set MaxAttempts to %d, or to retry.Unlimited if the last wait is meant to repeat.", len(l.p.Delays)+1)
	}
	return Finding{
		Level: Note,
		Text: fmt.Sprintf("Delays has %s for the %d that %d attempts need, so that the last one, %s, is used %s.",
			count(len(l.p.Delays), "wait"), l.waits(), l.attempts, plainly(last), more),
		Change:  change,
		Figures: map[string]float64{"listed": float64(len(l.p.Delays)), "needed": float64(l.waits()), "repeats": float64(repeats)},
	}
}

func (l *linter) listLonger() Finding {
	unused := len(l.p.Delays) - l.waits()
	if !l.retries || unused <= 0 {
		return Finding{}
	}
	return Finding{
		Level: Warning,
		Text: fmt.Sprintf("Delays has %s, but %d attempts have only %d between them, so that the list's end, %d of them, is never used.",
			count(len(l.p.Delays), "wait"), l.attempts, l.waits(), unused),
		Change:  fmt.Sprintf("Set Delays to %s, or MaxAttempts to %d, which counts the first attempt too.", listed(l.p.Delays[:l.waits()]), len(l.p.Delays)+1),
		Figures: map[string]float64{"listed": float64(len(l.p.Delays)), "used": float64(l.waits()), "unused": float64(unused)},
	}
}

func (l *linter) zeroDelay() Finding {
	delays := slices.Clone(l.p.Delays)
	used, zeros := min(len(delays), l.waits()), 0
	// If all are 0: 100 ms, of the order of AWS's bases, 25 ms for DynamoDB and 50 ms otherwise.
	least := 100 * time.Millisecond
	if i := slices.IndexFunc(delays, func(d time.Duration) bool { return d > 0 }); i >= 0 {
		least = delays[i]
	}
	for n := range used {
		if delays[n] == 0 {
			delays[n] = least
			zeros++
		}
	}
	if zeros == 0 {
		return Finding{}
	}
	f := Finding{
		Level:   Warning,
		Change:  "Set Delays to " + listed(delays) + ".",
		Figures: map[string]float64{"zeros": float64(zeros), "waits": float64(used)},
	}
	which, follow := fmt.Sprintf("%d of the %d listed delays are 0", zeros, used), "these retries follow"
	switch {
	case used == 1:
		which, follow = "The listed delay is 0", "retries follow"
	case zeros == 1:
		which, follow = fmt.Sprintf("1 of the %d listed delays is 0", used), "that retry follows"
	case zeros == used:
		which = fmt.Sprintf("All %d listed delays are 0", used)
	}
	f.Text = which + ": " + follow + " at once, and those of all clients together."
	switch {
	case l.attempts == retry.Unlimited && l.p.Delays[used-1] == 0:
		f.Level = Severe
		if used > 1 {
			which = fmt.Sprintf("The last of %d listed delays is 0", used)
		}
		f.Text = which + " and repeats without limit: a busy loop against a backend that fails at once."
	case zeros == 1 && used > 1 && l.p.Delays[0] == 0:
		f.Level = Note
		f.Text = "The first retry follows at once, at the moment when what made the first attempt fail is most likely still there."
	}
	return f
}

func (l *linter) missingUnit() Finding {
	fields := func(p *retry.Policy) []*time.Duration {
		all := []*time.Duration{&p.Base, &p.Cap, &p.AttemptTimeout, &p.TTL, &p.MaxHint, &p.ResetAfter}
		for i := range p.Delays {
			all = append(all, &p.Delays[i])
		}
		return all
	}
	q := l.set
	q.Delays = slices.Clone(q.Delays)
	was, now := fields(&l.set), fields(&q)
	// Seconds are what was most likely meant; 1µs for each is always valid, since all others are as long.
	for _, unit := range []time.Duration{time.Second, time.Millisecond, 0} {
		for i, d := range was {
			if tiny(*d) {
				*now[i] = max(*d*unit, time.Microsecond)
			}
		}
		if q.Validate() == nil {
			break
		}
	}
	var names, changes []string
	for i, name := range []string{"Base", "Cap", "AttemptTimeout", "TTL", "MaxHint", "ResetAfter"} {
		if tiny(*was[i]) {
			names, changes = append(names, name+" "+plainly(*was[i])), append(changes, name+" to "+plainly(*now[i]))
		}
	}
	if slices.ContainsFunc(l.set.Delays, tiny) {
		names, changes = append(names, "Delays "+listed(l.set.Delays)), append(changes, "Delays to "+listed(q.Delays))
	}
	if len(names) == 0 {
		return Finding{}
	}
	return Finding{
		Level:   Severe,
		Text:    fmt.Sprintf("%s: a duration below 1µs is a number whose unit was forgotten, and counts nanoseconds.", strings.Join(names, ", ")),
		Change:  "Set " + strings.Join(changes, " and ") + ".",
		Figures: map[string]float64{"fields": float64(len(names))},
	}
}

func tiny(d time.Duration) bool { return d > 0 && d < time.Microsecond }
