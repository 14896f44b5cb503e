package jobtest

import (
	"context"
	"slices"
	"sync"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/retrygo/retry"
	"github.com/retrygo/retry/retryjob"
)

// suspending has the claims about durable engines and a worker that was suspended for longer than it may have a job, and goes
// on.
var suspending = []scenario{
	overtaken("succeeds late, and the second attempt has failed", false, errFlaky),
	overtaken("succeeds late, and the second attempt has succeeded", false, nil),
	overtaken("obeys its context, and the second attempt has failed", true, errFlaky),
	overtaken("obeys its context, and the second attempt has succeeded", true, nil),

	{claim: "what a suspended worker returns while another one has the job changes its own line only", needs: aSuspension, play: func(s *stage) {
		begun, release := make(chan struct{}, 1), make(chan struct{})
		free := sync.OnceFunc(func() { close(release) })
		a := s.suspendIn("late", false, func(context.Context) error {
			begun <- struct{}{}
			<-release // even after its AttemptTimeout, on a slow machine
			return nil
		})
		s.t.Cleanup(free)
		receive(s, begun, "the second attempt")
		a.goOn()
		i := s.lateLine("late")
		require.Equal(s.t, retryjob.Leased, i.Status)
		free()
		i = s.ends("late", retryjob.Succeeded, 0, 2)
		require.True(s.t, i.History[0].Late)
		require.False(s.t, i.History[1].Late)
	}},

	forgotten("a later life of its job", func(s *stage) {
		require.NoError(s.t, s.q.Replay(s.t.Context(), "again"))
		s.until("again", "is replayed", func(i retryjob.Info) bool { return i.Status.Final() && i.Replays == 1 })
	}),
	forgotten("another job with the ID of its own", func(s *stage) {
		_, err := s.q.Purge(s.t.Context(), retryjob.Filter{})
		require.NoError(s.t, err)
		s.put(retryjob.Job{ID: "again", Kind: kind, Policy: "p", Due: time.Now().Add(999 * s.unit)})
	}),
}

// forgotten is the scenario of a suspended worker that returns after its job has ended and another job has its ID.
func forgotten(what string, replace func(s *stage)) scenario {
	return scenario{claim: "what a suspended worker returns does not reach " + what, needs: aSuspension, play: func(s *stage) {
		a := s.suspendIn("again", false, func(context.Context) error { return errFlaky })
		s.final("again")
		replace(s)
		before := s.get("again")
		a.goOn()
		s.pass(2 * s.unit)
		require.Equal(s.t, asJSON(s, before), asJSON(s, s.get("again")))
	}}
}

// overtaken is the scenario of a suspended worker that returns after another one has ended the job with the result of a second attempt.
func overtaken(does string, obeys bool, second error) scenario {
	return scenario{claim: "a suspended worker changes its own line only: it " + does, needs: aSuspension, play: func(s *stage) {
		a := s.suspendIn("late", obeys, func(context.Context) error { return second })
		before := s.final("late")
		require.Equal(s.t, 2, before.Attempts)
		require.Equal(s.t, retryjob.ErrLost.Error(), before.History[0].Err)
		a.goOn()
		after := s.lateLine("late")
		require.Equal(s.t, obeys, after.History[0].Err != "")
		before.History[0] = after.History[0]
		require.Equal(s.t, asJSON(s, before), asJSON(s, after))
		if second == nil {
			return
		}
		require.Equal(s.t, []any{retryjob.DeadLettered, retry.AttemptsExhausted}, []any{after.Status, after.Reason})
		require.Equal(s.t, []string{"late"}, ids(s, s.q.List(s.t.Context(), dead(retryjob.Filter{}))))
		require.NoError(s.t, s.q.Replay(s.t.Context(), "late"))
		i := s.until("late", "is replayed", func(i retryjob.Info) bool { return i.Status.Final() })
		require.Equal(s.t, 1, i.Replays)
	}}
}

// suspended is a worker in the first attempt of a job.
type suspended struct {
	s        *stage
	obeys    bool // its attempt ends with its context, after two units
	resume   func()
	release  chan struct{} // ends the attempt with success
	returned chan struct{} // closed when it has ended
}

// goOn has the worker go on, and its attempt end.
func (a *suspended) goOn() {
	if a.obeys {
		a.s.pass(3 * a.s.unit)
	}
	a.resume()
	if !a.obeys {
		close(a.release)
	}
	receive(a.s, a.returned, "the end of the late attempt")
}

// suspendIn enqueues a job and suspends its worker in the first attempt, which ends with its context if it obeys that.
// second makes the second attempt, that of the engine that is now the scenario's, and attempts of a replay succeed.
func (s *stage) suspendIn(id string, obeys bool, second func(ctx context.Context) error) *suspended {
	s.t.Helper()
	a := &suspended{s: s, obeys: obeys, release: make(chan struct{}), returned: make(chan struct{})}
	begun := make(chan struct{}, 1)
	p := fixed(2, short)
	p.AttemptTimeout = 2 * s.unit
	s.open(policies{"p": p}, func(ctx context.Context, job retryjob.Job) error {
		switch info, _ := retryjob.AttemptFrom(ctx); {
		case info.Replays > 0:
			return nil
		case info.Number > 1:
			return second(ctx)
		}
		defer close(a.returned)
		begun <- struct{}{}
		if obeys {
			<-ctx.Done()
			return ctx.Err()
		}
		<-a.release
		return nil
	})
	s.enqueue(id, "p")
	receive(s, begun, "the attempt")
	s.q, a.resume = s.h.Suspend(s.t, s.q)
	return a
}

// lateLine waits until the first attempt of a job is marked as late.
func (s *stage) lateLine(id string) retryjob.Info {
	s.t.Helper()
	i := s.until(id, "has a late attempt", func(i retryjob.Info) bool {
		return slices.ContainsFunc(i.History, func(a retryjob.Attempt) bool { return a.Late })
	})
	first := i.History[0]
	require.True(s.t, first.Late)
	require.Equal(s.t, 1, first.Number)
	require.False(s.t, first.End.Before(first.Start))
	require.Equal(s.t, retryjob.WaitingRetry, first.Status, "what it made of the job is what its loss did")
	return i
}
