package retrytest_test

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/retrygo/retry"
	"github.com/retrygo/retry/retryhttp"
	"github.com/retrygo/retry/retrysql"
	"github.com/retrygo/retry/retrytest"
)

func nothing(context.Context) error { return nil }

func TestChaos(t *testing.T) {
	errLate := errors.New("late")
	mix := []retrytest.Step{{Err: errDown}, {Err: errLate}}
	outcomes := func(c retrytest.Chaos) string {
		fn := c.Func(t, nothing, mix)
		var b strings.Builder
		for range 200 {
			err := fn(t.Context())
			b.WriteString(map[error]string{nil: ".", errDown: "d", errLate: "l"}[err])
		}
		return b.String()
	}
	t.Run("a seed replays its faults, on every platform", func(t *testing.T) {
		const want = "....ll.dll.............dld.l.l.l....d...d.l...l....dd...l..."
		got := outcomes(retrytest.Chaos{Seed: 1, Rate: 0.3})
		require.Equal(t, got, outcomes(retrytest.Chaos{Seed: 1, Rate: 0.3}))
		require.NotEqual(t, got, outcomes(retrytest.Chaos{Seed: 2, Rate: 0.3}))
		require.Equal(t, want, got[:60])
	})
	t.Run("a share of the calls fails, evenly by the mix", func(t *testing.T) {
		require.Equal(t, strings.Repeat(".", 200), outcomes(retrytest.Chaos{Seed: 1}))
		require.NotContains(t, outcomes(retrytest.Chaos{Seed: 1, Rate: 1}), ".")
		fn := retrytest.Chaos{Seed: 3, Rate: 0.25}.Func(t, nothing, mix)
		got := map[error]int{}
		for range 40_000 {
			got[fn(t.Context())]++
		}
		require.InDelta(t, 30_000, got[nil], 400)
		require.InDelta(t, 5_000, got[errDown], 300)
		require.InDelta(t, 5_000, got[errLate], 300)
	})
	t.Run("the seed is logged, a random one too", func(t *testing.T) {
		var r recorder
		retrytest.Chaos{Seed: 7, Rate: 0.5}.Func(&r, nothing, nil)
		require.Equal(t, []string{"log: retrytest: retrytest.Chaos{Seed:0x7, Rate:0.5}"}, r.messages)
		retrytest.Chaos{Rate: 0.5}.Func(&r, nothing, nil)
		retrytest.Chaos{Rate: 0.5}.Func(&r, nothing, nil)
		require.Regexp(t, `^log: retrytest: retrytest\.Chaos{Seed:0x[0-9a-f]+, Rate:0\.5}$`, r.messages[1])
		require.NotEqual(t, r.messages[1], r.messages[2])
	})
	t.Run("the default mix of a function", func(t *testing.T) {
		require.EqualError(t, retrytest.Chaos{Rate: 1}.Func(t, nothing, nil)(t.Context()), "retrytest: chaos")
	})
	bubble(t, "an HTTP client gets through", func(t *testing.T) {
		server := retrytest.NewPipeServer(t, []retrytest.Answer{{Body: "ok", Times: retrytest.Forever}})
		base := retrytest.Chaos{Seed: 1, Rate: 0.4}.RoundTripper(t, server, nil)
		policy := retry.Policy{MaxAttempts: 20, Backoff: retry.Backoff{Mode: retry.Fixed, Base: time.Second}}
		client := &http.Client{Transport: &retryhttp.Transport{Base: base, Policy: policy}}
		whole := 0
		for range 100 {
			resp, err := client.Get("http://api.example/")
			require.NoError(t, err)
			if resp.ContentLength == 2 { // otherwise it is cut off
				whole++
			}
			require.NoError(t, resp.Body.Close())
		}
		require.Len(t, server.Requests(), whole)
		require.Greater(t, whole, 80)
	})
	bubble(t, "a mix of one's own, and the rest reaches the base", func(t *testing.T) {
		server := retrytest.Statuses(t, 200, 201)
		rt := retrytest.Chaos{Seed: 5, Rate: 0.5}.RoundTripper(t, server, []retrytest.Answer{{Status: 503}})
		var got []int
		for len(got) == 0 || got[len(got)-1] != 201 {
			req, err := http.NewRequest("GET", "http://api.example/", nil)
			require.NoError(t, err)
			resp, err := rt.RoundTrip(req)
			require.NoError(t, err)
			require.NoError(t, resp.Body.Close())
			got = append(got, resp.StatusCode)
		}
		require.Equal(t, []int{503, 503, 200, 201}, got)
	})
	bubble(t, "a transaction commits once, or says that it may have", func(t *testing.T) {
		c := retrytest.Chaos{Seed: 1, Rate: 0.1}.Connector(t, nil, nil)
		db := c.OpenDB()
		policy := retry.Policy{MaxAttempts: 50, Backoff: retry.Backoff{Delays: []time.Duration{time.Second}}}
		done, doubt := 0, 0
		for i := range 300 {
			err := retrysql.Tx(t.Context(), db, policy, &retrysql.Options{Isolation: sql.LevelSerializable}, func(ctx context.Context, tx *retrysql.Txn) error {
				_, err := tx.ExecContext(ctx, fmt.Sprint("INSERT ", i))
				return err
			})
			switch {
			case err == nil:
				done++
			case errors.Is(err, retrysql.ErrCommitAmbiguous):
				doubt++
			default:
				require.NoError(t, err)
			}
		}
		once := map[string]bool{}
		for _, statement := range c.Committed() {
			require.False(t, once[statement], statement)
			once[statement] = true
		}
		require.GreaterOrEqual(t, len(once), done)
		require.LessOrEqual(t, len(once), done+doubt)
		require.Positive(t, doubt)
	})
	t.Run("a mix that does not match lets all pass", func(t *testing.T) {
		c := retrytest.Chaos{Rate: 1}.Connector(t, nil, []retrytest.SQLFault{{On: retrytest.Commit, Err: errDown}})
		_, err := c.OpenDB().Exec("INSERT")
		require.NoError(t, err)
	})
}

// The same script gives the same timeline, regardless of what else runs.
func TestDeterminism(t *testing.T) {
	var first string
	for range 30 {
		bubble(t, "run", func(t *testing.T) {
			server := retrytest.NewPipeServer(t, []retrytest.Answer{
				{Status: 503, Takes: time.Second}, {Fault: retrytest.ResetRead}, {Fault: retrytest.ResetUnread}, {Fault: retrytest.HangHeaders},
				{Fault: retrytest.Garbage}, {Status: 429, RetryAfter: 30 * time.Second}, {Status: 200, Body: "ok"},
			})
			chaos := retrytest.Chaos{Seed: 9, Rate: 0.5}.RoundTripper(t, server, nil)
			var runs retrytest.Timeline
			client := &http.Client{Transport: &retryhttp.Transport{Base: chaos, Policy: retry.Policy{
				MaxAttempts: 50, AttemptTimeout: 10 * time.Second, Observe: runs.Observe,
				Backoff: retry.Backoff{Mode: retry.Fixed, Base: time.Second},
			}}}
			for len(server.Requests()) < 7 {
				resp, err := client.Get("http://api.example/")
				require.NoError(t, err)
				require.NoError(t, resp.Body.Close())
			}
			if first == "" {
				first = runs.String()
			}
			require.Equal(t, first, runs.String())
		})
	}
}
