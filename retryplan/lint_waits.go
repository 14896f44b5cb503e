package retryplan

import (
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/retrygo/retry"
)

// The rules about single waits, their jitter, their list and their unit.

// wideJitter is the JitterRatio that spreads as well as full jitter. Half of the wait to each side left 8 rejections in
// the herd, full jitter 18, a ratio of 0.2 left 786 and one of 0.1 left 1,483.
const wideJitter = 0.5

// slowWait is the default Base. A policy with such a first wait is likely for jobs, which seldom fail all at once.
const slowWait = 5 * time.Second

func (l *linter) noJitter() Finding {
	first, lo, hi := l.firstWait()
	narrow := l.p.Jitter == retry.RatioJitter && l.inForce.JitterRatio < wideJitter
	none := l.p.Jitter == retry.NoJitter || l.p.Jitter == retry.DecorrelatedJitter && lo == hi // Base is Cap
	if first == 0 || l.s.Clients == 1 || !narrow && !none {
		return Finding{}
	}
	clients := "all clients"
	if l.s.Clients > 0 {
		clients = fmt.Sprintf("all %d clients", l.s.Clients)
	}
	f := Finding{Level: Warning, Change: "Set Jitter to retry.FullJitter."}
	jitter, ratio := retry.FullJitter, l.given.JitterRatio
	what, when := "The waits have no jitter", "in the same instant"
	switch {
	case narrow:
		f.Level, f.Change = Note, "Set JitterRatio to 0.5."
		jitter, ratio = retry.RatioJitter, wideJitter
		what = fmt.Sprintf("A JitterRatio of %v spreads the waits little", l.inForce.JitterRatio)
		when = fmt.Sprintf("within %s of each other", roughly(hi-lo))
	case l.inForce.Mode == retry.List:
		f.Change = "Set Jitter to retry.RatioJitter and JitterRatio to 0.5, which keeps the mean of each wait that Cap does not clip."
		jitter, ratio = retry.RatioJitter, wideJitter
	}
	f.changed = l.with(func(p *retry.Policy) { p.Jitter, p.JitterRatio = jitter, ratio })
	if f.Level = oneMore(f.Level, l.s.Clients >= herd); l.s.Clients == 0 && !l.s.Inline && hi >= slowWait {
		f.Level = Note
	}
	f.Text = fmt.Sprintf("%s: %s that failed together return %s, %s after attempt %d; full jitter would spread them evenly.",
		what, clients, when, plainly(hi), first)
	return f
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

func (l *linter) listLonger() Finding {
	listed := len(l.p.Delays)
	if !l.retries() || listed <= l.waits() {
		return Finding{}
	}
	return Finding{
		Level: Warning,
		Text: fmt.Sprintf("Delays has %d waits, but %d attempts have only %d between them, so that the end of the list is never used.",
			listed, l.attempts, l.waits()),
		Change: fmt.Sprintf("Set Delays to Delays[:%d], or MaxAttempts to %d, which counts the first attempt too.", l.waits(), listed+1),
	}
}

func (l *linter) zeroDelay() Finding {
	used := min(len(l.p.Delays), l.waits())
	var changes []string
	// The order of AWS's bases: 25 ms for DynamoDB, 50 ms otherwise.
	for i, d := range l.p.Delays[:used] {
		if d == 0 {
			changes = append(changes, fmt.Sprintf("Delays[%d] to 100ms", i))
		}
	}
	if len(changes) == 0 {
		return Finding{}
	}
	changed := l.with(func(p *retry.Policy) {
		for i, d := range p.Delays[:used] {
			if d == 0 {
				p.Delays[i] = 100 * time.Millisecond
			}
		}
	})
	f := Finding{
		Level:  Warning,
		Text:   fmt.Sprintf("Of %d listed delays %d are 0: these retries follow at once, and those of all clients together.", used, len(changes)),
		Change: "Set " + strings.Join(changes, " and ") + ".", changed: changed,
	}
	switch {
	case l.attempts == retry.Unlimited && l.p.Delays[used-1] == 0:
		f.Level = Severe
		f.Text = "The last listed delay is 0 and repeats without limit: a busy loop against a backend that fails at once."
	case len(changes) == 1 && used > 1 && l.p.Delays[0] == 0:
		f.Level = Note
		f.Text = "The first retry follows at once, when the cause of the first failure is most likely still there."
	}
	return f
}

func (l *linter) missingUnit() Finding {
	p := l.given
	p.Delays = slices.Clone(p.Delays)
	type field struct {
		name  string
		value *time.Duration
	}
	fields := []field{
		{"Base", &p.Base}, {"Cap", &p.Cap}, {"AttemptTimeout", &p.AttemptTimeout}, {"TTL", &p.TTL}, {"MaxHint", &p.MaxHint},
		{"ResetAfter", &p.ResetAfter},
	}
	for i := range p.Delays {
		fields = append(fields, field{fmt.Sprintf("Delays[%d]", i), &p.Delays[i]})
	}
	var tiny []field
	var names, changes []string
	for _, f := range fields {
		if *f.value > 0 && *f.value < time.Microsecond {
			tiny, names = append(tiny, f), append(names, f.name+" "+plainly(*f.value))
			*f.value *= time.Second // the likeliest unit
		}
	}
	if len(tiny) == 0 {
		return Finding{}
	}
	valid := p.Validate() == nil
	for _, f := range tiny {
		if !valid {
			*f.value = time.Microsecond // valid beside all others, which are as long
		}
		changes = append(changes, f.name+" to "+plainly(*f.value))
	}
	return Finding{
		Level:  Severe,
		Text:   strings.Join(names, ", ") + ": a duration below 1µs is a number without its unit, and counts nanoseconds.",
		Change: "Set " + strings.Join(changes, " and ") + ".", changed: &p,
	}
}
