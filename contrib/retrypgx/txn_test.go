package retrypgx_test

import (
	"context"
	"maps"
	"reflect"
	"slices"
	"testing"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"
	"github.com/jackc/pgx/v5/pgxpool"
	"github.com/stretchr/testify/require"

	"github.com/retrygo/retry"
	"github.com/retrygo/retry/contrib/retrypgx"
	"github.com/retrygo/retry/retrysql"
)

// fakeDB begins fake transactions and logs the calls. The first transaction fails with err.
type fakeDB struct {
	err  error // of each statement of the first transaction
	log  []string
	opts pgx.TxOptions
}

func (d *fakeDB) BeginTx(_ context.Context, opts pgx.TxOptions) (pgx.Tx, error) {
	d.opts = opts
	d.log = append(d.log, "begin")
	tx := &fakeTx{db: d}
	if len(d.log) == 1 {
		tx.err = d.err
	}
	return tx, nil
}

// fakeTx is a transaction without a connection.
type fakeTx struct {
	db    *fakeDB
	err   error
	inner bool // it is a savepoint
}

func (f *fakeTx) note(what string) error {
	if f.inner {
		return f.err
	}
	f.db.log = append(f.db.log, what)
	return nil
}

func (f *fakeTx) failed() pgx.BatchResults { return fakeResults{err: f.err} }

func (f *fakeTx) Begin(context.Context) (pgx.Tx, error) {
	return &fakeTx{f.db, f.err, true}, nil
}
func (f *fakeTx) Commit(context.Context) error   { return f.note("commit") }
func (f *fakeTx) Rollback(context.Context) error { return f.note("rollback") }
func (f *fakeTx) CopyFrom(context.Context, pgx.Identifier, []string, pgx.CopyFromSource) (int64, error) {
	return 0, f.err
}
func (f *fakeTx) SendBatch(context.Context, *pgx.Batch) pgx.BatchResults { return f.failed() }
func (f *fakeTx) LargeObjects() pgx.LargeObjects                         { return pgx.LargeObjects{} }
func (f *fakeTx) Prepare(context.Context, string, string) (*pgconn.StatementDescription, error) {
	return nil, f.err
}
func (f *fakeTx) Exec(context.Context, string, ...any) (pgconn.CommandTag, error) {
	return pgconn.NewCommandTag("UPDATE 1"), f.err
}
func (f *fakeTx) Query(context.Context, string, ...any) (pgx.Rows, error) {
	if f.err == nil {
		return fakeRows{}, nil
	}
	return f.failed().Query()
}
func (f *fakeTx) QueryRow(context.Context, string, ...any) pgx.Row { return f.failed().QueryRow() }
func (f *fakeTx) Conn() *pgx.Conn                                  { return nil }

// fakeResults are those of a batch that failed.
type fakeResults struct {
	pgx.BatchResults
	err error
}

func (f fakeResults) Exec() (pgconn.CommandTag, error) { return pgconn.CommandTag{}, f.err }
func (f fakeResults) Query() (pgx.Rows, error)         { return fakeRows{err: f.err}, f.err }
func (f fakeResults) QueryRow() pgx.Row                { return f }
func (f fakeResults) Scan(...any) error                { return f.err }
func (f fakeResults) Close() error                     { return f.err }

// fakeRows are empty rows, or those of a query that failed.
type fakeRows struct {
	pgx.Rows
	err error
}

func (fakeRows) Next() bool                    { return false }
func (f fakeRows) Err() error                  { return f.err }
func (fakeRows) Close()                        {}
func (fakeRows) CommandTag() pgconn.CommandTag { return pgconn.CommandTag{} }

// endings are the ways to end a savepoint.
var endings = map[string]func(context.Context, pgx.Tx) error{
	"a savepoint's Rollback": func(ctx context.Context, tx pgx.Tx) error { return begun(ctx, tx).Rollback(ctx) },
	"a savepoint's Commit":   func(ctx context.Context, tx pgx.Tx) error { return begun(ctx, tx).Commit(ctx) },
}

// begun returns a savepoint of a fake transaction, whose begin never fails.
func begun(ctx context.Context, tx pgx.Tx) pgx.Tx {
	nested, _ := tx.Begin(ctx)
	return nested
}

func TestEveryMethodOfATransaction(t *testing.T) {
	conflict := &pgconn.PgError{Code: "40001"}
	ways := maps.Clone(statements)
	delete(ways, "Begin") // the fake one does not fail
	maps.Copy(ways, endings)
	for name, way := range ways {
		t.Run(name+" notes its error", func(t *testing.T) {
			d := fakeDB{err: conflict}
			err := retrypgx.Tx(t.Context(), &d, quick(3), nil, func(ctx context.Context, tx pgx.Tx) error {
				if len(d.log) == 1 {
					require.ErrorIs(t, way(ctx, tx), conflict)
				}
				return nil
			})
			require.NoError(t, err)
			require.Equal(t, []string{"begin", "rollback", "begin", "commit"}, d.log)
		})
	}
	t.Run("a method is wrapped, also one that pgx may add", func(t *testing.T) {
		known := append(slices.Collect(maps.Keys(statements)), "Commit", "Rollback", "LargeObjects", "Conn")
		var methods []string
		for i, tx := 0, reflect.TypeFor[pgx.Tx](); i < tx.NumMethod(); i++ {
			methods = append(methods, tx.Method(i).Name)
		}
		require.ElementsMatch(t, methods, known)
		require.NoError(t, retrypgx.Tx(t.Context(), &fakeDB{}, quick(1), nil, func(ctx context.Context, tx pgx.Tx) error {
			kind := reflect.TypeOf(tx).Elem()
			for i := range kind.NumField() {
				require.False(t, kind.Field(i).Anonymous, kind.Field(i).Name)
			}
			return nil
		}))
	})
	t.Run("a method is passed on", func(t *testing.T) {
		require.NoError(t, retrypgx.Tx(t.Context(), &fakeDB{}, quick(1), nil, func(ctx context.Context, tx pgx.Tx) error {
			require.Nil(t, tx.Conn())
			require.Zero(t, tx.LargeObjects())
			require.Nil(t, tx.SendBatch(ctx, &pgx.Batch{}).(interface{ Tx() pgx.Tx }).Tx()) // of a pgx.BatchResults since pgx 5.12
			rows, err := tx.Query(ctx, "")
			require.NoError(t, err)
			require.NoError(t, rows.Err())
			require.False(t, rows.Next())
			rows.Close()
			return rows.Err()
		}))
	})
}

func TestCommitAndRollbackAreRefused(t *testing.T) {
	for name, end := range map[string]func(context.Context, pgx.Tx) error{
		"Commit":   func(ctx context.Context, tx pgx.Tx) error { return tx.Commit(ctx) },
		"Rollback": func(ctx context.Context, tx pgx.Tx) error { return tx.Rollback(ctx) },
	} {
		for _, returned := range []error{nil, errBusiness, &pgconn.PgError{Code: "40001"}, retry.Transient(errBusiness)} {
			t.Run(name, func(t *testing.T) {
				var d fakeDB
				err := retrypgx.Tx(t.Context(), &d, quick(3), nil, func(ctx context.Context, tx pgx.Tx) error {
					require.ErrorIs(t, end(ctx, tx), retrysql.ErrTransactionEnded)
					for name, way := range statements {
						require.ErrorIs(t, way(ctx, tx), retrysql.ErrTransactionEnded, name)
					}
					return returned
				})
				require.ErrorIs(t, err, retrysql.ErrTransactionEnded)
				require.ErrorContains(t, err, name+" is refused")
				require.ErrorIs(t, err, retry.TerminalError)
				if returned != nil {
					require.ErrorIs(t, err, returned)
				}
				require.Equal(t, []string{"begin", "rollback"}, d.log)
			})
		}
	}
	t.Run("a savepoint's methods are refused after a Commit that was refused", func(t *testing.T) {
		var d fakeDB
		err := retrypgx.Tx(t.Context(), &d, quick(3), nil, func(ctx context.Context, tx pgx.Tx) error {
			nested, err := tx.Begin(ctx)
			require.NoError(t, err)
			_ = tx.Commit(ctx)
			require.ErrorIs(t, nested.Commit(ctx), retrysql.ErrTransactionEnded)
			require.ErrorIs(t, nested.Rollback(ctx), retrysql.ErrTransactionEnded)
			return nil
		})
		require.ErrorIs(t, err, retrysql.ErrTransactionEnded)
	})
}

func TestATxInATxOnTheSameDatabaseIsRefused(t *testing.T) {
	var d, other fakeDB
	nothing := func(context.Context, pgx.Tx) error { return nil }
	require.NoError(t, retrypgx.Tx(t.Context(), &d, quick(1), nil, func(ctx context.Context, _ pgx.Tx) error {
		return retrypgx.Tx(ctx, &other, quick(1), nil, func(ctx context.Context, _ pgx.Tx) error {
			require.ErrorContains(t, retrypgx.Tx(ctx, &d, quick(1), nil, nothing), "in the fn of a Tx on the same database")
			return nil
		})
	}))
	require.Equal(t, []string{"begin", "commit"}, d.log)
	require.Equal(t, []string{"begin", "commit"}, other.log)
	require.EqualError(t, retrypgx.Tx(context.Context(nil), &d, quick(1), nil, nothing), "retrypgx: ctx is nil")
}

func TestTheContextOfAFnThatHasReturnedBelongsToNoTransaction(t *testing.T) {
	for name, end := range map[string]func() error{"nil": func() error { return nil }, "a panic": func() error { panic("a bug") }} {
		t.Run(name, func(t *testing.T) {
			var d fakeDB
			var old context.Context
			func() {
				defer func() { _ = recover() }()
				_ = retrypgx.Tx(t.Context(), &d, quick(1), nil, func(ctx context.Context, _ pgx.Tx) error { old = ctx; return end() })
			}()
			require.NoError(t, retrypgx.Tx(old, &d, quick(1), nil, func(context.Context, pgx.Tx) error { return nil }))
			require.Equal(t, []string{"begin", "commit"}, d.log[2:])
		})
	}
}

func TestAConflictOfAnotherDatabaseIsFnsOwn(t *testing.T) {
	foreign := &pgconn.PgError{Code: "40001"}
	other := fakeDB{err: foreign}
	for name, fn := range map[string]func(context.Context, pgx.Tx) error{
		"alone": func(context.Context, pgx.Tx) error { return foreign },
		"of a run that gave up": func(ctx context.Context, _ pgx.Tx) error {
			return retrypgx.Tx(ctx, &other, quick(1), nil, func(ctx context.Context, tx pgx.Tx) error { return execute(ctx, tx, increment) })
		},
	} {
		t.Run(name, func(t *testing.T) {
			var d fakeDB
			require.ErrorIs(t, retrypgx.Tx(t.Context(), &d, quick(3), nil, fn), foreign)
			require.Equal(t, []string{"begin", "rollback"}, d.log)
		})
	}
}

func TestArguments(t *testing.T) {
	fn := func(context.Context, pgx.Tx) error { return nil }
	priority := pgx.TxOptions{BeginQuery: "begin priority high"}
	both := priority
	both.IsoLevel, both.AccessMode = pgx.Serializable, pgx.ReadOnly
	t.Run("missing and wrong arguments are refused before a transaction begins", func(t *testing.T) {
		var d fakeDB
		_, noFn := retrypgx.TxValue[int](t.Context(), &d, quick(1), nil, nil)
		for _, row := range []struct {
			err  error
			want string
		}{
			{retrypgx.Tx(t.Context(), nil, quick(1), nil, fn), "retrypgx: db is nil"},
			{retrypgx.Tx(t.Context(), (*pgxpool.Pool)(nil), quick(1), nil, fn), "retrypgx: db is nil"},
			{retrypgx.Tx(t.Context(), &d, quick(1), nil, nil), "retrypgx: fn is nil"},
			{noFn, "retrypgx: fn is nil"},
			{retrypgx.Tx(t.Context(), &d, quick(1), &retrypgx.Options{EndTimeout: -1}, fn), "retrysql: Options.EndTimeout -1ns is negative"},
			{retrypgx.Tx(t.Context(), &d, retry.Policy{TTL: -1}, nil, fn), "retry: Policy.TTL -1ns is negative"},
			{retrypgx.Tx(t.Context(), &d, retry.Policy{TTL: -1}, &retrypgx.Options{EndTimeout: -1}, fn),
				"retrysql: Options.EndTimeout -1ns is negative; retry: Policy.TTL -1ns is negative"},
			{retrypgx.Tx(t.Context(), &d, quick(1), &retrypgx.Options{TxOptions: both}, fn),
				`retrypgx: Options.BeginQuery "begin priority high" overrides the modes that are set`},
			{retrypgx.Options{TxOptions: pgx.TxOptions{BeginQuery: "begin", AccessMode: pgx.ReadOnly}}.Validate(),
				`retrypgx: Options.BeginQuery "begin" overrides the modes that are set`},
			{retrypgx.Options{TxOptions: pgx.TxOptions{BeginQuery: "begin", DeferrableMode: pgx.Deferrable}}.Validate(),
				`retrypgx: Options.BeginQuery "begin" overrides the modes that are set`},
		} {
			require.EqualError(t, row.err, row.want)
		}
		require.Empty(t, d.log)
	})
	t.Run("the options reach pgx", func(t *testing.T) {
		for _, opts := range []pgx.TxOptions{{}, priority, {IsoLevel: pgx.RepeatableRead, DeferrableMode: pgx.Deferrable}} {
			var d fakeDB
			require.NoError(t, retrypgx.Tx(t.Context(), &d, quick(1), &retrypgx.Options{TxOptions: opts}, fn))
			require.Equal(t, opts, d.opts)
		}
	})
	t.Run("the zero policy is that of package retrysql", func(t *testing.T) {
		err := retrypgx.Tx(t.Context(), &fakeDB{}, retry.Policy{}, nil, func(context.Context, pgx.Tx) error { return retry.Transient(errBusiness) })
		failed, ok := find[*retry.Error](err)
		require.True(t, ok)
		require.Equal(t, "sql", failed.Policy)
		require.Equal(t, 5, failed.Attempts)
	})
}
