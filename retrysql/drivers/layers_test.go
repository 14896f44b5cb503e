package drivers_test

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"log"
	"os"
	"path/filepath"
	"sync"

	"entgo.io/ent/dialect"
	entsql "entgo.io/ent/dialect/sql"
	"entgo.io/ent/dialect/sql/sqlgraph"
	"entgo.io/ent/schema/field"
	"github.com/jmoiron/sqlx"
	"github.com/uptrace/bun"
	"github.com/uptrace/bun/dialect/sqlitedialect"
	"gorm.io/driver/sqlite"
	"gorm.io/gorm"

	"github.com/retrygo/retry"
	"github.com/retrygo/retry/retrysql"
	"github.com/retrygo/retry/retrysql/allerrors"
)

// The examples run the same transaction: it reads alice's balance, another connection changes it, and it writes alice's
// account. SQLite answers that the snapshot is too old (517), and all of fn runs again.

// Account is a row for gorm, bun and sqlx.
type Account struct {
	Name    string `gorm:"primaryKey" bun:",pk" db:"name"`
	Balance int    `db:"balance"`
}

// ledgerOf runs an example on a database with an account, and prints how often fn ran and what the account holds. fn
// calls meddle between its read and its write; meddle changes the account once.
func ledgerOf(example func(ctx context.Context, db *sql.DB, meddle func()) error) {
	dir, err := os.MkdirTemp("", "layers")
	if err != nil {
		log.Fatal(err)
	}
	defer os.RemoveAll(dir)
	db, err := allerrors.Open("sqlite", "file:"+filepath.ToSlash(filepath.Join(dir, "db"))+"?_pragma=journal_mode(wal)&_pragma=busy_timeout(0)")
	if err != nil {
		log.Fatal(err)
	}
	defer db.Close()
	if _, err := db.Exec("CREATE TABLE accounts (name TEXT PRIMARY KEY, balance INTEGER); INSERT INTO accounts VALUES ('alice', 100)"); err != nil {
		log.Fatal(err)
	}
	runs := 0
	once := sync.OnceFunc(func() {
		if _, err := db.Exec("UPDATE accounts SET balance = balance + 30"); err != nil {
			log.Fatal(err)
		}
	})
	err = example(context.Background(), db, func() { runs++; once() })
	var balance int
	if err := db.QueryRow("SELECT balance FROM accounts").Scan(&balance); err != nil {
		log.Fatal(err)
	}
	fmt.Printf("%d runs, balance %d, error %v\n", runs, balance, err)
}

// DBTX, New and Queries are what sqlc generates.
type DBTX interface {
	ExecContext(context.Context, string, ...interface{}) (sql.Result, error)
	PrepareContext(context.Context, string) (*sql.Stmt, error)
	QueryContext(context.Context, string, ...interface{}) (*sql.Rows, error)
	QueryRowContext(context.Context, string, ...interface{}) *sql.Row
}

func New(db DBTX) *Queries { return &Queries{db: db} }

type Queries struct{ db DBTX }

func (q *Queries) GetBalance(ctx context.Context, name string) (int, error) {
	row := q.db.QueryRowContext(ctx, "SELECT balance FROM accounts WHERE name = ?", name)
	var balance int
	err := row.Scan(&balance)
	return balance, err
}

func (q *Queries) SetBalance(ctx context.Context, balance int, name string) error {
	_, err := q.db.ExecContext(ctx, "UPDATE accounts SET balance = ? WHERE name = ?", balance, name)
	return err
}

// With sqlc a Txn is the DBTX.
func ExampleTx_sqlc() {
	ledgerOf(func(ctx context.Context, db *sql.DB, meddle func()) error {
		return retrysql.Tx(ctx, db, retry.Policy{}, nil, func(ctx context.Context, tx *retrysql.Txn) error {
			q := New(tx)
			balance, err := q.GetBalance(ctx, "alice")
			if err != nil {
				return err
			}
			meddle()
			return q.SetBalance(ctx, balance-60, "alice")
		})
	})
	// Output: 2 runs, balance 70, error <nil>
}

// With sqlc the Conn of Do is also a DBTX.
func ExampleDo_sqlc() {
	ledgerOf(func(ctx context.Context, db *sql.DB, meddle func()) error {
		meddle()
		return retrysql.Do(ctx, db, retry.Policy{}, func(ctx context.Context, c *retrysql.Single) error {
			return New(c).SetBalance(ctx, 40, "alice")
		})
	})
	// Output: 1 runs, balance 40, error <nil>
}

// With sqlx, wrap the *sql.Tx in a sqlx.Tx, on a database of allerrors.Open, so that errors are noted.
func ExampleTx_sqlx() {
	ledgerOf(func(ctx context.Context, db *sql.DB, meddle func()) error {
		dbx := sqlx.NewDb(db, "sqlite")
		return retrysql.Tx(ctx, db, retry.Policy{}, nil, func(ctx context.Context, tx *retrysql.Txn) error {
			txx := &sqlx.Tx{Tx: tx.Unwrap(), Mapper: dbx.Mapper}
			var alice Account
			if err := txx.GetContext(ctx, &alice, "SELECT * FROM accounts WHERE name = ?", "alice"); err != nil {
				return err
			}
			meddle()
			alice.Balance -= 60
			_, _ = txx.NamedExecContext(ctx, "UPDATE accounts SET balance = :balance WHERE name = :name", alice) // the error is noted
			return nil
		})
	})
	// Output: 2 runs, balance 70, error <nil>
}

// With gorm a Txn is the ConnPool of a session. Without Context the session shares its Statement with orm, so that the
// second line would send what other goroutines do to the transaction.
func ExampleTx_gorm() {
	ledgerOf(func(ctx context.Context, db *sql.DB, meddle func()) error {
		orm, err := gorm.Open(sqlite.Dialector{Conn: db}, &gorm.Config{})
		if err != nil {
			return err
		}
		err = retrysql.Tx(ctx, db, retry.Policy{}, nil, func(ctx context.Context, tx *retrysql.Txn) error {
			orm := orm.Session(&gorm.Session{NewDB: true, Context: ctx, Logger: orm.Logger.LogMode(1)}) // Context copies the Statement
			orm.Statement.ConnPool = tx
			var alice Account
			if err := orm.First(&alice, "name = ?", "alice").Error; err != nil {
				return err
			}
			meddle()
			alice.Balance -= 60
			return orm.Save(&alice).Error
		})
		return errors.Join(err, orm.First(&Account{}).Error) // outside of Tx: fails without Context
	})
	// Output: 2 runs, balance 70, error <nil>
}

// With bun a Txn is the Conn of each query.
func ExampleTx_bun() {
	ledgerOf(func(ctx context.Context, db *sql.DB, meddle func()) error {
		orm := bun.NewDB(db, sqlitedialect.New())
		return retrysql.Tx(ctx, db, retry.Policy{}, nil, func(ctx context.Context, tx *retrysql.Txn) error {
			alice := Account{Name: "alice"}
			if err := orm.NewSelect().Model(&alice).WherePK().Conn(tx).Scan(ctx); err != nil {
				return err
			}
			meddle()
			alice.Balance -= 60
			_, err := orm.NewUpdate().Model(&alice).WherePK().Conn(tx).Exec(ctx)
			return err
		})
	})
	// Output: 2 runs, balance 70, error <nil>
}

// entTx is a driver for ent.NewClient(ent.Driver(d)) whose transactions are part of that of Tx.
type entTx struct{ dialect.Driver }

func (d entTx) Tx(context.Context) (dialect.Tx, error) { return dialect.NopTx(d), nil }

// With ent a Txn is in the driver of a client. The queries are those of the client's generated code.
func ExampleTx_ent() {
	ledgerOf(func(ctx context.Context, db *sql.DB, meddle func()) error {
		return retrysql.Tx(ctx, db, retry.Policy{}, nil, func(ctx context.Context, tx *retrysql.Txn) error {
			d := entTx{entsql.NewDriver(dialect.SQLite, entsql.Conn{ExecQuerier: tx})}
			rows := &entsql.Rows{}
			query, args := entsql.Dialect(d.Dialect()).Select("balance").From(entsql.Table("accounts")).Where(entsql.EQ("name", "alice")).Query()
			if err := d.Query(ctx, query, args, rows); err != nil {
				return err
			}
			balance, err := entsql.ScanInt(rows)
			if err := rows.Close(); err != nil {
				return err
			}
			if err != nil {
				return err
			}
			meddle()
			id := sqlgraph.NewFieldSpec("name", field.TypeString)
			id.Value = "alice"
			spec := sqlgraph.NewUpdateSpec("accounts", []string{"name", "balance"}, id)
			spec.SetField("balance", field.TypeInt, balance-60)
			spec.ScanValues = func(columns []string) ([]any, error) { return []any{new(sql.NullString), new(sql.NullInt64)}, nil }
			spec.Assign = func([]string, []any) error { return nil }
			return sqlgraph.UpdateNode(ctx, d, spec)
		})
	})
	// Output: 2 runs, balance 70, error <nil>
}
