package main

import (
	"bytes"
	"cmp"
	"context"
	"crypto/sha256"
	"database/sql"
	"database/sql/driver"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"iter"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/chromedp/cdproto/cdp"
	"github.com/chromedp/cdproto/emulation"
	"github.com/chromedp/cdproto/log"
	"github.com/chromedp/cdproto/network"
	"github.com/chromedp/cdproto/runtime"
	"github.com/chromedp/chromedp"
	"github.com/chromedp/chromedp/kb"
	"github.com/jackc/pgx/v5/pgxpool"
	"github.com/stretchr/testify/require"
	"modernc.org/sqlite"

	"github.com/retrygo/retry"
	"github.com/retrygo/retry/cmd/retryjobs/internal/cli"
	"github.com/retrygo/retry/contrib/retrypgx/pgtest"
	"github.com/retrygo/retry/contrib/retryriver"
	"github.com/retrygo/retry/retryjob"
)

type step = chromedp.Action[chromedp.Void]

// tab is a tab of a headless Chromium that shows serve's page. Every wait is for a condition, under the test's
// deadline.
type tab struct {
	t   *testing.T
	ctx context.Context
	url string

	mu       sync.Mutex
	problems []string // messages of the console, and exceptions
	requests []string // every address requested
}

// page serves a store and opens its page, and skips the test if there is no Chromium. At the end of the test no other
// server may have been contacted, and the console must be empty.
func page(t *testing.T, store cli.Store) *tab {
	t.Helper()
	if testing.Short() {
		t.Skip("a browser is not short")
	}
	binary := chromium(t)
	serving, stop := context.WithCancel(t.Context())
	read, write := io.Pipe()
	exit := make(chan int, 1)
	var stderr bytes.Buffer
	go func() {
		exit <- cli.Run(serving, cli.Options{
			Open: func(context.Context, string) (cli.Store, error) { return store, nil }, Now: time.Now,
			Getenv: func(string) string { return "postgres://jobs@db.example/production" },
		}, []string{"serve"}, write, &stderr)
	}()
	line := make([]byte, 200)
	n, err := read.Read(line)
	require.NoError(t, err)
	t.Cleanup(func() {
		stop()
		require.Equal(t, cli.Done, <-exit, stderr.String())
	})
	printed := strings.TrimSpace(string(line[:n]))
	address, token, _ := strings.Cut(printed, "?")
	p := &tab{t: t, url: address}
	options := append(chromedp.DefaultExecAllocatorOptions[:],
		chromedp.ExecPath(binary), chromedp.WindowSize(1280, 900), chromedp.UserDataDir(t.TempDir()),
		chromedp.NoSandbox, // containers run as root, and the page is ours
	)
	allocator, endAllocator := chromedp.NewExecAllocator(t.Context(), options...)
	t.Cleanup(endAllocator)
	ctx, closeTab := chromedp.NewContext(allocator)
	t.Cleanup(closeTab)
	p.ctx = ctx
	require.NoError(t, chromedp.Listen(ctx, p.listen))
	t.Cleanup(func() {
		p.mu.Lock()
		defer p.mu.Unlock()
		require.Empty(t, p.problems, "the console is empty")
		for _, asked := range p.requests {
			require.True(t, strings.HasPrefix(asked, p.url), "a request left the page: %s", asked)
			require.Equal(t, asked == printed, strings.Contains(asked, token), "the token is in another address: %s", asked)
		}
	})
	call(p, log.Enable, cdp.Empty{})
	call(p, network.Enable, network.EnableParams{})
	p.visit("?" + token)
	require.Equal(t, p.url, eval[string](p, "location.href"), "the token leaves the address")
	return p
}

func chromium(t *testing.T) string {
	t.Helper()
	for _, name := range []string{"chromium", "chromium-browser", "google-chrome"} {
		if path, err := exec.LookPath(name); err == nil {
			return path
		}
	}
	t.Skip("no chromium, chromium-browser or google-chrome in the PATH")
	return ""
}

func (p *tab) listen(event any) {
	p.mu.Lock()
	defer p.mu.Unlock()
	switch e := event.(type) {
	case *runtime.EventExceptionThrown:
		p.problems = append(p.problems, fmt.Sprintf("exception: %+v", *e.ExceptionDetails))
	case *runtime.EventConsoleAPICalled:
		p.problems = append(p.problems, fmt.Sprintf("%s: %+v", e.Type, e.Args))
	case *log.EventEntryAdded:
		p.problems = append(p.problems, e.Entry.Text)
	case *network.EventRequestWillBeSent:
		p.requests = append(p.requests, e.Request.URL)
	}
}

func (p *tab) run(actions ...step) {
	p.t.Helper()
	require.NoError(p.t, chromedp.Do(p.ctx, actions...))
}

func call[P, R any](p *tab, command cdp.Command[P, R], params P) {
	p.t.Helper()
	_, err := chromedp.Call(p.ctx, command, params)
	require.NoError(p.t, err, command.Method)
}

func (p *tab) visit(address string) {
	p.t.Helper()
	p.run(chromedp.Navigate(p.url + address))
}

// until waits for a condition in the page, even across navigation.
func (p *tab) until(condition string) {
	p.t.Helper()
	ctx := patience(p.t)
	tick := time.NewTicker(10 * time.Millisecond)
	defer tick.Stop()
	for {
		holds, err := chromedp.Run(p.ctx, chromedp.Evaluate[bool](condition, chromedp.EvalAwaitPromise))
		if err == nil && holds {
			return
		}
		select {
		case <-tick.C:
		case <-ctx.Done():
			p.save("failure")
			require.Fail(p.t, "waited for "+condition, "%v; console: %q", err, p.problems)
		}
	}
}

func eval[T any](p *tab, expression string) T {
	p.t.Helper()
	value, err := chromedp.Run(p.ctx, chromedp.Evaluate[T](expression, chromedp.EvalAwaitPromise))
	require.NoError(p.t, err, expression)
	return value
}

// click clicks as a user does.
func (p *tab) click(selector string) {
	p.t.Helper()
	p.run(chromedp.Click(chromedp.CSS(selector)))
}

// follow clicks a link to another page, and waits for that page.
func (p *tab) follow(selector string) {
	p.t.Helper()
	p.leave(chromedp.Click(chromedp.CSS(selector)))
}

func (p *tab) leave(by step) {
	p.t.Helper()
	p.run(chromedp.Evaluate[chromedp.Void](`document.documentElement.id = "left"`), by)
	p.until(`document.documentElement.id !== "left" && document.readyState === "complete"`)
}

// save writes a screenshot into the directory that RETRYJOBS_SCREENSHOTS names, if it does.
func (p *tab) save(name string) {
	dir := os.Getenv("RETRYJOBS_SCREENSHOTS")
	if dir == "" {
		return
	}
	image, err := chromedp.Run(p.ctx, chromedp.CaptureScreenshot())
	require.NoError(p.t, err)
	require.NoError(p.t, os.WriteFile(filepath.Join(dir, name+".png"), image, 0o644))
}

// shop is a store in memory with the jobs of a day.
type shop struct {
	cli.Store // nil
	mu        sync.Mutex
	jobs      map[string]*retryjob.Info
}

func (s *shop) Close() error { return nil }

func (s *shop) Get(_ context.Context, id string) (retryjob.Info, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if job := s.jobs[id]; job != nil {
		return *job, nil
	}
	return retryjob.Info{}, retryjob.ErrNeverKnown
}

func (s *shop) List(_ context.Context, f retryjob.Filter) iter.Seq2[retryjob.Info, error] {
	return func(yield func(retryjob.Info, error) bool) {
		for _, job := range s.selected(f) {
			if !yield(job, nil) {
				return
			}
		}
	}
}

func (s *shop) selected(f retryjob.Filter) (found []retryjob.Info) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, job := range s.jobs {
		if f.Selects(job) {
			found = append(found, *job)
		}
	}
	slices.SortFunc(found, func(a, b retryjob.Info) int {
		return cmp.Or(b.Changed().Compare(a.Changed()), cmp.Compare(b.JobID, a.JobID))
	})
	return found[:min(len(found), cmp.Or(f.Limit, len(found)))]
}

func (s *shop) Count(_ context.Context, f retryjob.Filter) (map[retryjob.Status]retryjob.Tally, error) {
	counts := map[retryjob.Status]retryjob.Tally{}
	for _, job := range s.selected(f) {
		tally := counts[job.Status]
		tally.Add(&job)
		counts[job.Status] = tally
	}
	return counts, nil
}

func (s *shop) Groups(ctx context.Context, f retryjob.Filter) ([]retryjob.Group, error) {
	return retryjob.GroupsOf(s.List(ctx, f))
}

func (s *shop) Queues(ctx context.Context) ([]retryjob.QueueDepth, error) {
	return retryjob.QueuesOf(s.List(ctx, retryjob.Filter{}), time.Now())
}

func (s *shop) Schedules(context.Context) ([]retryjob.Schedule, error) {
	ended := time.Now().Add(-9 * time.Hour)
	return []retryjob.Schedule{{Name: "nightly", Kind: "report", Number: 12, Paused: true, Last: retryjob.Occurrence{
		Job: "recurring:nightly:report:12", Status: retryjob.DeadLettered, Ended: ended, Err: "the card was declined",
	}}}, nil
}

func (s *shop) Replay(_ context.Context, id string) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	if job := s.jobs[id]; job != nil {
		return job.Replay(time.Now())
	}
	return retryjob.ErrNeverKnown
}

func (s *shop) Purge(_ context.Context, f retryjob.Filter) (n int, err error) {
	for _, job := range s.selected(f) {
		if job.Status.Final() {
			s.mu.Lock()
			delete(s.jobs, job.JobID)
			s.mu.Unlock()
			n++
		}
	}
	return n, nil
}

// day returns jobs like those of a service: most succeed, and some dead letters came in a burst.
func day(n int) *shop {
	s := &shop{jobs: map[string]*retryjob.Info{}}
	now := time.Now()
	texts := []string{"POST hooks.example.com/orders: 503 Service Unavailable", "dial tcp 203.0.113.7:443: connect: connection refused", "retry: attempt timeout"}
	codes := []string{"503", "ECONNREFUSED", "timeout"}
	for i := range n {
		// A walk over the day by the golden ratio, so that no two runs differ.
		x := float64(i) * 0.6180339887
		x -= float64(int(x))
		at := now.Add(-time.Duration(x * x * float64(23*time.Hour))).Add(-time.Duration(i) * time.Millisecond)
		rec := retryjob.Record{
			Version: 1, JobID: fmt.Sprintf("order-%06d", 918273+7*i), Kind: []string{"webhook", "invoice", "mail"}[i%3], Policy: []string{"standard", "patient"}[i%2], Correlation: fmt.Sprintf("trace-%x", 40000+i),
			Status: retryjob.Succeeded, Ended: at, Attempts: 1 + i%4,
		}
		hours := now.Sub(at).Hours()
		switch {
		case i%9 == 0 || hours > 5 && hours < 8 && i%3 > 0:
			rec.Status, rec.Reason, rec.Attempts = retryjob.DeadLettered, retry.AttemptsExhausted, 4
			if rec.Kind == "mail" {
				rec.Reason = retry.TerminalError
			}
		case i%17 == 0:
			rec.Status, rec.Reason = retryjob.Expired, retry.TTLElapsed
		case i%13 == 0 && hours < 3:
			rec.Status, rec.Due, rec.Ended = retryjob.WaitingRetry, now.Add(time.Duration(1+i%50)*time.Minute), time.Time{}
		case i%61 == 0:
			rec.Status, rec.Reason = retryjob.Canceled, retry.CallerCanceled
		case i%29 == 0 && hours < 1:
			rec.Status, rec.Ended = retryjob.Leased, time.Time{}
		}
		start := at.Add(-time.Duration(rec.Attempts*rec.Attempts) * 10 * time.Minute)
		rec.FirstDue = start
		for k := 1; k <= rec.Attempts; k++ {
			took := time.Duration(40+(i*37+k*91)%900) * time.Millisecond
			a := retryjob.Attempt{ID: rec.AttemptID(k), Number: k, Start: start, End: start.Add(took), Status: retryjob.WaitingRetry, Err: texts[(i+k)%3], Code: codes[(i+k)%3]}
			if start = at.Add(-time.Duration((rec.Attempts-k)*(rec.Attempts-k)) * 9 * time.Minute); k == rec.Attempts {
				a.End, a.Status, a.Reason = at, rec.Status, rec.Reason
				a.Start = at.Add(-took)
			} else {
				a.Due = start
			}
			if a.Status == retryjob.Succeeded {
				a.Err, a.Code = "", ""
			}
			if a.Status == retryjob.Leased {
				a.Start, a.End, a.Err, a.Code = now.Add(-took), time.Time{}, "", ""
			}
			if a.Status == retryjob.WaitingRetry && k == rec.Attempts {
				a.Due = rec.Due
			}
			if a.Reason == retry.TerminalError {
				a.Err, a.Code, a.Ambiguous = fmt.Sprintf("mail.example.com: 421 Service not available (session %d)", i), "", i%4 > 0
			}
			if i == 0 && k == 1 { // a worker that was suspended
				a.End, a.Late, a.Err, a.Code = a.Due.Add(10*time.Minute), true, texts[2], codes[2]
			}
			rec.History = append(rec.History, a)
		}
		s.jobs[rec.JobID] = &retryjob.Info{Record: rec,
			Payload: json.RawMessage(fmt.Sprintf(`{"order":%d,"url":"https://hooks.example.com/orders","total":{"amount":"%d.90","currency":"EUR"}}`, 918273+7*i, 10+i%90))}
	}
	return s
}

// inMemory is an engine as a store.
type inMemory struct{ *retryjob.Engine }

func (e inMemory) Close() error {
	_, err := e.Shutdown(context.Background())
	return err
}

// dead returns an engine with n dead letters.
func dead(t *testing.T, n int) inMemory {
	t.Helper()
	var left atomic.Int64
	left.Store(int64(n))
	all := make(chan struct{})
	e, err := retryjob.New(retryjob.Options{
		Policies: retryjob.FromMap(map[string]retry.Policy{"once": {MaxAttempts: 1, Observe: func(_ context.Context, e retry.Event) {
			if e.Outcome != nil && left.Add(-1) == 0 {
				close(all)
			}
		}}}),
		Handlers: map[string]retryjob.Handler{"webhook": func(context.Context, retryjob.Job) error {
			return errors.New("503 Service Unavailable")
		}},
	})
	require.NoError(t, err)
	for i := range n {
		_, err := e.Enqueue(t.Context(), retryjob.Job{ID: fmt.Sprintf("job-%06d", i), Kind: "webhook", Policy: "once", Payload: json.RawMessage(`{"to":"a"}`)})
		require.NoError(t, err)
	}
	select {
	case <-all:
	case <-patience(t).Done():
		require.Fail(t, "the jobs take too long")
	}
	return inMemory{e}
}

// letter creates a dead letter in a database; its row is then copied.
func letter(t *testing.T, open func(context.Context, retryjob.Options) (*retryriver.Queue, error)) {
	t.Helper()
	queue, err := open(t.Context(), retryjob.Options{
		Policies: retryjob.FromMap(map[string]retry.Policy{"once": {MaxAttempts: 1}}),
		Handlers: map[string]retryjob.Handler{"webhook": func(context.Context, retryjob.Job) error {
			return errors.New("503 Service Unavailable")
		}},
	})
	require.NoError(t, err)
	job, err := queue.Enqueue(t.Context(), retryjob.Job{ID: "job-000000", Kind: "webhook", Policy: "once"})
	require.NoError(t, err)
	_, err = job.Wait(patience(t))
	require.NoError(t, err)
	require.NoError(t, queue.Close())
}

// deadInSQLite returns a SQLite database with n dead letters, one a second.
func deadInSQLite(t *testing.T, n int) cli.Store {
	t.Helper()
	file := filepath.Join(t.TempDir(), "jobs.db")
	letter(t, func(ctx context.Context, o retryjob.Options) (*retryriver.Queue, error) {
		return retryriver.NewSQLite(ctx, file, o)
	})
	db, err := sql.Open("sqlite", file)
	require.NoError(t, err)
	_, err = db.ExecContext(t.Context(), `
		WITH RECURSIVE copy(n) AS (SELECT 1 UNION ALL SELECT n + 1 FROM copy WHERE n + 1 < ?)
		INSERT INTO river_job (args, attempt, attempted_at, attempted_by, created_at, errors, finalized_at, kind, metadata, priority, queue,
			state, scheduled_at, tags, unique_key, unique_states, max_attempts)
		SELECT args, attempt, attempted_at, attempted_by, created_at, errors, finalized_at, kind,
			jsonb_set(metadata, '$.retryjob[0].job', format('job-%06d', n),
				'$.retryjob[0].changed', metadata->>'$.retryjob[0].changed' / 1000 * 1000 - n * 1000000, -- as long as ended, in milliseconds
				'$.retryjob[0].ended', strftime('%Y-%m-%dT%H:%M:%fZ', metadata->>'$.retryjob[0].ended', format('-%d seconds', n))),
			priority, queue, state, scheduled_at, tags, unique_key_of(format('job-%06d', n)), unique_states, max_attempts
		FROM copy, river_job`, n)
	require.NoError(t, errors.Join(err, db.Close()))
	store, err := open(t.Context(), file)
	require.NoError(t, err)
	return store
}

// deadInPostgres is deadInSQLite for PostgreSQL.
func deadInPostgres(t *testing.T, n int) cli.Store {
	t.Helper()
	server := pgtest.Start(t)
	pool, err := pgxpool.New(t.Context(), server.DSN())
	require.NoError(t, err)
	defer pool.Close()
	require.NoError(t, retryriver.MigratePostgres(t.Context(), pool))
	letter(t, func(ctx context.Context, o retryjob.Options) (*retryriver.Queue, error) {
		return retryriver.NewPostgres(ctx, pool, o)
	})
	_, err = pool.Exec(t.Context(), `
		INSERT INTO river_job (args, attempt, attempted_at, attempted_by, created_at, errors, finalized_at, kind, metadata, priority, queue,
			state, scheduled_at, tags, unique_key, unique_states, max_attempts)
		SELECT args, attempt, attempted_at, attempted_by, created_at, errors, finalized_at, kind,
			jsonb_build_object('retryjob', jsonb_build_array(record || jsonb_build_object(
				'job', 'job-' || lpad(n::text, 6, '0'),
				'changed', (record->>'changed')::bigint - n * 1000000::bigint,
				'ended', (record->>'ended')::timestamptz - n * interval '1 second'))),
			priority, queue, state, scheduled_at, tags, convert_to('retryjob', 'UTF8') || sha256(convert_to('job-' || lpad(n::text, 6, '0'), 'UTF8')), unique_states, max_attempts
		FROM generate_series(1, $1::int - 1) AS n, (SELECT *, metadata#>'{retryjob,0}' AS record FROM river_job) AS made`, n)
	require.NoError(t, err)
	store, err := open(t.Context(), server.DSN())
	require.NoError(t, err)
	return store
}

// reads counts the jobs that a store reads for lists.
type reads struct {
	cli.Store
	jobs atomic.Int64
}

func (r *reads) List(ctx context.Context, f retryjob.Filter) iter.Seq2[retryjob.Info, error] {
	return func(yield func(retryjob.Info, error) bool) {
		for info, err := range r.Store.List(ctx, f) {
			if r.jobs.Add(1); !yield(info, err) {
				return
			}
		}
	}
}

// TestAHundredThousandDeadLetters: however many jobs there are, a view reads and sends one page of them. It logs the
// time from the request to the first contentful paint, the fastest of three: under a second on an idle machine.
func TestAHundredThousandDeadLetters(t *testing.T) {
	for _, row := range []struct {
		name      string
		store     func(*testing.T, int) cli.Store
		addresses []string
	}{
		{"in memory", func(t *testing.T, n int) cli.Store { return dead(t, n) }, []string{"", "?status=dead_letter&kind=webhook&since=24h", "?q=503"}},
		{"in SQLite", deadInSQLite, []string{"", "?status=dead_letter&kind=webhook&since=24h", "?q=503", "?until=24h"}},
		{"in PostgreSQL", deadInPostgres, []string{"", "?status=dead_letter&kind=webhook&since=24h", "?q=503", "?until=24h"}},
	} {
		t.Run(row.name, func(t *testing.T) {
			if raced && row.name == "in SQLite" {
				t.Skip("SQLite in Go takes ten times as long under the race detector")
			}
			store := &reads{Store: row.store(t, 100_000)}
			p := page(t, store)
			for _, address := range row.addresses {
				fastest := time.Hour
				for range 3 {
					store.jobs.Store(0)
					p.visit(address)
					require.LessOrEqual(t, store.jobs.Load(), int64(51), address)
					p.until(`performance.getEntriesByName("first-contentful-paint").length === 1`)
					took := time.Duration(eval[float64](p, `performance.getEntriesByName("first-contentful-paint")[0].startTime`) * float64(time.Millisecond))
					fastest = min(fastest, took)
				}
				t.Logf("%q: first paint after %v", address, fastest)
				require.Less(t, eval[int](p, `performance.getEntriesByType("navigation")[0].decodedBodySize`), 128<<10, address)
				require.Equal(t, 50, eval[int](p, `document.querySelectorAll("#rows tbody tr").length`))
			}
			require.Contains(t, eval[string](p, `document.querySelector("#statuses").innerText`), "dead_letter")
		})
	}
}

func TestAllThatMatchAreChangedWithAProgress(t *testing.T) {
	e := dead(t, 2_500)
	p := page(t, e)
	p.click("details.every summary")
	p.follow("details.every button.purge")
	require.Equal(t, "Purge 2,500 jobs?", eval[string](p, `document.querySelector("h2").innerText`))
	p.follow("button.sure")
	p.until(`document.getElementById("flash").innerText === "Purged 2,500 jobs."`)
	for _, err := range e.List(t.Context(), retryjob.Filter{}) {
		require.NoError(t, err)
		require.Fail(t, "a job is left")
	}
}

func TestASelectionIsReplayed(t *testing.T) {
	s := day(200)
	p := page(t, s)
	p.visit("?status=dead_letter")
	first := eval[[]string](p, `[...document.querySelectorAll("#rows tbody input")].slice(0, 4).map((b) => b.value)`)
	require.Equal(t, "Select jobs to change them.", eval[string](p, `document.getElementById("selected").innerText`))
	p.click("#rows tbody tr:nth-child(1) input")
	// A click with Shift selects all between.
	p.run(chromedp.Evaluate[chromedp.Void](`document.querySelector("#rows tbody tr:nth-child(4) input").dispatchEvent(new MouseEvent("click", {bubbles: true, shiftKey: true}))`))
	require.Equal(t, "4 selected", eval[string](p, `document.getElementById("selected").innerText`))
	require.True(t, eval[bool](p, `document.getElementById("every").indeterminate`))
	p.follow(".toolbar button.replay")
	require.Equal(t, "Replay 4 jobs?", eval[string](p, `document.querySelector("h2").innerText`))
	p.save("confirm")
	p.follow("button.sure")
	require.Equal(t, "Replayed 4 jobs.", eval[string](p, `document.getElementById("flash").innerText`))
	require.Contains(t, eval[string](p, `location.search`), "status=dead_letter", "the list is where it was")
	for _, id := range first {
		job, err := s.Get(t.Context(), id)
		require.NoError(t, err)
		require.Equal(t, retryjob.Pending, job.Status)
	}
	p.click("#every")
	count := eval[int](p, `document.querySelectorAll("#rows tbody tr").length`)
	require.Equal(t, fmt.Sprintf("%d selected", count), eval[string](p, `document.getElementById("selected").innerText`))
}

func TestThePageWorksWithoutJavaScript(t *testing.T) {
	s := day(200)
	p := page(t, s)
	call(p, emulation.SetScriptExecutionDisabled, emulation.SetScriptExecutionDisabledParams{Value: true})
	p.visit("?status=dead_letter")
	require.False(t, eval[bool](p, `document.getElementById("every").checkVisibility()`), "what needs JavaScript is not shown")
	id := eval[string](p, `document.querySelector("#rows tbody input").value`)
	p.click("#rows tbody tr:nth-child(1) input")
	p.follow(".toolbar button.purge")
	p.follow("button.sure")
	require.Equal(t, "Purged 1 job.", eval[string](p, `document.getElementById("flash").innerText`))
	_, err := s.Get(t.Context(), id)
	require.ErrorIs(t, err, retryjob.ErrUnknownJob)
	p.run(chromedp.SendKeys(chromedp.CSS("#kind"), "mail"))
	p.leave(chromedp.KeyEvent(kb.Enter))
	require.Contains(t, eval[string](p, `location.search`), "kind=mail")
	require.Contains(t, eval[string](p, `location.search`), "status=dead_letter", "a filter is added to the others")
}

func TestALivePageFollowsTheJobs(t *testing.T) {
	s := day(60)
	p := page(t, s)
	p.visit("?live=1&status=dead_letter")
	jobs := s.selected(retryjob.Filter{Statuses: []retryjob.Status{retryjob.DeadLettered}})
	has := func(id string) string {
		return fmt.Sprintf(`!!document.querySelector('#rows input[value="%s"]')`, id)
	}
	require.True(t, eval[bool](p, has(jobs[0].JobID)))
	loaded := eval[float64](p, `performance.timeOrigin`)
	require.NoError(t, s.Replay(t.Context(), jobs[0].JobID))
	p.until("!" + has(jobs[0].JobID))
	require.Equal(t, loaded, eval[float64](p, `performance.timeOrigin`), "it was not loaded again")

	p.click(fmt.Sprintf(`#rows input[value="%s"]`, jobs[1].JobID))
	require.NoError(t, s.Replay(t.Context(), jobs[2].JobID))
	p.run(chromedp.Evaluate[chromedp.Void](`(() => { const ask = window.fetch; window.asked = 0; window.fetch = async (...a) => { const r = await ask(...a); window.asked++; return r; }; })()`))
	p.until(`window.asked > 1`)
	require.True(t, eval[bool](p, has(jobs[2].JobID)), "a selection does not change under the hand")
}

func TestAJobsTimelineIsShown(t *testing.T) {
	s := day(200)
	p := page(t, s)
	id := s.selected(retryjob.Filter{Statuses: []retryjob.Status{retryjob.DeadLettered}})[0].JobID
	p.visit("?status=dead_letter")
	p.follow("#rows tbody th a")
	require.Equal(t, 4, eval[int](p, `document.querySelectorAll("table.attempts tbody tr").length`))
	require.Contains(t, eval[string](p, `document.querySelector("h2").innerText`), id)
	require.Contains(t, eval[string](p, `document.querySelector("table.attempts tbody tr").innerText`), "1h29m0s, late")
	for i := range 4 {
		require.Positive(t, eval[float64](p, fmt.Sprintf(`document.querySelectorAll("td.when rect[data-status]")[%d].getBoundingClientRect().width`, i)), "even a short attempt is seen")
	}
	p.save("job")
	p.follow("button.replay")
	p.follow("button.sure")
	require.Equal(t, "Replayed 1 job.", eval[string](p, `document.getElementById("flash").innerText`))
	require.Contains(t, eval[string](p, `location.href`), "job?id="+id)
}

// unreadable returns the texts whose contrast is below 4.5 (WCAG 2.2, 1.4.3).
const unreadable = `(() => {
	const parse = (c) => (c.match(/[\d.]+/g) || []).map(Number);
	const light = ([r, g, b]) => { const f = (v) => { v /= 255; return v <= .04045 ? v / 12.92 : ((v + .055) / 1.055) ** 2.4; }; return .2126 * f(r) + .7152 * f(g) + .0722 * f(b); };
	const back = (e) => { for (; e; e = e.parentElement) { const c = parse(getComputedStyle(e).backgroundColor); if (c.length === 3 || c[3] === 1) return c; } return [255, 255, 255]; };
	return [...document.querySelectorAll("body *")].filter((e) => e.checkVisibility() && !e.closest("svg") && [...e.childNodes].some((n) => n.nodeType === 3 && n.data.trim()))
		.filter((e) => { const [a, b] = [light(parse(getComputedStyle(e).color)), light(back(e))]; return (Math.max(a, b) + .05) / (Math.min(a, b) + .05) < 4.5; })
		.map((e) => e.outerHTML.slice(0, 120));
})()`

func TestTheDarkPageIsReadable(t *testing.T) {
	p := page(t, day(400))
	p.save("desktop")
	back := eval[string](p, `getComputedStyle(document.body).backgroundColor`)
	for _, address := range []string{"", "job?id=order-918273"} {
		for _, scheme := range []string{"light", "dark"} {
			call(p, emulation.SetEmulatedMedia, emulation.SetEmulatedMediaParams{Features: []*emulation.MediaFeature{{Name: "prefers-color-scheme", Value: scheme}}})
			p.visit(address)
			require.Empty(t, eval[[]string](p, unreadable), "%s %s", address, scheme)
			require.Equal(t, scheme == "light", back == eval[string](p, `getComputedStyle(document.body).backgroundColor`))
			if address == "" && scheme == "dark" {
				p.save("dark")
			}
		}
	}
}

func TestAPhoneHasNoHorizontalScroll(t *testing.T) {
	s := day(200)
	evil := *s.jobs["order-918273"]
	evil.JobID, evil.Policy, evil.Kind = strings.Repeat("long", 60), strings.Repeat("p", 200), strings.Repeat("k", 200)
	evil.Ended = time.Now()
	evil.History = slices.Clone(evil.History)
	evil.History[0].Err = strings.Repeat("x", 1000)
	again := s.selected(retryjob.Filter{Statuses: []retryjob.Status{retryjob.WaitingRetry}})[0].JobID
	s.jobs[again].Tags = []string{"recurring", "recurring_report"}
	p := page(t, s)
	p.run(chromedp.EmulateViewport(360, 740, chromedp.EmulateMobile, chromedp.EmulateScale(2)))
	for _, address := range []string{"", "job?id=order-918273", "?q=order"} {
		p.visit(address)
		require.LessOrEqual(t, eval[int](p, `document.documentElement.scrollWidth`), 360, address)
		switch address {
		case "":
			require.Equal(t, 3, eval[int](p, `document.querySelectorAll("details.fold:not(.more)").length`), "with all that is above the list")
			p.save("phone")
			require.Less(t, eval[float64](p, `document.querySelector("#rows tbody tr").getBoundingClientRect().bottom`), 740., "the first job is on the first screen")
		case "?q=order":
			p.run(chromedp.Evaluate[chromedp.Void](`document.getElementById("rows").scrollIntoView()`))
			p.save("phone-rows")
		}
	}
	s.mu.Lock()
	s.jobs[evil.JobID] = &evil
	s.mu.Unlock()
	for _, address := range []string{"", "job?id=" + evil.JobID} {
		p.visit(address)
		require.LessOrEqual(t, eval[int](p, `document.documentElement.scrollWidth`), 360, "long words do not widen %s", address)
	}
	// Touch targets are at least 24 pixels high (WCAG 2.2, 2.5.8), or links within a line.
	p.visit("")
	require.Empty(t, eval[[]string](p, `[...document.querySelectorAll("button, select, input:not([type=hidden]), .tabs a, summary")]
		.filter((e) => e.checkVisibility() && e.getBoundingClientRect().height < 24).map((e) => e.outerHTML)`))
}

func TestEverythingIsReachedByKeyboard(t *testing.T) {
	p := page(t, day(60))
	require.Empty(t, eval[[]string](p, `[...document.querySelectorAll("input:not([type=hidden]), select, button, a")].filter((e) => e.checkVisibility()
		&& !([...(e.labels || [])].some((l) => l.innerText.trim()) || e.getAttribute("aria-label") || e.textContent.trim())).map((e) => e.outerHTML)`), "every control has a name")
	require.Empty(t, eval[[]string](p, `[...document.querySelectorAll("[tabindex]")].filter((e) => e.tabIndex > 0).map((e) => e.outerHTML)`))
	// From the top of the page to the first job, and its page, with the keyboard alone.
	seen := map[string]bool{}
	for range 60 {
		p.run(chromedp.KeyEvent(kb.Tab))
		require.NotEqual(t, "none", eval[string](p, `getComputedStyle(document.activeElement).outlineStyle`), "the focus is seen")
		seen[eval[string](p, `document.activeElement.id || document.activeElement.value || document.activeElement.innerText`)] = true
		if eval[bool](p, `!!document.activeElement.closest("#rows tbody th")`) {
			break
		}
	}
	for _, name := range []string{"Skip to the content", "Go live", "q", "reason", "since", "replay", "cancel", "purge", "every"} {
		require.Contains(t, seen, name)
	}
	p.leave(chromedp.KeyEvent(kb.Enter))
	require.Contains(t, eval[string](p, `location.pathname`), "/job")
	require.Equal(t, []string{"H1", "H2", "H2", "H2"}, eval[[]string](p, `[...document.querySelectorAll("h1, h2, h3")].map((h) => h.tagName)`))
	require.Equal(t, "en", eval[string](p, `document.documentElement.lang`))
}

func init() {
	sqlite.MustRegisterDeterministicScalarFunction("unique_key_of", 1, func(_ *sqlite.FunctionContext, args []driver.Value) (driver.Value, error) {
		sum := sha256.Sum256([]byte(args[0].(string)))
		return append([]byte("retryjob"), sum[:]...), nil
	})
}
