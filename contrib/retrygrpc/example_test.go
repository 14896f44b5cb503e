package retrygrpc_test

import (
	"context"
	"errors"
	"fmt"
	"io"
	"sync"
	"time"

	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	testgrpc "google.golang.org/grpc/interop/grpc_testing"
	"google.golang.org/grpc/status"

	"github.com/retrygo/retry"
	"github.com/retrygo/retry/contrib/retrygrpc"
	"github.com/retrygo/retry/contrib/retryrpc"
)

// A policy for calls with a waiting caller.
var callPolicy = retry.Policy{
	MaxAttempts:    4,
	Backoff:        retry.Backoff{Base: time.Millisecond, Cap: time.Second, Jitter: retry.FullJitter},
	AttemptTimeout: 2 * time.Second,
}

// A channel with retries: the server is unavailable twice.
func ExampleDialOptions() {
	opts, err := retrygrpc.DialOptions(callPolicy, retrygrpc.Options{Idempotent: retrygrpc.DeclaredIdempotent})
	if err != nil {
		fmt.Println(err)
		return
	}
	client, stop := connect(failTwice(codes.Unavailable), opts...)
	defer stop()
	reply, err := client.UnaryCall(context.Background(), &testgrpc.SimpleRequest{})
	fmt.Println(reply.GetUsername(), err)
	// Output: call 3 <nil>
}

// The error has the status of the last attempt and the record of the run.
func ExampleUnaryClientInterceptor() {
	intercept, err := retrygrpc.UnaryClientInterceptor(retry.Policy{MaxAttempts: 2, Backoff: retry.Backoff{Base: time.Millisecond}}, retrygrpc.Options{})
	if err != nil {
		fmt.Println(err)
		return
	}
	client, stop := connect(failTwice(codes.Unavailable), grpc.WithChainUnaryInterceptor(intercept), grpc.WithDisableRetry())
	defer stop()
	_, err = client.UnaryCall(context.Background(), &testgrpc.SimpleRequest{})
	fmt.Println(status.Convert(err).Code(), status.Convert(err).Message())
	var run *retry.Error
	if errors.As(err, &run) {
		fmt.Println(run.Attempts, run.Reason)
	}
	// Output:
	// Unavailable call 2
	// 2 attempts_exhausted
}

// A server stream is repeated until the server begins to answer.
func ExampleStreamClientInterceptor() {
	service := &scripted{output: func(call int, s testgrpc.TestService_StreamingOutputCallServer) error {
		if call == 1 {
			return status.Error(codes.Unavailable, "not yet")
		}
		return sends(s, status.Error(codes.Unavailable, "in its midst"), "a", "b")
	}}
	intercept, err := retrygrpc.StreamClientInterceptor(callPolicy, retrygrpc.Options{})
	if err != nil {
		fmt.Println(err)
		return
	}
	client, stop := connect(service, grpc.WithChainStreamInterceptor(intercept), grpc.WithDisableRetry())
	defer stop()
	stream, err := client.StreamingOutputCall(context.Background(), &testgrpc.StreamingOutputCallRequest{})
	for err == nil {
		var m *testgrpc.StreamingOutputCallResponse
		if m, err = stream.Recv(); err == nil {
			fmt.Println(string(m.GetPayload().GetBody()))
		}
	}
	fmt.Println(err != io.EOF, err)
	// Output:
	// a
	// b
	// true rpc error: code = Unavailable desc = in its midst
}

// An attempt that timed out is repeated if the call may take effect twice.
func ExampleIdempotent() {
	opts, err := retrygrpc.DialOptions(callPolicy, retrygrpc.Options{})
	if err != nil {
		fmt.Println(err)
		return
	}
	for _, o := range [][]grpc.CallOption{nil, {retrygrpc.Idempotent()}} {
		service := failTwice(codes.DeadlineExceeded)
		client, stop := connect(service, opts...)
		_, err = client.UnaryCall(context.Background(), &testgrpc.SimpleRequest{}, o...)
		fmt.Println(service.calls.Load(), status.Code(err))
		stop()
	}
	// Output:
	// 1 DeadlineExceeded
	// 3 OK
}

// The rules, for a policy of other calls.
func ExampleClassify() {
	fmt.Println(retrygrpc.Classify(status.Error(codes.Unavailable, "")))
	fmt.Println(retrygrpc.Classify(status.Error(codes.NotFound, "")))
	fmt.Println(retrygrpc.Classify(errors.New("no status")))
	// Output:
	// retryable
	// terminal
	// unknown
}

// Reads that may come before the writes that they depend on.
func ExampleOnCode() {
	p := callPolicy
	p.Classify = retrygrpc.OnCode(retry.Retryable, codes.NotFound)
	opts, err := retrygrpc.DialOptions(p, retrygrpc.Options{})
	if err != nil {
		fmt.Println(err)
		return
	}
	client, stop := connect(failTwice(codes.NotFound), opts...)
	defer stop()
	reply, err := client.UnaryCall(context.Background(), &testgrpc.SimpleRequest{})
	fmt.Println(reply.GetUsername(), err)
	// Output: call 3 <nil>
}

// An outer run repeats two calls together, and the channel's interceptor does not multiply them.
func ExampleDialOptions_oneAttempt() {
	opts, err := retrygrpc.DialOptions(callPolicy, retrygrpc.Options{})
	if err != nil {
		fmt.Println(err)
		return
	}
	service := failTwice(codes.Unavailable)
	client, stop := connect(service, opts...)
	defer stop()
	runs := 0
	err = retry.Do(context.Background(), callPolicy, func(ctx context.Context) error {
		runs++
		ctx = retry.OneAttempt(ctx)
		if _, err := client.UnaryCall(ctx, &testgrpc.SimpleRequest{}); err != nil {
			return err
		}
		_, err := client.UnaryCall(ctx, &testgrpc.SimpleRequest{})
		return err
	})
	fmt.Println(runs, service.calls.Load(), err)
	// Output: 3 4 <nil>
}

// The error of one attempt, for logs and metrics.
func Example_attemptError() {
	p := callPolicy
	p.MaxAttempts = 2
	p.AttemptTimeout = 50 * time.Millisecond
	p.Observe = func(_ context.Context, e retry.Event) {
		var failed *retryrpc.AttemptError
		if e.Outcome == nil && errors.As(e.Attempt.Err, &failed) {
			fmt.Println(failed.Method, failed.Code, failed.Origin, failed.Veto == retryrpc.Pushback)
		}
	}
	opts, err := retrygrpc.DialOptions(p, retrygrpc.Options{})
	if err != nil {
		fmt.Println(err)
		return
	}
	service := &scripted{unary: func(ctx context.Context, _ int) (*testgrpc.SimpleResponse, error) {
		<-ctx.Done()
		return nil, ctx.Err()
	}}
	client, stop := connect(service, opts...)
	defer stop()
	_, err = client.UnaryCall(context.Background(), &testgrpc.SimpleRequest{})
	fmt.Println(errors.Is(err, retry.TerminalError))
	// Output:
	// /grpc.testing.TestService/UnaryCall DEADLINE_EXCEEDED attempt_timeout false
	// true
}

// Options are validated, all fields at once.
func ExampleOptions_refused() {
	fmt.Println(retrygrpc.Options{RetryCodes: []codes.Code{codes.Aborted, codes.OK, codes.FailedPrecondition}}.Validate())
	// Output: retryrpc: Options.RetryCodes[1] OK is a success; Options.RetryCodes[2] FailedPrecondition must not be repeated until the state has been fixed
}

// A catalog, such as retryconf's, can change the policy of an existing channel.
func ExampleOptions_policyFor() {
	current := retry.Policy{MaxAttempts: 2, Backoff: retry.Backoff{Base: time.Millisecond}} // a Ref's Policy method in a program
	opts, err := retrygrpc.DialOptions(retry.Policy{}, retrygrpc.Options{PolicyFor: func(string) retry.Policy { return current }})
	if err != nil {
		fmt.Println(err)
		return
	}
	service := &scripted{unary: func(context.Context, int) (*testgrpc.SimpleResponse, error) {
		return nil, unavailable
	}}
	client, stop := connect(service, opts...)
	defer stop()
	for current.MaxAttempts = 2; current.MaxAttempts <= 3; current.MaxAttempts++ {
		_, err = client.UnaryCall(context.Background(), &testgrpc.SimpleRequest{})
		fmt.Println(status.Code(err), service.calls.Swap(0))
	}
	// Output:
	// Unavailable 2
	// Unavailable 3
}

// The failed call, for a log and for a metric.
func Example_attemptError_LogValue() {
	failed := &retryrpc.AttemptError{Method: "/shop.Orders/Get", Code: retryrpc.Unavailable}
	fmt.Println(failed.LogValue())
	fmt.Println(failed.ErrorType())
	// Output:
	// [method=/shop.Orders/Get code=UNAVAILABLE]
	// UNAVAILABLE
}

// Methods whose .proto says so may take effect twice. The interop service's .proto does not.
func ExampleDeclaredIdempotent() {
	fmt.Println(retrygrpc.DeclaredIdempotent("/grpc.testing.TestService/UnaryCall"))
	// Output: false
}

// throttle is that of gRPC's service config (gRFC A6). A failure that may be repeated, or whose server forbids a retry,
// takes a token. A success gives back a part of one. No retry is made while half of the tokens or more are gone. It is
// shared by the calls of a channel. An answer such as NOT_FOUND counts as a success here, and not at all in gRPC.
type throttle struct {
	mu                 sync.Mutex
	max, ratio, tokens float64
}

func (t *throttle) add(tokens float64) float64 {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.tokens = min(max(t.tokens+tokens, 0), t.max)
	return t.tokens
}

func (t *throttle) pay(context.Context, retry.Decision) bool { return t.add(-1) > t.max/2 }

func (t *throttle) observe(_ context.Context, e retry.Event) {
	var failed *retryrpc.AttemptError
	switch {
	case e.Final() && e.Outcome.Status == retry.Succeeded:
		t.add(t.ratio)
	case e.Final(), e.Decision.Status == retry.WaitingRetry, e.Decision.Reason == retry.BudgetExhausted:
		// each attempt has an event of its own, and pay has taken its token
	case e.Attempt.Class == retry.Retryable, errors.As(e.Attempt.Err, &failed) && failed.Veto == retryrpc.Pushback:
		t.add(-1)
	}
}

// A retry.Budget is the library's own throttle. This is gRPC's, for a service that has been tuned for it.
func Example_throttle() {
	t := &throttle{max: 4, ratio: 0.5, tokens: 4}
	unary, err := retrygrpc.UnaryClientInterceptor(retry.Policy{
		MaxAttempts: 4, Backoff: retry.Backoff{Base: time.Millisecond}, Pay: t.pay, Observe: t.observe,
	}, retrygrpc.Options{})
	if err != nil {
		fmt.Println(err)
		return
	}
	call := func(answer error) {
		attempts := 0
		_ = unary(context.Background(), "/shop.Orders/Get", nil, nil, nil,
			func(context.Context, string, any, any, *grpc.ClientConn, ...grpc.CallOption) error {
				attempts++
				return answer
			})
		fmt.Println(status.Code(answer), "attempts:", attempts, "tokens:", t.add(0))
	}
	busy := status.Error(codes.Unavailable, "busy")
	for _, answer := range []error{busy, busy, nil, nil, nil, nil, nil, busy} {
		call(answer)
	}
	// Output:
	// Unavailable attempts: 2 tokens: 2
	// Unavailable attempts: 1 tokens: 1
	// OK attempts: 1 tokens: 1.5
	// OK attempts: 1 tokens: 2
	// OK attempts: 1 tokens: 2.5
	// OK attempts: 1 tokens: 3
	// OK attempts: 1 tokens: 3.5
	// Unavailable attempts: 2 tokens: 1.5
}
