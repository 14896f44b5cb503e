package retryriver_test

import (
	"context"
	"database/sql"
	"errors"
	"log/slog"
	"path/filepath"
	"slices"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"
	"github.com/riverqueue/river"
	"github.com/riverqueue/river/riverdriver"
	"github.com/riverqueue/river/riverdriver/riverpgxv5"
	"github.com/riverqueue/river/riverdriver/riversqlite"
	"github.com/stretchr/testify/require"

	"github.com/retrygo/retry"
	"github.com/retrygo/retry/contrib/retrypgx/pgtest"
	"github.com/retrygo/retry/contrib/retryriver"
	"github.com/retrygo/retry/retryjob"
)

// BenchmarkOverhead compares River without an adapter to River with one, with the same settings and the same database:
// on plain jobs, with the same worker, and on retryjob.Jobs with a handler. Each iteration is one round of all three,
// in rotating order. The metrics are medians over the rounds: jobs worked per second, plain jobs inserted per second,
// and the ratio of each to River's own speed in the same round. The target is a ratio of 0.9 for plain jobs worked. A
// handler's jobs write more, above all their record, which their ratio shows. One round is not enough:
//
//	go test -C contrib/retryriver -run '^$' -bench Overhead -benchtime 30x
func BenchmarkOverhead(b *testing.B) {
	b.Run("SQLite", func(b *testing.B) {
		db, err := retryriver.OpenSQLite(b.Context(), filepath.Join(b.TempDir(), "jobs.db"))
		require.NoError(b, err)
		defer db.Close()
		compareSpeed(b, &speedTrack[*sql.Tx]{driver: riversqlite.New(db), jobs: 1000, clear: func(ctx context.Context) error {
			_, err := db.ExecContext(ctx, "DELETE FROM river_job")
			return err
		}})
	})
	b.Run("PostgreSQL", func(b *testing.B) {
		pool, err := pgxpool.New(b.Context(), pgtest.Start(b).DSN())
		require.NoError(b, err)
		defer pool.Close()
		require.NoError(b, retryriver.MigratePostgres(b.Context(), pool))
		compareSpeed(b, &speedTrack[pgx.Tx]{driver: riverpgxv5.New(pool), jobs: 4000, clear: func(ctx context.Context) error {
			_, err := pool.Exec(ctx, "TRUNCATE river_job")
			return err
		}})
	})
}

// speedTrack is the database on which all contenders run.
type speedTrack[TTx any] struct {
	driver riverdriver.Driver[TTx]
	jobs   int // of a round, so many that it takes about half a second
	clear  func(context.Context) error
}

// contender is one of those compared.
type contender int

const (
	riverAlone contender = iota
	plainJobs
	handlerJobs
	contenders
)

func compareSpeed[TTx any](b *testing.B, track *speedTrack[TTx]) {
	for which := range contenders { // warms up
		track.round(b, which)
	}
	var worked, inserted, workedShare, insertedShare [contenders][]float64
	for round := 0; b.Loop(); round++ {
		var w, i [contenders]float64
		for turn := range contenders {
			which := (turn + contender(round)) % contenders
			w[which], i[which] = track.round(b, which)
		}
		for which := range contenders {
			worked[which] = append(worked[which], w[which])
			inserted[which] = append(inserted[which], i[which])
			workedShare[which] = append(workedShare[which], w[which]/w[riverAlone])
			insertedShare[which] = append(insertedShare[which], i[which]/i[riverAlone])
		}
	}
	b.ReportMetric(0, "ns/op") // of a whole round
	b.ReportMetric(middle(worked[riverAlone]), "river-jobs/s")
	b.ReportMetric(middle(worked[plainJobs]), "plain-jobs/s")
	b.ReportMetric(middle(workedShare[plainJobs]), "plain-share")
	b.ReportMetric(middle(worked[handlerJobs]), "handler-jobs/s")
	b.ReportMetric(middle(workedShare[handlerJobs]), "handler-share")
	b.ReportMetric(middle(inserted[riverAlone]), "river-inserts/s")
	b.ReportMetric(middle(inserted[plainJobs]), "plain-inserts/s")
	b.ReportMetric(middle(insertedShare[plainJobs]), "plain-insert-share")
}

// middle sorts the values and returns their median.
func middle(values []float64) float64 {
	slices.Sort(values)
	return (values[(len(values)-1)/2] + values[len(values)/2]) / 2
}

// round inserts the jobs of one round and then works them, and returns how many per second were worked and inserted.
func (track *speedTrack[TTx]) round(b *testing.B, which contender) (worked, inserted float64) {
	ctx := b.Context()
	require.NoError(b, track.clear(ctx))
	worker := &idleWorker{}
	client, adapter := track.client(b, worker, which)
	began := time.Now()
	if which == handlerJobs {
		enqueueIdle(b, retryriver.NewAdmin(adapter, client), track.jobs)
	} else {
		insertIdle(b, client, track.jobs)
	}
	inserting := time.Since(began)

	completed, unsubscribe := client.SubscribeConfig(&river.SubscribeConfig{
		ChanSize: track.jobs, Kinds: []river.EventKind{river.EventKindJobCompleted, river.EventKindJobFailed, river.EventKindJobCancelled},
	})
	defer unsubscribe()
	require.NoError(b, client.Start(ctx))
	for range track.jobs {
		event := <-completed // once it is in the database
		require.Equal(b, river.EventKindJobCompleted, event.Kind)
	}
	working := time.Since(worker.began)
	require.NoError(b, client.Stop(ctx))
	return float64(track.jobs) / working.Seconds(), float64(track.jobs) / inserting.Seconds()
}

// insertIdle inserts plain jobs.
func insertIdle[TTx any](b *testing.B, client *river.Client[TTx], n int) {
	jobs := make([]river.InsertManyParams, n)
	for i := range jobs {
		jobs[i].Args = idleArgs{Number: i}
	}
	for batch := range slices.Chunk(jobs, 1000) {
		_, err := client.InsertMany(b.Context(), batch)
		require.NoError(b, err)
	}
}

// enqueueIdle enqueues jobs for a handler, in several goroutines to be faster.
func enqueueIdle(b *testing.B, q retryjob.Enqueuer, n int) {
	var left atomic.Int64
	left.Store(int64(n))
	faults := make([]error, 8)
	var group sync.WaitGroup
	for i := range faults {
		group.Go(func() {
			for faults[i] == nil && left.Add(-1) >= 0 {
				_, faults[i] = q.Enqueue(b.Context(), retryjob.Job{Kind: handledKind, Policy: idlePolicy, Payload: []byte(`{"number": 1}`)})
			}
		})
	}
	group.Wait()
	require.NoError(b, errors.Join(faults...))
}

const (
	handledKind = "handled"
	idlePolicy  = "idle"
)

// client returns a client, and its adapter, if any.
func (track *speedTrack[TTx]) client(b *testing.B, worker *idleWorker, which contender) (*river.Client[TTx], *retryriver.Adapter) {
	workers := river.NewWorkers()
	river.AddWorker(workers, worker)
	cfg := &river.Config{
		Queues:            map[string]river.QueueConfig{river.QueueDefault: {MaxWorkers: 200}},
		Workers:           workers,
		FetchCooldown:     2 * time.Millisecond, // otherwise it would be measured
		FetchPollInterval: 5 * time.Millisecond,
		Logger:            slog.New(slog.DiscardHandler),
		TestOnly:          true, // its maintenance starts at once, not during the round
	}
	var adapter *retryriver.Adapter
	if which != riverAlone {
		var err error
		adapter, err = retryriver.New(retryriver.Options{
			Policies: retryjob.FromMap(map[string]retry.Policy{idlePolicy: {}}),
			PolicyOf: map[string]string{idleArgs{}.Kind(): idlePolicy},
		})
		require.NoError(b, err)
		require.NoError(b, adapter.AddHandler(workers, handledKind, func(context.Context, retryjob.Job) error {
			worker.note()
			return nil
		}))
		client, err := retryriver.NewClient(adapter, track.driver, cfg)
		require.NoError(b, err)
		return client, adapter
	}
	client, err := river.NewClient(track.driver, cfg)
	require.NoError(b, err)
	return client, nil
}

// idleArgs is a job without work.
type idleArgs struct {
	Number int `json:"number"`
}

func (idleArgs) Kind() string { return "idle" }

// idleWorker is a plain worker that records when its first job started.
type idleWorker struct {
	river.WorkerDefaults[idleArgs]
	once  sync.Once
	began time.Time
}

func (w *idleWorker) Work(context.Context, *river.Job[idleArgs]) error {
	w.note()
	return nil
}

func (w *idleWorker) note() { w.once.Do(func() { w.began = time.Now() }) }
