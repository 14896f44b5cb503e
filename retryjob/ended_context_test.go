package retryjob_test

import (
	"context"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/retrygo/retry"
	"github.com/retrygo/retry/retryjob"
)

// calls are those of an engine with the jobs "dead" and "waits" that take a context.
func calls(e *retryjob.Engine, ctx context.Context) map[string]func() error {
	job := retryjob.Job{ID: "new", Kind: "work", Policy: "p"}
	return map[string]func() error{
		"Enqueue":     func() error { _, err := e.Enqueue(ctx, job); return err },
		"EnqueueMany": func() error { _, err := e.EnqueueMany(ctx, []retryjob.Job{job}); return err },
		"Get":         func() error { _, err := e.Get(ctx, "dead"); return err },
		"Count":       func() error { _, err := e.Count(ctx, retryjob.Filter{}); return err },
		"Cancel":      func() error { return e.Cancel(ctx, "waits") },
		"Replay":      func() error { return e.Replay(ctx, "dead") },
		"ReplayAll":   func() error { _, err := e.ReplayAll(ctx, retryjob.Filter{}); return err },
		"Purge":       func() error { _, err := e.Purge(ctx, retryjob.Filter{}); return err },
		"List": func() (err error) {
			for _, err = range e.List(ctx, retryjob.Filter{}) {
				break
			}
			return err
		},
	}
}

func TestAnEndedContextReadsAndChangesNothing(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		e := open(t, fixed(1, time.Hour), fail)
		put(t, e, "dead", 0)
		put(t, e, "waits", time.Hour)
		synctest.Wait()
		ended, cancel := context.WithCancel(t.Context())
		cancel()
		for name, call := range calls(e, ended) {
			require.ErrorIs(t, call(), context.Canceled, name)
			require.Equal(t, retryjob.DeadLettered, get(t, e, "dead").Status, name)
			require.Equal(t, retryjob.Pending, get(t, e, "waits").Status, name)
			_, err := e.Get(context.Background(), "new")
			require.ErrorIs(t, err, retryjob.ErrUnknownJob, name)
		}
	})
}

// TestANilContextIsAnError: of each call, also of those that an ended context does not stop.
func TestANilContextIsAnError(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var none context.Context
		e := open(t, retry.Policy{}, func(context.Context, retryjob.Job) error {
			<-time.After(time.Minute)
			return nil
		})
		h := put(t, e, "one", 0)
		synctest.Wait()
		all := calls(e, none)
		all["EnqueueMany, 0"] = func() error { _, err := e.EnqueueMany(none, nil); return err }
		all["Wait"] = func() error { _, err := e.Wait(none, "one"); return err }
		all["Handle.Inspect"] = func() error { _, err := h.Inspect(none); return err }
		all["Handle.Wait"] = func() error { _, err := h.Wait(none); return err }
		all["Shutdown"] = func() error { _, err := e.Shutdown(none); return err }
		for name, call := range all {
			require.EqualError(t, call(), "retryjob: ctx is nil", name)
		}
		require.Equal(t, retryjob.Succeeded, await(t, h).Status)
	})
}

// EnqueueMany takes all or none, and says which job it refuses.
func TestEnqueueManyTakesAllOrNone(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		e := open(t, fixed(1, time.Hour), succeed)
		put(t, e, "there", time.Hour)
		job := func(id string) retryjob.Job {
			return retryjob.Job{ID: id, Kind: "work", Policy: "p", Due: time.Now().Add(time.Hour)}
		}
		for _, row := range []struct {
			last retryjob.Job
			want error
			text string
		}{
			{job("there"), retryjob.ErrDuplicate, `retryjob: job 3 of 3: retryjob: a job with that ID is there already: "there"`},
			{job("one"), retryjob.ErrDuplicate, `retryjob: job 3 of 3: retryjob: a job with that ID is there already: "one"`},
			{retryjob.Job{ID: "x", Kind: "other", Policy: "p"}, retryjob.ErrUnknownKind, `retryjob: job 3 of 3: retryjob: Job.Kind "other": retryjob: unknown kind`},
		} {
			handles, err := e.EnqueueMany(t.Context(), []retryjob.Job{job("one"), job(""), row.last})
			require.ErrorIs(t, err, row.want)
			require.EqualError(t, err, row.text)
			require.Empty(t, handles)
			require.Equal(t, map[retryjob.Status]int{retryjob.Pending: 1}, count(t, e, retryjob.Filter{}))
		}
		shutdown(t, e)
		_, err := e.EnqueueMany(t.Context(), []retryjob.Job{job("three")})
		require.ErrorIs(t, err, retryjob.ErrShutdown)
	})
}
