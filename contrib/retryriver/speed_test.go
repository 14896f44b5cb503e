package retryriver_test

import (
	"context"
	"database/sql"
	"log/slog"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/riverqueue/river"
	"github.com/riverqueue/river/riverdriver"
	"github.com/riverqueue/river/riverdriver/riverpgxv5"
	"github.com/riverqueue/river/riverdriver/riversqlite"
	"github.com/stretchr/testify/require"

	"github.com/retrygo/retry"
	"github.com/retrygo/retry/contrib/retryriver"
	"github.com/retrygo/retry/retryjob"
)

// BenchmarkOverhead compares River alone, without an adapter and the indexes for lists, with River and the indexes, and
// with retryjob.Jobs of a handler, on the same database and with the same settings. Each iteration is one round of
// all three, in rotating order. The metrics are medians over the rounds: jobs worked per
// second, and the CPU time of a job, of this process and of the server, relative to River alone in the same round. On
// a busy machine only the CPU time says something:
//
//	go test -C contrib/retryriver -run '^$' -bench Overhead -benchtime 30x
func BenchmarkOverhead(b *testing.B) {
	b.Run("SQLite", func(b *testing.B) {
		db := newSQLite(b)
		var on []string
		rows, err := db.QueryContext(b.Context(), "SELECT sql FROM sqlite_master WHERE type = 'index' AND name LIKE 'retryjob%'")
		require.NoError(b, err)
		for rows.Next() {
			var text string
			require.NoError(b, rows.Scan(&text))
			on = append(on, text)
		}
		require.NoError(b, rows.Err())
		compareSpeed(b, &speedTrack[*sql.Tx]{driver: riversqlite.New(db), jobs: 1000, on: on, empty: "DELETE FROM river_job", exec: func(ctx context.Context, text string) error {
			_, err := db.ExecContext(ctx, text)
			return err
		}})
	})
	b.Run("PostgreSQL", func(b *testing.B) {
		pool := newPostgres(b)
		var backend int
		require.NoError(b, pool.QueryRow(b.Context(), "SELECT pg_backend_pid()").Scan(&backend))
		rows, err := pool.Query(b.Context(), "SELECT indexdef FROM pg_indexes WHERE indexname LIKE 'retryjob%' AND tablename = 'river_job'")
		require.NoError(b, err)
		on, err := pgx.CollectRows(rows, pgx.RowTo[string])
		require.NoError(b, err)
		compareSpeed(b, &speedTrack[pgx.Tx]{driver: riverpgxv5.New(pool), jobs: 4000, server: parent(backend), on: on, empty: "TRUNCATE river_job",
			exec: func(ctx context.Context, text string) error {
				_, err := pool.Exec(ctx, text)
				return err
			}})
	})
}

// speedTrack is the database on which all contenders run.
type speedTrack[TTx any] struct {
	driver riverdriver.Driver[TTx]
	jobs   int      // of a round, so many that it takes about half a second
	server int      // the process whose children are the server's, or 0
	on     []string // make the indexes
	empty  string   // removes all jobs
	exec   func(ctx context.Context, text string) error
}

// stat returns the fields of /proc/PID/stat from the state on, or nil if there is no such file.
func stat(process string) []string {
	text, _ := os.ReadFile("/proc/" + process + "/stat")
	_, rest, _ := strings.Cut(string(text), ") ")
	return strings.Fields(rest)
}

// parent returns the parent of a process, or 0.
func parent(process int) (pid int) {
	if fields := stat(strconv.Itoa(process)); len(fields) > 1 {
		pid, _ = strconv.Atoi(fields[1])
	}
	return pid
}

// cpu returns the CPU time of this process and of the server, in ticks.
func (track *speedTrack[TTx]) cpu() (ticks float64) {
	all, _ := filepath.Glob("/proc/[0-9]*")
	for _, path := range all {
		pid, _ := strconv.Atoi(filepath.Base(path))
		own := pid == os.Getpid() || track.server > 0 && (pid == track.server || parent(pid) == track.server)
		if fields := stat(filepath.Base(path)); own && len(fields) > 14 {
			for i, field := range fields[11:15] { // of itself, then of its children that have ended
				if n, _ := strconv.ParseFloat(field, 64); i < 2 || pid == track.server {
					ticks += n
				}
			}
		}
	}
	return ticks
}

// contender is one of those compared.
type contender int

const (
	riverAlone contender = iota
	indexes
	handlerJobs
	contenders
)

func compareSpeed[TTx any](b *testing.B, track *speedTrack[TTx]) {
	for which := range contenders { // warms up
		track.prepare(b, which)
		track.round(b, which)
	}
	var worked, cpu [contenders][]float64
	for round := 0; b.Loop(); round++ {
		var spent [contenders]float64
		for turn := range contenders {
			which := (turn + contender(round)) % contenders
			track.prepare(b, which) // not measured
			before := track.cpu()
			worked[which] = append(worked[which], track.round(b, which))
			spent[which] = track.cpu() - before
		}
		for which := range contenders {
			cpu[which] = append(cpu[which], spent[which]/spent[riverAlone])
		}
	}
	b.ReportMetric(0, "ns/op") // of a whole round
	for which, name := range []string{"river", "indexes", "handler"} {
		b.ReportMetric(middle(worked[which]), name+"-jobs/s")
		b.ReportMetric(middle(cpu[which]), name+"-cpu")
	}
}

// middle sorts the values and returns their median.
func middle(values []float64) float64 {
	slices.Sort(values)
	return (values[(len(values)-1)/2] + values[len(values)/2]) / 2
}

// prepare removes all jobs, and makes or removes the indexes.
func (track *speedTrack[TTx]) prepare(b *testing.B, which contender) {
	for _, text := range []string{track.empty, "DROP INDEX IF EXISTS retryjob_changed", "DROP INDEX IF EXISTS retryjob_group"} {
		require.NoError(b, track.exec(b.Context(), text))
	}
	if which == riverAlone {
		return
	}
	for _, text := range track.on {
		require.NoError(b, track.exec(b.Context(), text))
	}
}

// round inserts the jobs of one round and then works them, and returns how many per second were worked.
func (track *speedTrack[TTx]) round(b *testing.B, which contender) (worked float64) {
	ctx := b.Context()
	worker := &idleWorker{}
	client, adapter := track.client(b, worker, which)
	if which == handlerJobs {
		enqueueIdle(b, retryriver.NewAdmin(adapter, client), track.jobs)
	} else {
		insertIdle(b, client, track.jobs)
	}
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
	return float64(track.jobs) / working.Seconds()
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

// enqueueIdle enqueues jobs for a handler.
func enqueueIdle(b *testing.B, q retryjob.Enqueuer, n int) {
	for batch := range slices.Chunk(slices.Repeat([]retryjob.Job{{Kind: handledKind, Policy: idlePolicy, Payload: []byte(`{"number": 1}`)}}, n), 1000) {
		_, err := q.EnqueueMany(b.Context(), batch)
		require.NoError(b, err)
	}
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
	if which == handlerJobs {
		var err error
		adapter, err = retryriver.New(retryriver.Options{
			Policies: retryjob.FromMap(map[string]retry.Policy{idlePolicy: {}}),
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
