package retry

import (
	"context"
	"slices"
	"time"
)

// maxNewest is how many failed attempts a run keeps beside the first: with it a full History takes 64 places.
const maxNewest = 63

// failure is an Attempt without its number.
type failure struct {
	start    time.Duration // since the run began
	duration time.Duration
	delay    time.Duration
	err      error
	class    Class
}

// attempt returns f as the attempt with the given number, of a run that began at the given time.
func (f *failure) attempt(number int, began time.Time) Attempt {
	return Attempt{number, began.Add(f.start), f.duration, f.class, f.err, f.delay}
}

// history is what is kept of the failures of one run.
type history struct {
	first   failure
	retries *retries // nil before the first retry
}

// retries is what a run needs from its first retry on, with room for three retries (BenchmarkRetries): few need more.
type retries struct {
	contexts      [3]numbered
	more          *[8]numbered // the contexts of eight more retries, and then of eight others
	newest        []failure    // from the second on, at most maxNewest
	firstFailures [2]failure   // the first place of newest
}

// context returns ctx with the number of an attempt, from 1 and one more each time. An unmarked ctx says 1 already.
func (h *history) context(ctx context.Context, number int) context.Context {
	if number == 1 {
		if c := numberOf(ctx); c != nil {
			return &numbered{ctx, 1, c.outer}
		}
		return ctx
	}
	if h.retries == nil {
		h.retries = new(retries)
	}
	r, i := h.retries, number-2
	if i < len(r.contexts) {
		r.contexts[i] = numbered{ctx, number, 0}
		return &r.contexts[i]
	}
	if i = (i - len(r.contexts)) % len(r.more); i == 0 {
		r.more = new([8]numbered)
	}
	r.more[i] = numbered{ctx, number, 0}
	return &r.more[i]
}

// note returns the place of the failure with the given number, which is 1 at first and then one more each time.
func (h *history) note(number int) *failure {
	if number == 1 {
		return &h.first
	}
	r := h.retries
	if number == 2 {
		r.newest = r.firstFailures[:0]
	} else if len(r.newest) == maxNewest {
		r.newest = slices.Delete(r.newest, 0, 1)
	} else if len(r.newest) == cap(r.newest) {
		r.newest = append(make([]failure, 0, max(9, 3*len(r.newest))), r.newest...) // at first ten in all: BenchmarkRetries
	}
	r.newest = append(r.newest, failure{})
	return &r.newest[len(r.newest)-1]
}

// attempts fills list with the newest of n failures, after the first one, in a run that began at the given time. It
// allocates nothing, and so needs little of a small stack (BenchmarkWaiterCancel of bench).
func (h *history) attempts(list []Attempt, n int, began time.Time) {
	for i := range list {
		f, number := &h.first, 1
		if i > 0 {
			f, number = &h.retries.newest[i-1], n-len(list)+1+i
		}
		list[i] = f.attempt(number, began)
	}
}

// kept returns how many of n failures a history keeps.
func kept(n int) int { return min(n, 1+maxNewest) }
