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
		attempts++ // all of fn runs again, so it has no effect but those in the transaction
		_, err := tx.Exec(ctx, "UPDATE account SET balance = balance - 60 WHERE name = 'alice'")
		if err != nil {
			return err
		}
		_, err = tx.Exec(ctx, "UPDATE account SET balance = balance + 60 WHERE name = 'bob'")
		return err
	})
	fmt.Println(attempts, err)
	// Output: 2 <nil>
}

func ExampleTx_ambiguous() {
	db := sql.OpenDB(retrytest.NewConnector(t, nil, []retrytest.SQLFault{{On: retrytest.Commit, Lost: true}}))
	defer db.Close()

	err := retrysql.Tx(context.Background(), db, retry.Policy{}, nil, func(ctx context.Context, tx *retrysql.Txn) error {
		_, err := tx.Exec(ctx, "INSERT INTO payment (id, amount) VALUES (7, 60)")
		return err
	})
	fmt.Println(errors.Is(err, retrysql.ErrCommitAmbiguous))
	// Output: true
}

func ExampleOptions_committed() {
	db := sql.OpenDB(retrytest.NewConnector(t, &base{answers: one}, []retrytest.SQLFault{{On: retrytest.Commit, Lost: true, Late: true}}))
	defer db.Close()

	// The row that the transaction writes tells whether it is there.
	opts := &retrysql.Options{Committed: func(ctx context.Context) (bool, error) {
		var n int
		err := db.QueryRowContext(ctx, "SELECT count(*) FROM payment WHERE id = 7").Scan(&n)
		return n > 0, err
	}}
	err := retrysql.Tx(context.Background(), db, retry.Policy{}, opts, func(ctx context.Context, tx *retrysql.Txn) error {
		_, err := tx.Exec(ctx, "INSERT INTO payment (id, amount) VALUES (7, 60)")
		return err
	})
	fmt.Println(err)
	// Output: <nil>
}

func ExampleTxValue() {
	db := sql.OpenDB(&base{answers: []answer{{[]int64{40}, io.EOF, 0}}})
	defer db.Close()

	balance, err := retrysql.TxValue(context.Background(), db, retry.Policy{}, &retrysql.Options{Isolation: sql.LevelSerializable},
		func(ctx context.Context, tx *retrysql.Txn) (balance int, err error) {
			err = tx.QueryRow(ctx, "UPDATE account SET balance = balance - 60 RETURNING balance").Scan(&balance)
			return balance, err
		})
	fmt.Println(balance, err)
	// Output: 40 <nil>
}

func ExampleDo() {
	db := sql.OpenDB(retrytest.NewConnector(t, nil, []retrytest.SQLFault{{Query: "INSERT", Lost: true}}))
	defer db.Close()

	insert := func(ctx context.Context, c *retrysql.Conn) error {
		_, err := c.Exec(ctx, "INSERT INTO log VALUES ('started')")
		return err
	}
	err := retrysql.Do(context.Background(), db, retry.Policy{}, insert)
	fmt.Println(errors.Is(err, retrysql.ErrAmbiguous), retrysql.ReasonOf(err))
	// Output: true statement_ambiguous
}

func ExampleMarkIdempotent() {
	db := sql.OpenDB(retrytest.NewConnector(t, nil, []retrytest.SQLFault{{Query: "UPDATE job", Lost: true}}))
	defer db.Close()

	ctx := retrysql.MarkIdempotent(context.Background()) // twice is as good as once
	fmt.Println(retrysql.Do(ctx, db, retry.Policy{}, func(ctx context.Context, c *retrysql.Conn) error {
		_, err := c.Exec(ctx, "UPDATE job SET state = 'done' WHERE id = 7")
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
		_, err := tx.Exec(ctx, "UPDATE account SET balance = 0")
		return err
	})
	var failed *retrysql.AttemptError
	if errors.As(err, &failed) {
		fmt.Println(failed.Phase, failed.Reason, failed.Code, errors.Is(err, retry.AttemptsExhausted))
	}
	// Output: statement serialization_failure 40001 true
}

func ExampleRun() {
	d := &db{} // of a driver that is not one of database/sql
	err := retrysql.Run(context.Background(), retry.Policy{}, nil, d.begin, statements(conflict))
	fmt.Println(d.log, err)
	// Output: [begin exec! rollback begin exec commit] <nil>
}
