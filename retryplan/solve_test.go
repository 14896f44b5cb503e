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

func TestSolveReportsEveryBadField(t *testing.T) {
	_, err := retryplan.Solve(context.Background(), retryplan.Requirements{Failure: 1, Success: math.NaN(), Load: 0.5, Outage: -1, P99: -2, WorstCase: -3,
		Fleet: &retryplan.Fleet{Rate: 1}})
	require.Equal(t, []string{
		"Requirements.Failure 1 is outside [0,1)",
		"Requirements.Success NaN is outside (0,1)",
		"Requirements.Load 0.5 is not 1 or more; every run makes one attempt",
		"Requirements.Outage -1ns is negative",
		"Requirements.P99 -2ns is negative",
		"Requirements.WorstCase -3ns is negative",
		"Fleet.Capacity 0 is not above 0",
	}, fieldTexts(t, err))
	_, err = retryplan.Solve(context.Background(), retryplan.Requirements{})
	var bad *retry.FieldError
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

func TestSolveAddsABudgetIfAFleetNeedsOne(t *testing.T) {
	f := retryplan.Fleet{Rate: 70, Capacity: 100, Clients: 10, Trigger: retryplan.Trigger{Kind: retryplan.Stall, For: 10 * time.Second}}
	r := retryplan.Requirements{Failure: 0.05, Duration: retryplan.LogNormal(20*time.Millisecond, 200*time.Millisecond), Success: 0.995,
		WorstCase: 2 * time.Second, Fleet: &f}
	s, err := retryplan.Solve(context.Background(), r)
	require.NoError(t, err)
	require.Equal(t, &retry.BudgetConfig{Ratio: 0.1}, s.Budget)
	require.Equal(t, retryplan.Safe, s.Certificate.Stability)
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

// A simulation of a fleet of few runs is noisy, and no reason to refuse what the certificate allows.
func TestSolveForSlowFleets(t *testing.T) {
	for _, r := range []retryplan.Requirements{
		{Failure: 0.1, Success: 0.99, Fleet: &retryplan.Fleet{Rate: 5, Capacity: 20, Deadline: 2 * time.Second}},
		{Failure: 0.1, Fleet: &retryplan.Fleet{Rate: 5, Capacity: 20, Deadline: 2 * time.Second}},
		{Failure: 0.1, Success: 0.99, Fleet: &retryplan.Fleet{Rate: 5, Capacity: 20}},
		{Failure: 0.1, Success: 0.99, Fleet: &retryplan.Fleet{Rate: 0.5, Capacity: 2}},
		{Failure: 0.1, Success: 0.99, Fleet: &retryplan.Fleet{Rate: 0.01, Capacity: 0.05}},
	} {
		r.Fleet.Trigger = retryplan.Trigger{Kind: retryplan.Stall, For: 10 * time.Second}
		s, err := retryplan.Solve(context.Background(), r)
		require.NoError(t, err, "%+v", r.Fleet)
		require.True(t, s.Certificate.Stability.Survives())
		require.GreaterOrEqual(t, s.Certificate.Margin, 0.05)
	}
}

// Without a timeout a fleet is safe since its clients hang, which is not what safe should mean.
func TestSolveLetsClientsGiveUp(t *testing.T) {
	f := &retryplan.Fleet{Rate: 70, Capacity: 100, Trigger: retryplan.Trigger{Kind: retryplan.Stall, For: 10 * time.Second}}
	s, err := retryplan.Solve(context.Background(), retryplan.Requirements{Failure: 0.1, Success: 0.999, Fleet: f})
	require.NoError(t, err)
	require.Positive(t, s.Policy.AttemptTimeout)
	require.Less(t, s.Policy.AttemptTimeout, 10*time.Second)
	require.NotEqual(t, retryplan.NoTimeout, s.Certificate.Law)

	s, err = retryplan.Solve(context.Background(), retryplan.Requirements{Failure: 0.1, Fleet: f})
	require.NoError(t, err)
	require.Positive(t, s.Policy.AttemptTimeout)
	require.Empty(t, s.Binding, "what there is to spare is 1 − Rate/Capacity, with any policy")

	d := retryplan.LogNormal(30*time.Millisecond, 300*time.Millisecond)
	s, err = retryplan.Solve(context.Background(), retryplan.Requirements{Failure: 0.05, Success: 0.99, Duration: d, Fleet: f})
	require.NoError(t, err)
	require.GreaterOrEqual(t, s.Policy.AttemptTimeout, 3*d.At(0.99))
	require.Equal(t, retryplan.Requirement("Success"), s.Binding)
}

func TestSolveKeepsTheFleetsDeadline(t *testing.T) {
	stall := retryplan.Trigger{Kind: retryplan.Stall, For: 5 * time.Second}
	for _, row := range []struct {
		name string
		r    retryplan.Requirements
	}{
		{"few long attempts", retryplan.Requirements{Failure: 0.2, Success: 0.99, Duration: retryplan.LogNormal(20*time.Millisecond, 200*time.Millisecond),
			P99: 800 * time.Millisecond, Fleet: &retryplan.Fleet{Rate: 100, Capacity: 200, Deadline: time.Second}}},
		{"an outage", retryplan.Requirements{Failure: 0.2, Success: 0.99, Outage: 3 * time.Second, Fleet: &retryplan.Fleet{Rate: 100, Capacity: 200, Deadline: 5 * time.Second}}},
		{"a load", retryplan.Requirements{Failure: 0.3, Success: 0.97, Load: 1.4, Duration: retryplan.LogNormal(100*time.Millisecond, time.Second),
			Fleet: &retryplan.Fleet{Rate: 70, Capacity: 210, Workers: 10, Deadline: 2 * time.Second}}},
		{"a worst case", retryplan.Requirements{WorstCase: time.Second, Duration: retryplan.Exponential(100 * time.Millisecond),
			Fleet: &retryplan.Fleet{Rate: 70, Capacity: 210, Deadline: time.Second}}},
	} {
		t.Run(row.name, func(t *testing.T) {
			r := row.r
			r.Fleet.Trigger = stall
			s, err := retryplan.Solve(context.Background(), r)
			require.NoError(t, err)
			plan, err := retryplan.New(s.Policy, retryplan.Model{Failure: []float64{r.Failure}, Duration: r.Duration, Deadline: r.Fleet.Deadline})
			require.NoError(t, err)
			require.Equal(t, plan.InTime, s.Plan.InTime)
			require.GreaterOrEqual(t, plan.InTime+1e-9, r.Success)
			require.LessOrEqual(t, plan.WorstCase, r.Fleet.Deadline)
			require.True(t, r.P99 == 0 || plan.Elapsed.Quantile(0.99) <= r.P99)
			require.True(t, r.Load == 0 || plan.Load <= r.Load+1e-9)
			// However long the waits of an outage are, one of the attempts is between its end and the deadline.
			var longest, shortest time.Duration
			for _, a := range plan.Attempts[1:] {
				longest, shortest = max(longest, a.Wait.Hi), shortest+a.Wait.Lo
			}
			require.True(t, r.Outage == 0 || shortest >= r.Outage && r.Outage+longest <= r.Fleet.Deadline)
		})
	}
}

func TestSolveSaysWhatAFleetLacks(t *testing.T) {
	stall := retryplan.Trigger{Kind: retryplan.Stall, For: 10 * time.Second}
	for _, row := range []struct {
		name, why string
		a, b      retryplan.Requirement
		r         retryplan.Requirements
	}{
		{"no attempt ends within the deadline", "policies within its Deadline of 600ms have at best Success 0, and Success 0.99 is required", "Success", "Fleet",
			retryplan.Requirements{Success: 0.99, Duration: retryplan.Constant(time.Second), Fleet: &retryplan.Fleet{Rate: 100, Capacity: 200, Deadline: 600 * time.Millisecond}}},
		{"the deadline is within the outage", "policies within its Deadline of 5s have at best Outage 4.84s, and Outage 6s is required", "Outage", "Fleet",
			retryplan.Requirements{Failure: 0.2, Outage: 6 * time.Second, Fleet: &retryplan.Fleet{Rate: 100, Capacity: 200, Deadline: 5 * time.Second}}},
		{"the budget does not pay", "its Budget does not pay for the 0.11 retries of a run at Failure 0.1, with a tenth to spare", "Success", "Fleet",
			retryplan.Requirements{Failure: 0.1, Success: 0.99, Fleet: &retryplan.Fleet{Rate: 70, Capacity: 100, Deadline: 2 * time.Second, Budget: &retry.BudgetConfig{}}}},
		{"the backend does not bear the retries", "at Failure 0.3 its 70 runs a second make 1.43 attempts each, and its Capacity is 80", "Success", "Fleet",
			retryplan.Requirements{Failure: 0.3, Success: 0.999, Fleet: &retryplan.Fleet{Rate: 70, Capacity: 80, Deadline: 2 * time.Second}}},
		{"one attempt takes as long as the deadline", "it is overloaded by the law slow-service", "Fleet", "",
			retryplan.Requirements{Failure: 0.1, Success: 0.99, Fleet: &retryplan.Fleet{Rate: 1, Capacity: 2, Deadline: 500 * time.Millisecond}}},
		{"chance decides, and the simulation is against it", "in a simulation it does not recover with 1 attempt", "Fleet", "",
			retryplan.Requirements{Fleet: &retryplan.Fleet{Rate: 98, Capacity: 100, Deadline: 100 * time.Millisecond}}},
		{"an attempt takes longer than each of as many may", "no policies that meet Success 0.996 and WorstCase 10s suit the fleet: one attempt takes its backend 6.470588235s", "Success", "WorstCase",
			retryplan.Requirements{Failure: 0.17, Success: 0.996, Duration: retryplan.LogNormal(18*time.Millisecond, 255*time.Millisecond), WorstCase: 10 * time.Second,
				Fleet: &retryplan.Fleet{Rate: 2.3, Capacity: 3.4, Workers: 22}}},
	} {
		t.Run(row.name, func(t *testing.T) {
			row.r.Fleet.Trigger = stall
			_, err := retryplan.Solve(context.Background(), row.r)
			var infeasible *retryplan.InfeasibleError
			require.ErrorAs(t, err, &infeasible)
			require.Contains(t, infeasible.Why, row.why)
			require.Equal(t, []retryplan.Requirement{row.a, row.b}, []retryplan.Requirement{infeasible.A, infeasible.B})
		})
	}
}

// With Failure 0 no run of New's makes a second attempt, but those of an Outage do.
func TestSolveHasOneWorstCase(t *testing.T) {
	s, err := retryplan.Solve(context.Background(), retryplan.Requirements{WorstCase: 70 * time.Second, Outage: 25 * time.Second})
	require.NoError(t, err)
	failing, err := retryplan.New(s.Policy, retryplan.Model{})
	require.NoError(t, err)
	require.LessOrEqual(t, failing.WorstCase, 70*time.Second)

	s, err = retryplan.Solve(context.Background(), retryplan.Requirements{WorstCase: time.Second, Duration: retryplan.Constant(time.Second)})
	require.NoError(t, err)
	require.Equal(t, time.Second, s.Plan.WorstCase)
}

// endsAfter is a context that ends when it has been looked at so many times.
type endsAfter struct {
	context.Context
	looks *int
	cause error
}

func (c endsAfter) Err() error {
	if *c.looks--; *c.looks < 0 {
		return c.cause
	}
	return nil
}

// What a context has ended is no proof that nothing exists.
func TestSolveObeysItsContextAtEveryStep(t *testing.T) {
	reason := errors.New("no caller waits")
	for _, r := range []retryplan.Requirements{
		{Failure: .3, Outage: 123 * time.Second, P99: 727 * time.Millisecond, WorstCase: 1268 * time.Millisecond},
		{Failure: .3, Success: 0.9999, WorstCase: 300 * time.Millisecond, Duration: retryplan.LogNormal(20*time.Millisecond, 100*time.Millisecond)},
		{Failure: .3, Success: 0.999, Fleet: &retryplan.Fleet{Rate: 70, Capacity: 80, Deadline: 2 * time.Second}},
	} {
		for _, looks := range []int{0, 1, 5, 20, 50, 100, 200} {
			left := looks
			_, err := retryplan.Solve(endsAfter{context.Background(), &left, reason}, r)
			require.Negative(t, left, "it looks more often than this")
			require.ErrorIs(t, err, reason)
			require.Greater(t, left, -1000, "and stops soon")
		}
	}
}

func TestSolveStopsWithItsContext(t *testing.T) {
	ctx, cancel := context.WithCancelCause(context.Background())
	reason := errors.New("no caller waits")
	cancel(reason)
	_, err := retryplan.Solve(ctx, retryplan.Requirements{Failure: 0.1, Success: 0.99})
	require.ErrorIs(t, err, reason)
}

func TestInfeasibleErrorIsOneSentence(t *testing.T) {
	require.EqualError(t, &retryplan.InfeasibleError{A: "Success", Why: "why"}, "retryplan: Success cannot be met: why")
	require.EqualError(t, &retryplan.InfeasibleError{A: "Success", B: "P99", Why: "why"}, "retryplan: Success and P99 cannot both be met: why")
}
