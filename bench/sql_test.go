package bench_test

import (
	"context"
	"database/sql"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/require"
	_ "modernc.org/sqlite"

	"github.com/retrygo/retry"
	"github.com/retrygo/retry/retrysql"
)

// openSQLite returns a database of one table with one row, in a file. Nothing is written to the disk at once, so that its
// time does not hide ours.
func openSQLite(tb testing.TB) *sql.DB {
	db, err := sql.Open("sqlite", "file:"+filepath.Join(tb.TempDir(), "db")+"?_pragma=journal_mode(wal)&_pragma=synchronous(off)")
	require.NoError(tb, err)
	tb.Cleanup(func() { require.NoError(tb, db.Close()) })
	db.SetMaxOpenConns(1)
	_, err = db.Exec("CREATE TABLE account (balance INTEGER); INSERT INTO account VALUES (0)")
	require.NoError(tb, err)
	return db
}

const deposit = "UPDATE account SET balance = balance + 1"

// BenchmarkSQLTx is what a transaction of one statement costs, and an empty one, where nothing fails.
func BenchmarkSQLTx(b *testing.B) {
	for name, empty := range map[string]bool{"update": false, "empty": true} {
		b.Run(name+"/bare", func(b *testing.B) {
			db, ctx := openSQLite(b), b.Context()
			b.ReportAllocs()
			for b.Loop() {
				if err := bareTx(ctx, db, empty); err != nil {
					b.Fatal(err)
				}
			}
		})
		b.Run(name+"/retrysql", func(b *testing.B) {
			db, ctx := openSQLite(b), b.Context()
			b.ReportAllocs()
			for b.Loop() {
				if err := retrysql.Tx(ctx, db, retry.Policy{}, nil, func(ctx context.Context, tx *retrysql.Txn) error {
					if empty {
						return nil
					}
					_, err := tx.ExecContext(ctx, deposit)
					return err
				}); err != nil {
					b.Fatal(err)
				}
			}
		})
	}
}

func bareTx(ctx context.Context, db *sql.DB, empty bool) error {
	tx, err := db.BeginTx(ctx, nil)
	if err != nil {
		return err
	}
	defer tx.Rollback()
	if !empty {
		if _, err := tx.ExecContext(ctx, deposit); err != nil {
			return err
		}
	}
	return tx.Commit()
}
