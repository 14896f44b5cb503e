package retrygrpc_test

import (
	"context"
	"io"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"
	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/metadata"
	"google.golang.org/grpc/status"

	"github.com/retrygo/retry"
	"github.com/retrygo/retry/contrib/retrygrpc"
	"github.com/retrygo/retry/contrib/retryrpc"
	"github.com/retrygo/retry/retryshell"
)

// fakeStream is a stream of a server whose header comes after a request was sent.
type fakeStream struct {
	ctx    context.Context
	header metadata.MD
	err    error // of RecvMsg
	reply  string
	sent   chan struct{} // closed once it was
	closed int
}

func (f *fakeStream) Header() (metadata.MD, error) {
	select {
	case <-f.sent:
		return f.header, nil
	case <-f.ctx.Done():
		return nil, nil
	}
}
func (f *fakeStream) Trailer() metadata.MD     { return metadata.Pairs("t", "1") }
func (f *fakeStream) CloseSend() error         { f.closed++; return nil }
func (f *fakeStream) Context() context.Context { return f.ctx }
func (f *fakeStream) SendMsg(any) error {
	close(f.sent)
	if f.err != nil {
		return io.EOF // like a stream that has ended
	}
	return nil
}

func (f *fakeStream) RecvMsg(m any) error {
	if text, ok := m.(*string); ok {
		*text += f.reply
	}
	if f.ctx.Err() != nil {
		return status.FromContextError(f.ctx.Err()).Err()
	}
	return f.err
}

// streamer makes the stream of an attempt.
type streamer = func(ctx context.Context, opts ...grpc.CallOption) (grpc.ClientStream, error)

// openBy opens a server stream through the interceptor.
func openBy(t *testing.T, ctx context.Context, p retry.Policy, attempt streamer, opts ...grpc.CallOption) grpc.ClientStream {
	t.Helper()
	intercept, err := retrygrpc.StreamClientInterceptor(p, retrygrpc.Options{})
	require.NoError(t, err)
	s, err := intercept(ctx, &grpc.StreamDesc{ServerStreams: true}, nil, "/s/m",
		func(ctx context.Context, _ *grpc.StreamDesc, _ *grpc.ClientConn, _ string, opts ...grpc.CallOption) (grpc.ClientStream, error) {
			return attempt(ctx, opts...)
		}, opts...)
	require.NoError(t, err)
	return s
}

// open is openBy with fakes as attempts, in turn.
func open(t *testing.T, ctx context.Context, p retry.Policy, fakes ...*fakeStream) grpc.ClientStream {
	t.Helper()
	return openBy(t, ctx, p, func(ctx context.Context, _ ...grpc.CallOption) (grpc.ClientStream, error) {
		f := fakes[0]
		fakes = fakes[1:]
		f.ctx, f.sent = ctx, make(chan struct{})
		return f, nil
	})
}

func TestStreamWithoutGeneratedCode(t *testing.T) {
	t.Run("a message has nothing of an attempt before", func(t *testing.T) {
		first, second := &fakeStream{err: unavailable, reply: "a"}, &fakeStream{header: metadata.MD{}, reply: "b"}
		s := open(t, t.Context(), upTo(2), first, second)
		require.NoError(t, s.SendMsg("request"))
		require.NoError(t, s.CloseSend())
		var reply string
		require.NoError(t, s.RecvMsg(&reply))
		require.Equal(t, "b", reply)
		require.ErrorIs(t, first.ctx.Err(), context.Canceled, "a failed attempt is canceled")
		require.NoError(t, second.ctx.Err())
		require.Equal(t, second.ctx.Done(), s.Context().Done())
		require.Equal(t, []int{1, 1}, []int{first.closed, second.closed})
	})
	t.Run("reading, the header and sending may be concurrent", func(t *testing.T) {
		for range 50 {
			fakes := []*fakeStream{{err: unavailable}, {err: unavailable}, {header: metadata.Pairs("h", "1"), reply: "a"}}
			s := open(t, bounded(t), upTo(3), fakes...)
			read, header := make(chan error, 1), make(chan metadata.MD, 1)
			var reply string
			go func() { read <- s.RecvMsg(&reply) }()
			go func() {
				md, _ := s.Header()
				header <- md
			}()
			require.NoError(t, s.SendMsg("request"))
			require.NoError(t, s.CloseSend())
			require.NoError(t, <-read)
			require.Equal(t, "a", reply)
			require.NotNil(t, <-header)
		}
	})
	t.Run("a second request is refused", func(t *testing.T) {
		p := upTo(2)
		p.Gate = func(context.Context) time.Duration { return 0 }
		s := open(t, t.Context(), p)
		require.NoError(t, s.SendMsg("request"))
		require.Equal(t, codes.Internal, status.Code(s.SendMsg("another")))
	})
	t.Run("an attempt that was read to its end is canceled, and no option of the caller's is left to it", func(t *testing.T) {
		fake := &fakeStream{header: metadata.MD{}}
		var trailer metadata.MD
		s := open(t, t.Context(), upTo(2), fake)
		require.NoError(t, s.SendMsg("request"))
		require.NoError(t, s.RecvMsg(nil))
		require.NoError(t, fake.ctx.Err())
		fake.err = io.EOF
		require.Equal(t, io.EOF, s.RecvMsg(nil))
		require.Error(t, fake.ctx.Err())

		openBy(t, t.Context(), upTo(1), func(_ context.Context, opts ...grpc.CallOption) (grpc.ClientStream, error) {
			require.Len(t, opts, 2)
			require.Contains(t, opts, grpc.WaitForReady(true))
			require.NotContains(t, opts, grpc.Trailer(&trailer), "grpc-go would write the trailer when a canceled attempt is over")
			return fake, nil
		}, grpc.Trailer(&trailer), grpc.WaitForReady(true))
	})
	t.Run("the attempt's timeout covers the connection and the header together", func(t *testing.T) {
		synctest.Test(t, func(t *testing.T) {
			p := upTo(1)
			p.AttemptTimeout = 100 * time.Millisecond
			start := time.Now()
			fake := &fakeStream{sent: make(chan struct{})}
			s := openBy(t, t.Context(), p, func(ctx context.Context, _ ...grpc.CallOption) (grpc.ClientStream, error) {
				<-time.After(60 * time.Millisecond)
				fake.ctx = ctx
				return fake, nil
			})
			require.Equal(t, codes.DeadlineExceeded, status.Code(s.RecvMsg(nil)))
			require.Equal(t, p.AttemptTimeout, time.Since(start))
		})
	})
	t.Run("the run's record is right", func(t *testing.T) {
		var events []retry.Event
		p := upTo(3)
		p.Observe = func(_ context.Context, e retry.Event) { events = append(events, e) }
		s := open(t, t.Context(), p, &fakeStream{err: unavailable}, &fakeStream{err: status.Error(codes.Internal, "")})
		require.NoError(t, s.SendMsg("request"))
		err := s.RecvMsg(nil)
		var failed *retryrpc.AttemptError
		require.ErrorAs(t, err, &failed)
		require.Equal(t, retryrpc.Internal, failed.Code)
		require.Len(t, events, 3)
		require.Equal(t, 2, events[2].Outcome.Attempts)
		require.Equal(t, retry.TerminalError, events[2].Outcome.Reason)
		require.Equal(t, metadata.Pairs("t", "1"), s.Trailer())
	})
	t.Run("the error of a caller who has gone before the first read tells of the attempt that was begun, and is canceled", func(t *testing.T) {
		for reason, gone := range map[retry.Reason]func(context.Context) (context.Context, context.CancelFunc){
			retry.CallerCanceled: context.WithCancel,
			retry.DeadlinePassed: func(ctx context.Context) (context.Context, context.CancelFunc) {
				return context.WithTimeout(ctx, time.Second)
			},
		} {
			synctest.Test(t, func(t *testing.T) {
				ctx, cancel := gone(t.Context())
				fake := &fakeStream{header: metadata.MD{}}
				s := open(t, ctx, upTo(2), fake)
				require.NoError(t, s.SendMsg("request"))
				if reason == retry.CallerCanceled {
					cancel()
				} else {
					<-ctx.Done()
					defer cancel()
				}
				err := s.RecvMsg(nil)
				var run *retry.Error
				require.ErrorAs(t, err, &run)
				require.Equal(t, reason, run.Reason)
				require.Equal(t, 1, run.Attempts)
				require.Len(t, run.History, 1)
				require.Equal(t, 1, run.History[0].Number)
				require.Equal(t, retry.Terminal, run.History[0].Class)
				var failed *retryrpc.AttemptError
				require.ErrorAs(t, err, &failed)
				require.Equal(t, retryrpc.Caller, failed.Origin)
				require.Equal(t, status.Code(err), codes.Code(failed.Code))
				require.ErrorIs(t, err, ctx.Err())
				require.Contains(t, err.Error(), "1 attempt")
				require.Error(t, fake.ctx.Err())
				require.Equal(t, err, s.RecvMsg(nil))
			})
		}
	})
	t.Run("an attempt that could not be made is reported", func(t *testing.T) {
		ctx, cancel := context.WithCancel(t.Context())
		s := openBy(t, ctx, upTo(2), func(context.Context, ...grpc.CallOption) (grpc.ClientStream, error) {
			return nil, status.Error(codes.NotFound, "none")
		})
		cancel()
		err := s.RecvMsg(nil)
		require.Equal(t, codes.Canceled, status.Code(err))
		require.ErrorIs(t, err, retry.CallerCanceled)
		var failed *retryrpc.AttemptError
		require.ErrorAs(t, err, &failed)
		require.Equal(t, retryrpc.NotFound, failed.Code)
	})
	t.Run("a gate that puts the stream off for too long leaves no attempt to report", func(t *testing.T) {
		var trailer metadata.MD
		p := retry.Policy{TTL: time.Second, Gate: func(context.Context) time.Duration { return time.Minute }}
		s := openBy(t, t.Context(), p, nil, grpc.Trailer(&trailer))
		require.ErrorIs(t, s.RecvMsg(nil), retry.TTLElapsed)
		require.Nil(t, trailer)
		require.Nil(t, s.Trailer())
	})
	t.Run("the context of a stream that is read is not an attempt's", func(t *testing.T) {
		type key struct{}
		ctx := context.WithValue(t.Context(), key{}, "value")
		second := &fakeStream{header: metadata.MD{}}
		s := open(t, ctx, upTo(2), &fakeStream{err: unavailable}, second)
		require.NoError(t, s.SendMsg("request"))
		require.NoError(t, s.RecvMsg(nil))
		require.Equal(t, 2, retry.AttemptNumber(second.ctx))
		require.Equal(t, 1, retry.AttemptNumber(s.Context()))
		require.NoError(t, retry.Do(s.Context(), upTo(2), failOnce()), "a run under it makes its own attempts")
		require.Equal(t, "value", s.Context().Value(key{}))

		caller := retryshell.WithAttempt(ctx, retry.Policy{}, retry.Progress{Attempt: 4})
		s = open(t, caller, upTo(2), &fakeStream{header: metadata.MD{}})
		require.NoError(t, s.SendMsg("request"))
		require.NoError(t, s.RecvMsg(nil))
		require.Equal(t, 5, retry.AttemptNumber(caller))
		require.Equal(t, 5, retry.AttemptNumber(s.Context()), "the caller's own")

		s = open(t, retry.OneAttempt(ctx), upTo(2), &fakeStream{header: metadata.MD{}})
		require.NoError(t, s.SendMsg("request"))
		require.NoError(t, s.RecvMsg(nil))
		require.ErrorIs(t, retry.Do(s.Context(), upTo(2), failOnce()), retry.RetriesDisabled, "the caller's OneAttempt stays")
	})
}

// failOnce returns an fn whose first attempt fails.
func failOnce() func(context.Context) error {
	failed := false
	return func(context.Context) error {
		if !failed {
			failed = true
			return io.ErrUnexpectedEOF
		}
		return nil
	}
}
