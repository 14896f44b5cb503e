package retryjob_test

import (
	"context"
	"errors"
	"fmt"
	"runtime"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/retrygo/retry"
	"github.com/retrygo/retry/retryjob"
)

func TestListGivesTheNewestChangeFirstAndEachJobOnceWhileJobsMove(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		e := open(t, fixed(1, time.Hour), fail)
		for n := range 30 {
			put(t, e, fmt.Sprint(n), time.Duration(n)*time.Second)
		}
		<-time.After(20*time.Second + time.Millisecond) // 0 to 20 are dead letters
		synctest.Wait()
		var got []string
		for i, err := range e.List(t.Context(), retryjob.Filter{Statuses: []retryjob.Status{retryjob.DeadLettered}, PageSize: 2, Limit: 15}) {
			require.NoError(t, err)
			got = append(got, i.JobID)
			switch len(got) {
			case 1:
				require.NoError(t, e.Replay(t.Context(), "20"))
				require.NoError(t, e.Replay(t.Context(), "18")) // a dead letter again, and yet to be read
				synctest.Wait()
			case 4:
				_, err := e.Purge(t.Context(), retryjob.Filter{Since: get(t, e, "12").Ended, Until: get(t, e, "15").Ended})
				require.NoError(t, err)
			}
		}
		require.Equal(t, []string{"20", "19", "18", "17", "16", "15", "11", "10", "9", "8", "7", "6", "5", "4", "3"}, got, "12 to 14 are gone")

		for range e.List(t.Context(), retryjob.Filter{}) {
			break
		}
		ctx, cancel := context.WithCancel(t.Context())
		defer cancel()
		n := 0
		for _, err := range e.List(ctx, retryjob.Filter{}) {
			if n++; n == 2 {
				cancel()
			}
			require.Equal(t, n == 3, errors.Is(err, context.Canceled))
		}
		require.Equal(t, 3, n)
	})
}

// TestAListHasEveryJobOnceAlthoughAllOfThemChange holds that a list does not lose a job that moves from one status to
// another while the list is read.
func TestAListHasEveryJobOnceAlthoughAllOfThemChange(t *testing.T) {
	for _, f := range []retryjob.Filter{{}, {Statuses: []retryjob.Status{retryjob.WaitingRetry, retryjob.Leased, retryjob.DeadLettered}}} {
		synctest.Test(t, func(t *testing.T) {
			e := open(t, fixed(20, time.Minute), fail, func(o *retryjob.Options) { o.Concurrency = 8 })
			var want []string
			for n := range 300 {
				want = append(want, put(t, e, "", time.Duration(n)*time.Second/10).ID())
			}
			<-time.After(50 * time.Second)
			var got []string
			attempts := map[int]int{}
			for i, err := range e.List(t.Context(), f) {
				require.NoError(t, err)
				if got, attempts[i.Attempts] = append(got, i.JobID), attempts[i.Attempts]+1; len(got)%30 == 0 {
					<-time.After(time.Minute) // one more attempt of each
				}
			}
			require.ElementsMatch(t, want, got)
			require.Equal(t, map[int]int{1: 30, 2: 30, 3: 30, 4: 30, 5: 30, 6: 30, 7: 30, 8: 30, 9: 30, 10: 30}, attempts)
		})
	}
}

func TestSomeTenThousandOfTheDoneAreKept(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		e := open(t, fixed(1, time.Hour), succeed, func(c *retryjob.Options) { c.Concurrency = 1 })
		var first []string
		for range 5000 {
			first = append(first, put(t, e, "", 0).ID())
		}
		put(t, e, "canceled", time.Hour)
		synctest.Wait()
		require.NoError(t, e.Cancel(t.Context(), "canceled"))
		require.Equal(t, map[retryjob.Status]int{retryjob.Succeeded: 5000, retryjob.Canceled: 1}, count(t, e, retryjob.Filter{}))
		var last []string
		for range 20_000 {
			last = append(last, put(t, e, "", 0).ID())
			synctest.Wait()
		}
		require.Equal(t, map[retryjob.Status]int{retryjob.Succeeded: 10_240, retryjob.Canceled: 1}, count(t, e, retryjob.Filter{}))
		for _, id := range first {
			_, err := e.Get(context.Background(), id)
			require.ErrorIs(t, err, retryjob.ErrAgedOut)
		}
		for _, id := range last[15_000:] {
			require.Equal(t, retryjob.Succeeded, get(t, e, id).Status)
		}
		for n := range 20_000 {
			put(t, e, fmt.Sprint("c", n), time.Hour)
			require.NoError(t, e.Cancel(t.Context(), fmt.Sprint("c", n)))
		}
		require.Equal(t, map[retryjob.Status]int{retryjob.Succeeded: 10_240, retryjob.Canceled: 10_240}, count(t, e, retryjob.Filter{}))
		<-time.After(24*time.Hour - 1)
		get(t, e, last[19_999])
		<-time.After(1)
		_, err := e.Get(context.Background(), last[19_999])
		require.ErrorIs(t, err, retryjob.ErrAgedOut)
	})
}

// during calls f each time that an engine checks its context, which it does before each job that it changes.
type during struct {
	context.Context
	f func()
}

func (d during) Err() error {
	d.f()
	return d.Context.Err()
}

func TestPurgeLeavesWhatWasReplayedMeanwhile(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		e := open(t, fixed(1, time.Hour), fail)
		for _, id := range []string{"a", "b"} {
			put(t, e, id, 0)
			synctest.Wait()
			<-time.After(time.Second)
		}
		asked := 0
		n, err := e.Purge(during{t.Context(), func() {
			if asked++; asked == 2 { // the page is read, and b is next
				require.NoError(t, e.Replay(context.Background(), "b"))
			}
		}}, retryjob.Filter{Statuses: []retryjob.Status{retryjob.DeadLettered}})
		require.NoError(t, err)
		require.Equal(t, 1, n)
		require.Equal(t, 1, get(t, e, "b").Replays)
		_, err = e.Get(context.Background(), "a")
		require.ErrorIs(t, err, retryjob.ErrUnknownJob)
	})
}

func TestAJobThatIsDueLaterSaysWhenItWasEnqueued(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		e := open(t, fixed(1, 0), fail)
		start := time.Now()
		put(t, e, "later", time.Hour)
		put(t, e, "now", 0)
		synctest.Wait()
		i := get(t, e, "later")
		require.True(t, start.Equal(i.Enqueued))
		require.True(t, start.Equal(i.Changed()))
		require.True(t, start.Add(time.Hour).Equal(i.FirstDue))
		require.Zero(t, get(t, e, "now").Enqueued)
		<-time.After(2 * time.Hour)
		require.True(t, start.Equal(get(t, e, "later").Enqueued))
		require.NoError(t, e.Replay(t.Context(), "later"))
		require.Zero(t, get(t, e, "later").Enqueued)
	})
}

func TestAJobUnderWayHasChangedWhenItsAttemptStarted(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		e := open(t, fixed(1, time.Hour), func(context.Context, retryjob.Job) error {
			<-time.After(time.Minute)
			return nil
		})
		put(t, e, "a", time.Hour)
		<-time.After(time.Hour)
		started := time.Now()
		synctest.Wait()
		for i := range e.List(t.Context(), retryjob.Filter{Since: started}) {
			require.Equal(t, "a", i.JobID)
			require.True(t, i.Changed().Equal(started))
		}
		counts, err := e.Count(t.Context(), retryjob.Filter{Since: started})
		require.NoError(t, err)
		require.Equal(t, 1, counts[retryjob.Leased].Jobs)
		require.True(t, counts[retryjob.Leased].Oldest.Equal(started))
	})
}

func TestAPanicOfObserveDoesNotReachALaterLife(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var e *retryjob.Engine
		p := fixed(1, time.Hour)
		p.Observe = func(ctx context.Context, ev retry.Event) {
			if a, _ := retryjob.AttemptFrom(ctx); ev.Outcome != nil && a.Replays == 0 {
				require.NoError(t, e.Replay(ctx, "a"))
				<-time.After(time.Minute) // it has failed again by now
				panic("the log is full")
			}
		}
		e = open(t, p, fail)
		put(t, e, "a", 0)
		<-time.After(time.Hour)
		i := get(t, e, "a")
		require.Equal(t, 1, i.Replays)
		require.Equal(t, errDown.Error(), i.LastErr())
	})
}

func TestAnAttemptAfterASlowObserveStartsWhenItDoes(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		p := fixed(2, time.Hour)
		p.Observe = func(context.Context, retry.Event) { <-time.After(time.Minute) }
		begun := time.Now()
		e := open(t, p, func(_ context.Context, j retryjob.Job) error {
			if j.ID == "slow" {
				return errDown
			}
			return nil
		}, func(o *retryjob.Options) { o.Concurrency = 1 })
		put(t, e, "slow", 0)
		put(t, e, "next", 0)
		<-time.After(30 * time.Minute)
		next := get(t, e, "next")
		require.Equal(t, time.Minute, next.Last().Start.Sub(begun))
	})
}

func TestAJobOfManyAttemptsKeepsTheFirstAndTheNewest(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		e := open(t, fixed(150, time.Second), fail)
		i := await(t, put(t, e, "long", 0))
		require.Equal(t, retryjob.DeadLettered, i.Status)
		require.Equal(t, retry.AttemptsExhausted, i.Reason)
		require.Equal(t, 150, i.Attempts)
		require.Len(t, i.History, 64)
		require.Equal(t, 1, i.History[0].Number)
		for n, a := range i.History[1:] {
			require.Equal(t, 88+n, a.Number)
		}
	})
}

func TestSixteenAttemptsForEachCoreRunAtOnceByDefault(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		release := make(chan struct{})
		e := open(t, fixed(1, 0), func(context.Context, retryjob.Job) error { <-release; return nil })
		most := 16 * runtime.GOMAXPROCS(0)
		for n := range most + 3 {
			put(t, e, fmt.Sprint(n), 0)
		}
		synctest.Wait()
		require.Equal(t, map[retryjob.Status]int{retryjob.Leased: most, retryjob.Pending: 3}, count(t, e, retryjob.Filter{}))
		close(release)
	})
}

func TestObserveOfAFinalEventHasTheEngineToItself(t *testing.T) {
	for _, end := range []string{"returns", "panics", "ends its goroutine"} {
		synctest.Test(t, func(t *testing.T) {
			var e *retryjob.Engine
			ends := 0
			p := fixed(1, 0)
			p.Observe = func(ctx context.Context, ev retry.Event) {
				if ev.Outcome == nil {
					return
				}
				ends++
				require.NoError(t, ctx.Err())
				info, _ := retryjob.AttemptFrom(ctx)
				require.Equal(t, retryjob.DeadLettered, get(t, e, info.JobID).Status)
				if ends == 1 {
					require.NoError(t, e.Replay(ctx, info.JobID))
				}
				switch end {
				case "panics":
					panic("observe")
				case "ends its goroutine":
					runtime.Goexit()
				}
			}
			e = open(t, p, fail, func(o *retryjob.Options) { o.Concurrency = 1 })
			put(t, e, "a", 0)
			put(t, e, "b", time.Second)
			<-time.After(time.Minute)
			synctest.Wait()
			require.Equal(t, 3, ends, end)
			require.Equal(t, 1, get(t, e, "a").Replays)
			for _, id := range []string{"a", "b"} {
				i := get(t, e, id)
				require.Equal(t, retryjob.DeadLettered, i.Status)
				want := "the peer is down"
				if end == "panics" {
					want += `; after it was decided: retryjob: a function of policy "p" panicked: observe`
				}
				require.Equal(t, want, i.Last().Err, end)
			}
		})
	}
}

func TestObserveOfAWaitingJobThatIsCanceledHasTheEngineToItself(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var e *retryjob.Engine
		var ends []retryjob.Status
		p := fixed(3, time.Hour)
		p.Observe = func(_ context.Context, ev retry.Event) {
			if ev.Outcome != nil {
				ends = append(ends, get(t, e, "a").Status)
			}
		}
		e = open(t, p, fail)
		put(t, e, "a", 0)
		synctest.Wait()
		require.NoError(t, e.Cancel(t.Context(), "a"))
		require.Equal(t, []retryjob.Status{retryjob.Canceled}, ends)
	})
}
