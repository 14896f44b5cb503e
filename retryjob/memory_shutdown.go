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
// the first one's end, can cut it short by its own ctx, and returns the same slice. The engine's other methods go on working on
// what it held; nothing is removed any more but by their calls.
func (e *Engine) Shutdown(ctx context.Context) (left []Info, err error) {
	if e.stopping.CompareAndSwap(false, true) {
		for _, l := range e.lanes {
			l.stop()
		}
		close(e.halted) // a handler may wait for a job that waits, and Shutdown for the handler
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
	var parts [shards][]turn
	parallel(shards, func(i int) {
		for _, status := range []Status{Pending, WaitingRetry} {
			e.each(&e.shards[i], status, func(j *job) bool {
				parts[i] = append(parts[i], turn{j.at, j.changed, j})
				return true
			})
		}
	})
	left := slices.Concat(parts[:]...)
	slices.SortFunc(left, func(a, b turn) int {
		if a.before(&b) {
			return -1
		}
		return 1
	})
	e.left = make([]Info, len(left))
	const part = 1000
	parallel((len(left)+part-1)/part, func(n int) {
		for i := n * part; i < min((n+1)*part, len(left)); i++ {
			s := e.lock(left[i].job)
			if left[i].job.changed == left[i].changed {
				e.left[i] = left[i].job.info(e.clock)
			}
			s.mu.Unlock()
		}
	})
	e.left = slices.DeleteFunc(e.left, func(i Info) bool { return i.JobID == "" }) // canceled meanwhile
	close(e.stopped)
}
