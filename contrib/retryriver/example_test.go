package retryriver_test

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"time"

	"github.com/riverqueue/river"
	"github.com/riverqueue/river/riverdriver/riversqlite"

	"github.com/retrygo/retry"
	"github.com/retrygo/retry/contrib/retryriver"
	"github.com/retrygo/retry/retryjob"
)

// A queue on a SQLite file. With retryjob.New it would be in memory.
func ExampleNewSQLite() {
	dir, _ := os.MkdirTemp("", "example")
	defer os.RemoveAll(dir)
	ctx := context.Background()
	q, err := retryriver.NewSQLite(ctx, filepath.Join(dir, "jobs.db"), retryjob.Options{
		Policies: retryjob.FromMap(map[string]retry.Policy{"webhooks": {MaxAttempts: 2, Backoff: retry.Backoff{Base: time.Millisecond}}}),
		Handlers: map[string]retryjob.Handler{"webhook": func(ctx context.Context, job retryjob.Job) error {
			if a, _ := retryjob.AttemptFrom(ctx); a.Number == 1 {
				return errors.New("503 from the receiver")
			}
			return nil
		}},
	})
	if err != nil {
		fmt.Println(err)
		return
	}
	defer q.Close()
	handle, err := q.Enqueue(ctx, retryjob.Job{Kind: "webhook", Policy: "webhooks", Payload: []byte(`{"to":"https://example.com"}`)})
	if err != nil {
		fmt.Println(err)
		return
	}
	job, err := handle.Wait(ctx)
	fmt.Println(job.Status, err)
	for _, a := range job.History {
		fmt.Println(a.Number, a.Status, a.Err)
	}
	// Output:
	// succeeded <nil>
	// 1 waiting_retry 503 from the receiver
	// 2 succeeded
}

// A queue with its own workers limits how many of its jobs run at once.
func ExampleClientOf() {
	dir, _ := os.MkdirTemp("", "example")
	defer os.RemoveAll(dir)
	ctx := context.Background()
	q, err := retryriver.NewSQLite(ctx, filepath.Join(dir, "jobs.db"), retryjob.Options{
		Policies: retryjob.FromMap(map[string]retry.Policy{"": retry.Standard()}),
		Handlers: map[string]retryjob.Handler{"report": func(context.Context, retryjob.Job) error { return nil }},
	})
	if err != nil {
		fmt.Println(err)
		return
	}
	defer q.Close()
	client := retryriver.ClientOf[*sql.Tx](q)
	if err := client.Queues().Add("bulk", river.QueueConfig{MaxWorkers: 2}); err != nil {
		fmt.Println(err)
		return
	}
	handle, err := q.Enqueue(ctx, retryjob.Job{Kind: "report", Queue: "bulk"})
	if err != nil {
		fmt.Println(err)
		return
	}
	job, err := handle.Wait(ctx)
	fmt.Println(job.Queue, job.Status, err)
	// Output: bulk succeeded <nil>
}

// A program with plain River workers gets its client from NewClient, and a retryjob.Admin.
func ExampleNewClient() {
	dir, _ := os.MkdirTemp("", "example")
	defer os.RemoveAll(dir)
	ctx := context.Background()
	db, err := retryriver.OpenSQLite(ctx, filepath.Join(dir, "jobs.db"))
	if err != nil {
		fmt.Println(err)
		return
	}
	defer db.Close()
	adapter, err := retryriver.New(retryriver.Options{
		Policies: retryjob.FromMap(map[string]retry.Policy{"standard": retry.Standard()}),
	})
	if err != nil {
		fmt.Println(err)
		return
	}
	workers := river.NewWorkers()
	river.AddWorker(workers, river.WorkFunc(func(context.Context, *river.Job[mail]) error { return nil })) // River's, as ever
	err = adapter.AddHandler(workers, "webhook", func(context.Context, retryjob.Job) error {
		return retry.Permanent(errors.New("no such receiver"))
	})
	if err != nil {
		fmt.Println(err)
		return
	}
	cfg := &river.Config{Workers: workers, Queues: map[string]river.QueueConfig{river.QueueDefault: {MaxWorkers: 10}}}
	client, err := retryriver.NewClient(adapter, riversqlite.New(db), cfg)
	if err != nil {
		fmt.Println(err)
		return
	}
	_ = client.Start(ctx)
	defer client.Stop(ctx)
	handle, err := retryriver.NewAdmin(adapter, client).Enqueue(ctx, retryjob.Job{Kind: "webhook", Policy: "standard"})
	if err != nil {
		fmt.Println(err)
		return
	}
	job, err := handle.Wait(ctx)
	fmt.Println(job.Status, job.Reason, err)
	// Output: dead_letter terminal_error <nil>
}

// The error names every fault of a config.
func ExampleNewClient_refused() {
	adapter, err := retryriver.New(retryriver.Options{Policies: retryjob.FromMap(nil)})
	if err != nil {
		fmt.Println(err)
		return
	}
	_, err = retryriver.NewClient(adapter, riversqlite.New(nil), &river.Config{JobTimeout: -1, CompletedJobRetentionPeriod: -1})
	fmt.Println(err)
	// Output:
	// retryriver: river.Config.JobTimeout -1ns is negative, with which a lost job is never found; river.Config.CompletedJobRetentionPeriod -1ns is negative, which SQLite takes for no time at all
}
