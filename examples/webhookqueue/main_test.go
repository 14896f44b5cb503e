package main

import (
	"bytes"
	"context"
	"fmt"
	"os"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/retrygo/retry"
	"github.com/retrygo/retry/contrib/retryriver"
	"github.com/retrygo/retry/retryjob"
)

func TestMain(m *testing.M) {
	if path := os.Getenv(workerVariable); path != "" {
		if err := work(context.Background(), path); err != nil {
			fmt.Fprintln(os.Stderr, err)
			os.Exit(1)
		}
		return
	}
	os.Exit(m.Run())
}

const want = `A request with settings that the service cannot bear is refused, with all that is wrong with it:
  422  retry_policy.max_attempts "many" is not a whole number of 1 or more, nor "unlimited"
  422  retry_policy.base "10" has no unit (write it as a string such as "10s")
  422  retry_policy.jiter  is not a known key (did you mean "jitter"?)
  422  ttl "90" has no unit (write it as a string such as "90s")
  422  policy "twice" is not the name of a policy
Four events are enqueued, the last one for two attempts within a minute, and a worker starts.
  evt_1  /orders  succeeded: 1 ok
  evt_2  /flaky   succeeded: 1 status_503, 2 status_503, 3 ok
  evt_3  /gone    dead_letter (terminal_error): 1 status_410
  evt_4  /down    dead_letter (attempts_exhausted): 1 status_503, 2 status_503
The worker is killed while it waits for /slow to answer. One more event is enqueued while no worker runs.
  evt_5  /slow    leased: 1 under way
  evt_6  /orders  pending
A worker starts again. In time River notices which delivery was lost.
  evt_6  /orders  succeeded: 1 ok
  evt_5  /slow    succeeded: 1 lost, 2 ok
The dead letters:
  evt_4  /down    dead_letter (attempts_exhausted): 1 status_503, 2 status_503
  evt_3  /gone    dead_letter (terminal_error): 1 status_410
/down is mended, and its event replayed.
  evt_4  /down    succeeded: 1 ok

EVENT  TO       STATUS       REASON          REPLAYS  ATTEMPTS  REQUESTS  HANDLED
evt_1  /orders  succeeded                    0        1         1         1
evt_2  /flaky   succeeded                    0        3         3         1
evt_3  /gone    dead_letter  terminal_error  0        1         1         0
evt_4  /down    succeeded                    1        1         3         1
evt_5  /slow    succeeded                    0        2         2         1
evt_6  /orders  succeeded                    0        1         1         1
`

func TestNoEventIsLostWithAWorker(t *testing.T) {
	if testing.Short() {
		t.Skip("River takes half a minute to notice that a worker is gone")
	}
	var b bytes.Buffer
	path := filepath.Join(t.TempDir(), "kept.db")
	err := run(t.Context(), &b, path)
	require.NoError(t, err, b.String())
	require.Equal(t, want, b.String())
	store, err := retryriver.OpenStore(t.Context(), path)
	require.NoError(t, err, "the database is left")
	defer store.Close()
	groups, err := store.Groups(t.Context(), retryjob.Filter{Reasons: []retry.Reason{retry.TerminalError}})
	require.NoError(t, err)
	require.Equal(t, "evt_3", groups[0].Newest.JobID)
	require.Equal(t, "status_410", groups[0].Code)
	require.ErrorContains(t, run(t.Context(), &b, path), "exists already")
}

func TestARequestIsJudgedAsAWhole(t *testing.T) {
	for _, row := range []struct {
		name, body string
		faults     []string
	}{
		{"nothing but a URL", `{"url": "https://a.example/hook"}`, nil},
		{"settings within the limits", `{"url": "https://a.example", "policy": "once", "retry_policy": {"max_attempts": 50}, "ttl": "1h"}`, nil},
		{"each fault under its own key", `{"url": "ftp://a.example", "id": "a\u0000b", "policy": "twice", "retry_policy": {"max_attempts": 51, "factor": 0.5}, "ttl": "1h"}`,
			[]string{"url", "id", "policy"}},
		{"settings beyond the limits", `{"url": "https://a.example", "retry_policy": {"max_attempts": 51, "factor": 101}}`, []string{"retry_policy.max_attempts", "retry_policy.factor"}},
		{"a policy that is not an object", `{"url": "https://a.example", "retry_policy": 7}`, []string{"retry_policy"}},
		{"an unknown key", `{"url": "https://a.example", "retries": 7}`, []string{""}},
	} {
		t.Run(row.name, func(t *testing.T) {
			job, faults := parse([]byte(row.body))
			var fields []string
			for _, f := range faults {
				fields = append(fields, f.Field)
			}
			require.Equal(t, row.faults, fields, faults)
			if row.faults == nil {
				require.NoError(t, job.Validate(policies))
				require.Equal(t, " a.example", job.BudgetKey)
			}
		})
	}
}
