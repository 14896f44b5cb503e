package retryjob_test

import (
	"context"
	"fmt"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/retrygo/retry"
	"github.com/retrygo/retry/retryjob"
)

// BenchmarkCountsOfAView measures what jobsui asks a million jobs for one page, which it gives a second.
func BenchmarkCountsOfAView(b *testing.B) {
	e, err := retryjob.New(retryjob.Options{
		Policies: retryjob.FromMap(map[string]retry.Policy{"p": {}}), Handlers: map[string]retryjob.Handler{"kind": func(context.Context, retryjob.Job) error { return nil }},
	})
	require.NoError(b, err)
	defer e.Shutdown(b.Context()) //nolint:errcheck // its jobs wait
	due := time.Now().Add(24 * time.Hour)
	for i := range 1_000 {
		jobs := make([]retryjob.Job, 1_000)
		for k := range jobs {
			jobs[k] = retryjob.Job{ID: fmt.Sprint("job-", 1000*i+k), Kind: "kind", Policy: "p", Due: due}
		}
		_, err := e.EnqueueMany(b.Context(), jobs)
		require.NoError(b, err)
	}
	for b.Loop() {
		counts, err := e.Count(b.Context(), retryjob.Filter{})
		require.NoError(b, err)
		require.Equal(b, 1_000_000, counts[retryjob.Pending].Jobs)
		_, err = e.Groups(b.Context(), retryjob.Filter{Statuses: []retryjob.Status{retryjob.DeadLettered}})
		require.NoError(b, err)
	}
}
