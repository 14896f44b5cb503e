package retrygax_test

import (
	"context"
	"fmt"
	"net/http"
	"net/http/httptest"
	"time"

	"github.com/googleapis/gax-go/v2"
	"google.golang.org/api/googleapi"

	"github.com/retrygo/retry"
	"github.com/retrygo/retry/contrib/retrygax"
)

// getSecret is a method of a generated client: it calls an API, which answers 503 twice, through gax.
func getSecret(ctx context.Context, options ...gax.CallOption) error {
	calls := 0
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		if calls++; calls <= 2 {
			w.WriteHeader(http.StatusServiceUnavailable)
		}
	}))
	defer server.Close()
	return gax.Invoke(ctx, func(context.Context, gax.CallSettings) error {
		resp, err := http.Get(server.URL)
		if err != nil {
			return err
		}
		defer resp.Body.Close()
		err = googleapi.CheckResponse(resp)
		fmt.Println("call", calls, resp.Status)
		return err
	}, options...)
}

func Example() {
	option, lost, err := retrygax.Option(retry.Policy{
		MaxAttempts: 5,
		TTL:         30 * time.Second,
		Backoff:     retry.Backoff{Base: 10 * time.Millisecond, Jitter: retry.FullJitter},
		Gate:        func(context.Context) time.Duration { return 0 },
	})
	if err != nil {
		fmt.Println(err)
		return
	}
	for _, line := range lost {
		fmt.Println(line)
	}
	// Of a client: client.CallOptions.AccessSecretVersion = append(client.CallOptions.AccessSecretVersion, option)
	fmt.Println(getSecret(context.Background(), option))
	// Output:
	// Policy.Gate is set: it is not called
	// Policy.Classify is not set: RESOURCE_EXHAUSTED without a hint ends the call, even if the client's own settings repeat it
	// call 1 503 Service Unavailable
	// call 2 503 Service Unavailable
	// call 3 200 OK
	// <nil>
}

func ExampleOption() {
	// NOT_FOUND is repeated too, by a client that reads what was written a moment ago.
	option, _, err := retrygax.Option(retry.Policy{Classify: func(err error) retry.Class {
		if failed, ok := err.(interface{ HTTPCode() int }); ok && failed.HTTPCode() == http.StatusNotFound {
			return retry.Retryable
		}
		return retry.Unknown
	}})
	fmt.Println(option != nil, err)
	// Output: true <nil>
}
