package scenario

import (
	"context"
	"time"

	"github.com/retrygo/retry"
	"github.com/retrygo/retry/bench/internal/contest"
	"github.com/retrygo/retry/bench/internal/peer"
)

// AttemptTimeout returns the scenarios of a call whose first attempt succeeds under a timeout of 1 s: one for each thing
// that an fn does with its context, since contexts are lazy.
func AttemptTimeout() []contest.Scenario {
	return []contest.Scenario{
		attemptTimeout(serving, "fn ignores its context", succeed),
		attemptTimeout(serving, "fn reads Err", readErr),
		attemptTimeout(serving, "fn selects on Done", selectOnDone),
		attemptTimeout(serving, "fn derives a context", deriveContext),
	}
}

// attemptTimeout is one scenario of AttemptTimeout under ctx, of an fn that succeeds.
func attemptTimeout(ctx context.Context, does string, fn func(context.Context) error) contest.Scenario {
	c := peer.Config{
		Attempts:       8,
		Delay:          5 * time.Second,
		AttemptTimeout: time.Second,
		Policy:         retry.Policy{AttemptTimeout: time.Second},
	}
	s := contest.Scenario{
		Name: "Attempt timeout, " + does,
		About: "As first-try success, with a timeout of 1 s for the attempt, which does not pass. failsafe-go alone among the " +
			"peers ends an attempt's context; the deadline package of eapache/go-resiliency runs fn in a goroutine, without one.",
		Unit: "ns/op",
		Targets: []contest.Target{
			{Rule: "at most 1.1 times the context by itself", Kind: contest.Ratio, Against: bareDeadline.Name, Most: 1.1},
			{Rule: "no allocation beyond the context's", Kind: contest.Beyond, Against: bareDeadline.Name, Most: 0},
		},
	}
	for _, l := range append([]peer.Loop{bareDeadline, peer.Ours}, peer.Peers()...) {
		var remark string
		if isPeer(l) && !l.TimesOut {
			remark = "the timeout is a context.WithTimeout within fn, as its users write it"
		}
		s.Contenders = append(s.Contenders, succeeding(ctx, l, c, fn, remark))
	}
	return s
}

// bareDeadline is what an attempt's timeout costs by itself.
var bareDeadline = peer.Loop{
	Name: "bare context.WithDeadline",
	Form: contest.Limit,
	New: func(ctx context.Context, c peer.Config, fn func(context.Context) error) func() error {
		timeout := c.AttemptTimeout
		return func() error {
			ctx, cancel := context.WithDeadline(ctx, time.Now().Add(timeout))
			err := fn(ctx)
			cancel()
			return err
		}
	},
}

//go:noinline
func readErr(ctx context.Context) error { return ctx.Err() }

//go:noinline
func selectOnDone(ctx context.Context) error {
	select {
	case <-ctx.Done():
		return ctx.Err()
	default:
		return nil
	}
}

//go:noinline
func deriveContext(ctx context.Context) error {
	_, cancel := context.WithCancel(ctx)
	cancel()
	return nil
}
