package retrysql_test

import (
	"context"
	"database/sql"
	"errors"
	"strings"
	"testing"
	"testing/synctest"

	"github.com/stretchr/testify/require"

	"github.com/retrygo/retry"
	"github.com/retrygo/retry/retrysql"
	"github.com/retrygo/retry/retrytest"
)

// state is an error with a SQLSTATE, like those of the PostgreSQL drivers.
type state string

func (s state) Error() string { return "ERROR " + string(s) }

func (s state) SQLState() string { return string(s) }

const conflict = state("40001")

// atOnce is the default policy with negligible waits.
var atOnce = retry.Policy{MaxAttempts: 3, Backoff: retry.Backoff{Mode: retry.Fixed, Base: 1}}

type faults = []retrytest.SQLFault

var errBusiness = errors.New("insufficient funds")

// idempotent returns a context of WithIdempotent if mark is set.
func idempotent(t *testing.T, mark bool) context.Context {
	if mark {
		return retrysql.WithIdempotent(t.Context())
	}
	return t.Context()
}

// inBubble runs f as a subtest in virtual time.
func inBubble(t *testing.T, name string, f func(*testing.T)) {
	t.Run(name, func(t *testing.T) { synctest.Test(t, f) })
}

// openDB returns a database with the given faults, and a func that returns the log of calls to the driver; a failure has
// "!".
func openDB(t *testing.T, f faults) (*sql.DB, func() string) {
	c := retrytest.NewConnector(t, nil, f)
	db := sql.OpenDB(c)
	t.Cleanup(func() {
		require.Zero(t, db.Stats().InUse, "rows and transactions are closed")
		require.NoError(t, db.Close())
	})
	return db, func() string {
		var log []string
		for _, call := range c.Calls() {
			what := string(call.Op)
			switch call.Op {
			case retrytest.Connect:
				continue
			case retrytest.Exec:
				what = call.Query
			}
			if call.Err != nil {
				what += "!"
			}
			log = append(log, what)
		}
		return strings.Join(log, " ")
	}
}
