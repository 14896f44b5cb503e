package retryriver_test

import (
	"context"
	"database/sql"
	"errors"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/require"

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
