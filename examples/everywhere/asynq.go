package main

import (
	"context"
	"errors"
	"time"

	"github.com/alicebob/miniredis/v2"
	"github.com/hibiken/asynq"
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
	work := asynq.NewServer(at, asynq.Config{
		RetryDelayFunc: func(n int, _ error, _ *asynq.Task) time.Duration { return delay(n + 1) }, // from 0

		TaskCheckInterval:        10 * time.Millisecond,
		DelayedTaskCheckInterval: 50 * time.Millisecond, // 5s unless set; and a due time is cut to whole seconds
		LogLevel:                 asynq.FatalLevel,
	})
	err = work.Start(asynq.HandlerFunc(func(context.Context, *asynq.Task) error {
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
