package retryaws_test

import (
	"context"
	"errors"
	"net/http"
	"testing"
	"testing/synctest"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	awsretry "github.com/aws/aws-sdk-go-v2/aws/retry"
	"github.com/aws/aws-sdk-go-v2/service/s3"
	"github.com/aws/smithy-go"
	"github.com/stretchr/testify/require"

	"github.com/retrygo/retry"
	"github.com/retrygo/retry/contrib/retryaws"
	"github.com/retrygo/retry/retrytest"
)

// withRetryer returns a client with the lossy form of p.
func withRetryer(t *testing.T, server http.RoundTripper, p retry.Policy) (*s3.Client, []string) {
	r, lost, err := retryaws.Retryer(p)
	require.NoError(t, err)
	cfg := config(server)
	cfg.Retryer = func() aws.Retryer { return r }
	return clientOf(cfg), lost
}

// Each row has a field that the interface cannot express, the line for it, and a script that shows the difference: the
// waits are not those of retry.Do.
func TestWhatARetryerLoses(t *testing.T) {
	ms := time.Millisecond
	for name, row := range map[string]struct {
		change func(*retry.Policy)
		lost   string
		script []retrytest.Answer
		waits  []time.Duration
	}{
		"Name": {
			change: func(p *retry.Policy) { p.Name = "s3" },
			lost:   `Policy.Name "s3": an aws.Retryer has no place for it`,
		},
		"DecorrelatedJitter": {
			change: func(p *retry.Policy) {
				p.Jitter, p.Rand = retry.DecorrelatedJitter, func() float64 { return 0.5 }
			},
			lost:  "Policy.Jitter decorrelated: each wait is drawn as the first one is",
			waits: []time.Duration{200 * ms, 200 * ms}, // and not 200ms, 350ms
		},
		"AttemptTimeout": {
			change: func(p *retry.Policy) { p.AttemptTimeout = time.Second },
			lost:   "Policy.AttemptTimeout 1s: an attempt lasts until the deadline of the caller or of the HTTP client",
			script: []retrytest.Answer{{Status: 503, Takes: time.Hour}, {}},
			waits:  []time.Duration{time.Hour + 100*ms},
		},
		"TTL": {
			change: func(p *retry.Policy) { p.TTL = 150 * ms },
			lost:   "Policy.TTL 150ms: an attempt starts at any time",
		},
		"ResetAfter": {
			change: func(p *retry.Policy) { p.ResetAfter = time.Second },
			lost:   "Policy.ResetAfter 1s: a long attempt counts like any other",
			script: []retrytest.Answer{slowDown, {Status: 503, Takes: time.Second}, {}},
			waits:  []time.Duration{100 * ms, time.Second + 200*ms},
		},
		"Disabled": {
			change: func(p *retry.Policy) { p.Disabled = true },
			lost:   "Policy.Disabled true: MaxAttempts is 1, and a failure ends like one whose attempts are used up",
			script: []retrytest.Answer{slowDown},
		},
		"Budget": {
			change: func(p *retry.Policy) { p.Budget = retry.NewBudget(retry.BudgetConfig{Initial: 10}) },
			lost:   "Policy.Budget is set: it is not paid back if the retry does not come",
		},
		"Pay": {
			change: func(p *retry.Policy) {
				p.Pay = func(_ context.Context, d retry.Decision) bool { return d.Delay == 0 }
			},
			lost: "Policy.Pay is set: its Decision has no Delay",
		},
		"Observe": {
			change: func(p *retry.Policy) { p.Observe = func(context.Context, retry.Event) { panic("called") } },
			lost:   "Policy.Observe is set: it is not called",
		},
	} {
		t.Run(name, func(t *testing.T) {
			bothModes(t, func(t *testing.T) {
				synctest.Test(t, func(t *testing.T) {
					script, want := row.script, row.waits
					if script == nil {
						script = []retrytest.Answer{slowDown, slowDown, {}}
					}
					if want == nil && len(script) == 3 {
						want = []time.Duration{100 * ms, 200 * ms}
					}
					server := retrytest.NewPipeServer(t, script)
					p := doubling
					row.change(&p)
					client, lost := withRetryer(t, server, p)
					require.Equal(t, []string{row.lost}, lost)
					_, err := get(t.Context(), client)
					require.Equal(t, len(script) == 1, err != nil)
					require.Equal(t, want, waits(server))
				})
			})
		})
	}
}

func TestARetryerRefusesAPolicyThatDoesNotValidate(t *testing.T) {
	_, _, err := retryaws.Retryer(retry.Policy{TTL: -1})
	require.ErrorContains(t, err, "retry: Policy.TTL -1ns is negative")
}

func TestARetryerObeysHintsInBothModes(t *testing.T) {
	bothModes(t, func(t *testing.T) {
		synctest.Test(t, func(t *testing.T) {
			minute := retrytest.Answer{Status: 503, Header: http.Header{"X-Amz-Retry-After": {"60000"}}}
			server := retrytest.NewPipeServer(t, []retrytest.Answer{minute, {Status: 503, RetryAfter: 3 * time.Second}, {}})
			client, _ := withRetryer(t, server, doubling)
			_, err := get(t.Context(), client)
			require.NoError(t, err)
			require.Equal(t, []time.Duration{time.Minute, 3 * time.Second}, waits(server))
		})
	})
}

func TestARefusalOfARetryerKeepsTheLastError(t *testing.T) {
	for name, row := range map[string]struct {
		change func(*retry.Policy)
		reason retry.Reason
	}{
		"budget":    {func(p *retry.Policy) { p.Budget = retry.NewBudget(retry.BudgetConfig{Initial: -1}) }, retry.BudgetExhausted},
		"long hint": {func(p *retry.Policy) { p.MaxHint = time.Second }, retry.HintTooLong},
	} {
		t.Run(name, func(t *testing.T) {
			bothModes(t, func(t *testing.T) {
				synctest.Test(t, func(t *testing.T) {
					server := retrytest.NewPipeServer(t, []retrytest.Answer{{Status: 503, RetryAfter: 2 * time.Second}})
					p := doubling
					row.change(&p)
					client, _ := withRetryer(t, server, p)
					_, err := get(t.Context(), client)
					require.ErrorIs(t, err, row.reason)
					var failed interface{ HTTPStatusCode() int }
					require.ErrorAs(t, err, &failed)
					require.Equal(t, 503, failed.HTTPStatusCode())
				})
			})
		})
	}
}

func TestASuccessFundsTheBudgetOfARetryerOnceInBothModes(t *testing.T) {
	for name, row := range map[string]struct {
		script []retrytest.Answer
		want   float64
	}{
		"at once":       {[]retrytest.Answer{{}}, 5.5},
		"after a retry": {[]retrytest.Answer{slowDown, {}}, 4.5},
		"an answer":     {[]retrytest.Answer{{Status: 404, Body: apiError("NoSuchKey")}}, 5.5},
		"a failure":     {[]retrytest.Answer{{Status: 501}}, 5},
	} {
		t.Run(name, func(t *testing.T) {
			bothModes(t, func(t *testing.T) {
				synctest.Test(t, func(t *testing.T) {
					p := doubling
					p.Budget = retry.NewBudget(retry.BudgetConfig{Ratio: 0.5, Initial: 5})
					client, _ := withRetryer(t, retrytest.NewPipeServer(t, row.script), p)
					_, _ = get(t.Context(), client)
					require.InDelta(t, row.want, p.Budget.Tokens(), 0)
				})
			})
		})
	}
}

func TestTheGateOfARetryer(t *testing.T) {
	for name, row := range map[string]struct {
		within, cancel, after time.Duration
		reason                retry.Reason
	}{
		"opens":                    {after: time.Minute + 100*time.Millisecond},
		"opens after the deadline": {within: time.Second, reason: retry.DeadlineTooNear},
		"is not waited for":        {cancel: time.Second, after: time.Second, reason: retry.CallerCanceled},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				var script []retrytest.Answer
				if row.reason == 0 {
					script = []retrytest.Answer{slowDown, {}}
				}
				p, began := doubling, time.Now()
				p.Gate = func(context.Context) time.Duration { return time.Until(began.Add(time.Minute)) }
				client, _ := withRetryer(t, retrytest.NewPipeServer(t, script), p)
				ctx, cancel := context.WithCancel(t.Context())
				if row.within > 0 {
					ctx, cancel = context.WithTimeout(ctx, row.within)
				}
				defer cancel()
				if row.cancel > 0 {
					time.AfterFunc(row.cancel, cancel)
				}
				_, err := get(ctx, client)
				require.Equal(t, row.after, time.Since(began))
				if row.reason == 0 {
					require.NoError(t, err)
				} else {
					require.ErrorIs(t, err, row.reason)
				}
			})
		})
	}
}

// Each row of the README's table that a test can show: the results of the SDK's standard mode and of Middleware for a
// script.
func TestTheStandardModeDiffers(t *testing.T) {
	minute := retrytest.Answer{Status: 503, RetryAfter: time.Minute}
	for name, row := range map[string]struct {
		script         []retrytest.Answer
		policy         retry.Policy
		within, cancel time.Duration
		check          func(t *testing.T, standard bool, server *retrytest.Server, elapsed time.Duration, err error)
	}{
		"Retry-After": {
			script: []retrytest.Answer{minute, {}}, policy: retry.Policy{MaxHint: time.Hour},
			check: func(t *testing.T, standard bool, _ *retrytest.Server, elapsed time.Duration, err error) {
				require.NoError(t, err)
				require.Equal(t, standard, elapsed < time.Minute)
			},
		},
		"a deadline within the wait": {
			script: []retrytest.Answer{slowDown}, within: 10 * time.Millisecond, policy: retry.Policy{Backoff: retry.Backoff{Base: time.Second}},
			check: func(t *testing.T, standard bool, _ *retrytest.Server, elapsed time.Duration, err error) {
				var api smithy.APIError
				require.Equal(t, !standard, errors.As(err, &api), "the last error")
				require.Equal(t, standard, elapsed > 0, "a useless wait")
			},
		},
		"a canceled wait": {
			script: []retrytest.Answer{slowDown}, cancel: time.Nanosecond, policy: retry.Policy{Backoff: retry.Backoff{Base: time.Second}},
			check: func(t *testing.T, standard bool, _ *retrytest.Server, _ time.Duration, err error) {
				var api smithy.APIError
				require.Equal(t, !standard, errors.As(err, &api), "the last error")
				var canceled *aws.RequestCanceledError
				require.Equal(t, standard, errors.As(err, &canceled))
			},
		},
		"attempts are used up": {
			script: []retrytest.Answer{{Status: 503, Times: 3}}, policy: retry.Policy{MaxAttempts: 3},
			check: func(t *testing.T, standard bool, _ *retrytest.Server, _ time.Duration, err error) {
				var used *awsretry.MaxAttemptsError
				require.Equal(t, standard, errors.As(err, &used))
				require.Equal(t, !standard, errors.Is(err, retry.AttemptsExhausted))
			},
		},
		"429": {
			script: []retrytest.Answer{{Status: 429}},
			check: func(t *testing.T, standard bool, server *retrytest.Server, _ time.Duration, err error) {
				require.Error(t, err)
				require.Len(t, server.Requests(), 1, "both")
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
					row.check(t, standard, server, time.Since(began), err)
				})
			}
		})
	}
}

func TestARetryerMakesOneAttemptUnderOneAttempt(t *testing.T) {
	r, _, err := retryaws.Retryer(retry.Policy{MaxAttempts: 3})
	require.NoError(t, err)
	_, err = r.GetRetryToken(retry.OneAttempt(t.Context()), errors.New("busy"))
	require.ErrorIs(t, err, retry.RetriesDisabled)
	_, err = r.GetRetryToken(t.Context(), errors.New("busy"))
	require.NotErrorIs(t, err, retry.RetriesDisabled)
}
