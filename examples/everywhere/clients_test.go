package main

import (
	"context"
	"errors"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	azpolicy "github.com/Azure/azure-sdk-for-go/sdk/azcore/policy"
	azruntime "github.com/Azure/azure-sdk-for-go/sdk/azcore/runtime"
	"github.com/alicebob/miniredis/v2"
	"github.com/alicebob/miniredis/v2/server"
	"github.com/go-kratos/kratos/v2/middleware"
	kratos "github.com/go-kratos/kratos/v2/transport/http"
	"github.com/hibiken/asynq"
	"github.com/redis/rueidis"
	"github.com/stretchr/testify/require"

	"github.com/retrygo/retry"
	"github.com/retrygo/retry/retryhttp"
)

// The evidence for the rows of azcore, rueidis, kratos and asynq in docs/everywhere.md.

func TestAzcoreRepeatsAPostAndObeysRetryAfter(t *testing.T) {
	for name, row := range map[string]struct {
		options azpolicy.RetryOptions
		ours    bool // retryhttp below
		after   string
		sent    int
		waited  time.Duration // at least; its jitter is 0.8 to 1.3
	}{
		"by default":                   {sent: 4, waited: (1 + 3 + 7) * 640 * time.Millisecond},
		"minus one":                    {options: azpolicy.RetryOptions{MaxRetries: -1}, sent: 1},
		"minus one over retryhttp":     {options: azpolicy.RetryOptions{MaxRetries: -1}, ours: true, sent: 3, waited: 90 * time.Millisecond},
		"Retry-After":                  {options: azpolicy.RetryOptions{MaxRetries: 1}, after: "30", sent: 2, waited: 30 * time.Second},
		"Retry-After above the limit":  {after: "61", sent: 1},
		"the first wait is RetryDelay": {options: azpolicy.RetryOptions{MaxRetries: 1, RetryDelay: time.Second, MaxRetryDelay: time.Second}, sent: 2, waited: 800 * time.Millisecond},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				sent, method := 0, http.MethodPost
				var transport http.RoundTripper = transportFunc(func(r *http.Request) (*http.Response, error) {
					sent++
					return &http.Response{StatusCode: 503, Body: http.NoBody, Request: r, Header: http.Header{"Retry-After": {row.after}}}, nil
				})
				if row.ours {
					transport, method = &retryhttp.Transport{Base: transport, Policy: policy}, http.MethodGet // it repeats no POST
				}
				pipeline := azruntime.NewPipeline("test", "v1", azruntime.PipelineOptions{}, &azpolicy.ClientOptions{
					Transport: &http.Client{Transport: transport}, Retry: row.options})
				req, err := azruntime.NewRequest(t.Context(), method, "http://server.test/")
				require.NoError(t, err)
				began := time.Now()
				resp, err := pipeline.Do(req)
				require.NoError(t, err)
				require.Equal(t, 503, resp.StatusCode)
				require.Equal(t, row.sent, sent)
				require.GreaterOrEqual(t, time.Since(began), row.waited)
				require.LessOrEqual(t, time.Since(began), row.waited*13/8)
			})
		})
	}
}

type transportFunc func(*http.Request) (*http.Response, error)

func (f transportFunc) RoundTrip(r *http.Request) (*http.Response, error) { return f(r) }

func TestRueidisRepeatsReadsUntilTheHookEndsIt(t *testing.T) {
	redis := miniredis.RunT(t)
	redis.Server().SetPreHook(func(peer *server.Peer, command string, _ ...string) bool {
		data := command == "GET" || command == "SET"
		if data {
			peer.WriteError("LOADING Redis is loading the dataset in memory")
		}
		return data
	})
	asked := 0
	client, err := rueidis.NewClient(rueidis.ClientOption{
		InitAddress: []string{redis.Addr()}, DisableCache: true, ForceSingleClient: true,
		RetryDelay: func(attempt int, _ rueidis.Completed, _ error) time.Duration {
			asked++
			require.Equal(t, asked, attempt)
			if attempt == 50 {
				return -1
			}
			return 0
		},
	})
	require.NoError(t, err)
	defer client.Close()
	require.Error(t, client.Do(t.Context(), client.B().Set().Key("key").Value("value").Build()).Error())
	require.Zero(t, asked, "a write is not repeated")
	require.Error(t, client.Do(t.Context(), client.B().Get().Key("key").Build()).Error())
	require.Equal(t, 50, asked, "only the hook ends it")
}

func TestKratosMiddlewareRepeatsAPost(t *testing.T) {
	var bodies []string
	unavailable := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		body, _ := io.ReadAll(r.Body)
		bodies = append(bodies, string(body))
		w.WriteHeader(http.StatusServiceUnavailable)
	}))
	defer unavailable.Close()
	attempts := 0
	client, err := kratos.NewClient(t.Context(), kratos.WithEndpoint(unavailable.URL),
		kratos.WithMiddleware(func(handler middleware.Handler) middleware.Handler {
			p := retry.Policy{MaxAttempts: 3, Backoff: retry.Backoff{Base: 1}}
			return retry.Wrap(p, func(ctx context.Context, req any) (any, error) {
				attempts++
				return handler(ctx, req)
			})
		}))
	require.NoError(t, err)
	defer client.Close()
	require.Error(t, client.Invoke(t.Context(), http.MethodPost, "/orders", map[string]int{"id": 7}, nil))
	require.Equal(t, 3, attempts)
	require.Equal(t, []string{`{"id":7}`, `{"id":7}`, `{"id":7}`}, bodies)

	bodies = nil
	client, err = kratos.NewClient(t.Context(), kratos.WithEndpoint(unavailable.URL),
		kratos.WithTransport(&retryhttp.Transport{Policy: policy}))
	require.NoError(t, err)
	defer client.Close()
	require.Error(t, client.Invoke(t.Context(), http.MethodPost, "/orders", map[string]int{"id": 7}, nil))
	require.Len(t, bodies, 1)
}

func TestAsynqKeepsMarksAndHints(t *testing.T) {
	for name, row := range map[string]struct {
		err      error
		archived bool
		due      time.Duration
	}{
		"an error":  {err: errors.New("busy")},
		"a hint":    {err: retry.After(time.Hour, errors.New("busy")), due: time.Hour},
		"permanent": {err: retry.Permanent(errors.New("bad")), archived: true},
	} {
		t.Run(name, func(t *testing.T) {
			redis := miniredis.RunT(t)
			at := asynq.RedisClientOpt{Addr: redis.Addr()}
			handled := make(chan struct{}, 10)
			work := newQueue(at, policy.DrawDelay)
			require.NoError(t, work.Start(judged(func(context.Context, *asynq.Task) error {
				handled <- struct{}{}
				return row.err
			})))
			client := asynq.NewClient(at)
			defer client.Close()
			began := time.Now()
			_, err := client.EnqueueContext(t.Context(), asynq.NewTask("work", nil), asynq.MaxRetry(1))
			require.NoError(t, err)
			<-handled
			work.Shutdown() // waits for the handler's result to be stored
			inspector := asynq.NewInspector(at)
			defer inspector.Close()
			archived, err := inspector.ListArchivedTasks("default")
			require.NoError(t, err)
			if row.archived {
				require.Len(t, archived, 1)
				require.True(t, strings.HasPrefix(archived[0].LastErr, "bad ("), archived[0].LastErr)
				return
			}
			if row.due > 0 {
				waiting, err := inspector.ListRetryTasks("default")
				require.NoError(t, err)
				require.Len(t, waiting, 1)
				require.False(t, waiting[0].NextProcessAt.Before(began.Add(row.due).Truncate(time.Second)))
			}
		})
	}
}
