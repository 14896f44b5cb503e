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

const ms = time.Millisecond

// waits returns a policy that waits exactly so long.
func waits(delays ...time.Duration) retry.Policy {
	if len(delays) == 0 {
		return retry.Policy{MaxAttempts: 1}
	}
	return retry.Policy{Backoff: retry.Backoff{Delays: delays}}
}

func simulated(t *testing.T, s retryplan.Scenario) retryplan.Seen {
	t.Helper()
	if s.Duration == 0 {
		s.Duration = time.Second
	}
	if s.Step == 0 {
		s.Step = ms
	}
	r, err := retryplan.Run(t.Context(), s)
	require.NoError(t, err)
	conserved(t, s, r)
	return r
}

// conserved requires that nothing gets lost in a simulation.
func conserved(t *testing.T, s retryplan.Scenario, r retryplan.Seen) {
	t.Helper()
	ended := 0
	for _, n := range r.Endings {
		ended += n
	}
	require.Equal(t, r.Runs, ended+r.Unfinished)
	require.GreaterOrEqual(t, r.Unfinished, 0)
	var sum retryplan.Point
	for i, p := range r.Series {
		require.Equal(t, time.Duration(i)*r.Step, p.Start)
		sum.Offered += p.Offered
		sum.Attempts += p.Attempts
		sum.Rejected += p.Rejected
		sum.TimedOut += p.TimedOut
		sum.Goodput += p.Goodput
		require.GreaterOrEqual(t, p.Queue, 0)
	}
	require.Equal(t, r.Runs, sum.Offered)
	require.Equal(t, r.Attempts, sum.Attempts)
	require.Equal(t, r.Rejected, sum.Rejected)
	require.Equal(t, r.Endings[0], sum.Goodput)
	require.LessOrEqual(t, r.Latency.Quantile(1), r.Simulated)
	last := r.Simulated - 1
	require.Equal(t, int64(max(last, 0)/r.Step), int64(len(r.Series)-1), "steps in %v", r.Simulated)
}

// when returns the times, in steps, of the events counted in a series, each as often as it happened.
func when(r retryplan.Seen, count func(retryplan.Point) int) (at []int) {
	for i, p := range r.Series {
		for range count(p) {
			at = append(at, i)
		}
	}
	return at
}

func attempts(p retryplan.Point) int { return p.Attempts }
func timedOut(p retryplan.Point) int { return p.TimedOut }
func goodput(p retryplan.Point) int  { return p.Goodput }

func TestSimulateOneClientByHand(t *testing.T) {
	r := simulated(t, retryplan.Scenario{
		Policy: waits(100*ms, 200*ms),
		Server: retryplan.Server{Workers: 1, Service: retryplan.Constant(25 * ms), FailureRate: 1},
	})
	require.Equal(t, []int{0, 125, 350}, when(r, attempts))
	require.Equal(t, map[retry.Reason]int{retry.AttemptsExhausted: 1}, r.Endings)
	require.Equal(t, time.Second, r.Simulated)
}

func TestSimulateLateAnswers(t *testing.T) {
	answersIn := func(d time.Duration) retryplan.Server {
		return retryplan.Server{Workers: 1, Service: retryplan.Constant(d)}
	}
	for _, row := range []struct {
		name       string
		s          retryplan.Scenario
		good, late []int // when runs succeed, and when attempts time out
		wasted     int
	}{
		{"an answer 2ms after the timeout is late", retryplan.Scenario{
			Policy: retry.Policy{MaxAttempts: 2, AttemptTimeout: 30 * ms, Backoff: retry.Backoff{Mode: retry.Fixed, Base: 10 * ms}},
			Server: answersIn(32 * ms),
		}, nil, []int{30, 70}, 2},
		{"an answer at the timeout is late, and no work is wasted after it", retryplan.Scenario{
			Policy: retry.Policy{MaxAttempts: 1, AttemptTimeout: 20 * ms}, Server: answersIn(20 * ms),
		}, nil, []int{20}, 0},
		{"abandoned work is done all the same", retryplan.Scenario{
			Policy: retry.Policy{MaxAttempts: 1, AttemptTimeout: 30 * ms}, Server: answersIn(20 * ms), Clients: 3,
		}, []int{20}, []int{30, 30}, 2},
		{"the third in a queue is too late", retryplan.Scenario{
			Policy: retry.Policy{MaxAttempts: 1, AttemptTimeout: 25 * ms}, Server: answersIn(10 * ms), Clients: 5,
		}, []int{10, 20}, []int{25, 25, 25}, 3},
		{"an answer after the deadline is late", retryplan.Scenario{
			Policy: retry.Policy{MaxAttempts: 10}, Server: answersIn(50 * ms), Deadline: 34 * ms,
		}, nil, []int{34}, 1},
	} {
		t.Run(row.name, func(t *testing.T) {
			r := simulated(t, row.s)
			require.Equal(t, row.good, when(r, goodput))
			require.Equal(t, row.late, when(r, timedOut))
			require.Equal(t, row.wasted, r.Wasted)
			require.Zero(t, r.Rejected)
		})
	}
}

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

	s.Clients, s.Server.FailureRate, s.Duration = 1, 0, time.Second
	s.Budget = &retry.BudgetConfig{Initial: 2, Ratio: 0.25}
	tokens, err := retryplan.Tokens(t.Context(), s)
	require.NoError(t, err)
	require.Equal(t, 2.25, tokens)
}

func TestSimulateIsDeterministic(t *testing.T) {
	s := retryplan.Scenario{
		Policy:   retry.Policy{MaxAttempts: 4, AttemptTimeout: 300 * ms, Backoff: retry.Backoff{Base: 50 * ms, Jitter: retry.DecorrelatedJitter}},
		Clients:  50,
		Rate:     100,
		Server:   retryplan.Server{Workers: 1, Service: retryplan.Uniform(2*ms, 14*ms), FailureRate: 0.1},
		Trigger:  retryplan.Trigger{Kind: retryplan.Stall, From: 5 * time.Second, For: 2 * time.Second},
		Budget:   &retry.BudgetConfig{Initial: 1},
		Duration: 20 * time.Second,
		Step:     time.Second,
		Seed:     7,
	}
	first := simulated(t, s)
	require.Equal(t, first, simulated(t, s))
	s.Policy.MaxAttempts = 1
	other := simulated(t, s)
	for i := range first.Series {
		require.Equal(t, first.Series[i].Offered, other.Series[i].Offered, "another policy meets the same arrivals")
	}
	s.Policy.MaxAttempts = 4
	s.Seed = 8
	require.NotEqual(t, first, simulated(t, s))
	// The same on every platform.
	require.Equal(t, []int{1964, 2063, 1041}, []int{first.Runs, first.Attempts, first.Endings[0]})
	require.Equal(t, 55_644_959*time.Nanosecond, first.Latency.Mean())
}

func TestSimulateAgreesWithQueueingTheory(t *testing.T) {
	// M/M/1 at a load of 0.7: the mean time in the system is S/(1-rho), and the mean number waiting rho²/(1-rho)
	// (Kleinrock, "Queueing Systems", volume 1, 1975, section 3.2). The standard error over 10,000 s is about 1.5 %.
	s := retryplan.Scenario{
		Policy:   waits(),
		Rate:     70,
		Server:   retryplan.Server{Workers: 1, Service: retryplan.Exponential(10 * ms)},
		Duration: 10_000 * time.Second,
		Step:     time.Second,
	}
	r := simulated(t, s)
	require.InEpsilon(t, 1/(100-70.), r.Latency.Mean().Seconds(), 0.05)
	waiting := 0
	for _, p := range r.Series {
		waiting += p.Queue
	}
	require.InEpsilon(t, 0.7*0.7/0.3, float64(waiting)/float64(len(r.Series)), 0.1)
	// The time in the system is exponential.
	require.InEpsilon(t, math.Log(100)/30, r.Latency.Quantile(0.99).Seconds(), 0.1)

	// M/D/1 waits half as long (Pollaczek, Khinchine).
	s.Server.Service = retryplan.Constant(10 * ms)
	require.InEpsilon(t, 0.010*(1+0.7/0.6), simulated(t, s).Latency.Mean().Seconds(), 0.03)
}

func TestSimulateRecovery(t *testing.T) {
	s := retryplan.Scenario{
		Policy:   waits(),
		Rate:     1000,
		Server:   retryplan.Server{Workers: 1, Service: retryplan.Constant(500 * time.Microsecond)},
		Trigger:  retryplan.Trigger{Kind: retryplan.Stall, From: 10 * time.Second, For: 5 * time.Second},
		Duration: 60 * time.Second,
	}
	for _, step := range []time.Duration{time.Second, 7 * time.Second, 333 * ms} {
		s.Step = step
		r := simulated(t, s)
		require.True(t, r.Recovered)
		require.Zero(t, r.Recovery, "the backlog of the stall makes up for it")
	}
	s.Policy.AttemptTimeout = time.Second
	r := simulated(t, s)
	// 5,000 wait when the stall ends. They are gone after 5 s, when none has to wait for more than 1 s after 4 s.
	require.True(t, r.Recovered)
	require.InDelta(t, 4*time.Second, r.Recovery, float64(time.Second))
}

func TestSimulateStopsWithItsContext(t *testing.T) {
	ctx, cancel := context.WithCancelCause(t.Context())
	told := 0
	s := hugeStorm(10_000)
	s.Progress = func(held int) {
		told++
		require.Positive(t, held)
		if told == 3 {
			cancel(errors.New("enough"))
		}
	}
	r, err := retryplan.Run(ctx, s)
	require.EqualError(t, err, "enough")
	require.Equal(t, uint64(3)<<16, r.Events)
	require.Positive(t, r.Runs)
	require.Less(t, r.Simulated, s.Duration)
	conserved(t, s, r)
	again, err := retryplan.Run(ctx, s)
	require.EqualError(t, err, "enough")
	require.Zero(t, again.Events)
}

func TestSimulateGivesUpIfTimeStandsStill(t *testing.T) {
	if retryplan.RaceDetector {
		t.Skip("millions of events in one goroutine")
	}
	r, err := retryplan.Run(t.Context(), retryplan.Scenario{
		Policy: retry.Policy{MaxAttempts: retry.Unlimited, Backoff: retry.Backoff{Delays: []time.Duration{0}}},
		Server: retryplan.Server{FailureRate: 1}, Duration: time.Second,
	})
	require.ErrorContains(t, err, "retryplan: Policy.MaxAttempts -1 lets attempts that take no time go on without end at 0s")
	require.Zero(t, r.Simulated)
	var field *retry.FieldError
	require.ErrorAs(t, err, &field)
}

// A server that works on nothing holds every attempt, and the simulation holds its run as well.
func TestProgressReportsWhatIsHeld(t *testing.T) {
	var last int
	r, err := retryplan.Run(t.Context(), retryplan.Scenario{
		Rate:     1000,
		Server:   retryplan.Server{Workers: 1, Service: retryplan.Constant(time.Hour)},
		Policy:   retry.Policy{MaxAttempts: 1},
		Duration: 100 * time.Second,
		Progress: func(held int) { last = held },
	})
	require.NoError(t, err)
	require.Greater(t, r.Runs, 90_000)
	require.InDelta(t, 2*r.Runs, last, 2<<16, "but for what began since")
}
