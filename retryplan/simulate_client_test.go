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
		Policy:   retry.Policy{MaxAttempts: 4, Backoff: retry.Backoff{Mode: retry.Fixed, Base: 10 * ms}},
		Clients:  3,
		Arrivals: retryplan.Arrivals{AtOnce: true},
		Server:   retryplan.Server{FailureRate: 1},
		Budget:   &retry.BudgetConfig{Initial: 2},
	}
	r := simulated(t, s)
	require.Equal(t, 9, r.Attempts, "each has two")
	require.Equal(t, map[retry.Reason]int{retry.BudgetExhausted: 3}, r.Endings)
	require.Equal(t, 1.0, r.Series[0].Tokens)
	require.Equal(t, 0.0, r.Series[20].Tokens)

	s.Shared = true
	r = simulated(t, s)
	require.Equal(t, 5, r.Attempts, "all have two")
	require.Equal(t, 0.0, r.Series[0].Tokens)

	s.Budget.Trickle = 5 * ms
	r = simulated(t, s)
	require.Equal(t, 7, r.Attempts, "at 10 ms, in the third period, one token is granted, and one at 20 ms")

	s.Server.FailureRate = 0
	s.Budget = &retry.BudgetConfig{Initial: 2, Ratio: 0.25}
	require.Equal(t, 2.75, simulated(t, s).Series[0].Tokens)
}

func TestSimulateRefundsRetriesThatDoNotStart(t *testing.T) {
	r := simulated(t, retryplan.Scenario{
		Policy:   retry.Policy{MaxAttempts: 4, TTL: 100 * ms, Backoff: retry.Backoff{Mode: retry.Fixed, Base: 10 * ms}},
		Arrivals: retryplan.Arrivals{AtOnce: true},
		Server:   retryplan.Server{FailureRate: 1},
		Budget:   &retry.BudgetConfig{Initial: 3},
		Throttle: func() retryplan.Throttle { return &recorder{closed: ms, open: time.Minute} },
	})
	require.Equal(t, map[retry.Reason]int{retry.TTLElapsed: 1}, r.Endings)
	require.Equal(t, 2.0, r.Series[5].Tokens)
	require.Equal(t, 3.0, r.Series[10].Tokens)
}

func TestSimulateBreakers(t *testing.T) {
	s := retryplan.Scenario{
		Policy:   retry.Policy{MaxAttempts: 10, Backoff: retry.Backoff{Mode: retry.Fixed, Base: 10 * ms}},
		Arrivals: retryplan.Arrivals{AtOnce: true},
		Server:   retryplan.Server{Service: retryplan.Constant(ms)},
		Triggers: []retryplan.Trigger{{Kind: retryplan.Failing, For: 75 * ms, Factor: 1}},
		Breaker:  &retryplan.Breaker{MinSamples: 3, Open: 34 * ms, Probes: 2},
	}
	// Attempts fail at 1, 12 and 23 ms, which opens the breaker until 57 ms. Attempts at 33, 43, 53 are held back; a
	// probe at 63 fails at 64: open until 98. Attempts at 74, 84, 94 are held back, which makes ten.
	r := simulated(t, s)
	require.Equal(t, []int{0, 11, 22, 63}, when(r, attempts))
	require.Equal(t, []int{94}, when(r, failed))
	require.Equal(t, 0, r.Series[22].Open)
	require.Equal(t, 1, r.Series[23].Open)
	require.Equal(t, 1, r.Series[55].Open)
	require.Equal(t, 0, r.Series[57].Open)
	require.Equal(t, 1, r.Series[64].Open)

	// With Defer the fourth attempt, due at 33 ms, goes at 57 and fails; the fifth goes at 92.
	s.Breaker.Defer = true
	r = simulated(t, s)
	require.Equal(t, []int{0, 11, 22, 57, 92}, when(r, attempts))
	require.Equal(t, []int{93}, when(r, goodput))

	// A wait for the breaker that would end after the TTL is not begun.
	s.Policy.TTL = 56 * ms
	r = simulated(t, s)
	require.Equal(t, map[retry.Reason]int{retry.TTLElapsed: 1}, r.Endings)
	require.Equal(t, []int{33}, when(r, failed))

	// Failures that are too far apart do not open it.
	s.Policy.TTL, s.Breaker.Window = 0, 15*ms
	require.Equal(t, []int{0, 11, 22, 33, 44, 55, 66, 77}, when(simulated(t, s), attempts))

	// Two probes are let through, and the third client looks again after a tenth of Open.
	s.Breaker.Window, s.Clients, s.Shared = 0, 3, true
	r = simulated(t, s)
	require.Equal(t, []int{0, 0, 0, 35, 35, 70, 70, 105, 105, 108}, when(r, attempts))
}

func TestSimulateBreakersForgetWhatWasSentBefore(t *testing.T) {
	// The first client fails at 20 ms: open until 30. Its probe goes at 35. The second client's attempt, sent at 0,
	// fails at 40.
	r := simulated(t, retryplan.Scenario{
		Policy:   waits(15 * ms),
		Clients:  2,
		Arrivals: retryplan.Arrivals{AtOnce: true},
		Server:   retryplan.Server{Workers: 1, Service: retryplan.Constant(20 * ms), FailureRate: 1},
		Breaker:  &retryplan.Breaker{MinSamples: 1, Open: 10 * ms, Probes: 1},
		Shared:   true,
	})
	require.Equal(t, []int{0, 0, 35}, when(r, attempts))
	require.Equal(t, 1, r.Series[25].Open)
	require.Equal(t, 0, r.Series[45].Open)
	require.Equal(t, 1, r.Series[65].Open)
}

func TestSimulateDeadlines(t *testing.T) {
	s := retryplan.Scenario{
		Policy:   retry.Policy{MaxAttempts: 10, TTL: 45 * ms, Backoff: retry.Backoff{Mode: retry.Fixed, Base: 10 * ms}},
		Arrivals: retryplan.Arrivals{AtOnce: true},
		Server:   retryplan.Server{Service: retryplan.Constant(5 * ms), FailureRate: 1},
	}
	r := simulated(t, s)
	require.Equal(t, map[retry.Reason]int{retry.TTLElapsed: 1}, r.Endings)
	require.Equal(t, []int{0, 15, 30, 45}, when(r, attempts), "at the TTL is allowed")
	s.Deadline = 45 * ms
	r = simulated(t, s)
	require.Equal(t, map[retry.Reason]int{retry.DeadlineTooNear: 1}, r.Endings)
	require.Equal(t, []int{35}, when(r, failed))
	s.Deadline = 34 * ms
	r = simulated(t, s)
	require.Equal(t, map[retry.Reason]int{retry.DeadlinePassed: 1}, r.Endings)
	require.Equal(t, []int{34}, when(r, timedOut))
	require.Equal(t, []int{34}, when(r, failed))
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
			s.Server.RetryAfter = retryplan.Constant(time.Millisecond)
			s.Triggers = []retryplan.Trigger{{Kind: retryplan.Outage, For: time.Minute}}
		}},
		{"a conflict", retryplan.ErrConflict, func(s *retryplan.Scenario) {
			s.Server = retryplan.Server{Conflict: true}
			s.Clients = 2
		}},
		{"an attempt that was held back", retryplan.ErrHeldBack, func(s *retryplan.Scenario) {
			s.Throttle = func() retryplan.Throttle { return holdAllBack{} }
		}},
		{"a timeout", retry.ErrAttemptTimeout, func(s *retryplan.Scenario) {
			s.Server.Service = retryplan.Constant(time.Hour)
			s.Policy.AttemptTimeout = time.Second
		}},
	} {
		t.Run(row.name, func(t *testing.T) {
			s := retryplan.Scenario{
				Policy:   retry.Policy{Classify: retry.StopOn(row.err)},
				Arrivals: retryplan.Arrivals{AtOnce: true},
				Network:  retryplan.Constant(time.Millisecond),
				Duration: time.Minute,
			}
			row.adjust(&s)
			result, err := retryplan.Simulate(t.Context(), s)
			require.NoError(t, err)
			require.Equal(t, 1, result.Endings[retry.TerminalError])
		})
	}
}

// holdAllBack is a throttle that sends nothing.
type holdAllBack struct{}

func (holdAllBack) Send(time.Duration, int) (time.Duration, bool) { return 0, false }
func (holdAllBack) Done(time.Duration, time.Duration, int, bool)  {}
func (holdAllBack) Retry(time.Duration, int) bool                 { return true }
