package retryworkqueue

import (
	"context"
	"errors"
	"math/rand/v2"
	"sync"
	"time"

	"github.com/retrygo/retry"
)

// maxItems is how many runs a Limiter holds, about 60 MB of them. A queue that has more items in failure has another
// problem.
const maxItems = 1 << 18

// Limiter keeps the runs of a queue's items, of each a few numbers. It is safe for concurrent use. A run is dropped
// when it ends, and at Forget. Beyond 262,144 runs, another one is dropped for each that begins.
type Limiter[T comparable] struct {
	policy retry.Policy

	mu   sync.Mutex
	runs map[T]run
}

// run is what is kept of an item between two attempts.
type run struct {
	began    time.Time
	progress retry.Progress
	delay    time.Duration // what has been decided, for When
	decided  bool
	open     bool // an attempt has begun, and nothing was decided: it panicked
	queued   int  // how often When was asked without an attempt
	paid     bool // the budget has been charged for the next attempt
}

// New returns a Limiter for one queue. If p does not validate, New returns the errors.
func New[T comparable](p retry.Policy) (*Limiter[T], error) {
	if err := p.Validate(); err != nil {
		return nil, err
	}
	return &Limiter[T]{policy: p, runs: map[T]run{}}, nil
}

// When returns how long an item has to wait that a queue adds again. After Attempt has decided, that is the delay of
// the decision. Otherwise it is the policy's wait for one more failure, however many there were: a queue does not say
// which error there was, nor when the last attempt began, and cannot be refused.
func (l *Limiter[T]) When(item T) time.Duration {
	l.mu.Lock()
	defer l.mu.Unlock()
	r := l.runs[item]
	if !r.decided {
		if r.open {
			r.progress.Attempt, r.open = r.progress.Attempt+1, false
		} else {
			r.queued++
		}
		r.delay = l.policy.Jittered(r.progress.Attempt-r.progress.Since+r.queued, r.progress.Prev, l.draw())
		r.progress.Prev = r.delay
	}
	r.decided = false
	l.keep(item, r)
	return r.delay
}

// Forget drops the item's run: its next failure is the first.
func (l *Limiter[T]) Forget(item T) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.drop(item)
}

// NumRequeues returns how many failures of the item's run there were.
func (l *Limiter[T]) NumRequeues(item T) int {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.runs[item].progress.Attempt + l.runs[item].queued
}

// draw returns the number that chooses the point of a wait's window.
func (l *Limiter[T]) draw() float64 {
	switch {
	case l.policy.Jitter == retry.NoJitter:
		return 0
	case l.policy.Rand != nil:
		return l.policy.Rand()
	default:
		return rand.Float64()
	}
}

// keep stores a run, at the expense of any other if there are too many.
func (l *Limiter[T]) keep(item T, r run) {
	if _, known := l.runs[item]; !known && len(l.runs) >= maxItems {
		for other := range l.runs {
			l.drop(other)
			break
		}
	}
	l.runs[item] = r
}

// drop forgets a run and pays back the retry that is not made.
func (l *Limiter[T]) drop(item T) {
	if l.runs[item].paid {
		l.policy.Budget.Refund()
	}
	delete(l.runs, item)
}

var errDeferred = errors.New("retryworkqueue: the gate defers the attempt")

// Attempt makes the next attempt of an item, as the policy says, and returns what follows. A queue must not work on the
// item meanwhile, as client-go's do not.
//
// If the decision is Waiting, the item has to be added again, by AddAfter with its Delay or by AddRateLimited of the
// queue whose limiter this is; the error is then that of fn, or says that the gate defers the attempt. Otherwise the
// run has ended: the error is nil for Succeeded, and otherwise a *retry.Error with the Outcome, but without its
// History, and without Last if the run ended before an attempt.
//
// TTL counts from the first attempt of the run. The deadline of ctx is the attempt's own affair, not the run's. A
// canceled ctx ends the run.
func (l *Limiter[T]) Attempt(ctx context.Context, item T, fn func(context.Context) error) (retry.Decision, error) {
	a := attempt{policy: l.policy, start: time.Now()}
	if retry.IsOneAttempt(ctx) {
		a.policy.Disabled = true
	}
	l.mu.Lock()
	a.run = l.runs[item]
	l.mu.Unlock()
	if a.run.began.IsZero() {
		a.run.began = a.start
	}
	d := a.admit(ctx)
	if d.Status != retry.Waiting {
		l.Forget(item) // which pays back
		return d, a.end(ctx, d, nil)
	}
	if d.Delay > 0 {
		l.mu.Lock()
		defer l.mu.Unlock()
		a.run.paid = a.run.paid && l.runs[item].paid // Forget may have paid it back while the gate was asked
		a.run.delay, a.run.decided = d.Delay, true
		l.keep(item, a.run)
		return d, errDeferred
	}
	a.run.paid, a.run.decided, a.run.open = false, false, true // it is made now, also if it panics
	l.put(item, a.run)
	err := a.make(ctx, fn)
	d = a.decide(ctx, err, l.draw)
	if d.Status == retry.Waiting {
		l.put(item, a.run)
		return d, err
	}
	l.Forget(item)
	return d, a.end(ctx, d, err)
}

func (l *Limiter[T]) put(item T, r run) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.keep(item, r)
}
