package clients_test

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/s3"
	"github.com/aws/smithy-go/middleware"

	"github.com/retrygo/retry"
	"github.com/retrygo/retry/contrib/retryaws"
)

// throttle is an S3 that answers 503 SlowDown twice, and then with an object.
func throttle() *httptest.Server {
	requests := 0
	return httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if requests++; requests <= 2 {
			w.WriteHeader(http.StatusServiceUnavailable)
			fmt.Fprint(w, "<Error><Code>SlowDown</Code></Error>")
			return
		}
		fmt.Fprint(w, "the object, by ", r.Header.Get("Amz-Sdk-Request"))
	}))
}

func Example() {
	server := throttle()
	defer server.Close()
	// Elsewhere: cfg, err := config.LoadDefaultConfig(ctx)
	cfg := aws.Config{Region: "eu-central-1", BaseEndpoint: aws.String(server.URL), Credentials: aws.AnonymousCredentials{}}

	option, err := retryaws.Middleware(retry.Policy{
		MaxAttempts:    5,
		Backoff:        retry.Backoff{Base: 10 * time.Millisecond},
		AttemptTimeout: 10 * time.Second, // up to the headers
		TTL:            30 * time.Second,
		Observe: func(_ context.Context, e retry.Event) {
			if e.Outcome == nil {
				fmt.Println("attempt", e.Attempt.Number, "failed, wait", e.Attempt.Delay)
			}
		},
	})
	if err != nil {
		fmt.Println(err)
		return
	}
	cfg.APIOptions = append(cfg.APIOptions, option)
	client := s3.NewFromConfig(cfg, func(o *s3.Options) { o.UsePathStyle = true })
	out, err := client.GetObject(context.Background(), &s3.GetObjectInput{Bucket: aws.String("b"), Key: aws.String("k")})
	if err != nil {
		fmt.Println(err)
		return
	}
	defer out.Body.Close()
	text, err := io.ReadAll(out.Body)
	fmt.Println(string(text), err)
	// Output:
	// attempt 1 failed, wait 10ms
	// attempt 2 failed, wait 20ms
	// the object, by attempt=3; max=5 <nil>
}

func Example_middleware() {
	server := throttle()
	defer server.Close()
	all, err := retryaws.Middleware(retry.Inline())
	if err != nil {
		fmt.Println(err)
		return
	}
	once, err := retryaws.Middleware(retry.Policy{MaxAttempts: 1})
	if err != nil {
		fmt.Println(err)
		return
	}
	cfg := aws.Config{
		Region: "eu-central-1", BaseEndpoint: aws.String(server.URL), Credentials: aws.AnonymousCredentials{},
		APIOptions: []func(*middleware.Stack) error{all},
	}
	client := s3.NewFromConfig(cfg, func(o *s3.Options) { o.UsePathStyle = true })

	// One operation with its own policy.
	in := &s3.GetObjectInput{Bucket: aws.String("b"), Key: aws.String("k")}
	_, err = client.GetObject(context.Background(), in, s3.WithAPIOptions(once))

	var run *retry.Error
	fmt.Println(errors.As(err, &run), run.Attempts, run.Reason)
	// Output: true 1 attempts_exhausted
}
