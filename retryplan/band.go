package retryplan

import (
	"context"
	"math"
	"slices"
	"time"

	"github.com/retrygo/retry"
)

// bandLengths are the lengths of triggers in a band: 24 in each decade from 1ms on, of two digits, and at last 10m.
var bandLengths = func() (all []time.Duration) {
	const longest = 10 * time.Minute
	for i := 0; ; i++ {
		length := cutOff(time.Duration(math.Pow(10, float64(i)/24)*float64(time.Millisecond)+1), 2)
		if length >= longest {
			return append(all, longest)
		}
		all = append(all, length)
	}
}()

// freshSeeds is how far the seeds that judge a band are from those that found it.
const freshSeeds = 1 << 32

// Band returns verdicts about two lengths of the trigger of q, the longest one found of which no seed was lost, and the
// shortest one found of which at least half were. In between, chance decides. The lengths are found with 10 seeds,
// between 1 ms and 10 minutes, and judged with others, since seeds that have chosen a length prove nothing about it. A
// Verdict without Seeds means that no such length was found. Errors are those of Judge. A trigger is required.
func Band(ctx context.Context, q Question) (none, half Verdict, err error) {
	if err = q.validate(); err != nil {
		return none, half, err
	}
	if q.trigger().Kind == 0 {
		return none, half, &retry.FieldError{Package: pkg, Field: q.field("Trigger.Kind"), Value: "0", Rule: "is required for a band"}
	}
	q.Progress = nil
	b := &bandSearch{ctx: ctx, question: q}
	for i := b.longest(noneLost); i >= 0 && b.err == nil; i-- {
		if v := b.judge(i); noneLost(&v) {
			none = v
			break
		}
	}
	for i := b.longest(lessThanHalfLost) + 1; i < len(bandLengths) && b.err == nil; i++ {
		if v := b.judge(i); !lessThanHalfLost(&v) {
			half = v
			break
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
	judged   uint64 // lengths that were judged
	err      error
}

// longest returns the index of the longest length whose search seeds are as wanted, or -1, if those of all longer ones
// are not.
func (b *bandSearch) longest(wanted func(*Verdict) bool) int {
	n, _ := slices.BinarySearchFunc(bandLengths, true, func(length time.Duration, _ bool) int {
		if v := b.verdict(length, enoughLost, b.question.Seed); wanted(&v) {
			return -1
		}
		return 1
	})
	return n - 1
}

// judge returns the verdict of fresh seeds about a length.
func (b *bandSearch) judge(i int) Verdict {
	b.judged++
	return b.verdict(bandLengths[i], b.question.Seeds, b.question.Seed+b.judged*freshSeeds)
}

// verdict returns the verdict of so many seeds about a length.
func (b *bandSearch) verdict(length time.Duration, seeds int, seed uint64) (v Verdict) {
	if b.err != nil {
		return v
	}
	q := b.question
	t := q.trigger()
	t.From, t.For = 0, length
	q.setTrigger(t)
	q.Seeds, q.Seed = seeds, seed
	v, b.err = Judge(b.ctx, q)
	return v
}
