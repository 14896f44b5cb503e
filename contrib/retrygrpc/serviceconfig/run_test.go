package serviceconfig_test

import (
	"context"
	"net"
	"strconv"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"
	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/credentials/insecure"
	"google.golang.org/grpc/health/grpc_health_v1"
	"google.golang.org/grpc/metadata"
	"google.golang.org/grpc/status"
	"google.golang.org/grpc/test/bufconn"

	"github.com/retrygo/retry"
	"github.com/retrygo/retry/contrib/retrygrpc/serviceconfig"
)

// script is a server whose calls end as scripted, and which records the time of each attempt.
type script struct {
	grpc_health_v1.UnimplementedHealthServer
	answer func(ctx context.Context, attempt int) error // attempt counts from 1, over all calls

	mu   sync.Mutex
	came []time.Time
}

func (s *script) Check(ctx context.Context, _ *grpc_health_v1.HealthCheckRequest) (*grpc_health_v1.HealthCheckResponse, error) {
	s.mu.Lock()
	s.came = append(s.came, time.Now())
	attempt := len(s.came)
	s.mu.Unlock()
	return &grpc_health_v1.HealthCheckResponse{}, s.answer(ctx, attempt)
}

// waits returns the time between the attempts, and forgets them.
func (s *script) waits() (waits []time.Duration) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for i := 1; i < len(s.came); i++ {
		waits = append(waits, s.came[i].Sub(s.came[i-1]))
	}
	s.came = nil
	return waits
}

func alwaysUnavailable(context.Context, int) error { return status.Error(codes.Unavailable, "down") }

// inBubble runs f with a client of grpc-go that has the service config and talks to the server, all in virtual time.
func inBubble(t *testing.T, config string, server *script, f func(ctx context.Context, check func() error)) {
	t.Helper()
	synctest.Test(t, func(t *testing.T) {
		listener := bufconn.Listen(1 << 16)
		s := grpc.NewServer()
		grpc_health_v1.RegisterHealthServer(s, server)
		go func() { _ = s.Serve(listener) }()
		defer s.Stop()
		client, err := grpc.NewClient("passthrough:///bufconn",
			grpc.WithContextDialer(func(context.Context, string) (net.Conn, error) { return listener.Dial() }),
			grpc.WithTransportCredentials(insecure.NewCredentials()),
			grpc.WithDefaultServiceConfig(config),
			grpc.WithDisableServiceConfig())
		require.NoError(t, err)
		defer func() { require.NoError(t, client.Close()) }()
		health := grpc_health_v1.NewHealthClient(client)
		f(t.Context(), func() error {
			_, err := health.Check(t.Context(), &grpc_health_v1.HealthCheckRequest{})
			return err
		})
	})
}

// configOf returns the service config, and requires that exactly the listed things are lost.
func configOf(t *testing.T, p retry.Policy, o serviceconfig.Options, lost ...string) string {
	t.Helper()
	config, got, err := serviceconfig.Of(p, o)
	require.NoError(t, err)
	require.Equal(t, lost, got)
	return config
}

// ours returns the waits of retry.Do for a server that never answers.
func ours(t *testing.T, p retry.Policy) (waits []time.Duration) {
	t.Helper()
	synctest.Test(t, func(t *testing.T) {
		var last time.Time
		require.Error(t, retry.Do(t.Context(), p, func(ctx context.Context) error {
			if retry.AttemptNumber(ctx) > 1 {
				waits = append(waits, time.Since(last))
			}
			last = time.Now()
			return alwaysUnavailable(ctx, 0)
		}))
	})
	return waits
}

func TestServiceConfigRuns(t *testing.T) {
	gRPCs := retry.Backoff{Base: 100 * time.Millisecond, Cap: time.Minute, Jitter: retry.RatioJitter}
	tripled := gRPCs
	tripled.Factor, tripled.Base = 3, 7*time.Millisecond
	flat := gRPCs
	flat.Mode = retry.Fixed
	listed := retry.Backoff{Delays: []time.Duration{time.Second, 4 * time.Second, 16 * time.Second}, Jitter: retry.RatioJitter}
	falling := retry.Backoff{Delays: []time.Duration{time.Hour, time.Minute, time.Second}, Jitter: retry.RatioJitter}
	for name, p := range map[string]retry.Policy{
		"two attempts":                        {MaxAttempts: 2, Backoff: gRPCs},
		"doubled":                             {MaxAttempts: 5, Backoff: gRPCs},
		"tripled":                             {MaxAttempts: 4, Backoff: tripled},
		"fixed":                               {MaxAttempts: 5, Backoff: flat},
		"a list that doubles":                 {Backoff: listed},
		"a list that falls by a factor of 60": {Backoff: falling},
	} {
		t.Run(name+" runs in grpc-go as in retry.Do", func(t *testing.T) {
			server := &script{answer: alwaysUnavailable}
			config := configOf(t, p, serviceconfig.Options{})
			least, most := p, p
			least.Rand, most.Rand = func() float64 { return 0 }, func() float64 { return 1 }
			lo, hi := ours(t, least), ours(t, most)
			inBubble(t, config, server, func(_ context.Context, check func() error) {
				for range 50 {
					require.Equal(t, codes.Unavailable, status.Code(check()))
					waits := server.waits()
					require.Len(t, waits, len(lo))
					for i, wait := range waits {
						require.GreaterOrEqual(t, wait, lo[i]-1) // grpc-go multiplies by 0.8 in floating point
						require.LessOrEqual(t, wait, hi[i]+1)
					}
				}
			})
		})
	}
}

func TestServiceConfigRunsAsLost(t *testing.T) {
	run := func(t *testing.T, p retry.Policy, o serviceconfig.Options, lost []string, windows [][2]time.Duration) {
		server := &script{answer: alwaysUnavailable}
		inBubble(t, configOf(t, p, o, lost...), server, func(_ context.Context, check func() error) {
			below, above := make([]bool, len(windows)), make([]bool, len(windows)) // whether a wait came close to each end
			for range 200 {
				require.Error(t, check())
				waits := server.waits()
				require.Len(t, waits, len(windows))
				for i, wait := range waits {
					lo, hi := windows[i][0], windows[i][1]
					require.GreaterOrEqual(t, wait, lo-lo/1000)
					require.LessOrEqual(t, wait, hi+hi/1000)
					below[i] = below[i] || wait < lo+(hi-lo)/4
					above[i] = above[i] || wait > hi-(hi-lo)/4
				}
			}
			require.NotContains(t, below, false)
			require.NotContains(t, above, false)
		})
	}
	const ms = time.Millisecond
	t.Run("eight attempts are five", func(t *testing.T) {
		run(t, retry.Policy{}, serviceconfig.Options{}, []string{
			"Policy.MaxAttempts 8: the client makes 5, which is its limit",
			"Policy.Jitter none: each wait is spread evenly by ±20 %",
		}, [][2]time.Duration{{4000 * ms, 6000 * ms}, {8000 * ms, 12000 * ms}, {16000 * ms, 24000 * ms}, {32000 * ms, 48000 * ms}})
	})
	t.Run("full jitter and a cap", func(t *testing.T) {
		p := retry.Policy{MaxAttempts: 4, Backoff: retry.Backoff{Base: 50 * ms, Cap: 100 * ms, Jitter: retry.FullJitter}}
		run(t, p, serviceconfig.Options{}, []string{
			"Policy.Cap 100ms: it bounds a wait before its jitter, and so a wait is up to 120ms",
			"Policy.Jitter full: each wait is spread evenly by ±20 %",
		}, [][2]time.Duration{{40 * ms, 60 * ms}, {80 * ms, 120 * ms}, {80 * ms, 120 * ms}})
	})
	t.Run("a list that is a series with a cap", func(t *testing.T) {
		run(t, retry.Aggressive(), serviceconfig.Options{}, []string{
			`Policy.Name "aggressive": a service config has no place for it`,
			"Policy.Jitter none: each wait is spread evenly by ±20 %",
		}, [][2]time.Duration{{8000 * ms, 12000 * ms}, {48000 * ms, 72000 * ms}, {4 * time.Minute, 6 * time.Minute}})
	})
	t.Run("a list that is not a series", func(t *testing.T) {
		p := retry.Cautious()
		p.Name = ""
		run(t, p, serviceconfig.Options{}, []string{
			"Policy.MaxAttempts 6: the client makes 5, which is its limit",
			"Policy.Delays of 5 entries: the waits before jitter are 1m 6m12.9s 38m37s 4h instead of 1m 10m 1h 4h",
			"Policy.Jitter none: each wait is spread evenly by ±20 %",
		}, [][2]time.Duration{
			{48 * time.Second, 72 * time.Second}, {298295 * ms, 447443 * ms}, {1853712 * ms, 2780568 * ms}, {192 * time.Minute, 288 * time.Minute},
		})
	})
	t.Run("linear", func(t *testing.T) {
		p := retry.Policy{MaxAttempts: 5, Backoff: retry.Backoff{Mode: retry.Linear, Base: time.Second, Jitter: retry.RatioJitter}}
		run(t, p, serviceconfig.Options{}, []string{
			"Policy.Mode linear: the waits before jitter are 1s 1.587s 2.52s 4s instead of 1s 2s 3s 4s",
		}, [][2]time.Duration{{800 * ms, 1200 * ms}, {1270 * ms, 1905 * ms}, {2016 * ms, 3024 * ms}, {3200 * ms, 4800 * ms}})
	})
	t.Run("disabled", func(t *testing.T) {
		run(t, retry.Policy{Disabled: true}, serviceconfig.Options{}, []string{
			"Policy.Disabled true: there is no retryPolicy, but a call that the server has not processed is still sent again",
		}, nil)
	})
	t.Run("one attempt", func(t *testing.T) {
		run(t, retry.Policy{MaxAttempts: 1}, serviceconfig.Options{}, []string{
			"Policy.MaxAttempts 1: there is no retryPolicy, as it needs 2, but a call that the server has not processed is still sent again",
		}, nil)
	})
}

func TestServiceConfigCodes(t *testing.T) {
	p := retry.Policy{MaxAttempts: 2, Backoff: retry.Backoff{Base: time.Millisecond, Jitter: retry.RatioJitter}}
	retried := func(t *testing.T, config string) (retried []codes.Code) {
		var code codes.Code
		server := &script{answer: func(context.Context, int) error { return status.Error(code, "scripted") }}
		inBubble(t, config, server, func(_ context.Context, check func() error) {
			for code = codes.Canceled; code <= codes.Unauthenticated; code++ {
				require.Equal(t, code, status.Code(check()))
				if len(server.waits()) == 1 {
					retried = append(retried, code)
				}
			}
		})
		return retried
	}
	t.Run("UNAVAILABLE alone by itself", func(t *testing.T) {
		require.Equal(t, []codes.Code{codes.Unavailable}, retried(t, configOf(t, p, serviceconfig.Options{})))
	})
	t.Run("each that is chosen, whatever its spelling", func(t *testing.T) {
		var all []codes.Code
		for code := codes.Canceled; code <= codes.Unauthenticated; code++ {
			all = append(all, code)
		}
		require.Equal(t, all, retried(t, configOf(t, p, serviceconfig.Options{Codes: append(all, all...)})))
	})
	t.Run("those that the classifier retries", func(t *testing.T) {
		p.Classify = func(err error) retry.Class {
			switch status.Code(err) {
			case codes.Aborted:
				return retry.Retryable
			case codes.Unavailable:
				return retry.Terminal
			}
			return retry.Unknown
		}
		config := configOf(t, p, serviceconfig.Options{}, "Policy.Classify is set: gRPC judges by the code alone, and retries ABORTED")
		require.Equal(t, []codes.Code{codes.Aborted}, retried(t, config))
	})
	t.Run("none, and so no policy", func(t *testing.T) {
		p.Classify = retry.Otherwise(retry.Terminal)
		config := configOf(t, p, serviceconfig.Options{},
			"Policy.MaxAttempts 2: there is no retryPolicy, as no code is retried",
			"Policy.Classify is set: gRPC judges by the code alone, and retries no code")
		require.Empty(t, retried(t, config))
	})
}

func TestServiceConfigMethods(t *testing.T) {
	p := retry.Policy{MaxAttempts: 2, Backoff: retry.Backoff{Base: time.Millisecond, Jitter: retry.RatioJitter}}
	for _, row := range []struct {
		methods []string
		retries int
	}{
		{nil, 1},
		{[]string{"/grpc.health.v1.Health/"}, 1},
		{[]string{grpc_health_v1.Health_Check_FullMethodName}, 1},
		{[]string{grpc_health_v1.Health_Watch_FullMethodName, "/other.Service/"}, 0},
	} {
		server := &script{answer: alwaysUnavailable}
		inBubble(t, configOf(t, p, serviceconfig.Options{Methods: row.methods}), server, func(_ context.Context, check func() error) {
			require.Error(t, check())
			require.Len(t, server.waits(), row.retries, "%q", row.methods)
		})
	}
}

func TestServiceConfigTimeout(t *testing.T) {
	p := retry.Policy{MaxAttempts: 5, Backoff: retry.Backoff{Mode: retry.Fixed, Base: time.Second, Jitter: retry.RatioJitter}}
	server := &script{answer: alwaysUnavailable}
	inBubble(t, configOf(t, p, serviceconfig.Options{Timeout: 1500 * time.Millisecond}), server, func(_ context.Context, check func() error) {
		start := time.Now()
		require.Equal(t, codes.DeadlineExceeded, status.Code(check()))
		require.Equal(t, 1500*time.Millisecond, time.Since(start))
		require.Len(t, server.waits(), 1)
	})
}

func TestServiceConfigPushback(t *testing.T) {
	p := retry.Policy{MaxAttempts: 4, MaxHint: time.Minute, Backoff: retry.Backoff{Base: time.Second, Factor: 10, Jitter: retry.RatioJitter}}
	const pushed = 2 * time.Hour
	server := &script{answer: func(ctx context.Context, attempt int) error {
		if attempt == 2 {
			_ = grpc.SetTrailer(ctx, metadata.Pairs("grpc-retry-pushback-ms", strconv.FormatInt(pushed.Milliseconds(), 10)))
		}
		return alwaysUnavailable(ctx, attempt)
	}}
	config := configOf(t, p, serviceconfig.Options{}, "Policy.MaxHint 1m: a server's pushback is obeyed, however long")
	inBubble(t, config, server, func(_ context.Context, check func() error) {
		require.Error(t, check())
		waits := server.waits()
		require.Len(t, waits, 3)
		require.Equal(t, pushed, waits[1])
		require.LessOrEqual(t, waits[2], 1200*time.Millisecond) // the backoff restarts
	})
}

func TestServiceConfigThrottling(t *testing.T) {
	budget := retry.BudgetConfig{Burst: 3, Initial: 3, Ratio: 0.5}
	p := retry.Policy{MaxAttempts: 2, Backoff: retry.Backoff{Base: time.Millisecond, Jitter: retry.RatioJitter}}
	healthy := false
	server := &script{answer: func(ctx context.Context, attempt int) error {
		if healthy {
			return nil
		}
		return alwaysUnavailable(ctx, attempt)
	}}
	const successes = 11 // as the line says
	config := configOf(t, p, serviceconfig.Options{Budget: &budget},
		"BudgetConfig: the bucket is full at first (retries in a row: 3), and every failed attempt takes a token, not every retry; only successes fund it (for a retry from an empty bucket: 11)")
	inBubble(t, config, server, func(_ context.Context, check func() error) {
		failed := func() (retries int) {
			require.Error(t, check())
			return len(server.waits())
		}
		drain := func() {
			for range 20 {
				require.Error(t, check())
			}
			server.waits()
		}
		recover := func(n int) {
			healthy = true
			for range n {
				require.NoError(t, check())
			}
			healthy = false
			server.waits()
		}
		// 8 tokens, and more than 4 must be left: the calls fail with 2 attempts each.
		require.Equal(t, []int{1, 1, 0, 0}, []int{failed(), failed(), failed(), failed()})
		drain()
		recover(successes - 1)
		require.Equal(t, 0, failed())
		drain()
		recover(successes)
		require.Equal(t, 1, failed())
	})
	t.Run("a full bucket allows Burst retries in a row", func(t *testing.T) {
		p := p
		p.MaxAttempts = 5
		config, _, err := serviceconfig.Of(p, serviceconfig.Options{Budget: &budget})
		require.NoError(t, err)
		server := &script{answer: alwaysUnavailable}
		inBubble(t, config, server, func(_ context.Context, check func() error) {
			require.Error(t, check())
			require.Len(t, server.waits(), budget.Burst)
		})
	})
}
