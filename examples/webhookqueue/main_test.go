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
  retry_policy.max_attempts "many" is not a whole number of 1 or more, nor "unlimited"
  retry_policy.base "10" has no unit (write it as a string such as "10s")
  retry_policy.jiter  is not a known key (did you mean "jitter"?)
  policy "twice" is not the name of a policy
Four events are enqueued, the last one for two attempts, and a worker starts.
  orders  succeeded: 1 succeeded
  flaky   succeeded: 1 status_503, 2 status_503, 3 succeeded
  gone    dead_letter (terminal_error): 1 status_410
  down    dead_letter (attempts_exhausted): 1 status_503, 2 status_503
The worker is killed while it waits for an answer. One more event is enqueued while no worker runs.
  slow    leased: 1 leased
  next    pending
A worker starts again. In time River notices which delivery was lost.
  next    succeeded: 1 succeeded
  slow    succeeded: 1 retryjob: the worker was lost, 2 succeeded
A receiver is mended, and its event replayed.
  down    succeeded: 1 succeeded
The requests for each event, and how often it was handled:
  down    3  1
  flaky   3  1
  gone    1  0
  next    1  1
  orders  1  1
  slow    2  1
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
	require.Equal(t, "gone", groups[0].Newest.JobID)
	require.Equal(t, "status_410", groups[0].Cause)
	require.ErrorContains(t, run(t.Context(), &b, path), "exists already")
}

func TestARequestIsJudgedAsAWhole(t *testing.T) {
	for _, row := range []struct {
		name, body string
		faults     []string
	}{
		{"nothing but a URL", `{"url": "https://a.example/hook"}`, nil},
		{"settings within the limits", `{"url": "https://a.example", "policy": "once", "retry_policy": {"max_attempts": 50}}`, nil},
		{"each fault under its own key", `{"url": "ftp://a.example", "id": "a\u0000b", "policy": "twice", "retry_policy": {"max_attempts": 51, "factor": 0.5}}`,
			[]string{"url", "id", "policy"}},
		{"settings beyond the limits", `{"url": "https://a.example", "retry_policy": {"max_attempts": 51, "factor": 101}}`, []string{"retry_policy.max_attempts", "retry_policy.factor"}},
		{"a policy that is not an object", `{"url": "https://a.example", "retry_policy": 7}`, []string{"retry_policy"}},
		{"an unknown key", `{"url": "https://a.example", "retries": 7}`, []string{"body"}},
		{"no JSON", `{"url": }`, []string{"body"}},
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
