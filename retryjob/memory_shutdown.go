package retryjob

import (
	"cmp"
	"context"
	"slices"
)

// Shutdown takes no more jobs and replays, starts no more attempts and waits for those under way. When ctx ends, their
// contexts end with ErrShutdown as the cause; they are waited for still, so that a handler that ignores its context holds
// Shutdown up, and those that fail then count as not made.
//
// It returns all jobs that are not final, in the order in which they were due, for the caller to persist or discard, and
// ctx's error if ctx ended attempts. Wait returns ErrShutdown for each of them. A second Shutdown waits for
// the first one's end, can cut it short by its own ctx, and returns the same. The engine's other methods go on working on
// what it held; nothing ages out any more but by their calls.
func (e *Engine) Shutdown(ctx context.Context) (left []Info, err error) {
	e.mu.Lock()
	if !e.stopping {
		e.stopping = true
		if e.timer != nil {
			e.timer.Stop()
		}
		for _, s := range []Status{Pending, WaitingRetry} { // a handler may wait for one of them, and Shutdown for the handler
			for j := e.shelves[s].newest; j != nil; j = j.older {
				j.tell(e.info, ErrShutdown)
			}
		}
		if e.workers == 0 {
			e.stop()
		}
	}
	e.mu.Unlock()
	select {
	case <-e.stopped:
	case <-ctx.Done():
		e.cutShort(ctx.Err())
		<-e.stopped
	}
	return slices.Clone(e.left), e.cut
}

// cutShort ends the attempts under way.
func (e *Engine) cutShort(err error) {
	e.mu.Lock()
	defer e.mu.Unlock()
	for j := e.shelves[Leased].newest; j != nil; j = j.older {
		e.cut = cmp.Or(e.cut, err)
		j.live.cancel(ErrShutdown)
	}
}

// stop ends the engine once no worker is left.
func (e *Engine) stop() {
	var left []*job
	for _, s := range []Status{Pending, WaitingRetry} {
		for j := e.shelves[s].oldest; j != nil; j = j.newer {
			left = append(left, j)
		}
	}
	slices.SortFunc(left, func(a, b *job) int { return cmp.Or(cmp.Compare(a.at, b.at), cmp.Compare(a.seq, b.seq)) })
	e.left = make([]Info, len(left))
	for i, j := range left {
		e.left[i] = e.info(j)
	}
	close(e.stopped)
}
