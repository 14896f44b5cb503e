package retrysql_test

import (
	"context"
	"database/sql"
	"database/sql/driver"
	"errors"
	"fmt"
	"strconv"
	"strings"
	"testing"
	"testing/synctest"

	"github.com/stretchr/testify/require"

	"github.com/retrygo/retry"
	"github.com/retrygo/retry/retrysql"
	"github.com/retrygo/retry/retrytest"
)

func exec(ctx context.Context, tx *retrysql.Txn) error {
	_, err := tx.ExecContext(ctx, "UPDATE")
	return err
}

// pgError has the method that pgconn.PgError and pq.Error have.
type pgError struct{ state, Message string }

func (e *pgError) Error() string { return "ERROR: " + e.Message + " (SQLSTATE " + e.state + ")" }

func (e *pgError) SQLState() string { return e.state }

// mysqlError has the shape of mysql.MySQLError.
type mysqlError struct {
	Number   uint16
	SQLState [5]byte
	Message  string
}

func (e *mysqlError) Error() string { return e.Message }

// mssqlError resembles that of github.com/microsoft/go-mssqldb: a value that is not comparable.
type mssqlError struct {
	Number int32
	All    []mssqlError
}

func (e mssqlError) Error() string { return "mssql: " + strconv.Itoa(int(e.Number)) }

func (e mssqlError) SQLErrorNumber() int32 { return e.Number }

func pg(state string) error { return &pgError{state, "no"} }

func my(number uint16, state string) error { return mySays(number, state, "no") }

func mySays(number uint16, state, text string) error {
	e := &mysqlError{Number: number, Message: text}
	copy(e.SQLState[:], state)
	return e
}

var phases = []retrysql.Phase{retrysql.Connect, retrysql.Statement, retrysql.Commit, retrysql.Autocommit}

// letters are the verdicts of the tables below.
var letters = map[byte]retrysql.Verdict{
	'R': {Class: retry.Retryable},
	'T': {Class: retry.Terminal},
	'A': {Class: retry.Terminal, Ambiguous: true},
	'-': {},
}

// The verdicts at Connect, Statement, Commit and Autocommit, in this order.
const (
	ifUndone      = "RRRR"
	ifMisplaced   = "RRRR"
	ifRefused     = "RRAR"
	ifUnreached   = "RRAR"
	ifLost        = "RRAA"
	ifUncertain   = "AAAA"
	ifRejected    = "TTTT"
	ifUnable      = "RTAT"
	ifFutile      = "TTAT"
	ifStopped     = "RTAA"
	ifAborted     = "R---"
	ifInterrupted = "R-AA"
	ifOver        = "TTTT"
	ifUnknown     = "R-AT"
)

// agree compares an error with its row, also wrapped and joined.
func agree(t *testing.T, err error, reason retrysql.Reason, code, want string) {
	t.Helper()
	for _, err := range []error{
		err,
		fmt.Errorf("insert: %w", err),
		errors.Join(errors.New("insert"), err),
		&retry.Error{Last: fmt.Errorf("inside: %w", err), Outcome: retry.Outcome{Reason: retry.AttemptsExhausted}},
		errors.Join(err, pg("42601"), driver.ErrBadConn),
		&retry.Error{Last: retry.Permanent(err)},
		retry.Ambiguous(err),
	} {
		for i, phase := range phases {
			verdict := letters[want[i]]
			verdict.Reason, verdict.Code = reason, code
			require.Equal(t, verdict, retrysql.Judge(phase, err), "%v: %v", phase, err)
		}
		require.Equal(t, letters[want[1]].Class, retrysql.Classify(err))
		require.Equal(t, reason, retrysql.ReasonOf(err))
	}
}

// state is an error with a SQLSTATE, like those of the PostgreSQL drivers.
type state string

func (s state) Error() string { return "ERROR " + string(s) }

func (s state) SQLState() string { return string(s) }

const (
	conflict  = state("40001")
	duplicate = state("23505")
	aborted   = state("25P02")
	shutdown  = state("57P01")
)

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
	c := retrytest.NewConnector(t, &cluster{}, f)
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
