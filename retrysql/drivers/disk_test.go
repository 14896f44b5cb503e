package drivers_test

import (
	"context"
	"database/sql"
	"fmt"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/retrygo/retry/retrysql"
	"github.com/retrygo/retry/retrysql/allerrors"
)

// full is a row that does not fit on the disk of newFullSQLite.
var full = "insert into counter values ('" + strings.Repeat("x", 1<<20) + "')"

// newFullSQLite returns a database whose disk has room for some small rows only.
func newFullSQLite(t *testing.T, name, journal string, open func(driver, source string) (*sql.DB, error)) *sql.DB {
	t.Helper()
	source := "file:" + filepath.ToSlash(filepath.Join(t.TempDir(), "test.db"))
	if name == modernc.name {
		source += "?_pragma=journal_mode(" + journal + ")&_pragma=max_page_count(16)"
	} else {
		source += "?_journal_mode=" + journal
	}
	db, err := open(name, source)
	require.NoError(t, err)
	t.Cleanup(func() { require.NoError(t, db.Close()) })
	db.SetMaxOpenConns(1) // of which max_page_count is
	exec1(t, db, "create table counter (n)", "pragma max_page_count = 16",
		"create table strict (n integer primary key on conflict rollback)", "insert into strict values (1)")
	return db
}

// withFullDisks runs a test with each driver of SQLite and journal, with and without package allerrors.
func withFullDisks(t *testing.T, test func(t *testing.T, db *sql.DB)) {
	t.Helper()
	t.Parallel()
	for how, open := range map[string]func(driver, source string) (*sql.DB, error){"Txn": sql.Open, "allerrors": allerrors.Open} {
		for _, name := range sqliteDrivers {
			for _, journal := range []string{"wal", "delete"} {
				t.Run(fmt.Sprintf("%s/%s/%s", name, journal, how), func(t *testing.T) {
					test(t, newFullSQLite(t, name, journal, open))
				})
			}
		}
	}
}

// TestATransactionOnAFullDiskIsNotCommittedInPart: SQLite undoes the transaction with the statement, so what fn sends
// afterwards would commit by itself.
func TestATransactionOnAFullDiskIsNotCommittedInPart(t *testing.T) {
	for name, failing := range map[string]string{
		"SQLITE_FULL":            full,
		"ON CONFLICT ROLLBACK":   "insert into strict values (1)",
		"INSERT OR ROLLBACK":     "insert or rollback into strict values (1)",
		"in another transaction": "insert or rollback into strict select n from strict",
	} {
		t.Run(name, func(t *testing.T) {
			withFullDisks(t, func(t *testing.T, db *sql.DB) {
				for _, returned := range []bool{false, true} {
					p, last := observed(4, nil)
					err := retrysql.Tx(t.Context(), db, p, nil, func(ctx context.Context, tx *retrysql.Txn) (err error) {
						for _, query := range []string{"insert into counter values (1)", failing, "insert into counter values (2)"} {
							_, err = tx.ExecContext(ctx, query)
						}
						require.ErrorContains(t, err, "retrysql: the transaction must be restarted: ")
						if !returned {
							return nil
						}
						return err
					})
					require.Error(t, err)
					require.NotErrorIs(t, err, retrysql.ErrCommitAmbiguous)
					require.NotErrorIs(t, err, retrysql.ErrTransactionEnded)
					require.Equal(t, 1, last.Attempts)
					require.Equal(t, 0, number(t, db, "select count(*) from counter"))
				}
			})
		})
	}
}

// TestAnErrorAfterWhichSQLiteGoesOn does not end the transaction.
func TestAnErrorAfterWhichSQLiteGoesOn(t *testing.T) {
	withFullDisks(t, func(t *testing.T, db *sql.DB) {
		exec1(t, db, "create table lax (n integer primary key)", "insert into lax values (1)")
		p, last := observed(4, nil)
		require.NoError(t, retrysql.Tx(t.Context(), db, p, nil, func(ctx context.Context, tx *retrysql.Txn) error {
			for _, query := range []string{"insert into counter values (1)", "insert into lax values (1)", "nonsense", "insert into counter values (2)"} {
				_, _ = tx.ExecContext(ctx, query)
			}
			return nil
		}))
		require.Equal(t, 1, last.Attempts)
		require.Equal(t, 2, number(t, db, "select count(*) from counter"))
	})
}
