package retrysql

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"sync"
	"sync/atomic"
	"time"

	"github.com/retrygo/retry"
	"github.com/retrygo/retry/retrysql/internal/txlog"
)

// Txn is the transaction that fn works in. It has methods of *sql.Tx, so sqlc, gorm, bun and ent can use it.
//
// Only Tx commits and rolls back. A Txn refuses statements that begin or end a transaction. On MySQL and MariaDB it
// also refuses statements that commit implicitly, such as TRUNCATE and CREATE TABLE. Before the first of these it asks
// for the server's version. Databases read quotes differently, so it also refuses a text that may have such a statement
// after a semicolon. Examples are the definition of a trigger or procedure, a DO block, and a text such as '; commit'
// beside an array. It does not look into procedures and EXECUTE, or at a statement of SQL Server that follows another
// without a semicolon. If one of these commits, a repetition does the work twice.
//
// A Txn notes the errors of its statements, even those that fn ignores. After an error that requires a new transaction
// no statement is sent, and the transaction is not committed, unless a Savepoint undoes the statements that failed. A
// statement that a context or a cancel request ended also requires one, since drivers then close the connection and
// SQLite undoes the whole transaction. If fn returns that error, the run ends. Rows that fn leaves open are closed
// before the commit. A Txn sees the errors of ExecContext and QueryContext, of QueryRowContext before Scan, and of
// *sql.Rows, but not the error that their Close returns to fn. The errors of a row's Scan, of a *sql.Stmt and of Unwrap
// are noted only on a database of package allerrors. On any other, fn must return them.
type Txn struct {
	tx     *sql.Tx
	log    failures
	pooled bool      // the next transaction has another connection
	conn   *sql.Conn // of tx, until it is returned to the pool
	bad    Reason    // why it must not be used again, or empty if it can

	within within                  // fn's context
	begun  begun                   // the context in which the transaction began
	cancel context.CancelFunc      // of that context, or nil if it is the attempt's
	saved  int                     // savepoints
	hooks  []func(context.Context) // called after the commit
	shared atomic.Bool             // fn has a *sql.Tx or *sql.Stmt, which can send statements
	unseen atomic.Bool             // ... or a *sql.Row, whose errors are not noted

	undo    sync.Once
	undoErr error
}

// ExecContext is sql.Tx.ExecContext.
func (t *Txn) ExecContext(ctx context.Context, query string, args ...any) (sql.Result, error) {
	if err := t.allow(query); err != nil {
		return nil, err
	}
	result, err := t.tx.ExecContext(ctx, query, args...)
	return result, t.note(err)
}

// QueryContext is sql.Tx.QueryContext.
func (t *Txn) QueryContext(ctx context.Context, query string, args ...any) (*sql.Rows, error) {
	if err := t.allow(query); err != nil {
		return nil, err
	}
	rows, err := t.tx.QueryContext(ctx, query, args...)
	if err != nil {
		return nil, t.note(err)
	}
	t.log.watch(rows)
	return rows, nil
}

// QueryRowContext is sql.Tx.QueryRowContext.
func (t *Txn) QueryRowContext(ctx context.Context, query string, args ...any) *sql.Row {
	if err := t.allow(query); err != nil {
		return t.tx.QueryRowContext(refuse(err), query)
	}
	row := t.tx.QueryRowContext(ctx, query, args...)
	if t.note(row.Err()) == nil {
		t.unseen.Store(true)
	}
	return row
}

// PrepareContext is sql.Tx.PrepareContext. The statement is closed with the transaction.
func (t *Txn) PrepareContext(ctx context.Context, query string) (*sql.Stmt, error) {
	if err := t.allow(query); err != nil {
		return nil, err
	}
	t.shared.Store(true)
	stmt, err := t.tx.PrepareContext(ctx, query)
	return stmt, t.note(err)
}

// Unwrap returns the *sql.Tx, for code that needs one, such as sqlx. It must not be committed or rolled back.
func (t *Txn) Unwrap() *sql.Tx {
	t.shared.Store(true)
	t.settle()
	return t.tx
}

// Savepoint runs fn in a savepoint of the transaction. If fn returns an error, its work is undone, Savepoint returns
// the error, and the transaction can continue, even after an error that requires a new transaction, such as a lock
// timeout. If the work cannot be undone, as after a deadlock in MySQL, the transaction begins again, even if the caller
// ignores the error. If fn panics, the transaction is not committed, even if the caller recovers. SQL Server does not
// support the statements.
func (t *Txn) Savepoint(ctx context.Context, fn func(context.Context) error) error {
	if fn == nil {
		return errNoFn
	}
	t.saved++
	name := fmt.Sprintf("retrysql_%d", t.saved)
	if _, err := t.ExecContext(ctx, "SAVEPOINT "+name); err != nil {
		return err
	}
	s := savepoint{txn: t, name: name, before: t.log.state(), hooks: len(t.hooks), rows: t.log.open()}
	if err := s.call(ctx, fn); err != nil {
		return s.undo(ctx, err)
	}
	_, err := t.ExecContext(ctx, "RELEASE SAVEPOINT "+name) // not sent after an error that fn ignored
	if err != nil {
		t.log.add(err, true)
	}
	return err
}

// savepoint is a savepoint of txn, and the state of txn when it began.
type savepoint struct {
	txn      *Txn
	name     string
	before   failed
	hooks    int         // the number of hooks
	rows     []*sql.Rows // that were open
	returned bool        // its fn has returned
}

// call calls fn and closes the rows that fn leaves open.
func (s *savepoint) call(ctx context.Context, fn func(context.Context) error) error {
	defer s.finish()
	err := fn(ctx)
	s.returned = true
	return err
}

// finish ends the work of fn. If fn has panicked, the transaction must begin again, since the outer fn may recover.
func (s *savepoint) finish() {
	log := &s.txn.log
	if s.returned {
		log.end(s.txn.server(), s.rows)
	} else {
		log.add(errors.New("retrysql: the fn of a Savepoint did not return"), true)
	}
}

// undo undoes the work of fn, which returned err, and returns err. If it cannot, the transaction must begin again.
func (s *savepoint) undo(ctx context.Context, err error) error {
	t := s.txn
	after := t.log.state()
	t.log.reset(s.before)
	for _, query := range []string{"ROLLBACK TO SAVEPOINT " + s.name, "RELEASE SAVEPOINT " + s.name} {
		if _, failed := t.tx.ExecContext(ctx, query); failed != nil {
			err = fmt.Errorf("%w (the savepoint was not undone: %w)", err, failed)
			t.log.reset(after)
			t.log.add(err, true)
			return err
		}
	}
	t.hooks = t.hooks[:s.hooks]
	return err
}

// AfterCommit adds a hook that Tx calls before it returns nil, in the order in which hooks were added. Hooks of an
// attempt or Savepoint that was rolled back are dropped, and all are if the outcome is unknown. The context of each has
// the values of the context of Tx, but does not end with it, since the commit is certain. It ends after
// Options.EndTimeout. Hooks cannot fail. If one panics, the others are still called, and the panic passes through
// Tx. A hook may add another. AfterCommit panics if hook is nil.
func (t *Txn) AfterCommit(hook func(context.Context)) {
	if hook == nil {
		panic("retrysql: Txn.AfterCommit: hook is nil")
	}
	t.log.mu.Lock()
	defer t.log.mu.Unlock()
	t.hooks = append(t.hooks, hook)
}

// committed calls the hooks, each with a timeout.
func (t *Txn) committed(ctx context.Context, timeout time.Duration) {
	if len(t.hooks) > 0 {
		hook := t.hooks[0]
		t.hooks = t.hooks[1:]
		defer t.committed(ctx, timeout)
		ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), timeout)
		defer cancel()
		hook(ctx)
	}
}

// run calls fn and returns the error of the attempt.
func (t *Txn) run(fn func(context.Context, *Txn) error) error {
	defer t.within.over.Store(true)
	err := fn(&t.within, t)
	hidden := t.unseen.Load() || t.shared.Load()
	switch {
	case err == nil:
		t.log.end(t.server(), nil)
	case hidden && !t.log.watched && conflicts(err):
		t.log.Note(err, t.server())
	default:
		t.log.look(t.server())
	}
	return t.log.conclude(err)
}

// conflicts reports whether err, which is not from a run in fn, is a server's error that requires a new transaction.
func conflicts(err error) bool {
	v := Judge(Statement, err)
	return v.Code != "" && v.Class == retry.Retryable && !errors.As(err, new(*retry.Error))
}

// server returns the server for a note, or nil if the connection has noted the error.
func (t *Txn) server() txlog.Server {
	if t.log.watched {
		return nil
	}
	return server{t}
}

type server struct{ txn *Txn }

func (s server) Ask(query string) (text string, err error) {
	err = s.txn.tx.QueryRowContext(s.txn.within.Context, query).Scan(&text)
	return text, err
}

// allow returns an error for a statement that must not be sent.
func (t *Txn) allow(query string) error {
	t.log.look(t.server())
	t.settle()
	return t.log.Allow(query, server{t})
}

// note notes err and returns it.
func (t *Txn) note(err error) error {
	if err != nil {
		t.log.Note(err, t.server())
		t.settle()
	}
	return err
}

// settle rolls back a transaction that must begin again because of a server's error or a context, if fn can send
// statements that neither t nor the connection sees. MySQL would commit them by themselves after a deadlock.
func (t *Txn) settle() {
	v := Judge(Statement, t.log.Undone())
	ended := v.Code != "" || v.Reason.stops()
	if ended && t.shared.Load() && !t.log.watched {
		_ = t.rollback()
	}
}

func (t *Txn) rollback() error {
	t.undo.Do(func() { t.undoErr = t.tx.Rollback() })
	return t.undoErr
}

// refusal is a context that has ended with err. database/sql checks the context before it sends anything, and returns
// err in a *sql.Row, which only database/sql can make.
type refusal struct {
	context.Context
	err error
}

func refuse(err error) refusal {
	ctx, cancel := context.WithCancel(context.Background())
	cancel()
	return refusal{ctx, err}
}

func (r refusal) Err() error { return r.err }
