package scenario

import (
	"context"
	"time"

	"github.com/retrygo/retry"
	"github.com/retrygo/retry/bench/internal/contest"
	"github.com/retrygo/retry/bench/internal/peer"
)

// GiveUp returns the scenario of a call that fails.
func GiveUp() []contest.Scenario {
	return []contest.Scenario{giveUp(serving)}
}

// giveUpConfig is ten attempts at once.
var giveUpConfig = peer.Config{
	Attempts: 10,
	Delay:    0,
	Policy:   retry.Policy{MaxAttempts: 10, Backoff: retry.Backoff{Delays: []time.Duration{0}}},
}

// giveUp is GiveUp under ctx.
func giveUp(ctx context.Context) contest.Scenario {
	s := contest.Scenario{
		Name: "Ten failures, then giving up",
		About: "One call whose ten attempts fail, with delays of 0. Ours returns an error with the history of all ten: when " +
			"each began, how long it took and how it ended.",
		Unit: "ns/op",
		Targets: []contest.Target{
			{Rule: "4 times as fast as the fastest peer, history included", Kind: contest.Best, Most: 0.25, Why: "ten attempts are timed, " +
				"classified and recorded, with eleven readings of the clock; the fastest peer keeps no error"},
		},
	}
	for _, l := range append([]peer.Loop{peer.Hand, peer.Ours}, peer.Peers()...) {
		var remark string
		if l.Form == contest.Limit {
			remark = "keeps no history"
		}
		s.Contenders = append(s.Contenders, failing(ctx, l, giveUpConfig, giveUpConfig.Attempts, remark))
	}
	return s
}
