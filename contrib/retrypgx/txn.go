package retrypgx

import (
	"context"
	"errors"
	"fmt"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"

	"github.com/retrygo/retry"
	"github.com/retrygo/retry/retrysql"
)

// txn is the pgx.Tx that fn works in. It does not embed one, so a method that a later pgx adds cannot bypass it.
type txn struct {
	tx  pgx.Tx
	log *journal
}

var _ pgx.Tx = (*txn)(nil)

// Begin begins a savepoint.
func (t *txn) Begin(ctx context.Context) (pgx.Tx, error) {
	if err := t.log.over(); err != nil {
		return nil, err
	}
	tx, err := t.tx.Begin(ctx)
	if err = t.log.note(err); err != nil {
		return nil, err
	}
	return &savepoint{txn{tx, t.log}}, nil
}

func (t *txn) Commit(context.Context) error   { return t.log.refuse("Commit") }
func (t *txn) Rollback(context.Context) error { return t.log.leave() }

func (t *txn) CopyFrom(ctx context.Context, table pgx.Identifier, columns []string, src pgx.CopyFromSource) (int64, error) {
	if err := t.log.over(); err != nil {
		return 0, err
	}
	src, err := t.log.copies.source(src, t.log)
	if err != nil {
		return 0, err
	}
	n, err := t.tx.CopyFrom(ctx, table, columns, src)
	return n, t.log.note(err)
}

func (t *txn) SendBatch(ctx context.Context, b *pgx.Batch) pgx.BatchResults {
	if err := t.log.over(); err != nil {
		return unsent{err}
	}
	return &batchResults{t.tx.SendBatch(ctx, b), t.log}
}

// LargeObjects cannot note errors, since a pgx.LargeObjects cannot be built on another pgx.Tx.
func (t *txn) LargeObjects() pgx.LargeObjects { return t.tx.LargeObjects() }

func (t *txn) Prepare(ctx context.Context, name, sql string) (*pgconn.StatementDescription, error) {
	if err := t.log.over(); err != nil {
		return nil, err
	}
	description, err := t.tx.Prepare(ctx, name, sql)
	return description, t.log.note(err)
}

func (t *txn) Exec(ctx context.Context, sql string, args ...any) (pgconn.CommandTag, error) {
	if err := t.log.over(); err != nil {
		return pgconn.CommandTag{}, err
	}
	tag, err := t.tx.Exec(ctx, sql, args...)
	return tag, t.log.executed(tag, err)
}

// Query returns rows even with an error, as pgx does, since fn may rely on the rows' error.
func (t *txn) Query(ctx context.Context, sql string, args ...any) (pgx.Rows, error) {
	if err := t.log.over(); err != nil {
		return unsent{err}.Query()
	}
	found, err := t.tx.Query(ctx, sql, args...)
	return t.log.rows(found, err)
}

func (t *txn) QueryRow(ctx context.Context, sql string, args ...any) pgx.Row {
	if err := t.log.over(); err != nil {
		return unsent{err}.QueryRow()
	}
	return &row{t.tx.QueryRow(ctx, sql, args...), t.log}
}

func (t *txn) Conn() *pgx.Conn { return t.tx.Conn() }

// savepoint is a transaction in the transaction, which fn ends.
type savepoint struct{ txn }

func (s *savepoint) Commit(ctx context.Context) error {
	if err := s.log.over(); err != nil {
		return err
	}
	return s.log.note(s.tx.Commit(ctx))
}

func (s *savepoint) Rollback(ctx context.Context) error {
	if err := s.log.broken(); err != nil {
		return err
	}
	return s.log.note(s.tx.Rollback(ctx))
}

// transaction is a txn with the methods that only Run may call.
type transaction struct {
	*txn
	from *origin
	held *held // until the transaction has ended
}

func (t transaction) Commit(ctx context.Context) error {
	defer t.held.release()
	return t.tx.Commit(ctx)
}

func (t transaction) Rollback(ctx context.Context) error {
	defer t.held.release()
	return t.tx.Rollback(ctx)
}

func (t transaction) Discard(reason retrysql.Reason) bool {
	t.held.bad = true
	return t.from.note(reason)
}

func (t transaction) Failures() (first, retryable error) { return t.log.failures() }

// batchResults are a pgx.BatchResults whose errors are noted.
type batchResults struct {
	results pgx.BatchResults
	log     *journal
}

var _ pgx.BatchResults = (*batchResults)(nil)

func (b *batchResults) Exec() (pgconn.CommandTag, error) {
	tag, err := b.results.Exec()
	return tag, b.log.executed(tag, err)
}

func (b *batchResults) Query() (pgx.Rows, error) {
	found, err := b.results.Query()
	return b.log.rows(found, err)
}

func (b *batchResults) QueryRow() pgx.Row { return &row{b.results.QueryRow(), b.log} }

func (b *batchResults) Close() error { return b.log.note(b.results.Close()) }

// Tx returns nil, since a batch in a transaction cannot begin one.
func (b *batchResults) Tx() pgx.Tx { return nil }

// rows are pgx.Rows whose error is noted once, when they are closed.
type rows struct {
	pgx.Rows
	log   *journal
	noted bool
	err   error // returned by noting it
}

func (r *rows) Next() bool {
	more := r.Rows.Next()
	if !more {
		r.note()
	}
	return more
}

// Scan is pgx.Rows.Scan, which closes them if it fails.
func (r *rows) Scan(dest ...any) error {
	err := r.Rows.Scan(dest...)
	if err != nil {
		r.note()
	}
	return err
}

// Values is pgx.Rows.Values, which closes them if it fails.
func (r *rows) Values() ([]any, error) {
	values, err := r.Rows.Values()
	if err != nil {
		r.note()
	}
	return values, err
}

func (r *rows) Close() {
	r.Rows.Close()
	r.note()
}

func (r *rows) Err() error {
	if r.noted {
		return r.err
	}
	return r.Rows.Err()
}

func (r *rows) note() {
	if !r.noted {
		r.noted = true
		r.err = r.log.executed(r.Rows.CommandTag(), r.Rows.Err())
	}
}

// row is a pgx.Row whose error is noted.
type row struct {
	row pgx.Row
	log *journal
}

func (r *row) Scan(dest ...any) error { return r.log.note(r.row.Scan(dest...)) }

// asker is a pool, which can open a connection besides that of the transaction.
type asker interface {
	QueryRow(ctx context.Context, sql string, args ...any) pgx.Row
}

// askerOf returns db as a pool, or nil. It returns an error if opts needs a pool.
func askerOf(db Beginner, opts Options) (asker, error) {
	pool, ok := db.(asker)
	if _, single := db.(*pgx.Conn); !single && ok {
		return pool, nil
	}
	if opts.Probe {
		return nil, fmt.Errorf("retrypgx: Options.Probe needs a *pgxpool.Pool, not a %T", db)
	}
	return nil, nil
}

// Ask is for Options.Probe, as AskOutside.
func (t transaction) Ask(ctx context.Context, dest []any, query string, args ...any) error {
	return t.log.note(t.tx.QueryRow(ctx, query, args...).Scan(dest...))
}

func (t transaction) AskOutside(ctx context.Context, dest []any, query string, args ...any) error {
	if t.from.asker == nil {
		return retry.Permanent(errors.New("retrypgx: there is no other connection to ask on"))
	}
	return t.from.asker.QueryRow(ctx, query, args...).Scan(dest...)
}
