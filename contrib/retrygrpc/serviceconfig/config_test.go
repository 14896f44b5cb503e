package serviceconfig_test

import (
	"context"
	"encoding/json"
	"math"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/credentials/insecure"

	"github.com/retrygo/retry"
	"github.com/retrygo/retry/contrib/retrygrpc/serviceconfig"
)

// expressible is a policy that a service config can express entirely.
func expressible() retry.Policy {
	return retry.Policy{MaxAttempts: 4, Backoff: retry.Backoff{Base: 50 * time.Millisecond, Cap: time.Second, Jitter: retry.RatioJitter}}
}

func TestServiceConfigIsWrittenAs(t *testing.T) {
	budget := retry.BudgetConfig{}
	for _, row := range []struct {
		name    string
		policy  retry.Policy
		options serviceconfig.Options
		want    string
	}{
		{"all methods", expressible(), serviceconfig.Options{},
			`{"methodConfig":[{"name":[{}],"retryPolicy":{"maxAttempts":4,"initialBackoff":"0.05s","maxBackoff":"1s","backoffMultiplier":2,"retryableStatusCodes":["UNAVAILABLE"]}}]}`},
		{"some methods, a timeout, codes and throttling", expressible(), serviceconfig.Options{
			Methods: []string{"/a.B/", "/a.C/D"}, Timeout: 1500 * time.Millisecond,
			Codes: []codes.Code{codes.Unavailable, codes.Canceled, codes.OutOfRange}, Budget: &budget,
		},
			`{"methodConfig":[{"name":[{"service":"a.B"},{"service":"a.C","method":"D"}],"timeout":"1.5s","retryPolicy":{"maxAttempts":4,"initialBackoff":"0.05s","maxBackoff":"1s","backoffMultiplier":2,"retryableStatusCodes":["CANCELLED","OUT_OF_RANGE","UNAVAILABLE"]}}],"retryThrottling":{"maxTokens":22,"tokenRatio":0.1}}`},
		{"one attempt", retry.Policy{MaxAttempts: 1}, serviceconfig.Options{}, `{"methodConfig":[{"name":[{}]}]}`},
		{"no more attempts than the client makes", retry.Policy{}, serviceconfig.Options{},
			`{"methodConfig":[{"name":[{}],"retryPolicy":{"maxAttempts":5,"initialBackoff":"5s","maxBackoff":"3600s","backoffMultiplier":2,"retryableStatusCodes":["UNAVAILABLE"]}}]}`},
		{"a wait whose jitter would overflow in grpc-go", retry.Policy{MaxAttempts: 2, Backoff: retry.Backoff{Base: math.MaxInt64}}, serviceconfig.Options{},
			`{"methodConfig":[{"name":[{}],"retryPolicy":{"maxAttempts":2,"initialBackoff":"6307200000s","maxBackoff":"6307200000s","backoffMultiplier":2,"retryableStatusCodes":["UNAVAILABLE"]}}]}`},
		{"no wait at all", retry.Policy{Backoff: retry.Backoff{Delays: []time.Duration{0, 0}}}, serviceconfig.Options{},
			`{"methodConfig":[{"name":[{}],"retryPolicy":{"maxAttempts":3,"initialBackoff":"0.000000001s","maxBackoff":"0.000000001s","backoffMultiplier":1,"retryableStatusCodes":["UNAVAILABLE"]}}]}`},
	} {
		t.Run(row.name, func(t *testing.T) {
			config, _, err := serviceconfig.Of(row.policy, row.options)
			require.NoError(t, err)
			require.Equal(t, row.want, config)
		})
	}
}

func TestServiceConfigLoses(t *testing.T) {
	type policy = retry.Policy
	type options = serviceconfig.Options
	for _, row := range []struct {
		name string
		set  func(*policy, *options)
		want []string
	}{
		{"nothing", func(*policy, *options) {}, nil},
		{"the name", func(p *policy, _ *options) { p.Name = "orders" },
			[]string{`Policy.Name "orders": a service config has no place for it`}},
		{"attempts above the limit", func(p *policy, _ *options) { p.MaxAttempts = 6 },
			[]string{"Policy.MaxAttempts 6: the client makes 5, which is its limit"}},
		{"no attempts at the limit", func(p *policy, _ *options) { p.MaxAttempts = 5 }, nil},
		{"unlimited attempts", func(p *policy, _ *options) { p.MaxAttempts, p.Cap = retry.Unlimited, time.Hour },
			[]string{"Policy.MaxAttempts Unlimited: the client makes 5, which is its limit"}},
		{"the cap where the jitter passes it", func(p *policy, _ *options) { p.Cap = 200 * time.Millisecond },
			[]string{"Policy.Cap 200ms: it bounds a wait before its jitter, and so a wait is up to 240ms"}},
		{"no jitter", func(p *policy, _ *options) { p.Jitter = retry.NoJitter },
			[]string{"Policy.Jitter none: each wait is spread evenly by ±20 %"}},
		{"full jitter", func(p *policy, _ *options) { p.Jitter = retry.FullJitter },
			[]string{"Policy.Jitter full: each wait is spread evenly by ±20 %"}},
		{"equal jitter", func(p *policy, _ *options) { p.Jitter, p.MaxAttempts = retry.EqualJitter, 2 },
			[]string{"Policy.Jitter equal: each wait is spread evenly by ±20 %"}},
		{"decorrelated jitter", func(p *policy, _ *options) { p.Jitter = retry.DecorrelatedJitter },
			[]string{"Policy.Jitter decorrelated: each wait is spread evenly by ±20 %"}},
		{"another ratio", func(p *policy, _ *options) { p.JitterRatio, p.MaxAttempts = 0.5, 2 },
			[]string{"Policy.JitterRatio 0.5: each wait is spread evenly by ±20 %"}},
		{"not the same ratio", func(p *policy, _ *options) { p.JitterRatio = 0.2 }, nil},
		{"a fixed wait is a factor of 1", func(p *policy, _ *options) { p.Mode = retry.Fixed }, nil},
		{"linear growth", func(p *policy, _ *options) { p.Mode, p.MaxAttempts = retry.Linear, 5 },
			[]string{"Policy.Mode linear: the waits before jitter are 50ms 79.37ms 126ms 200ms instead of 50ms 100ms 150ms 200ms"}},
		{"a wait whose jitter would overflow in grpc-go", func(p *policy, _ *options) { p.Base, p.Cap, p.MaxAttempts = 2_400_000*time.Hour, 0, 2 },
			[]string{"Policy.Mode exponential: the waits before jitter are 1752000h instead of 2400000h"}},
		{"a list", func(p *policy, _ *options) {
			p.Backoff = retry.Backoff{Jitter: retry.RatioJitter, Delays: []time.Duration{time.Second, 0, time.Minute}}
		}, []string{"Policy.Delays of 3 entries: the waits before jitter are 1s 7.746s 1m instead of 1s 0s 1m"}},
		{"the timeout of an attempt", func(p *policy, _ *options) { p.AttemptTimeout = 2 * time.Second },
			[]string{"Policy.AttemptTimeout 2s: an attempt has no timeout of its own, it lasts until the deadline of the call"}},
		{"the TTL", func(p *policy, _ *options) { p.TTL = 10 * time.Second },
			[]string{"Policy.TTL 10s: an attempt starts at any time before the deadline of the call"}},
		{"a reset", func(p *policy, _ *options) { p.ResetAfter = time.Hour },
			[]string{"Policy.ResetAfter 1h: a long attempt counts like any other"}},
		{"own waits and an own currency", func(p *policy, _ *options) {
			p.Wait = func(int, error, time.Duration) time.Duration { return 0 }
			p.Pay = func(context.Context, retry.Decision) bool { return true }
		}, []string{"Policy.Wait is set: it is not asked", "Policy.Pay is set: it is not asked"}},
		{"the longest hint", func(p *policy, _ *options) { p.MaxHint = 90 * time.Second },
			[]string{"Policy.MaxHint 1m30s: a server's pushback is obeyed, however long"}},
		{"that it is disabled, and nothing of waits", func(p *policy, _ *options) { *p = policy{Disabled: true, TTL: time.Second} },
			[]string{"Policy.Disabled true: there is no retryPolicy, but a call that the server has not processed is still sent again"}},
		{"the classifier", func(p *policy, _ *options) { p.Classify = retry.RetryOn(context.Canceled) },
			[]string{"Policy.Classify is set: gRPC judges by the code alone, and retries UNAVAILABLE"}},
		{"the classifier beside codes", func(p *policy, o *options) {
			p.Classify, o.Codes = retry.Otherwise(retry.Terminal), []codes.Code{codes.Aborted}
		}, []string{"Policy.Classify is set: gRPC judges by the code alone, and retries ABORTED"}},
		{"the budget", func(p *policy, _ *options) { p.Budget = retry.NewBudget(retry.BudgetConfig{}) },
			[]string{"Policy.Budget is set: its figures cannot be read, and so retries are free without Options.Budget"}},
		{"what the budget shares, and its figures", func(p *policy, o *options) {
			o.Budget = &retry.BudgetConfig{Ratio: 0.01234, Burst: 500, Trickle: time.Minute}
			p.Budget = retry.NewBudget(*o.Budget)
		}, []string{
			"Policy.Budget is set: gRPC keeps a bucket of its own for each client, which nothing else shares",
			"BudgetConfig: the bucket is full at first (retries in a row: 499), and every failed attempt takes a token, not every retry; only successes fund it (for a retry from an empty bucket: 41751)",
		}},
		{"a budget that nothing funds", func(_ *policy, o *options) { o.Budget = &retry.BudgetConfig{Ratio: math.NaN(), Burst: 1, Initial: -1} }, []string{
			"BudgetConfig: the bucket is full at first (retries in a row: 1), and every failed attempt takes a token, not every retry; only successes fund it (for a retry from an empty bucket: 3001)",
		}},
		{"the gate, the observer and the numbers", func(p *policy, _ *options) {
			p.Gate = func(context.Context) time.Duration { return 0 }
			p.Observe = func(context.Context, retry.Event) {}
			p.Rand = func() float64 { return 0 }
		}, []string{"Policy.Gate is set: it is not asked", "Policy.Observe is set: it is not called", "Policy.Rand is set: gRPC draws its own numbers"}},
	} {
		t.Run(row.name, func(t *testing.T) {
			p, o := expressible(), serviceconfig.Options{}
			row.set(&p, &o)
			config, lost, err := serviceconfig.Of(p, o)
			require.NoError(t, err)
			require.Equal(t, row.want, lost)
			require.NoError(t, accepted(config))
		})
	}
}

func TestServiceConfigRefuses(t *testing.T) {
	_, _, err := serviceconfig.Of(retry.Policy{MaxAttempts: -2}, serviceconfig.Options{
		Methods: []string{"a.B/C", "/a.B", "//C", "/a.B/C/D", "", "/a.B/C", "/a.B/C", "/a.B/\xff"},
		Codes:   []codes.Code{codes.OK, codes.Unavailable, 17},
		Timeout: -time.Second,
	})
	require.EqualError(t, err, `retry: Policy.MaxAttempts -2 is below -1, which is Unlimited; serviceconfig: Options.Methods[0] "a.B/C" is not of the form /package.Service/Method or /package.Service/; Options.Methods[1] "/a.B" is not of the form /package.Service/Method or /package.Service/; Options.Methods[2] "//C" is not of the form /package.Service/Method or /package.Service/; Options.Methods[3] "/a.B/C/D" is not of the form /package.Service/Method or /package.Service/; Options.Methods[4] "" is not of the form /package.Service/Method or /package.Service/; Options.Methods[6] "/a.B/C" is named twice; Options.Methods[7] "/a.B/\xff" is not of the form /package.Service/Method or /package.Service/; Options.Codes[0] OK is not the code of an error; Options.Codes[2] Code(17) is not the code of an error; Options.Timeout -1s is negative`)
	var field *retry.FieldError
	require.ErrorAs(t, err, &field)
	require.ErrorAs(t, serviceconfig.Options{Timeout: -1}.Validate(), &field)
	require.Equal(t, "Options.Timeout", field.Field)
}

// accepted returns grpc-go's error for a service config, without a connection.
func accepted(config string) error {
	client, err := grpc.NewClient("passthrough:///nowhere", grpc.WithTransportCredentials(insecure.NewCredentials()), grpc.WithDefaultServiceConfig(config))
	if err != nil {
		return err
	}
	return client.Close()
}

func FuzzServiceConfig(f *testing.F) {
	f.Add(0, uint8(0), int64(0), 0.0, int64(0), int64(0), int64(0), uint8(0), uint8(0), 0.0, 0)
	f.Add(-1, uint8(1), int64(math.MaxInt64), math.MaxFloat64, int64(math.MaxInt64), int64(1), int64(1), uint8(3), uint8(14), math.Inf(1), 1<<40)
	f.Add(3, uint8(4), int64(0), 0.0, int64(5), int64(math.MaxInt64), int64(0), uint8(2), uint8(1), -1.0, -1)
	f.Add(9, uint8(2), int64(1), 1e-300, int64(0), int64(0), int64(0), uint8(1), uint8(16), 1e-9, 1)
	f.Fuzz(func(t *testing.T, attempts int, mode uint8, base int64, factor float64, limit, first, second int64, jitter, code uint8, ratio float64, burst int) {
		p := retry.Policy{MaxAttempts: attempts, Backoff: retry.Backoff{
			Mode: retry.Mode(mode % 5), Base: time.Duration(base), Factor: factor, Cap: time.Duration(limit), Jitter: retry.JitterMode(jitter % 5),
		}}
		if p.Mode == retry.List || p.Mode == 0 && first != 0 {
			p.Mode, p.Base, p.Factor = 0, 0, 0
			p.Delays = []time.Duration{time.Duration(first), time.Duration(second), time.Duration(base)}
		}
		o := serviceconfig.Options{
			Codes: []codes.Code{codes.Code(code)}, Budget: &retry.BudgetConfig{Ratio: ratio, Burst: burst},
		}
		config, lost, err := serviceconfig.Of(p, o)
		if err != nil {
			require.Empty(t, config)
			require.Empty(t, lost)
			return
		}
		require.True(t, json.Valid([]byte(config)))
		require.NoError(t, accepted(config), config)
		again, linesAgain, err := serviceconfig.Of(p, o)
		require.NoError(t, err)
		require.Equal(t, config, again)
		require.Equal(t, lost, linesAgain)
		for _, line := range lost {
			require.Regexp(t, `^(Policy\.[A-Za-z]+|BudgetConfig)( .*)?: \S.*\S$`, line)
		}
	})
}
