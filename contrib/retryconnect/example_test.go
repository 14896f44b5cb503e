package retryconnect_test

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"net/http/httptest"
	"time"

	"connectrpc.com/connect"
	"google.golang.org/protobuf/types/known/wrapperspb"

	"github.com/retrygo/retry"
	"github.com/retrygo/retry/contrib/retryconnect"
	"github.com/retrygo/retry/contrib/retryrpc"
)

// call makes one call to a server whose handler always fails with err.
func call(interceptor connect.Interceptor, err *connect.Error) error {
	server := httptest.NewServer(connect.NewUnaryHandler(unaryProcedure, func(context.Context, *request) (*response, error) {
		return nil, err
	}))
	defer server.Close()
	client := connect.NewClient[text, text](http.DefaultClient, server.URL+unaryProcedure, connect.WithInterceptors(interceptor))
	_, failed := client.CallUnary(context.Background(), connect.NewRequest(wrapperspb.String("ping")))
	return failed
}

// shortly is a policy of 3 attempts with waits that are short enough for an example.
func shortly() retry.Policy {
	return retry.Policy{MaxAttempts: 3, Backoff: retry.Backoff{Base: time.Millisecond}}
}

// The error has the code of the last attempt and the record of the run.
func ExampleNewInterceptor() {
	interceptor, err := retryconnect.NewInterceptor(shortly(), retryconnect.Options{})
	if err != nil {
		fmt.Println(err)
		return
	}
	err = call(interceptor, connect.NewError(connect.CodeUnavailable, errors.New("busy")))
	var run *retry.Error
	fmt.Println(connect.CodeOf(err), errors.Is(err, retry.AttemptsExhausted))
	if errors.As(err, &run) {
		for _, a := range run.History {
			fmt.Println(a.Number, a.Err, a.Delay)
		}
	}
	// An answer is returned unchanged.
	fmt.Println(call(interceptor, connect.NewError(connect.CodeNotFound, errors.New("no such user"))))
	// Output:
	// unavailable true
	// 1 unavailable: busy 1ms
	// 2 unavailable: busy 2ms
	// 3 unavailable: busy 0s
	// not_found: no such user
}

// A code that the service wants to be retried.
func ExampleOptions() {
	p := shortly()
	p.Observe = func(_ context.Context, e retry.Event) { fmt.Println(e.Decision) }
	interceptor, err := retryconnect.NewInterceptor(p, retryconnect.Options{
		RetryCodes: []connect.Code{connect.CodeAborted},
	})
	if err != nil {
		fmt.Println(err)
		return
	}
	_ = call(interceptor, connect.NewError(connect.CodeAborted, nil))
	// Output:
	// waiting_retry 1ms
	// waiting_retry 2ms
	// dead_letter (attempts_exhausted)
	// dead_letter (attempts_exhausted)
}

func ExampleOptions_refused() {
	fmt.Println(retryconnect.Options{RetryCodes: []connect.Code{connect.CodeFailedPrecondition}}.Validate())
	// Output: retryrpc: Options.RetryCodes[0] failed_precondition must not be repeated until the state has been fixed
}

func ExampleOnCode() {
	p := shortly()
	p.Classify = retryconnect.OnCode(retry.Terminal, connect.CodeUnavailable)
	interceptor, err := retryconnect.NewInterceptor(p, retryconnect.Options{})
	if err != nil {
		fmt.Println(err)
		return
	}
	err = call(interceptor, connect.NewError(connect.CodeUnavailable, errors.New("busy")))
	fmt.Println(err, errors.Is(err, retry.TerminalError))
	// Output: unavailable: busy true
}

func ExampleClassify() {
	fmt.Println(retryconnect.Classify(connect.NewError(connect.CodeUnavailable, nil)))
	fmt.Println(retryconnect.Classify(connect.NewError(connect.CodeInternal, nil)))
	fmt.Println(retryconnect.Classify(errors.New("no error of connect")))
	// Output:
	// retryable
	// terminal
	// unknown
}

func Example_attemptError() {
	interceptor, err := retryconnect.NewInterceptor(shortly(), retryconnect.Options{})
	if err != nil {
		fmt.Println(err)
		return
	}
	err = call(interceptor, connect.NewError(connect.CodeUnavailable, errors.New("busy")))
	var failed *retryrpc.AttemptError
	if errors.As(err, &failed) {
		fmt.Println(failed.Method, failed.Code, failed.Origin, failed.Idempotent)
	}
	// Output: /test.Service/Unary UNAVAILABLE remote false
}
