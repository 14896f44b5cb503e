package retryriver_test

import (
	"database/sql"
	"testing"

	"github.com/jackc/pgx/v5"
	"github.com/stretchr/testify/require"

	"github.com/retrygo/retry/contrib/retryriver"
	"github.com/retrygo/retry/retryjob"
)

// The client of a Queue is River's own: jobs are inserted in the caller's transaction.
func TestTheClientOfAQueueIsReached(t *testing.T) {
	both(t, fine, func(t *testing.T, q *retryriver.Queue) {
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
		handle, err := retryriver.InsertTx(t.Context(), q.Adapter(), client, client.Driver().UnwrapTx(tx), retryjob.Job{Kind: "kind", Policy: "once"})
		require.NoError(t, err)
		if commit {
			require.NoError(t, tx.Commit(t.Context()))
			require.Equal(t, retryjob.Succeeded, ended(t, handle).Status)
			continue
		}
		require.NoError(t, tx.Rollback(t.Context()))
		_, err = handle.Inspect(t.Context())
		require.ErrorIs(t, err, retryjob.ErrUnknownJob)
	}
}
