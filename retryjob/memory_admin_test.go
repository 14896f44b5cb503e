package retryjob_test

import (
	"context"
	"fmt"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

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
		for i, err := range e.DeadLetters(t.Context(), retryjob.Filter{PageSize: 2, Limit: 15}) {
			require.NoError(t, err)
			got = append(got, i.JobID)
			switch len(got) {
			case 1: // a page of 20 and 19 has been read
				require.NoError(t, e.Replay(t.Context(), "20"))
				require.NoError(t, e.Replay(t.Context(), "18")) // the next to be read
				synctest.Wait()
			case 4:
				_, err := e.Purge(t.Context(), retryjob.Filter{Since: get(t, e, "12").Ended, Until: get(t, e, "15").Ended})
				require.NoError(t, err)
			}
		}
		require.Equal(t, []string{"20", "19", "17", "16", "15", "11", "10", "9", "8", "7", "6", "5", "4", "3", "2"}, got)

		for range e.List(t.Context(), retryjob.Filter{}) {
			break
		}
		ctx, cancel := context.WithCancel(t.Context())
		defer cancel()
		n := 0
		for _, err := range e.List(ctx, retryjob.Filter{PageSize: 3}) {
			if n++; n == 2 {
				cancel()
			}
			if n == 4 {
				require.ErrorIs(t, err, context.Canceled)
			}
		}
		require.Equal(t, 4, n)
		shutdown(t, e)
	})
}

func TestReplayAllCountsWhatItReplays(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		e := open(t, fixed(1, time.Hour), fail)
		for range 250 {
			put(t, e, "", 0)
		}
		synctest.Wait()
		n, err := e.ReplayAll(t.Context(), retryjob.Filter{Limit: 7})
		require.NoError(t, err)
		require.Equal(t, 7, n)
		n, err = e.ReplayAll(t.Context(), retryjob.Filter{Statuses: []retryjob.Status{retryjob.Succeeded}})
		require.NoError(t, err)
		require.Equal(t, 0, n)
		synctest.Wait()
		n, err = e.ReplayAll(t.Context(), retryjob.Filter{}) // they fail again at once, and are not replayed again
		require.NoError(t, err)
		require.Equal(t, 250, n)
		synctest.Wait()
		shutdown(t, e)
		n, err = e.ReplayAll(t.Context(), retryjob.Filter{})
		require.ErrorIs(t, err, retryjob.ErrShutdown)
		require.Equal(t, 0, n)
	})
}

func TestTheNewestTenThousandOfTheDoneAreKept(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		e := open(t, fixed(1, time.Hour), succeed, func(c *retryjob.Options) { c.Concurrency = 1 })
		first := put(t, e, "", 0).ID()
		put(t, e, "canceled", time.Hour)
		synctest.Wait()
		require.NoError(t, e.Cancel(t.Context(), "canceled"))
		second := put(t, e, "", 0).ID()
		for range 9998 {
			put(t, e, "", 0)
		}
		synctest.Wait()
		_, err := e.Inspect(first)
		require.ErrorIs(t, err, retryjob.ErrAgedOut)
		require.Equal(t, retryjob.Canceled, get(t, e, "canceled").Status)
		put(t, e, "", 0)
		synctest.Wait()
		_, err = e.Inspect("canceled")
		require.ErrorIs(t, err, retryjob.ErrUnknownJob)
		require.Equal(t, retryjob.Succeeded, get(t, e, second).Status)
		<-time.After(14*24*time.Hour - 1)
		get(t, e, second)
		<-time.After(1)
		_, err = e.Inspect(second)
		require.ErrorIs(t, err, retryjob.ErrAgedOut)
		shutdown(t, e)
	})
}
