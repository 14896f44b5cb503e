package scenario

import (
	"context"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/retrygo/retry/bench/internal/contest"
)

// A call that does not make the attempts that it should panics; see TestACallThatDoesNotDoTheWorkPanics.
func TestRetriesWaitAsLongAsTheySay(t *testing.T) {
	for _, r := range []struct {
		name     string
		scenario func(context.Context) contest.Scenario
		call     time.Duration
	}{
		{name: "no waits", scenario: retriesAtOnce, call: 0},
		{name: "three waits of 1ns", scenario: retriesAfterWaits, call: 3},
		{name: "no waits before giving up", scenario: giveUp, call: 0},
	} {
		for i, c := range r.scenario(context.Background()).Contenders {
			t.Run(r.name+"/"+c.Name, func(t *testing.T) {
				synctest.Test(t, func(t *testing.T) {
					op := r.scenario(cancellable(t)).Contenders[i].New()
					require.Equal(t, 5*r.call, elapsed(func() { op(5) }))
				})
			})
		}
	}
}
