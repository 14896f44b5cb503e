package mailer_test

import (
	"context"
	"fmt"
	"io"
	"net/textproto"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/retrygo/retry"
	mailer "github.com/retrygo/retry/examples/deterministic"
)

var (
	busy    = &textproto.Error{Code: 450, Msg: "mailbox busy"}
	unknown = &textproto.Error{Code: 550, Msg: "no such mailbox"}
	message = mailer.Message{ID: "<42@example.com>", To: "gopher@example.com"}
)

// The policy in use is data that a test can inspect.

func TestDelivery(t *testing.T) {
	policy := mailer.Delivery()

	t.Run("is valid", func(t *testing.T) {
		require.NoError(t, policy.Validate())
	})
	t.Run("shows its schedule in one line", func(t *testing.T) {
		require.Equal(t, "delivery: 6 attempts, exponential 5s ×2, cap 1m, ratio jitter 0.2, attempt timeout 30s: "+
			"5s 10s 20s 40s 1m (1m48s to 2m30s in all)", policy.String())
	})
	t.Run("waits from 1m48s to 2m30s in all", func(t *testing.T) {
		least, most := policy.TotalWait()
		require.Equal(t, (4+8+16+32+48)*time.Second, least)
		require.Equal(t, (6+12+24+48+60)*time.Second, most)
	})
}

// Delays are pure functions: chance is the argument u in [0,1), and there is no clock.

func TestDelays(t *testing.T) {
	backoff := mailer.Delivery().Backoff
	for _, row := range []struct {
		claim               string
		attempt             int
		plain, least, bound time.Duration
	}{
		{claim: "the first wait is 5s", attempt: 1, plain: 5 * time.Second, least: 4 * time.Second, bound: 6 * time.Second},
		{claim: "each wait is twice the last", attempt: 2, plain: 10 * time.Second, least: 8 * time.Second, bound: 12 * time.Second},
		{claim: "the cap bounds jitter as well", attempt: 5, plain: time.Minute, least: 48 * time.Second, bound: time.Minute},
		{claim: "no attempt is too late to count", attempt: 1 << 30, plain: time.Minute, least: 48 * time.Second, bound: time.Minute},
	} {
		t.Run(row.claim, func(t *testing.T) {
			require.Equal(t, row.plain, backoff.Delay(row.attempt))
			least, bound := backoff.Bounds(row.attempt)
			require.Equal(t, row.least, least)
			require.Equal(t, row.bound, bound)
			require.Equal(t, least, backoff.Jittered(row.attempt, 0, 0))
			require.Equal(t, (least+bound)/2, backoff.Jittered(row.attempt, 0, 0.5))
			require.Less(t, backoff.Jittered(row.attempt, 0, 0.999), bound)
		})
	}
}

// So is the decision after an attempt.

func TestDecisions(t *testing.T) {
	for _, row := range []struct {
		claim   string
		attempt int
		err     error
		want    retry.Decision
	}{
		{claim: "no error is a success", attempt: 1, err: nil, want: retry.Decision{Status: retry.Succeeded}},
		{claim: "a busy mailbox is tried again", attempt: 1, err: busy, want: waiting(5 * time.Second)},
		{claim: "a broken connection is tried again", attempt: 2, err: io.EOF, want: waiting(10 * time.Second)},
		{claim: "an unknown mailbox ends the run", attempt: 1, err: unknown, want: retry.Decision{Status: retry.DeadLettered, Reason: retry.TerminalError, Class: retry.Terminal}},
		{claim: "the sixth failure ends it too", attempt: 6, err: busy, want: retry.Decision{Status: retry.DeadLettered, Reason: retry.AttemptsExhausted, Class: retry.Retryable}},
	} {
		t.Run(row.claim, func(t *testing.T) {
			require.Equal(t, row.want, mailer.Delivery().Decide(retry.Progress{Attempt: row.attempt}, row.err, 0.5))
		})
	}
}

// waiting returns the decision to wait for d, without a hint.
func waiting(d time.Duration) retry.Decision {
	return retry.Decision{Status: retry.WaitingRetry, Class: retry.Retryable, Delay: d, Backoff: d}
}

// Send itself runs in a synctest bubble: time.Now is virtual there and jumps to the end of each wait.

func TestSend(t *testing.T) {
	t.Run("succeeds 15s later after two failures", func(t *testing.T) {
		synctest.Test(t, func(t *testing.T) {
			m := mailer.Mailer{Deliver: replies(busy, busy, nil), Policy: middle}
			start := time.Now()
			require.NoError(t, m.Send(t.Context(), message))
			require.Equal(t, 15*time.Second, time.Since(start)) // 5s + 10s
		})
	})
	t.Run("reports a permanent failure at once", func(t *testing.T) {
		synctest.Test(t, func(t *testing.T) {
			m := mailer.Mailer{Deliver: replies(unknown), Policy: middle}
			start := time.Now()
			err := m.Send(t.Context(), message)
			require.ErrorIs(t, err, retry.TerminalError)
			require.ErrorIs(t, err, unknown)
			require.Zero(t, time.Since(start))
		})
	})
	t.Run("begins no wait that the caller's deadline makes hopeless", func(t *testing.T) {
		synctest.Test(t, func(t *testing.T) {
			m := mailer.Mailer{Deliver: replies(busy, busy), Policy: middle}
			ctx, cancel := context.WithTimeout(t.Context(), 12*time.Second)
			defer cancel()
			start := time.Now()
			err := m.Send(ctx, message)
			require.ErrorIs(t, err, retry.DeadlineTooNear)
			require.NoError(t, ctx.Err())
			require.Equal(t, 5*time.Second, time.Since(start)) // the next wait would end at 15s
		})
	})
	t.Run("hangs up on a silent relay after 30s and tries again", func(t *testing.T) {
		synctest.Test(t, func(t *testing.T) {
			m := mailer.Mailer{Deliver: silentOnce, Policy: middle}
			start := time.Now()
			require.NoError(t, m.Send(t.Context(), message))
			require.Equal(t, 35*time.Second, time.Since(start)) // 30s + 5s
		})
	})
	t.Run("keeps the message's ID and numbers the attempts", func(t *testing.T) {
		synctest.Test(t, func(t *testing.T) {
			var log []string
			busyTwice := func(_ context.Context, m mailer.Message, attempt int) error {
				log = append(log, fmt.Sprintf("%s #%d", m.ID, attempt))
				return []error{busy, busy, nil}[attempt-1]
			}
			m := mailer.Mailer{Deliver: busyTwice, Policy: middle}
			require.NoError(t, m.Send(t.Context(), message))
			require.Equal(t, []string{"<42@example.com> #1", "<42@example.com> #2", "<42@example.com> #3"}, log)
		})
	})
}

// middle removes chance: jitter draws the middle of its window, which is the plain delay unless the cap cuts the
// window.
var middle = retry.Policy{Rand: func() float64 { return 0.5 }}

// replies returns a relay that gives one reply to each attempt, in this order. Another attempt panics.
func replies(errs ...error) func(context.Context, mailer.Message, int) error {
	return func(_ context.Context, _ mailer.Message, attempt int) error { return errs[attempt-1] }
}

// silentOnce does not answer the first attempt until its context ends, and accepts the mail on the second.
func silentOnce(ctx context.Context, _ mailer.Message, attempt int) error {
	if attempt == 1 {
		<-ctx.Done()
		return context.Cause(ctx)
	}
	return nil
}
