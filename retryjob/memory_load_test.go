package retryjob_test

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"slices"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/retrygo/retry"
	"github.com/retrygo/retry/retryjob"
)

// TestThousandsOfGoroutinesAtOnce is for the race detector. It also checks that each job ends once, and that two
// attempts of a job never run at the same time.
func TestThousandsOfGoroutinesAtOnce(t *testing.T) {
	var running, most, beside atomic.Int64
	var busy sync.Map
	e := open(t, retry.Policy{MaxAttempts: 3, Backoff: retry.Backoff{Mode: retry.Fixed, Base: time.Millisecond}}, func(_ context.Context, j retryjob.Job) error {
		most.Store(max(most.Load(), running.Add(1)))
		defer running.Add(-1)
		if _, there := busy.LoadOrStore(j.ID, true); there {
			beside.Add(1)
		}
		defer busy.Delete(j.ID)
		if rand.N(3) > 0 {
			return errDown
		}
		return nil
	}, func(c *retryjob.Options) { c.Concurrency = 8 })
	var wg sync.WaitGroup
	var replayed atomic.Int64
	for n := range 3000 {
		wg.Go(func() {
			id := ""
			if n%2 == 0 {
				id = fmt.Sprint("job-", n)
			}
			h, err := e.Enqueue(t.Context(), retryjob.Job{ID: id, Kind: "work", Policy: "p"})
			if err != nil {
				t.Error(err)
				return
			}
			if n%7 == 0 {
				_ = e.Cancel(t.Context(), h.ID())
			}
			i, err := h.Wait(t.Context())
			if err != nil || !i.Status.Final() {
				t.Error(i, err)
			}
			if i.Status == retryjob.DeadLettered {
				var both sync.WaitGroup
				for range 2 {
					both.Go(func() {
						if e.Replay(t.Context(), h.ID()) == nil {
							replayed.Add(1)
						}
					})
				}
				both.Wait()
			}
			if n%500 == 0 {
				for _, err := range e.List(t.Context(), retryjob.Filter{PageSize: 10, Limit: 100}) {
					if err != nil {
						t.Error(err)
					}
				}
			}
		})
	}
	wg.Wait()
	ctx, cancel := context.WithTimeout(t.Context(), 20*time.Second)
	defer cancel()
	for {
		var open []string
		for i := range e.List(ctx, retryjob.Filter{}) {
			if !i.Status.Final() {
				open = append(open, i.JobID)
			}
		}
		if len(open) == 0 {
			break
		}
		_, err := e.Wait(ctx, open[0])
		require.NoError(t, err)
	}
	left, err := e.Shutdown(ctx)
	require.NoError(t, err)
	require.Empty(t, left)
	require.Zero(t, beside.Load())
	require.LessOrEqual(t, most.Load(), int64(8))
	var sum int64
	all := 0
	for i := range e.List(ctx, retryjob.Filter{}) {
		sum += int64(i.Replays)
		all++
	}
	require.Equal(t, 3000, all)
	require.Equal(t, replayed.Load(), sum)
}

// TestAWaitingJobIsSmall limits the memory of a job that waits after a failure, including its ID.
func TestAWaitingJobIsSmall(t *testing.T) {
	const jobs = 100_000
	e := open(t, fixed(2, time.Hour), func(_ context.Context, j retryjob.Job) error {
		if j.ID == "last" {
			return nil
		}
		return errors.New("dial tcp: connection refused")
	}, func(c *retryjob.Options) { c.Concurrency = 1 })
	before := liveHeap()
	for n := range jobs {
		put(t, e, fmt.Sprintf("customer-order-%011d", n), 0)
	}
	ctx, cancel := context.WithTimeout(t.Context(), 60*time.Second)
	defer cancel()
	_, err := put(t, e, "last", 0).Wait(ctx) // the others have been attempted by then
	require.NoError(t, err)
	each := float64(liveHeap()-before) / jobs
	t.Logf("%.0f bytes a job", each)
	require.Less(t, each, 350.0)
	n := 0
	for i := range e.List(ctx, retryjob.Filter{Statuses: []retryjob.Status{retryjob.WaitingRetry}}) {
		require.Len(t, i.History, 1)
		n++
	}
	require.Equal(t, jobs, n)
	left, err := e.Shutdown(ctx)
	require.NoError(t, err)
	require.Len(t, left, jobs)
}

func TestCanceledJobsLeaveTheAgenda(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var got []string
		var late []time.Duration
		e := open(t, fixed(1, time.Hour), func(_ context.Context, j retryjob.Job) error {
			got, late = append(got, j.ID), append(late, time.Since(j.Due))
			return nil
		}, func(c *retryjob.Options) { c.Concurrency = 1 })
		var want []string
		order := rand.New(rand.NewPCG(9, 1)).Perm(5000) // an order in which the root of the heap is moved last
		for _, n := range order {
			put(t, e, fmt.Sprint(n), time.Duration(n+1)*time.Second)
		}
		for _, n := range order {
			if n%5 != 2 { // also the first one
				require.NoError(t, e.Cancel(t.Context(), fmt.Sprint(n)))
			}
		}
		for n := 2; n < 5000; n += 5 {
			want = append(want, fmt.Sprint(n))
		}
		<-time.After(5001 * time.Second)
		synctest.Wait()
		require.Equal(t, want, got)
		require.Zero(t, slices.Max(late))
		require.True(t, slices.IsSortedFunc(got, func(a, b string) int { return len(a) - len(b) }))
	})
}

// TestAJobThatIsCanceledWhileItWaitsStartsNoOther is about the memory of removed jobs, which new jobs get: the turn of
// a canceled job does not start a new one.
func TestAJobThatIsCanceledWhileItWaitsStartsNoOther(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var late []time.Duration
		e := open(t, fixed(1, time.Hour), func(_ context.Context, j retryjob.Job) error {
			late = append(late, time.Since(j.Due))
			return nil
		}, func(c *retryjob.Options) { c.Concurrency = 1 })
		for range 200 {
			require.NoError(t, e.Cancel(t.Context(), put(t, e, "", time.Hour).ID()))
		}
		n, err := e.Purge(t.Context(), retryjob.Filter{})
		require.NoError(t, err)
		require.Equal(t, 200, n)
		for range 200 {
			put(t, e, "", 2*time.Hour)
		}
		<-time.After(3 * time.Hour)
		synctest.Wait()
		require.Equal(t, make([]time.Duration, 200), late)
	})
}

// TestWhatIsKeptOfAnAttemptStaysItsOwn is about the same memory: a context that a handler keeps, an Info and a Handle
// stay those of their job after a new job has got its memory.
func TestWhatIsKeptOfAnAttemptStaysItsOwn(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		kept := map[string]context.Context{}
		e := open(t, fixed(1, time.Hour), func(ctx context.Context, j retryjob.Job) error {
			kept[j.ID] = ctx
			return errDown
		}, func(c *retryjob.Options) { c.Concurrency = 1 })
		infos := map[string]retryjob.Info{}
		var first []retryjob.Handle
		for round := range 3 {
			for n := range 200 {
				h, err := e.Enqueue(t.Context(), retryjob.Job{
					Kind: "work", Policy: "p", Correlation: fmt.Sprint(round, "/", n), Payload: []byte(fmt.Sprint(n)),
				})
				require.NoError(t, err)
				i, err := h.Wait(t.Context())
				require.NoError(t, err)
				infos[h.ID()] = i
				if round == 0 {
					first = append(first, h)
				}
			}
			n, err := e.Purge(t.Context(), retryjob.Filter{})
			require.NoError(t, err)
			require.Equal(t, 200, n)
		}
		require.Len(t, infos, 600)
		for id, i := range infos {
			require.Equal(t, id, i.JobID)
			require.Len(t, i.History, 1)
			a, ok := retryjob.AttemptFrom(kept[id])
			require.True(t, ok)
			require.Equal(t, retryjob.AttemptInfo{
				JobID: id, Kind: "work", AttemptID: i.AttemptID(1), Correlation: i.Correlation, Number: 1, FirstDue: i.FirstDue,
			}, a)
			require.ErrorIs(t, kept[id].Err(), context.Canceled)
		}
		for _, h := range first {
			_, err := h.Inspect(t.Context())
			require.ErrorIs(t, err, retryjob.ErrAgedOut)
		}
	})
}

// TestJobsThatTakeThePlaceOfOthersWhileTheseAreRead is for the race detector. It also checks the jobs that it reads.
func TestJobsThatTakeThePlaceOfOthersWhileTheseAreRead(t *testing.T) {
	e := open(t, fixed(1, 0), succeed, func(c *retryjob.Options) { c.Concurrency = 4 })
	var producers, reader sync.WaitGroup
	for range 2 {
		producers.Go(func() {
			for range 3000 {
				h, err := e.Enqueue(t.Context(), retryjob.Job{Kind: "work", Policy: "p"})
				if err != nil {
					t.Error(err)
					return
				}
				if i, err := h.Wait(t.Context()); err == nil && i.JobID != h.ID() || err != nil && !errors.Is(err, retryjob.ErrAgedOut) {
					t.Error(h.ID(), i, err)
				}
			}
		})
	}
	var stopped atomic.Bool
	reader.Go(func() {
		for !stopped.Load() {
			listed := map[string]bool{}
			for i, err := range e.List(t.Context(), retryjob.Filter{}) {
				if err != nil || i.JobID == "" || listed[i.JobID] {
					t.Error(i, err)
				}
				listed[i.JobID] = true
			}
			if _, err := e.Purge(t.Context(), retryjob.Filter{}); err != nil {
				t.Error(err)
			}
		}
	})
	producers.Wait()
	stopped.Store(true)
	reader.Wait()
	require.Empty(t, shutdown(t, e))
}

// TestNoAttemptStartsBeforeItsJobIsEnqueued enqueues each job as the attempt of the one before ends.
func TestNoAttemptStartsBeforeItsJobIsEnqueued(t *testing.T) {
	ended := make(chan struct{}, 1)
	e := open(t, fixed(1, 0), func(context.Context, retryjob.Job) error {
		ended <- struct{}{}
		return nil
	})
	for range 1000 {
		_, err := e.Enqueue(t.Context(), retryjob.Job{Kind: "work", Policy: "p"})
		require.NoError(t, err)
		<-ended
	}
	shutdown(t, e)
	for i := range e.List(t.Context(), retryjob.Filter{}) {
		require.False(t, i.Last().Start.Before(i.FirstDue), "%v %v", i.Last().Start, i.FirstDue)
	}
}
