package retryriver_test

import (
	"bytes"
	"context"
	"database/sql"
	"errors"
	"path/filepath"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"
	"github.com/stretchr/testify/require"

	"github.com/retrygo/retry/contrib/retrypgx/pgtest"
	"github.com/retrygo/retry/contrib/retryriver"
	"github.com/retrygo/retry/retryjob"
)

// placeOrder is copied from README.md.
func placeOrder(ctx context.Context, q *retryriver.Queue, db *sql.DB, order string) error {
	tx, err := db.BeginTx(ctx, nil)
	if err != nil {
		return err
	}
	defer tx.Rollback()
	job := retryjob.Job{ID: "ship-" + order, Kind: "ship", Policy: "quick"}
	_, err = retryriver.InsertTx(ctx, q.Adapter(), retryriver.ClientOf[*sql.Tx](q), tx, job)
	if errors.Is(err, retryjob.ErrDuplicate) {
		return nil // an earlier attempt has committed both
	} else if err != nil {
		return err
	}
	if _, err := tx.ExecContext(ctx, "INSERT INTO orders (id) VALUES (?)", order); err != nil {
		return err
	}
	return tx.Commit()
}

// TestARepeatedHandlerWritesItsRowAndItsJobOnce: the first attempt commits and then fails.
func TestARepeatedHandlerWritesItsRowAndItsJobOnce(t *testing.T) {
	file := filepath.Join(t.TempDir(), "jobs.db")
	db, err := retryriver.OpenSQLite(t.Context(), file)
	require.NoError(t, err)
	defer db.Close()
	_, err = db.ExecContext(t.Context(), "CREATE TABLE orders (id text)")
	require.NoError(t, err)
	var q *retryriver.Queue
	ready := make(chan struct{})
	q, err = retryriver.NewSQLite(t.Context(), file, retryjob.Options{Policies: catalog, Handlers: map[string]retryjob.Handler{
		"order": func(ctx context.Context, _ retryjob.Job) error {
			<-ready
			if err := placeOrder(ctx, q, db, "7"); err != nil {
				return err
			}
			if a, _ := retryjob.AttemptFrom(ctx); a.Number == 1 {
				return errFull
			}
			return nil
		},
		"ship": func(context.Context, retryjob.Job) error { return nil },
	}})
	require.NoError(t, err)
	close(ready)
	defer q.Close()
	h, err := q.Enqueue(t.Context(), retryjob.Job{Kind: "order", Policy: "quick"})
	require.NoError(t, err)
	i, err := h.Wait(t.Context())
	require.NoError(t, err)
	require.Equal(t, retryjob.Succeeded, i.Status)
	require.Equal(t, 2, i.Attempts)
	shipped, err := q.Wait(t.Context(), "ship-7")
	require.NoError(t, err)
	require.Equal(t, retryjob.Succeeded, shipped.Status)
	var orders int
	require.NoError(t, db.QueryRowContext(t.Context(), "SELECT count(*) FROM orders").Scan(&orders))
	require.Equal(t, 1, orders)
}

// TestACallerWhoCommitsAfterADuplicateHasChangedNoJob: the transaction goes on, and has the caller's own row.
func TestACallerWhoCommitsAfterADuplicateHasChangedNoJob(t *testing.T) {
	handlers := map[string]retryjob.Handler{
		"mail":   func(context.Context, retryjob.Job) error { return nil },
		"charge": func(context.Context, retryjob.Job) error { return nil },
	}
	options := retryjob.Options{Policies: catalog, Handlers: handlers}
	mail := retryjob.Job{ID: "order-7", Kind: "mail", Policy: "quick", Payload: []byte(`{"to":"ann"}`), Due: time.Now().Add(time.Hour)}
	charge := retryjob.Job{ID: "order-7", Kind: "charge", Policy: "quick", Payload: []byte(`{"amount":7}`)}
	unchanged := func(t *testing.T, q *retryriver.Queue) {
		t.Helper()
		i, err := q.Get(t.Context(), "order-7")
		require.NoError(t, err)
		require.Equal(t, []string{"mail", `{"to":"ann"}`, "pending"}, []string{i.Kind, string(bytes.ReplaceAll(i.Payload, []byte(" "), nil)), i.Status.String()})
	}

	t.Run("on SQLite", func(t *testing.T) {
		file := filepath.Join(t.TempDir(), "jobs.db")
		q, err := retryriver.NewSQLite(t.Context(), file, options)
		require.NoError(t, err)
		defer q.Close()
		_, err = q.Enqueue(t.Context(), mail)
		require.NoError(t, err)
		db, err := retryriver.OpenSQLite(t.Context(), file)
		require.NoError(t, err)
		defer db.Close()
		tx, err := db.BeginTx(t.Context(), nil)
		require.NoError(t, err)
		_, err = tx.ExecContext(t.Context(), "CREATE TABLE orders (id text)")
		require.NoError(t, err)
		_, err = retryriver.InsertTx(t.Context(), q.Adapter(), retryriver.ClientOf[*sql.Tx](q), tx, charge)
		require.ErrorIs(t, err, retryjob.ErrDuplicate)
		_, err = tx.ExecContext(t.Context(), "INSERT INTO orders (id) VALUES ('7')")
		require.NoError(t, err)
		require.NoError(t, tx.Commit())
		unchanged(t, q)
	})

	t.Run("on PostgreSQL", func(t *testing.T) {
		pool, err := pgxpool.New(t.Context(), pgtest.Start(t).DSN())
		require.NoError(t, err)
		defer pool.Close()
		require.NoError(t, retryriver.MigratePostgres(t.Context(), pool))
		q, err := retryriver.NewPostgres(t.Context(), pool, options)
		require.NoError(t, err)
		defer q.Close()
		_, err = q.Enqueue(t.Context(), mail)
		require.NoError(t, err)
		tx, err := pool.Begin(t.Context())
		require.NoError(t, err)
		_, err = tx.Exec(t.Context(), "CREATE TABLE orders (id text)")
		require.NoError(t, err)
		_, err = retryriver.InsertTx(t.Context(), q.Adapter(), retryriver.ClientOf[pgx.Tx](q), tx, charge)
		require.ErrorIs(t, err, retryjob.ErrDuplicate)
		_, err = tx.Exec(t.Context(), "INSERT INTO orders (id) VALUES ('7')")
		require.NoError(t, err)
		require.NoError(t, tx.Commit(t.Context()))
		unchanged(t, q)
	})
}
