package retryjob

import (
	"cmp"
	"context"
	"slices"
	"sync"
)

// Shutdown takes no more jobs and replays, starts no more attempts and waits for those under way. When ctx ends, their
// contexts end with ErrShutdown as the cause; they are waited for still, so that a handler that ignores its context holds
// Shutdown up, and those that fail then count as not made.
//
// It returns all jobs that are not final, in the order in which they were due, for the caller to persist or discard, and
// ctx's error if ctx ended attempts. Wait returns ErrShutdown for each of them. A second Shutdown waits for
// the first one's end, can cut it short by its own ctx, and returns the same slice. The engine's other methods go on working on
// what it held; nothing is removed any more but by their calls.
func (e *Engine) Shutdown(ctx context.Context) (left []Info, err error) {
	if e.stopping.CompareAndSwap(false, true) {
		for _, l := range e.lanes {
			l.stop()
		}
		for j := range e.all(Pending, WaitingRetry) { // a handler may wait for one of them, and Shutdown for the handler
			j.tell(e.clock, ErrShutdown)
		}
		go e.stop()
	}
	select {
	case <-e.stopped:
	case <-ctx.Done():
		e.cutShort(ctx.Err())
		<-e.stopped
	}
	return e.left, e.cut
}

// cutShort ends the attempts under way.
func (e *Engine) cutShort(err error) {
	l := e.lanes[""] // for e.cut
	l.mu.Lock()
	defer l.mu.Unlock()
	for j := range e.all(Leased) {
		e.cut = cmp.Or(e.cut, err)
		j.live.context().cancel(ErrShutdown)
	}
}

// stop keeps the lane from starting anything more.
func (l *lane) stop() {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.stopping = true
	if l.timer != nil {
		l.timer.Stop()
	}
}

// stop ends the engine once no worker is left.
func (e *Engine) stop() {
	if e.sweeper != nil {
		e.sweeper.Stop()
	}
	e.working.Wait()
	var left []turn
	for j := range e.all(Pending, WaitingRetry) {
		left = append(left, turn{j.at, j.changed, j})
	}
	slices.SortFunc(left, func(a, b turn) int { return cmp.Or(cmp.Compare(a.due, b.due), cmp.Compare(a.changed, b.changed)) })
	e.left = make([]Info, len(left))
	var all sync.WaitGroup
	const part = 10_000
	for start := 0; start < len(left); start += part {
		all.Go(func() {
			for i := start; i < min(start+part, len(left)); i++ {
				e.left[i], _ = e.infoAt(place{left[i].changed, left[i].job})
			}
		})
	}
	all.Wait()
	e.left = slices.DeleteFunc(e.left, func(i Info) bool { return i.JobID == "" }) // canceled meanwhile
	close(e.stopped)
}
