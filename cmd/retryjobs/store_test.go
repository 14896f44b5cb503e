package main

import (
	"bytes"
	"context"
	"database/sql"
	"encoding/json"
	"errors"
	"net"
	"net/http"
	"net/http/httptest"
	"path/filepath"
	"runtime"
	"strings"
	"testing"
	"time"

	"github.com/jackc/pgx/v5/pgxpool"
	"github.com/stretchr/testify/require"

	"github.com/retrygo/retry"
	"github.com/retrygo/retry/cmd/retryjobs/internal/cli"
	"github.com/retrygo/retry/contrib/retrypgx/pgtest"
	"github.com/retrygo/retry/contrib/retryriver"
	"github.com/retrygo/retry/retryjob"
	"github.com/retrygo/retry/retryjob/jobsui"
)

// database is a real database, with an engine that works its jobs.
type database struct {
	name string
	work func(ctx context.Context, c retryjob.Options) (*retryriver.Queue, error)
}

// run runs a command on a database in this process.
func run(t *testing.T, database string, args ...string) ran {
	t.Helper()
	var stdout, stderr bytes.Buffer
	c := cli.Options{Open: open, Migrate: retryriver.Migrate, Now: time.Now, Getenv: func(string) string { return database }}
	exit := cli.Run(patience(t), c, args, &stdout, &stderr)
	return ran{exit, stdout.String(), stderr.String()}
}

func TestSQLite(t *testing.T) {
	file := filepath.Join(t.TempDir(), "jobs.db")
	life(t, database{"sqlite:" + file, func(ctx context.Context, c retryjob.Options) (*retryriver.Queue, error) {
		return retryriver.NewSQLite(ctx, file, c)
	}})
}

func TestPostgreSQL(t *testing.T) {
	server := pgtest.Start(t)
	pool, err := pgxpool.New(t.Context(), server.DSN())
	require.NoError(t, err)
	defer pool.Close()
	require.NoError(t, retryriver.MigratePostgres(t.Context(), pool))
	life(t, database{server.DSN(), func(ctx context.Context, c retryjob.Options) (*retryriver.Queue, error) {
		return retryriver.NewPostgres(ctx, pool, c)
	}})
}

func TestMigrateBringsAnOlderDatabaseUp(t *testing.T) {
	file := filepath.Join(t.TempDir(), "jobs.db")
	letter(t, func(ctx context.Context, o retryjob.Options) (*retryriver.Queue, error) {
		return retryriver.NewSQLite(ctx, file, o)
	})
	db, err := sql.Open("sqlite", file)
	require.NoError(t, err)
	_, err = db.ExecContext(t.Context(), "DROP INDEX retryjob_group")
	require.NoError(t, errors.Join(err, db.Close()))
	require.Contains(t, run(t, file, "list").Err, "the database is not migrated")
	require.Equal(t, ran{}, run(t, file, "migrate"))
	require.Equal(t, ran{}, run(t, file, "migrate"), "it is up to date")
	require.Equal(t, []string{"job-000000"}, ids(t, run(t, file, "list", "--json").Out))
}

// life makes an engine end jobs in each way, and uses the commands to find, replay and purge them.
func life(t *testing.T, db database) {
	ctx := patience(t)
	policies := retryjob.FromMap(map[string]retry.Policy{
		"slow": {MaxAttempts: 2, Backoff: retry.Backoff{Mode: retry.Fixed, Base: time.Hour}},
		"once": {MaxAttempts: 1},
		"late": {TTL: time.Minute, Backoff: retry.Backoff{Base: time.Hour}},
		"off":  {Disabled: true},
	})
	refuse := func(context.Context, retryjob.Job) error { return errors.New("\x1b[31m503\x1b[0m from the receiver") }
	accept := func(context.Context, retryjob.Job) error { return nil }
	started, finish := make(chan struct{}), make(chan struct{})
	block := func(context.Context, retryjob.Job) error {
		close(started)
		<-finish
		return nil
	}
	config := retryjob.Options{
		Policies: policies,
		Handlers: map[string]retryjob.Handler{"refused": refuse, "accepted": accept, "long": block},
		Code:     func(error) string { return "503" },
	}
	queue, err := db.work(ctx, config)
	require.NoError(t, err)
	for _, job := range []retryjob.Job{
		{ID: "given-up", Kind: "refused", Policy: "once", Payload: json.RawMessage(`{"to": "a"}`), Correlation: "trace-1"},
		{ID: "too-late", Kind: "refused", Policy: "late"},
		{ID: "refused", Kind: "refused", Policy: "off"},
		{ID: "sent", Kind: "accepted", Policy: "slow"},
	} {
		handle, err := queue.Enqueue(ctx, job)
		require.NoError(t, err)
		_, err = handle.Wait(ctx)
		require.NoError(t, err)
	}
	handle, err := queue.Enqueue(ctx, retryjob.Job{ID: "waits", Kind: "refused", Policy: "slow"})
	require.NoError(t, err)
	until(t, ctx, func() bool {
		info, err := handle.Inspect(ctx)
		require.NoError(t, err)
		return info.Status == retryjob.WaitingRetry
	})
	_, err = queue.Enqueue(ctx, retryjob.Job{ID: "later", Kind: "refused", Policy: "slow", Due: time.Now().Add(24 * time.Hour)})
	require.NoError(t, err)
	busy, err := queue.Enqueue(ctx, retryjob.Job{ID: "busy", Kind: "long", Policy: "slow"})
	require.NoError(t, err)
	<-started
	got := run(t, db.name, "show", "busy")
	close(finish)
	require.Equal(t, cli.Done, got.Exit, got.Err)
	require.Regexp(t, `(?m)^1        \S+ +\S+( so far)? +leased  -     -     -$`, got.Out)
	_, err = busy.Wait(ctx)
	require.NoError(t, err)
	require.NoError(t, queue.Close())

	t.Run("stats counts them", func(t *testing.T) {
		got := run(t, db.name, "stats", "--json")
		require.Equal(t, ran{Out: got.Out}, got)
		var counts struct {
			Jobs        int                 `json:"jobs"`
			ByStatus    map[string]int      `json:"by_status"`
			DeadLetters []retryjob.Failures `json:"dead_letters"`
		}
		require.NoError(t, json.Unmarshal([]byte(got.Out), &counts))
		require.Equal(t, 7, counts.Jobs)
		require.Equal(t, map[string]int{
			"pending": 1, "leased": 0, "waiting_retry": 1, "succeeded": 2, "dead_letter": 1, "expired": 1, "failed_no_retries": 1, "canceled": 0,
		}, counts.ByStatus)
		require.Len(t, counts.DeadLetters, 1)
		dead := counts.DeadLetters[0]
		require.Equal(t, []any{1, "refused", retry.AttemptsExhausted, "503", "given-up"}, []any{dead.Jobs, dead.Kind, dead.Reason, dead.Cause, dead.Newest})
	})
	t.Run("list finds them by what the filter says", func(t *testing.T) {
		got := run(t, db.name, "list", "--json", "--kind", "refused", "--since", "1h")
		require.ElementsMatch(t, []string{"given-up", "later", "refused", "too-late", "waits"}, ids(t, got.Out), got.Err)
		got = run(t, db.name, "list", "--kind", "refused", "--status", "waiting_retry")
		require.Regexp(t, `(?m)^waits  refused  slow    waiting_retry  -       1         -     \S+Z  \\u001b\[31m503\\u001b\[0m from the receiver$`, got.Out)
	})
	t.Run("show tells all of one", func(t *testing.T) {
		got := run(t, db.name, "show", "given-up")
		require.Equal(t, ran{Out: got.Out}, got)
		require.Regexp(t, `\A`+strings.TrimPrefix(`
job          given-up
status       dead_letter
kind         refused
policy       once
correlation  trace-1
reason       attempts_exhausted
attempts     1
replays      0
first due    2\S+Z \(\S+( ago)?\)
ended        2\S+Z \(\S+( ago)?\)

ATTEMPT  START +DURATION +STATUS +WAIT +CODE +ERROR
1        2\S+Z  \S+ +dead_letter  -     503   \\u001b\[31m503\\u001b\[0m from the receiver

payload:
\{
  "to": "a"
\}
\z`, "\n"), got.Out)
		got = run(t, db.name, "show", "nobody")
		require.Equal(t, ran{Exit: cli.Failed, Err: got.Err}, got)
		require.Equal(t, "retryjobs: job nobody: retryriver: job \"nobody\": retryjob: unknown job\n", got.Err)
	})
	t.Run("replay makes them due again", func(t *testing.T) {
		got := run(t, db.name, "replay", "given-up", "sent")
		require.Equal(t, ran{cli.Failed, "replayed given-up\n", got.Err}, got)
		require.Contains(t, got.Err, "retryjobs: job sent: retryjob: not replayable")
		require.Contains(t, got.Err, "retryjobs: 1 of 2 jobs were not replayed\n")
		require.Equal(t, ran{Out: "replayed 1 job\n"}, run(t, db.name, "replay", "--policy", "late"))
		require.Equal(t, ran{Out: `{"replayed":0}` + "\n"}, run(t, db.name, "replay", "--policy", "late", "--json"))

		config.Handlers["refused"] = accept
		queue, err := db.work(ctx, config)
		require.NoError(t, err)
		for _, id := range []string{"given-up", "too-late"} {
			info, err := queue.Wait(ctx, id)
			require.NoError(t, err)
			require.Equal(t, retryjob.Succeeded, info.Status)
			require.Equal(t, 1, info.Replays)
		}
		require.NoError(t, queue.Close())
	})
	t.Run("purge removes what has ended", func(t *testing.T) {
		require.Equal(t, ran{Out: "would purge 4 jobs\n"}, run(t, db.name, "purge", "--status", "succeeded", "--dry-run"))
		require.Equal(t, ran{Out: "purged 4 jobs\n"}, run(t, db.name, "purge", "--status", "succeeded", "--yes"))
		require.Equal(t, ran{Out: `{"purged":1}` + "\n"}, run(t, db.name, "purge", "--all", "--yes", "--json"))
		require.ElementsMatch(t, []string{"waits", "later"}, ids(t, run(t, db.name, "list", "--json").Out))
	})
	t.Run("the page shows and changes them", func(t *testing.T) { serves(t, db.name) })
	t.Run("cancel and purge take IDs", func(t *testing.T) {
		require.Equal(t, ran{Out: "canceled later\n"}, run(t, db.name, "cancel", "later"))
		require.Equal(t, ran{Out: "purged later\n"}, run(t, db.name, "purge", "--yes", "later"))
		require.Empty(t, run(t, db.name, "list", "--json").Out)
	})
}

// serves uses the page of a database to list, search, show, cancel and purge the job "waits".
func serves(t *testing.T, database string) {
	store, err := open(t.Context(), database)
	require.NoError(t, err)
	defer store.Close()
	page, err := jobsui.New(jobsui.Options{Admin: store, Access: func(*http.Request) jobsui.Access { return jobsui.ReadWrite }})
	require.NoError(t, err)
	ask := func(method, address, form string) (int, string) {
		r := httptest.NewRequest(method, "http://localhost/"+address, strings.NewReader(form))
		r.Header.Set("Content-Type", "application/x-www-form-urlencoded")
		w := httptest.NewRecorder()
		page.ServeHTTP(w, r)
		return w.Code, w.Body.String()
	}
	for _, address := range []string{"", "?status=waiting_retry&kind=refused&policy=slow&since=1h", "?q=from+the+receiver", "?q=waits"} {
		status, body := ask(http.MethodGet, address, "")
		require.Equal(t, http.StatusOK, status)
		require.Contains(t, body, `name="id" value="waits"`, address)
		require.Contains(t, body, `>waiting_retry <b>1</b>`)
	}
	_, body := ask(http.MethodGet, "job?id=waits", "")
	require.Contains(t, body, "503\\u001b[0m from the receiver")
	for _, form := range []string{"do=cancel&id=waits", "do=purge&id=waits"} {
		status, body := ask(http.MethodPost, "act", form)
		require.Equal(t, http.StatusSeeOther, status, body)
	}
	status, _ := ask(http.MethodGet, "job?id=waits", "")
	require.Equal(t, http.StatusNotFound, status)
}

// ids returns the IDs in lines of JSON.
func ids(t *testing.T, lines string) []string {
	var found []string
	for line := range strings.Lines(lines) {
		var info retryjob.Info
		require.NoError(t, json.Unmarshal([]byte(line), &info))
		found = append(found, info.JobID)
	}
	return found
}

// until returns once the condition holds.
func until(t *testing.T, ctx context.Context, holds func() bool) {
	again := time.NewTicker(10 * time.Millisecond)
	defer again.Stop()
	for !holds() {
		select {
		case <-again.C:
		case <-ctx.Done():
			require.NoError(t, ctx.Err())
		}
	}
}

func TestAServerOutOfReach(t *testing.T) {
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	require.NoError(t, err)
	address := listener.Addr().String()
	require.NoError(t, listener.Close())
	for _, url := range []string{
		"postgres://me:hush@" + address + "/jobs",
		"postgres://me@" + address + "/jobs?password=hush",
	} {
		got := run(t, url, "stats")
		require.Equal(t, ran{Exit: cli.Failed, Err: got.Err}, got)
		require.Contains(t, got.Err, "retryjobs: database postgres://me@"+address+"/jobs: retryriver: the server cannot be reached: ")
		require.NotContains(t, got.Err, "hush")
	}
}

// TestAListOfLargeJobsIsBounded: 30 jobs of 8 MB are a quarter of a gigabyte, and once took three times that in memory.
func TestAListOfLargeJobsIsBounded(t *testing.T) {
	if testing.Short() {
		t.Skip("writes a quarter of a gigabyte")
	}
	file := filepath.Join(t.TempDir(), "jobs.db")
	q, err := retryriver.NewSQLite(t.Context(), file, retryjob.Options{
		Policies: retryjob.FromMap(map[string]retry.Policy{"p": {}}),
		Handlers: map[string]retryjob.Handler{"large": func(context.Context, retryjob.Job) error { return nil }},
	})
	require.NoError(t, err)
	payload := []byte(`{"a":"` + strings.Repeat("x", 8<<20) + `"}`)
	_, err = q.Enqueue(t.Context(), retryjob.Job{Kind: "large", Policy: "p", Payload: payload, Due: time.Now().Add(time.Hour)})
	require.NoError(t, err)
	require.NoError(t, q.Close())
	db, err := sql.Open("sqlite", "file:"+file+"?_pragma=synchronous(OFF)")
	require.NoError(t, err)
	_, err = db.ExecContext(t.Context(), `WITH RECURSIVE n(i) AS (SELECT 2 UNION ALL SELECT i+1 FROM n WHERE i < 30)
		INSERT INTO river_job (args, attempt, created_at, kind, max_attempts, metadata, priority, queue, scheduled_at, state, tags)
		SELECT args, attempt, created_at, kind, max_attempts, metadata, priority, queue, scheduled_at, state, tags FROM river_job, n`)
	require.NoError(t, errors.Join(err, db.Close()))
	for _, args := range [][]string{{"list"}, {"stats"}} {
		runtime.GC()
		ended, most := make(chan struct{}), make(chan uint64)
		go func() { most <- peak(ended) }()
		got := run(t, file, args...)
		close(ended)
		require.Equal(t, cli.Done, got.Exit, got.Err)
		held := <-most
		t.Logf("%v: %d MB", args, held>>20)
		require.Less(t, held, uint64(256<<20), args)
	}
}

// peak returns the maximum heap size until ended is closed.
func peak(ended <-chan struct{}) (most uint64) {
	ticker := time.NewTicker(2 * time.Millisecond)
	defer ticker.Stop()
	var stats runtime.MemStats
	for {
		runtime.ReadMemStats(&stats)
		most = max(most, stats.HeapInuse)
		select {
		case <-ticker.C:
		case <-ended:
			return most
		}
	}
}
