package drivers_test

import (
	"context"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/retrygo/retry"
	"github.com/retrygo/retry/retrysql"
)

func TestAWatchedMariaDBRefusesAnImplicitCommitByUnwrap(t *testing.T) {
	t.Parallel()
	s, name := newMaria(t)
	db := goMySQL.watched(t, s.address, name)
	exec1(t, db, counter...)
	err := retrysql.Tx(t.Context(), db, retry.Policy{}, nil, func(ctx context.Context, tx *retrysql.Txn) error {
		_, err := tx.Unwrap().ExecContext(ctx, "truncate counter")
		return err
	})
	require.ErrorIs(t, err, retrysql.ErrTransactionEnded)
	require.Equal(t, 1, number(t, db, "select count(*) from counter"))
}
