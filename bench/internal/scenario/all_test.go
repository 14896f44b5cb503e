package scenario

import (
	"context"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/retrygo/retry/bench/internal/contest"
	"github.com/retrygo/retry/bench/internal/peer"
)

func TestAllAreValidAndHaveTheirOwnName(t *testing.T) {
	names := map[string]bool{}
	for _, s := range All() {
		require.NoError(t, s.Validate())
		require.False(t, names[s.Name], "%s is there twice", s.Name)
		names[s.Name] = true
	}
}

func TestLoopScenariosBeginWithLimitsAndOursAndHaveEveryPeer(t *testing.T) {
	var peers []string
	for _, l := range peer.Peers() {
		peers = append(peers, l.Name)
	}
	for _, s := range loopScenarios(context.Background(), succeed) {
		t.Run(s.Name, func(t *testing.T) {
			require.NotEmpty(t, s.About)
			require.NotEmpty(t, s.Targets)
			limits := 0
			for s.Contenders[limits].Form == contest.Limit {
				limits++
			}
			require.NotZero(t, limits)
			require.Equal(t, "retry", s.Contenders[limits].Name)
			require.Equal(t, contest.Ours, s.Contenders[limits].Form)
			var names []string
			for _, c := range s.Contenders[limits+1:] {
				names = append(names, c.Name)
			}
			require.Equal(t, peers, names)
		})
	}
}

func TestACallThatDoesNotDoTheWorkPanics(t *testing.T) {
	ctx := context.Background()
	type fn = func(context.Context) error
	once := peer.Loop{Name: "once", New: func(ctx context.Context, _ peer.Config, fn fn) func() error {
		return func() error { return fn(ctx) }
	}}
	liar := peer.Loop{Name: "liar", New: func(context.Context, peer.Config, fn) func() error {
		return func() error { return nil }
	}}
	broken := func(context.Context) error { return errFlaky }
	require.PanicsWithValue(t, "scenario: once: a call failed: flaky", func() {
		succeeding(ctx, once, peer.Config{Attempts: 4}, broken).New()(1)
	})
	require.PanicsWithValue(t, "scenario: once: a call ended after 1 attempts with flaky", func() {
		failing(ctx, once, peer.Config{Attempts: 4}, 3).New()(1)
	})
	require.PanicsWithValue(t, "scenario: once: a call ended after 1 attempts with flaky", func() {
		failing(ctx, once, peer.Config{Attempts: 4}, 4).New()(1)
	})
	require.PanicsWithValue(t, "scenario: liar: a call ended after 0 attempts with <nil>", func() {
		failing(ctx, liar, peer.Config{Attempts: 4}, 3).New()(1)
	})
}

// loopScenarios are those of the retry loops, under ctx; the ones whose fn can be given have the given one.
func loopScenarios(ctx context.Context, fn func(context.Context) error) []contest.Scenario {
	return []contest.Scenario{
		firstTry(ctx, fn), attemptTimeout(ctx, "given fn", fn), retriesAtOnce(ctx), retriesAfterWaits(ctx), giveUp(ctx),
	}
}

// cancellable returns a context of the bubble that it is called in, as serving is none.
func cancellable(t *testing.T) context.Context {
	ctx, cancel := context.WithCancel(context.Background())
	t.Cleanup(cancel)
	return ctx
}

// elapsed returns how long f takes.
func elapsed(f func()) time.Duration {
	start := time.Now()
	f()
	return time.Since(start)
}
