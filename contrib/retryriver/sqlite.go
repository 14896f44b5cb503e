package retryriver

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"io"
	"os"
	"strings"

	"github.com/riverqueue/river/riverdriver"
	"github.com/riverqueue/river/riverdriver/riversqlite"
	"github.com/riverqueue/river/rivermigrate"
	sqlitedriver "modernc.org/sqlite"
)

// sqliteSettings are the settings with which two processes on one file lost nothing when they were killed. A
// transaction takes the write lock when it begins, and waits up to 10 s for it; taking it later could fail at once.
// synchronous is FULL: with NORMAL a commit could be lost after a power failure, and 2500 jobs are enqueued per second
// instead of 1700. The journal is WAL, which OpenSQLite sets and the file keeps.
const sqliteSettings = "_txlock=immediate&_pragma=busy_timeout(10000)&_pragma=synchronous(FULL)&_pragma=foreign_keys(1)"

// OpenSQLite opens the SQLite database in the file at path and brings River's tables up to date. The path may have the
// prefix "sqlite:", as for OpenStore. If the file does not exist, it is created, with access for its owner only (0600).
// A database in memory (":memory:") and a URI ("file:...") are refused with ErrNoDatabase.
//
// The settings proved safe in tests: WAL, full synchronization, a write lock that a transaction takes when it begins,
// and one connection. The database is ready for riversqlite.New, in any number of processes of one machine; the file
// must not be on a network. The caller closes it.
//
// With one connection, a sql.Rows or transaction left open blocks River, and a handler that uses the database outside
// its own open transaction waits forever. The connection compiles a statement once, and hides the driver's own methods
// from [sql.Conn.Raw].
func OpenSQLite(ctx context.Context, path string) (*sql.DB, error) {
	if ctx == nil {
		return nil, errNoContext
	}
	path, err := sqlitePath(path)
	if err != nil {
		return nil, err
	}
	if err := makeFile(path); err != nil {
		return nil, err
	}
	db, err := openSQLite(path, "rwc")
	if err != nil {
		return nil, err
	}
	if err := migrateSQLite(ctx, db); err != nil {
		return nil, errors.Join(fmt.Errorf("retryriver: %s: %w", path, err), db.Close())
	}
	return db, nil
}

// sqlitePath returns the path of a file that exists or can be created, without the prefix. The driver would take some
// of the other names for a database in memory, whose jobs end with the process.
func sqlitePath(name string) (string, error) {
	path := strings.TrimPrefix(name, "sqlite:")
	switch {
	case path == "":
		return "", fmt.Errorf("retryriver: the path of a SQLite database is empty: %w", ErrNoDatabase)
	case path == ":memory:":
		return "", fmt.Errorf("retryriver: %s is not a file, and would lose its jobs: %w", name, ErrNoDatabase)
	case strings.HasPrefix(path, "file:"):
		return "", fmt.Errorf("retryriver: %s is a URI, not a path (./%s is the file of that name): %w", name, path, ErrNoDatabase)
	}
	return path, nil
}

// makeFile creates the file if it does not exist. SQLite would make it readable by everyone, and gives the files next
// to it the same mode.
func makeFile(path string) error {
	file, err := os.OpenFile(path, os.O_RDWR|os.O_CREATE|os.O_EXCL, 0o600)
	switch {
	case errors.Is(err, os.ErrExist):
		return nil
	case err != nil:
		return fmt.Errorf("retryriver: %w", err)
	}
	return file.Close()
}

// openSQLite opens a file in one of SQLite's modes: "rwc" creates it, "rw" does not.
func openSQLite(path, mode string) (*sql.DB, error) {
	base, err := sqlitedriver.NewConnector(sqliteName(path, mode))
	if err != nil {
		return nil, fmt.Errorf("retryriver: %s: %w", path, err)
	}
	db := sql.OpenDB(connector{base})
	db.SetMaxOpenConns(1)
	return db, nil
}

// sqliteName returns the data source name for the driver.
func sqliteName(path, mode string) string {
	name := "file:" + strings.NewReplacer("%", "%25", "?", "%3f", "#", "%23").Replace(path) + "?mode=" + mode + "&" + sqliteSettings
	if mode == "rwc" {
		name += "&_pragma=journal_mode(WAL)" // a file that is only read may belong to another program
	}
	return name
}

// migrateSQLite brings River's tables and ours up to date. If several processes do so at once, each performs some of
// the steps, and fails at those of another one. There are fewer steps than tries.
func migrateSQLite(ctx context.Context, db *sql.DB) error {
	m, err := rivermigrate.New(riversqlite.New(db), &rivermigrate.Config{Logger: quiet()})
	if err != nil {
		return err
	}
	for range 20 {
		if _, err = m.Migrate(ctx, rivermigrate.DirectionUp, nil); err == nil || ctx.Err() != nil {
			break
		}
	}
	if err != nil {
		return err
	}
	return ensureSchema(ctx, riversqlite.New(db), sqlite)
}

// sqliteHeader is the beginning of a SQLite database.
const sqliteHeader = "SQLite format 3\x00"

// existingSQLite opens an existing file that has River's tables.
func existingSQLite(ctx context.Context, path string) (*sql.DB, error) {
	path, err := sqlitePath(path)
	if err != nil {
		return nil, err
	}
	if err := checkFile(path); err != nil {
		return nil, err
	}
	db, err := openSQLite(path, "rw")
	if err != nil {
		return nil, err
	}
	if err := checkMigrated(ctx, riversqlite.New(db)); err != nil {
		return nil, errors.Join(fmt.Errorf("retryriver: %s: %w", path, err), db.Close())
	}
	return db, nil
}

// checkFile returns nil if path is a SQLite database that has been written to.
func checkFile(path string) error {
	info, err := os.Stat(path)
	switch {
	case errors.Is(err, os.ErrNotExist):
		return fmt.Errorf("%w: there is no file %s", ErrNoDatabase, path)
	case err != nil:
		return fmt.Errorf("%w: %w", ErrNoDatabase, err)
	case !info.Mode().IsRegular():
		return fmt.Errorf("%w: %s is not a regular file (mode %v)", ErrNoDatabase, path, info.Mode()) // opening a pipe would block
	}
	file, err := os.Open(path)
	if err != nil {
		return fmt.Errorf("%w: %w", ErrNoDatabase, err)
	}
	defer file.Close()
	header := make([]byte, len(sqliteHeader))
	switch n, err := io.ReadFull(file, header); {
	case n == 0 && errors.Is(err, io.EOF):
		return fmt.Errorf("%w: the file %s is empty", ErrNotMigrated, path)
	case string(header) != sqliteHeader:
		return fmt.Errorf("%w: the file %s is not a SQLite database", ErrNoDatabase, path)
	}
	return nil
}

// checkMigrated returns nil if a database has River's tables and ours as these versions need them.
func checkMigrated[TTx any](ctx context.Context, driver riverdriver.Driver[TTx]) error {
	m, err := rivermigrate.New(driver, &rivermigrate.Config{Logger: quiet()})
	if err != nil {
		return err
	}
	result, err := m.Validate(ctx, nil)
	switch {
	case err != nil:
		return err
	case !result.OK:
		return fmt.Errorf("%w: %s", ErrNotMigrated, strings.Join(result.Messages, "; "))
	}
	if has, err := hasSchema(ctx, driver.GetExecutor(), dialectOf(driver.DatabaseName())); has || err != nil {
		return err
	}
	return errNoSchema
}
