package main

import (
	"context"
	"database/sql"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net/http"
	"net/netip"
	"os"
	"os/exec"
	"strconv"
	"strings"
	"time"

	"github.com/riverqueue/river"
	"github.com/riverqueue/river/riverdriver/riversqlite"

	"github.com/retrygo/retry"
	"github.com/retrygo/retry/contrib/retryriver"
	"github.com/retrygo/retry/retryconf"
	"github.com/retrygo/retry/retryhttp"
	"github.com/retrygo/retry/retryhttp/ssrf"
	"github.com/retrygo/retry/retryjob"
)

// named policies are looked up whenever a job has failed, so a change also applies to waiting jobs.
var named = retryjob.FromMap(map[string]retry.Policy{
	"": { // for deliveries that do not name one
		Name:           "webhook",
		MaxAttempts:    3,
		Backoff:        retry.Backoff{Base: 300 * time.Millisecond, Jitter: retry.RatioJitter}, // minutes, for a service
		AttemptTimeout: 5 * time.Second,
		Classify:       retryhttp.Classify,
	},
	"once": {MaxAttempts: 1, AttemptTimeout: 5 * time.Second, Classify: retryhttp.Classify},
})

// budgets bound the retries by tenant and endpoint, in each worker. An endpoint that is down for hours makes no success,
// so without Trickle its later deliveries would be refused at their first failure.
var budgets = retry.NewBudgets(retry.BudgetConfig{Trickle: time.Minute}, 10_000)

// policies are the policies of the deliveries, whose own settings are within limits of the service.
var policies = retryjob.Policies(func(j *retryjob.Job) (retry.Policy, error) {
	p, err := named(j)
	p.Budget = budgets.For(j.BudgetKey)
	return p, err
}).Within(retryconf.ServiceLimits())

// queue is the database with its jobs.
type queue struct {
	*retryriver.Admin[*sql.Tx]
	client *river.Client[*sql.Tx]
	db     *sql.DB
}

// open opens the queue in a SQLite file. It works after its client has started. retryriver.NewSQLite does all of this
// in one line, with settings for a service, with which a minute may pass before a delivery counts as lost.
func open(ctx context.Context, path string) (*queue, error) {
	adapter, err := retryriver.New(retryriver.Options{
		Policies: policies,
		Code:     func(err error) string { return string(retryhttp.ReasonOf(err)) },
	})
	if err != nil {
		return nil, err
	}
	workers := river.NewWorkers()
	if err := adapter.AddHandler(workers, "webhook", deliver); err != nil {
		return nil, err
	}
	cfg := river.Config{
		Queues:               map[string]river.QueueConfig{river.QueueDefault: {MaxWorkers: 10}},
		Workers:              workers,
		FetchPollInterval:    100 * time.Millisecond,
		JobTimeout:           6 * time.Second, // more than the policy's AttemptTimeout
		RescueStuckJobsAfter: 7 * time.Second, // more than JobTimeout
		Logger:               slog.New(slog.DiscardHandler),
	}
	db, err := retryriver.OpenSQLite(ctx, path)
	if err != nil {
		return nil, err
	}
	client, err := retryriver.NewClient(adapter, riversqlite.New(db), &cfg)
	if err != nil {
		_ = db.Close()
		return nil, err
	}
	return &queue{retryriver.NewAdmin(adapter, client), client, db}, nil
}

// delivery is the payload of a job.
type delivery struct {
	URL   string `json:"url"`
	Event string `json:"event"`
}

// client sends events to URLs of users. It refuses the addresses of the network that it runs in, except the receiver's.
// A service would not make that exception.
var client = &http.Client{
	Transport:     ssrf.Guard{Allow: []netip.Prefix{netip.MustParsePrefix("127.0.0.1/32")}}.Transport(),
	CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse },
}

// deliver makes one attempt. The key is the job's ID, which all attempts and replays share.
func deliver(ctx context.Context, job retryjob.Job) error {
	var what delivery
	if err := json.Unmarshal(job.Payload, &what); err != nil {
		return retry.Permanent(err)
	}
	body := fmt.Sprintf(`{"type": %q}`, what.Event)
	req, err := http.NewRequestWithContext(ctx, http.MethodPost, what.URL, strings.NewReader(body))
	if err != nil {
		return retry.Permanent(err)
	}
	req.Header.Set("Idempotency-Key", strconv.Quote(job.ID))
	resp, err := client.Do(req)
	if err != nil {
		return err
	}
	_ = resp.Body.Close() // only the status and Retry-After matter
	return retryhttp.CheckResponse(resp)
}

// workerVariable has the path of the database, in the environment of a worker.
const workerVariable = "WEBHOOKQUEUE_WORKER"

// work works until the standard input ends.
func work(ctx context.Context, path string) error {
	q, err := open(ctx, path)
	if err != nil {
		return err
	}
	defer q.db.Close()
	if err := q.client.Start(ctx); err != nil {
		return err
	}
	_, _ = io.Copy(io.Discard, os.Stdin)
	return q.client.Stop(ctx)
}

// startWorker starts this program as a worker, in another process, until stop or the end of this process.
func startWorker(ctx context.Context, path string) (worker *exec.Cmd, stop func() error, err error) {
	worker = exec.CommandContext(ctx, os.Args[0])
	worker.Env = append(os.Environ(), workerVariable+"="+path)
	worker.Stderr = os.Stderr
	stdin, err := worker.StdinPipe()
	if err != nil {
		return nil, nil, err
	}
	return worker, func() error { return errors.Join(stdin.Close(), worker.Wait()) }, worker.Start()
}
