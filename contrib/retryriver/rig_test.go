package retryriver_test

import (
	"context"
	"database/sql"
	"path/filepath"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/retrygo/retry"
	"github.com/retrygo/retry/contrib/retryriver"
	"github.com/retrygo/retry/retryjob"
)

// patience bounds the wait for an event of a real database. Tests go on when the event has come, so only a failure takes
// as long.
const patience = time.Minute

// catalog is the policies of most tests here.
var catalog = retryjob.FromMap(map[string]retry.Policy{
	"once":    {MaxAttempts: 1},
	"quick":   {MaxAttempts: 3, Backoff: retry.Backoff{Mode: retry.Fixed, Base: time.Millisecond}, AttemptTimeout: 5 * time.Second},
	"slow":    {AttemptTimeout: 2 * time.Minute},
	"endless": {MaxAttempts: retry.Unlimited, Backoff: retry.Backoff{Mode: retry.Fixed, Base: time.Millisecond}},
})

// fine is the options of an engine whose jobs succeed.
var fine = retryjob.Options{Policies: catalog, Handlers: map[string]retryjob.Handler{"kind": func(context.Context, retryjob.Job) error { return nil }}}

// newAdapter returns an Adapter with the catalog.
func newAdapter(t testing.TB) *retryriver.Adapter {
	t.Helper()
	a, err := retryriver.New(retryriver.Options{Policies: catalog})
	require.NoError(t, err)
	return a
}

// openSQLite opens a file as OpenSQLite does, until the test ends.
func openSQLite(t testing.TB, file string) *sql.DB {
	t.Helper()
	db, err := retryriver.OpenSQLite(t.Context(), file)
	require.NoError(t, err)
	t.Cleanup(func() { require.NoError(t, db.Close()) })
	return db
}

// newSQLite opens a new database.
func newSQLite(t testing.TB) *sql.DB {
	t.Helper()
	return openSQLite(t, filepath.Join(t.TempDir(), "jobs.db"))
}

// queue starts an engine on a file, which is closed when the test ends.
func queue(t testing.TB, file string, o retryjob.Options) *retryriver.Queue {
	t.Helper()
	q, err := retryriver.NewSQLite(t.Context(), file, o)
	require.NoError(t, err)
	t.Cleanup(func() { require.NoError(t, q.Close()) })
	return q
}

// both runs f with an engine on each database.
func both(t *testing.T, o retryjob.Options, f func(t *testing.T, q *retryriver.Queue)) {
	t.Run("SQLite", func(t *testing.T) { f(t, queue(t, filepath.Join(t.TempDir(), "jobs.db"), o)) })
	t.Run("PostgreSQL", func(t *testing.T) {
		q, err := retryriver.NewPostgres(t.Context(), newPostgres(t), o)
		require.NoError(t, err)
		t.Cleanup(func() { require.NoError(t, q.Close()) })
		f(t, q)
	})
}

// enqueue enqueues a job that is attempted once.
func enqueue(t *testing.T, q retryjob.Enqueuer, kind string) retryjob.Handle {
	t.Helper()
	h, err := q.Enqueue(t.Context(), retryjob.Job{Kind: kind, Policy: "once"})
	require.NoError(t, err)
	return h
}

// ended waits until a job has ended.
func ended(t *testing.T, h retryjob.Handle) retryjob.Info {
	t.Helper()
	i, err := h.Wait(t.Context())
	require.NoError(t, err)
	return i
}
