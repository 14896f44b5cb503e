package retryjob

import (
	"context"
	"slices"
	"sync/atomic"
)

// Shutdown takes no more jobs and replays, starts no more attempts and waits for those under way. When ctx ends, their
// contexts end with ErrShutdown as the cause; they are waited for still, so that a handler that ignores its context
// holds Shutdown up, and those that fail then count as not made.
//
// It returns all jobs that are not final, in the order in which they were due, for the caller to persist or discard,
// and ctx's error if ctx ended attempts. Wait returns ErrShutdown for each of them. A second Shutdown waits for the
// first one's end, can cut it short by its own ctx, and returns the same slice. The engine's other methods go on
// working on what it held; nothing is removed any more but by their calls.
func (e *Engine) Shutdown(ctx context.Context) (left []Info, err error) {
	if e.stopping.CompareAndSwap(false, true) {
		for _, l := range e.lanes {
			l.mu.Lock() // from here on its workers leave
			if l.timer != nil {
				l.timer.Stop()
			}
			l.mu.Unlock()
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
	if cut := e.cut.Load(); cut != nil {
		err = *cut
	}
	return e.left, err
}

// cutShort ends the attempts under way.
func (e *Engine) cutShort(err error) {
	e.each(func(j *job) {
		e.cut.CompareAndSwap(nil, &err)
		j.attempt.context().cancel(ErrShutdown)
	}, Leased)
}

// stop ends the engine once no worker is left.
func (e *Engine) stop() {
	e.mu.Lock()
	if e.sweeper != nil {
		e.sweeper.Stop()
	}
	e.mu.Unlock()
	e.working.Wait()
	left := e.waiting()
	e.left = make([]Info, len(left))
	const part = 1000
	var canceled atomic.Bool // one of them meanwhile
	parallel((len(left)+part-1)/part, func(n int) {
		var histories room
		for i := n * part; i < min((n+1)*part, len(left)); i++ {
			j := left[i].job
			s := e.lock(j)
			if j.waits() {
				e.left[i].History = histories.take(j)
				j.info(&e.left[i], e.clock)
			} else {
				canceled.Store(true)
			}
			s.mu.Unlock()
		}
	})
	if canceled.Load() {
		e.left = slices.DeleteFunc(e.left, func(i Info) bool { return i.JobID == "" })
	}
	close(e.stopped)
}

// waiting returns the turns of the jobs that wait when the last worker has left.
func (e *Engine) waiting() (turns agenda) {
	e.each(func(*job) {}) // an Enqueue that was let in has ended then
	for _, l := range e.lanes {
		l.mu.Lock()
		due := l.due
		turns, l.later, l.due = append(l.later, turns...), nil, [len(due)]line{}
		l.mu.Unlock()
		for _, line := range due {
			for line.first != nil {
				j := line.pop()
				s := e.lock(j)
				turns = append(turns, turn{j.at, j.changed, j})
				s.mu.Unlock()
			}
		}
	}
	slices.SortFunc(turns, turn.compare)
	return turns
}
