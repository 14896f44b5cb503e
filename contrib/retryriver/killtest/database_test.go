//go:build unix

package killtest_test

import (
	"context"
	"log/slog"
	"os"
	"strings"
	"time"

	"github.com/jackc/pgx/v5/pgxpool"
	"github.com/riverqueue/river"
	"github.com/riverqueue/river/riverdriver"
	"github.com/riverqueue/river/riverdriver/riverpgxv5"
	"github.com/riverqueue/river/riverdriver/riversqlite"

	"github.com/retrygo/retry/contrib/retryriver"
	"github.com/retrygo/retry/retryjob"
)

// engine is a River client over either database, with its adapter.
type engine struct {
	retryjob.Enqueuer
	retryjob.Admin
	wait        func(ctx context.Context, id string) (retryjob.Info, error)
	start, stop func(context.Context) error
	close       func()
}

// isPostgres reports whether database is a PostgreSQL URL, not the path of a SQLite file.
func isPostgres(database string) bool { return strings.HasPrefix(database, "postgres://") }

// open returns an engine on the database, migrated, whose handlers append to effects. It works jobs after it is
// started; River can stop a working client only after its start has finished.
func open(ctx context.Context, database string, effects *os.File) (*engine, error) {
	adapter, err := retryriver.New(retryriver.Options{Policies: policies()})
	if err != nil {
		return nil, err
	}
	workers := river.NewWorkers()
	if err := addWorkers(workers, adapter, effects); err != nil {
		return nil, err
	}
	cfg := &river.Config{
		Queues:            map[string]river.QueueConfig{river.QueueDefault: {MaxWorkers: 6}},
		Workers:           workers,
		FetchCooldown:     20 * time.Millisecond,
		FetchPollInterval: 100 * time.Millisecond,
		Logger:            slog.New(slog.NewTextHandler(os.Stderr, &slog.HandlerOptions{Level: slog.LevelWarn})),
		// A lost attempt is found as soon as River looks for it.
		JobTimeout:           3 * time.Second,
		RescueStuckJobsAfter: 5 * time.Second,
	}
	if isPostgres(database) {
		pool, err := pgxpool.New(ctx, database)
		if err != nil {
			return nil, err
		}
		if err := retryriver.MigratePostgres(ctx, pool); err != nil {
			pool.Close()
			return nil, err
		}
		return newEngine(adapter, riverpgxv5.New(pool), cfg, pool.Close)
	}
	db, err := retryriver.OpenSQLite(ctx, database)
	if err != nil {
		return nil, err
	}
	return newEngine(adapter, riversqlite.New(db), cfg, func() { _ = db.Close() })
}

// Wait returns when a job has ended.
func (e *engine) Wait(ctx context.Context, id string) (retryjob.Info, error) { return e.wait(ctx, id) }

// newEngine returns the engine over a driver, which close ends.
func newEngine[TTx any](adapter *retryriver.Adapter, driver riverdriver.Driver[TTx], cfg *river.Config, close func()) (*engine, error) {
	client, err := retryriver.NewClient(adapter, driver, cfg)
	if err != nil {
		close()
		return nil, err
	}
	admin := retryriver.NewAdmin(adapter, client)
	return &engine{Enqueuer: admin, Admin: admin, wait: admin.Wait, start: client.Start, stop: client.Stop, close: close}, nil
}
