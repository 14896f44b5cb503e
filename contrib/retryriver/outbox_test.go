package retryriver_test

import (
	"context"
	"database/sql"
	"errors"
	"path/filepath"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"
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
	db := openSQLite(t, file)
	_, err := db.ExecContext(t.Context(), "CREATE TABLE orders (id text)")
	require.NoError(t, err)
	var q *retryriver.Queue
	ready := make(chan struct{})
	q = queue(t, file, retryjob.Options{Policies: catalog, Handlers: map[string]retryjob.Handler{
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
	close(ready)
	h, err := q.Enqueue(t.Context(), retryjob.Job{Kind: "order", Policy: "quick"})
	require.NoError(t, err)
	i := ended(t, h)
	require.Equal(t, []any{retryjob.Succeeded, 2}, []any{i.Status, i.Attempts})
	shipped, err := q.Wait(t.Context(), "ship-7")
	require.NoError(t, err)
	require.Equal(t, retryjob.Succeeded, shipped.Status)
	var orders int
	require.NoError(t, db.QueryRowContext(t.Context(), "SELECT count(*) FROM orders").Scan(&orders))
	require.Equal(t, 1, orders)
}

// TestACallerWhoCommitsAfterADuplicateHasChangedNoJob: the transaction goes on, and has the caller's own row.
func TestACallerWhoCommitsAfterADuplicateHasChangedNoJob(t *testing.T) {
	o := retryjob.Options{Policies: catalog, Handlers: map[string]retryjob.Handler{"mail": fine.Handlers["kind"], "charge": fine.Handlers["kind"]}}
	both(t, o, func(t *testing.T, q *retryriver.Queue) {
		if retryriver.ClientOf[*sql.Tx](q) != nil {
			commitDuplicate[*sql.Tx](t, q)
		} else {
			commitDuplicate[pgx.Tx](t, q)
		}
	})
}

func commitDuplicate[TTx any](t *testing.T, q *retryriver.Queue) {
	mail := retryjob.Job{ID: "order-7", Kind: "mail", Policy: "quick", Payload: []byte(`{"to":"ann"}`), Due: time.Now().Add(time.Hour)}
	_, err := q.Enqueue(t.Context(), mail)
	require.NoError(t, err)
	client := retryriver.ClientOf[TTx](q)
	tx, err := client.Driver().GetExecutor().Begin(t.Context())
	require.NoError(t, err)
	require.NoError(t, tx.Exec(t.Context(), "CREATE TABLE orders (id text)"))
	charge := retryjob.Job{ID: "order-7", Kind: "charge", Policy: "quick", Payload: []byte(`{"amount":7}`)}
	_, err = retryriver.InsertTx(t.Context(), q.Adapter(), client, client.Driver().UnwrapTx(tx), charge)
	require.ErrorIs(t, err, retryjob.ErrDuplicate)
	require.NoError(t, tx.Exec(t.Context(), "INSERT INTO orders (id) VALUES ('7')"))
	require.NoError(t, tx.Commit(t.Context()))
	var order string
	require.NoError(t, client.Driver().GetExecutor().QueryRow(t.Context(), "SELECT id FROM orders").Scan(&order))
	require.Equal(t, "7", order)

	i, err := q.Get(t.Context(), "order-7")
	require.NoError(t, err)
	require.Equal(t, []any{"mail", retryjob.Pending}, []any{i.Kind, i.Status})
	require.JSONEq(t, `{"to":"ann"}`, string(i.Payload))
}
