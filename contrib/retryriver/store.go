package retryriver

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"regexp"
	"strings"

	"github.com/jackc/pgx/v5/pgxpool"
	"github.com/riverqueue/river"
	"github.com/riverqueue/river/riverdriver"
	"github.com/riverqueue/river/riverdriver/riverpgxv5"
	"github.com/riverqueue/river/riverdriver/riversqlite"

	"github.com/retrygo/retry/retryjob"
)

// The errors of opening a database that must already exist, found by errors.Is.
var (
	// ErrNoDatabase means that the file does not exist, or is not a SQLite database.
	ErrNoDatabase = errors.New("retryriver: no database there")
	// ErrUnreachable means that the PostgreSQL server does not answer or refuses the login, or that the database does
	// not exist.
	ErrUnreachable = errors.New("retryriver: the server cannot be reached")
	// ErrNotMigrated means that the database does not have River's tables or ours, or has them for an older version.
	ErrNotMigrated = errors.New("retryriver: the database is not migrated")
)

// errNoSchema is the ErrNotMigrated of a database that has River's tables but not ours.
var errNoSchema = fmt.Errorf("%w: the indexes of retryriver are missing or are of an older version (OpenSQLite, NewSQLite and MigratePostgres create it)", ErrNotMigrated)

// likePassword matches the part of a path that an error must not show.
var likePassword = regexp.MustCompile(`(?i):.*@|password|^[^/.]*postgres(ql)?[:/]`)

// Store reads and changes the jobs of a database, but does not run them. It has the methods of retryjob.Admin. It is
// for tools, and does not need policies.
type Store struct {
	retryjob.Admin
	release func() error
}

var _ retryjob.Admin = (*Store)(nil)

// Migrate brings the database that the argument names, as for OpenStore, up to date: River's tables and ours. The database
// must have River's tables already, perhaps of an older version; otherwise Migrate returns ErrNoDatabase,
// ErrUnreachable or ErrNotMigrated.
func Migrate(ctx context.Context, database string) error {
	s, err := OpenStore(ctx, database)
	if err == nil {
		return s.Close() // it is up to date
	}
	if !errors.Is(err, ErrNotMigrated) {
		return err
	}
	if !isPostgres(database) {
		path, err := sqlitePath(database)
		if err != nil {
			return err
		}
		db, err := openSQLite(path, "rw")
		if err != nil {
			return err
		}
		if err = hasRiver(ctx, riversqlite.New(db)); err == nil {
			err = migrateSQLite(ctx, db)
		}
		return errors.Join(err, db.Close())
	}
	pool, err := pgxpool.New(ctx, database)
	if err != nil {
		return unreachable(err)
	}
	defer pool.Close()
	if err := hasRiver(ctx, riverpgxv5.New(pool)); err != nil {
		return err
	}
	return MigratePostgres(ctx, pool)
}

// hasRiver returns nil if a database has River's tables, of any version.
func hasRiver[TTx any](ctx context.Context, driver riverdriver.Driver[TTx]) error {
	if err := driver.GetExecutor().Exec(ctx, "SELECT 1 FROM river_job LIMIT 1"); err != nil {
		return fmt.Errorf("%w: it does not have River's tables: %w", ErrNotMigrated, err)
	}
	return nil
}

func isPostgres(database string) bool {
	return strings.HasPrefix(database, "postgres://") || strings.HasPrefix(database, "postgresql://")
}

// OpenStore opens the database that the argument names: the URL of a PostgreSQL server (postgres:// or postgresql://),
// otherwise the path of a SQLite file, with or without the prefix "sqlite:". It does not create or migrate a database,
// but returns ErrNoDatabase, ErrUnreachable or ErrNotMigrated. ctx bounds the opening.
func OpenStore(ctx context.Context, database string) (*Store, error) {
	if ctx == nil {
		return nil, errNoContext
	}
	if !isPostgres(database) {
		if !strings.HasPrefix(database, "sqlite:") && likePassword.MatchString(database) {
			return nil, fmt.Errorf("%w: it looks like a user and a password outside of a postgres:// URL (write sqlite:PATH for a file with such a name)", ErrNoDatabase)
		}
		db, err := existingSQLite(ctx, database)
		if err != nil {
			return nil, err
		}
		return openStore[*sql.Tx](riversqlite.New(db), db.Close)
	}
	config, err := pgxpool.ParseConfig(database)
	if err != nil {
		return nil, unreachable(err)
	}
	pool, err := pgxpool.NewWithConfig(ctx, config)
	if err != nil {
		return nil, unreachable(err)
	}
	if err := checkPostgres(ctx, pool); err != nil {
		pool.Close()
		return nil, err
	}
	return openStore(riverpgxv5.New(pool), func() error { pool.Close(); return nil })
}

// openStore returns the Store of a database, with a client that can only insert.
func openStore[TTx any](driver riverdriver.Driver[TTx], release func() error) (*Store, error) {
	a, err := New(Options{Policies: retryjob.FromMap(nil)})
	if err != nil {
		return nil, errors.Join(err, release())
	}
	client, err := NewClient(a, driver, &river.Config{Logger: quiet()})
	if err != nil {
		return nil, errors.Join(fmt.Errorf("retryriver: %w", err), release())
	}
	return &Store{Admin: NewAdmin(a, client), release: release}, nil
}

// Close closes the database that OpenStore has opened.
func (s *Store) Close() error { return s.release() }
