package migrating_test

import (
	"context"
	"errors"
	"fmt"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/retrygo/retry"
)

// The differences in which each library is unlike retry, with what each does.

func TestAWaitThatTheDeadlineForbids(t *testing.T) {
	const deadline = 250 * time.Millisecond // the third attempt is due at 300ms
	for _, row := range []struct {
		name string
		do   call
		last bool // the last error is reachable
	}{
		{name: "backoff v4", do: client.backoffV4, last: false},
		{name: "backoff v5", do: client.backoffV5, last: false},
		{name: "backoff v6", do: client.backoffV6, last: true},
		{name: "backoff v7", do: client.backoffV7, last: true},
		{name: "retry-go v4", do: client.retryGoV4, last: true},
		{name: "retry-go v5", do: client.retryGoV5, last: true},
		{name: "sethvargo", do: client.sethvargo, last: false},
		{name: "failsafe", do: client.failsafe, last: false},
	} {
		t.Run(row.name+" waits for the deadline", func(t *testing.T) {
			r := watchUntil(t, deadline, row.do, always(errBusy))
			require.Equal(t, ms(0, 100), r.at)
			require.Equal(t, deadline, r.took)
			require.ErrorIs(t, r.err, context.DeadlineExceeded)
			require.Equal(t, row.last, errors.Is(r.err, errBusy))
		})
	}
	for _, p := range fivePairs {
		t.Run("in place of "+p.name+" retry ends at once", func(t *testing.T) {
			r := watchUntil(t, deadline, p.after, always(errBusy))
			require.Equal(t, ms(0, 100), r.at)
			require.Equal(t, 100*time.Millisecond, r.took)
			require.ErrorIs(t, r.err, errBusy)
			require.ErrorIs(t, r.err, retry.DeadlineTooNear)
			require.NotErrorIs(t, r.err, context.DeadlineExceeded)
		})
	}
	t.Run("the loop by hand goes on and waits after its last attempt", func(t *testing.T) {
		r := watchUntil(t, deadline, client.byHand, always(errBusy))
		require.Equal(t, ms(0, 100, 300, 700, 1500), r.at)
		require.Equal(t, 3100*time.Millisecond, r.took)
	})
}

func TestAContextThatIsDoneBeforeTheCall(t *testing.T) {
	for _, row := range []struct {
		name     string
		do       call
		attempts int
	}{
		{name: "backoff v4", do: client.backoffV4, attempts: 1},
		{name: "backoff v5", do: client.backoffV5, attempts: 1},
		{name: "backoff v6", do: client.backoffV6, attempts: 1},
		{name: "backoff v7", do: client.backoffV7, attempts: 1},
		{name: "retry-go v4", do: client.retryGoV4, attempts: 0},
		{name: "retry-go v5", do: client.retryGoV5, attempts: 0},
		{name: "sethvargo", do: client.sethvargo, attempts: 0},
		{name: "failsafe", do: client.failsafe, attempts: 1},
		{name: "retry", do: client.afterBackoff, attempts: 0},
	} {
		t.Run(row.name, func(t *testing.T) {
			r := watchDone(t, row.do, always(errBusy))
			require.Len(t, r.at, row.attempts)
			require.ErrorIs(t, r.err, context.Canceled)
		})
	}
}

// errGaveUp is what work returns that was canceled from within, not by the caller.
var errGaveUp = fmt.Errorf("upstream: %w", context.Canceled)

func TestCanceledWhileTheCallerLives(t *testing.T) {
	for _, do := range []call{
		client.backoffV4, client.backoffV5, client.backoffV6, client.backoffV7,
		client.retryGoV4, client.retryGoV5, client.failsafe, client.byHand,
	} {
		require.Len(t, watch(t, do, always(errGaveUp)).at, 5)
	}
	require.Len(t, watch(t, client.constantSethvargo, always(errGaveUp)).at, 3)

	for _, do := range []call{client.afterBackoff, client.afterRetryGo, client.afterFailsafe, client.afterByHand} {
		r := watch(t, do, always(errGaveUp))
		require.Len(t, r.at, 1)
		require.ErrorIs(t, r.err, retry.TerminalError)
	}
	require.Len(t, watch(t, client.afterBackoff, always(retry.Transient(errGaveUp))).at, 5)
}

func TestTheValueOfAFailure(t *testing.T) {
	for _, row := range []struct {
		name string
		do   call
		want string
	}{
		{name: "backoff v4", do: client.backoffV4, want: "page 0"},
		{name: "backoff v5", do: client.backoffV5, want: "page 0"},
		{name: "backoff v6", do: client.backoffV6, want: "page 0"},
		{name: "backoff v7", do: client.backoffV7, want: "page 0"},
		{name: "retry-go v4", do: client.retryGoV4, want: ""},
		{name: "retry-go v5", do: client.retryGoV5, want: ""},
		{name: "sethvargo", do: client.sethvargo, want: ""},
		{name: "failsafe", do: client.failsafe, want: ""},
		{name: "retry", do: client.afterBackoff, want: "page 0"},
	} {
		t.Run(row.name, func(t *testing.T) {
			require.Equal(t, row.want, watch(t, row.do, always(errBusy)).value)
		})
	}
	require.Equal(t, "page 0", watch(t, client.failsafe, always(errNotFound)).value) // an abort keeps it
}

func TestWhichFailuresAreReported(t *testing.T) {
	for _, row := range []struct {
		name  string
		do    call
		lines int // for 5 failures
	}{
		{name: "backoff v4", do: client.backoffV4, lines: 4},
		{name: "backoff v5", do: client.backoffV5, lines: 4},
		{name: "backoff v6", do: client.backoffV6, lines: 4},
		{name: "backoff v7", do: client.backoffV7, lines: 4},
		{name: "retry, while waiting", do: client.afterBackoff, lines: 4},
		{name: "retry-go v4", do: client.retryGoV4, lines: 5},
		{name: "retry-go v5", do: client.retryGoV5, lines: 5},
		{name: "retry, each attempt", do: client.afterRetryGo, lines: 5},
	} {
		t.Run(row.name, func(t *testing.T) {
			require.Len(t, watch(t, row.do, always(errBusy)).lines, row.lines)
		})
	}
	// An error that is final at once: retry-go's OnRetry is not called.
	require.Empty(t, watch(t, client.retryGoV4, always(errNotFound)).lines)
	require.Empty(t, watch(t, client.retryGoV5, always(errNotFound)).lines)
	require.Equal(t, []string{"attempt 1: not found"}, watch(t, client.afterRetryGo, always(errNotFound)).lines)
}

func TestHints(t *testing.T) {
	in := func(d time.Duration) error { return &busyError{after: d} }
	long := failing(errBusy, in(10*time.Second), errBusy) // the backoff is 1s, 2s, 4s
	short := failing(errBusy, errBusy, in(time.Second))
	for _, row := range []struct {
		name        string
		do          call
		long, short []time.Duration
		twoHours    int // attempts, if the first asks for two hours
	}{
		{name: "backoff v5", do: client.retryAfterBackoffV5, long: ms(0, 1000, 11000, 12000), short: ms(0, 1000, 3000, 4000), twoHours: 1},
		{name: "backoff v6", do: client.retryAfterBackoffV6, long: ms(0, 1000, 11000, 12000), short: ms(0, 1000, 3000, 4000), twoHours: 1},
		{name: "backoff v7", do: client.retryAfterBackoffV7, long: ms(0, 1000, 11000, 12000), short: ms(0, 1000, 3000, 4000), twoHours: 1},
		{name: "retry-go v4", do: client.retryAfterRetryGoV4, long: ms(0, 1000, 11000, 15000), short: ms(0, 1000, 3000, 4000), twoHours: 2},
		{name: "retry-go v5", do: client.retryAfterRetryGoV5, long: ms(0, 1000, 11000, 15000), short: ms(0, 1000, 3000, 4000), twoHours: 2},
		{name: "sethvargo", do: client.retryAfterSethvargo, long: ms(0, 1000, 11000, 13000), short: ms(0, 1000, 3000, 4000), twoHours: 2},
		{name: "failsafe", do: client.retryAfterFailsafe, long: ms(0, 1000, 11000, 13000), short: ms(0, 1000, 3000, 4000), twoHours: 2},
		{name: "retry", do: client.afterRetryAfter, long: ms(0, 1000, 11000, 15000), short: ms(0, 1000, 3000, 7000), twoHours: 1},
	} {
		t.Run(row.name, func(t *testing.T) {
			require.Equal(t, row.long, watch(t, row.do, long).at)
			require.Equal(t, row.short, watch(t, row.do, short).at)
			require.Len(t, watch(t, row.do, failing(in(2*time.Hour))).at, row.twoHours)
		})
	}
	// The part of the error with the hint that is left.
	var busy *busyError
	require.NotErrorAs(t, watch(t, client.retryAfterBackoffV5, always(in(time.Second))).err, &busy)
	require.NotErrorAs(t, watch(t, client.retryAfterBackoffV6, always(in(time.Second))).err, &busy)
	require.ErrorAs(t, watch(t, client.retryAfterBackoffV7, always(in(time.Second))).err, &busy)
	require.ErrorAs(t, watch(t, client.afterRetryAfter, always(in(time.Second))).err, &busy)
	require.ErrorIs(t, watch(t, client.afterRetryAfter, always(in(2*time.Hour))).err, retry.HintTooLong)
}
