package retryrpc_test

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/retrygo/retry"
	"github.com/retrygo/retry/contrib/retryrpc"
)

func TestAttemptErrorForLogsAndTraces(t *testing.T) {
	for code, want := range map[retryrpc.Code]string{
		retryrpc.OK: "OK", retryrpc.Canceled: "CANCELLED", retryrpc.Unknown: "UNKNOWN", retryrpc.DeadlineExceeded: "DEADLINE_EXCEEDED",
		retryrpc.Unavailable: "UNAVAILABLE", retryrpc.Unauthenticated: "UNAUTHENTICATED", 17: "UNKNOWN", 1 << 31: "UNKNOWN",
	} {
		require.Equal(t, want, (&retryrpc.AttemptError{Code: code}).ErrorType())
	}
	timedOut := &retryrpc.AttemptError{Code: retryrpc.DeadlineExceeded, Origin: retryrpc.AttemptTimeout}
	require.Equal(t, "attempt_timeout", timedOut.ErrorType())
	require.Equal(t, "DEADLINE_EXCEEDED", timedOut.LogValue().Group()[1].Value.String())
	require.Equal(t, "Code(17)", retryrpc.Code(17).String())

	var none *retryrpc.AttemptError
	require.Empty(t, none.ErrorType())
	require.Equal(t, slog.GroupValue(), none.LogValue())
	require.Equal(t, "<nil>", none.Error())
	require.NoError(t, none.Unwrap())
	require.False(t, none.Timeout())
	require.False(t, none.GivenUp())
	require.NotErrorIs(t, none, retry.ErrAttemptTimeout)
	require.Equal(t, retry.Terminal, retryrpc.Classify(none))

	var text bytes.Buffer
	log := slog.New(slog.NewTextHandler(&text, &slog.HandlerOptions{ReplaceAttr: func(groups []string, a slog.Attr) slog.Attr {
		if len(groups) == 0 {
			return slog.Attr{}
		}
		return a
	}}))
	failed := &retryrpc.AttemptError{Method: "/s/m\n" + strings.Repeat("x", 5000), Code: retryrpc.NotFound, Err: errors.New("secret")}
	log.Info("", "request", failed)
	require.Equal(t, `request.method="/s/m `+strings.Repeat("x", 1019)+`..." request.code=NOT_FOUND`+"\n", text.String())
}

func TestNames(t *testing.T) {
	require.Equal(t, []string{"", "remote", "attempt_timeout", "caller", "Origin(9)"}, []string{
		retryrpc.Origin(0).String(), retryrpc.Remote.String(), retryrpc.AttemptTimeout.String(), retryrpc.Caller.String(), retryrpc.Origin(9).String(),
	})
	require.Equal(t, []string{"", "pushback", "answer_begun", "local", "Veto(9)"}, []string{
		retryrpc.Veto(0).String(), retryrpc.Pushback.String(), retryrpc.AnswerBegun.String(), retryrpc.Local.String(), retryrpc.Veto(9).String(),
	})
}

func TestAnAttemptTimeoutIsADeadline(t *testing.T) {
	timedOut := &retryrpc.AttemptError{Code: retryrpc.DeadlineExceeded, Origin: retryrpc.AttemptTimeout, Err: errors.New("late")}
	require.ErrorIs(t, timedOut, retry.ErrAttemptTimeout)
	require.ErrorIs(t, timedOut, context.DeadlineExceeded)
	require.EqualError(t, timedOut, "late (attempt timeout)")
	require.True(t, timedOut.Timeout())
	server := &retryrpc.AttemptError{Code: retryrpc.DeadlineExceeded, Origin: retryrpc.Remote, Veto: retryrpc.Pushback, Err: errors.New("late")}
	require.NotErrorIs(t, server, retry.ErrAttemptTimeout)
	require.NotErrorIs(t, server, context.DeadlineExceeded)
	require.EqualError(t, server, "late (not repeated: pushback)")
	require.True(t, server.GivenUp())
}

func TestATextIsBounded(t *testing.T) {
	atLimit := "\n" + strings.Repeat("m", 1023)
	require.Equal(t, atLimit, (&retryrpc.AttemptError{Err: errors.New(atLimit)}).Error())
	require.Equal(t, " "+strings.Repeat("m", 1023)+"...", (&retryrpc.AttemptError{Err: errors.New(atLimit + "m")}).Error())
	require.Equal(t, " "+strings.Repeat("m", 1023), retryrpc.Bounded(atLimit))
	require.Equal(t, "a\uFFFD b c d", retryrpc.Bounded("a\xff\u2028b\u2029c\u0085d"))
}

func TestAnAttemptErrorIsFoundWhereverItIs(t *testing.T) {
	unavailable := &retryrpc.AttemptError{Code: retryrpc.Unavailable}
	for _, err := range []error{
		unavailable, fmt.Errorf("more: %w", unavailable), errors.Join(errors.New("first"), unavailable), retry.After(1, unavailable),
	} {
		require.Equal(t, retry.Retryable, retryrpc.Classify(err))
	}
	require.Equal(t, retry.Unknown, retryrpc.Classify(nil))
	require.Equal(t, retry.Unknown, retryrpc.Classify(errors.New("plain")))
}

func ExampleAttemptError() {
	policy := retry.Policy{MaxAttempts: 2, Classify: func(err error) retry.Class {
		var failed *retryrpc.AttemptError
		if errors.As(err, &failed) && failed.Code == retryrpc.Aborted && failed.Idempotent {
			return retry.Retryable
		}
		return retry.Unknown // the table decides
	}}
	fmt.Println(policy.Classify(&retryrpc.AttemptError{Code: retryrpc.Aborted, Idempotent: true}))
	// Output: retryable
}

func ExampleClassify() {
	for _, code := range []retryrpc.Code{retryrpc.Unavailable, retryrpc.ResourceExhausted, retryrpc.DeadlineExceeded, retryrpc.NotFound} {
		fmt.Println(code, retryrpc.Classify(&retryrpc.AttemptError{Code: code, Idempotent: true}))
	}
	// Output:
	// UNAVAILABLE retryable
	// RESOURCE_EXHAUSTED terminal
	// DEADLINE_EXCEEDED retryable
	// NOT_FOUND terminal
}
