package retrygrpc_test

import (
	"context"
	"fmt"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"
	"google.golang.org/genproto/googleapis/rpc/errdetails"
	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	testgrpc "google.golang.org/grpc/interop/grpc_testing"
	"google.golang.org/grpc/metadata"
	"google.golang.org/grpc/peer"
	"google.golang.org/grpc/status"
	"google.golang.org/protobuf/types/known/durationpb"

	"github.com/retrygo/retry"
	"github.com/retrygo/retry/contrib/retrygrpc"
	"github.com/retrygo/retry/contrib/retryrpc"
)

// failTwice fails calls 1 and 2 and then answers.
func failTwice(code codes.Code) *scripted {
	return &scripted{unary: func(_ context.Context, call int) (*testgrpc.SimpleResponse, error) {
		if call <= 2 {
			return nil, status.Errorf(code, "call %d", call)
		}
		return &testgrpc.SimpleResponse{Username: fmt.Sprint("call ", call)}, nil
	}}
}

func TestUnaryCall(t *testing.T) {
	t.Run("a call is repeated until it succeeds, and the server gets the number", func(t *testing.T) {
		service := failTwice(codes.Unavailable)
		answers := service.unary
		var previous [][]string
		var others []string
		var numbers []int
		service.unary = func(ctx context.Context, call int) (*testgrpc.SimpleResponse, error) {
			md, _ := metadata.FromIncomingContext(ctx)
			previous = append(previous, md.Get("grpc-previous-rpc-attempts"))
			others = append(others, md.Get("other")...)
			return answers(ctx, call)
		}
		client := serve(t, service, upTo(3), retrygrpc.Options{}, grpc.WithChainUnaryInterceptor(
			func(ctx context.Context, method string, req, reply any, cc *grpc.ClientConn, invoker grpc.UnaryInvoker, opts ...grpc.CallOption) error {
				numbers = append(numbers, retry.AttemptNumber(ctx))
				return invoker(ctx, method, req, reply, cc, opts...)
			}))
		ctx := metadata.AppendToOutgoingContext(bounded(t), "other", "kept", "grpc-previous-rpc-attempts", "7")
		reply, err := client.UnaryCall(ctx, &testgrpc.SimpleRequest{})
		require.NoError(t, err)
		require.Equal(t, "call 3", reply.GetUsername())
		require.Equal(t, [][]string{nil, {"1"}, {"2"}}, previous)
		require.Equal(t, []string{"kept", "kept", "kept"}, others)
		require.Equal(t, []int{1, 2, 3}, numbers)
	})
	t.Run("a call that fails returns the last status, unchanged, and the run", func(t *testing.T) {
		service := &scripted{unary: func(_ context.Context, call int) (*testgrpc.SimpleResponse, error) {
			st, err := status.Newf(codes.Unavailable, "call %d", call).WithDetails(&errdetails.RetryInfo{RetryDelay: durationpb.New(time.Nanosecond)})
			if err != nil {
				return nil, err
			}
			return nil, st.Err()
		}}
		_, err := serve(t, service, upTo(2), retrygrpc.Options{}).UnaryCall(bounded(t), &testgrpc.SimpleRequest{})
		st, ok := status.FromError(err)
		require.True(t, ok)
		require.Equal(t, codes.Unavailable, st.Code())
		require.Equal(t, "call 2", st.Message())
		require.Len(t, st.Details(), 1)
		require.Equal(t, codes.Unavailable, status.Code(fmt.Errorf("more: %w", err)))
		var run *retry.Error
		require.ErrorAs(t, err, &run)
		require.Equal(t, 2, run.Attempts)
		require.Equal(t, retry.AttemptsExhausted, run.Reason)
		var attempt *retryrpc.AttemptError
		require.ErrorAs(t, err, &attempt)
		require.Equal(t, "/grpc.testing.TestService/UnaryCall", attempt.Method)
		require.Contains(t, err.Error(), "retry: gave up after 2 attempts")
	})
	t.Run("a call that must not be repeated has the server's text alone", func(t *testing.T) {
		_, err := serve(t, failTwice(codes.Internal), upTo(3), retrygrpc.Options{}).UnaryCall(bounded(t), &testgrpc.SimpleRequest{})
		require.EqualError(t, err, "rpc error: code = Internal desc = call 1")
		require.ErrorIs(t, err, retry.TerminalError)
	})
	t.Run("an attempt that runs out of time is canceled on the server, and repeated if it is idempotent", func(t *testing.T) {
		synctest.Test(t, func(t *testing.T) {
			var cut atomic.Int64
			service := &scripted{unary: func(ctx context.Context, call int) (*testgrpc.SimpleResponse, error) {
				if call == 1 {
					<-ctx.Done()
					cut.Add(1)
					return nil, ctx.Err()
				}
				return &testgrpc.SimpleResponse{}, nil
			}}
			p := upTo(2)
			p.AttemptTimeout = time.Second
			_, err := serve(t, service, p, retrygrpc.Options{}).UnaryCall(bounded(t), &testgrpc.SimpleRequest{}, retrygrpc.Idempotent())
			require.NoError(t, err)
			require.Equal(t, int64(2), service.calls.Load())
			synctest.Wait()
			require.Equal(t, int64(1), cut.Load())
		})
	})
	t.Run("a call gives the caller's options the results of the last attempt, and ends once", func(t *testing.T) {
		service := &scripted{unary: func(ctx context.Context, call int) (*testgrpc.SimpleResponse, error) {
			n := fmt.Sprint(call)
			if err := grpc.SetHeader(ctx, metadata.Pairs("h", n)); err != nil {
				return nil, err
			}
			if err := grpc.SetTrailer(ctx, metadata.Pairs("t", n)); err != nil {
				return nil, err
			}
			if call == 1 {
				return nil, status.Error(codes.Unavailable, "")
			}
			return &testgrpc.SimpleResponse{}, nil
		}}
		var header, trailer metadata.MD
		var from peer.Peer
		_, err := serve(t, service, upTo(3), retrygrpc.Options{}).UnaryCall(bounded(t), &testgrpc.SimpleRequest{},
			retrygrpc.Idempotent(), grpc.Header(&header), grpc.Trailer(&trailer), grpc.Peer(&from))
		require.NoError(t, err)
		require.Equal(t, []string{"2"}, header.Get("h"))
		require.Equal(t, []string{"2"}, trailer.Get("t"))
		require.NotNil(t, from.Addr)
	})
}

// grpc-go's report of a header distinguishes an answer that has begun from one of trailers only.
func TestUnaryCallThatIsNotIdempotentIsNotRepeatedAfterAHeader(t *testing.T) {
	for _, row := range []struct {
		name   string
		answer func(ctx context.Context) error // before it fails
		header bool
	}{
		{name: "no answer has begun", answer: func(context.Context) error { return nil }},
		{name: "a trailer", answer: func(ctx context.Context) error { return grpc.SetTrailer(ctx, metadata.Pairs("t", "1")) }},
		{name: "an empty header", header: true, answer: func(ctx context.Context) error { return grpc.SendHeader(ctx, nil) }},
		{name: "a header", header: true, answer: func(ctx context.Context) error { return grpc.SendHeader(ctx, metadata.Pairs("h", "1")) }},
		{name: "a header that waits for the answer", header: true, answer: func(ctx context.Context) error { return grpc.SetHeader(ctx, metadata.Pairs("h", "1")) }},
	} {
		for _, idempotent := range []bool{false, true} {
			t.Run(fmt.Sprint(row.name, ", idempotent ", idempotent), func(t *testing.T) {
				service := &scripted{unary: func(ctx context.Context, _ int) (*testgrpc.SimpleResponse, error) {
					if err := row.answer(ctx); err != nil {
						return nil, err
					}
					return nil, unavailable
				}}
				o := retrygrpc.Options{Idempotent: func(string) bool { return idempotent }}
				_, err := serve(t, service, upTo(3), o).UnaryCall(bounded(t), &testgrpc.SimpleRequest{})
				require.Equal(t, codes.Unavailable, status.Code(err))
				var failed *retryrpc.AttemptError
				require.ErrorAs(t, err, &failed)
				if row.header && !idempotent {
					require.Equal(t, int64(1), service.calls.Load())
					require.Equal(t, retryrpc.AnswerBegun, failed.Veto)
					require.EqualError(t, err, "rpc error: code = Unavailable desc = no (not repeated: answer_begun)")
				} else {
					require.Equal(t, int64(3), service.calls.Load())
					require.Zero(t, failed.Veto)
				}
			})
		}
	}
}

func TestNothingOfAnAttemptBeforeIsLeft(t *testing.T) {
	unary, err := retrygrpc.UnaryClientInterceptor(upTo(2), retrygrpc.Options{})
	require.NoError(t, err)
	var header, trailer metadata.MD
	var from peer.Peer
	opts := []grpc.CallOption{grpc.Header(&header), grpc.Trailer(&trailer), grpc.Peer(&from)}
	type plain struct{ Texts []string }
	for name, row := range map[string]struct {
		reply any
		fill  func(any)
		want  any
	}{
		"of a protobuf message":   {&testgrpc.SimpleResponse{}, func(m any) { m.(*testgrpc.SimpleResponse).Username += "x" }, "x"},
		"of a struct":             {&plain{}, func(m any) { p := m.(*plain); p.Texts = append(p.Texts, "x") }, &plain{[]string{"x"}}},
		"of a message with Reset": {&resettable{}, func(m any) { m.(*resettable).text += "x" }, &resettable{text: "x", resets: 1}},
		"of nothing":              {nil, func(any) {}, nil},
	} {
		t.Run(name, func(t *testing.T) {
			calls := 0
			_ = unary(t.Context(), "/s/m", nil, row.reply, nil, func(_ context.Context, _ string, _, reply any, _ *grpc.ClientConn, opts ...grpc.CallOption) error {
				calls++
				row.fill(reply) // like a message that came before a failing status
				if calls == 1 {
					header, trailer, from = metadata.Pairs("h", "1"), metadata.Pairs("t", "1"), peer.Peer{LocalAddr: &address{}}
				}
				return status.Error(codes.Unavailable, "")
			}, opts...)
			if message, ok := row.reply.(*testgrpc.SimpleResponse); ok {
				require.Equal(t, row.want, message.GetUsername())
			} else {
				require.Equal(t, row.want, row.reply)
			}
			require.Empty(t, header)
			require.Empty(t, trailer)
			require.Zero(t, from)
		})
	}
}

type resettable struct {
	text   string
	resets int
}

func (r *resettable) Reset() { *r = resettable{resets: r.resets + 1} }

type address struct{}

func (*address) Network() string { return "" }
func (*address) String() string  { return "" }

func TestBadConfigurations(t *testing.T) {
	for want, row := range map[string]struct {
		p retry.Policy
		o retrygrpc.Options
	}{
		"retry: Policy.TTL -1ns is negative": {p: retry.Policy{TTL: -1}},
		"retryrpc: Options.RetryCodes[0] OK is a success; Options.RetryCodes[1] Canceled means that the call was given up": {o: retrygrpc.Options{RetryCodes: []codes.Code{codes.OK, codes.Canceled}}},
		"retry: Policy.TTL -1ns is negative; retryrpc: Options.RetryCodes[0] Code(17) is not a code":                       {retry.Policy{TTL: -1}, retrygrpc.Options{RetryCodes: []codes.Code{17}}},
	} {
		_, unary := retrygrpc.UnaryClientInterceptor(row.p, row.o)
		_, stream := retrygrpc.StreamClientInterceptor(row.p, row.o)
		_, both := retrygrpc.DialOptions(row.p, row.o)
		for _, err := range []error{unary, stream, both} {
			require.EqualError(t, err, want)
			require.ErrorAs(t, err, new(*retry.FieldError))
		}
	}
}

func TestThePolicyThatSetsNoSchedule(t *testing.T) {
	const ms = time.Millisecond
	for _, row := range []struct {
		name string
		p    retry.Policy
		want []time.Duration
	}{
		{"takes that of Inline", retry.Policy{AttemptTimeout: time.Minute}, []time.Duration{50 * ms, 100 * ms, 200 * ms}},
		{"leaves attempts that are set", retry.Policy{MaxAttempts: 3}, []time.Duration{50 * ms, 100 * ms}},
	} {
		t.Run(row.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				var waits []time.Duration
				row.p.Rand, row.p.Observe = func() float64 { return 1 }, delays(&waits)
				_, err := invoke(t, t.Context(), row.p, retrygrpc.Options{}, []answer{{err: unavailable}})
				require.ErrorIs(t, err, retry.AttemptsExhausted)
				for i := range waits {
					waits[i] = waits[i].Round(time.Microsecond) // jitter is below its bound
				}
				require.Equal(t, row.want, waits)
			})
		})
	}
}
