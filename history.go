package retry

import (
	"context"
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

func (f *failure) attempt(number int, class Class, began time.Time) Attempt {
	return Attempt{number, began.Add(f.start), f.duration, class, f.err, f.delay}
}

// history is what is kept of the failures of one run: the first and the newest.
type history struct {
	first        failure
	oldest, last *retried // of the retries that are kept
}

// retried is a retry: its context, and how it failed. They are in one piece for BenchmarkRetries.
type retried struct {
	attempt.Numbered
	failure
	next *retried
}

// context returns ctx with the number of an attempt, from 1 and one more each time. An unmarked ctx says 1 already.
func (h *history) context(ctx context.Context, number int) context.Context {
	if number == 1 {
		if attempt.Number(ctx) == 0 {
			return ctx
		}
		return &attempt.Numbered{Context: ctx, Number: 1}
	}
	r := &retried{Numbered: attempt.Numbered{Context: ctx, Number: number}}
	if h.last == nil {
		h.oldest = r
	} else {
		h.last.next = r
	}
	h.last = r
	return &r.Numbered
}

// note returns the place of the failure with the given number, which is that of the last context.
func (h *history) note(number int) *failure {
	if number == 1 {
		return &h.first
	}
	if number > 1+maxNewest {
		h.oldest = h.oldest.next
	}
	return &h.last.failure
}

// attempts fills list with the newest of n failures, after the first one, in a run that began at the given time, as
// attempts that were repeated. It allocates nothing, and so needs little of a small stack (BenchmarkWaiterCancel of
// bench).
func (h *history) attempts(list []Attempt, n int, began time.Time) {
	retry := h.oldest
	for i := range list {
		if i == 0 {
			list[i] = h.first.attempt(1, Retryable, began)
			continue
		}
		list[i] = retry.attempt(n-len(list)+1+i, Retryable, began)
		retry = retry.next
	}
}
