package jobtest

import (
	"cmp"
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
	{claim: "a job's Spec goes over its policy, field by field, also after a replay", play: func(s *stage) {
		var d diary
		p := fixed(5, s.unit/10)
		p.TTL = 30 * s.unit
		s.open(policies{"p": p}, d.always(errFlaky))
		s.put(retryjob.Job{ID: "own", Kind: kind, Policy: "p", Spec: &retryconf.Spec{MaxAttempts: 2}})
		s.put(retryjob.Job{ID: "other", Kind: kind, Policy: "p"})
		i := s.final("own")
		require.Equal(s.t, 2, i.Attempts)
		require.Equal(s.t, s.unit/10, i.History[0].Due.Sub(i.History[0].End))
		require.Equal(s.t, &retryconf.Spec{MaxAttempts: 2}, i.Spec)
		require.NoError(s.t, s.q.Replay(s.t.Context(), "own"))
		require.Equal(s.t, 2, s.final("own").Attempts)
		require.Equal(s.t, 5, s.final("other").Attempts)
	}},

	{claim: "a job whose policy cannot be found at the moment is put off, and keeps its attempts", play: func(s *stage) {
		var d diary
		var down atomic.Bool
		known := retryjob.FromMap(policies{"p": fixed(3, s.unit)})
		s.openWith(retryjob.Options{Handlers: map[string]retryjob.Handler{kind: d.always(errFlaky)}, Policies: func(j *retryjob.Job) (retry.Policy, error) {
			if down.Load() {
				return retry.Policy{}, errors.New("the catalog does not answer")
			}
			return known(j)
		}})
		s.enqueue("patient", "p")
		s.reaches("patient", retryjob.WaitingRetry)
		down.Store(true)
		failed := time.Now()
		i := s.until("patient", "is put off", func(i retryjob.Info) bool { return i.Due.After(i.Last().Due.Add(time.Second)) })
		require.Equal(s.t, retryjob.WaitingRetry, i.Status)
		require.Equal(s.t, 1, i.Attempts)
		require.WithinRange(s.t, i.Due, failed.Add(retryjob.PutOff), time.Now().Add(retryjob.PutOff+time.Second))
	}},

	{claim: "a job with a Spec needs no policy", play: func(s *stage) {
		var d diary
		s.open(nil, d.always(errFlaky))
		spec := &retryconf.Spec{Delays: []retryconf.Delay{retryconf.Delay(s.unit / 4), retryconf.Delay(s.unit / 2)}, Jitter: 1} // none, given
		s.put(retryjob.Job{ID: "alone", Kind: kind, Spec: spec})
		i := s.final("alone")
		require.Equal(s.t, 3, i.Attempts)
		for n, delay := range spec.Delays {
			require.Equal(s.t, time.Duration(delay), i.History[n].Due.Sub(i.History[n].End))
		}
		require.Equal(s.t, spec, i.Spec)
		require.Equal(s.t, spec, d.all()[0].job.Spec)
	}},

	{claim: "a job's TTL goes over its Spec's, and may be below its AttemptTimeout", play: func(s *stage) {
		var d diary
		p := fixed(retry.Unlimited, s.unit/2)
		p.AttemptTimeout = 20 * s.unit
		s.open(policies{"p": p}, d.always(errFlaky))
		s.put(retryjob.Job{ID: "brief", Kind: kind, Policy: "p", TTL: s.unit, Spec: &retryconf.Spec{TTL: retryconf.Duration(30 * s.unit)}})
		i := s.final("brief")
		require.Equal(s.t, retryjob.Expired, i.Status)
		require.Equal(s.t, retry.TTLElapsed, i.Reason)
		require.Equal(s.t, s.unit, i.TTL)
	}},

	{claim: "what a job says of itself comes back, with its attempts and after a replay", play: func(s *stage) {
		var d diary
		s.open(policies{"p": fixed(1, short)}, d.always(errFlaky))
		job := retryjob.Job{
			ID: "whole", Kind: kind, Policy: "p", TTL: 20 * s.unit, BudgetKey: "acme/orders", Queue: "default", Priority: 3, Tags: []string{"bulk", "eu-west"},
			Correlation: "trace",
		}
		s.put(job)
		s.final("whole")
		require.NoError(s.t, s.q.Replay(s.t.Context(), "whole"))
		i := s.final("whole")
		for _, made := range d.all() {
			require.Equal(s.t, kind, made.Kind)
			require.Equal(s.t, "default", cmp.Or(made.job.Queue, "default"))
			require.False(s.t, made.job.Due.IsZero())
			made.job.Due, made.job.Queue = time.Time{}, job.Queue
			require.Equal(s.t, job, made.job)
		}
		require.Len(s.t, d.all(), 2)
		require.Equal(s.t, []any{kind, job.TTL, job.BudgetKey, job.Priority, job.Tags}, []any{i.Kind, i.TTL, i.BudgetKey, i.Priority, i.Tags})
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
