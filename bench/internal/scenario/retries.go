package scenario

import (
	"context"
	"time"

	"github.com/retrygo/retry"
	"github.com/retrygo/retry/bench/internal/contest"
	"github.com/retrygo/retry/bench/internal/peer"
)

// Retries returns the scenarios of a call whose fourth attempt succeeds.
func Retries() []contest.Scenario {
	return []contest.Scenario{retriesAtOnce(serving), retriesAfterWaits(serving)}
}

// retriesAtOnce is without waits.
func retriesAtOnce(ctx context.Context) contest.Scenario {
	return retries(ctx, contest.Scenario{
		Name: "Three failures, then success, no waits",
		About: "One call whose first three attempts fail, with delays of 0 and up to 8 attempts. A peer sets a timer for a " +
			"delay of 0 as well.",
		Targets: []contest.Target{
			{Rule: "15 times as fast as the fastest peer", Kind: contest.Best, Most: 1.0 / 15, Why: "four readings of the clock, one after each failure for the " +
				"history and one at the start, take longer than that by themselves"},
			{Rule: "at most one allocation", Kind: contest.Allocs, Most: 1},
		},
	}, peer.Config{
		Attempts: 8,
		Delay:    0,
		Policy:   retry.Policy{MaxAttempts: 8, Backoff: retry.Backoff{Delays: []time.Duration{0}}},
	})
}

// retriesAfterWaits is with the shortest waits that there are, so that what is measured is the waiting's own cost.
func retriesAfterWaits(ctx context.Context) contest.Scenario {
	return retries(ctx, contest.Scenario{
		Name: "Three failures, then success, waits of 1 ns",
		About: "One call whose first three attempts fail, with delays of 1 ns and up to 8 attempts. The loop written by hand " +
			"has one timer for all waits of a call; retry sets none for a wait that is over already.",
		Targets: []contest.Target{
			{Rule: "ahead of every peer", Kind: contest.Best, Most: 1},
		},
	}, peer.Config{
		Attempts: 8,
		Delay:    1,
		Policy:   retry.Policy{Backoff: retry.Backoff{Mode: retry.Fixed, Base: 1}},
	})
}

// retries returns s with its contenders, which do what c says.
func retries(ctx context.Context, s contest.Scenario, c peer.Config) contest.Scenario {
	const failures = 3
	s.Unit = "ns/op"
	for _, l := range append([]peer.Loop{peer.Hand, peer.Ours}, peer.Peers()...) {
		s.Contenders = append(s.Contenders, failing(ctx, l, c, failures))
	}
	return s
}
