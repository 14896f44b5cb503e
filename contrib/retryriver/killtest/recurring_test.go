//go:build unix

package killtest_test

import (
	"context"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/retrygo/retry/retryjob"
)

// interval is the time from the end of an occurrence to the next one.
const interval = 500 * time.Millisecond

// comesBack returns the options with the recurring job of every worker.
func comesBack() *retryjob.Options {
	job := retryjob.Job{Kind: "succeeds", Policy: "succeeds", Payload: []byte("{}")}
	return &retryjob.Options{Recurring: []retryjob.Recurring{{Name: "beat", Job: job, Next: retryjob.AfterEnd(interval)}}}
}

// fewestBeats is how many occurrences a test must see at least.
const fewestBeats = 6

// awaitBeats waits until there are enough occurrences: a killed worker can hold one for as long as its lease.
func (s *scene) awaitBeats(t *testing.T) {
	ctx, cancel := context.WithTimeout(t.Context(), patience)
	defer cancel()
	for {
		_, beats := s.collect(t)
		if len(beats) >= fewestBeats {
			return
		}
		require.NoErrorf(t, ctx.Err(), "only %d occurrences", len(beats))
		pause(ctx, interval)
	}
}

// checkChain checks that each occurrence follows from the end of the one before it: none is missing or there twice, none
// began before the one before it had ended, and only the last one may wait.
func checkChain(t *testing.T, beats []retryjob.Info) {
	number := func(i *retryjob.Info) int {
		n, err := strconv.Atoi(strings.TrimPrefix(i.JobID, "recurring:beat:succeeds:"))
		require.NoError(t, err)
		return n
	}
	slices.SortFunc(beats, func(a, b retryjob.Info) int { return number(&a) - number(&b) })
	require.GreaterOrEqual(t, len(beats), fewestBeats)
	require.Equal(t, 1, number(&beats[0]))
	for n, next := range beats[1:] {
		last := &beats[n]
		require.Truef(t, last.Status.Final(), "%+v is not the last one", last.Record)
		require.Equalf(t, n+2, number(&next), "after %+v", last.Record)
		late := 2 * time.Millisecond
		if next.Enqueued.IsZero() { // it was due before a worker could enqueue it
			late = patience
		}
		require.WithinDuration(t, last.Ended.Add(interval), next.FirstDue, late)
		for _, a := range next.History {
			require.Falsef(t, !a.Start.IsZero() && a.Start.Before(last.Ended.Add(-time.Millisecond)), "%+v overlaps %+v", next.Record, last.Record)
		}
	}
}
