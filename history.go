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

// retries is what a run needs from its first retry on, with room for three retries: most runs that succeed at all need no
// more (BenchmarkRetries).
type retries struct {
	contexts []numbered // of the last retries; what is handed out stays in its place
	newest   []failure  // from the second on, at most maxNewest

	firstContexts [3]numbered
	firstFailures [3]failure
}

// context returns ctx with the number of an attempt, which is 2 at first and then one more each time.
func (r *retries) context(ctx context.Context, number int) context.Context {
	switch {
	case number == 2:
		r.contexts = r.firstContexts[:0]
	case len(r.contexts) == cap(r.contexts):
		r.contexts = make([]numbered, 0, 8)
	}
	r.contexts = append(r.contexts, numbered{ctx, number, false})
	return &r.contexts[len(r.contexts)-1]
}

// note records the failure with the given number, which is 1 at first and then one more each time.
func (h *history) note(number int, f failure) {
	if number == 1 {
		h.first = f
		return
	}
	r := h.retries
	if number == 2 {
		r.newest = r.firstFailures[:0]
	} else if len(r.newest) == maxNewest {
		copy(r.newest, r.newest[1:])
		r.newest = r.newest[:maxNewest-1]
	}
	r.newest = append(r.newest, f)
}

// attempts returns all kept failures in order. There were n, at least one, in a run that began at the given time.
func (h *history) attempts(n int, began time.Time) []Attempt {
	list := []Attempt{h.first.attempt(1, began)}
	if n > 1 {
		newest := h.retries.newest
		list = slices.Grow(list, len(newest))
		for i := range newest {
			list = append(list, newest[i].attempt(n-len(newest)+1+i, began))
		}
	}
	return list
}
