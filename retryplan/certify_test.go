package retryplan_test

import (
	"context"
	"fmt"
	"math"
	"testing"
	"time"

	"github.com/retrygo/retry"
	"github.com/retrygo/retry/retryplan"
	"github.com/stretchr/testify/require"
)

// immediate makes so many attempts of 1s at once.
func immediate(attempts int) retry.Policy {
	return retry.Policy{MaxAttempts: attempts, Backoff: retry.Backoff{Delays: []time.Duration{0}}, AttemptTimeout: time.Second}
}

// canonical is the fleet of the timeout queue: 70 runs a second on a backend that does 100, which stalls for 10s.
func canonical() retryplan.Fleet {
	return retryplan.Fleet{Rate: 70, Capacity: 100, Trigger: retryplan.Trigger{Kind: retryplan.Stall, For: 10 * time.Second}}
}

func certify(t *testing.T, p retry.Policy, f retryplan.Fleet) retryplan.Certificate {
	t.Helper()
	c, err := retryplan.Certify(p, f)
	require.NoError(t, err)
	return c
}

func TestCertifyHiddenCapacity(t *testing.T) {
	for _, row := range []struct {
		rate float64
		want retryplan.Stability
	}{{15, retryplan.Safe}, {20, retryplan.Safe}, {24, retryplan.Safe}, {26, retryplan.Metastable}, {30, retryplan.Metastable},
		{70, retryplan.Metastable}, {95, retryplan.Metastable}, {100, retryplan.Overloaded}, {130, retryplan.Overloaded}} {
		t.Run(fmt.Sprintf("%v a second is %v", row.rate, row.want), func(t *testing.T) {
			f := canonical()
			f.Rate = row.rate
			c := certify(t, immediate(4), f)
			require.Equal(t, row.want, c.Stability)
			require.Equal(t, 4.0, c.Attempts)
			require.Equal(t, 25.0, c.HiddenCapacity)
			require.Equal(t, row.want == retryplan.Safe, c.Recovery >= 0)
			require.Equal(t, row.want == retryplan.Metastable, c.Tipping >= 0)
			require.GreaterOrEqual(t, c.Margin, 0.0)
			require.LessOrEqual(t, c.Margin, math.Abs(row.rate-25)/25+0.01, "the hidden capacity is a boundary")
		})
	}
}

func TestAStormFollowsWaitAndResetAfter(t *testing.T) {
	p := immediate(4)
	p.Delays = []time.Duration{time.Second, 2 * time.Second, 3 * time.Second}
	want := certify(t, p, canonical())
	p.Delays = []time.Duration{time.Minute}
	p.Wait = func(attempt int, err error, _ time.Duration) time.Duration {
		require.ErrorIs(t, err, retry.ErrAttemptTimeout)
		return time.Duration(attempt) * time.Second
	}
	require.Equal(t, want, certify(t, p, canonical()))

	p = immediate(4)
	p.ResetAfter = p.AttemptTimeout + 1
	require.Equal(t, certify(t, immediate(4), canonical()), certify(t, p, canonical()))
	p.ResetAfter = p.AttemptTimeout
	require.Equal(t, 1000.0, certify(t, p, canonical()).Attempts, "an attempt that hangs starts anew, without end")
}

func TestCertifyTriggerMustExceedTimeout(t *testing.T) {
	for _, row := range []struct {
		stall time.Duration
		want  retryplan.Stability
	}{{500 * time.Millisecond, retryplan.Vulnerable}, {800 * time.Millisecond, retryplan.Vulnerable},
		{time.Second, retryplan.Vulnerable}, {1200 * time.Millisecond, retryplan.Metastable}} {
		t.Run(fmt.Sprintf("a stall of %v is %v", row.stall, row.want), func(t *testing.T) {
			f := canonical()
			f.Trigger.For = row.stall
			c := certify(t, immediate(4), f)
			require.Equal(t, row.want, c.Stability)
			require.InDelta(t, 1.14, c.Tipping.Seconds(), 0.05)
		})
	}
}

// The law is (λ·D + S − μ·T)/(μ − λ); the measured figures are those of five seeds each.
func TestCertifyTimeToRecovery(t *testing.T) {
	for _, row := range []struct {
		name         string
		rate         float64
		attempts     int
		clients      int
		budget       *retry.BudgetConfig
		law          float64
		least, worst float64 // measured
	}{
		{"no retry", 70, 1, 1, nil, 20, 17, 23},
		{"a budget that successes fund", 70, 4, 1, &retry.BudgetConfig{Ratio: 0.1, Burst: 10}, 20.33, 17, 23},
		{"100 clients with 10 tokens each", 70, 4, 100, &retry.BudgetConfig{Ratio: 0.1, Burst: 10}, 53.3, 53, 59},
		{"100 clients with 5 tokens each", 70, 4, 100, &retry.BudgetConfig{Ratio: 0.1, Burst: 5}, 36.7, 34, 59},
		{"a budget at 85 a second", 85, 4, 1, &retry.BudgetConfig{Ratio: 0.2, Burst: 10}, 50.7, 50, 69},
		{"a budget at 90 a second", 90, 4, 1, &retry.BudgetConfig{Ratio: 0.2, Burst: 10}, 81, 69, 107},
	} {
		t.Run(row.name, func(t *testing.T) {
			f := canonical()
			f.Rate, f.Clients, f.Budget = row.rate, row.clients, row.budget
			c := certify(t, immediate(row.attempts), f)
			require.Equal(t, retryplan.Safe, c.Stability)
			require.Equal(t, 1.0, c.Attempts)
			require.Equal(t, 100.0, c.HiddenCapacity)
			require.InEpsilon(t, row.law, c.Recovery.Seconds(), 0.02)
			require.GreaterOrEqual(t, c.Recovery.Seconds(), row.least)
			require.LessOrEqual(t, c.Recovery.Seconds(), row.worst)
		})
	}
}

// A trouble of ten thousand timeouts is not stepped through, and the law still holds to a thousandth.
func TestCertifyLongTriggers(t *testing.T) {
	p, f := immediate(1), canonical()
	p.AttemptTimeout = 100 * time.Millisecond
	f.Trigger.For = 24 * time.Hour
	c := certify(t, p, f)
	require.Equal(t, retryplan.Safe, c.Stability)
	require.InEpsilon(t, (70*86400-10)/30.0, c.Recovery.Seconds(), 0.001)

	f.Budget = &retry.BudgetConfig{Ratio: 0.1, Burst: 1000}
	f.Shared = true
	c = certify(t, immediate(4), f)
	require.Equal(t, retryplan.Safe, c.Stability)
	require.InEpsilon(t, (70*86400+1000-100)/30.0, c.Recovery.Seconds(), 0.001)

	f.Budget = nil
	c = certify(t, immediate(4), f)
	require.Equal(t, retryplan.Metastable, c.Stability)
	require.Greater(t, c.Margin, 0.2, "it is the hidden capacity that decides")

	f.Trigger = retryplan.Trigger{Kind: retryplan.Slowdown, Factor: 1.2, For: 24 * time.Hour}
	c = certify(t, immediate(4), f)
	require.Equal(t, retryplan.Vulnerable, c.Stability)
	require.Equal(t, "trigger-below-timeout", c.Law)
	require.Negative(t, c.Tipping)
}

func TestCertifyNamesTheLaw(t *testing.T) {
	with := func(change func(p *retry.Policy, f *retryplan.Fleet)) (retry.Policy, retryplan.Fleet) {
		p, f := immediate(4), canonical()
		change(&p, &f)
		return p, f
	}
	for _, row := range []struct {
		law    string
		change func(p *retry.Policy, f *retryplan.Fleet)
	}{
		{"overload", func(_ *retry.Policy, f *retryplan.Fleet) { f.Rate = 100 }},
		{"slow-service", func(_ *retry.Policy, f *retryplan.Fleet) { f.Workers = 150 }},
		{"no-timeout", func(p *retry.Policy, _ *retryplan.Fleet) { p.AttemptTimeout = 0 }},
		{"hidden-capacity", func(*retry.Policy, *retryplan.Fleet) {}},
		{"hidden-capacity", func(p *retry.Policy, _ *retryplan.Fleet) { p.Disabled = true }},
		{"success-funded-budget", func(_ *retry.Policy, f *retryplan.Fleet) { f.Budget = &retry.BudgetConfig{} }},
		{"trigger-below-timeout", func(_ *retry.Policy, f *retryplan.Fleet) { f.Trigger.For = 500 * time.Millisecond }},
		{"trigger-below-timeout", func(_ *retry.Policy, f *retryplan.Fleet) { f.Trigger = retryplan.Trigger{} }},
		{"fluid", func(_ *retry.Policy, f *retryplan.Fleet) { f.Trigger.For = 1050 * time.Millisecond }},
		{"random-arrivals", func(p *retry.Policy, f *retryplan.Fleet) {
			p.AttemptTimeout, f.Rate, f.Trigger.For = 50*time.Millisecond, 90, time.Millisecond
		}},
	} {
		t.Run(row.law, func(t *testing.T) {
			p, f := with(row.change)
			c := certify(t, p, f)
			require.Equal(t, row.law, c.Law)
		})
	}
}

func TestCertifyCountsTheAttemptsThatTimeAllows(t *testing.T) {
	with := func(change func(p *retry.Policy, f *retryplan.Fleet)) float64 {
		p, f := immediate(10), canonical()
		change(&p, &f)
		return certify(t, p, f).Attempts
	}
	require.Equal(t, 10.0, with(func(*retry.Policy, *retryplan.Fleet) {}))
	require.Equal(t, 4.0, with(func(p *retry.Policy, _ *retryplan.Fleet) { p.TTL = 3 * time.Second }), "at 0s, 1s, 2s and 3s")
	require.Equal(t, 3.0, with(func(_ *retry.Policy, f *retryplan.Fleet) { f.Deadline = 3 * time.Second }), "none at 3s")
	require.Equal(t, 1.0, with(func(p *retry.Policy, f *retryplan.Fleet) { p.AttemptTimeout = 0; f.Deadline = 3 * time.Second }))
	require.Equal(t, 1.0, with(func(p *retry.Policy, _ *retryplan.Fleet) { p.Disabled = true }))
	require.Equal(t, 1.0, with(func(p *retry.Policy, _ *retryplan.Fleet) { p.Classify = retry.StopOn(context.DeadlineExceeded) }))
	require.Equal(t, 1000.0, with(func(p *retry.Policy, _ *retryplan.Fleet) { p.MaxAttempts = retry.Unlimited }))
	require.InDelta(t, 2, with(func(p *retry.Policy, f *retryplan.Fleet) { // 70 a second more for 100 clients, each with one a second
		f.Clients, f.Budget = 70, &retry.BudgetConfig{Trickle: 100 * time.Millisecond}
		p.MaxAttempts = 2
	}), 0.1, "nearly every retry is paid by Trickle")
	require.InDelta(t, 1.1, with(func(_ *retry.Policy, f *retryplan.Fleet) {
		f.Clients, f.Budget = 70, &retry.BudgetConfig{Trickle: 10 * time.Second}
	}), 0.01, "7 retries a second beside 70 runs")
}

// A full budget is one that successes have filled; without funding there is what there was at first.
func TestScenarioBeginsAfterALongCalm(t *testing.T) {
	f := canonical()
	f.Budget = &retry.BudgetConfig{Burst: 30, Initial: 2}
	require.Equal(t, 30, f.Scenario(immediate(4), 1).Budget.Initial)
	require.Equal(t, 2, f.Budget.Initial, "the fleet's own is not changed")
	f.Budget.Ratio = -1
	require.Equal(t, 2, f.Scenario(immediate(4), 1).Budget.Initial)

	f = canonical()
	f.Workers = 4
	s := f.Scenario(immediate(4), 7)
	require.Equal(t, retryplan.Server{Workers: 4, Service: retryplan.Constant(40 * time.Millisecond)}, s.Server)
	require.Equal(t, uint64(7), s.Seed)
	require.Equal(t, []retryplan.Trigger{{Kind: retryplan.Stall, From: 20 * time.Second, For: 10 * time.Second}}, s.Triggers)
	f.Trigger = retryplan.Trigger{}
	require.Empty(t, f.Scenario(immediate(4), 7).Triggers)
}

// A deadline of 600ms leaves the second attempt less time than the backend takes for one. Once no run is there any
// more, the first attempts alone say when the fleet is well.
func TestCertifyRecoveryDespiteHopelessAttempts(t *testing.T) {
	p := retry.Policy{MaxAttempts: 2, Backoff: retry.Backoff{Base: 10 * time.Millisecond, Jitter: retry.FullJitter}, AttemptTimeout: 500 * time.Millisecond}
	f := retryplan.Fleet{Rate: 30, Capacity: 100, Workers: 20, Deadline: 600 * time.Millisecond, Trigger: retryplan.Trigger{Kind: retryplan.Stall, For: time.Second}}
	c := certify(t, p, f)
	require.Equal(t, retryplan.Safe, c.Stability)
	require.InDelta(t, 0.9, c.Recovery.Seconds(), 0.3)
	require.Greater(t, c.Margin, 0.2)
}

// An answer at the moment of the timeout is late, in a simulation as in any client.
func TestCertifyServiceAsLongAsTheTimeout(t *testing.T) {
	p, f := immediate(1), canonical()
	f.Rate, f.Capacity = 0.5, 1
	c := certify(t, p, f)
	require.Equal(t, retryplan.Overloaded, c.Stability)
	require.Equal(t, "slow-service", c.Law)
	r, err := retryplan.Simulate(context.Background(), f.Scenario(p, 1))
	require.NoError(t, err)
	require.Zero(t, r.Endings[0])

	p.AttemptTimeout += time.Nanosecond
	require.NotEqual(t, "slow-service", certify(t, p, f).Law)
}

// 100,000 stored tokens carry a storm for hours, should chance start one.
func TestCertifyReportsTheStormThatTokensCanCarry(t *testing.T) {
	p, f := immediate(4), canonical()
	f.Rate, f.Clients, f.Budget, f.Trigger.For = 90, 1000, &retry.BudgetConfig{Burst: 100}, 900*time.Millisecond
	c := certify(t, p, f)
	require.Equal(t, "success-funded-budget", c.Law)
	require.Greater(t, c.Recovery, time.Hour)
	require.Less(t, c.Recovery, 6*time.Hour, "(λ·D + S − μ·T)/(μ − λ) is below 3h")

	f.Trigger.For = 10 * time.Millisecond
	require.Zero(t, certify(t, p, f).Recovery, "chance does not reach that far")

	f.Clients, f.Budget.Burst, f.Trigger.For = 1e9, 1e9, 10*time.Second
	require.Equal(t, time.Duration(math.MaxInt64), certify(t, p, f).Recovery)
}

func TestCertifyTippingIsNoLongerThanWhatTips(t *testing.T) {
	p, f := immediate(4), canonical()
	p.AttemptTimeout, f.Rate, f.Trigger.For = 50*time.Millisecond, 90, time.Millisecond
	c := certify(t, p, f)
	require.Equal(t, "random-arrivals", c.Law)
	require.Zero(t, c.Tipping, "none is needed")

	for _, stall := range []time.Duration{1200 * time.Millisecond, 1300 * time.Millisecond, 3 * time.Hour} {
		f = canonical()
		f.Trigger.For = stall
		c = certify(t, immediate(4), f)
		require.Equal(t, retryplan.Metastable, c.Stability)
		require.LessOrEqual(t, c.Tipping, stall)
		require.Positive(t, c.Tipping)
	}
}

// Waits of thousands of timeouts cannot be stepped through for every margin.
func TestCertifyGivesUpWhatTakesTooLong(t *testing.T) {
	f := retryplan.Fleet{Rate: 900, Capacity: 1100, Deadline: 100_000 * time.Hour, Trigger: retryplan.Trigger{Kind: retryplan.Stall, For: time.Hour}}
	c := certify(t, slowest(), f)
	require.Equal(t, retryplan.Metastable, c.Stability)
	require.Zero(t, c.Margin)
}

func slowest() retry.Policy {
	return retry.Policy{MaxAttempts: retry.Unlimited, AttemptTimeout: time.Millisecond,
		Backoff: retry.Backoff{Base: 24 * time.Hour, Cap: 2400 * time.Hour, Jitter: retry.DecorrelatedJitter}}
}

// The victims of a trigger come again when their waits end, and together.
func TestScenarioLastsUntilTheEcho(t *testing.T) {
	p := retry.Policy{MaxAttempts: 3, Backoff: retry.Backoff{Delays: []time.Duration{time.Minute, 5 * time.Minute}}, AttemptTimeout: time.Second}
	f := canonical()
	f.Rate, f.Trigger.For = 20, 2*time.Second
	s := f.Scenario(p, 1)
	require.GreaterOrEqual(t, s.Duration-s.Triggers[0].End(), 6*time.Minute+3*time.Second)

	p.Delays = []time.Duration{24 * time.Hour}
	s = f.Scenario(p, 1)
	require.LessOrEqual(t, s.Duration, 28*time.Hour, "two million runs are enough")
}

func TestCertifyReportsEveryBadField(t *testing.T) {
	p := immediate(4)
	p.Gate = func(context.Context) time.Duration { return 0 }
	p.Pay = func(context.Context, retry.Decision) bool { return true }
	p.Budget = retry.NewBudget(retry.BudgetConfig{})
	p.MaxAttempts = -5
	_, err := retryplan.Certify(p, retryplan.Fleet{Rate: math.NaN(), Capacity: -1, Workers: -1, Clients: -2, Deadline: -1, Failure: 1,
		Trigger: retryplan.Trigger{Kind: retryplan.Slowdown, Factor: math.Inf(1), For: -1}})
	require.Equal(t, []string{
		"Policy.MaxAttempts -5 is below -1, which is Unlimited",
		"Policy.Budget (set) is state of a running program: use Fleet.Budget",
		"Policy.Gate (set) is state of a running program",
		"Policy.Pay (set) is state of a running program",
		"Fleet.Rate NaN is not above 0",
		"Fleet.Capacity -1 is not above 0",
		"Fleet.Workers -1 is negative",
		"Fleet.Clients -2 is negative",
		"Fleet.Deadline -1ns is negative",
		"Fleet.Failure 1 is outside [0,1)",
		"Fleet.Trigger.Factor +Inf is not a finite number",
		"Fleet.Trigger.For -1ns is negative",
	}, fieldTexts(t, err))
	for _, trigger := range []retryplan.Trigger{{Kind: retryplan.Failing}, {Kind: retryplan.Failing, Factor: 1.1}, {Kind: 77},
		{Kind: retryplan.CapacityCut, Factor: 1}, {Kind: retryplan.Surge}, {Kind: retryplan.Surge, Factor: math.NaN()},
		{Kind: retryplan.Surge, Factor: math.Inf(1)}} {
		f := canonical()
		f.Trigger = trigger
		_, err := retryplan.Certify(immediate(4), f)
		var bad *retry.FieldError
		require.ErrorAs(t, err, &bad, "%+v", trigger)
		if math.IsInf(trigger.Factor, 1) {
			require.Equal(t, "is not a finite number", bad.Rule)
		}
	}
}

func TestStabilitiesHaveNames(t *testing.T) {
	require.Equal(t, "safe vulnerable metastable overloaded Stability(9)", fmt.Sprint(retryplan.Safe, " ", retryplan.Vulnerable, " ",
		retryplan.Metastable, " ", retryplan.Overloaded, " ", retryplan.Stability(9)))
}

// FuzzCertify holds what the doc comments promise of any fleet: an answer without a panic, in the ranges that are named.
func FuzzCertify(f *testing.F) {
	f.Add(70.0, 100.0, 4, int64(time.Second), int64(0), 1, int64(10*time.Second), uint8(1), 0.0, 10, int64(0))
	f.Add(98.0/3, 100.0/3, 4, int64(999_999_938), int64(0), 1, int64(10*time.Second), uint8(0), 0.0, 10, int64(0))
	f.Add(90.0, 100.0, -1, int64(time.Millisecond), int64(time.Hour), 1000, int64(time.Minute), uint8(3), 2.0, 1000, int64(time.Second))
	f.Fuzz(func(t *testing.T, rate, capacity float64, attempts int, timeout, base int64, clients int, lasts int64, kind uint8, factor float64, burst int, trickle int64) {
		p := retry.Policy{MaxAttempts: attempts, Backoff: retry.Backoff{Base: time.Duration(base), Jitter: retry.FullJitter}, AttemptTimeout: time.Duration(timeout)}
		fleet := retryplan.Fleet{Rate: rate, Capacity: capacity, Clients: clients,
			Trigger: retryplan.Trigger{Kind: retryplan.TriggerKind(kind), For: time.Duration(lasts), Factor: factor}}
		if burst > 0 {
			fleet.Budget = &retry.BudgetConfig{Burst: burst, Trickle: time.Duration(trickle)}
		}
		c, err := retryplan.Certify(p, fleet)
		if err != nil {
			return
		}
		require.Contains(t, []retryplan.Stability{retryplan.Safe, retryplan.Vulnerable, retryplan.Metastable, retryplan.Overloaded}, c.Stability)
		require.NotEmpty(t, c.Law)
		require.GreaterOrEqual(t, c.Attempts, 1.0)
		require.LessOrEqual(t, c.Attempts, 1000.0)
		require.Equal(t, c.Stability.Survives(), c.Recovery >= 0)
		require.GreaterOrEqual(t, c.Margin, 0.0)
		require.LessOrEqual(t, c.Margin, 1.0)
		tooMuch := rate >= capacity || c.Law == "slow-service" // if not, random arrivals alone can be too much
		require.Equal(t, c.Stability == retryplan.Overloaded, tooMuch || c.Stability == retryplan.Overloaded && c.Law == "random-arrivals")
	})
}

func BenchmarkCertify(b *testing.B) {
	b.Run("canonical", func(b *testing.B) {
		for b.Loop() {
			_, _ = retryplan.Certify(immediate(4), canonical())
		}
	})
	b.Run("waits of days", func(b *testing.B) {
		for b.Loop() {
			_, _ = retryplan.Certify(slowest(), retryplan.Fleet{Rate: 900, Capacity: 1100, Deadline: 100_000 * time.Hour,
				Trigger: retryplan.Trigger{Kind: retryplan.Stall, For: time.Hour}})
		}
	})
}
