package retry

import (
	"context"
	"fmt"
	"math"
	"strings"
	"time"
)

// Unlimited as MaxAttempts means that no number of attempts ends a run.
const Unlimited = -1

const (
	// With the default Backoff 8 attempts are the published delivery schedule: 7 waits, 10m35s in all.
	defaultMaxAttempts = 8
	// An hour is as long as the default Cap: whoever trusts us with the longer wait gets the better of the two.
	defaultMaxHint = time.Hour
)

// Policy says how often, how long and for which errors a call is tried again. It is a value: copy it, share it among
// any number of goroutines, use it for ever. The library never writes to it. The zero Policy makes 8 attempts with
// waits of 5s, 10s, 20s, 40s, 1m20s, 2m40s and 5m20s between them.
type Policy struct {
	// Name is a label for errors and events. Empty means none.
	Name string
	// MaxAttempts is the total number of attempts, the first one included. Zero means 8, or len(Delays)+1 for a
	// List. Unlimited means no limit.
	MaxAttempts int
	// Backoff says how long to wait between attempts. Zero means 5s ×2, at most 1h.
	Backoff
	// AttemptTimeout is how long one attempt's context lives. It is cooperative: an fn that ignores its context is
	// not cut off. Zero means none.
	AttemptTimeout time.Duration
	// TTL bounds when an attempt may start: not later than TTL after the call of Do. An attempt under way is not
	// cut by it. Zero means no limit.
	TTL time.Duration
	// MaxHint is the longest hint (see After) that is obeyed; a longer one ends the run. Zero means 1h.
	MaxHint time.Duration
	// Disabled allows one attempt only; its failure ends as Failed, not as DeadLettered. Zero means retries.
	Disabled bool
	// Classify judges errors before the default rules do. Nil means the default rules alone.
	Classify Classifier
	// Budget pays for retries, so that they cannot become a storm. Nil means that they are free.
	Budget *Budget
	// Gate is asked before every attempt, the first included, how long to stay away, as an open circuit breaker
	// does. It is asked again after that wait. 0 or less means go. It must be safe for concurrent use. Nil means
	// no gate.
	Gate func(context.Context) time.Duration
	// Observe is told of each failed attempt, before the wait that follows it begins, and of the end of each run; a
	// panic ends a run without being told. It is called in the goroutine of Do, with the caller's context, and must
	// be safe for concurrent use. Nil means nobody is told.
	Observe func(context.Context, Event)
	// Rand gives a number in [0,1) for each delay that has jitter. It must be safe for concurrent use, which the
	// methods of a rand.Rand are not. Nil means math/rand/v2.
	Rand func() float64
}

// Aggressive returns the List 10s, 1m, 5m: 4 attempts within 6m10s, for work that is stale soon.
func Aggressive() Policy {
	return listed("aggressive", 10*time.Second, time.Minute, 5*time.Minute)
}

// Standard returns the List 1m, 30m, 3h: 4 attempts within 3h31m, long enough for a deploy or an incident to pass.
func Standard() Policy {
	return listed("standard", time.Minute, 30*time.Minute, 3*time.Hour)
}

// Patient returns the List 5m, 1h, 6h: 4 attempts within 7h5m, for a peer that is mended in office hours.
func Patient() Policy {
	return listed("patient", 5*time.Minute, time.Hour, 6*time.Hour)
}

// Cautious returns the List 1m, 10m, 1h, 4h, 12h: 6 attempts within 17h11m, for work that must not be lost overnight.
func Cautious() Policy {
	return listed("cautious", time.Minute, 10*time.Minute, time.Hour, 4*time.Hour, 12*time.Hour)
}

func listed(name string, delays ...time.Duration) Policy {
	return Policy{Name: name, Backoff: Backoff{Delays: delays}}
}

// Validate returns nil or an error that names every bad field with its value and the rule it breaks. It unwraps to one
// *FieldError for each; errors.As finds the first. Do refuses a policy that Validate refuses.
//
// Refused are: a negative duration; MaxAttempts below -1; a Factor that is negative, not finite or, for Exponential,
// below 1; a JitterRatio outside (0,1]; an unknown Mode or Jitter; and these combinations: Base above Cap, Delays with
// Base, Factor or a Mode but List, List without Delays, JitterRatio without RatioJitter, DecorrelatedJitter without
// Exponential, AttemptTimeout above TTL.
func (p Policy) Validate() error { return p.check().err() }

// simple, and of the Backoff simpleFormula and simpleList, let pass what has nothing set that could be wrong in itself, as
// cheaply as can be, because every call of Do asks: no field is negative, none of the rarer ones is set, and no two
// conflict. Each is small enough to be inlined, but for the list. A limit of 0, minus 1, is the largest uint64.
func (p *Policy) simple() bool {
	signs := p.AttemptTimeout | p.TTL | p.MaxHint | time.Duration(p.MaxAttempts+1)
	return signs >= 0 && uint64(p.AttemptTimeout) <= uint64(p.TTL-1)
}

func (b *Backoff) simpleFormula() bool {
	rarer := math.Float64bits(b.Factor) | math.Float64bits(b.JitterRatio) | uint64(len(b.Delays))
	return b.Base|b.Cap >= 0 && rarer == 0 && b.Mode < List && b.Jitter < RatioJitter && uint64(b.Base) <= uint64(b.Cap-1)
}

func (b *Backoff) simpleList() bool {
	rarer := math.Float64bits(b.Factor) | math.Float64bits(b.JitterRatio) | uint64(b.Base)
	signs := b.Cap
	for _, d := range b.Delays {
		signs |= d
	}
	return signs >= 0 && rarer == 0 && len(b.Delays) > 0 && b.Mode == 0 && b.Jitter < RatioJitter
}

// check is Validate.
func (p *Policy) check() fieldErrors {
	bad := p.Backoff.check("Policy")
	if p.MaxAttempts < Unlimited {
		bad.add("Policy", "MaxAttempts", p.MaxAttempts, "is below -1, which is Unlimited")
	}
	if p.AttemptTimeout < 0 {
		bad.add("Policy", "AttemptTimeout", p.AttemptTimeout, "is negative")
	}
	if p.TTL < 0 {
		bad.add("Policy", "TTL", p.TTL, "is negative")
	}
	if p.MaxHint < 0 {
		bad.add("Policy", "MaxHint", p.MaxHint, "is negative")
	}
	if p.TTL > 0 && p.AttemptTimeout > p.TTL {
		bad.add("Policy", "AttemptTimeout", p.AttemptTimeout, "is above TTL", p.TTL)
	}
	return bad
}

// Or returns p with each unset field taken from defaults. The fields that make up a formula stay together: if p sets
// Mode, Base, Factor or Delays, none of these four comes from defaults, and JitterRatio comes along only where the
// result has RatioJitter. A zero value cannot override: p cannot turn off what defaults turn on. The result can
// combine two values that conflict; Validate says so.
func (p Policy) Or(defaults Policy) Policy {
	if p.Name == "" {
		p.Name = defaults.Name
	}
	if p.MaxAttempts == 0 {
		p.MaxAttempts = defaults.MaxAttempts
	}
	p.Backoff = p.Backoff.or(defaults.Backoff)
	if p.AttemptTimeout == 0 {
		p.AttemptTimeout = defaults.AttemptTimeout
	}
	if p.TTL == 0 {
		p.TTL = defaults.TTL
	}
	if p.MaxHint == 0 {
		p.MaxHint = defaults.MaxHint
	}
	p.Disabled = p.Disabled || defaults.Disabled
	if p.Classify == nil {
		p.Classify = defaults.Classify
	}
	if p.Budget == nil {
		p.Budget = defaults.Budget
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

func (b Backoff) or(defaults Backoff) Backoff {
	if b.Mode == 0 && b.Base == 0 && b.Factor == 0 && len(b.Delays) == 0 {
		b.Mode, b.Base, b.Factor, b.Delays = defaults.Mode, defaults.Base, defaults.Factor, defaults.Delays
	}
	if b.Cap == 0 {
		b.Cap = defaults.Cap
	}
	if b.Jitter == NoJitter {
		b.Jitter = defaults.Jitter
	}
	if b.JitterRatio == 0 && b.Jitter == RatioJitter {
		b.JitterRatio = defaults.JitterRatio
	}
	return b
}

// attemptsLeft reports whether an attempt may follow the given one. The rule is attempt < MaxAttempts.
func (p *Policy) attemptsLeft(attempt int) bool {
	return p.MaxAttempts == Unlimited || max(attempt, 1) < p.maxAttempts()
}

// maxAttempts returns the MaxAttempts in force of a policy that is not Unlimited.
func (p *Policy) maxAttempts() int {
	switch {
	case p.MaxAttempts > 0:
		return p.MaxAttempts
	case p.mode() == List:
		return len(p.Delays) + 1
	default:
		return defaultMaxAttempts
	}
}

func (p *Policy) maxHint() time.Duration {
	if p.MaxHint > 0 {
		return p.MaxHint
	}
	return defaultMaxHint
}

// exactWaits is how many waits TotalWait adds one by one before it brackets the rest.
const exactWaits = 10_000

// TotalWait returns the least and the supremum of the sum of all waits of a run that never succeeds. It ignores TTL
// and hints, is 0 for a Disabled policy, and saturates at the largest Duration, which is what an Unlimited policy with
// waits gives.
//
// It is exact up to 10,000 waits, and beyond them where the delay has stopped growing; elsewhere the remaining waits
// are counted with the bounds of the first and the last of them, so that the sum is still between lo and hi.
func (p Policy) TotalWait() (lo, hi time.Duration) {
	if p.Disabled {
		return 0, 0
	}
	attempt := 1
	for ; p.attemptsLeft(attempt); attempt++ {
		if attempt > exactWaits && attempt > len(p.Delays) {
			break
		}
		least, most := p.Bounds(attempt)
		lo, hi = saturatingAdd(lo, least), saturatingAdd(hi, most)
	}
	if !p.attemptsLeft(attempt) {
		return lo, hi
	}
	last, rest := math.MaxInt, uint64(math.MaxUint64)
	if p.MaxAttempts != Unlimited {
		last, rest = p.maxAttempts()-1, uint64(p.maxAttempts()-attempt)
	}
	least, _ := p.Bounds(attempt)
	_, most := p.Bounds(last)
	return addTimes(lo, least, rest), addTimes(hi, most, rest)
}

// addTimes returns sum + n·d, saturated.
func addTimes(sum, d time.Duration, n uint64) time.Duration {
	product := saturatingMul(uint64(d), n)
	return saturatingAdd(sum, time.Duration(min(product, math.MaxInt64)))
}

// shownWaits is how many waits String lists: all of the longest published schedule.
const shownWaits = 12

// String returns one line that shows the schedule:
//
//	8 attempts, exponential 5s ×2, cap 1h: 5s 10s 20s 40s 1m20s 2m40s 5m20s (10m35s in all)
//
// The waits, 12 at most and then "...", are those without jitter; the sum is a range where there is jitter: "(0s to 10m35s
// in all)". It does not show Name, MaxHint and the fields that are code.
func (p Policy) String() string {
	parts := []string{p.attemptsText(), p.modeText()}
	if mode := p.mode(); p.Cap > 0 || mode == Exponential || mode == Linear {
		parts = append(parts, "cap "+compact(p.limit()))
	}
	switch jitter := p.jitter(); jitter {
	case NoJitter:
	case RatioJitter:
		parts = append(parts, fmt.Sprintf("ratio jitter %v", p.ratio()))
	default:
		parts = append(parts, jitter.String()+" jitter")
	}
	if p.AttemptTimeout > 0 {
		parts = append(parts, "attempt timeout "+compact(p.AttemptTimeout))
	}
	if p.TTL > 0 {
		parts = append(parts, "TTL "+compact(p.TTL))
	}
	return strings.Join(parts, ", ") + p.waitsText()
}

func (p *Policy) attemptsText() string {
	switch {
	case p.Disabled:
		return "retries disabled"
	case p.MaxAttempts == Unlimited:
		return "unlimited attempts"
	default:
		return counted(p.maxAttempts())
	}
}

// counted returns "1 attempt", "2 attempts", ...
func counted(attempts int) string {
	if attempts == 1 {
		return "1 attempt"
	}
	return fmt.Sprintf("%d attempts", attempts)
}

func (p *Policy) modeText() string {
	base := compact(p.base())
	switch p.mode() {
	case List:
		return "list"
	case Fixed:
		return "fixed " + base
	case Linear:
		step := linear(p.base(), p.slope(), 1, maxDelay) - p.base()
		return "linear " + base + " +" + compact(step)
	default:
		return fmt.Sprintf("exponential %s ×%v", base, p.factor())
	}
}

// waitsText returns ": 5s 10s (15s in all)", or nothing where there is no wait.
func (p *Policy) waitsText() string {
	if p.Disabled || !p.attemptsLeft(1) {
		return ""
	}
	var b strings.Builder
	b.WriteByte(':')
	attempt := 1
	for ; attempt <= shownWaits && p.attemptsLeft(attempt); attempt++ {
		b.WriteString(" " + compact(p.Delay(attempt)))
	}
	if p.attemptsLeft(attempt) {
		b.WriteString(" ...")
	}
	if p.MaxAttempts == Unlimited {
		return b.String()
	}
	lo, hi := p.TotalWait()
	if lo < hi {
		b.WriteString(" (" + compact(lo) + " to " + compact(hi) + " in all)")
	} else {
		b.WriteString(" (" + compact(lo) + " in all)")
	}
	return b.String()
}
