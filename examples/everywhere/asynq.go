package main

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/alicebob/miniredis/v2"
	"github.com/hibiken/asynq"

	"github.com/retrygo/retry"
)

// queue processes a task that fails.
func queue(ctx context.Context, delay func(attempt int) time.Duration, note func() (last bool)) error {
	redis, err := miniredis.Run()
	if err != nil {
		return err
	}
	defer redis.Close()
	at := asynq.RedisClientOpt{Addr: redis.Addr()}
	done := make(chan struct{})
	work := newQueue(at, delay)
	err = work.Start(judged(func(context.Context, *asynq.Task) error {
		if note() {
			close(done)
			return nil
		}
		return errors.New("busy")
	}))
	if err != nil {
		return err
	}
	defer work.Shutdown()

	client := asynq.NewClient(at)
	defer client.Close()
	if _, err = client.EnqueueContext(ctx, asynq.NewTask("work", nil), asynq.MaxRetry(policy.MaxAttempts-1)); err != nil {
		return err
	}
	select {
	case <-done:
		return nil
	case <-ctx.Done():
		return ctx.Err()
	}
}

// newQueue returns a server that waits by the policy, and longer if the error asks for it.
func newQueue(at asynq.RedisConnOpt, delay func(attempt int) time.Duration) *asynq.Server {
	return asynq.NewServer(at, asynq.Config{
		RetryDelayFunc: func(n int, err error, _ *asynq.Task) time.Duration { // n from 0
			_, hint := policy.Judge(err)
			return max(delay(n+1), hint)
		},
		TaskCheckInterval:        10 * time.Millisecond,
		DelayedTaskCheckInterval: 50 * time.Millisecond, // 5s unless set, and a due time is cut to whole seconds
		LogLevel:                 asynq.FatalLevel,
	})
}

// judged archives a task whose error must not be repeated, by the policy's marks and Classify.
func judged(handle asynq.HandlerFunc) asynq.HandlerFunc {
	return func(ctx context.Context, task *asynq.Task) error {
		err := handle(ctx, task)
		if class, _ := policy.Judge(err); class == retry.Terminal {
			return fmt.Errorf("%w (%w)", err, asynq.SkipRetry)
		}
		return err
	}
}
