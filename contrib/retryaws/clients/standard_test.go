package clients_test

import (
	"context"
	"errors"
	"net/http"
	"testing"
	"testing/synctest"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	awsretry "github.com/aws/aws-sdk-go-v2/aws/retry"
	"github.com/aws/smithy-go"
	smithyhttp "github.com/aws/smithy-go/transport/http"
	"github.com/stretchr/testify/require"

	"github.com/retrygo/retry"
	"github.com/retrygo/retry/retrytest"
)

// Each row of the README's table that a test can show: the results of the SDK's standard mode and of Middleware for a
// script.
func TestTheStandardModeDiffers(t *testing.T) {
	minute := retrytest.Answer{Status: 503, RetryAfter: time.Minute}
	for name, row := range map[string]struct {
		script         []retrytest.Answer
		policy         retry.Policy
		within, cancel time.Duration
		check          func(t *testing.T, standard bool, elapsed time.Duration, err error)
	}{
		"Retry-After": {
			script: []retrytest.Answer{minute, {}}, policy: retry.Policy{MaxHint: time.Hour},
			check: func(t *testing.T, standard bool, elapsed time.Duration, err error) {
				require.NoError(t, err)
				require.Equal(t, standard, elapsed < time.Minute)
			},
		},
		"a deadline within the wait": {
			script: []retrytest.Answer{slowDown}, within: 10 * time.Millisecond, policy: retry.Policy{Backoff: retry.Backoff{Base: time.Second}},
			check: func(t *testing.T, standard bool, elapsed time.Duration, err error) {
				var api smithy.APIError
				require.Equal(t, !standard, errors.As(err, &api), "the last error")
				require.Equal(t, standard, elapsed > 0, "a useless wait")
			},
		},
		"a canceled wait": {
			script: []retrytest.Answer{slowDown}, cancel: time.Nanosecond, policy: retry.Policy{Backoff: retry.Backoff{Base: time.Second}},
			check: func(t *testing.T, standard bool, _ time.Duration, err error) {
				var api smithy.APIError
				require.Equal(t, !standard, errors.As(err, &api), "the last error")
				var canceled *aws.RequestCanceledError
				require.Equal(t, standard, errors.As(err, &canceled))
			},
		},
		"attempts are used up": {
			script: []retrytest.Answer{{Status: 503, Times: 3}}, policy: retry.Policy{MaxAttempts: 3},
			check: func(t *testing.T, standard bool, _ time.Duration, err error) {
				var used *awsretry.MaxAttemptsError
				require.Equal(t, standard, errors.As(err, &used))
				require.Equal(t, !standard, errors.Is(err, retry.AttemptsExhausted))
			},
		},
	} {
		t.Run(name, func(t *testing.T) {
			for _, standard := range []bool{true, false} {
				synctest.Test(t, func(t *testing.T) {
					server := retrytest.NewPipeServer(t, row.script)
					cfg := config(server)
					if standard {
						// A wait of a nanosecond or more, whatever is drawn.
						cfg.Retryer = func() aws.Retryer {
							return awsretry.NewStandard(func(o *awsretry.StandardOptions) {
								o.Backoff = awsretry.BackoffDelayerFunc(func(int, error) (time.Duration, error) { return time.Second, nil })
							})
						}
					} else {
						cfg.APIOptions = append(cfg.APIOptions, option(row.policy))
					}
					ctx, cancel := context.WithCancel(t.Context())
					if row.within > 0 {
						ctx, cancel = context.WithTimeout(ctx, row.within)
					}
					defer cancel()
					if row.cancel > 0 {
						time.AfterFunc(row.cancel, cancel)
					}
					began := time.Now()
					_, err := get(ctx, clientOf(cfg))
					row.check(t, standard, time.Since(began), err)
				})
			}
		})
	}
}

// costs is a bucket of the SDK that notes what each retry takes.
type costs []uint

func (c *costs) GetToken(_ context.Context, cost uint) (func() error, error) {
	*c = append(*c, cost)
	return func() error { return nil }, nil
}

func (c *costs) AddTokens(uint) error { return nil }

// answered is an error of the SDK for a response of the given status.
func answered(status int) error {
	return &smithyhttp.ResponseError{Response: &smithyhttp.Response{Response: &http.Response{StatusCode: status}}, Err: &smithy.GenericAPIError{}}
}

// newMode reports whether the SDK is v1.48 or later, whose list has 429 and whose retry behavior 2.1 is the default.
func newMode() bool {
	return awsretry.IsErrorRetryables(awsretry.DefaultRetryables).IsErrorRetryable(answered(429)) == aws.TrueTernary
}

func TestWhatARetryTakesFromTheBucketOfTheStandardMode(t *testing.T) {
	failed := answered(503)
	costsOf := map[string]costs{"false": {5, 10, 5}, "true": {14, 14, 5}} // by AWS_NEW_RETRIES_2026
	if newMode() {
		costsOf["false"] = costsOf["true"]
	}
	for mode, want := range costsOf {
		t.Setenv("AWS_NEW_RETRIES_2026", mode)
		var taken costs
		standard := awsretry.NewStandard(func(o *awsretry.StandardOptions) { o.RateLimiter = &taken })
		for _, err := range []error{failed, context.DeadlineExceeded, &smithy.GenericAPIError{Code: "SlowDown"}} {
			_, refused := standard.GetRetryToken(t.Context(), err)
			require.NoError(t, refused)
		}
		require.Equal(t, want, taken, "after a 503, a timeout and a throttling; 2026: %s", mode)
	}
	require.EqualValues(t, 500, awsretry.DefaultRetryRateTokens)
}
