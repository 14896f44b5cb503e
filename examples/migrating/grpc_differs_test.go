package migrating_test

import (
	"context"
	"errors"
	"io"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"
	"google.golang.org/genproto/googleapis/rpc/errdetails"
	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/metadata"
	rpcstatus "google.golang.org/grpc/status"
	"google.golang.org/protobuf/types/known/durationpb"

	"github.com/retrygo/retry"
	"github.com/retrygo/retry/contrib/retrygrpc"
)

// The differences between go-grpc-middleware/retry and retrygrpc, on calls without a network.

// attempts are the attempts that an interceptor made of a call.
type attempts struct {
	at       []time.Duration
	outgoing []metadata.MD
	took     time.Duration
	err      error
}

// invoke makes a call in virtual time whose attempts end as answer says; nil means that they hang.
func invoke(t *testing.T, intercept grpc.UnaryClientInterceptor, deadline time.Duration, answer func(n int) error, trailer metadata.MD) (a attempts) {
	synctest.Test(t, func(t *testing.T) {
		ctx, cancel := context.WithTimeout(t.Context(), deadline)
		defer cancel()
		began := time.Now()
		a.err = intercept(ctx, "/test.Service/Method", nil, nil, nil,
			func(ctx context.Context, _ string, _, _ any, _ *grpc.ClientConn, opts ...grpc.CallOption) error {
				md, _ := metadata.FromOutgoingContext(ctx)
				a.at, a.outgoing = append(a.at, time.Since(began)), append(a.outgoing, md)
				for _, o := range opts {
					if o, ok := o.(grpc.TrailerCallOption); ok {
						*o.TrailerAddr = trailer
					}
				}
				if answer == nil {
					<-ctx.Done()
					return rpcstatus.FromContextError(ctx.Err()).Err()
				}
				return answer(len(a.at))
			})
		a.took = time.Since(began)
	})
	return a
}

func ends(code codes.Code) func(int) error {
	return func(int) error { return rpcstatus.Error(code, "no") }
}

// ours returns the interceptor of retrygrpc with the policy of the block and the Options.
func ours(t *testing.T, o retrygrpc.Options) grpc.UnaryClientInterceptor {
	intercept, err := retrygrpc.UnaryClientInterceptor(retry.Policy{
		MaxAttempts: 3, Backoff: retry.Backoff{Base: 100 * time.Millisecond, Cap: time.Second}, AttemptTimeout: 2 * time.Second,
	}, o)
	require.NoError(t, err)
	return intercept
}

func afterGRPC(t *testing.T) grpc.UnaryClientInterceptor {
	intercept, err := afterGRPCMiddleware()
	require.NoError(t, err)
	return intercept
}

func TestGRPCTheSame(t *testing.T) {
	for name, answer := range map[string]func(int) error{
		"not available": ends(codes.Unavailable), "a quota": ends(codes.ResourceExhausted), "each attempt times out": nil,
	} {
		before, after := invoke(t, grpcMiddleware(), time.Minute, answer, nil), invoke(t, afterGRPC(t), time.Minute, answer, nil)
		want := ms(0, 100, 300)
		if answer == nil {
			want = ms(0, 2100, 4300)
		}
		require.Equal(t, want, before.at, name)
		require.Equal(t, want, after.at, name)
		require.Equal(t, rpcstatus.Code(before.err), rpcstatus.Code(after.err), name)
	}
}

func TestGRPCATimedOutAttempt(t *testing.T) {
	require.Equal(t, ms(0, 2100, 4300), invoke(t, grpcMiddleware(), time.Minute, nil, nil).at)
	after := invoke(t, ours(t, retrygrpc.Options{}), time.Minute, nil, nil)
	require.Equal(t, ms(0), after.at, "with zero Options it is not repeated")
	require.ErrorIs(t, after.err, retry.TerminalError)
	require.ErrorIs(t, after.err, retry.ErrAttemptTimeout)
	require.Equal(t, codes.DeadlineExceeded, rpcstatus.Code(after.err))

	require.Len(t, invoke(t, grpcMiddleware(), time.Minute, ends(codes.DeadlineExceeded), nil).at, 3, "the server's, too")
	require.Len(t, invoke(t, ours(t, retrygrpc.Options{}), time.Minute, ends(codes.DeadlineExceeded), nil).at, 1)

	quota := invoke(t, ours(t, retrygrpc.Options{}), time.Minute, ends(codes.ResourceExhausted), nil)
	require.Equal(t, ms(0), quota.at, "nor is RESOURCE_EXHAUSTED")
}

func TestGRPCCanceledByTheServer(t *testing.T) {
	require.Len(t, invoke(t, grpcMiddleware(), time.Minute, ends(codes.Canceled), nil).at, 3)
	require.Len(t, invoke(t, afterGRPC(t), time.Minute, ends(codes.Canceled), nil).at, 1)
}

func TestGRPCWithCodes(t *testing.T) {
	require.Len(t, invoke(t, grpcMiddlewareCodes(codes.Aborted), time.Minute, ends(codes.Unavailable), nil).at, 1, "they replace the default")
	opted := ours(t, retrygrpc.Options{RetryCodes: []codes.Code{codes.Aborted}})
	require.Len(t, invoke(t, opted, time.Minute, ends(codes.Unavailable), nil).at, 3, "they are added to it")
	for _, code := range []codes.Code{codes.Aborted, codes.Internal} {
		require.Len(t, invoke(t, grpcMiddlewareCodes(code), time.Minute, ends(code), nil).at, 3)
	}
	require.Len(t, invoke(t, opted, time.Minute, ends(codes.Aborted), nil).at, 3)
	internal := retrygrpc.Options{RetryCodes: []codes.Code{codes.Internal}}
	require.Len(t, invoke(t, ours(t, internal), time.Minute, ends(codes.Internal), nil).at, 1, "it may have taken effect")
	internal.Idempotent = func(string) bool { return true }
	require.Len(t, invoke(t, ours(t, internal), time.Minute, ends(codes.Internal), nil).at, 3)
}

func TestGRPCHints(t *testing.T) {
	st, err := rpcstatus.New(codes.Unavailable, "").WithDetails(&errdetails.RetryInfo{RetryDelay: durationpb.New(time.Second)})
	require.NoError(t, err)
	info := func(int) error { return st.Err() }
	require.Equal(t, ms(0, 100, 300), invoke(t, grpcMiddleware(), time.Minute, info, nil).at)
	require.Equal(t, ms(0, 1000, 2000), invoke(t, afterGRPC(t), time.Minute, info, nil).at)

	stop := metadata.Pairs("grpc-retry-pushback-ms", "-1")
	require.Len(t, invoke(t, grpcMiddleware(), time.Minute, ends(codes.Unavailable), stop).at, 3)
	require.Len(t, invoke(t, afterGRPC(t), time.Minute, ends(codes.Unavailable), stop).at, 1)
}

func TestGRPCDeadline(t *testing.T) {
	const deadline = 250 * time.Millisecond // the third attempt is due at 300ms
	before := invoke(t, grpcMiddleware(), deadline, ends(codes.Unavailable), nil)
	require.Equal(t, deadline, before.took)
	require.Equal(t, codes.DeadlineExceeded, rpcstatus.Code(before.err), "the last error is lost")
	after := invoke(t, afterGRPC(t), deadline, ends(codes.Unavailable), nil)
	require.Equal(t, 100*time.Millisecond, after.took)
	require.Equal(t, codes.Unavailable, rpcstatus.Code(after.err))
	require.ErrorIs(t, after.err, retry.DeadlineTooNear)
}

func TestGRPCWhatARetryCarries(t *testing.T) {
	before := invoke(t, grpcMiddleware(), time.Minute, ends(codes.Unavailable), nil)
	after := invoke(t, afterGRPC(t), time.Minute, ends(codes.Unavailable), nil)
	for n := range 3 {
		number := [][]string{nil, {"1"}, {"2"}}[n]
		require.Equal(t, number, before.outgoing[n].Get("x-retry-attempt"))
		require.Equal(t, number, after.outgoing[n].Get("grpc-previous-rpc-attempts"))
	}
}

func TestGRPCDefaults(t *testing.T) {
	require.Len(t, invoke(t, grpcMiddlewareDefault(), time.Minute, ends(codes.Unavailable), nil).at, 1, "they repeat nothing")
	intercept, err := retrygrpc.UnaryClientInterceptor(retry.Policy{}, retrygrpc.Options{})
	require.NoError(t, err)
	require.Len(t, invoke(t, intercept, time.Minute, ends(codes.Unavailable), nil).at, retry.Inline().MaxAttempts)
}

// letters is a stream of messages of one letter each, then err.
type letters struct {
	grpc.ClientStream
	left string
	err  error
}

func (l *letters) SendMsg(any) error            { return nil }
func (l *letters) CloseSend() error             { return nil }
func (l *letters) Header() (metadata.MD, error) { return metadata.MD{}, nil }
func (l *letters) Trailer() metadata.MD         { return nil }
func (l *letters) Context() context.Context     { return context.Background() }
func (l *letters) RecvMsg(m any) error {
	if l.left == "" {
		return l.err
	}
	*m.(*string), l.left = l.left[:1], l.left[1:]
	return nil
}

func TestGRPCAStreamThatHasBegun(t *testing.T) {
	lost := rpcstatus.Error(codes.Unavailable, "lost")
	read := func(intercept grpc.StreamClientInterceptor) (all string, err error) {
		synctest.Test(t, func(t *testing.T) {
			calls := 0
			s, bad := intercept(t.Context(), &grpc.StreamDesc{ServerStreams: true}, nil, "/test.Service/Method",
				func(context.Context, *grpc.StreamDesc, *grpc.ClientConn, string, ...grpc.CallOption) (grpc.ClientStream, error) {
					if calls++; calls == 1 {
						return &letters{left: "ab", err: lost}, nil
					}
					return &letters{left: "abc", err: io.EOF}, nil
				})
			require.NoError(t, bad)
			require.NoError(t, s.SendMsg(nil))
			for err == nil {
				var m string
				if err = s.RecvMsg(&m); err == nil {
					all += m
				}
			}
		})
		return all, err
	}
	all, err := read(grpcMiddlewareStream())
	require.Equal(t, "ababc", all, "what was read comes again")
	require.Equal(t, io.EOF, err)
	after, err := retrygrpc.StreamClientInterceptor(retry.Policy{MaxAttempts: 3}, retrygrpc.Options{})
	require.NoError(t, err)
	all, err = read(after)
	require.Equal(t, "ab", all)
	require.True(t, errors.Is(err, lost))
}

func TestGRPCClientStreams(t *testing.T) {
	after, err := retrygrpc.StreamClientInterceptor(retry.Policy{}, retrygrpc.Options{})
	require.NoError(t, err)
	for want, intercept := range map[codes.Code]grpc.StreamClientInterceptor{codes.Unimplemented: grpcMiddlewareStream(), codes.OK: after} {
		_, err := intercept(t.Context(), &grpc.StreamDesc{ClientStreams: true}, nil, "/test.Service/Method",
			func(context.Context, *grpc.StreamDesc, *grpc.ClientConn, string, ...grpc.CallOption) (grpc.ClientStream, error) {
				return &letters{}, nil
			})
		require.Equal(t, want, rpcstatus.Code(err))
	}
}
