package retrysql

import (
	"context"
	"database/sql"
	"fmt"
	"sync"
	"sync/atomic"
)

// Txn is the transaction that fn works in. It has methods of *sql.Tx, so it is the DBTX of sqlc and a ConnPool of gorm,
// and bun and ent accept it.
//
// Only Tx commits and rolls back. A Txn refuses statements that begin or end a transaction. On MySQL and MariaDB it
// also refuses statements that commit implicitly, such as TRUNCATE and CREATE TABLE; before the first of these it asks
// for the server's version. It does not see what a procedure, EXECUTE or a block does: if that commits, a repetition
// does the work twice. It also does not see that SQLite ends the transaction because of RAISE(ROLLBACK) or the ON
// CONFLICT ROLLBACK of a table: if fn ignores that error, SQLite commits each later statement by itself.
//
// A Txn notes the errors of its statements, even those that fn ignores: after an error that requires a new transaction
// no statement is sent and nothing is committed, unless a Savepoint undoes what failed. A statement that a context or a
// cancel request ended also requires one, since drivers then close the connection and SQLite undoes the whole
// transaction; if fn returns that error, the run ends. Rows that fn leaves open are closed before the commit. A Txn
// sees the errors of ExecContext and QueryContext, of QueryRowContext before Scan, and of *sql.Rows, but not the error
// that their Close returns to fn. The errors of a row's Scan, of a *sql.Stmt and of Unwrap are noted only on a database
// of Open or Watch; on any other, fn must return them.
type Txn struct {
	tx  *sql.Tx
	log failures

	work      work  // fn's context
	begun     begun // the context in which the transaction began
	isolation sql.IsolationLevel
	saved     int                     // savepoints
	hooks     []func(context.Context) // called after the commit
	shared    atomic.Bool             // fn has a *sql.Tx or *sql.Stmt, which can send statements

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
		return t.tx.QueryRowContext(refusal{ctx, err}, query)
	}
	row := t.tx.QueryRowContext(ctx, query, args...)
	_ = t.note(row.Err())
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

// StmtContext is sql.Tx.StmtContext.
func (t *Txn) StmtContext(ctx context.Context, stmt *sql.Stmt) *sql.Stmt {
	if err := t.allow(""); err != nil {
		return t.tx.StmtContext(refusal{ctx, err}, stmt)
	}
	t.shared.Store(true)
	return t.tx.StmtContext(ctx, stmt)
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
// ignores the error.
//
// If fn panics, the transaction is not committed, even if the caller of Savepoint recovers.
//
// The statements are SAVEPOINT, RELEASE SAVEPOINT and ROLLBACK TO SAVEPOINT, which SQL Server does not support.
func (t *Txn) Savepoint(ctx context.Context, fn func(context.Context) error) error {
	if fn == nil {
		return errNoFn
	}
	t.saved++
	name := fmt.Sprintf("retrysql_%d", t.saved)
	if _, err := t.ExecContext(ctx, "SAVEPOINT "+name); err != nil {
		return err
	}
	before, hooks := t.log.state(), len(t.hooks)
	err := t.part("Savepoint", func() error { return fn(ctx) })
	if err == nil {
		if _, err = t.ExecContext(ctx, "RELEASE SAVEPOINT "+name); err != nil { // not sent after an error that fn ignored
			t.log.doom(err)
		}
		return err
	}
	after := t.log.state()
	t.log.reset(before)
	for _, query := range []string{"ROLLBACK TO SAVEPOINT " + name, "RELEASE SAVEPOINT " + name} {
		if _, failed := t.tx.ExecContext(ctx, query); failed != nil {
			err = fmt.Errorf("%w (the savepoint was not undone: %w)", err, failed)
			t.log.reset(after)
			t.log.doom(err)
			return err
		}
	}
	t.hooks = t.hooks[:hooks]
	return err
}

// AfterCommit adds a hook that Tx calls before it returns nil. Hooks of an attempt or Savepoint that was rolled back
// are dropped, and none is called if the outcome is unknown. Hooks are called in the order in which they were added,
// with the context that Tx was called with. They cannot fail. If a hook panics, the others are still called, and the
// panic passes through Tx. A hook may add another, which is called last. AfterCommit panics if hook is nil.
func (t *Txn) AfterCommit(hook func(context.Context)) {
	if hook == nil {
		panic("retrysql: Txn.AfterCommit: hook is nil")
	}
	t.log.mu.Lock()
	defer t.log.mu.Unlock()
	t.hooks = append(t.hooks, hook)
}

// committed calls the hooks.
func (t *Txn) committed(ctx context.Context) {
	if len(t.hooks) > 0 {
		hook := t.hooks[0]
		t.hooks = t.hooks[1:]
		defer t.committed(ctx)
		hook(ctx)
	}
}

// allow returns an error for a statement that must not be sent.
func (t *Txn) allow(query string) error {
	t.log.look()
	t.settle()
	return t.log.forbid(query, t.log.version)
}

// note notes err and returns it.
func (t *Txn) note(err error) error {
	if err != nil {
		_ = t.log.note(err)
		t.settle()
	}
	return err
}

// settle rolls the transaction back if it must begin again and fn can send statements that t does not see: MySQL ends
// the transaction at a deadlock, and would commit them by themselves.
func (t *Txn) settle() {
	if t.shared.Load() && t.log.answered() {
		_ = t.rollback()
	}
}

func (t *Txn) rollback() error {
	t.undo.Do(func() { t.undoErr = t.tx.Rollback() })
	return t.undoErr
}

// refusal is a context that has ended with err. database/sql checks the context before it sends anything, and returns
// err in a *sql.Row or *sql.Stmt, which only database/sql can make.
type refusal struct {
	context.Context
	err error
}

var closed = func() <-chan struct{} {
	c := make(chan struct{})
	close(c)
	return c
}()

func (r refusal) Done() <-chan struct{} { return closed }
func (r refusal) Err() error            { return r.err }
