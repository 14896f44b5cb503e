package retry

import (
	"context"
	"slices"
	"time"

	"github.com/retrygo/retry/internal/attempt"
)

// maxNewest is how many failed attempts a run keeps beside the first: with it a full History takes 64 places.
const maxNewest = 63

// failure is an Attempt without its number, and without its class: it is Retryable, unless it has ended the run.
type failure struct {
	start    time.Duration // since the run began
	duration time.Duration
	delay    time.Duration
	err      error
}

// attempt returns f as the attempt with the given number and class, of a run that began at the given time.
func (f *failure) attempt(number int, class Class, began time.Time) Attempt {
	return Attempt{number, began.Add(f.start), f.duration, class, f.err, f.delay}
}

// history is what is kept of the failures of one run.
type history struct {
	first   failure
	retries *retries // nil before the first retry
}

// retries is what a run needs from its first retry on, with room for three retries (BenchmarkRetries): few need more.
type retries struct {
	contexts [3]attempt.Numbered
	failures [2]failure // the second and the third; in newest too, if that is there
	later    *later     // nil before the fourth failure
}

// later has room for ten failures in all. It is there from the fourth on, and so before the fifth attempt.
type later struct {
	contexts      *[8]attempt.Numbered // of eight retries, and then of eight others
	newest        []failure            // from the second on, at most maxNewest
	firstContexts [8]attempt.Numbered
	firstNewest   [9]failure
}

// context returns ctx with the number of an attempt, from 1 and one more each time. An unmarked ctx says 1 already.
func (h *history) context(ctx context.Context, number int) context.Context {
	if number == 1 {
		if attempt.Number(ctx) == 0 {
			return ctx
		}
		return &attempt.Numbered{Context: ctx, Number: 1}
	}
	if h.retries == nil {
		h.retries = new(retries)
	}
	r, i := h.retries, number-2
	if i < len(r.contexts) {
		c := &r.contexts[i]
		c.Context, c.Number = ctx, number
		return c
	}
	if i -= len(r.contexts); i == 0 {
		r.later.contexts = &r.later.firstContexts
	} else if i %= len(r.later.contexts); i == 0 {
		r.later.contexts = new([8]attempt.Numbered)
	}
	c := &r.later.contexts[i]
	c.Context, c.Number = ctx, number
	return c
}

// note returns the place of the failure with the given number, which is 1 at first and then one more each time.
func (h *history) note(number int) *failure {
	switch {
	case number == 1:
		return &h.first
	case number <= 1+len(h.retries.failures):
		return &h.retries.failures[number-2]
	}
	return h.retries.noteLater()
}

func (r *retries) noteLater() *failure {
	if r.later == nil {
		r.later = new(later)
		r.later.newest = append(r.later.firstNewest[:0], r.failures[:]...)
	}
	l := r.later
	if len(l.newest) == maxNewest {
		l.newest = slices.Delete(l.newest, 0, 1)
	}
	l.newest = append(l.newest, failure{})
	return &l.newest[len(l.newest)-1]
}

// attempts fills list with the newest of n failures, after the first one, in a run that began at the given time, as
// attempts that were repeated. It allocates nothing, and so needs little of a small stack (BenchmarkWaiterCancel of
// bench).
func (h *history) attempts(list []Attempt, n int, began time.Time) {
	for i := range list {
		f, number := &h.first, 1
		if i > 0 {
			number = n - len(list) + 1 + i
			if l := h.retries.later; l != nil {
				f = &l.newest[i-1]
			} else {
				f = &h.retries.failures[i-1]
			}
		}
		list[i] = f.attempt(number, Retryable, began)
	}
}

// kept returns how many of n failures a history keeps.
func kept(n int) int { return min(n, 1+maxNewest) }
