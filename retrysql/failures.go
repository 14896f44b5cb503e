package retrysql

import (
	"cmp"
	"context"
	"database/sql"
	"errors"
	"fmt"
	"sync"
	"sync/atomic"

	"github.com/retrygo/retry"
)

// failures are the errors of the statements of one transaction. The mutex is for an fn that wrongly uses the
// transaction in several goroutines.
type failures struct {
	ctx      context.Context // the attempt's
	tx       *sql.Tx
	readOnly bool // Options.ReadOnly, which not every driver enforces
	watched  bool // the connection notes errors too, and sends nothing after one that requires a new transaction

	mu      sync.Mutex
	failed  failed
	refused error       // fn has tried to end the transaction
	rows    []*sql.Rows // whose errors are not noted yet

	mysql atomic.Pointer[bool] // whether the server is MySQL or MariaDB; nil if it has not said
}

// failed are the first error, and the first one that requires a new transaction.
type failed struct {
	first, undone error
	followed      bool // a statement followed the first error
}

// note notes err and returns it.
func (f *failures) note(err error) error {
	if err == nil {
		return nil
	}
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.failed.first == nil {
		f.failed.first = err
	}
	if v := Judge(Statement, err); f.failed.undone == nil && (v.Class == retry.Retryable || v.Reason.stops()) {
		f.failed.undone = err
	}
	return err
}

// watch adds rows to those that look checks.
func (f *failures) watch(rows *sql.Rows) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.rows = append(f.rows, rows)
}

// look notes the errors of rows that have ended. Columns shows whether they have ended, and their error; Err may also
// return the error of a context that ended later.
func (f *failures) look() {
	f.mu.Lock()
	rows := f.rows
	f.rows = nil
	f.mu.Unlock()
	open := rows[:0]
	for _, r := range rows {
		if _, err := r.Columns(); err == nil {
			open = append(open, r)
		} else if errors.Is(err, r.Err()) {
			_ = f.note(err)
		}
	}
	f.mu.Lock()
	defer f.mu.Unlock()
	f.rows = append(open, f.rows...)
}

// end closes the rows that fn has left open and notes their errors. The commit would close them too, but ignore the
// errors.
func (f *failures) end() {
	f.look()
	for _, r := range f.rows {
		_ = f.note(r.Close())
	}
}

// doom notes that the transaction must begin again, because of err.
func (f *failures) doom(err error) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.failed.first, f.failed.undone = cmp.Or(f.failed.first, err), cmp.Or(f.failed.undone, err)
}

// state returns the noted errors, including those of rows.
func (f *failures) state() failed {
	f.look()
	return f.now()
}

// reset returns to an earlier state.
func (f *failures) reset(to failed) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.failed = to
}

// answered reports whether the transaction must begin again because of a server's error or a context, and the
// connection has not noted that.
func (f *failures) answered() bool {
	v := Judge(Statement, f.now().undone)
	return !f.watched && (v.Code != "" || v.Reason.stops())
}

// forgiven returns the error of a rollback. A server that refuses one has already undone the transaction, as SQLite
// does because of ON CONFLICT ROLLBACK, or if it is interrupted in a write. If no statement followed, none was
// committed by itself.
func (f *failures) forgiven(err error) error {
	if now := f.now(); now.first != nil && !now.followed && refuses(err) {
		return nil
	}
	return err
}

// conclude returns the error of an attempt whose fn returned err. An fn that tried to end the transaction assumes that
// it did, so nothing is committed or repeated.
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

// forbid returns the error for a statement that must not be sent: one that would begin or end a transaction, one that
// would write in a read-only transaction, and any after an error that requires a new transaction. MySQL ends the
// transaction at a deadlock, and would commit later statements by themselves. forbid calls version, which asks the
// server for its own, only if the answer matters.
func (f *failures) forbid(query string, version func() (string, error)) error {
	if undone := f.next(); undone != nil {
		err := fmt.Errorf("retrysql: the transaction must be restarted: %w", undone)
		if Judge(Statement, undone).Reason.stops() {
			err = retry.Transient(err) // unlike undone, which may be due to fn's own limit
		}
		return err
	}
	if f.readOnly {
		if keyword := writes(query); keyword != "" {
			return fmt.Errorf("retrysql: %s is refused in a transaction with Options.ReadOnly", keyword)
		}
	}
	keyword := control(query, false)
	if read := control(query, true); read != keyword && f.isMySQL(version) {
		keyword = read
	}
	if keyword != "" {
		return f.refuse(keyword)
	}
	return nil
}

// next returns the error after which nothing may be sent, or notes that a statement is sent.
func (f *failures) next() (undone error) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.failed.followed = f.failed.first != nil
	return f.failed.undone
}

func (f *failures) now() failed {
	f.mu.Lock()
	defer f.mu.Unlock()
	return f.failed
}

// refuse notes that fn has tried to end the transaction, and returns the error for it.
func (f *failures) refuse(keyword string) error {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.refused = fmt.Errorf("%w: %s", ErrTransactionEnded, keyword)
	return f.refused
}

// isMySQL asks the server whether it is MySQL or MariaDB, until it has answered. Their versions begin with a number,
// those of PostgreSQL and its relatives with a name. SQLite and SQL Server do not have the function.
func (f *failures) isMySQL(version func() (string, error)) bool {
	if is := f.mysql.Load(); is != nil {
		return *is
	}
	v, err := version()
	is := "0" <= v && v < ":" // which follows "9"
	if err == nil || Judge(Statement, err).Code != "" {
		f.mysql.Store(&is)
	}
	return is
}

const askVersion = "SELECT VERSION()"

func (f *failures) version() (v string, err error) {
	err = f.tx.QueryRowContext(f.ctx, askVersion).Scan(&v)
	return v, err
}
