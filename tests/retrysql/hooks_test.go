package retrysql_test

import (
	"context"
	"database/sql/driver"
	"fmt"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/retrygo/retry/retrysql"
	"github.com/retrygo/retry/retrytest"
)

func TestHooksRunOnceAfterACertainCommit(t *testing.T) {
	lost := faults{{On: retrytest.Commit, Err: driver.ErrBadConn}}
	committed := func(yes bool, err error) *retrysql.Options {
		return &retrysql.Options{Confirm: func(context.Context) (bool, error) { return yes, err }}
	}
	for _, row := range []struct {
		name   string
		faults faults
		opts   *retrysql.Options
		mark   bool
		fnErr  error
		ran    []string
	}{
		{name: "after a commit", ran: []string{"1a", "1b"}},
		{name: "of the attempt that was committed alone", faults: faults{{On: retrytest.Commit, Err: conflict}}, ran: []string{"2a", "2b"}},
		{name: "none for a commit whose outcome is not known", faults: lost},
		{name: "none if the probe does not know", faults: lost, opts: committed(false, errBusiness)},
		{name: "for one that the probe has found", faults: lost, opts: committed(true, nil), ran: []string{"1a", "1b"}},
		{name: "for the one after it, of an idempotent transaction", faults: lost, mark: true, ran: []string{"2a", "2b"}},
		{name: "none after an error of fn", fnErr: errBusiness},
	} {
		t.Run(row.name, func(t *testing.T) {
			db, log := openDB(t, row.faults)
			var ran []string
			attempts := 0
			_ = retrysql.Tx(idempotent(t, row.mark), db, atOnce, row.opts, func(ctx context.Context, tx *retrysql.Txn) error {
				attempts++
				for _, name := range []string{"a", "b"} {
					tx.AfterCommit(func(ctx context.Context) {
						require.NoError(t, ctx.Err())
						require.Contains(t, log(), "commit")
						ran = append(ran, fmt.Sprint(attempts, name))
					})
				}
				_ = tx.Savepoint(ctx, func(context.Context) error {
					tx.AfterCommit(func(context.Context) { t.Error("a savepoint that was undone") })
					return errBusiness
				})
				return row.fnErr
			})
			require.Equal(t, row.ran, ran)
		})
	}
}
