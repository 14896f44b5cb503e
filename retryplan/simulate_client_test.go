package retryplan_test

import (
	"testing"
	"time"

	"github.com/retrygo/retry"
	"github.com/retrygo/retry/retryplan"
	"github.com/stretchr/testify/require"
)

func TestSimulateBudgets(t *testing.T) {
	s := retryplan.Scenario{
		Policy:  retry.Policy{MaxAttempts: 4, Backoff: retry.Backoff{Mode: retry.Fixed, Base: 10 * ms}},
		Clients: 3,
		Server:  retryplan.Server{FailureRate: 1},
		Budget:  &retry.BudgetConfig{Initial: 2},
	}
	r := simulated(t, s)
	require.Equal(t, 9, r.Attempts, "each has two")
	require.Equal(t, map[retry.Reason]int{retry.BudgetExhausted: 3}, r.Endings)

	s.Clients = 1
	r = simulated(t, s)
	require.Equal(t, 3, r.Attempts, "the only one has two")

	s.Budget.Trickle = 5 * ms
	r = simulated(t, s)
	require.Equal(t, 4, r.Attempts, "at 10 ms, in the third period, one token is granted, and one at 20 ms")

	s.Server.FailureRate = 0
	s.Budget = &retry.BudgetConfig{Initial: 2, Ratio: 0.25}
	s.Duration = time.Second
	tokens, err := retryplan.Tokens(t.Context(), s)
	require.NoError(t, err)
	require.Equal(t, 2.25, tokens)
}

func TestSimulateDeadlines(t *testing.T) {
	s := retryplan.Scenario{
		Policy: retry.Policy{MaxAttempts: 10, TTL: 45 * ms, Backoff: retry.Backoff{Mode: retry.Fixed, Base: 10 * ms}},
		Server: retryplan.Server{Service: retryplan.Constant(5 * ms), FailureRate: 1},
	}
	r := simulated(t, s)
	require.Equal(t, map[retry.Reason]int{retry.TTLElapsed: 1}, r.Endings)
	require.Equal(t, []int{0, 15, 30, 45}, when(r, attempts), "at the TTL is allowed")
	s.Deadline = 45 * ms
	r = simulated(t, s)
	require.Equal(t, map[retry.Reason]int{retry.DeadlineTooNear: 1}, r.Endings)
	s.Deadline = 34 * ms
	r = simulated(t, s)
	require.Equal(t, map[retry.Reason]int{retry.DeadlinePassed: 1}, r.Endings)
	require.Equal(t, []int{34}, when(r, timedOut))
	require.Equal(t, 1, r.Wasted)
}

func TestClassifySeesWhyAnAttemptFailed(t *testing.T) {
	for _, row := range []struct {
		name   string
		err    error
		adjust func(*retryplan.Scenario)
	}{
		{"work that failed", retryplan.ErrWorkFailed, func(s *retryplan.Scenario) { s.Server.FailureRate = 1 }},
		{"a rejection", retryplan.ErrRejected, func(s *retryplan.Scenario) {
			s.Trigger = retryplan.Trigger{Kind: retryplan.Outage, For: time.Minute}
		}},
		{"a timeout", retry.ErrAttemptTimeout, func(s *retryplan.Scenario) {
			s.Server.Service = retryplan.Constant(time.Hour)
			s.Policy.AttemptTimeout = time.Second
		}},
	} {
		t.Run(row.name, func(t *testing.T) {
			s := retryplan.Scenario{
				Policy:   retry.Policy{Classify: retry.StopOn(row.err)},
				Duration: time.Minute,
			}
			row.adjust(&s)
			result, err := retryplan.Run(t.Context(), s)
			require.NoError(t, err)
			require.Equal(t, 1, result.Endings[retry.TerminalError])
		})
	}
}
