package scenario

import (
	"context"
	"time"

	"github.com/retrygo/retry/bench/internal/contest"
	"github.com/retrygo/retry/bench/internal/peer"
)

// FirstTry returns the scenarios of a call whose first attempt succeeds: the comparison, and two more ways of
// ours beside the loop written by hand alone.
func FirstTry() []contest.Scenario {
	return []contest.Scenario{
		firstTry(serving, succeed),
		firstTryOfOurs(serving, "with a full budget", peer.OursWithBudget, succeed),
		firstTryOfOurs(serving, "with a value", peer.OursWithValue, succeed),
	}
}

// firstTryConfig is what the zero Policy begins with.
var firstTryConfig = peer.Config{Attempts: 8, Delay: 5 * time.Second}

// firstTry is the comparison under ctx, of an fn that succeeds.
func firstTry(ctx context.Context, fn func(context.Context) error) contest.Scenario {
	s := contest.Scenario{
		Name: "First-try success",
		About: "One call of a function that does nothing and succeeds, under a context that can be cancelled. Ours has the " +
			"zero Policy; the others may make 8 attempts too, 5 s apart, and come to none of the waits.",
		Unit:  "ns/op",
		Cores: []int{1, 2, 4},
		Targets: []contest.Target{
			{Rule: "at most 1.2 times a loop written by hand", Kind: contest.Ratio, Against: peer.Hand.Name, Most: 1.2},
			{Rule: "no allocation", Kind: contest.Allocs, Most: 0},
			{Rule: "at least 3.3 times as many calls on 4 cores as on 1", Kind: contest.Scaling, Most: 3.3, Why: asTheLimit},
		},
	}
	for _, l := range append([]peer.Loop{bareCall, peer.Hand, peer.Ours}, peer.Peers()...) {
		var remark string
		switch {
		case !isPeer(l):
		case l.TellsElapsed:
			remark = "can say how long a run took"
		default:
			remark = "cannot say how long a run took"
		}
		s.Contenders = append(s.Contenders, succeeding(ctx, l, firstTryConfig, fn, remark))
		if l.TellsElapsed && l.Form == contest.Fastest {
			s.Targets = append(s.Targets, contest.Target{
				Rule: "ahead of every peer that can say how long a run took", Kind: contest.Ratio, Against: l.Name, Most: 1,
			})
		}
	}
	return s
}

// firstTryOfOurs is one more way of ours under ctx, of an fn that succeeds.
func firstTryOfOurs(
	ctx context.Context, with string, ours peer.Loop, fn func(context.Context) error,
) contest.Scenario {
	return contest.Scenario{
		Name:  "First-try success, " + with,
		About: "As first-try success. The loop written by hand has no such thing.",
		Unit:  "ns/op",
		Cores: []int{1, 2, 4},
		Contenders: []contest.Contender{
			succeeding(ctx, peer.Hand, firstTryConfig, fn), succeeding(ctx, ours, firstTryConfig, fn),
		},
		Targets: []contest.Target{
			{Rule: "no allocation", Kind: contest.Allocs, Most: 0},
			{Rule: "at least 3.3 times as many calls on 4 cores as on 1", Kind: contest.Scaling, Most: 3.3, Why: asTheLimit},
		},
	}
}

// bareCall is fn by itself.
var bareCall = peer.Loop{
	Name: "bare call",
	Form: contest.Limit,
	New: func(ctx context.Context, _ peer.Config, fn func(context.Context) error) func() error {
		return func() error { return fn(ctx) }
	},
}

// isPeer reports whether l is another library's.
func isPeer(l peer.Loop) bool { return l.Form == contest.Fastest || l.Form == contest.Usual }

// succeed is work that costs nothing.
//
//go:noinline
func succeed(context.Context) error { return nil }
