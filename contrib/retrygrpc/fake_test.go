package retrygrpc_test

import (
	"context"
	"errors"
	"slices"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"
	"google.golang.org/genproto/googleapis/rpc/errdetails"
	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/metadata"
	"google.golang.org/grpc/status"
	"google.golang.org/protobuf/types/known/durationpb"

	"github.com/retrygo/retry"
	"github.com/retrygo/retry/contrib/retrygrpc"
	"github.com/retrygo/retry/contrib/retryrpc"
)

// answer is a fake server's answer to one attempt.
type answer struct {
	err      error
	pushback []string
	header   bool
}

// invoke makes a call with the interceptor, whose attempts get the answers in turn; the last one repeats.
func invoke(t *testing.T, ctx context.Context, p retry.Policy, o retrygrpc.Options, answers []answer, opts ...grpc.CallOption) (calls int, err error) {
	t.Helper()
	unary, err := retrygrpc.UnaryClientInterceptor(p, o)
	require.NoError(t, err)
	err = unary(ctx, "/test.Service/Method", nil, nil, nil, func(_ context.Context, _ string, _, _ any, _ *grpc.ClientConn, opts ...grpc.CallOption) error {
		says := answers[min(calls, len(answers)-1)]
		calls++
		for _, o := range opts {
			if trailer, ok := o.(grpc.TrailerCallOption); ok && says.pushback != nil {
				*trailer.TrailerAddr = metadata.MD{"grpc-retry-pushback-ms": says.pushback}
			}
			if header, ok := o.(grpc.HeaderCallOption); ok && says.header {
				*header.HeaderAddr = metadata.MD{}
			}
		}
		return says.err
	}, opts...)
	return calls, err
}

// withRetryInfo is a status with a RetryInfo.
func withRetryInfo(t *testing.T, code codes.Code, delay time.Duration) error {
	t.Helper()
	st, err := status.New(code, "busy").WithDetails(&errdetails.RetryInfo{RetryDelay: durationpb.New(delay)})
	require.NoError(t, err)
	return st.Err()
}

func TestWhichCodesAreRepeated(t *testing.T) {
	type rule struct{ plain, optedIn, idempotent, both bool }
	no, optIn, needsBoth := rule{}, rule{optedIn: true, both: true}, rule{both: true}
	for code, want := range map[codes.Code]rule{
		codes.Unavailable:        {true, true, true, true},
		codes.ResourceExhausted:  optIn,
		codes.Aborted:            optIn,
		codes.DeadlineExceeded:   {idempotent: true, both: true},
		codes.Internal:           needsBoth,
		codes.Unknown:            needsBoth,
		codes.DataLoss:           needsBoth,
		codes.NotFound:           optIn,
		codes.InvalidArgument:    optIn,
		codes.AlreadyExists:      optIn,
		codes.PermissionDenied:   optIn,
		codes.Unauthenticated:    optIn,
		codes.OutOfRange:         optIn,
		codes.Unimplemented:      optIn,
		codes.Canceled:           no,
		codes.FailedPrecondition: no,
	} {
		t.Run(code.String(), func(t *testing.T) {
			fails := []answer{{err: status.Error(code, "no")}}
			chosen := []codes.Code{code}
			if want == no {
				chosen = nil // Options refuse it
			}
			for _, row := range []struct {
				name string
				o    retrygrpc.Options
				want bool
			}{
				{"not idempotent", retrygrpc.Options{}, want.plain},
				{"opted in", retrygrpc.Options{RetryCodes: chosen}, want.optedIn},
				{"idempotent", retrygrpc.Options{Idempotent: always}, want.idempotent},
				{"idempotent and opted in", retrygrpc.Options{Idempotent: always, RetryCodes: chosen}, want.both},
			} {
				calls, err := invoke(t, t.Context(), upTo(3), row.o, fails)
				require.Equal(t, code, status.Code(err), row.name)
				if row.want {
					require.Equal(t, 3, calls, row.name)
					require.ErrorIs(t, err, retry.AttemptsExhausted)
				} else {
					require.Equal(t, 1, calls, row.name)
					require.Equal(t, !slices.Contains(answers, code), errors.Is(err, retry.TerminalError))
				}
			}
			p := upTo(3)
			p.Classify = retrygrpc.OnCode(retry.Retryable, code)
			calls, _ := invoke(t, t.Context(), p, retrygrpc.Options{}, fails)
			require.Equal(t, 3, calls, "Policy.Classify goes before the rules")
		})
	}
	t.Run("an error without a status is UNKNOWN", func(t *testing.T) {
		plain := errors.New("plain")
		calls, err := invoke(t, t.Context(), upTo(3), retrygrpc.Options{Idempotent: always}, []answer{{err: plain}})
		require.Equal(t, 1, calls)
		require.ErrorIs(t, err, plain)
		require.Equal(t, codes.Unknown, status.Code(err))
		require.Equal(t, retry.Unknown, retrygrpc.Classify(plain), "outside an interceptor others judge it")
	})
	t.Run("a mark of an interceptor inside goes before the rules", func(t *testing.T) {
		calls, _ := invoke(t, t.Context(), upTo(3), retrygrpc.Options{}, []answer{{err: retry.Permanent(status.Error(codes.Unavailable, ""))}})
		require.Equal(t, 1, calls)
	})
	t.Run("the caller may reuse a list of codes", func(t *testing.T) {
		list := []codes.Code{codes.NotFound}
		p := upTo(2)
		p.Classify = retrygrpc.OnCode(retry.Retryable, list...)
		require.Equal(t, retry.Unknown, p.Classify(status.Error(codes.Aborted, "")))
		unary, err := retrygrpc.UnaryClientInterceptor(upTo(2), retrygrpc.Options{RetryCodes: list})
		require.NoError(t, err)
		list[0] = codes.Aborted
		require.Equal(t, retry.Retryable, p.Classify(status.Error(codes.NotFound, "")))
		calls := 0
		_ = unary(t.Context(), "/s/m", nil, nil, nil, func(context.Context, string, any, any, *grpc.ClientConn, ...grpc.CallOption) error {
			calls++
			return status.Error(codes.NotFound, "")
		})
		require.Equal(t, 2, calls)
	})
	t.Run("Classify agrees", func(t *testing.T) {
		require.Equal(t, retry.Retryable, retrygrpc.Classify(status.Error(codes.Unavailable, "")))
		require.Equal(t, retry.Terminal, retrygrpc.Classify(status.Error(codes.ResourceExhausted, "")))
		require.Equal(t, retry.Retryable, retrygrpc.Classify(withRetryInfo(t, codes.ResourceExhausted, 1)))
		require.Equal(t, retry.Terminal, retrygrpc.Classify(withRetryInfo(t, codes.ResourceExhausted, 0)))
		require.Equal(t, retry.Terminal, retrygrpc.Classify(status.Error(codes.DeadlineExceeded, "")))
		require.Equal(t, retry.Retryable, retrygrpc.Classify(&retryrpc.AttemptError{Code: retryrpc.DeadlineExceeded, Idempotent: true}))
		require.Equal(t, retry.Unknown, retrygrpc.Classify(nil))
		require.Equal(t, retry.Unknown, retrygrpc.OnCode(retry.Terminal, codes.OK)(nil))
		require.Equal(t, retry.Unknown, retrygrpc.OnCode(retry.Retryable, codes.Unknown)(errors.New("plain")))
	})
}

func TestWhatTheServerSaysOfRetries(t *testing.T) {
	exhausted := status.Error(codes.ResourceExhausted, "no")
	const base = 100 * time.Millisecond
	for _, row := range []struct {
		name  string
		first answer
		waits time.Duration // before the second attempt, which succeeds
		stops bool
	}{
		{name: "no hint waits as the backoff does", first: answer{err: unavailable}, waits: base},
		{name: "a pushback above the backoff is waited for", first: answer{err: unavailable, pushback: []string{"2500"}}, waits: 2500 * time.Millisecond},
		{name: "a pushback below the backoff is a floor", first: answer{err: unavailable, pushback: []string{"1"}}, waits: base},
		{name: "a negative pushback", first: answer{err: unavailable, pushback: []string{"-1"}}, stops: true},
		{name: "two pushbacks", first: answer{err: unavailable, pushback: []string{"10", "10"}}, stops: true},
		{name: "a pushback does not make a code retryable", first: answer{err: status.Error(codes.Internal, ""), pushback: []string{"10"}}, stops: true},
		{name: "RESOURCE_EXHAUSTED with a pushback", first: answer{err: exhausted, pushback: []string{"300"}}, waits: 300 * time.Millisecond},
		{name: "RESOURCE_EXHAUSTED with a pushback of 0, which is no hint", first: answer{err: exhausted, pushback: []string{"0"}}, stops: true},
		{name: "RESOURCE_EXHAUSTED with a RetryInfo of 0, which is no hint", first: answer{err: withRetryInfo(t, codes.ResourceExhausted, 0)}, stops: true},
		{name: "RetryInfo", first: answer{err: withRetryInfo(t, codes.Unavailable, 500*time.Millisecond)}, waits: 500 * time.Millisecond},
		{name: "RetryInfo below the backoff", first: answer{err: withRetryInfo(t, codes.Unavailable, time.Millisecond)}, waits: base},
		{name: "RetryInfo makes RESOURCE_EXHAUSTED retryable", first: answer{err: withRetryInfo(t, codes.ResourceExhausted, time.Second)}, waits: time.Second},
		{name: "RetryInfo and a pushback: the longer one", first: answer{err: withRetryInfo(t, codes.Unavailable, time.Second), pushback: []string{"200"}}, waits: time.Second},
		{name: "RetryInfo and a pushback that forbids", first: answer{err: withRetryInfo(t, codes.Unavailable, time.Second), pushback: []string{"-1"}}, stops: true},
		{name: "a negative RetryInfo", first: answer{err: withRetryInfo(t, codes.Unavailable, -time.Second)}, waits: base},
		{name: "RESOURCE_EXHAUSTED with a negative RetryInfo", first: answer{err: withRetryInfo(t, codes.ResourceExhausted, -time.Second)}, stops: true},
	} {
		t.Run(row.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				start := time.Now()
				p := retry.Policy{MaxAttempts: 3, Backoff: retry.Backoff{Base: base}}
				calls, err := invoke(t, t.Context(), p, retrygrpc.Options{}, []answer{row.first, {}})
				if row.stops {
					require.ErrorIs(t, err, retry.TerminalError)
					require.Equal(t, 1, calls)
					row.waits = 0
				} else {
					require.NoError(t, err)
					require.Equal(t, 2, calls)
				}
				require.Equal(t, row.waits, time.Since(start))
			})
		})
	}
	t.Run("a pushback that forbids goes before Policy.Classify", func(t *testing.T) {
		p := upTo(3)
		p.Classify = retry.Otherwise(retry.Retryable)
		calls, err := invoke(t, t.Context(), p, retrygrpc.Options{}, []answer{{err: unavailable, pushback: []string{"-1"}}})
		require.Equal(t, 1, calls)
		var failed *retryrpc.AttemptError
		require.ErrorAs(t, err, &failed)
		require.Equal(t, retryrpc.Pushback, failed.Veto)
		require.Contains(t, failed.Error(), "(not repeated: pushback)")
	})
	t.Run("beyond MaxHint the run ends", func(t *testing.T) {
		p := upTo(3)
		p.MaxHint = time.Second
		_, err := invoke(t, t.Context(), p, retrygrpc.Options{}, []answer{{err: unavailable, pushback: []string{"1001"}}})
		require.ErrorIs(t, err, retry.HintTooLong)
		require.Equal(t, codes.Unavailable, status.Code(err))
	})
	t.Run("backoff goes on after a pushback, and does not begin anew", func(t *testing.T) {
		synctest.Test(t, func(t *testing.T) {
			var waits []time.Duration
			p := retry.Policy{MaxAttempts: 4, Backoff: retry.Backoff{Base: base}, Observe: delays(&waits)}
			_, _ = invoke(t, t.Context(), p, retrygrpc.Options{}, []answer{{err: unavailable}, {err: unavailable, pushback: []string{"700"}}, {err: unavailable}})
			require.Equal(t, []time.Duration{base, 700 * time.Millisecond, 4 * base}, waits)
		})
	})
}

func TestWhoseDeadlineItWas(t *testing.T) {
	// hangs is an attempt that ends with its context, like those of grpc-go.
	hangs := func(ctx context.Context) error {
		<-ctx.Done()
		return status.FromContextError(ctx.Err()).Err()
	}
	serverSays := func(context.Context) error { return status.Error(codes.DeadlineExceeded, "mine") }
	for _, row := range []struct {
		name       string
		invoke     func(context.Context) error
		callers    time.Duration // 0: no deadline
		attempts   time.Duration
		idempotent bool
		calls      int
		origin     retryrpc.Origin
		reason     retry.Reason
		elapsed    time.Duration
	}{
		{name: "the caller's", invoke: hangs, callers: time.Second, idempotent: true, calls: 1, origin: retryrpc.Caller, reason: retry.DeadlinePassed, elapsed: time.Second},
		{name: "the caller's before the attempt's", invoke: hangs, callers: time.Second, attempts: 2 * time.Second, idempotent: true, calls: 1, origin: retryrpc.Caller, reason: retry.DeadlinePassed, elapsed: time.Second},
		{name: "the attempt's", invoke: hangs, attempts: time.Second, calls: 1, origin: retryrpc.AttemptTimeout, reason: retry.TerminalError, elapsed: time.Second},
		{name: "the attempt's, idempotent", invoke: hangs, attempts: time.Second, idempotent: true, calls: 3, origin: retryrpc.AttemptTimeout, reason: retry.AttemptsExhausted, elapsed: 3*time.Second + 2},
		{name: "the attempt's, and then the caller's", invoke: hangs, attempts: time.Second, callers: 1500 * time.Millisecond, idempotent: true, calls: 2, origin: retryrpc.Caller, reason: retry.DeadlinePassed, elapsed: 1500 * time.Millisecond},
		{name: "the server's", invoke: serverSays, calls: 1, origin: retryrpc.Remote, reason: retry.TerminalError},
		{name: "the server's, idempotent", invoke: serverSays, idempotent: true, calls: 3, origin: retryrpc.Remote, reason: retry.AttemptsExhausted, elapsed: 2},
	} {
		t.Run(row.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				p := upTo(3)
				p.AttemptTimeout = row.attempts
				unary, err := retrygrpc.UnaryClientInterceptor(p, retrygrpc.Options{Idempotent: func(string) bool { return row.idempotent }})
				require.NoError(t, err)
				ctx := t.Context()
				if row.callers > 0 {
					var cancel context.CancelFunc
					ctx, cancel = context.WithTimeout(ctx, row.callers)
					defer cancel()
				}
				start, calls := time.Now(), 0
				err = unary(ctx, "/s/m", nil, nil, nil, func(ctx context.Context, _ string, _, _ any, _ *grpc.ClientConn, _ ...grpc.CallOption) error {
					calls++
					return row.invoke(ctx)
				})
				require.Equal(t, row.elapsed, time.Since(start))
				require.Equal(t, row.calls, calls)
				require.ErrorIs(t, err, row.reason)
				require.Equal(t, codes.DeadlineExceeded, status.Code(err))
				var failed *retryrpc.AttemptError
				require.ErrorAs(t, err, &failed)
				require.Equal(t, row.origin, failed.Origin)
				require.True(t, failed.Timeout())
				require.Equal(t, row.origin == retryrpc.AttemptTimeout, errors.Is(failed, retry.ErrAttemptTimeout))
			})
		})
	}
	t.Run("a caller who goes during a wait gets CANCELED", func(t *testing.T) {
		synctest.Test(t, func(t *testing.T) {
			ctx, cancel := context.WithCancel(t.Context())
			time.AfterFunc(time.Second, cancel)
			p := retry.Policy{Backoff: retry.Backoff{Base: 5 * time.Second}}
			_, err := invoke(t, ctx, p, retrygrpc.Options{}, []answer{{err: status.Error(codes.Unavailable, "gone")}})
			require.Equal(t, codes.Canceled, status.Code(err))
			require.ErrorIs(t, err, retry.CallerCanceled)
			require.ErrorIs(t, err, context.Canceled)
			var run *retry.Error
			require.ErrorAs(t, err, &run)
			require.Equal(t, codes.Unavailable, status.Code(run.Last))
		})
	})
	t.Run("a caller who has gone before gets CANCELED", func(t *testing.T) {
		ctx, cancel := context.WithCancel(t.Context())
		cancel()
		calls, err := invoke(t, ctx, retry.Policy{}, retrygrpc.Options{}, []answer{{}})
		require.Zero(t, calls)
		require.Equal(t, codes.Canceled, status.Code(err))
	})
	t.Run("a gate that puts the call off for too long is UNAVAILABLE", func(t *testing.T) {
		p := retry.Policy{TTL: time.Second, Gate: func(context.Context) time.Duration { return time.Minute }}
		calls, err := invoke(t, t.Context(), p, retrygrpc.Options{}, []answer{{}})
		require.Zero(t, calls)
		require.ErrorIs(t, err, retry.TTLElapsed)
		require.Equal(t, codes.Unavailable, status.Code(err))
	})
}
