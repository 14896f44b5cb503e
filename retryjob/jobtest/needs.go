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
		i := s.until(soon, "patient", "is put off", func(i retryjob.Info) bool { return i.Due.After(i.Last().Due.Add(time.Second)) })
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

	{claim: "a Spec and a TTL beyond the limits are refused, with each of their faults", play: func(s *stage) {
		var d diary
		named := retryjob.FromMap(policies{"p": fixed(3, short)})
		s.openWith(retryjob.Options{
			Policies: named.Within(retryconf.Limits{MaxAttempts: 5, MaxTTL: 10 * s.unit}),
			Handlers: map[string]retryjob.Handler{kind: d.script()},
		})
		_, err := s.q.Enqueue(s.t.Context(), retryjob.Job{ID: "greedy", Kind: kind, Policy: "p", TTL: 11 * s.unit, Spec: &retryconf.Spec{MaxAttempts: 6}})
		require.ErrorContains(s.t, err, "Job.Spec.max_attempts 6 is outside 1 to 5")
		require.ErrorContains(s.t, err, "Job.TTL 11")
		_, err = s.q.Enqueue(s.t.Context(), retryjob.Job{ID: "lasting", Kind: kind, Policy: "p", TTL: 11 * s.unit})
		require.ErrorContains(s.t, err, "Job.TTL ")
		s.put(retryjob.Job{ID: "modest", Kind: kind, Policy: "p", TTL: 10 * s.unit, Spec: &retryconf.Spec{MaxAttempts: 5}})
		require.Equal(s.t, retryjob.Succeeded, s.final("modest").Status)
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

	{claim: "of the jobs that are due, those with the lowest Priority number start first", play: func(s *stage) {
		var d diary
		begun, release := make(chan struct{}), make(chan struct{})
		s.openWith(retryjob.Options{
			Policies: retryjob.FromMap(policies{"p": fixed(1, short)}), Concurrency: 1,
			Handlers: map[string]retryjob.Handler{
				kind:    d.script(),
				"block": wait(begun, release),
			},
		})
		s.put(retryjob.Job{ID: "block", Kind: "block", Policy: "p"})
		receive(s, begun, "the first attempt")
		for _, priority := range []int{4, 2, 0, 3} {
			s.put(retryjob.Job{ID: fmt.Sprint(priority), Kind: kind, Policy: "p", Priority: priority})
		}
		close(release)
		s.final("4")
		var order []string
		for _, made := range d.all() {
			order = append(order, made.JobID)
		}
		require.Equal(s.t, []string{"0", "2", "3", "4"}, order)
	}},

	{claim: "a queue has workers of its own, and holds up no other queue", play: func(s *stage) {
		var d diary
		var running, most atomic.Int32
		begun, release, meet := make(chan struct{}, 3), make(chan struct{}), make(chan struct{})
		s.openWith(retryjob.Options{
			Policies: retryjob.FromMap(policies{"p": fixed(1, short)}), Concurrency: 1, Queues: map[string]int{"narrow": 1, "default": 2},
			Handlers: map[string]retryjob.Handler{
				kind: d.script(),
				"alone": func(ctx context.Context, _ retryjob.Job) error {
					most.Store(max(most.Load(), running.Add(1)))
					defer running.Add(-1)
					begun <- struct{}{}
					select {
					case <-release:
					case <-ctx.Done():
					}
					return nil
				},
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
		require.Equal(s.t, int32(1), most.Load())
	}},

	{claim: "a budget by the job's key refuses the retries of that key alone", play: func(s *stage) {
		var d diary
		budgets := retry.NewBudgets(retry.BudgetConfig{Ratio: -1}, 10)
		named := retryjob.FromMap(policies{"p": fixed(2, short)})
		s.openWith(retryjob.Options{
			Policies: func(j *retryjob.Job) (retry.Policy, error) {
				p, err := named(j)
				p.Budget = budgets.For(j.BudgetKey)
				return p, err
			},
			Handlers: map[string]retryjob.Handler{kind: d.always(errFlaky)},
		})
		for _, row := range []struct {
			id, key string
			reason  retry.Reason
		}{{"a1", "a", retry.AttemptsExhausted}, {"a2", "a", retry.BudgetExhausted}, {"b1", "b", retry.AttemptsExhausted}} {
			s.put(retryjob.Job{ID: row.id, Kind: kind, Policy: "p", BudgetKey: row.key})
			require.Equal(s.t, row.reason, s.final(row.id).Reason, row.id)
		}
	}},
}
