package retrygrpc_test

import (
	"context"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"
	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/credentials/insecure"
	testgrpc "google.golang.org/grpc/interop/grpc_testing"
	"google.golang.org/grpc/metadata"
	"google.golang.org/grpc/status"

	"github.com/retrygo/retry"
	"github.com/retrygo/retry/contrib/retrygrpc"
	"github.com/retrygo/retry/retryhedge"
)

// timed is the answer to one call, after a time, unless its context ends.
type timed struct {
	after    time.Duration
	code     codes.Code // OK by default
	pushback string
}

// plays returns an invoker that gives the answers in turn and notes when each call began. It fills what a call is
// asked to fill with the call's number.
func plays(answers []timed, at *[]time.Duration) grpc.UnaryInvoker {
	began := time.Now()
	var mu sync.Mutex
	return func(ctx context.Context, _ string, _, reply any, _ *grpc.ClientConn, opts ...grpc.CallOption) error {
		mu.Lock()
		i := len(*at)
		*at = append(*at, time.Since(began))
		mu.Unlock()
		name := string(rune('1' + i))
		select {
		case <-time.After(answers[i].after):
		case <-ctx.Done():
			return status.FromContextError(ctx.Err()).Err()
		}
		for _, o := range opts {
			switch o := o.(type) {
			case grpc.HeaderCallOption:
				*o.HeaderAddr = metadata.Pairs("call", name)
			case grpc.TrailerCallOption:
				*o.TrailerAddr = metadata.Pairs("call", name)
				if answers[i].pushback != "" {
					(*o.TrailerAddr).Set("grpc-retry-pushback-ms", answers[i].pushback)
				}
			}
		}
		if code := answers[i].code; code != codes.OK {
			return status.Error(code, name)
		}
		reply.(*testgrpc.SimpleResponse).Username = name
		return nil
	}
}

func TestHedges(t *testing.T) {
	const ms = time.Millisecond
	for _, row := range []struct {
		name    string
		answers []timed
		change  func(*retryhedge.Policy, *retrygrpc.Options)
		opts    []grpc.CallOption
		at      []time.Duration
		took    time.Duration
		won     string // its number
		code    codes.Code
	}{
		{name: "a fast call has none", answers: []timed{{after: 10 * ms}}, at: []time.Duration{0}, took: 10 * ms, won: "1"},
		{name: "the hedge of a slow one wins", answers: []timed{{after: time.Second}, {after: 10 * ms}},
			at: []time.Duration{0, 50 * ms}, took: 60 * ms, won: "2"},
		{name: "the first wins after all", answers: []timed{{after: 70 * ms}, {after: time.Second}},
			at: []time.Duration{0, 50 * ms}, took: 70 * ms, won: "1"},
		{name: "an answer ends both", answers: []timed{{after: time.Second}, {10 * ms, codes.NotFound, ""}},
			at: []time.Duration{0, 50 * ms}, took: 60 * ms, won: "2", code: codes.NotFound},
		{name: "UNAVAILABLE waits for the other", answers: []timed{{after: 200 * ms}, {10 * ms, codes.Unavailable, ""}},
			at: []time.Duration{0, 50 * ms}, took: 200 * ms, won: "1"},
		{name: "INTERNAL ends both", answers: []timed{{after: 200 * ms}, {10 * ms, codes.Internal, ""}},
			at: []time.Duration{0, 50 * ms}, took: 60 * ms, won: "2", code: codes.Internal},
		{name: "INTERNAL that is repeated waits", answers: []timed{{after: 200 * ms}, {10 * ms, codes.Internal, ""}},
			change: func(_ *retryhedge.Policy, o *retrygrpc.Options) { o.RetryCodes = []codes.Code{codes.Internal} },
			at:     []time.Duration{0, 50 * ms}, took: 200 * ms, won: "1"},
		{name: "Classify goes first", answers: []timed{{after: 200 * ms}, {10 * ms, codes.Unavailable, ""}},
			change: func(h *retryhedge.Policy, _ *retrygrpc.Options) {
				h.Classify = retrygrpc.OnCode(retry.Terminal, codes.Unavailable)
			},
			at: []time.Duration{0, 50 * ms}, took: 60 * ms, won: "2", code: codes.Unavailable},
		{name: "a negative pushback ends both", answers: []timed{{after: 200 * ms}, {10 * ms, codes.Unavailable, "-1"}},
			at: []time.Duration{0, 50 * ms}, took: 60 * ms, won: "2", code: codes.Unavailable},
		{name: "a pushback delays the next hedge",
			answers: []timed{{after: time.Second}, {10 * ms, codes.Unavailable, "300"}, {after: 10 * ms}},
			change:  func(h *retryhedge.Policy, _ *retrygrpc.Options) { h.MaxCalls = 3 },
			at:      []time.Duration{0, 50 * ms, 360 * ms}, took: 370 * ms, won: "3"},
		{name: "a method that is not idempotent has none", answers: []timed{{after: time.Second}},
			change: func(_ *retryhedge.Policy, o *retrygrpc.Options) { o.Idempotent = nil },
			at:     []time.Duration{0}, took: time.Second, won: "1"},
		{name: "a call that is declared idempotent has", answers: []timed{{after: time.Second}, {after: 10 * ms}},
			change: func(_ *retryhedge.Policy, o *retrygrpc.Options) { o.Idempotent = nil },
			opts:   []grpc.CallOption{retrygrpc.Idempotent()}, at: []time.Duration{0, 50 * ms}, took: 60 * ms, won: "2"},
	} {
		t.Run(row.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				h, o := retryhedge.Policy{Delay: 50 * ms}, retrygrpc.Options{Idempotent: always}
				if row.change != nil {
					row.change(&h, &o)
				}
				hedges, err := retrygrpc.HedgeUnaryClientInterceptor(h, o)
				require.NoError(t, err)
				var at []time.Duration
				var header, trailer metadata.MD
				reply := &testgrpc.SimpleResponse{Username: "old"}
				began := time.Now()
				err = hedges(t.Context(), "/test.Service/Method", nil, reply, nil, plays(row.answers, &at),
					append(row.opts, grpc.Header(&header), grpc.Trailer(&trailer))...)
				require.Equal(t, row.took, time.Since(began))
				require.Equal(t, row.code, status.Code(err))
				if row.code == codes.OK {
					require.Equal(t, row.won, reply.Username)
				} else {
					require.Equal(t, row.won, status.Convert(err).Message())
				}
				require.Equal(t, []string{row.won}, header.Get("call"))
				require.Equal(t, []string{row.won}, trailer.Get("call"))
				synctest.Wait()
				require.Equal(t, row.at, at)
			})
		})
	}
	_, err := retrygrpc.HedgeUnaryClientInterceptor(retryhedge.Policy{Delay: -1}, retrygrpc.Options{RetryCodes: []codes.Code{codes.OK}})
	require.EqualError(t, err, "retryhedge: Policy.Delay -1ns is negative; retryrpc: Options.RetryCodes[0] OK is a success")
}

// Over real streams, inside retries: each attempt is hedged, and both of its calls carry the same number.
func TestHedgesOfAnAttempt(t *testing.T) {
	var previous [4]atomic.Pointer[[]string]
	service := &scripted{}
	service.unary = func(ctx context.Context, call int) (*testgrpc.SimpleResponse, error) {
		md, _ := metadata.FromIncomingContext(ctx)
		values := md.Get("grpc-previous-rpc-attempts")
		previous[call-1].Store(&values)
		switch call {
		case 1, 3: // until the hedge has come
			<-ctx.Done()
			return nil, ctx.Err()
		case 2:
			return nil, status.Error(codes.FailedPrecondition, "call 2")
		default:
			return &testgrpc.SimpleResponse{Username: "call 4"}, nil
		}
	}
	o := retrygrpc.Options{Idempotent: always}
	p := upTo(2)
	p.Classify = retrygrpc.OnCode(retry.Retryable, codes.FailedPrecondition)
	var calls []int
	hedges, err := retrygrpc.HedgeUnaryClientInterceptor(retryhedge.Policy{
		Delay: time.Millisecond, Observe: func(_ context.Context, e retryhedge.Event) { calls = append(calls, len(e.Calls)) },
	}, o)
	require.NoError(t, err)
	reply, err := serve(t, service, p, o, grpc.WithChainUnaryInterceptor(hedges)).UnaryCall(bounded(t), &testgrpc.SimpleRequest{})
	require.NoError(t, err)
	require.Equal(t, "call 4", reply.GetUsername())
	require.Equal(t, []int{2, 2}, calls)
	for i, want := range [][]string{nil, nil, {"1"}, {"1"}} {
		require.Equal(t, want, *previous[i].Load(), i)
	}
}

// A hedge can come to run before the call that it is beside, which then returns last: it must not write the caller's reply
// after that.
func TestOnlyTheFirstCallHasTheCallersReply(t *testing.T) {
	hedges, err := retrygrpc.HedgeUnaryClientInterceptor(retryhedge.Policy{Delay: 1}, retrygrpc.Options{Idempotent: always})
	require.NoError(t, err)
	var wrong atomic.Int32
	var callers sync.WaitGroup
	for range 64 {
		callers.Go(func() {
			for range 500 {
				mine := new(testgrpc.SimpleResponse)
				_ = hedges(t.Context(), "/test.Service/Method", nil, mine, nil,
					func(ctx context.Context, _ string, _, reply any, _ *grpc.ClientConn, _ ...grpc.CallOption) error {
						if retryhedge.IsHedge(ctx) == (reply == any(mine)) {
							wrong.Add(1)
						}
						return nil
					})
			}
		})
	}
	callers.Wait()
	require.Zero(t, wrong.Load())
}

// Of two interceptors of hedges in one channel the inner one makes none: there are two calls, not four.
func TestOneLayerHedges(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		service := serverOf(func(ctx context.Context) error {
			select {
			case <-time.After(time.Minute):
			case <-ctx.Done():
			}
			return nil
		})
		hedges, err := retrygrpc.HedgeUnaryClientInterceptor(retryhedge.Policy{Delay: time.Second}, retrygrpc.Options{Idempotent: always})
		require.NoError(t, err)
		client := serve(t, service, upTo(1), retrygrpc.Options{}, grpc.WithChainUnaryInterceptor(hedges, hedges))
		_, err = client.UnaryCall(t.Context(), &testgrpc.SimpleRequest{}, grpc.WaitForReady(true))
		require.NoError(t, err)
		require.EqualValues(t, 2, service.calls.Load())
	})
}

// Under -race: a hedge that begins while the answer to the first call is written to the caller's reply.
func TestAHedgeDoesNotReadTheReplyThatTheFirstCallFills(t *testing.T) {
	const delay = 2 * time.Millisecond
	var calls atomic.Int64
	body := &testgrpc.Payload{Body: make([]byte, 16<<10)}
	_, at := listen(t, "", &scripted{unary: func(_ context.Context, call int) (*testgrpc.SimpleResponse, error) {
		time.Sleep(delay + time.Duration(call%40-20)*20*time.Microsecond) // real time: the race is with a real socket
		return &testgrpc.SimpleResponse{Payload: body}, nil
	}})
	hedges, err := retrygrpc.HedgeUnaryClientInterceptor(retryhedge.Policy{
		Delay: delay, Observe: func(_ context.Context, e retryhedge.Event) { calls.Add(int64(len(e.Calls))) },
	}, retrygrpc.Options{Idempotent: always})
	require.NoError(t, err)
	conn, err := grpc.NewClient(at, grpc.WithTransportCredentials(insecure.NewCredentials()),
		grpc.WithChainUnaryInterceptor(hedges))
	require.NoError(t, err)
	t.Cleanup(func() { require.NoError(t, conn.Close()) })
	client := testgrpc.NewTestServiceClient(conn)
	var callers sync.WaitGroup
	for range 8 {
		callers.Go(func() {
			for range 120 {
				reply, err := client.UnaryCall(bounded(t), &testgrpc.SimpleRequest{})
				if err != nil || len(reply.GetPayload().GetBody()) != len(body.Body) {
					t.Errorf("%d bytes, %v", len(reply.GetPayload().GetBody()), err)
				}
			}
		})
	}
	callers.Wait()
	require.Greater(t, calls.Load(), int64(0), "no call was hedged")
}
