package retryplan_test

import (
	"fmt"
	"math"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/retrygo/retry"
	"github.com/retrygo/retry/retryplan"
)

// TestSimulateRecoveryOfSlowFleets has fleets whose arrivals alone are below 0.9 of their mean within most 5 s.
func TestSimulateRecoveryOfSlowFleets(t *testing.T) {
	outage := retryplan.Trigger{Kind: retryplan.Outage, From: time.Minute, For: time.Millisecond}
	policy := retry.Policy{MaxAttempts: 4, Backoff: retry.Backoff{Base: 100 * ms, Jitter: retry.FullJitter}}
	for _, rate := range []float64{0.1, 1, 5, 20} {
		for _, took := range []time.Duration{10 * ms, 900 * ms, 1900 * ms} {
			for seed := range uint64(5) {
				name := fmt.Sprintf("%v/s, %v, seed %d", rate, took, seed)
				s := retryplan.Scenario{
					Policy: policy, Rate: rate, Server: retryplan.Server{Service: retryplan.Constant(took)},
					Trigger: outage, Duration: 5 * time.Minute, Step: time.Second, Seed: seed,
				}
				r := simulated(t, s)
				require.True(t, r.Recovered, name)
				if took < time.Second { // all runs succeed, and each is due when it does
					require.Zero(t, r.Recovery, name)
				}
			}
		}
	}
}

// TestSimulateRecoveryOfLongWork has a healthy fleet whose attempts take longer than a window: it is well all the time.
func TestSimulateRecoveryOfLongWork(t *testing.T) {
	for _, took := range []retryplan.Dist{retryplan.Constant(3 * time.Second), retryplan.Exponential(2 * time.Second)} {
		for seed := range uint64(20) {
			s := retryplan.Scenario{
				Policy: retry.Policy{MaxAttempts: 1}, Rate: 1 + float64(seed%2), Server: retryplan.Server{Service: took},
				Trigger: retryplan.Trigger{Kind: retryplan.Surge, From: 30 * time.Second, For: time.Second, Factor: 1}, Step: time.Second, Seed: seed,
			}
			s.Duration = max(retryplan.Horizon(s), 4*time.Minute)
			r := simulated(t, s)
			require.True(t, r.Recovered, "%v, seed %d", took, seed)
		}
	}
}

// TestSimulateRecoveryHasToLast has a fleet that is well for half a minute after its trigger, until the retries of the
// runs that it hit come: one attempt a run takes a second of the server's time.
func TestSimulateRecoveryHasToLast(t *testing.T) {
	s := retryplan.Scenario{
		Policy: retry.Policy{
			MaxAttempts: 4, AttemptTimeout: time.Second, Backoff: retry.Backoff{Delays: []time.Duration{time.Minute, 30 * time.Minute, 3 * time.Hour}},
		},
		Rate: 70, Server: retryplan.Server{Workers: 1, Service: retryplan.Constant(10 * ms)},
		Trigger: retryplan.Trigger{Kind: retryplan.Stall, From: time.Minute, For: 10 * time.Second}, Step: time.Second,
	}
	require.Equal(t, 70*time.Second+(3*time.Hour+31*time.Minute+4*time.Second)+20*time.Second, retryplan.Horizon(s))
	for lasts, recovered := range map[time.Duration]bool{115 * time.Second: true, 4 * time.Minute: false, time.Hour: false} {
		s.Duration = lasts
		require.Equal(t, recovered, simulated(t, s).Recovered, lasts)
	}
}

// TestHorizon checks when the last retry of a run that the trigger hit can end, and 20 s of health after it.
func TestHorizon(t *testing.T) {
	const second, health = time.Second, 20 * time.Second
	for _, row := range []struct {
		name   string
		change func(*retryplan.Scenario)
		want   time.Duration
	}{
		{"waits and no time for attempts", func(*retryplan.Scenario) {}, 7 * second},
		{"attempts up to their timeout", func(s *retryplan.Scenario) { s.Policy.AttemptTimeout = second }, 11 * second},
		{"attempts as the server takes them", func(s *retryplan.Scenario) { s.Server.Service = retryplan.Constant(500 * ms) }, 9 * second},
		{"a TTL bounds starts", func(s *retryplan.Scenario) { s.Policy.TTL, s.Policy.AttemptTimeout = 5*second, second }, 6 * second},
		{"a deadline bounds all", func(s *retryplan.Scenario) { s.Deadline = 3 * second }, 3 * second},
		{"one attempt", func(s *retryplan.Scenario) { s.Policy.MaxAttempts = 1 }, 0},
		{"disabled", func(s *retryplan.Scenario) { s.Policy.Disabled = true }, 0},
		{"unlimited", func(s *retryplan.Scenario) { s.Policy.MaxAttempts, s.Policy.Cap = retry.Unlimited, 8*second }, 16 * second},
		{"a million attempts", func(s *retryplan.Scenario) { s.Policy.MaxAttempts, s.Policy.Cap = 1_000_000, second }, 999_999 * second},
		{"a Wait of the policy", func(s *retryplan.Scenario) {
			s.Policy.Cap, s.Policy.Wait = 9*second, func(int, error, time.Duration) time.Duration { return 0 }
		}, 27 * second},
		{"decorrelated", func(s *retryplan.Scenario) { s.Policy.Jitter, s.Policy.Cap = retry.DecorrelatedJitter, 4*second }, 3*second + 4*second + 4*second},
	} {
		s := retryplan.Scenario{
			Policy: retry.Policy{MaxAttempts: 4, Backoff: retry.Backoff{Base: second}},
			Rate:   1, Trigger: retryplan.Trigger{Kind: retryplan.Outage, From: second, For: second},
		}
		row.change(&s)
		require.Equal(t, 2*second+row.want+health, retryplan.Horizon(s), row.name)
	}
	require.Zero(t, retryplan.Horizon(retryplan.Scenario{Rate: 1}))
	require.Zero(t, retryplan.Horizon(retryplan.Scenario{Trigger: retryplan.Trigger{Kind: retryplan.Outage}}))
}

// TestSimulateRecoveryIsNotFooled has fleets that are ill, each in a way that a count of ended or begun runs alone
// takes for health.
func TestSimulateRecoveryIsNotFooled(t *testing.T) {
	blip := retryplan.Trigger{Kind: retryplan.Outage, From: 10 * time.Second, For: ms}
	for _, row := range []struct {
		name   string
		change func(*retryplan.Scenario)
	}{
		{"all runs fail, one in 5 s", func(s *retryplan.Scenario) { s.Rate, s.Server.FailureRate = 0.2, 1 }},
		{"all runs fail, 100 in 1 s", func(s *retryplan.Scenario) { s.Server.FailureRate = 1 }},
		{"no run ends", func(s *retryplan.Scenario) {
			s.Policy, s.Server.FailureRate = retry.Policy{MaxAttempts: retry.Unlimited, Backoff: retry.Backoff{Base: ms}}, 1
		}},
		{"overload: runs take ever longer, and all succeed", func(s *retryplan.Scenario) {
			s.Server = retryplan.Server{Workers: 1, Service: retryplan.Constant(12 * ms)}
		}},
		{"no runs at all", func(s *retryplan.Scenario) { s.Rate = 1e-6 }},
	} {
		t.Run(row.name, func(t *testing.T) {
			s := retryplan.Scenario{Policy: waits(), Rate: 100, Trigger: blip, Duration: 2 * time.Minute, Step: time.Second}
			row.change(&s)
			r := simulated(t, s)
			require.False(t, r.Recovered, "after %v", r.Recovery)
		})
	}
}

// TestSimulateRecoveryByAnotherCount counts begins and ends of runs outside of the simulation, in a fleet of one
// attempt a run and a queue in which they end in their order, and looks for the second by the sentence at
// Result.Recovered.
func TestSimulateRecoveryByAnotherCount(t *testing.T) {
	later := map[bool]int{}
	for seed := range uint64(40) {
		s := retryplan.Scenario{
			Policy:   retry.Policy{MaxAttempts: 1, AttemptTimeout: []time.Duration{ms * 900, 3 * time.Second}[seed%2]},
			Rate:     []float64{3, 12, 30}[seed%3],
			Server:   retryplan.Server{Workers: 1, Service: retryplan.Exponential(30 * ms)},
			Trigger:  retryplan.Trigger{Kind: retryplan.Stall, From: 5 * time.Second, For: 4*time.Second + 300*ms},
			Duration: 100 * time.Second, Step: time.Second, Seed: seed,
		}
		r, begun, ended, well, err := retryplan.Watched(t.Context(), s)
		require.NoError(t, err)
		at, ok := (&watch{begun, ended, well}).recovery(s)
		require.Equal(t, ok, r.Recovered, "seed %d", seed)
		require.Equal(t, at, r.Recovery, "seed %d", seed)
		later[at > 0]++
	}
	require.Greater(t, later[true], 5)
	require.Greater(t, later[false], 5)
}

// watch is when runs of one attempt began and ended.
type watch struct {
	begun []time.Duration
	ended []time.Duration
	well  []bool
}

func (w *watch) recovery(s retryplan.Scenario) (time.Duration, bool) {
	end := retryplan.End(s.Trigger)
	for at := time.Duration(0); end+at+20*time.Second <= s.Duration; at += time.Second {
		successes, ill := 0, false
		for from := end + at; from+5*time.Second <= end+at+20*time.Second; from += time.Second {
			due, well := 0, 0
			within := func(t time.Duration) bool { return t >= from && t < from+5*time.Second }
			for i, began := range w.begun {
				turns := began + 2*time.Second
				if i < len(w.ended) {
					turns = min(turns, w.ended[i])
					if within(w.ended[i]) && w.well[i] {
						well++
					}
				}
				if within(turns) {
					due++
				}
			}
			successes += well
			ill = ill || float64(well) < 0.9*min(5*s.Rate, float64(due))
		}
		if !ill && successes > 0 {
			return at, true
		}
	}
	return 0, false
}

// TestSimulateRecoveryNeeds20sOfHealth has triggers that end too late for that.
func TestSimulateRecoveryNeeds20sOfHealth(t *testing.T) {
	s := retryplan.Scenario{Policy: waits(), Rate: 10, Duration: time.Minute, Step: time.Second}
	for _, row := range []struct {
		trigger   retryplan.Trigger
		recovered bool
	}{
		{retryplan.Trigger{}, false},
		{retryplan.Trigger{Kind: retryplan.Stall, From: 30 * time.Second, For: 10 * time.Second}, true},
		{retryplan.Trigger{Kind: retryplan.Stall, From: 30 * time.Second, For: 10*time.Second + 1}, false},
		{retryplan.Trigger{Kind: retryplan.Stall, From: time.Hour, For: 1}, false},
		{retryplan.Trigger{Kind: retryplan.Stall, From: math.MaxInt64, For: math.MaxInt64}, false},
	} {
		s.Trigger = row.trigger
		require.Equal(t, row.recovered, simulated(t, s).Recovered, "%v", row.trigger)
	}
}
