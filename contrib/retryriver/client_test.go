package retryriver_test

import (
	"context"
	"database/sql"
	"testing"

	"github.com/jackc/pgx/v5"
	"github.com/stretchr/testify/require"

	"github.com/retrygo/retry"
	"github.com/retrygo/retry/contrib/retryriver"
	"github.com/retrygo/retry/retryjob"
)

// The client of a Queue is River's own: jobs are inserted in the caller's transaction.
func TestTheClientOfAQueueIsReached(t *testing.T) {
	c := retryjob.Options{
		Policies: retryjob.FromMap(map[string]retry.Policy{"": {}}),
		Handlers: map[string]retryjob.Handler{"work": func(context.Context, retryjob.Job) error { return nil }},
	}
	both(t, c, func(t *testing.T, q *retryriver.Queue) {
		if retryriver.ClientOf[*sql.Tx](q) == nil {
			insertTx[pgx.Tx](t, q)
			return
		}
		require.Nil(t, retryriver.ClientOf[pgx.Tx](q))
		insertTx[*sql.Tx](t, q)
	})
}

func insertTx[TTx any](t *testing.T, q *retryriver.Queue) {
	client := retryriver.ClientOf[TTx](q)
	for _, commit := range []bool{true, false} {
		tx, err := client.Driver().GetExecutor().Begin(t.Context())
		require.NoError(t, err)
		handle, err := retryriver.InsertTx(t.Context(), q.Adapter(), client, client.Driver().UnwrapTx(tx), retryjob.Job{Kind: "work"})
		require.NoError(t, err)
		if commit {
			require.NoError(t, tx.Commit(t.Context()))
			i, err := handle.Wait(t.Context())
			require.NoError(t, err)
			require.Equal(t, retryjob.Succeeded, i.Status)
			continue
		}
		require.NoError(t, tx.Rollback(t.Context()))
		_, err = handle.Inspect(t.Context())
		require.ErrorIs(t, err, retryjob.ErrUnknownJob)
	}
}
