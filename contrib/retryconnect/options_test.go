package retryconnect_test

import (
	"context"
	"errors"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"connectrpc.com/connect"
	"github.com/stretchr/testify/require"

	"github.com/retrygo/retry"
	"github.com/retrygo/retry/contrib/retryconnect"
	"github.com/retrygo/retry/contrib/retryrpc"
)

func TestThePolicyOfEachCall(t *testing.T) {
	down := connect.NewError(connect.CodeUnavailable, nil)
	attempts := func(t *testing.T, p retry.Policy, o retryconnect.Options) (calls int, err error) {
		interceptor, err := retryconnect.NewInterceptor(p, o)
		require.NoError(t, err)
		c := connect.NewClient[text, text](nil, "http://server.test"+unaryProcedure, connect.WithInterceptors(interceptor,
			connect.UnaryInterceptorFunc(func(connect.UnaryFunc) connect.UnaryFunc {
				return func(context.Context, connect.AnyRequest) (connect.AnyResponse, error) {
					calls++
					return nil, down
				}
			})))
		synctest.Test(t, func(t *testing.T) { _, err = ping(t.Context(), c) })
		require.Error(t, err)
		return calls, err
	}
	t.Run("PolicyFor is asked once for each call, with the procedure", func(t *testing.T) {
		var asked []string
		calls, _ := attempts(t, retry.Policy{}, retryconnect.Options{PolicyFor: func(procedure string) retry.Policy {
			asked = append(asked, procedure)
			return upTo(3)
		}})
		require.Equal(t, 3, calls)
		require.Equal(t, []string{unaryProcedure}, asked)
	})
	t.Run("a policy that sets no schedule has that of Inline", func(t *testing.T) {
		calls, _ := attempts(t, retry.Policy{}, retryconnect.Options{})
		require.Equal(t, retry.Inline().MaxAttempts, calls)
		calls, _ = attempts(t, retry.Policy{}, retryconnect.Options{PolicyFor: func(string) retry.Policy { return retry.Policy{} }})
		require.Equal(t, retry.Inline().MaxAttempts, calls)
	})
	t.Run("a policy that does not validate fails the call before any attempt", func(t *testing.T) {
		bad := retryconnect.Options{PolicyFor: func(string) retry.Policy { return retry.Policy{TTL: -1} }}
		calls, err := attempts(t, retry.Policy{}, bad)
		require.Zero(t, calls)
		require.Equal(t, connect.CodeInternal, connect.CodeOf(err))
		require.EqualError(t, err, "retry: Policy.TTL -1ns is negative")
		inEach(t, func(t *testing.T, protocol []connect.ClientOption) {
			s := &server{stream: failUntil(1, nil, "a")}
			_, stream := s.start(t, protocol, retry.Policy{}, bad)
			_, err := read(t.Context(), stream)
			require.ErrorContains(t, err, "retry: Policy.TTL -1ns is negative")
			require.Equal(t, connect.CodeInternal, connect.CodeOf(err))
			require.Zero(t, s.requests())
		})
	})
	t.Run("a gate can put the call off beyond its TTL", func(t *testing.T) {
		p := retry.Policy{TTL: time.Second, Gate: func(context.Context) time.Duration { return time.Minute }}
		calls, err := attempts(t, p, retryconnect.Options{})
		require.Zero(t, calls)
		require.Equal(t, connect.CodeUnavailable, connect.CodeOf(err))
		require.ErrorIs(t, err, retry.TTLElapsed)
	})
}

func TestOptionsThatAreRefused(t *testing.T) {
	o := retryconnect.Options{PolicyFor: func(string) retry.Policy { return retry.Policy{} }, RetryCodes: []connect.Code{
		0, 17, connect.CodeCanceled, connect.CodeFailedPrecondition, connect.CodeAborted,
	}}
	_, err := retryconnect.NewInterceptor(retry.Policy{TTL: -1}, o)
	require.EqualError(t, err, "retry: Policy.TTL -1ns is negative; retryrpc: Options.RetryCodes[0] code_0 is a success; "+
		"Options.RetryCodes[1] code_17 is not a code; Options.RetryCodes[2] canceled means that the call was given up; "+
		"Options.RetryCodes[3] failed_precondition must not be repeated until the state has been fixed; "+
		"Options.PolicyFor func is set together with a policy")
}

func TestClassify(t *testing.T) {
	given := connect.NewError(connect.CodeResourceExhausted, nil)
	given.AddDetail(retryInfo(t, 1))
	for _, row := range []struct {
		err  error
		want retry.Class
	}{
		{nil, retry.Unknown},
		{errors.New("plain"), retry.Unknown},
		{connect.NewError(connect.CodeUnavailable, nil), retry.Retryable},
		{connect.NewError(connect.CodeDeadlineExceeded, nil), retry.Terminal},
		{connect.NewWireError(connect.CodeResourceExhausted, nil), retry.Terminal},
		{given, retry.Retryable},
		{&retryrpc.AttemptError{Code: retryrpc.DeadlineExceeded, Idempotent: true}, retry.Retryable},
	} {
		require.Equal(t, row.want, retryconnect.Classify(row.err), "%v", row.err)
	}
	require.Equal(t, retry.Unknown, retryconnect.OnCode(retry.Retryable, connect.CodeUnknown)(errors.New("plain")))
}

func TestARecordIsBoundedWhateverAServerSends(t *testing.T) {
	inEach(t, func(t *testing.T, protocol []connect.ClientOption) {
		for name, grow := range map[string]func(*connect.Error) *connect.Error{
			"a long message": func(*connect.Error) *connect.Error {
				return connect.NewError(connect.CodeUnavailable, errors.New("a\n\x1b[31m"+strings.Repeat("m", 10_000)))
			},
			"long details": func(err *connect.Error) *connect.Error {
				err.AddDetail(detail(t, "google.rpc.DebugInfo", []byte(strings.Repeat("d", 5000))))
				return err
			},
			"long metadata": func(err *connect.Error) *connect.Error {
				err.Meta().Set("Long", strings.Repeat("d", 5000))
				return err
			},
		} {
			whole, asked := 0, 0
			p := upTo(3)
			p.Classify = func(err error) retry.Class {
				asked++
				failed, _ := errors.AsType[*connect.Error](err)
				if len(failed.Message())+len(failed.Meta().Get("Long")) >= 5000 || len(failed.Details()) > 1 {
					whole++
				}
				return retry.Unknown
			}
			s := &server{unary: func(context.Context, int, *request) (string, error) {
				err := grow(connect.NewError(connect.CodeUnavailable, errors.New("short")))
				err.AddDetail(retryInfo(t, 10*time.Second))
				return "", err
			}}
			unary, _ := s.start(t, protocol, p, retryconnect.Options{})
			_, err := ping(t.Context(), unary)
			require.Equal(t, []int{3, 3}, []int{asked, whole}, "%s: Classify gets all of it", name)
			require.Equal(t, []time.Duration{10 * time.Second, 10 * time.Second}, s.waits(), "the hint counts")
			var run *retry.Error
			require.ErrorAs(t, err, &run)
			for _, a := range run.History {
				kept, _ := errors.AsType[*connect.Error](a.Err)
				require.Equal(t, connect.CodeUnavailable, kept.Code())
				require.Less(t, len(kept.Message()), 1200)
				require.NotContains(t, kept.Message(), "\x1b")
				require.Empty(t, kept.Details())
				require.Empty(t, kept.Meta())
			}
			var last *connect.Error
			require.ErrorAs(t, err, &last)
			require.NotEmpty(t, last.Details(), "the caller gets all of the last one")
			require.Less(t, len(err.Error()), 1500)
		}
	})
}

func TestWhatAnInterceptorBeneathSays(t *testing.T) {
	unknown := retryconnect.Options{RetryCodes: []connect.Code{connect.CodeUnknown}, Idempotent: func(string) bool { return true }}
	for _, row := range []struct {
		name string
		o    retryconnect.Options
		says error
		want int
	}{
		{"a mark counts", retryconnect.Options{}, retry.Permanent(connect.NewError(connect.CodeUnavailable, nil)), 1},
		{"a mark makes an answer a failure", retryconnect.Options{}, retry.Transient(connect.NewError(connect.CodeNotFound, nil)), 3},
		{"a bare context.Canceled is CANCELED", unknown, context.Canceled, 1},
		{"a bare context.DeadlineExceeded is DEADLINE_EXCEEDED", unknown, context.DeadlineExceeded, 3},
		{"a plain error is UNKNOWN", unknown, errors.New("plain"), 3},
	} {
		t.Run(row.name, func(t *testing.T) {
			interceptor, err := retryconnect.NewInterceptor(upTo(3), row.o)
			require.NoError(t, err)
			calls := 0
			call := interceptor.WrapUnary(func(context.Context, connect.AnyRequest) (connect.AnyResponse, error) {
				calls++
				return nil, row.says
			})
			synctest.Test(t, func(t *testing.T) { _, err = call(t.Context(), clientRequest(t)) })
			require.ErrorIs(t, err, row.says)
			require.Equal(t, row.want, calls)
		})
	}
}

// clientRequest returns a request as an interceptor of a client sees it.
func clientRequest(t *testing.T) (got connect.AnyRequest) {
	seen := connect.UnaryInterceptorFunc(func(connect.UnaryFunc) connect.UnaryFunc {
		return func(_ context.Context, req connect.AnyRequest) (connect.AnyResponse, error) {
			got = req
			return connect.NewResponse(new(text)), nil
		}
	})
	_, err := ping(t.Context(), connect.NewClient[text, text](nil, "http://server.test"+unaryProcedure, connect.WithInterceptors(seen)))
	require.NoError(t, err)
	return got
}
