package retrysql_test

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"io"
	"testing"

	"github.com/retrygo/retry"
	"github.com/retrygo/retry/retrysql"
	"github.com/retrygo/retry/retrytest"
)

// An example has no test of its own. In a test, t is its argument.
var t = new(testing.T)

func ExampleTx() {
	db := sql.OpenDB(retrytest.NewConnector(t, nil, []retrytest.SQLFault{{Query: "'alice'", Err: retrytest.ErrSerialization}}))
	defer db.Close()

	attempts := 0
	err := retrysql.Tx(context.Background(), db, retry.Policy{}, nil, func(ctx context.Context, tx *retrysql.Txn) error {
		attempts++ // all of fn runs again, so it has no effects outside the transaction
		_, err := tx.ExecContext(ctx, "UPDATE account SET balance = balance - 60 WHERE name = 'alice'")
		if err != nil {
			return err
		}
		_, err = tx.ExecContext(ctx, "UPDATE account SET balance = balance + 60 WHERE name = 'bob'")
		return err
	})
	fmt.Println(attempts, err)
	// Output: 2 <nil>
}

// A transaction that writes a value computed from what it read needs an isolation that reports a conflict. At the
// default of PostgreSQL or MySQL, one of two such concurrent updates would be lost.
func ExampleTx_readThenWrite() {
	db := sql.OpenDB(retrytest.NewConnector(t, &base{answers: one}, []retrytest.SQLFault{{Query: "UPDATE", Err: retrytest.ErrSerialization}}))
	defer db.Close()

	opts := &retrysql.Options{Isolation: sql.LevelSerializable}
	attempts := 0
	err := retrysql.Tx(context.Background(), db, retry.Policy{}, opts, func(ctx context.Context, tx *retrysql.Txn) error {
		attempts++
		var stock int
		if err := tx.QueryRowContext(ctx, "SELECT stock FROM item WHERE id = 7").Scan(&stock); err != nil {
			return err
		}
		if stock == 0 {
			return errors.New("sold out") // an error of fn's own is not retried
		}
		_, err := tx.ExecContext(ctx, "UPDATE item SET stock = $1 WHERE id = 7", stock-1)
		return err
	})
	fmt.Println(attempts, err)
	// Output: 2 <nil>
}

func ExampleTxn_Savepoint() {
	db := sql.OpenDB(retrytest.NewConnector(t, nil, []retrytest.SQLFault{{Query: "id = 7", Err: retrytest.ErrBusy}}))
	defer db.Close()

	err := retrysql.Tx(context.Background(), db, retry.Policy{}, nil, func(ctx context.Context, tx *retrysql.Txn) error {
		err := tx.Savepoint(ctx, func(ctx context.Context) error {
			_, err := tx.ExecContext(ctx, "UPDATE job SET state = 'running' WHERE id = 7")
			return err
		})
		fmt.Println("job 7:", err)
		_, err = tx.ExecContext(ctx, "UPDATE job SET state = 'running' WHERE id = 8")
		return err
	})
	fmt.Println(err)
	// Output:
	// job 7: database is locked (SQLITE_BUSY)
	// <nil>
}

func ExampleTxn_AfterCommit() {
	db := sql.OpenDB(retrytest.NewConnector(t, nil, []retrytest.SQLFault{{On: retrytest.Commit, Err: retrytest.ErrSerialization}}))
	defer db.Close()

	attempts := 0
	err := retrysql.Tx(context.Background(), db, retry.Policy{}, nil, func(ctx context.Context, tx *retrysql.Txn) error {
		attempts++
		n := attempts
		tx.AfterCommit(func(context.Context) { fmt.Println("attempt", n, "is committed") })
		_, err := tx.ExecContext(ctx, "INSERT INTO payment (id, amount) VALUES (7, 60)")
		return err
	})
	fmt.Println(err)
	// Output:
	// attempt 2 is committed
	// <nil>
}

// A function that needs a transaction works in its caller's, and begins one if there is none.
func ExampleTxnFromContext() {
	connector := retrytest.NewConnector(t, nil, nil)
	db := sql.OpenDB(connector)
	defer db.Close()

	insert := func(ctx context.Context, tx *retrysql.Txn) error {
		_, err := tx.ExecContext(ctx, "INSERT INTO payment (id, amount) VALUES (7, 60)")
		return err
	}
	pay := func(ctx context.Context) error {
		if tx, ok := retrysql.TxnFromContext(ctx, db); ok {
			return insert(ctx, tx) // nothing is committed yet
		}
		return retrysql.Tx(ctx, db, retry.Policy{}, nil, insert)
	}
	err := retrysql.Tx(context.Background(), db, retry.Policy{}, nil, func(ctx context.Context, tx *retrysql.Txn) error {
		if _, err := tx.ExecContext(ctx, "INSERT INTO orders (id) VALUES (7)"); err != nil {
			return err
		}
		return pay(ctx)
	})
	for _, call := range connector.Calls() {
		fmt.Print(call.Op, " ")
	}
	fmt.Println(err)
	// Output: connect begin exec exec commit <nil>
}

func ExampleTx_ambiguous() {
	db := sql.OpenDB(retrytest.NewConnector(t, nil, []retrytest.SQLFault{{On: retrytest.Commit, Lost: true}}))
	defer db.Close()

	err := retrysql.Tx(context.Background(), db, retry.Policy{}, nil, func(ctx context.Context, tx *retrysql.Txn) error {
		_, err := tx.ExecContext(ctx, "INSERT INTO payment (id, amount) VALUES (7, 60)")
		return err
	})
	fmt.Println(errors.Is(err, retrysql.ErrCommitAmbiguous))
	// Output: true
}

// On MySQL and MariaDB the commit may still be in progress when its connection is lost, and FOR UPDATE waits for it.
func ExampleOptions_confirm() {
	db := sql.OpenDB(retrytest.NewConnector(t, &base{answers: one}, []retrytest.SQLFault{{On: retrytest.Commit, Lost: true, Late: true}}))
	defer db.Close()

	opts := &retrysql.Options{Confirm: func(ctx context.Context) (bool, error) {
		var id int
		err := db.QueryRowContext(ctx, "SELECT id FROM payment WHERE id = 7 FOR UPDATE").Scan(&id)
		if errors.Is(err, sql.ErrNoRows) {
			return false, nil
		}
		return err == nil, err
	}}
	err := retrysql.Tx(context.Background(), db, retry.Policy{}, opts, func(ctx context.Context, tx *retrysql.Txn) error {
		_, err := tx.ExecContext(ctx, "INSERT INTO payment (id, amount) VALUES (7, 60)")
		return err
	})
	fmt.Println(err)
	// Output: <nil>
}

// On PostgreSQL, Probe asks the server about the transaction by its id.
func ExampleOptions_probe() {
	pay := func(ctx context.Context, db *sql.DB, order int64) error {
		opts := &retrysql.Options{Probe: true}
		return retrysql.Tx(ctx, db, retry.Policy{}, opts, func(ctx context.Context, tx *retrysql.Txn) error {
			_, err := tx.ExecContext(ctx, "UPDATE orders SET paid = true WHERE id = $1", order)
			return err
		})
	}
	_ = pay
}

func ExampleTxValue() {
	db := sql.OpenDB(&base{answers: []answer{{[]int64{40}, io.EOF, 0}}})
	defer db.Close()

	balance, err := retrysql.TxValue(context.Background(), db, retry.Policy{}, &retrysql.Options{Isolation: sql.LevelSerializable},
		func(ctx context.Context, tx *retrysql.Txn) (balance int, err error) {
			err = tx.QueryRowContext(ctx, "UPDATE account SET balance = balance - 60 RETURNING balance").Scan(&balance)
			return balance, err
		})
	fmt.Println(balance, err)
	// Output: 40 <nil>
}

func ExampleDo() {
	db := sql.OpenDB(retrytest.NewConnector(t, nil, []retrytest.SQLFault{{Query: "INSERT", Lost: true}}))
	defer db.Close()

	insert := func(ctx context.Context, c *retrysql.Single) error {
		_, err := c.ExecContext(ctx, "INSERT INTO log VALUES ('started')")
		return err
	}
	err := retrysql.Do(context.Background(), db, retry.Policy{}, insert)
	fmt.Println(errors.Is(err, retrysql.ErrStatementAmbiguous), retrysql.ReasonOf(err))
	// Output: true statement_ambiguous
}

func ExampleWithIdempotent() {
	db := sql.OpenDB(retrytest.NewConnector(t, nil, []retrytest.SQLFault{{Query: "UPDATE job", Lost: true}}))
	defer db.Close()

	ctx := retrysql.WithIdempotent(context.Background()) // twice has the same effect as once
	fmt.Println(retrysql.Do(ctx, db, retry.Policy{}, func(ctx context.Context, c *retrysql.Single) error {
		_, err := c.ExecContext(ctx, "UPDATE job SET state = 'done' WHERE id = 7")
		return err
	}))
	// Output: <nil>
}

func ExampleDefaultPolicy() {
	fmt.Println(retrysql.DefaultPolicy())
	// Output: sql: 5 attempts, exponential 10ms ×2, cap 1s, full jitter: 10ms 20ms 40ms 80ms (0s to 150ms in all)
}

func ExampleAttemptError() {
	db := sql.OpenDB(retrytest.NewConnector(t, nil, []retrytest.SQLFault{{Err: retrytest.ErrSerialization, Times: retrytest.Forever}}))
	defer db.Close()

	p := retrysql.DefaultPolicy()
	p.MaxAttempts = 2
	err := retrysql.Tx(context.Background(), db, p, nil, func(ctx context.Context, tx *retrysql.Txn) error {
		_, err := tx.ExecContext(ctx, "UPDATE account SET balance = 0")
		return err
	})
	var failed *retrysql.AttemptError
	if errors.As(err, &failed) {
		fmt.Println(failed.Phase, failed.Reason, failed.Code, errors.Is(err, retry.AttemptsExhausted))
	}
	// Output: statement serialization_failure 40001 true
}

func ExampleRun() {
	d := &db{} // of a driver outside database/sql
	err := retrysql.Run(context.Background(), retry.Policy{}, nil, d.begin, statements(conflict))
	fmt.Println(d.log, err)
	// Output: [begin exec! rollback begin exec commit] <nil>
}
