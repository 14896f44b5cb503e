package retryslog_test

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"log/slog"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/retrygo/retry"
	"github.com/retrygo/retry/retryslog"
)

// One observer, many goroutines, and a level that changes at the same time.
func TestConcurrentUse(t *testing.T) {
	var b bytes.Buffer
	var level slog.LevelVar
	level.Set(slog.LevelWarn)
	handler := slog.NewJSONHandler(&b, &slog.HandlerOptions{Level: slog.LevelDebug})
	p := retry.Policy{Name: "p", MaxAttempts: 3, Backoff: retry.Backoff{Mode: retry.List, Delays: []time.Duration{0}}}
	p.Observe = retryslog.Observe(slog.New(handler), retryslog.Options{Retry: &level, Group: "retry",
		Attrs: func(ctx context.Context, _ retry.Event) []slog.Attr {
			return []slog.Attr{slog.Any("worker", ctx.Value(traceKey{}))}
		}})
	const workers, runs = 8, 50
	var group sync.WaitGroup
	for w := range workers {
		group.Go(func() {
			for range runs {
				level.Set(slog.Level(w))
				_ = retry.Do(context.WithValue(t.Context(), traceKey{}, w), p, func(context.Context) error { return errDown })
			}
		})
	}
	group.Wait()
	ends := map[float64]int{}
	lines := strings.Split(strings.TrimSpace(b.String()), "\n")
	require.Len(t, lines, workers*runs*3, "two retries and one end for each run")
	for _, line := range lines {
		var r struct {
			Msg    string
			Worker float64
		}
		require.NoError(t, json.Unmarshal([]byte(line), &r))
		if r.Msg == "retry: gave up" {
			ends[r.Worker]++
		}
	}
	for w := range workers {
		require.Equal(t, runs, ends[float64(w)])
	}
}

var errDown = errors.New("503")

type traceKey struct{}
