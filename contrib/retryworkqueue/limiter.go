package retryworkqueue

import (
	"context"
	"errors"
	"maps"
	"math/rand/v2"
	"sync"
	"time"

	"github.com/retrygo/retry"
	"github.com/retrygo/retry/retryshell"
)

// maxItems is the maximum number of runs in a Limiter, about 60 MB. A queue with more failing items has another problem.
const maxItems = 1 << 18

// small is a number of runs whose memory is not worth giving back.
const small = 1 << 10

// Limiter keeps the runs of a queue's items, a few numbers for each. It is safe for concurrent use. A run is dropped
// when it ends, and by Forget. Beyond 262,144 runs, each new run replaces another one. New makes a Limiter. The zero
// Limiter is not usable.
type Limiter[T comparable] struct {
	policy retry.Policy

	mu   sync.Mutex
	runs map[T]run
	most int // of runs since the map was made, which does not shrink
}

type run struct {
	began    time.Time
	progress retry.Progress
	delay    time.Duration // of the decision, for When
	decided  bool
	open     bool // an attempt has begun without a decision, so it panicked
	queued   int  // the number of calls of When without an attempt
	paid     bool // the budget has been charged for the next attempt
}

// New returns a Limiter for one queue. If p does not validate, New returns the errors.
func New[T comparable](p retry.Policy) (*Limiter[T], error) {
	if err := p.Validate(); err != nil {
		return nil, err
	}
	return &Limiter[T]{policy: p, runs: map[T]run{}}, nil
}

// When returns the wait before an item is added to the queue again. After Attempt has decided, that is the
// delay of the decision. Otherwise it is the policy's wait for one more failure, however many there were. A queue does
// not pass the error or the time of the last attempt, and cannot be refused.
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
		r.delay = l.policy.Jittered(r.progress.Attempt-r.progress.Forgiven+r.queued, r.progress.Prev, l.draw())
		r.progress.Prev = r.delay
	}
	r.decided = false
	l.keep(item, r)
	return r.delay
}

// Forget drops the item's run. Its next failure is the first.
func (l *Limiter[T]) Forget(item T) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.drop(item)
}

// NumRequeues returns the number of failures of the item's run.
func (l *Limiter[T]) NumRequeues(item T) int {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.runs[item].progress.Attempt + l.runs[item].queued
}

// draw returns the random number for a wait's jitter.
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

// keep stores a run, and drops any other if there are too many.
func (l *Limiter[T]) keep(item T, r run) {
	if _, known := l.runs[item]; !known && len(l.runs) >= maxItems {
		for other := range l.runs {
			l.drop(other)
			break
		}
	}
	l.runs[item] = r
	l.most = max(l.most, len(l.runs))
}

// drop drops a run and refunds the retry that is not made.
func (l *Limiter[T]) drop(item T) {
	if l.runs[item].paid {
		l.policy.Budget.Refund()
	}
	delete(l.runs, item)
	if l.most > small && len(l.runs) <= l.most/4 {
		l.runs = maps.Collect(maps.All(l.runs)) // which is as large as its runs need
		l.most = len(l.runs)
	}
}

var errDeferred = errors.New("retryworkqueue: the gate defers the attempt")

// Attempt calls fn as the next attempt of an item's run and returns the decision. The same item must not be processed at
// the same time, which client-go's queues see to.
//
// If the decision is Waiting, the error is that of fn, or says that the gate defers the attempt. Add the item again, by
// AddAfter with the decision's Delay, or by AddRateLimited of a queue with this limiter. Otherwise the run has ended, and
// the error is nil for Succeeded or a *retry.Error, which has no History, and no Last if no attempt was made.
//
// TTL counts from the first attempt of the run. The deadline of ctx bounds only the attempt, not the run. A canceled
// ctx ends the run.
func (l *Limiter[T]) Attempt(ctx context.Context, item T, fn func(context.Context) error) (retry.Decision, error) {
	return l.attempt(ctx, item, false, fn)
}

// attempt is Attempt. If requeue is set, the queue may ask for a wait although the attempt succeeds, and otherwise
// forgets the item.
func (l *Limiter[T]) attempt(
	ctx context.Context, item T, requeue bool, fn func(context.Context) error,
) (retry.Decision, error) {
	a := attempt{policy: l.policy, start: time.Now()}
	if retryshell.IsOneAttempt(ctx) {
		a.policy.Disabled = true
	}
	l.mu.Lock()
	a.run = l.runs[item]
	l.mu.Unlock()
	if a.run.began.IsZero() {
		a.run.began = a.start
	}
	d := a.admit(ctx)
	if d.Status != retry.WaitingRetry {
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
	a.run.paid, a.run.decided = false, false // the attempt is made now, even if it panics
	a.run.open = true
	l.put(item, a.run)
	err := a.make(ctx, fn)
	d = a.decide(ctx, err, l.draw)
	if d.Status == retry.WaitingRetry {
		l.put(item, a.run)
		return d, err
	}
	l.mu.Lock()
	ended := l.runs[item]
	l.drop(item)
	if requeue && err == nil && ended.queued > 0 { // so that one more wait is longer than those
		l.keep(item, run{queued: ended.queued, progress: retry.Progress{Prev: ended.progress.Prev}})
	}
	l.mu.Unlock()
	return d, a.end(ctx, d, err)
}

func (l *Limiter[T]) put(item T, r run) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.keep(item, r)
}
