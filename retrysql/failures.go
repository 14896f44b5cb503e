package retrysql

import (
	"cmp"
	"database/sql"
	"errors"
	"fmt"
	"slices"
	"sync"
	"sync/atomic"

	"github.com/retrygo/retry"
	"github.com/retrygo/retry/retrysql/internal/txlog"
)

// failures are the errors of one transaction's statements. The mutex is for an fn that wrongly uses several goroutines.
type failures struct {
	watched bool // the connection is one of package allerrors
	stays   bool // a new transaction would meet a read-only server again

	mu      sync.Mutex
	failed  failed
	refused error       // fn has tried to end the transaction
	rows    []*sql.Rows // whose errors are not noted yet

	mysql atomic.Pointer[bool] // whether the server is MySQL or MariaDB, or nil if it has not answered
}

// failed are the first error, and the first one that requires a new transaction.
type failed struct{ first, undone error }

var _ txlog.Log = (*failures)(nil)

// Watch is called if the connection notes errors too, and refuses all statements after one that requires a new
// transaction.
func (f *failures) Watch() { f.watched = true }

// Note notes err. After some errors SQLite has undone the transaction, and would commit each later statement by itself.
// That can be so after a full disk, and after a conflict with ON CONFLICT ROLLBACK. BEGIN shows whether it is, because
// it fails in a transaction. A nil server means that the connection has asked.
func (f *failures) Note(err error, server txlog.Server) {
	v := Judge(Statement, err)
	undone := v.Class == retry.Retryable || v.Reason.stops()
	if v.Reason == ReadOnlyServer && f.stays {
		undone = false
	}
	if asks := server != nil && isSQLiteError(err); asks && !undone && f.Undone() == nil {
		_, err := server.Ask("BEGIN")
		undone = Judge(Statement, err).Code != "1"
	}
	f.add(err, undone)
}

// add notes err, because of which the transaction must begin again if undone is set.
func (f *failures) add(err error, undone bool) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.failed.first = cmp.Or(f.failed.first, err)
	if undone {
		f.failed.undone = cmp.Or(f.failed.undone, err)
	}
}

// watch adds rows to those that look checks.
func (f *failures) watch(rows *sql.Rows) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.rows = append(f.rows, rows)
}

// look notes the errors of rows that have ended. Columns shows whether they have ended, and their error. Err may also
// return the error of a context that ended later.
func (f *failures) look(server txlog.Server) {
	f.mu.Lock()
	rows := f.rows
	f.rows = nil
	f.mu.Unlock()
	open := rows[:0]
	for _, r := range rows {
		if _, err := r.Columns(); err == nil {
			open = append(open, r)
		} else if errors.Is(err, r.Err()) {
			f.Note(err, server)
		}
	}
	f.mu.Lock()
	defer f.mu.Unlock()
	f.rows = append(open, f.rows...)
}

// end closes the rows that fn has left open, except some, and notes their errors. The commit would close them too, but
// ignore the errors, and a statement fails on a connection that is not read to the end.
func (f *failures) end(server txlog.Server, except []*sql.Rows) {
	f.look(server)
	for _, r := range f.open() {
		if slices.Contains(except, r) {
			continue
		}
		if err := r.Close(); err != nil {
			f.Note(err, server)
		}
	}
}

func (f *failures) open() []*sql.Rows {
	f.mu.Lock()
	defer f.mu.Unlock()
	return slices.Clone(f.rows)
}

func (f *failures) state() failed {
	f.mu.Lock()
	defer f.mu.Unlock()
	return f.failed
}

// Undone returns the first error that requires a new transaction, or nil.
func (f *failures) Undone() error { return f.state().undone }

func (f *failures) reset(to failed) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.failed = to
}

// conclude returns the error of an attempt whose fn returned err. An fn that tried to end the transaction assumes that
// it did, so the attempt is neither committed nor repeated.
func (f *failures) conclude(err error) error {
	f.mu.Lock()
	defer f.mu.Unlock()
	switch {
	case f.refused == nil:
		return err
	case err == nil || errors.Is(err, f.refused):
		return retry.Permanent(cmp.Or(err, f.refused))
	default:
		return retry.Permanent(fmt.Errorf("%w (fn returned: %w)", f.refused, err))
	}
}

// Allow returns the error for a statement that must not be sent. It must not begin or end a transaction, or follow an
// error that requires a new transaction. Allow asks the server for its version only if the answer matters.
func (f *failures) Allow(query string, server txlog.Server) error {
	if undone := f.Undone(); undone != nil {
		err := fmt.Errorf("retrysql: the transaction must be restarted: %w", undone)
		if Judge(Statement, undone).Reason.stops() {
			err = retry.Transient(err) // unlike undone, which may be due to fn's own limit
		}
		return err
	}
	found, mysql := endings(query)
	if found.keyword == "" && mysql.keyword != "" && f.isMySQL(server) {
		found = mysql
	}
	if found.keyword == "" {
		return nil
	}
	err := fmt.Errorf("%w: %s", ErrTransactionEnded, found.keyword)
	if found.later {
		err = fmt.Errorf("%w after a semicolon (define a trigger or procedure outside Tx, and pass text as an argument)", err)
	}
	f.mu.Lock()
	defer f.mu.Unlock()
	f.refused = err
	return err
}

const selectVersion = "SELECT VERSION()"

// isMySQL asks the server whether it is MySQL or MariaDB, until it has answered. Their versions begin with a number,
// but the versions of PostgreSQL and its relatives with a name.
func (f *failures) isMySQL(server txlog.Server) bool {
	if is := f.mysql.Load(); is != nil {
		return *is
	}
	v, err := server.Ask(selectVersion)
	is := "0" <= v && v < ":" // which follows "9"
	if err == nil || lacksFunction(err) {
		f.mysql.Store(&is)
	}
	return is
}

// lacksFunction reports whether a server, such as SQLite or SQL Server, does not know the function of a query.
func lacksFunction(err error) bool {
	reason := ReasonOf(err)
	return reason == SyntaxOrAccess || reason == ServerError
}
