package retrygrpc_test

import (
	"context"
	"errors"
	"fmt"
	"math"
	"math/rand/v2"
	"strconv"
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

	"github.com/retrygo/retry"
	"github.com/retrygo/retry/contrib/retrygrpc"
	"github.com/retrygo/retry/contrib/retryrpc"
	"github.com/retrygo/retry/retryshell"
)

// serveLayer is serve with a server that has the interceptors, too.
func serveLayer(t *testing.T, service testgrpc.TestServiceServer, trust func(context.Context) bool, p retry.Policy, o retrygrpc.Options) testgrpc.TestServiceClient {
	t.Helper()
	opts, err := retrygrpc.DialOptions(p, o)
	require.NoError(t, err)
	conn, stop := start(service, serverInterceptors(trust), opts...)
	t.Cleanup(stop)
	t.Cleanup(func() { require.NoError(t, conn.Close()) })
	return testgrpc.NewTestServiceClient(conn)
}

func serverInterceptors(trust func(context.Context) bool) []grpc.ServerOption {
	return []grpc.ServerOption{
		grpc.ChainUnaryInterceptor(retrygrpc.UnaryServerInterceptor(trust)),
		grpc.ChainStreamInterceptor(retrygrpc.StreamServerInterceptor(trust)),
	}
}

func anyone(context.Context) bool { return true }

func TestAServerSaysWhatItHasGivenUp(t *testing.T) {
	plain := errors.New("password hunter2")
	run := func(p retry.Policy, err error) error {
		return retry.Do(t.Context(), p, func(context.Context) error { return err })
	}
	for _, row := range []struct {
		name string
		err  error
		want []string
	}{
		{name: "success"},
		{name: "a plain error", err: plain},
		{name: "a status", err: status.Error(codes.NotFound, "no")},
		{name: "a run that has retried", err: run(upTo(2), plain), want: []string{"-1"}},
		{name: "a run of one attempt", err: run(retry.Policy{Disabled: true}, plain)},
		{name: "a doubt", err: run(retry.Policy{Disabled: true}, retry.Ambiguous(plain)), want: []string{"-1"}},
		{name: "a call that a shutdown has canceled", err: context.Canceled},
		{name: "a hint", err: run(retry.Policy{Disabled: true}, retry.After(1500*time.Microsecond, plain)), want: []string{"2"}},
	} {
		for _, stream := range []bool{false, true} {
			t.Run(fmt.Sprintf("%s, of a stream: %t", row.name, stream), func(t *testing.T) {
				err := row.err
				if err != nil && status.Code(err) == codes.Unknown {
					err = retrygrpc.Unavailable(err)
				}
				client := serveLayer(t, serverOf(func(context.Context) error { return err }), nil, upTo(1), retrygrpc.Options{})
				var trailer metadata.MD
				got := ask(bounded(t), client, stream, grpc.Trailer(&trailer))
				require.Equal(t, row.want, trailer.Get("grpc-retry-pushback-ms"))
				require.Equal(t, status.Code(err), status.Code(got))
				if err != nil {
					require.NotContains(t, got.Error(), "hunter2")
				}
			})
		}
	}
	require.NoError(t, retrygrpc.Unavailable(nil))
}

// What a handler knows of its own retries stays in the server.
func TestAClientGetsNothingOfARun(t *testing.T) {
	inner, err := status.New(codes.FailedPrecondition, "not yet").WithDetails(&errdetails.ErrorInfo{Reason: "r"})
	require.NoError(t, err)
	secret := errors.New("password hunter2")
	fails := retry.Policy{Name: "charge-cards", MaxAttempts: 2, Backoff: retry.Backoff{Base: 1}}
	run := func(err error) error {
		return retry.Do(t.Context(), fails, func(context.Context) error { return err })
	}
	backend := serve(t, serverOf(func(context.Context) error { return status.Error(codes.Unavailable, "of the backend") }), fails, retrygrpc.Options{})
	_, below := backend.UnaryCall(bounded(t), &testgrpc.SimpleRequest{})
	for name, row := range map[string]struct {
		err  error
		want *status.Status
	}{
		"a run":                             {run(secret), status.New(codes.Unavailable, "the service is unavailable")},
		"a run that must not be repeated":   {run(retry.Permanent(secret)), status.New(codes.Unavailable, "the service is unavailable")},
		"a run under a text":                {fmt.Errorf("hunter2: %w", run(secret)), status.New(codes.Unavailable, "the service is unavailable")},
		"a run whose attempts timed out":    {run(context.DeadlineExceeded), status.New(codes.DeadlineExceeded, "context deadline exceeded")},
		"a run around a status":             {run(inner.Err()), inner},
		"a run around a wrapped status":     {run(fmt.Errorf("hunter2: %w", inner.Err())), inner},
		"a call":                            {below, status.New(codes.Unavailable, "of the backend")},
		"a call under a text":               {fmt.Errorf("hunter2: %w", below), status.New(codes.Unavailable, "of the backend")},
		"a run around a call":               {run(below), status.New(codes.Unavailable, "of the backend")},
		"a status of its own around a run":  {retrygrpc.Unavailable(run(inner.Err())), status.New(codes.Unavailable, "the service is unavailable")},
		"an error without a run, unchanged": {errors.New("plain"), status.New(codes.Unknown, "plain")},
	} {
		for _, stream := range []bool{false, true} {
			t.Run(fmt.Sprintf("%s, of a stream: %t", name, stream), func(t *testing.T) {
				client := serveLayer(t, serverOf(func(context.Context) error { return row.err }), nil, upTo(1), retrygrpc.Options{})
				require.Equal(t, row.want.Proto().String(), status.Convert(ask(bounded(t), client, stream)).Proto().String())
			})
		}
	}
}

func TestGRPCLayers(t *testing.T) {
	for _, row := range []struct {
		name   string
		trust  func(context.Context) bool
		pass   bool
		silent bool
		want   int
	}{
		{name: "layers that know nothing of each other multiply", silent: true, want: 64},
		{name: "layers stop at an answer that a layer below has given up", want: 4},
		{name: "layers that believe calls repeat at the top", trust: anyone, pass: true, silent: true, want: 10},
		{name: "layers that keep the number to themselves repeat below", trust: anyone, silent: true, want: 19},
		{name: "layers that do not believe calls multiply", pass: true, silent: true, want: 64},
	} {
		for _, stream := range []bool{false, true} {
			t.Run(fmt.Sprintf("%s, of a stream: %t", row.name, stream), func(t *testing.T) {
				o, calls := retrygrpc.Options{PassAttempt: row.pass}, 0
				bottom := serveLayer(t, serverOf(func(context.Context) error { calls++; return unavailable }), nil, upTo(4), o)
				next := bottom
				for range 2 {
					below := next
					next = serveLayer(t, serverOf(func(ctx context.Context) error {
						err := ask(ctx, below, stream)
						if row.silent {
							err = status.Error(status.Code(err), "silent")
						}
						return err
					}), row.trust, upTo(4), o)
				}
				err := ask(bounded(t), next, stream)
				require.Equal(t, codes.Unavailable, status.Code(err))
				require.Equal(t, row.want, calls)
				require.True(t, retry.IsGivenUp(err))
				if !row.silent {
					var failed *retry.Error
					require.ErrorAs(t, err, &failed)
					require.True(t, failed.InnerGaveUp)
				}
			})
		}
	}
}

func TestTrustIsAskedForRetriesOnly(t *testing.T) {
	asked := 0
	server := retrygrpc.UnaryServerInterceptor(func(context.Context) bool { asked++; return true })
	for _, previous := range []string{"0", "1"} {
		ctx := metadata.NewIncomingContext(t.Context(), metadata.Pairs("grpc-previous-rpc-attempts", previous))
		_, err := server(ctx, nil, nil, func(ctx context.Context, _ any) (any, error) {
			require.Equal(t, previous == "1", retryshell.IsOneAttempt(ctx))
			return nil, nil
		})
		require.NoError(t, err)
	}
	require.Equal(t, 1, asked)
}

func TestClientAttempt(t *testing.T) {
	require.Equal(t, 1, retrygrpc.ClientAttempt(t.Context()))
	for _, row := range []struct {
		values []string
		want   int
	}{
		{nil, 1}, {[]string{"0"}, 1}, {[]string{"2"}, 3}, {[]string{"two"}, 1}, {[]string{"2", "2"}, 1}, {[]string{"4294967295"}, math.MaxInt32},
	} {
		ctx := metadata.NewIncomingContext(t.Context(), metadata.MD{"grpc-previous-rpc-attempts": row.values})
		require.Equal(t, row.want, retrygrpc.ClientAttempt(ctx), row.values)
	}
}

// A server's pushback and a client's number can only lower the number of attempts, except for RESOURCE_EXHAUSTED, which
// is repeated if the server says when.
func TestNoMetadataRaisesAnything(t *testing.T) {
	pick := func(r *rand.Rand, list ...string) string { return list[r.IntN(len(list))] }
	calls := func(t *testing.T, seed uint64, with bool) int {
		r, outside := rand.New(rand.NewPCG(seed, 1)), rand.New(rand.NewPCG(seed, 2))
		p := upTo(1 + r.IntN(4))
		p.Base, p.TTL, p.MaxHint = time.Second, time.Duration(r.IntN(4))*time.Second, time.Duration(r.IntN(20))*time.Second
		if tokens := r.IntN(4); tokens > 0 {
			p.Budget = retry.NewBudget(retry.BudgetConfig{Burst: tokens, Initial: tokens})
		}
		idempotent, trust := r.IntN(2) == 0, r.IntN(2) == 0
		o := retrygrpc.Options{Idempotent: func(string) bool { return idempotent }, PassAttempt: r.IntN(2) == 0}
		var answers []answer
		for range 1 + r.IntN(20) {
			code := codes.Code(r.IntN(17))
			if code == codes.ResourceExhausted || r.IntN(2) == 0 {
				code = codes.Unavailable
			}
			one := answer{err: status.Error(code, "no")}
			if with && outside.IntN(2) == 0 {
				one.pushback = []string{pick(outside, "0", "1000", "-1", "junk", "", "30000", strconv.Itoa(outside.IntN(5000)))}
			}
			if with && outside.IntN(4) == 0 && code != codes.OK {
				one.err = withRetryInfo(t, code, time.Duration(outside.Int64N(int64(time.Minute))-int64(time.Second)))
			}
			answers = append(answers, one)
		}
		total := 0
		for range 1 + r.IntN(3) {
			ctx := t.Context()
			if with {
				ctx = metadata.NewIncomingContext(ctx, metadata.Pairs("grpc-previous-rpc-attempts", pick(outside, "0", "1", "7", "junk")))
			}
			server := retrygrpc.UnaryServerInterceptor(func(context.Context) bool { return trust })
			_, _ = server(ctx, nil, nil, func(ctx context.Context, _ any) (any, error) {
				made, err := invoke(t, ctx, p, o, answers[min(total, len(answers)-1):])
				total += made
				return nil, err
			})
		}
		return total
	}
	synctest.Test(t, func(t *testing.T) {
		fewer := 0
		for seed := range uint64(3000) {
			without, with := calls(t, seed, false), calls(t, seed, true)
			if seed < 3 {
				t.Logf("seed %d: %d attempts without metadata, %d with it", seed, without, with)
			}
			require.LessOrEqual(t, with, without, "seed %d", seed)
			if with < without {
				fewer++
			}
		}
		require.Greater(t, fewer, 300, "they lower it")
	})
}

// A service whose retries have failed says so, and its client does not retry.
func ExampleUnaryServerInterceptor() {
	service := &scripted{}
	service.unary = func(ctx context.Context, _ int) (*testgrpc.SimpleResponse, error) {
		err := retry.Do(ctx, callPolicy, func(context.Context) error {
			fmt.Println("query")
			return errors.New("the database is down")
		})
		return nil, retrygrpc.Unavailable(err)
	}
	opts, err := retrygrpc.DialOptions(callPolicy, retrygrpc.Options{})
	if err != nil {
		fmt.Println(err)
		return
	}
	conn, stop := start(service, []grpc.ServerOption{
		grpc.ChainUnaryInterceptor(retrygrpc.UnaryServerInterceptor(nil)),
		grpc.ChainStreamInterceptor(retrygrpc.StreamServerInterceptor(nil)),
	}, opts...)
	defer stop()
	defer conn.Close()
	_, err = testgrpc.NewTestServiceClient(conn).UnaryCall(context.Background(), &testgrpc.SimpleRequest{})
	fmt.Println(err, retry.IsGivenUp(err))
	// Output:
	// query
	// query
	// query
	// query
	// rpc error: code = Unavailable desc = the service is unavailable (not repeated: pushback) true
}

// A message that is larger than the client allows does not become smaller.
func TestAMessageThatIsTooLargeIsNotRepeated(t *testing.T) {
	service := serverOf(func(context.Context) error { return status.Error(codes.ResourceExhausted, "quota") })
	for _, stream := range []bool{false, true} {
		o := retrygrpc.Options{RetryCodes: []codes.Code{codes.ResourceExhausted}}
		var attempts int
		p := upTo(3)
		p.Observe = func(_ context.Context, e retry.Event) {
			if e.Outcome != nil {
				attempts = e.Outcome.Attempts
			}
		}
		client := serve(t, service, p, o)
		large := &testgrpc.Payload{Body: make([]byte, 100)}
		limit := []grpc.CallOption{grpc.MaxCallSendMsgSize(50), grpc.WaitForReady(true)}
		var err error
		if stream {
			_, err = client.StreamingOutputCall(bounded(t), &testgrpc.StreamingOutputCallRequest{Payload: large}, limit...)
		} else {
			_, err = client.UnaryCall(bounded(t), &testgrpc.SimpleRequest{Payload: large}, limit...)
		}
		require.Equal(t, codes.ResourceExhausted, status.Code(err))
		require.False(t, retry.IsAmbiguous(err))
		if !stream {
			require.Equal(t, 1, attempts)
			var failed *retryrpc.AttemptError
			require.ErrorAs(t, err, &failed)
			require.Equal(t, retryrpc.Local, failed.Veto)
		}
		require.Zero(t, service.calls.Load(), "of a stream: %t", stream)

		require.Equal(t, codes.ResourceExhausted, status.Code(ask(bounded(t), client, stream)))
		require.EqualValues(t, 3, service.calls.Load(), "what the server refuses is repeated")
		service.calls.Store(0)
	}
}
