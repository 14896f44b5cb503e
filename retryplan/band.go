package retryplan

import (
	"context"
	"math"
	"time"

	"github.com/retrygo/retry"
)

// Limits of a Band.
const (
	shortestBand = time.Millisecond
	longestBand  = 10 * time.Minute
	bandSteps    = 5 // halvings of the search, on a logarithmic scale
	// freshSeeds is how far the seeds that judge a band are from those that found it.
	freshSeeds = 1 << 32
)

// Band returns verdicts about two lengths of the trigger of q: the longest one found of which no seed was lost, and the
// shortest one found of which at least half were. In between, chance decides. The lengths are found with 10 seeds, between
// 1 ms and 10 minutes, and judged with others: seeds that have chosen a length prove nothing about it. A Verdict without
// Seeds means that no such length was found. Errors are those of Judge; a trigger is required.
func Band(ctx context.Context, q Question) (none, half Verdict, err error) {
	if err = q.validate(); err != nil {
		return none, half, err
	}
	if q.trigger().Kind == 0 {
		return none, half, &retry.FieldError{Package: pkg, Field: q.field("Trigger.Kind"), Value: "0", Rule: "is required for a band"}
	}
	b := &bandSearch{ctx: ctx, question: q, judged: q.Seed + freshSeeds}
	b.question.Progress = nil
	longest, found := b.longest(shortestBand, noneLost)
	if found {
		none = b.judge(longest, 0.8, noneLost)
	}
	if b.err == nil {
		if longest, _ = b.longest(longest, lessThanHalfLost); longest < longestBand {
			half = b.judge(raised(longest), 1.25, func(v *Verdict) bool { return !lessThanHalfLost(v) })
		}
	}
	return none, half, b.err
}

func noneLost(v *Verdict) bool { return v.Back == v.Seeds }

func lessThanHalfLost(v *Verdict) bool { return 2*v.Back > v.Seeds }

// bandSearch simulates a question with triggers of other lengths.
type bandSearch struct {
	ctx      context.Context
	question Question
	judged   uint64 // the first seed that no length was judged with
	err      error
}

// verdict returns the verdict of so many seeds about a length.
func (b *bandSearch) verdict(lasts time.Duration, seeds int, seed uint64) (v Verdict) {
	if b.err != nil {
		return v
	}
	q := b.question
	t := q.trigger()
	t.From, t.For = 0, lasts
	q.setTrigger(t)
	q.Seeds, q.Seed = seeds, seed
	v, b.err = Judge(b.ctx, q)
	return v
}

// longest searches the longest length from shortest on whose search seeds are as wanted, or returns shortest and false.
func (b *bandSearch) longest(shortest time.Duration, wanted func(*Verdict) bool) (time.Duration, bool) {
	is := func(lasts time.Duration) bool {
		v := b.verdict(lasts, enoughLost, b.question.Seed)
		return wanted(&v)
	}
	if !is(shortest) {
		return shortest, false
	}
	lo, hi := shortest, longestBand
	for next := max(2*lo, 100*time.Millisecond); next < longestBand; next *= 2 {
		if !is(next) {
			hi = next
			break
		}
		lo = next
	}
	if hi == longestBand && is(hi) {
		return hi, true
	}
	for range bandSteps {
		mid := cutOff(time.Duration(math.Sqrt(float64(lo))*math.Sqrt(float64(hi))), 2)
		if mid <= lo {
			break
		}
		if is(mid) {
			lo = mid
		} else {
			hi = mid
		}
	}
	return lo, true
}

// judge judges a length with fresh seeds, and others by the factor away from it, until their seeds are as wanted.
func (b *bandSearch) judge(lasts time.Duration, factor float64, wanted func(*Verdict) bool) Verdict {
	for lasts >= shortestBand && lasts <= longestBand && b.err == nil {
		v := b.verdict(lasts, b.question.Seeds, b.judged)
		if wanted(&v) && b.err == nil {
			return v
		}
		b.judged += mostSeeds
		lasts = cutOff(time.Duration(float64(lasts)*factor), 2)
	}
	return Verdict{}
}
