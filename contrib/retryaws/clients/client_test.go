package clients_test

import (
	"context"
	"net/http"
	"testing"
	"testing/synctest"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/s3"
	"github.com/aws/smithy-go/middleware"

	"github.com/retrygo/retry"
	"github.com/retrygo/retry/contrib/retryaws"
	"github.com/retrygo/retry/retrytest"
)

// doubling waits 100ms, 200ms, 400ms.
var doubling = retry.Policy{MaxAttempts: 4, Backoff: retry.Backoff{Base: 100 * time.Millisecond}}

var (
	slowDown = retrytest.Answer{Status: 503, Body: apiError("SlowDown")}
	ok       = retrytest.Answer{} // 200
)

func apiError(code string) string {
	return "<Error><Code>" + code + "</Code><Message>m</Message></Error>"
}

// config returns a configuration whose requests all reach the server.
func config(server http.RoundTripper, options ...func(*middleware.Stack) error) aws.Config {
	return aws.Config{
		Region:       "eu-central-1",
		BaseEndpoint: aws.String("http://s3.test"),
		HTTPClient:   &http.Client{Transport: server},
		APIOptions:   options,
		Credentials: aws.CredentialsProviderFunc(func(context.Context) (aws.Credentials, error) {
			return aws.Credentials{AccessKeyID: "key", SecretAccessKey: "secret"}, nil
		}),
	}
}

// option is the Middleware of a policy that validates.
func option(p retry.Policy) func(*middleware.Stack) error {
	option, err := retryaws.Middleware(p)
	if err != nil {
		panic(err)
	}
	return option
}

func clientOf(cfg aws.Config) *s3.Client {
	return s3.NewFromConfig(cfg, func(o *s3.Options) { o.UsePathStyle = true })
}

// get reads an object to its end.
func get(ctx context.Context, client *s3.Client, options ...func(*s3.Options)) (string, error) {
	out, err := client.GetObject(ctx, &s3.GetObjectInput{Bucket: aws.String("b"), Key: aws.String("k")}, options...)
	if err != nil {
		return "", err
	}
	return read(out.Body)
}

// fetched is the result of a client that gets an object.
type fetched struct {
	*retrytest.Server
	text string
	err  error
	took time.Duration
}

// fetch gets an object, under the policy, from a server with the answers.
func fetch(ctx context.Context, t *testing.T, p retry.Policy, answers ...retrytest.Answer) fetched {
	server := retrytest.NewPipeServer(t, answers)
	began := time.Now()
	text, err := get(ctx, clientOf(config(server, option(p))))
	return fetched{server, text, err, time.Since(began)}
}

// bothModes runs test in virtual time with either setting of the switch that changes the SDK's own retries.
func bothModes(t *testing.T, test func(t *testing.T)) {
	for _, mode := range []string{"false", "true"} {
		t.Run("AWS_NEW_RETRIES_2026="+mode, func(t *testing.T) {
			t.Setenv("AWS_NEW_RETRIES_2026", mode)
			synctest.Test(t, test)
		})
	}
}

// inBubble runs f as a subtest in virtual time.
func inBubble(t *testing.T, name string, f func(*testing.T)) {
	t.Run(name, func(t *testing.T) { synctest.Test(t, f) })
}
