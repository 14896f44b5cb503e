package retryjob_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"time"

	"github.com/retrygo/retry"
	"github.com/retrygo/retry/retryjob"
)

func ExampleEngine() {
	ctx := context.Background()
	e, err := retryjob.New(retryjob.Options{
		Policies: retryjob.FromMap(map[string]retry.Policy{
			"mail": {MaxAttempts: 3, Backoff: retry.Backoff{Base: 10 * time.Millisecond}},
		}),
		Handlers: map[string]retryjob.Handler{
			"welcome": func(ctx context.Context, job retryjob.Job) error {
				if a, _ := retryjob.AttemptFrom(ctx); a.Number < 3 {
					return errors.New("mail server is busy")
				}
				fmt.Printf("sent to %s\n", job.Payload)
				return nil
			},
		},
	})
	if err != nil {
		fmt.Println(err)
		return
	}
	h, err := e.Enqueue(ctx, retryjob.Job{Kind: "welcome", Policy: "mail", Payload: json.RawMessage(`"ann@example.org"`)})
	if err != nil {
		fmt.Println(err)
		return
	}
	job, err := h.Wait(ctx)
	fmt.Println(job.Status, job.Attempts, err)
	left, err := e.Shutdown(ctx)
	fmt.Println(len(left), err)
	// Output:
	// sent to "ann@example.org"
	// succeeded 3 <nil>
	// 0 <nil>
}

func ExampleEngine_Replay() {
	ctx := context.Background()
	down := true
	e, err := retryjob.New(retryjob.Options{
		Policies: retryjob.FromMap(map[string]retry.Policy{"once": {MaxAttempts: 1}}),
		Handlers: map[string]retryjob.Handler{
			"deliver": func(context.Context, retryjob.Job) error {
				if down {
					return errors.New("503 Service Unavailable")
				}
				return nil
			},
		},
	})
	if err != nil {
		fmt.Println(err)
		return
	}
	h, _ := e.Enqueue(ctx, retryjob.Job{ID: "order-7", Kind: "deliver", Policy: "once"})
	job, _ := h.Wait(ctx)
	fmt.Println(job.Status, job.Reason, job.Last().Err)

	down = false
	for dead, err := range e.List(ctx, retryjob.Filter{Statuses: []retryjob.Status{retryjob.DeadLettered}, Kinds: []string{"deliver"}}) {
		fmt.Println("replay", dead.JobID, err, e.Replay(ctx, dead.JobID))
	}
	job, _ = h.Wait(ctx)
	fmt.Println(job.Status, job.Replays)
	_, _ = e.Shutdown(ctx)
	// Output:
	// dead_letter attempts_exhausted 503 Service Unavailable
	// replay order-7 <nil> <nil>
	// succeeded 1
}

// orderKey is the key of the order in the caller's context.
type orderKey struct{}

var errRefused = errors.New("card refused")

func ExampleDeadLetterTo() {
	e, err := retryjob.New(retryjob.Options{
		Policies: retryjob.FromMap(map[string]retry.Policy{"later": {}}),
		Handlers: map[string]retryjob.Handler{
			"charge": func(_ context.Context, job retryjob.Job) error {
				fmt.Printf("charged order %s after all\n", job.Payload)
				return nil
			},
		},
	})
	if err != nil {
		fmt.Println(err)
		return
	}
	handOver, err := retryjob.DeadLetterTo(e, func(ctx context.Context, e retry.Event) (retryjob.Job, bool) {
		order, err := json.Marshal(ctx.Value(orderKey{}))
		return retryjob.Job{Kind: "charge", Policy: "later", Payload: order}, err == nil && !errors.Is(e.Err, errRefused)
	}, func(_ context.Context, j retryjob.Job, err error) {
		fmt.Printf("order %s: %v\n", j.Payload, err) // retryjob.ErrInDoubt: ask the bank before you charge again
	})
	if err != nil {
		fmt.Println(err)
		return
	}
	p := retry.Policy{
		MaxAttempts: 2,
		Backoff:     retry.Backoff{Base: time.Millisecond},
		Observe: func(ctx context.Context, e retry.Event) { // composed with one's own
			if e.Outcome != nil {
				fmt.Println("inline:", e.Decision)
			}
			handOver(ctx, e)
		},
	}
	ctx := context.WithValue(context.Background(), orderKey{}, 7)
	_ = retry.Do(ctx, p, func(context.Context) error { return retry.Permanent(errRefused) })
	in := context.WithValue(ctx, orderKey{}, 8)
	_ = retry.Do(in, p, func(context.Context) error { return retry.Ambiguous(errors.New("no answer to COMMIT")) })
	_ = retry.Do(ctx, p, func(context.Context) error { return errors.New("bank is down") })
	for job := range e.List(ctx, retryjob.Filter{}) {
		_, _ = e.Wait(ctx, job.JobID)
	}
	_, _ = e.Shutdown(ctx)
	// Output:
	// inline: dead_letter (terminal_error)
	// inline: dead_letter (terminal_error)
	// order 8: retryjob: in doubt: the work may have been done
	// inline: dead_letter (attempts_exhausted)
	// charged order 7 after all
}
