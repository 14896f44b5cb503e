package retryriver

import (
	"context"
	"database/sql"
	"database/sql/driver"
	"errors"
	"fmt"
	"strings"
	"sync/atomic"
	"time"

	"github.com/jackc/pgx/v5/pgxpool"
	"github.com/riverqueue/river"
	"github.com/riverqueue/river/riverdriver"
	"github.com/riverqueue/river/riverdriver/riverpgxv5"
	"github.com/riverqueue/river/riverdriver/riversqlite"
	"github.com/riverqueue/river/rivertype"
	sqlitedriver "modernc.org/sqlite"

	"github.com/retrygo/retry/retryjob"
)

// KeyOf is keyOf for tests.
var KeyOf = keyOf

// KeyIndex returns the condition of River's index of unique keys.
func KeyIndex(onSQLite bool) string {
	d := postgres
	if onSQLite {
		d = sqlite
	}
	return "unique_key IS NOT NULL AND unique_states IS NOT NULL AND " + fmt.Sprintf(d.keyIndex, "")
}

// hasty is for tests: a job is found lost as soon as River's rescuer looks.
var hasty = pace{poll: 50 * time.Millisecond, cooldown: 2 * time.Millisecond, unlimited: 5 * time.Second, rescue: time.Second, hasty: true}

// NewMortalSQLite is NewSQLite for tests, also in a synctest bubble. cut takes the database away from it; hold, if not
// nil, is called before each use.
func NewMortalSQLite(ctx context.Context, path string, o retryjob.Options, hold func(context.Context) error) (q *Queue, cut func(), err error) {
	db, err := OpenSQLite(ctx, path)
	if err != nil {
		return nil, nil, err
	}
	if err := db.Close(); err != nil {
		return nil, nil, err
	}
	base, err := sqlitedriver.NewConnector(sqliteName(path, "rw"))
	if err != nil {
		return nil, nil, err
	}
	line := &line{Connector: connector{base}, hold: hold}
	db = sql.OpenDB(line)
	db.SetMaxOpenConns(1)
	q, err = start[*sql.Tx](ctx, riversqlite.New(db), o, hasty, db.Close)
	return q, func() { line.cut.Store(true); db.SetMaxIdleConns(-1) }, err
}

// line makes connections until it is cut.
type line struct {
	driver.Connector
	cut  atomic.Bool
	hold func(context.Context) error // returns when the database may be used
}

func (l *line) Connect(ctx context.Context) (driver.Conn, error) {
	if l.cut.Load() {
		return nil, context.Canceled // after any other error River would retry forever
	}
	conn, err := l.Connector.Connect(ctx)
	if err != nil {
		return nil, err
	}
	return &lineConn{conn.(sqliteConn), l}, nil
}

// lineConn is not returned to the pool after its line is cut. Its statements have the time of this process, which can
// be virtual, where River has SQLite read the system's clock.
type lineConn struct {
	sqliteConn
	line *line
}

// ownTime replaces SQLite's reading of the clock.
func ownTime(text string) string {
	return strings.ReplaceAll(text, "datetime('now', 'subsec')", "time_of_process()")
}

func (c *lineConn) ExecContext(ctx context.Context, text string, args []driver.NamedValue) (driver.Result, error) {
	return c.sqliteConn.ExecContext(ctx, ownTime(text), args)
}

func (c *lineConn) QueryContext(ctx context.Context, text string, args []driver.NamedValue) (driver.Rows, error) {
	return c.sqliteConn.QueryContext(ctx, ownTime(text), args)
}

func (c *lineConn) ResetSession(ctx context.Context) error {
	if c.line.hold != nil {
		if err := c.line.hold(ctx); err != nil {
			return err
		}
	}
	if c.line.cut.Load() {
		return driver.ErrBadConn
	}
	return nil
}

// FaultySQLite opens a database that OpenSQLite has made. fault is called before each statement, with its text, and
// before each commit, with "COMMIT"; its error is that of the database.
func FaultySQLite(path string, fault func(statement string) error) (*sql.DB, error) {
	base, err := sqlitedriver.NewConnector(sqliteName(path, "rw"))
	if err != nil {
		return nil, err
	}
	db := sql.OpenDB(faulty{connector{base}, fault})
	db.SetMaxOpenConns(1)
	return db, nil
}

type faulty struct {
	driver.Connector
	fault func(statement string) error
}

func (f faulty) Connect(ctx context.Context) (driver.Conn, error) {
	conn, err := f.Connector.Connect(ctx)
	if err != nil {
		return nil, err
	}
	return &faultyConn{conn.(sqliteConn), f.fault}, nil
}

type faultyConn struct {
	sqliteConn
	fault func(statement string) error
}

func (c *faultyConn) ExecContext(ctx context.Context, text string, args []driver.NamedValue) (driver.Result, error) {
	if err := c.fault(text); err != nil {
		return nil, err
	}
	return c.sqliteConn.ExecContext(ctx, text, args)
}

func (c *faultyConn) QueryContext(ctx context.Context, text string, args []driver.NamedValue) (driver.Rows, error) {
	if err := c.fault(text); err != nil {
		return nil, err
	}
	return c.sqliteConn.QueryContext(ctx, text, args)
}

func (c *faultyConn) BeginTx(ctx context.Context, o driver.TxOptions) (driver.Tx, error) {
	if err := c.fault("BEGIN"); err != nil {
		return nil, err
	}
	tx, err := c.sqliteConn.BeginTx(ctx, o)
	return faultyTx{tx, c.fault}, err
}

type faultyTx struct {
	driver.Tx
	fault func(statement string) error
}

func (t faultyTx) Commit() error {
	if err := t.fault("COMMIT"); err != nil {
		return errors.Join(err, t.Tx.Rollback())
	}
	return t.Tx.Commit()
}

// NewHastyPostgres is NewPostgres for tests.
func NewHastyPostgres(ctx context.Context, pool *pgxpool.Pool, o retryjob.Options) (*Queue, error) {
	return start(ctx, riverpgxv5.New(pool), o, hasty, func() error { return nil })
}

// Abandon lets the rest of a queue end in the background. The channel is closed at the end.
func (q *Queue) Abandon() <-chan struct{} {
	ended := make(chan struct{})
	go func() {
		defer close(ended)
		_ = q.client.StopAndCancel(context.Background())
	}()
	return ended
}

// Configure returns the config that NewClient derives from a config.
func Configure(a *Adapter, cfg river.Config) (river.Config, error) { return a.configure(cfg) }

// PageQuery returns the query of a list page on SQLite or PostgreSQL, with its arguments.
func PageQuery(onSQLite bool, f retryjob.Filter) (string, []any) {
	q := &query{sql: postgres}
	if onSQLite {
		q.sql = sqlite
	}
	text := q.page(&f, &position{1 << 62, 1 << 62}, 50)
	return text, q.args
}

// CountQuery returns the query of Count.
func CountQuery(onSQLite bool, f retryjob.Filter) (string, []any) {
	q := &query{sql: postgres}
	if onSQLite {
		q.sql = sqlite
	}
	text := q.counts(f)
	return text, q.args
}

// KeptStatements returns the number of compiled statements that a connection of OpenSQLite keeps.
func KeptStatements(conn any) int { return len(conn.(*keepingConn).kept) }

// InfoOf returns the job in a row.
func InfoOf(a *Adapter, row *rivertype.JobRow) *retryjob.Info {
	i, _ := a.info(row)
	return &i
}

// NoteLease makes a process have an attempt on a row, which has ended, and returns its mark.
func NoteLease(a *Adapter, row, at int64, river int, line retryjob.Attempt) int64 {
	m := &lease{leaseKey: leaseKey{row, at}, river: river, line: line}
	a.leases.Store(m.leaseKey, m)
	return m.at
}

// StoreOn returns the Store of a database that OpenSQLite has made, which release closes.
func StoreOn(db *sql.DB, release func() error) (*Store, error) {
	return openStore[*sql.Tx](riversqlite.New(db), release)
}

// JobsQuery returns the query of these columns of the jobs that are not running, as lists read them.
func JobsQuery(onSQLite bool, columns ...string) string {
	d := postgres
	if onSQLite {
		d = sqlite
	}
	return d.jobs("river_job", columns...)
}

// EnsureSchema creates the indexes and the table of schedules if a SQLite database does not have them.
func EnsureSchema(ctx context.Context, db *sql.DB) error {
	return ensureSchema(ctx, riversqlite.New(db), sqlite)
}

// ReplayRow replays the job in a row, which was found to be replayable earlier.
func ReplayRow(ctx context.Context, m *Admin[*sql.Tx], row int64) (n int, err error) {
	err = m.within(ctx, func(_ riverdriver.Executor, tx *sql.Tx) (err error) {
		n, err = m.replay(ctx, tx, []int64{row})
		return err
	})
	return n, err
}

// IDsQuery returns the query of the rows that may be the jobs with these IDs.
func IDsQuery(onSQLite bool, ids []string) (string, []any) {
	q := &query{sql: postgres}
	if onSQLite {
		q.sql = sqlite
	}
	text := q.ids(ids)
	return text, q.args
}

func init() {
	sqlitedriver.MustRegisterDeterministicScalarFunction("unique_key_of", 1, func(_ *sqlitedriver.FunctionContext, args []driver.Value) (driver.Value, error) {
		return keyOf(args[0].(string)), nil
	})
	sqlitedriver.MustRegisterScalarFunction("time_of_process", 0, func(*sqlitedriver.FunctionContext, []driver.Value) (driver.Value, error) {
		return time.Now().UTC().Format("2006-01-02 15:04:05.000"), nil
	})
}

// Shortest reports whether metadata is read without parsing it.
func Shortest(metadata []byte) bool {
	_, ok := shortest(metadata)
	return ok
}
