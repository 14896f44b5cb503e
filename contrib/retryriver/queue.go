package retryriver

import (
	"cmp"
	"context"
	"database/sql"
	"errors"
	"fmt"
	"log/slog"
	"maps"
	"runtime"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"github.com/jackc/pgx/v5/pgxpool"
	"github.com/riverqueue/river"
	"github.com/riverqueue/river/riverdriver"
	"github.com/riverqueue/river/riverdriver/riverpgxv5"
	"github.com/riverqueue/river/riverdriver/riversqlite"

	"github.com/retrygo/retry"
	"github.com/retrygo/retry/retryjob"
)

// Queue is a complete engine: a retryjob.Queue that stores its jobs in a database, where other processes with the same
// Options can also work on them. It has the methods of Admin, and Wait. After Shutdown only Enqueue and EnqueueMany
// return retryjob.ErrShutdown. The other methods still work until the database is closed, since it has the jobs. A
// process that works on them runs what Replay makes Pending, and Wait waits for such a process.
//
// It works on the jobs of the default queue and of those in Options.Queues. Jobs of another Job.Queue wait for a
// program with workers for it.
type Queue struct {
	engine
	client interface {
		Stop(ctx context.Context) error
		StopAndCancel(ctx context.Context) error
		Stopped() <-chan struct{}
	}
	adapter      *Adapter
	endRecurring func()
	told         func() // waits for the calls of Observe in progress
	down         atomic.Bool
	stopping     sync.Once
	hasten       context.CancelCauseFunc // ends the wait of the goroutine that stops the client
	stopped      chan struct{}           // closed when cut is set and nothing is running
	cut          error                   // the reason why attempts were ended
	closing      sync.Once
	release      func() error
}

var _ retryjob.Queue = (*Queue)(nil)

// Adapter returns the Adapter of q, for InsertTx.
func (q *Queue) Adapter() *Adapter { return q.adapter }

// ClientOf returns the river.Client of q, for River's other features: InsertTx, workers for more queues, periodic jobs.
// TTx is *sql.Tx for a Queue of NewSQLite and pgx.Tx for one of NewPostgres; for another type ClientOf returns nil.
// Only the Queue may start and stop the client.
func ClientOf[TTx any](q *Queue) *river.Client[TTx] {
	m, ok := q.engine.(*Admin[TTx])
	if !ok {
		return nil
	}
	return m.client
}

// engine is an Admin for any database.
type engine interface {
	retryjob.Admin
	retryjob.Enqueuer
	Wait(ctx context.Context, id string) (retryjob.Info, error)
}

// pace is the settings of River.
type pace struct {
	poll      time.Duration // between searches for due jobs
	cooldown  time.Duration // the minimum between two searches
	unlimited time.Duration // the time after which an attempt without an AttemptTimeout counts as lost
	rescue    time.Duration // the minimum time before an attempt counts as lost, for any policy
	hasty     bool          // for tests: River's services start without a delay
}

// usual is based on measurements: with a shorter cooldown River fetches single jobs, a longer one limits it to 2000
// jobs/s.
var usual = pace{poll: 100 * time.Millisecond, cooldown: 2 * time.Millisecond, unlimited: time.Hour, rescue: grace + time.Second}

// mostWorkers is River's limit for a queue.
const mostWorkers = 10_000

// NewSQLite returns an engine on the SQLite database in the file at path, opened by OpenSQLite. It works on jobs until
// Shutdown. If a policy has no AttemptTimeout, an attempt may take an hour; after that it counts as lost. ctx bounds
// the opening. NewSQLite refuses options that o.Validate refuses, and more than 10,000 workers for a queue.
func NewSQLite(ctx context.Context, path string, o retryjob.Options) (*Queue, error) {
	db, err := OpenSQLite(ctx, path)
	if err != nil {
		return nil, err
	}
	q, err := start[*sql.Tx](ctx, riversqlite.New(db), o, usual, db.Close)
	if err != nil {
		return nil, errors.Join(err, db.Close())
	}
	return q, nil
}

// NewPostgres returns an engine on a PostgreSQL database that MigratePostgres has migrated; otherwise it returns
// ErrNotMigrated or ErrUnreachable. The engine holds one connection of the pool, on which it listens for new jobs, and
// does not close the pool. The caller does, after Shutdown. Otherwise it is like NewSQLite.
func NewPostgres(ctx context.Context, pool *pgxpool.Pool, o retryjob.Options) (*Queue, error) {
	if err := checkPostgres(ctx, pool); err != nil {
		return nil, err
	}
	return start(ctx, riverpgxv5.New(pool), o, usual, func() error { return nil })
}

// start creates the client and starts it.
func start[TTx any](ctx context.Context, driver riverdriver.Driver[TTx], o retryjob.Options, p pace, release func() error) (*Queue, error) {
	var bad retry.FieldErrors
	bad.Append(o.Validate())
	if len(o.Handlers) == 0 {
		bad.Refuse("retryriver.Options.Handlers", "<empty>", "has no handler to run (a program that only enqueues uses NewClient and NewAdmin)")
	}
	if o.Concurrency > mostWorkers {
		bad.Refuse("retryriver.Options.Concurrency", o.Concurrency, "is above", mostWorkers)
	}
	queues := map[string]river.QueueConfig{river.QueueDefault: {MaxWorkers: cmp.Or(o.Concurrency, 16*runtime.GOMAXPROCS(0))}}
	for _, name := range slices.Sorted(maps.Keys(o.Queues)) {
		if o.Queues[name] > mostWorkers {
			bad.Refuse(fmt.Sprintf("retryriver.Options.Queues[%q]", name), o.Queues[name], "is above", mostWorkers)
		}
		queues[name] = river.QueueConfig{MaxWorkers: o.Queues[name]}
	}
	if err := bad.Err(); err != nil {
		return nil, err
	}
	a, err := New(Options{Policies: o.Policies, Retention: o.Retention, Code: o.Code})
	if err != nil {
		return nil, err
	}
	workers := river.NewWorkers()
	for _, kind := range slices.Sorted(maps.Keys(o.Handlers)) {
		if err := a.addHandler(workers, kind, o.Handlers[kind], p.unlimited); err != nil {
			return nil, err
		}
	}
	cfg := &river.Config{
		Workers: workers, Queues: queues,
		CompletedJobRetentionPeriod: o.Kept(retryjob.Succeeded),
		FetchCooldown:               p.cooldown, FetchPollInterval: p.poll,
		JobTimeout: min(grace, p.rescue/2), RescueStuckJobsAfter: p.rescue, // our handlers have their own
		Logger: quiet(), TestOnly: p.hasty,
	}
	client, err := NewClient(a, driver, cfg)
	if err != nil {
		return nil, fmt.Errorf("retryriver: %w", err)
	}
	if err := client.Start(context.WithoutCancel(ctx)); err != nil {
		return nil, fmt.Errorf("retryriver: %w", err)
	}
	m := NewAdmin(a, client)
	recurring, end := context.WithCancel(context.WithoutCancel(ctx))
	recurred := make(chan struct{})
	o.Recurring = slices.Clone(o.Recurring)
	go func() {
		defer close(recurred)
		o.Recur(recurring, m)
	}()
	return &Queue{
		engine: m, client: client, adapter: a, told: a.telling.Wait, stopped: make(chan struct{}), release: release,
		endRecurring: func() { end(); <-recurred },
	}, nil
}

// Enqueue implements retryjob.Enqueuer. After Shutdown it returns retryjob.ErrShutdown.
func (q *Queue) Enqueue(ctx context.Context, job retryjob.Job) (retryjob.Handle, error) {
	if q.down.Load() {
		return retryjob.Handle{}, retryjob.ErrShutdown
	}
	return q.engine.Enqueue(ctx, job)
}

// EnqueueMany implements retryjob.Enqueuer. After Shutdown it returns retryjob.ErrShutdown.
func (q *Queue) EnqueueMany(ctx context.Context, jobs []retryjob.Job) ([]retryjob.Handle, error) {
	if q.down.Load() {
		return nil, retryjob.ErrShutdown
	}
	return q.engine.EnqueueMany(ctx, jobs)
}

// Shutdown implements retryjob.Queue. left is nil, since the database has the unfinished jobs. A second call waits like
// the first one, can cut it short with its own ctx, and returns the same.
func (q *Queue) Shutdown(ctx context.Context) (left []retryjob.Info, err error) {
	if ctx == nil {
		return nil, errNoContext
	}
	q.down.Store(true)
	q.stopping.Do(func() {
		patience, hasten := context.WithCancelCause(context.Background())
		q.hasten = hasten
		go func() { // River's own Stop cannot be called again while it waits
			defer close(q.stopped)
			q.endRecurring()
			if q.client.Stop(patience) != nil {
				q.cut = context.Cause(patience)
				if hard := q.client.StopAndCancel(context.Background()); hard != nil {
					q.cut = errors.Join(q.cut, hard)
				}
			}
			<-q.client.Stopped()
			q.told()
		}()
	})
	select {
	case <-q.stopped:
	case <-ctx.Done():
		q.hasten(ctx.Err())
		<-q.stopped
	}
	return nil, q.cut
}

// Close is Shutdown with a context that has already ended, whose error it leaves out. It closes the database that
// NewSQLite has opened; a pool stays open.
func (q *Queue) Close() error {
	ctx, cancel := context.WithCancel(context.Background())
	cancel()
	_, _ = q.Shutdown(ctx) // the error is that of the canceled ctx
	var err error
	q.closing.Do(func() { err = q.release() })
	return err
}

// quiet returns the program's logger without River's messages about each job.
func quiet() *slog.Logger { return slog.New(warnings{slog.Default().Handler()}) }

// warnings handles records of level Warn and above.
type warnings struct{ slog.Handler }

func (w warnings) Enabled(ctx context.Context, level slog.Level) bool {
	return level >= slog.LevelWarn && w.Handler.Enabled(ctx, level)
}

func (w warnings) WithAttrs(attrs []slog.Attr) slog.Handler {
	return warnings{w.Handler.WithAttrs(attrs)}
}

func (w warnings) WithGroup(name string) slog.Handler { return warnings{w.Handler.WithGroup(name)} }
