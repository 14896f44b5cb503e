package drivers_test

import (
	"context"
	"database/sql"
	"path/filepath"
	"syscall"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/retrygo/retry/retrysql"
)

// TestACommitOnAFullDiskIsNoDoubt: SQLite writes some pages only at the commit. The disk is one of 1 MB.
func TestACommitOnAFullDiskIsNoDoubt(t *testing.T) {
	for _, name := range sqliteDrivers {
		for _, journal := range []string{"wal", "delete", "truncate"} {
			t.Run(name+"/"+journal, func(t *testing.T) {
				dir := t.TempDir()
				if err := syscall.Mount("tmpfs", dir, "tmpfs", 0, "size=1m"); err != nil {
					t.Skip("no disk of its own:", err)
				}
				t.Cleanup(func() { require.NoError(t, syscall.Unmount(dir, 0)) })
				db, err := sql.Open(name, "file:"+filepath.Join(dir, "test.db"))
				require.NoError(t, err)
				t.Cleanup(func() { require.NoError(t, db.Close()) })
				db.SetMaxOpenConns(1) // of which the cache is
				exec1(t, db, "pragma journal_mode = "+journal, "pragma cache_size = -20000", "create table counter (n)")
				p, last := observed(4, nil)
				err = retrysql.Tx(t.Context(), db, p, nil, func(ctx context.Context, tx *retrysql.Txn) error {
					return execute(ctx, tx, "insert into counter values (randomblob(1300000))")
				})
				require.Equal(t, retrysql.DiskFull, retrysql.ReasonOf(err))
				require.Equal(t, []failure{{retrysql.Commit, retrysql.DiskFull, "13"}}, last.Failures)
				require.NotErrorIs(t, err, retrysql.ErrCommitAmbiguous)
				require.Equal(t, 0, number(t, db, "select count(*) from counter"))
				exec1(t, db, "insert into counter values (1)")
			})
		}
	}
}
