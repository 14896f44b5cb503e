package retryjob_test

import (
	"context"
	"iter"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/retrygo/retry/retryjob"
)

func TestAnEndedContextReadsAndChangesNothing(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		e := open(t, fixed(1, time.Hour), fail)
		put(t, e, "dead", 0)
		put(t, e, "waits", time.Hour)
		synctest.Wait()
		ended, cancel := context.WithCancel(t.Context())
		cancel()
		first := func(list iter.Seq2[retryjob.Info, error]) (err error) {
			for _, err = range list {
				break
			}
			return err
		}
		job := retryjob.Job{ID: "new", Kind: "work", Policy: "p"}
		for name, do := range map[string]func() error{
			"Get":         func() error { _, err := e.Get(ended, "dead"); return err },
			"List":        func() error { return first(e.List(ended, retryjob.Filter{})) },
			"Count":       func() error { _, err := e.Count(ended, retryjob.Filter{}); return err },
			"Replay":      func() error { return e.Replay(ended, "dead") },
			"ReplayAll":   func() error { _, err := e.ReplayAll(ended, retryjob.Filter{}); return err },
			"Cancel":      func() error { return e.Cancel(ended, "waits") },
			"Purge":       func() error { _, err := e.Purge(ended, retryjob.Filter{}); return err },
			"Enqueue":     func() error { _, err := e.Enqueue(ended, job); return err },
			"EnqueueMany": func() error { _, err := e.EnqueueMany(ended, []retryjob.Job{job}); return err },
		} {
			require.ErrorIs(t, do(), context.Canceled, name)
			require.Equal(t, retryjob.DeadLettered, get(t, e, "dead").Status, name)
			require.Equal(t, retryjob.Pending, get(t, e, "waits").Status, name)
			_, err := e.Get(context.Background(), "new")
			require.ErrorIs(t, err, retryjob.ErrUnknownJob, name)
		}
		shutdown(t, e)
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
			counts, err := e.Count(t.Context(), retryjob.Filter{})
			require.NoError(t, err)
			require.Equal(t, 1, counts[retryjob.Pending].Jobs)
		}
		handles, err := e.EnqueueMany(t.Context(), []retryjob.Job{job("one"), job(""), job("two")})
		require.NoError(t, err)
		require.Equal(t, "one", handles[0].ID())
		require.Equal(t, "two", handles[2].ID())
		for _, h := range handles {
			i, err := h.Inspect(t.Context())
			require.NoError(t, err)
			require.Equal(t, h.ID(), i.JobID)
			require.Equal(t, retryjob.Pending, i.Status)
		}
		require.Len(t, shutdown(t, e), 4)
		_, err = e.EnqueueMany(t.Context(), []retryjob.Job{job("three")})
		require.ErrorIs(t, err, retryjob.ErrShutdown)
	})
}
