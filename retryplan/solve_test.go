package retryplan_test

import (
	"context"
	"errors"
	"math"
	"testing"
	"time"

	"github.com/retrygo/retry"
	"github.com/retrygo/retry/retryplan"
	"github.com/stretchr/testify/require"
)

func TestSolveTellsEveryBadField(t *testing.T) {
	_, err := retryplan.Solve(context.Background(), retryplan.Requirements{Failure: 1, Success: math.NaN(), Load: 0.5, Outage: -1, P99: -2, WorstCase: -3,
		Fleet: &retryplan.Fleet{Rate: 1}})
	for _, text := range []string{
		"retryplan: Requirements.Failure 1 is outside [0,1)",
		"retryplan: Requirements.Success NaN is outside (0,1)",
		"retryplan: Requirements.Load 0.5 is not 1 or more; every run makes one attempt",
		"retryplan: Requirements.Outage -1ns is negative",
		"retryplan: Requirements.P99 -2ns is negative",
		"retryplan: Requirements.WorstCase -3ns is negative",
		"retryplan: Fleet.Capacity 0 is not above 0",
	} {
		require.ErrorContains(t, err, text)
	}
	_, err = retryplan.Solve(context.Background(), retryplan.Requirements{})
	var bad *retryplan.FieldError
	require.ErrorAs(t, err, &bad)
	_, err = retryplan.Solve(context.Background(), retryplan.Requirements{Failure: math.NaN()})
	require.ErrorAs(t, err, &bad)
}

func TestSolvePrefersWhatIsSimple(t *testing.T) {
	for _, row := range []struct {
		name string
		r    retryplan.Requirements
		want retry.Policy
	}{
		{"one attempt where one is enough", retryplan.Requirements{Failure: 0.01, Success: 0.98}, retry.Policy{MaxAttempts: 1}},
		{"no timeout where none is needed", retryplan.Requirements{Failure: 0.1, Success: 0.998},
			retry.Policy{MaxAttempts: 3, Backoff: retry.Backoff{Base: 100 * time.Millisecond, Jitter: retry.FullJitter}}},
		{"a floor under the waits for an outage", retryplan.Requirements{Outage: 25 * time.Second, WorstCase: time.Minute + 10*time.Second},
			retry.Policy{MaxAttempts: 6, Backoff: retry.Backoff{Base: 2 * time.Second, Cap: 20 * time.Second, Jitter: retry.RatioJitter}}},
	} {
		t.Run(row.name, func(t *testing.T) {
			s, err := retryplan.Solve(context.Background(), row.r)
			require.NoError(t, err)
			require.Equal(t, row.want, s.Policy)
			require.Nil(t, s.Budget)
			require.Nil(t, s.Certificate)
		})
	}
}

func TestSolveAddsABudgetWhereAFleetNeedsOne(t *testing.T) {
	f := retryplan.Fleet{Rate: 70, Capacity: 100, Clients: 10, Trigger: retryplan.Trigger{Kind: retryplan.Stall, For: 10 * time.Second}}
	r := retryplan.Requirements{Failure: 0.05, Duration: retryplan.LogNormal(20*time.Millisecond, 200*time.Millisecond), Success: 0.995,
		WorstCase: 2 * time.Second, Fleet: &f}
	s, err := retryplan.Solve(context.Background(), r)
	require.NoError(t, err)
	require.Equal(t, &retry.BudgetConfig{Ratio: 0.1}, s.Budget)
	require.Equal(t, retryplan.Safe, s.Certificate.Verdict)
	require.True(t, s.Simulation.Recovered)
	require.Nil(t, f.Budget, "the caller's fleet is not changed")

	f.Budget = &retry.BudgetConfig{Ratio: 0.001}
	_, err = retryplan.Solve(context.Background(), r)
	var infeasible *retryplan.InfeasibleError
	require.ErrorAs(t, err, &infeasible, "a budget that does not pay for the retries that Success needs")
	require.Equal(t, []retryplan.Requirement{"Success", "Fleet"}, []retryplan.Requirement{infeasible.A, infeasible.B})
}

// Two attempts are always short enough, and three seldom are; a TTL gives the third to those runs that have time for it.
func TestSolveBoundsManyAttemptsByTTL(t *testing.T) {
	r := retryplan.Requirements{Failure: 0.3, Duration: retryplan.LogNormal(20*time.Millisecond, 500*time.Millisecond), Success: 0.99, WorstCase: time.Second}
	s, err := retryplan.Solve(context.Background(), r)
	require.NoError(t, err)
	require.GreaterOrEqual(t, s.Plan.Success, 0.99)
	require.LessOrEqual(t, s.Plan.WorstCase, time.Second)
}

func TestSolveStopsWithItsContext(t *testing.T) {
	ctx, cancel := context.WithCancelCause(context.Background())
	reason := errors.New("nobody waits")
	cancel(reason)
	_, err := retryplan.Solve(ctx, retryplan.Requirements{Failure: 0.1, Success: 0.99})
	require.ErrorIs(t, err, reason)
}

func TestInfeasibleErrorIsOneSentence(t *testing.T) {
	require.EqualError(t, &retryplan.InfeasibleError{A: "Success", Why: "why"}, "retryplan: Success cannot be met: why")
	require.EqualError(t, &retryplan.InfeasibleError{A: "Success", B: "P99", Why: "why"}, "retryplan: Success and P99 cannot both be met: why")
}
