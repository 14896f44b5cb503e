package retryjob_test

import (
	"context"
	"fmt"
	"runtime"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/retrygo/retry"
	"github.com/retrygo/retry/retryjob"
)

func TestCancelDuringAnAttempt(t *testing.T) {
	for name, c := range map[string]struct {
		result error
		run    retryjob.Status
	}{"that fails": {errDown, retryjob.Canceled}, "that succeeds": {nil, retryjob.Succeeded}} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				var cause error
				e := open(t, fixed(2, time.Hour), func(ctx context.Context, _ retryjob.Job) error {
					<-ctx.Done()
					cause = context.Cause(ctx)
					<-time.After(time.Minute)
					return c.result
				})
				h := put(t, e, "a", 0)
				synctest.Wait()
				i := get(t, e, "a")
				require.Equal(t, retryjob.Leased, i.Status)
				require.Equal(t, 1, i.Attempts)
				require.Equal(t, retryjob.Leased, i.Last().Status)
				require.NoError(t, i.Validate())
				require.NoError(t, e.Cancel(t.Context(), "a"))
				require.Equal(t, retryjob.Canceled, await(t, h).Status)
				require.Error(t, e.Cancel(t.Context(), "a"))
				require.ErrorIs(t, e.Replay(t.Context(), "a"), retryjob.ErrNotReplayable)
				require.Empty(t, shutdown(t, e)) // it waits for the attempt
				require.ErrorIs(t, cause, retryjob.ErrCanceled)
				i = get(t, e, "a")
				require.Equal(t, retryjob.Canceled, i.Status)
				require.Equal(t, 1, i.Attempts)
				require.Equal(t, c.run, i.Last().Status)
				require.Equal(t, i.Ended.Add(time.Minute), i.Last().End)
			})
		})
	}
}

func TestAnIDIsFreeOnceTheCanceledAttemptOfItsJobHasEnded(t *testing.T) {
	for name, remove := range map[string]func(*testing.T, *retryjob.Engine){
		"its job is purged": func(t *testing.T, e *retryjob.Engine) {
			purged, err := e.Purge(t.Context(), retryjob.Filter{IDs: []string{"a"}})
			require.NoError(t, err)
			require.Equal(t, 1, purged)
		},
		"its job is too old, and yet to be swept": func(*testing.T, *retryjob.Engine) { <-time.After(time.Hour) },
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				release := make(chan struct{})
				e := open(t, fixed(1, time.Hour), func(_ context.Context, j retryjob.Job) error {
					if j.ID == "a" {
						<-release
					}
					return errDown
				}, func(o *retryjob.Options) { o.Retention = time.Hour })
				put(t, e, "swept", 0)
				put(t, e, "a", 0)
				<-time.After(time.Second)
				require.NoError(t, e.Cancel(t.Context(), "a"))
				remove(t, e)
				_, err := e.Get(t.Context(), "a")
				require.ErrorIs(t, err, retryjob.ErrUnknownJob)
				for i := range e.List(t.Context(), retryjob.Filter{}) {
					require.NotEqual(t, "a", i.JobID)
				}
				_, err = e.Enqueue(t.Context(), retryjob.Job{ID: "a", Kind: "work", Policy: "p"})
				require.ErrorIs(t, err, retryjob.ErrDuplicate, "two attempts would have one ID")
				close(release)
				synctest.Wait()
				i := await(t, put(t, e, "a", 0))
				require.Equal(t, retryjob.DeadLettered, i.Status)
				require.Len(t, i.History, 1)
			})
		})
	}
}

func TestShutdownEndsAttemptsWithItsContext(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		e := open(t, fixed(3, time.Hour), func(ctx context.Context, j retryjob.Job) error {
			if j.ID == "waits" {
				return errDown
			}
			<-ctx.Done()
			require.ErrorIs(t, context.Cause(ctx), retryjob.ErrShutdown)
			if j.ID == "in time" {
				return nil
			}
			return ctx.Err()
		})
		start := time.Now()
		for _, id := range []string{"waits", "cut", "in time"} {
			put(t, e, id, 0)
		}
		put(t, e, "later", 30*time.Minute)
		synctest.Wait()
		ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
		defer cancel()
		type result struct {
			left []retryjob.Info
			err  error
		}
		results := make(chan result, 2)
		go func() {
			left, err := e.Shutdown(context.Background())
			results <- result{left, err}
		}()
		left, err := e.Shutdown(ctx)
		require.ErrorIs(t, err, context.DeadlineExceeded)
		require.Equal(t, time.Minute, time.Since(start))
		require.Equal(t, result{left, err}, <-results)
		var ids []string
		for _, i := range left {
			ids = append(ids, fmt.Sprint(i.JobID, " ", i.Status, " ", i.Attempts, " ", i.Due.Sub(start)))
		}
		require.Equal(t, []string{"cut pending 0 1m0s", "later pending 0 30m0s", "waits waiting_retry 1 1h0m0s"}, ids)
		require.Equal(t, retryjob.Succeeded, get(t, e, "in time").Status)
		<-time.After(2 * time.Hour)
		synctest.Wait()
		require.Equal(t, retryjob.Pending, get(t, e, "later").Status)
	})
}

// TestCancelAsAnAttemptBegins is for the race detector: only a lock of the engine orders the two.
func TestCancelAsAnAttemptBegins(t *testing.T) {
	e := open(t, fixed(3, time.Hour), func(ctx context.Context, _ retryjob.Job) error {
		<-ctx.Done()
		return ctx.Err()
	})
	for range 300 {
		h := put(t, e, "", 0)
		for get(t, e, h.ID()).Status != retryjob.Leased {
			runtime.Gosched()
		}
		require.NoError(t, e.Cancel(t.Context(), h.ID()))
	}
	require.Empty(t, shutdown(t, e))
}

func TestAHandlerIsNotStartedOnceItsJobIsCanceledOrTheEngineShutDown(t *testing.T) {
	for name, end := range map[string]struct {
		of   func(*testing.T, *retryjob.Engine)
		left int
		want retryjob.Status
	}{
		"canceled": {func(t *testing.T, e *retryjob.Engine) {
			require.NoError(t, e.Cancel(t.Context(), "a"))
			<-time.After(2 * time.Minute)
		}, 0, retryjob.Canceled},
		"shut down": {func(t *testing.T, e *retryjob.Engine) {
			ctx, cancel := context.WithTimeout(t.Context(), time.Second)
			defer cancel()
			left, err := e.Shutdown(ctx)
			require.ErrorIs(t, err, context.DeadlineExceeded)
			require.Len(t, left, 1)
		}, 1, retryjob.Pending},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				p := fixed(3, time.Hour)
				var seen []retryjob.AttemptInfo
				p.Gate = func(ctx context.Context) time.Duration {
					info, _ := retryjob.AttemptFrom(ctx)
					seen = append(seen, info)
					<-time.After(time.Minute)
					return 0
				}
				e := open(t, p, func(context.Context, retryjob.Job) error {
					t.Error("started")
					return nil
				})
				put(t, e, "a", 0)
				synctest.Wait()
				end.of(t, e)
				i := get(t, e, "a")
				require.Equal(t, end.want, i.Status)
				require.Empty(t, i.History)
				require.Zero(t, i.Attempts)
				require.Len(t, seen, 1)
				require.Equal(t, i.AttemptID(1), seen[0].AttemptID, "a gate can ask whose it is")
			})
		})
	}
}

func TestAnEngineThatIsShutDownReplaysNothing(t *testing.T) {
	e := open(t, fixed(1, time.Second), fail)
	await(t, put(t, e, "a", 0))
	shutdown(t, e)
	require.ErrorIs(t, e.Replay(t.Context(), "a"), retryjob.ErrShutdown)
	_, err := e.ReplayAll(t.Context(), retryjob.Filter{})
	require.ErrorIs(t, err, retryjob.ErrShutdown)
	n, err := e.Purge(t.Context(), retryjob.Filter{})
	require.NoError(t, err)
	require.Equal(t, 1, n)
}

func TestAHandlerThatEndsItsGoroutineInShutdownCountsAsNotMade(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		e := open(t, retry.Policy{MaxAttempts: 1}, func(ctx context.Context, _ retryjob.Job) error {
			<-ctx.Done()
			runtime.Goexit()
			return nil
		})
		put(t, e, "a", 0)
		synctest.Wait()
		ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
		defer cancel()
		left, err := e.Shutdown(ctx)
		require.ErrorIs(t, err, context.DeadlineExceeded)
		require.Len(t, left, 1)
		require.Equal(t, retryjob.Pending, left[0].Status)
		require.Empty(t, left[0].History)
	})
}

func TestShutdownReachesAHandlerThatWaitsForAnotherJob(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var e *retryjob.Engine
		waited := make(chan error, 1)
		e = open(t, fixed(1, time.Hour), func(ctx context.Context, j retryjob.Job) error {
			_, err := e.Wait(ctx, "child")
			waited <- err
			return err
		})
		put(t, e, "child", time.Hour)
		put(t, e, "parent", 0)
		synctest.Wait()
		start := time.Now()
		require.Len(t, shutdown(t, e), 1)
		require.ErrorIs(t, <-waited, retryjob.ErrShutdown)
		require.Equal(t, start, time.Now())
	})
}

// TestShutdownAmongEnqueuesAndAttemptsLeavesEachJobOnce shuts engines down while jobs are enqueued and run: each job
// has run or is returned.
func TestShutdownAmongEnqueuesAndAttemptsLeavesEachJobOnce(t *testing.T) {
	for round := range 50 {
		var ran, taken atomic.Int64
		e := open(t, fixed(2, time.Hour), func(context.Context, retryjob.Job) error {
			ran.Add(1)
			return nil
		}, func(o *retryjob.Options) { o.Concurrency = 4 })
		var all sync.WaitGroup
		for range 4 {
			all.Go(func() {
				for {
					if _, err := e.Enqueue(t.Context(), retryjob.Job{Kind: "work", Policy: "p"}); err != nil {
						return
					}
					taken.Add(1)
				}
			})
		}
		for taken.Load() < int64(10*round) {
			runtime.Gosched()
		}
		left := shutdown(t, e)
		all.Wait()
		ids := map[string]bool{}
		for _, i := range left {
			ids[i.JobID] = true
		}
		require.Len(t, ids, len(left))
		require.Equal(t, taken.Load(), ran.Load()+int64(len(left)))
	}
}
