//go:build unix

package killtest_test

import (
	"context"
	"encoding/json"
	"os"
	"strings"

	"github.com/riverqueue/river"

	"github.com/retrygo/retry/contrib/retryriver"
	"github.com/retrygo/retry/retryjob"
)

// put enqueues a job of the kind and returns its ID.
func (e *engine) put(ctx context.Context, kind string, took times) (id string, err error) {
	payload, err := json.Marshal(took)
	if err != nil {
		return "", err
	}
	handle, err := e.Enqueue(ctx, retryjob.Job{Kind: kind, Policy: kind, Payload: payload})
	return handle.ID(), err
}

// addWorkers adds a worker for each kind, whose attempts append to effects.
func addWorkers(workers *river.Workers, adapter *retryriver.Adapter, effects *os.File) error {
	river.AddWorker(workers, &plainWorker[plainSucceeds]{effects: effects})
	river.AddWorker(workers, &plainWorker[plainFailsOnce]{effects: effects})
	for _, kind := range kinds {
		if strings.HasPrefix(kind, "plain_") {
			continue
		}
		handler := func(ctx context.Context, job retryjob.Job) error {
			var took times
			if err := json.Unmarshal(job.Payload, &took); err != nil {
				return err
			}
			return behaviors[kind].attempt(ctx, took, effects)
		}
		if err := adapter.AddHandler(workers, kind, handler); err != nil {
			return err
		}
	}
	return nil
}

// plainSucceeds and plainFailsOnce are the payloads of jobs with a worker of River's own.
type (
	plainSucceeds  struct{ times }
	plainFailsOnce struct{ times }
)

func (plainSucceeds) Kind() string  { return "plain_succeeds" }
func (plainFailsOnce) Kind() string { return "plain_fails_once" }

// plainWorker is a worker that uses only its context, not the adapter.
type plainWorker[T plainArgs] struct {
	river.WorkerDefaults[T]
	effects *os.File
}

type plainArgs interface {
	river.JobArgs
	drawn() times
}

func (t times) drawn() times { return t }

func (w *plainWorker[T]) Work(ctx context.Context, job *river.Job[T]) error {
	return behaviors[job.Kind].attempt(ctx, job.Args.drawn(), w.effects)
}
