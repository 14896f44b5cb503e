package jobtest

import (
	"context"
	"errors"
	"fmt"
	"sync/atomic"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/retrygo/retry"
	"github.com/retrygo/retry/retryconf"
	"github.com/retrygo/retry/retryjob"
)

// needs has the claims about the settings of a job.
var needs = []scenario{
	{claim: "a job's Spec goes over its policy, field by field, and its TTL over both, also after a replay, and a Spec needs no policy", play: func(s *stage) {
		var d diary
		p := fixed(5, s.unit/10)
		p.TTL, p.AttemptTimeout = 30*s.unit, 20*s.unit // which may be above the job's TTL
		s.open(policies{"p": p}, d.always(errFlaky))
		delays := []retryconf.Delay{retryconf.Delay(s.unit / 4), retryconf.Delay(s.unit / 2)}
		jobs := map[string]retryjob.Job{
			"own":   {Policy: "p", Spec: &retryconf.Spec{MaxAttempts: 2}},
			"other": {Policy: "p"},
			"alone": {Spec: &retryconf.Spec{Delays: delays, Jitter: retryconf.NoJitter}},
			"brief": {Policy: "p", TTL: s.unit, Spec: &retryconf.Spec{MaxAttempts: retry.Unlimited, TTL: retryconf.Duration(30 * s.unit)}},
		}
		for id, job := range jobs {
			job.ID, job.Kind = id, kind
			s.put(job)
		}
		i := s.ends("own", retryjob.DeadLettered, retry.AttemptsExhausted, 2)
		require.Equal(s.t, s.unit/10, i.History[0].Due.Sub(i.History[0].End))
		require.NoError(s.t, s.q.Replay(s.t.Context(), "own"))
		s.ends("own", retryjob.DeadLettered, retry.AttemptsExhausted, 2)
		s.ends("other", retryjob.DeadLettered, retry.AttemptsExhausted, 5)
		i = s.ends("alone", retryjob.DeadLettered, retry.AttemptsExhausted, 3)
		for n, delay := range delays {
			require.Equal(s.t, time.Duration(delay), i.History[n].Due.Sub(i.History[n].End))
		}
		i = s.final("brief")
		require.Equal(s.t, []any{retryjob.Expired, retry.TTLElapsed}, []any{i.Status, i.Reason})
		for id, job := range jobs {
			i := s.get(id)
			require.Equal(s.t, []any{job.Spec, job.TTL}, []any{i.Spec, i.TTL})
		}
		for _, made := range d.all() {
			require.Equal(s.t, jobs[made.JobID].Spec, made.job.Spec)
		}
	}},

	{claim: "a job whose policy cannot be found at the moment is put off, and keeps its attempts", play: func(s *stage) {
		var d diary
		var down atomic.Bool
		known := retryjob.FromMap(policies{"p": fixed(3, s.unit)})
		fails := func(ctx context.Context, job retryjob.Job) error {
			d.note(ctx, job)
			down.Store(true) // here, since the next attempt may begin before the test looks
			return errFlaky
		}
		failed := time.Now()
		s.openWith(retryjob.Options{Handlers: map[string]retryjob.Handler{kind: fails}, Policies: func(j *retryjob.Job) (retry.Policy, error) {
			if down.Load() {
				return retry.Policy{}, errors.New("the catalog does not answer")
			}
			return known(j)
		}})
		s.enqueue("patient", "p")
		i := s.until("patient", "is put off", func(i retryjob.Info) bool { return i.Attempts > 0 && i.Due.After(i.Last().Due.Add(time.Second)) })
		require.Equal(s.t, []any{retryjob.WaitingRetry, 1}, []any{i.Status, i.Attempts})
		require.WithinRange(s.t, i.Due, failed.Add(retryjob.PutOff), time.Now().Add(retryjob.PutOff+time.Second))
	}},

	{claim: "a queue has workers of its own, and holds up no other queue", play: func(s *stage) {
		var d diary
		begun, release, meet := make(chan struct{}, 3), make(chan error), make(chan struct{})
		s.openWith(retryjob.Options{
			Policies: retryjob.FromMap(policies{"p": s.held(fixed(1, short))}), Concurrency: 1, Queues: map[string]int{"narrow": 1, "default": 2},
			Handlers: map[string]retryjob.Handler{
				kind:    d.script(),
				"alone": wait(begun, release),
				"pair": func(ctx context.Context, _ retryjob.Job) error { // ends only beside another one
					select {
					case meet <- struct{}{}:
					case <-meet:
					case <-ctx.Done():
					}
					return ctx.Err()
				},
			},
		})
		for n := range 3 {
			s.put(retryjob.Job{ID: fmt.Sprint("alone", n), Kind: "alone", Policy: "p", Queue: "narrow"})
		}
		receive(s, begun, "the first attempt")
		s.put(retryjob.Job{ID: "one", Kind: "pair", Policy: "p", Queue: "default"})
		s.put(retryjob.Job{ID: "other", Kind: "pair", Policy: "p"})
		for _, id := range []string{"one", "other"} {
			require.Equal(s.t, retryjob.Succeeded, s.final(id).Status)
		}
		require.Empty(s.t, begun)
		close(release)
		for n := range 3 {
			require.Equal(s.t, retryjob.Succeeded, s.final(fmt.Sprint("alone", n)).Status)
		}
	}},
}
