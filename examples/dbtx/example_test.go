package main

import (
	"context"
	"database/sql"
	"fmt"
	"log"
	"testing"
	"testing/synctest"

	"github.com/retrygo/retry/retrysql"
	"github.com/retrygo/retry/retrytest"
)

// The transfer on SQLite in memory, with faults that SQLite itself does not have. A connection that is lost before
// COMMIT and one that is lost after it look the same to the caller. The balances differ, so the transfer is not
// repeated.
func Example_faults() {
	const name = "file:faults?mode=memory&cache=shared"
	db, err := sql.Open("sqlite", name) // its connection keeps the database
	if err != nil {
		log.Fatal(err)
	}
	defer db.Close()
	ctx := context.Background()
	if _, err := db.ExecContext(ctx, "CREATE TABLE account (name TEXT PRIMARY KEY, balance INTEGER)"); err != nil {
		log.Fatal(err)
	}
	for _, row := range []struct {
		what  string
		fault retrytest.SQLFault
	}{
		{"a serialization failure", retrytest.SQLFault{On: retrytest.Commit, Err: retrytest.ErrSerialization}},
		{"busy", retrytest.SQLFault{Query: "UPDATE", Err: retrytest.ErrBusy}},
		{"a connection lost in the transaction", retrytest.SQLFault{Query: "bob", Lost: true}},
		{"a connection lost before COMMIT", retrytest.SQLFault{On: retrytest.Commit, Lost: true}},
		{"a connection lost after COMMIT", retrytest.SQLFault{On: retrytest.Commit, Lost: true, Late: true}},
	} {
		if _, err := db.ExecContext(ctx, "REPLACE INTO account VALUES ('alice', 100), ('bob', 0)"); err != nil {
			log.Fatal(err)
		}
		var runs retrytest.Timeline
		synctest.Test(new(testing.T), func(t *testing.T) { // in a test, its own
			p := retrysql.DefaultPolicy()
			p.Observe, p.Rand = runs.Observe, func() float64 { return 0.5 }
			c := retrytest.NewConnector(t, retrytest.DSN(db.Driver(), name), []retrytest.SQLFault{row.fault})
			err = transfer(t.Context(), c.OpenDB(), p, 60, func() {})
		})
		var balances string
		const query = "SELECT group_concat(name || ' has ' || balance, ', ' ORDER BY name) FROM account"
		if err := db.QueryRowContext(ctx, query).Scan(&balances); err != nil {
			log.Fatal(err)
		}
		fmt.Printf("%s: %s\n%v", row.what, balances, &runs)
		if reason := retrysql.ReasonOf(err); reason != "" {
			fmt.Println(reason)
		}
	}
	// Output:
	// a serialization failure: alice has 40, bob has 60
	// 0s    attempt 1  commit: serialization_failure (40001): could not serialize access (SQLSTATE 40001)   wait 5ms
	// 5ms   attempt 2  ok
	// 5ms   succeeded after 2 attempts
	// busy: alice has 40, bob has 60
	// 0s    attempt 1  statement: busy (5): database is locked (SQLITE_BUSY)   wait 5ms
	// 5ms   attempt 2  ok
	// 5ms   succeeded after 2 attempts
	// a connection lost in the transaction: alice has 40, bob has 60
	// 0s    attempt 1  connection reset   wait 5ms
	// 5ms   attempt 2  ok
	// 5ms   succeeded after 2 attempts
	// a connection lost before COMMIT: alice has 100, bob has 0
	// 0s   attempt 1  connection reset
	// 0s   dead_letter (terminal_error) after 1 attempt
	// commit_ambiguous
	// a connection lost after COMMIT: alice has 40, bob has 60
	// 0s   attempt 1  connection reset
	// 0s   dead_letter (terminal_error) after 1 attempt
	// commit_ambiguous
}
