package main

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
)

type text = wrapperspb.StringValue

// ping is a handler that is busy twice.
func ping() func(context.Context, *connect.Request[text]) (*connect.Response[text], error) {
	calls := 0
	return func(_ context.Context, req *connect.Request[text]) (*connect.Response[text], error) {
		if calls++; calls < 3 {
			return nil, connect.NewError(connect.CodeUnavailable, errors.New("busy"))
		}
		return connect.NewResponse(wrapperspb.String("pong")), nil
	}
}

func main() {
	const procedure = "/ping.v1.PingService/Ping"
	server := httptest.NewServer(connect.NewUnaryHandler(procedure, ping()))
	defer server.Close()

	policy := retry.Policy{
		MaxAttempts:    4,
		Backoff:        retry.Backoff{Base: 20 * time.Millisecond, Cap: time.Second},
		AttemptTimeout: 2 * time.Second,
		Observe:        func(_ context.Context, e retry.Event) { fmt.Println(e.Decision) },
	}
	fmt.Println(policy)
	interceptor, err := retryconnect.NewInterceptor(policy, retryconnect.Options{})
	if err != nil {
		panic(err)
	}
	client := connect.NewClient[text, text](http.DefaultClient, server.URL+procedure,
		connect.WithInterceptors(interceptor)) // generated constructors take the same option
	answer, err := client.CallUnary(context.Background(), connect.NewRequest(wrapperspb.String("ping")))
	if err != nil {
		panic(err)
	}
	fmt.Println(answer.Msg.GetValue())
}
