package retryriver_test

import (
	"context"
	"database/sql"
	"testing"

	"github.com/jackc/pgx/v5/pgxpool"
	"github.com/stretchr/testify/require"

	"github.com/retrygo/retry/contrib/retryriver"
	"github.com/retrygo/retry/retryjob"
)

// TestANilContextIsAnError: database/sql panics over it with its lock held, so that each later call would block.
func TestANilContextIsAnError(t *testing.T) {
	var none context.Context
	both(t, fine, func(t *testing.T, q *retryriver.Queue) {
		job := retryjob.Job{ID: "one", Kind: "kind", Policy: "once"}
		for name, call := range map[string]func() error{
			"Enqueue":        func() error { _, err := q.Enqueue(none, job); return err },
			"EnqueueMany":    func() error { _, err := q.EnqueueMany(none, []retryjob.Job{job}); return err },
			"EnqueueMany, 0": func() error { _, err := q.EnqueueMany(none, nil); return err },
			"Get":            func() error { _, err := q.Get(none, "one"); return err },
			"Wait":           func() error { _, err := q.Wait(none, "one"); return err },
			"Count":          func() error { _, err := q.Count(none, retryjob.Filter{}); return err },
			"Count of IDs":   func() error { _, err := q.Count(none, retryjob.Filter{IDs: []string{"one"}}); return err },
			"Cancel":         func() error { return q.Cancel(none, "one") },
			"Replay":         func() error { return q.Replay(none, "one") },
			"ReplayAll":      func() error { _, err := q.ReplayAll(none, retryjob.Filter{}); return err },
			"Purge":          func() error { _, err := q.Purge(none, retryjob.Filter{}); return err },
			"Shutdown":       func() error { _, err := q.Shutdown(none); return err },
			"List": func() (err error) {
				for _, err = range q.List(none, retryjob.Filter{}) {
				}
				return err
			},
		} {
			require.EqualError(t, call(), "retryriver: ctx is nil", name)
		}
		ended(t, enqueue(t, q, "kind"))
	})
}

func TestANilContextOpensNothing(t *testing.T) {
	t.Chdir(t.TempDir())
	var none context.Context
	for name, call := range map[string]func() error{
		"OpenSQLite":      func() error { _, err := retryriver.OpenSQLite(none, "jobs.db"); return err },
		"NewSQLite":       func() error { _, err := retryriver.NewSQLite(none, "jobs.db", fine); return err },
		"NewPostgres":     func() error { _, err := retryriver.NewPostgres(none, new(pgxpool.Pool), fine); return err },
		"MigratePostgres": func() error { return retryriver.MigratePostgres(none, new(pgxpool.Pool)) },
		"OpenStore":       func() error { _, err := retryriver.OpenStore(none, "jobs.db"); return err },
		"OpenStore, URL":  func() error { _, err := retryriver.OpenStore(none, "postgres://host/db"); return err },
	} {
		require.EqualError(t, call(), "retryriver: ctx is nil", name)
	}
	require.NoFileExists(t, "jobs.db")
}

func TestInsertTxRefusesWhatIsNotSet(t *testing.T) {
	job := retryjob.Job{ID: "one", Kind: "kind", Policy: "once"}
	_, err := retryriver.InsertTx[*sql.Tx](t.Context(), nil, nil, nil, job)
	require.EqualError(t, err, "retryriver: InsertTx: the adapter, the client or the transaction is nil")

	q := queue(t, t.TempDir()+"/jobs.db", fine)
	client := retryriver.ClientOf[*sql.Tx](q)
	_, err = retryriver.InsertTx(t.Context(), q.Adapter(), client, nil, job)
	require.EqualError(t, err, "retryriver: InsertTx: the adapter, the client or the transaction is nil")
	var none context.Context
	_, err = retryriver.InsertTx(none, q.Adapter(), client, new(sql.Tx), job)
	require.EqualError(t, err, "retryriver: ctx is nil")
}
