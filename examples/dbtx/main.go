// Dbtx moves money between two accounts in SQLite while another connection does the same, and prints how the conflict
// is resolved. It needs no server, because the database is a file.
//
//	go run ./examples/dbtx
package main

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"io"
	"log"
	"os"
	"path/filepath"

	_ "modernc.org/sqlite"

	"github.com/retrygo/retry"
	"github.com/retrygo/retry/retrysql"
)

var errFunds = errors.New("insufficient funds")

// transfer moves an amount from alice to bob. Its fn can run several times, so it has no effect outside the
// transaction. It writes a balance computed from the one it has read, so it needs the isolation that reports a
// conflict. SQLite has no other, but at PostgreSQL's default one of two such transfers would be lost. It calls
// afterRead after the read.
func transfer(ctx context.Context, db *sql.DB, p retry.Policy, amount int, afterRead func()) error {
	opts := &retrysql.Options{Isolation: sql.LevelSerializable}
	return retrysql.Tx(ctx, db, p, opts, func(ctx context.Context, tx *retrysql.Txn) error {
		var balance int
		if err := tx.QueryRowContext(ctx, "SELECT balance FROM account WHERE name = 'alice'").Scan(&balance); err != nil {
			return err
		}
		if afterRead(); balance < amount {
			return errFunds // an error of fn's own is not retried
		}
		if _, err := tx.ExecContext(ctx, "UPDATE account SET balance = ? WHERE name = 'alice'", balance-amount); err != nil {
			return err
		}
		_, err := tx.ExecContext(ctx, "UPDATE account SET balance = balance + ? WHERE name = 'bob'", amount)
		return err
	})
}

func main() {
	if err := run(os.Stdout); err != nil {
		log.Fatal(err)
	}
}

// run makes two transfers of 60 from a balance of 100 and writes their results to w.
func run(w io.Writer) error {
	dir, err := os.MkdirTemp("", "dbtx")
	if err != nil {
		return err
	}
	defer os.RemoveAll(dir)
	db, err := sql.Open("sqlite", "file:"+filepath.Join(dir, "db")+"?_pragma=journal_mode(wal)")
	if err != nil {
		return err
	}
	defer db.Close()
	ctx := context.Background()
	if _, err := db.ExecContext(ctx, `CREATE TABLE account (name TEXT PRIMARY KEY, balance INTEGER);
		INSERT INTO account VALUES ('alice', 100), ('bob', 0), ('carol', 0)`); err != nil {
		return err
	}

	p := retrysql.DefaultPolicy()
	p.Observe = func(_ context.Context, e retry.Event) {
		if e.Outcome != nil {
			fmt.Fprintf(w, "  %v\n", e.Decision)
			return
		}
		fmt.Fprintf(w, "  attempt %d: %v\n", e.Attempt.Number, e.Attempt.Err)
	}
	// Carol's pay is taken from alice's account after the first attempt has read the balance.
	paid := false
	pay := func() {
		if !paid {
			paid = true
			_, err = db.ExecContext(ctx, "UPDATE account SET balance = balance + iif(name = 'carol', 30, -30) WHERE name <> 'bob'")
		}
	}
	for range 2 {
		fmt.Fprintln(w, "alice pays 60 to bob")
		switch answer := transfer(ctx, db, p, 60, pay); {
		case errors.Is(answer, errFunds): // a success of the run
			fmt.Fprintf(w, "  %v\n", answer)
		case answer != nil:
			return answer
		}
		if err != nil {
			return err
		}
	}
	rows, err := db.QueryContext(ctx, "SELECT name, balance FROM account ORDER BY name")
	if err != nil {
		return err
	}
	defer rows.Close()
	for rows.Next() {
		var name string
		var balance int
		if err := rows.Scan(&name, &balance); err != nil {
			return err
		}
		fmt.Fprintf(w, "%-5s %3d\n", name, balance)
	}
	return rows.Err()
}
