package scenario

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

func TestTimeToDismissEnds(t *testing.T) {
	for _, w := range waiters {
		t.Run(w.name, func(t *testing.T) {
			require.Positive(t, timeToDismiss(w, 100))
		})
	}
}

func TestCancelLatenciesAreOneForEachWaiter(t *testing.T) {
	for _, w := range waiters {
		t.Run(w.name, func(t *testing.T) {
			latencies := cancelLatencies(w, 100)
			require.Len(t, latencies, 100)
			for _, latency := range latencies {
				require.Positive(t, latency)
			}
		})
	}
}

func TestPercentileIsTheNearestRank(t *testing.T) {
	values := []time.Duration{40, 15, 50, 20, 35}
	for _, row := range []struct {
		p    int
		want time.Duration
	}{
		{1, 15}, {20, 15}, {21, 20}, {30, 20}, {40, 20}, {50, 35}, {99, 50}, {100, 50},
	} {
		require.Equal(t, row.want, percentile(values, row.p), "%d", row.p)
	}
	require.Equal(t, []time.Duration{40, 15, 50, 20, 35}, values)
	require.Equal(t, time.Duration(7), percentile([]time.Duration{7}, 50))
}
