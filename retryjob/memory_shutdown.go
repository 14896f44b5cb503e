package retryjob

import (
	"context"
	"slices"
)

// Shutdown implements Queue. It returns the jobs of a queue in the order in which they were to start, for the caller to
// persist or discard; Wait returns ErrShutdown for each of them. A second Shutdown waits for the first, ends attempts
// when its own ctx ends, and returns the same slice. Only calls of the other methods remove jobs from then on.
func (e *Engine) Shutdown(ctx context.Context) (left []Info, err error) {
	if ctx == nil {
		return nil, errNoContext
	}
	if e.stopping.CompareAndSwap(false, true) {
		for _, l := range e.lanes {
			l.mu.Lock() // its workers leave from now on
			if l.timer != nil {
				l.timer.Stop()
			}
			l.mu.Unlock()
		}
		if e.endRecurring != nil {
			e.endRecurring()
		}
		close(e.halted) // a handler that Shutdown waits for may wait for another job
		go e.stop()
	}
	select {
	case <-e.stopped:
	case <-ctx.Done():
		cause := ctx.Err()
		e.each(&Filter{}, []Status{Leased}, 0, func(j *job) {
			e.cut.CompareAndSwap(nil, &cause)
			j.attempt.cancel(ErrShutdown)
		})
		<-e.stopped
	}
	if cut := e.cut.Load(); cut != nil {
		err = *cut
	}
	return e.left, err
}

// stop sets left once no worker is left.
func (e *Engine) stop() {
	e.mu.Lock()
	if e.sweeper != nil {
		e.sweeper.Stop()
	}
	e.mu.Unlock()
	e.working.Wait()
	for i := range e.shards { // calls of Enqueue that began before Shutdown hold one
		e.shards[i].mu.Lock()
		//lint:ignore SA2001 they are waited for
		e.shards[i].mu.Unlock()
	}
	var turns agenda
	for _, l := range e.lanes {
		l.mu.Lock()
		turns = append(l.later, turns...)
		for _, line := range l.due {
			for j := line.first; j != nil; j = j.next { // due jobs first, in the order of their lines
				turns = append(turns, turn{0, uint64(len(turns)), j})
			}
		}
		l.later, l.due = nil, [len(l.due)]line{}
		l.mu.Unlock()
	}
	slices.SortFunc(turns, turn.compare)
	for _, turn := range turns {
		s := e.lock(turn.job)
		if turn.job.waits() { // it has not been canceled meanwhile
			var i Info
			turn.job.info(&i, e.clock)
			e.left = append(e.left, i)
		}
		s.mu.Unlock()
	}
	close(e.stopped)
}
