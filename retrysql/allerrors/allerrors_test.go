package allerrors_test

import (
	"context"
	"database/sql"
	"database/sql/driver"
	"errors"
	"fmt"
	"io"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/retrygo/retry"
	"github.com/retrygo/retry/retrysql"
	"github.com/retrygo/retry/retrysql/allerrors"
	"github.com/retrygo/retry/retrytest"
)

// An example has no test of its own. In a test, t is its argument.
var t = new(testing.T)

// The errors of Unwrap are noted, here a conflict that fn ignores.
func ExampleConnector() {
	connector := retrytest.NewConnector(t, nil, []retrytest.SQLFault{{Query: "UPDATE", Err: retrytest.ErrSerialization}})
	db := sql.OpenDB(allerrors.Connector(connector))
	defer db.Close()

	attempts := 0
	err := retrysql.Tx(context.Background(), db, retry.Policy{}, nil, func(ctx context.Context, tx *retrysql.Txn) error {
		attempts++
		_, _ = tx.Unwrap().ExecContext(ctx, "UPDATE item SET stock = stock - 1")
		return nil
	})
	fmt.Println(attempts, err)
	// Output: 2 <nil>
}

var (
	errBusiness = errors.New("insufficient funds")
	conflict    = retrytest.ErrSerialization
)

// open returns a database with the given faults, and a func that returns the operations of its driver.
func open(t *testing.T, faults []retrytest.SQLFault) (*sql.DB, func() string) {
	c := retrytest.NewConnector(t, nil, faults)
	db := sql.OpenDB(allerrors.Connector(c))
	t.Cleanup(func() { require.NoError(t, db.Close()) })
	return db, func() string {
		var log []string
		for _, call := range c.Calls() {
			log = append(log, string(call.Op))
		}
		return strings.Join(log, " ")
	}
}

func stmtErr[T any](_ T, err error) error { return err }

func TestItLeavesADatabaseAsItIs(t *testing.T) {
	db, log := open(t, []retrytest.SQLFault{{Query: "later", Err: conflict}})
	require.NoError(t, db.PingContext(t.Context()))
	rows, err := db.QueryContext(t.Context(), "select")
	require.NoError(t, err)
	require.NoError(t, rows.Close())
	require.ErrorIs(t, stmtErr(db.ExecContext(t.Context(), "later")), conflict)
	require.NoError(t, stmtErr(db.ExecContext(t.Context(), "COMMIT")), "it is not a transaction of Tx")
	tx, err := db.BeginTx(t.Context(), nil)
	require.NoError(t, err)
	require.NoError(t, stmtErr(tx.ExecContext(t.Context(), "insert")))
	require.NoError(t, tx.Commit())
	require.Equal(t, "connect query exec exec begin exec commit", log())
	c, err := db.Conn(t.Context())
	require.NoError(t, err)
	require.NoError(t, c.Raw(func(conn any) error {
		require.NotNil(t, conn.(interface{ Unwrap() driver.Conn }).Unwrap())
		return nil
	}))
	require.NoError(t, c.Close())
	t.Run("another transaction in fn is not noted", func(t *testing.T) {
		db, log := open(t, []retrytest.SQLFault{{Query: "other", Err: conflict}})
		require.NoError(t, retrysql.Tx(t.Context(), db, retry.Policy{}, nil, func(ctx context.Context, _ *retrysql.Txn) error {
			other, err := db.BeginTx(ctx, nil)
			require.NoError(t, err)
			defer other.Rollback()
			require.Error(t, stmtErr(other.ExecContext(ctx, "other")))
			return nil
		}))
		require.Equal(t, "connect begin connect begin exec rollback commit", log())
	})
}

// begins is a driver that can begin a transaction, and do nothing else that is new.
type begins struct{ bare }

func (begins) Open(string) (driver.Conn, error)                             { return begins{}, nil }
func (begins) BeginTx(context.Context, driver.TxOptions) (driver.Tx, error) { return bare{}, nil }

// prepares is a driver that can prepare statements as well, but not execute them with a context.
type prepares struct{ begins }

func (prepares) Open(string) (driver.Conn, error)                            { return prepares{}, nil }
func (prepares) PrepareContext(context.Context, string) (driver.Stmt, error) { return bare{}, nil }

// executes is a driver whose statements can be executed with a context, and check no arguments.
type executes struct{ prepares }

func (executes) Open(string) (driver.Conn, error)                            { return executes{}, nil }
func (executes) PrepareContext(context.Context, string) (driver.Stmt, error) { return statement{}, nil }

type statement struct{ bare }

func (statement) ExecContext(_ context.Context, v []driver.NamedValue) (driver.Result, error) {
	return driver.RowsAffected(len(v)), nil
}

// bare is a driver without any of the newer interfaces.
type bare struct{}

func (bare) Open(string) (driver.Conn, error)             { return bare{}, nil }
func (bare) Begin() (driver.Tx, error)                    { return bare{}, nil }
func (bare) Commit() error                                { return nil }
func (bare) Rollback() error                              { return nil }
func (bare) Close() error                                 { return nil }
func (bare) Prepare(string) (driver.Stmt, error)          { return bare{}, nil }
func (bare) NumInput() int                                { return -1 }
func (bare) Exec(v []driver.Value) (driver.Result, error) { return driver.RowsAffected(len(v)), nil }
func (bare) Query([]driver.Value) (driver.Rows, error)    { return bare{}, nil }
func (bare) Columns() []string                            { return []string{"value"} }
func (bare) Next([]driver.Value) error                    { return io.EOF }
func (bare) ColumnConverter(int) driver.ValueConverter    { return driver.Int32 }

// contexts is a driver with a connector.
type contexts struct{ driver.Driver }

func (contexts) OpenConnector(name string) (driver.Connector, error) {
	if name == "bad" {
		return nil, errBusiness
	}
	return connector{}, nil
}

type connector struct{}

func (connector) Connect(context.Context) (driver.Conn, error) { return bare{}, nil }
func (connector) Driver() driver.Driver                        { return contexts{} }

func init() {
	sql.Register("bare", bare{})
	sql.Register("begins", begins{})
	sql.Register("prepares", prepares{})
	sql.Register("executes", executes{})
	sql.Register("contexts", contexts{})
}

func TestOpenIsThatOfSQL(t *testing.T) {
	_, err := allerrors.Open("no such driver", "")
	require.ErrorContains(t, err, "unknown driver")
	for name, refused := range map[string]bool{"good": false, "bad": true} {
		db, err := allerrors.Open("contexts", name)
		require.Equal(t, refused, err != nil)
		if !refused {
			require.NoError(t, db.PingContext(t.Context()))
			require.Equal(t, contexts{}, db.Driver())
			require.NoError(t, db.Close())
		}
	}
}

func TestADriverThatIsTooOld(t *testing.T) {
	exec := func(ctx context.Context, tx *retrysql.Txn) error { return stmtErr(tx.ExecContext(ctx, "update")) }
	query := func(ctx context.Context, tx *retrysql.Txn) error { return stmtErr(tx.QueryContext(ctx, "select")) }
	for missing, row := range map[string]struct {
		driver string
		fn     func(context.Context, *retrysql.Txn) error
	}{
		"ConnBeginTx": {"bare", exec}, "ConnPrepareContext": {"begins", exec}, "StmtExecContext": {"prepares", exec}, "StmtQueryContext": {"prepares", query},
	} {
		t.Run(missing, func(t *testing.T) {
			db, err := allerrors.Open(row.driver, "")
			require.NoError(t, err)
			defer db.Close()
			require.NoError(t, db.PingContext(t.Context()))
			err = retrysql.Tx(t.Context(), db, retry.Policy{MaxAttempts: 1}, nil, row.fn)
			require.ErrorContains(t, err, "allerrors: the driver does not implement driver."+missing)
		})
	}
}

func TestADriverThatChecksNoArguments(t *testing.T) {
	db, err := allerrors.Open("executes", "")
	require.NoError(t, err)
	defer db.Close()
	result, err := db.ExecContext(t.Context(), "update", 1, "two")
	require.NoError(t, err)
	affected, err := result.RowsAffected()
	require.NoError(t, err)
	require.EqualValues(t, 2, affected)
}
