package retryrpc_test

import (
	"context"
	"errors"
	"fmt"
	"math"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/retrygo/retry"
	"github.com/retrygo/retry/contrib/retryrpc"
)

func TestMetadataThatASideSends(t *testing.T) {
	for _, row := range []struct {
		values    []string
		wait      time.Duration
		forbidden bool
		attempt   int
	}{
		{values: nil, attempt: 1},
		{values: []string{"0"}, attempt: 1},
		{values: []string{"1"}, wait: time.Millisecond, attempt: 2},
		{values: []string{"2147483647"}, wait: math.MaxInt32 * time.Millisecond, attempt: math.MaxInt32},
		{values: []string{"2147483648"}, forbidden: true, attempt: math.MaxInt32},
		{values: []string{"-1"}, forbidden: true, attempt: 1},
		{values: []string{""}, forbidden: true, attempt: 1},
		{values: []string{"soon"}, forbidden: true, attempt: 1},
		{values: []string{"1", "1"}, forbidden: true, attempt: 1},
	} {
		wait, forbidden := retryrpc.ParsePushback(row.values)
		require.Equal(t, row.wait, wait, row.values)
		require.Equal(t, row.forbidden, forbidden, row.values)
		require.Equal(t, row.attempt, retryrpc.ParseAttempt(row.values), row.values)
	}
}

func TestWhatAServerSaysOfItsError(t *testing.T) {
	plain := errors.New("password hunter2")
	run := func(attempts int, err error) error {
		p := retry.Policy{MaxAttempts: attempts, Backoff: retry.Backoff{Base: 1}}
		return retry.Do(t.Context(), p, func(context.Context) error { return err })
	}
	notFound := &retryrpc.AnswerError{Err: plain}
	forbids := map[string]string{"grpc-retry-pushback-ms": "-1"}
	doubts := map[string]string{"grpc-retry-pushback-ms": "-1", "retry-in-doubt": "true"}
	waits := func(ms string) map[string]string { return map[string]string{"grpc-retry-pushback-ms": ms} }
	for name, row := range map[string]struct {
		err  error
		says map[string]string
		code retryrpc.Code // OK: not for ForClient
	}{
		"nothing":                             {err: nil},
		"a plain error":                       {err: plain},
		"a mark":                              {err: retry.Permanent(plain), says: forbids},
		"a doubt":                             {err: retry.Ambiguous(plain), says: doubts},
		"a doubt with a hint":                 {err: retry.Ambiguous(retry.After(time.Second, plain)), says: doubts},
		"a doubt that was taken back":         {err: retry.Transient(retry.Ambiguous(plain))},
		"a hint":                              {err: retry.After(1500*time.Microsecond, plain), says: waits("2")},
		"a hint beyond 32 bits":               {err: retry.After(1000*time.Hour, plain), says: waits("2147483647")},
		"a run":                               {err: run(2, plain), says: forbids, code: retryrpc.Unavailable},
		"a run in doubt":                      {err: run(2, retry.Ambiguous(plain)), says: doubts, code: retryrpc.Unavailable},
		"a run of one attempt":                {err: run(1, plain), code: retryrpc.Unavailable},
		"a run that timed out":                {err: run(2, context.DeadlineExceeded), says: forbids, code: retryrpc.DeadlineExceeded},
		"a run that was canceled":             {err: run(2, context.Canceled), says: forbids, code: retryrpc.Canceled},
		"an answer of a service below":        {err: notFound},
		"a run that such an answer has ended": {err: run(2, notFound), code: retryrpc.Unavailable},
		"a run that has repeated it":          {err: run(2, retry.Transient(notFound)), says: forbids, code: retryrpc.Unavailable},
	} {
		t.Run(name, func(t *testing.T) {
			require.Equal(t, row.says, retryrpc.MetadataFor(row.err))
			code, text, ok := retryrpc.ForClient(row.err)
			require.Equal(t, row.code, code)
			require.Equal(t, row.code != retryrpc.OK, ok)
			require.NotContains(t, text, "hunter2")
		})
	}
}

func ExampleMetadataFor() {
	busy := errors.New("busy")
	fmt.Println(retryrpc.MetadataFor(retry.After(2*time.Second, busy)))
	fmt.Println(retryrpc.MetadataFor(retry.Permanent(busy)))
	fmt.Println(retryrpc.MetadataFor(retry.Ambiguous(errors.New("the answer to COMMIT was lost"))))
	// Output:
	// map[grpc-retry-pushback-ms:2000]
	// map[grpc-retry-pushback-ms:-1]
	// map[grpc-retry-pushback-ms:-1 retry-in-doubt:true]
}
