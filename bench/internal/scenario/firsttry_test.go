package scenario

import (
	"context"
	"sync"
	"sync/atomic"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/retrygo/retry/bench/internal/contest"
	"github.com/retrygo/retry/bench/internal/peer"
)

func TestFirstTryIsOneAttemptPerCallOnSeveralCores(t *testing.T) {
	const goroutines, calls = 4, 25
	var made atomic.Int64
	count := func(context.Context) error {
		made.Add(1)
		return nil
	}
	ctx := cancellable(t)
	for _, s := range []contest.Scenario{
		firstTry(ctx, count),
		firstTryOfOurs(ctx, "with a full budget", peer.OursWithBudget, count),
		firstTryOfOurs(ctx, "with a value", peer.OursWithValue, count),
	} {
		for _, c := range s.Contenders {
			t.Run(s.Name+"/"+c.Name, func(t *testing.T) {
				made.Store(0)
				op := c.New()
				var wg sync.WaitGroup
				for range goroutines {
					wg.Go(func() { op(calls) })
				}
				wg.Wait()
				require.EqualValues(t, goroutines*calls, made.Load())
			})
		}
	}
}

func TestFirstTryIsHeldToTheLoopAndToThePeersThatTellElapsed(t *testing.T) {
	var against []string
	for _, target := range FirstTry()[0].Targets {
		if target.Kind == contest.Ratio {
			against = append(against, target.Against)
		}
	}
	require.Equal(t, []string{"hand-written loop", "failsafe-go"}, against)
}
