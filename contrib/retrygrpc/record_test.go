package retrygrpc_test

import (
	"context"
	"errors"
	"runtime"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"
	"google.golang.org/genproto/googleapis/rpc/errdetails"
	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	testgrpc "google.golang.org/grpc/interop/grpc_testing"
	"google.golang.org/grpc/metadata"
	"google.golang.org/grpc/status"
	"google.golang.org/protobuf/types/known/durationpb"

	"github.com/retrygo/retry"
	"github.com/retrygo/retry/contrib/retrygrpc"
)

func TestAnAttemptTimeoutIsNoCancellation(t *testing.T) {
	for _, stream := range []bool{false, true} {
		synctest.Test(t, func(t *testing.T) {
			var events []retry.Event
			p := upTo(1)
			p.AttemptTimeout = time.Second
			p.Observe = func(_ context.Context, e retry.Event) { events = append(events, e) }
			var err error
			if stream {
				s := open(t, t.Context(), p, &fakeStream{})
				err = s.RecvMsg(nil)
			} else {
				unary, bad := retrygrpc.UnaryClientInterceptor(p, retrygrpc.Options{})
				require.NoError(t, bad)
				err = unary(t.Context(), "/s/m", nil, nil, nil, func(ctx context.Context, _ string, _, _ any, _ *grpc.ClientConn, _ ...grpc.CallOption) error {
					<-ctx.Done()
					return status.FromContextError(ctx.Err()).Err()
				})
			}
			require.Len(t, events, 2)
			for _, err := range []error{err, events[0].Attempt.Err, events[1].Err} {
				require.ErrorIs(t, err, retry.ErrAttemptTimeout)
				require.ErrorContains(t, err, "(attempt timeout)")
				require.ErrorIs(t, err, context.DeadlineExceeded)
				require.NotErrorIs(t, err, context.Canceled)
				var typed interface{ ErrorType() string }
				require.ErrorAs(t, err, &typed)
				require.Equal(t, "attempt_timeout", typed.ErrorType())
			}
		})
	}
}

// retained returns how many more bytes are in use than before.
func retained(before *runtime.MemStats) int {
	var now runtime.MemStats
	runtime.GC()
	runtime.ReadMemStats(&now)
	return int(now.HeapAlloc) - int(before.HeapAlloc)
}

func TestARecordIsBoundedWhateverAServerSends(t *testing.T) {
	const attempts, size = 40, 1 << 20
	withDetails := func(message string, details int) error {
		st, err := status.New(codes.Unavailable, message).WithDetails(
			&errdetails.RetryInfo{RetryDelay: durationpb.New(time.Nanosecond)}, &errdetails.DebugInfo{Detail: strings.Repeat("d", details)})
		require.NoError(t, err)
		return st.Err()
	}
	for name, says := range map[string]func() error{
		"a long message": func() error { return status.Error(codes.Unavailable, "a\n\x1b[31m"+strings.Repeat("m", size)) },
		"long details":   func() error { return withDetails("a\n\x1b[31m", size) },
		"both, marked":   func() error { return retry.After(time.Nanosecond, withDetails("a\n"+strings.Repeat("m", size), size)) },
	} {
		t.Run(name, func(t *testing.T) {
			var before runtime.MemStats
			runtime.GC()
			runtime.ReadMemStats(&before)
			p, inUse, asked := upTo(attempts), 0, 0
			p.Classify = func(err error) retry.Class {
				if st := status.Convert(err); len(st.Message()) >= size || len(st.Details()) == 2 {
					asked++
				}
				return retry.Unknown
			}
			p.Observe = func(_ context.Context, e retry.Event) {
				if e.Outcome != nil {
					inUse = retained(&before)
				}
			}
			unary, err := retrygrpc.UnaryClientInterceptor(p, retrygrpc.Options{})
			require.NoError(t, err)
			var last error
			err = unary(t.Context(), "/s/m", nil, nil, nil, func(_ context.Context, _ string, _, _ any, _ *grpc.ClientConn, opts ...grpc.CallOption) error {
				for _, o := range opts {
					if trailer, ok := o.(grpc.TrailerCallOption); ok {
						*trailer.TrailerAddr = metadata.Pairs("t", strings.Repeat("t", size))
					}
				}
				last = says()
				return last
			})
			require.Less(t, inUse, 8*size, "the whole of one attempt and no more")
			require.Equal(t, attempts, asked, "Classify gets all of it")
			var run *retry.Error
			require.ErrorAs(t, err, &run)
			require.Equal(t, attempts, run.Attempts)
			for _, a := range run.History {
				require.Less(t, len(a.Err.Error()), 1200)
				require.NotContains(t, a.Err.Error(), "\n")
				require.NotContains(t, a.Err.Error(), "\x1b")
				require.Equal(t, codes.Unavailable, status.Code(a.Err))
				require.Empty(t, status.Convert(a.Err).Details())
			}
			require.Less(t, len(err.Error()), 1500)
			require.Equal(t, status.Convert(last).Proto(), status.Convert(err).Proto(), "the caller gets all of the last one")
			require.ErrorIs(t, err, last)
		})
	}
	t.Run("what is small stays as it came", func(t *testing.T) {
		oneDetail, err := status.New(codes.Unavailable, "").WithDetails(&errdetails.DebugInfo{Detail: strings.Repeat("d", 4096)})
		require.NoError(t, err)
		for name, row := range map[string]struct {
			err  error
			kept bool
		}{
			"a message at the limit":    {status.Error(codes.Unavailable, strings.Repeat("m", 4096)), true},
			"a message above it":        {status.Error(codes.Unavailable, strings.Repeat("m", 4097)), false},
			"details":                   {withDetails("m", 3000), true},
			"details above it":          {withDetails("m", 4096), false},
			"one detail above it":       {oneDetail.Err(), false},
			"a message and details":     {withDetails(strings.Repeat("m", 2200), 2000), false},
			"an error without a status": {errors.New("plain"), true},
		} {
			_, err := invoke(t, t.Context(), upTo(1), retrygrpc.Options{}, []answer{{err: row.err}})
			var run *retry.Error
			require.ErrorAs(t, err, &run)
			require.Equal(t, row.kept, errors.Is(run.History[0].Err, row.err), name)
			require.ErrorIs(t, err, row.err)
		}
	})
	t.Run("an answer stays as it came, too", func(t *testing.T) {
		said := withDetails("m", 5000)
		st := status.Convert(said).Proto()
		st.Code = int32(codes.NotFound)
		said = status.FromProto(st).Err()
		_, err := invoke(t, t.Context(), upTo(2), retrygrpc.Options{}, []answer{{err: said}})
		requireAnswer(t, said, err)
	})
	t.Run("marks in what is cut count", func(t *testing.T) {
		long := status.Error(codes.Unavailable, strings.Repeat("m", 5000))
		calls, err := invoke(t, t.Context(), upTo(3), retrygrpc.Options{}, []answer{{err: retry.Ambiguous(long)}})
		require.Equal(t, 1, calls)
		require.ErrorIs(t, err, retry.TerminalError)
		class, _ := retry.Policy{Classify: retry.Otherwise(retry.Retryable)}.Judge(err)
		require.Equal(t, retry.Terminal, class, "doubt outlives the run")
		var waits []time.Duration
		p := upTo(2)
		p.Observe = delays(&waits)
		_, _ = invoke(t, t.Context(), p, retrygrpc.Options{}, []answer{{err: retry.After(3, long)}})
		require.Equal(t, []time.Duration{3}, waits)
		calls, err = invoke(t, t.Context(), upTo(3), retrygrpc.Options{}, []answer{{err: long, pushback: []string{"-1"}}})
		require.Equal(t, 1, calls)
		require.ErrorContains(t, err, "(not repeated: pushback)")
	})
	t.Run("a whole error keeps the doubt of the call", func(t *testing.T) {
		lost := status.Error(codes.Internal, strings.Repeat("m", 5000))
		_, err := invoke(t, t.Context(), upTo(3), retrygrpc.Options{}, []answer{{err: lost, header: true}})
		require.ErrorIs(t, err, lost)
		require.True(t, retry.IsAmbiguous(err))
	})
	t.Run("an attempt that is cut leaves nothing to a later one that is not", func(t *testing.T) {
		long, short := status.Error(codes.Unavailable, strings.Repeat("m", 5000)), status.Error(codes.Unavailable, "short")
		_, err := invoke(t, t.Context(), upTo(2), retrygrpc.Options{}, []answer{{err: long}, {err: short}})
		require.ErrorIs(t, err, short)
		require.Equal(t, "short", status.Convert(err).Message())
	})
	t.Run("the record of a stream is cut too", func(t *testing.T) {
		service := &scripted{output: func(int, testgrpc.TestService_StreamingOutputCallServer) error {
			return withDetails(strings.Repeat("m", 10_000), 10_000)
		}}
		s, err := serve(t, service, upTo(3), retrygrpc.Options{}).StreamingOutputCall(bounded(t), &testgrpc.StreamingOutputCallRequest{})
		require.NoError(t, err)
		_, err = s.Recv()
		var run *retry.Error
		require.ErrorAs(t, err, &run)
		require.Len(t, run.History, 3)
		for _, a := range run.History {
			require.Empty(t, status.Convert(a.Err).Details())
			require.Less(t, len(a.Err.Error()), 1200)
		}
		require.Len(t, status.Convert(err).Details(), 2)
	})
}
