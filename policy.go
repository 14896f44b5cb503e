package retry

import (
	"context"
	"fmt"
	"iter"
	"math"
	"strings"
	"time"

	"github.com/retrygo/retry/internal/saturate"
	"github.com/retrygo/retry/internal/show"
)

// Unlimited, as MaxAttempts, means that the number of attempts does not end a run.
const Unlimited = -1

// Stop, as the result of Policy.Wait, means that no attempt follows.
const Stop time.Duration = -1

const (
	// With the default Backoff 8 attempts are the published delivery schedule of 7 waits, 10m35s in all.
	defaultMaxAttempts = 8
	// As long as the default Cap, so a server may ask for the longest wait that the backoff itself would choose.
	defaultMaxHint = time.Hour

	exactWaits = 10_000 // how many waits TotalWait adds one by one before it brackets the rest
	shownWaits = 12     // the number of waits that String lists, all of the longest published schedule
)

// Policy decides how often, how long and for which errors a call is retried. It is a value. Copy it, share it among any
// number of goroutines, reuse it forever. The library never writes to it. The zero Policy makes 8 attempts with waits
// of 5s, 10s, 20s, 40s, 1m20s, 2m40s and 5m20s between them. See Inline for a call that a caller waits for.
//
// Package retryconf reads a Policy from JSON, YAML and environment variables. The keys of its documents are not those
// by which encoding/json reads a Policy itself. The functions in a Policy must be safe for concurrent use.
type Policy struct {
	// Name is a label for errors and events. It may be empty.
	Name string
	// MaxAttempts is the total number of attempts, at least 1, or Unlimited. Zero means 8, or len(Delays)+1 for a List.
	MaxAttempts int
	// Backoff computes the waits between attempts. Zero means 5s ×2, at most 1h.
	Backoff
	// AttemptTimeout is how long the context of one attempt lives. It is cooperative, so an fn that ignores its context
	// is not interrupted. The context also ends with the attempt, so values bound to it must not outlive fn. A response
	// body or sql.Rows that fn returns cannot be read (see packages retryhttp and retrysql). Zero means no timeout.
	AttemptTimeout time.Duration
	// TTL is how long after the call of Do an attempt may start. The first attempt always starts unless Gate defers it
	// past TTL. TTL does not interrupt an attempt. Zero means no limit.
	TTL time.Duration
	// MaxHint is the longest hint (see After) that is obeyed. A longer one ends the run. Zero means 1h.
	MaxHint time.Duration
	// ResetAfter restarts attempts and delays after a long attempt. If one that lasted at least ResetAfter fails, it
	// counts as the first. It is for loops that reconnect. TTL goes on. Zero means never.
	ResetAfter time.Duration
	// Disabled allows one attempt only. Its failure ends the run as FailedNoRetries, not as DeadLettered. Zero means
	// retries.
	Disabled bool
	// Classify judges errors before the default rules do. Nil means the default rules alone.
	Classify Classifier `json:"-"`
	// Wait returns a custom delay instead of the computed one, for rules that no formula expresses ("at once after a
	// reset, otherwise 1s"). attempt counts from 1, and again after ResetAfter and Progressed. The result is at most
	// Cap, and a hint is still a floor. Stop, as any negative result, ends the run as AttemptsExhausted, so that one
	// kind of error can have a limit of its own. Wait is called only if an attempt may follow, and must be pure. Nil
	// means the computed delay.
	Wait func(attempt int, err error, computed time.Duration) time.Duration `json:"-"`
	// Budget pays for retries, so that they cannot become a storm. Nil means that they are free.
	Budget *Budget `json:"-"`
	// Pay is called when a retry has been decided on and Budget has paid for it. False ends the run as BudgetExhausted.
	// Use it for a custom budget, or to release resources of the failed attempt. Nil means true.
	Pay func(context.Context, Decision) bool `json:"-"`
	// Gate is called before every attempt, the first included, and returns the time to defer it, as an open circuit
	// breaker does. It is called again after that wait. 0 or less means now. Nil means no gate.
	Gate func(context.Context) time.Duration `json:"-"`
	// Observe is called with each failed attempt, before the wait that follows it, and with the end of each run, unless
	// a panic ends it. It is called in the goroutine of Do, with the caller's context. Nil means no observer.
	Observe func(context.Context, Event) `json:"-"`
	// Rand returns a number in [0,1) for each delay with jitter (a rand.Rand needs a lock). Nil means math/rand/v2.
	Rand func() float64 `json:"-"`
}

// Inline returns a policy for a call that a caller waits for. It has 4 attempts, 50ms ×2, full jitter, and hints up to
// 10s. Its Name is "inline". The Name of each of the policies below is the name of its function, in lower case.
func Inline() Policy {
	return Policy{
		Name: "inline", MaxAttempts: 4, MaxHint: 10 * time.Second,
		Backoff: Backoff{Base: 50 * time.Millisecond, Cap: time.Second, Jitter: FullJitter},
	}
}

// Aggressive returns the List 10s, 1m, 5m. It makes 4 attempts within 6m10s, for work that is stale soon.
func Aggressive() Policy { return listed("aggressive", 10*time.Second, time.Minute, 5*time.Minute) }

// Standard returns the List 1m, 30m, 3h. It makes 4 attempts within 3h31m, long enough for a deploy or an incident to
// pass.
func Standard() Policy { return listed("standard", time.Minute, 30*time.Minute, 3*time.Hour) }

// Patient returns the List 5m, 1h, 6h. It makes 4 attempts within 7h5m, for a peer that is repaired in office hours.
func Patient() Policy { return listed("patient", 5*time.Minute, time.Hour, 6*time.Hour) }

// Cautious returns the List 1m, 10m, 1h, 4h, 12h. It makes 6 attempts within 17h11m, for work that must not be lost
// overnight.
func Cautious() Policy {
	return listed("cautious", time.Minute, 10*time.Minute, time.Hour, 4*time.Hour, 12*time.Hour)
}

func listed(name string, delays ...time.Duration) Policy {
	return Policy{Name: name, Backoff: Backoff{Delays: delays}}
}

// Validate returns nil, or FieldErrors with every bad field, its value and the rule it breaks. Do refuses such a
// policy. Validate refuses
//
// It refuses
//   - a negative duration, and MaxAttempts below -1,
//   - a Factor that is negative, not finite or, for Exponential, below 1,
//   - an unknown Mode or Jitter, and Base above Cap,
//   - Delays with Base, Factor or a Mode other than List, and List without Delays,
//   - a JitterRatio outside (0,1] or without RatioJitter, and DecorrelatedJitter without Exponential,
//   - the zero Budget.
func (p Policy) Validate() error {
	if p.plain() {
		return nil
	}
	return p.check().Err()
}

// plain reports whether p is valid at a glance, as most policies are. With it a first try takes 84 ns, without it 104.
func (p *Policy) plain() bool {
	positive := min(p.AttemptTimeout, p.TTL, p.MaxHint, p.ResetAfter) >= 0
	return positive && p.MaxAttempts >= Unlimited && !p.Budget.zero() && p.Backoff.plain()
}

func (b *Backoff) plain() bool {
	formula := b.Delays == nil && b.Factor == 0 && b.Mode < List
	jitter := b.JitterRatio == 0 && b.Jitter < DecorrelatedJitter
	inOrder := b.Cap == 0 || b.Base <= b.Cap
	return formula && jitter && inOrder && min(b.Base, b.Cap) >= 0
}

func (p *Policy) check() FieldErrors {
	bad := p.Backoff.check()
	refuse(&bad, p.MaxAttempts < Unlimited, "Policy.MaxAttempts", p.MaxAttempts, "is below -1, which is Unlimited")
	refuse(&bad, p.AttemptTimeout < 0, "Policy.AttemptTimeout", p.AttemptTimeout, "is negative")
	refuse(&bad, p.TTL < 0, "Policy.TTL", p.TTL, "is negative")
	refuse(&bad, p.MaxHint < 0, "Policy.MaxHint", p.MaxHint, "is negative")
	refuse(&bad, p.ResetAfter < 0, "Policy.ResetAfter", p.ResetAfter, "is negative")
	refuse(&bad, p.Budget.zero(), "Policy.Budget", "", "is not from NewBudget, NewAt or Budgets.For")
	return bad
}

func refused(ctx context.Context, p *Policy, fn func(context.Context) error) error {
	bad := p.check()
	refuse[any](&bad, ctx == nil, "Do.ctx", nil, "is not a context")
	refuse[any](&bad, fn == nil, "Do.fn", nil, "is not a function")
	return bad.Err()
}

// Or returns p with each unset field taken from defaults. A zero value cannot override, so p cannot turn off a part
// that defaults turn on. The result can combine two values that conflict, which Validate reports.
//
// In the formula, Mode and Base are taken one by one, and Factor only if the resulting mode is the mode of defaults. A
// list stands alone. If p sets Delays, no part of the formula is taken, and if p sets Base, Factor or a Mode other than
// List, no Delays are. JitterRatio is taken only if the result has RatioJitter.
func (p Policy) Or(defaults Policy) Policy {
	fill(&p.Name, defaults.Name)
	fill(&p.MaxAttempts, defaults.MaxAttempts)
	p.Backoff = p.Backoff.or(defaults.Backoff)
	fill(&p.AttemptTimeout, defaults.AttemptTimeout)
	fill(&p.TTL, defaults.TTL)
	fill(&p.MaxHint, defaults.MaxHint)
	fill(&p.ResetAfter, defaults.ResetAfter)
	fill(&p.Disabled, defaults.Disabled)
	fill(&p.Budget, defaults.Budget)
	if p.Classify == nil {
		p.Classify = defaults.Classify
	}
	if p.Wait == nil {
		p.Wait = defaults.Wait
	}
	if p.Pay == nil {
		p.Pay = defaults.Pay
	}
	if p.Gate == nil {
		p.Gate = defaults.Gate
	}
	if p.Observe == nil {
		p.Observe = defaults.Observe
	}
	if p.Rand == nil {
		p.Rand = defaults.Rand
	}
	return p
}

// fill sets a field that is unset.
func fill[T comparable](field *T, value T) {
	var unset T
	if *field == unset {
		*field = value
	}
}

func (b Backoff) or(defaults Backoff) Backoff {
	switch {
	case len(b.Delays) > 0: // a list stands alone
	case !b.formula() && (b.Mode == 0 || defaults.mode() == List): // no schedule, so the whole schedule of defaults
		b.Mode = defaults.Mode
		b.Base = defaults.Base
		b.Factor = defaults.Factor
		b.Delays = defaults.Delays
	case defaults.mode() != List && b.Mode != List: // one formula over another
		fill(&b.Mode, defaults.Mode)
		fill(&b.Base, defaults.Base)
		if b.mode() == defaults.mode() {
			fill(&b.Factor, defaults.Factor)
		}
	}
	fill(&b.Cap, defaults.Cap)
	fill(&b.Jitter, defaults.Jitter)
	if b.Jitter == RatioJitter {
		fill(&b.JitterRatio, defaults.JitterRatio)
	}
	return b
}

// formula reports whether b sets a part of a formula.
func (b *Backoff) formula() bool {
	return b.Base != 0 || b.Factor != 0 || b.Mode != 0 && b.Mode != List
}

// OrSchedule returns p with the schedule of defaults if p has no schedule of its own. The Backoff is taken as a whole
// if Mode, Base, Factor, Cap, Delays and Jitter are all unset, and MaxHint with it if that is unset. MaxAttempts is
// taken by itself, unless p has Delays, whose number gives it. It is for shells that have a better default than the
// zero Policy.
func (p Policy) OrSchedule(defaults Policy) Policy {
	if len(p.Delays) == 0 {
		fill(&p.MaxAttempts, defaults.MaxAttempts)
	}
	scheduled := p.formula() || p.Mode == List || len(p.Delays) > 0
	if !scheduled && p.Cap == 0 && p.Jitter == 0 {
		p.Backoff = defaults.Backoff
		fill(&p.MaxHint, defaults.MaxHint)
	}
	return p
}

// Effective returns p with every default that is in force written out. These are MaxAttempts, MaxHint and the fields of
// Backoff that the mode uses. Cap stays 0 for a List without a cap. The result behaves like p, and is its own
// Effective.
func (p Policy) Effective() Policy {
	if p.MaxAttempts != Unlimited {
		p.MaxAttempts = p.retries() + 1
	}
	p.MaxHint = p.maxHint()
	p.Jitter = p.jitter()
	p.Mode = p.mode()
	if p.Mode != List {
		p.Base = p.base()
		p.Cap = p.limit()
	}
	if p.Mode <= Linear {
		p.Factor = p.factor()
	}
	if p.Jitter == RatioJitter {
		p.JitterRatio = p.ratio()
	}
	return p
}

// Schedule returns the waits of a run that never succeeds as (1, delay), (2, delay), ... until MaxAttempts are used up.
// It ignores TTL, hints and Wait. rnd returns a number in [0,1) for each delay and is not called if there is no jitter.
// A nil rnd means no jitter. Each range over the sequence starts again at attempt 1.
func (p Policy) Schedule(rnd func() float64) iter.Seq2[int, time.Duration] {
	if rnd == nil {
		p.Jitter = NoJitter
	}
	return func(yield func(int, time.Duration) bool) {
		var prev time.Duration
		for attempt, waits := 1, p.waits(); attempt <= waits; attempt = next(attempt) {
			var u float64
			if p.jitter() != NoJitter {
				u = rnd()
			}
			if prev = p.Jittered(attempt, prev, u); !yield(attempt, prev) {
				return
			}
		}
	}
}

// DrawDelay returns the wait after the given failed attempt, drawn with Rand evenly between its Bounds. It does not
// ask Wait. attempt counts from 1, and anything below counts as 1. The method value p.DrawDelay is for other
// libraries' hooks. One that counts from 0 needs attempt+1. Otherwise the first wait is repeated and every later one is
// a step late. A hook gets no error, and so no hint, and cannot end a run. MaxAttempts, TTL, AttemptTimeout and the
// errors to retry are settings of the library.
func (p Policy) DrawDelay(attempt int) time.Duration {
	lo, hi := p.Bounds(attempt)
	if lo < hi {
		lo += saturate.Within(hi-lo, p.draw())
	}
	return lo
}

// retries returns the number of retries that MaxAttempts allows, the largest int if it is Unlimited.
func (p *Policy) retries() int {
	switch {
	case p.MaxAttempts == Unlimited:
		return math.MaxInt
	case p.MaxAttempts > 0:
		return p.MaxAttempts - 1
	case p.mode() == List:
		return len(p.Delays)
	default:
		return defaultMaxAttempts - 1
	}
}

func (p *Policy) waits() int {
	if p.Disabled {
		return 0
	}
	return p.retries()
}

func (p *Policy) maxHint() time.Duration {
	if p.MaxHint > 0 {
		return p.MaxHint
	}
	return defaultMaxHint
}

// TotalWait returns the least and the supremum of the sum of all waits of a run that never succeeds. It ignores TTL,
// hints and ResetAfter, is 0 for a Disabled policy, and saturates at the largest Duration, which is the result for an
// Unlimited policy with waits. With Wait each wait counts as between 0 and Cap.
//
// It is exact up to 10,000 waits, and beyond them if the delay has stopped growing. Otherwise the remaining waits are
// counted with the bounds of the first and the last of them, so that the sum is still between lo and hi.
func (p Policy) TotalWait() (lo, hi time.Duration) {
	waits := p.waits()
	if p.Wait != nil {
		return 0, saturate.Times(p.limit(), uint64(waits), saturate.Max)
	}
	exact := min(waits, max(exactWaits, len(p.Delays)))
	for attempt := 1; attempt <= exact; attempt++ {
		least, most := p.Bounds(attempt)
		lo, hi = saturate.Sum(lo, least), saturate.Sum(hi, most)
	}
	rest := uint64(waits - exact) // mostly 0
	least, _ := p.Bounds(exact + 1)
	_, most := p.Bounds(waits)
	return saturate.Sum(lo, saturate.Times(least, rest, saturate.Max)), saturate.Sum(hi, saturate.Times(most, rest, saturate.Max))
}

// String returns one line that shows the schedule, after the name if there is one:
//
//	8 attempts, exponential 5s ×2, cap 1h: 5s 10s 20s 40s 1m20s 2m40s 5m20s (10m35s in all)
//
// The waits, at most 12 and then "...", are without jitter. The sum is a range if there is jitter: "(0s to 10m35s in
// all)". Waits that depend on the one before (DecorrelatedJitter) or on the error (Wait) are not listed. It does not
// show MaxHint and the other fields that are code. A policy that Do refuses ends with "(not valid)".
func (p Policy) String() string {
	var text strings.Builder
	say := func(shown bool, format string, values ...any) {
		if shown {
			fmt.Fprintf(&text, format, values...)
		}
	}
	say(p.Name != "", "%s: ", p.Name)
	unlimited := p.MaxAttempts == Unlimited
	say(p.Disabled, "retries disabled")
	say(!p.Disabled && unlimited, "unlimited attempts")
	say(!p.Disabled && !unlimited, "%s", counted(p.retries()+1))

	mode := p.mode()
	jitter := p.jitter()
	base := p.base()
	say(mode == List, ", list")
	say(mode == Fixed, ", fixed %s", show.Duration(base))
	say(mode == Linear, ", linear %s +%s", show.Duration(base), show.Duration(saturate.Line(base, p.factor(), 1, saturate.Max)-base))
	say(mode == Exponential && jitter != DecorrelatedJitter, ", exponential %s ×%v", show.Duration(base), p.factor())
	say(jitter == DecorrelatedJitter, ", decorrelated %s to 3×last", show.Duration(base))
	say(p.Cap > 0 || mode <= Linear, ", cap %s", show.Duration(p.limit()))
	say(jitter == FullJitter || jitter == EqualJitter, ", %v jitter", jitter)
	say(jitter == RatioJitter, ", ratio jitter %v", p.ratio())
	say(p.Wait != nil, ", own waits")
	say(p.AttemptTimeout > 0, ", attempt timeout %s", show.Duration(p.AttemptTimeout))
	say(p.TTL > 0, ", TTL %s", show.Duration(p.TTL))
	say(p.ResetAfter > 0, ", reset after %s", show.Duration(p.ResetAfter))

	waits := p.waits()
	listed := waits > 0 && p.Wait == nil && jitter != DecorrelatedJitter
	say(listed, ":")
	for attempt := 1; attempt <= min(waits, shownWaits); attempt++ {
		say(listed, " %s", show.Duration(p.Delay(attempt)))
	}
	say(listed && waits > shownWaits, " ...")
	if waits > 0 && !unlimited {
		lo, hi := p.TotalWait()
		say(lo < hi, " (%s to %s in all)", show.Duration(lo), show.Duration(hi))
		say(lo == hi, " (%s in all)", show.Duration(hi))
	}
	say(p.Validate() != nil, " (not valid)")
	return oneLine(text.String())
}
