package retryjob_test

import (
	"context"
	"fmt"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/retrygo/retry"
	"github.com/retrygo/retry/retryjob"
)

func TestEachQueueHasWorkersOfItsOwn(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		release := make(chan struct{})
		running := map[string]int{}
		e := open(t, fixed(2, time.Hour), func(context.Context, retryjob.Job) error { <-release; return nil }, func(o *retryjob.Options) {
			o.Concurrency, o.Queues = 3, map[string]int{"bulk": 2, "mail": 1}
		})
		for _, queue := range []string{"", "default", "bulk", "mail", "elsewhere"} {
			for n := range 5 {
				_, err := e.Enqueue(t.Context(), retryjob.Job{ID: fmt.Sprint(queue, n), Kind: "work", Policy: "p", Queue: queue})
				require.NoError(t, err)
			}
		}
		synctest.Wait()
		for i := range e.List(t.Context(), retryjob.Filter{Statuses: []retryjob.Status{retryjob.Leased}}) {
			running[i.Queue]++
		}
		require.Equal(t, map[string]int{"": 3, "bulk": 2, "mail": 1}, running)
		require.Equal(t, "bulk", get(t, e, "bulk0").Queue)
		close(release)
		synctest.Wait()
		require.Equal(t, map[retryjob.Status]int{retryjob.Succeeded: 25}, count(t, e, retryjob.Filter{}))
	})
}

func TestAPriorityIsThatOfTheRetriesToo(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var got []string
		e := open(t, fixed(2, time.Second), func(ctx context.Context, j retryjob.Job) error {
			if a, _ := retryjob.AttemptFrom(ctx); a.Number == 1 && j.ID != "long" {
				return errDown
			}
			got = append(got, j.ID)
			if j.ID == "long" {
				<-time.After(time.Minute)
			}
			return nil
		}, func(o *retryjob.Options) { o.Concurrency = 1 })
		add := func(id string, priority int, in time.Duration) {
			_, err := e.Enqueue(t.Context(), retryjob.Job{ID: id, Kind: "work", Policy: "p", Priority: priority, Due: time.Now().Add(in)})
			require.NoError(t, err)
		}
		add("last", 4, 0)
		add("third", 3, 0)
		add("first", 1, 0)
		synctest.Wait()
		add("long", 1, time.Second-1)
		add("before", 1, 30*time.Second)
		add("later", 1, 2*time.Minute)
		<-time.After(time.Hour)
		synctest.Wait()
		require.Equal(t, []string{"long", "first", "third", "last", "before", "later"}, got)
	})
}

func TestShutdownWaitsForEveryQueue(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var ended sync.Map
		e := open(t, retry.Policy{}, func(_ context.Context, j retryjob.Job) error {
			<-time.After(time.Duration(len(j.Queue)) * time.Second)
			ended.Store(j.Queue, true)
			return nil
		}, func(o *retryjob.Options) { o.Queues = map[string]int{"bulk": 1, "m": 1} })
		for _, queue := range []string{"", "bulk", "bulk", "m"} {
			_, err := e.Enqueue(t.Context(), retryjob.Job{Kind: "work", Policy: "p", Queue: queue})
			require.NoError(t, err)
		}
		synctest.Wait()
		start := time.Now()
		left, err := e.Shutdown(t.Context())
		require.NoError(t, err)
		require.Equal(t, 4*time.Second, time.Since(start))
		for _, queue := range []string{"", "bulk", "m"} {
			_, there := ended.Load(queue)
			require.True(t, there, queue)
		}
		require.Len(t, left, 1)
		require.Equal(t, "bulk", left[0].Queue)
	})
}
