package retryriver

import (
	"context"
	"errors"
	"fmt"

	"github.com/jackc/pgx/v5/pgxpool"
	"github.com/riverqueue/river/riverdriver/riverpgxv5"
	"github.com/riverqueue/river/rivermigrate"
)

// migrationLock is the key of the advisory lock that MigratePostgres holds: a number that other programs are unlikely
// to use.
const migrationLock = 0x72657472796a6f62

// MigratePostgres brings River's tables in the first schema of the search path up to date, and creates the indexes for
// lists and the table of schedules. Call it even if another program migrates River. If several processes call it at
// once, one migrates and the others wait. The pool must allow two connections for that.
func MigratePostgres(ctx context.Context, pool *pgxpool.Pool) error {
	if ctx == nil {
		return errNoContext
	}
	if pool == nil {
		return errors.New("retryriver: MigratePostgres: the pool is nil")
	}
	m, err := rivermigrate.New(riverpgxv5.New(pool), &rivermigrate.Config{Logger: quiet()})
	if err != nil {
		return fmt.Errorf("retryriver: %w", err)
	}
	if pool.Config().MaxConns > 1 {
		conn, err := pool.Acquire(ctx)
		if err != nil {
			return unreachable(err)
		}
		defer conn.Release()
		if _, err := conn.Exec(ctx, "SELECT pg_advisory_lock($1)", int64(migrationLock)); err != nil {
			return fmt.Errorf("retryriver: %w", err)
		}
		defer conn.Exec(context.WithoutCancel(ctx), "SELECT pg_advisory_unlock($1)", int64(migrationLock)) //nolint:errcheck // the session's end unlocks too
	}
	if _, err := m.Migrate(ctx, rivermigrate.DirectionUp, nil); err != nil {
		return fmt.Errorf("retryriver: %w", err)
	}
	return ensureSchema(ctx, riverpgxv5.New(pool), postgres)
}

// checkPostgres returns nil if the server answers and has River's tables.
func checkPostgres(ctx context.Context, pool *pgxpool.Pool) error {
	if ctx == nil {
		return errNoContext
	}
	if pool == nil {
		return errors.New("retryriver: the pool is nil")
	}
	if err := pool.Ping(ctx); err != nil {
		return unreachable(err)
	}
	if err := checkMigrated(ctx, riverpgxv5.New(pool)); err != nil {
		return fmt.Errorf("retryriver: %w", err)
	}
	return nil
}

func unreachable(err error) error { return fmt.Errorf("%w: %w", ErrUnreachable, err) }
