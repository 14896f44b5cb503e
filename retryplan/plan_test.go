package retryplan_test

import (
	"math"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/retrygo/retry"
	"github.com/retrygo/retry/retryplan"
)

func planned(t testing.TB, p retry.Policy, m retryplan.Model) *retryplan.Plan {
	t.Helper()
	plan, err := retryplan.New(p, m)
	require.NoError(t, err)
	return plan
}

func TestTheZeroPolicyHasExactlyThePublishedSchedule(t *testing.T) {
	plan := planned(t, retry.Policy{}, retryplan.Model{})
	require.Len(t, plan.Attempts, 8)
	require.Equal(t, 8, plan.CanStart)
	require.False(t, plan.Truncated)
	var at time.Duration
	for i, wait := range []time.Duration{0, 5, 10, 20, 40, 80, 160, 320} {
		wait *= time.Second
		at += wait
		got := plan.Attempts[i]
		for _, d := range []time.Duration{got.Wait.Min(), got.Wait.Mean(), got.Wait.Quantile(.5), got.Wait.Max()} {
			require.Equal(t, wait, d)
		}
		got.Wait = retryplan.Distribution{}
		require.Equal(t, retryplan.PlannedAttempt{Starts: 1, Earliest: at, Latest: at}, got)
	}
	total := 10*time.Minute + 35*time.Second
	for _, d := range []retryplan.Distribution{plan.TotalWait, plan.Elapsed} {
		require.Equal(t, []time.Duration{total, total, total, total, total}, []time.Duration{d.Min(), d.Max(), d.Mean(), d.Quantile(1e-9), d.Quantile(1)})
		require.Equal(t, []float64{0, 1}, []float64{d.CDF(total - 1), d.CDF(total)})
	}
	require.Equal(t, total, plan.WorstCase)
	require.Equal(t, 8., plan.Load)
	require.Equal(t, map[retry.Reason]float64{retry.AttemptsExhausted: 1}, plan.Endings)
}

// irwinHall is the CDF of the sum of n uniforms on [0,1): Σ (−1)^k·C(n,k)·(x−k)^n / n! for k up to x.
func irwinHall(n int, x float64) (p float64) {
	binomial, factorial := 1., 1.
	for k := range n {
		factorial *= float64(k + 1)
		if x > float64(k) {
			p += math.Pow(-1, float64(k)) * binomial * math.Pow(x-float64(k), float64(n))
		}
		binomial *= float64(n-k) / float64(k+1)
	}
	return p / factorial
}

func TestEvenWaitsAddUpByIrwinAndHall(t *testing.T) {
	for _, waits := range []int{1, 2, 3, 5, 10} {
		plan := planned(t, retry.Policy{MaxAttempts: waits + 1, Backoff: retry.Backoff{Mode: retry.Fixed, Base: time.Second, Jitter: retry.FullJitter}}, retryplan.Model{})
		for x := 0.; x <= float64(waits); x += 0.01 {
			got := plan.TotalWait.CDF(time.Duration(x * float64(time.Second)))
			require.InDelta(t, irwinHall(waits, x), got, 1e-4, "%d waits, %v", waits, x)
		}
		require.InDelta(t, float64(waits)/2, plan.TotalWait.Mean().Seconds(), 1e-6)
	}
}

func TestTwoUnequalWaitsAddUpToATrapezium(t *testing.T) {
	// U[0,1s) + U[0,2s): the density rises to 1/2 at 1s, stays, and falls from 2s to 3s.
	plan := planned(t, retry.Policy{MaxAttempts: 3, Backoff: retry.Backoff{Base: time.Second, Jitter: retry.FullJitter}}, retryplan.Model{})
	for _, row := range []struct {
		at   time.Duration
		want float64
	}{
		{millis(0), 0}, {millis(500), 0.0625}, {millis(1000), 0.25}, {millis(1500), 0.5},
		{millis(2000), 0.75}, {millis(2500), 0.9375}, {millis(3000), 1},
	} {
		require.InDelta(t, row.want, plan.TotalWait.CDF(row.at), 1e-5, row.at)
	}
	require.InDelta(t, 1.5, plan.TotalWait.Quantile(0.5).Seconds(), 1e-4)
}

func TestShortWaitsAreCountedInWholeNanoseconds(t *testing.T) {
	// {0,1,2} + {0,...,5}: 18 pairs.
	plan := planned(t, retry.Policy{MaxAttempts: 3, Backoff: retry.Backoff{Base: 3, Jitter: retry.FullJitter}}, retryplan.Model{})
	for at, pairs := range []float64{1, 3, 6, 9, 12, 15, 17, 18} {
		require.InDelta(t, pairs/18, plan.TotalWait.CDF(time.Duration(at)), 1e-12, at)
	}
}

func TestDecorrelatedWaitsHaveThePublishedMeans(t *testing.T) {
	// The mean without a cap is Base·(2·1.5^k − 1), and the first four waits cannot reach it. The later ones are below
	// those of AWS's definition (1.411, 2.025, ...), which clips the sample and not the window: they are those of
	// samples of Jittered.
	p := retry.Policy{MaxAttempts: 6, Backoff: retry.Backoff{Base: millis(100), Cap: 10 * time.Second, Jitter: retry.DecorrelatedJitter}}
	plan := planned(t, p, retryplan.Model{})
	var total float64
	for i, want := range []float64{.200, .350, .575, .9125, 1.3917} {
		got := plan.Attempts[i+1].Wait
		require.InEpsilon(t, want, got.Mean().Seconds(), 0.005)
		require.LessOrEqual(t, got.Quantile(.5), got.Quantile(.9))
		require.LessOrEqual(t, got.Quantile(.9), got.Quantile(.99))
		total += got.Mean().Seconds()
	}
	require.InEpsilon(t, total, plan.TotalWait.Mean().Seconds(), 0.002)
	require.InDelta(t, 0.200, plan.Attempts[1].Wait.Mean().Seconds(), 1e-5)
	require.InDelta(t, 0.350, plan.Attempts[2].Wait.Mean().Seconds(), 1e-4)
}

func TestSuccessAndLoadAreClosedFormsWithoutLimits(t *testing.T) {
	for _, f := range []float64{0, 0.01, 0.1, 0.3, 0.5, 0.75, 0.999, 1} {
		for _, jitter := range []retry.JitterMode{retry.NoJitter, retry.FullJitter, retry.DecorrelatedJitter} {
			p := retry.Policy{MaxAttempts: 4, Backoff: retry.Backoff{Jitter: jitter}}
			plan := planned(t, p, retryplan.Model{Failure: []float64{f}, Duration: retryplan.Exponential(time.Second)})
			require.InDelta(t, 1-math.Pow(f, 4), plan.Success, 1e-10)
			require.InDelta(t, 1+f+f*f+f*f*f, plan.Load, 1e-10)
		}
	}
}

func TestLimitsAreMetToTheNanosecond(t *testing.T) {
	second := retry.Backoff{Mode: retry.Fixed, Base: time.Second}
	for _, row := range []struct {
		name      string
		policy    retry.Policy
		model     retryplan.Model
		effective int
		never     retry.Reason
		endings   map[retry.Reason]float64
		worst     time.Duration
	}{
		{
			"a retry exactly at the TTL is made",
			retry.Policy{MaxAttempts: 5, Backoff: second, TTL: 2 * time.Second}, retryplan.Model{},
			3, retry.TTLElapsed, map[retry.Reason]float64{retry.TTLElapsed: 1}, 2 * time.Second,
		},
		{
			"a retry 1ns after the TTL is not",
			retry.Policy{MaxAttempts: 5, Backoff: second, TTL: 2*time.Second - 1}, retryplan.Model{},
			2, retry.TTLElapsed, map[retry.Reason]float64{retry.TTLElapsed: 1}, time.Second,
		},
		{
			"a wait that ends at the deadline is not begun",
			retry.Policy{MaxAttempts: 5, Backoff: second}, retryplan.Model{Deadline: 2 * time.Second},
			2, retry.DeadlineTooNear, map[retry.Reason]float64{retry.DeadlineTooNear: 1}, time.Second,
		},
		{
			"a wait that ends 1ns before the deadline is",
			retry.Policy{MaxAttempts: 5, Backoff: second}, retryplan.Model{Deadline: 2*time.Second + 1},
			3, retry.DeadlineTooNear, map[retry.Reason]float64{retry.DeadlineTooNear: 1}, 2 * time.Second,
		},
		{
			"TTL goes before a deadline that is too near",
			retry.Policy{MaxAttempts: 5, Backoff: second, TTL: millis(500)}, retryplan.Model{Deadline: millis(400)},
			1, retry.TTLElapsed, map[retry.Reason]float64{retry.TTLElapsed: 1}, 0,
		},
		{
			"an attempt that outlasts the deadline ends at it",
			retry.Policy{MaxAttempts: 5, Backoff: second}, retryplan.Model{Deadline: millis(400), Duration: retryplan.Constant(time.Second), Failure: []float64{0}},
			1, retry.DeadlinePassed, map[retry.Reason]float64{retry.DeadlinePassed: 1}, millis(400),
		},
		{
			"a success exactly at the deadline is one",
			retry.Policy{MaxAttempts: 5, Backoff: second}, retryplan.Model{Deadline: time.Second, Duration: retryplan.Constant(time.Second), Failure: []float64{0.25}},
			1, retry.DeadlinePassed, map[retry.Reason]float64{0: 0.75, retry.DeadlinePassed: 0.25}, time.Second,
		},
		{
			"AttemptTimeout cuts a longer attempt",
			retry.Policy{MaxAttempts: 2, Backoff: second, AttemptTimeout: time.Second - 1}, retryplan.Model{Duration: retryplan.Constant(time.Second), Failure: []float64{0}},
			2, 0, map[retry.Reason]float64{retry.AttemptsExhausted: 1}, 3*time.Second - 2,
		},
		{
			"AttemptTimeout leaves one that takes just as long",
			retry.Policy{MaxAttempts: 2, Backoff: second, AttemptTimeout: time.Second}, retryplan.Model{Duration: retryplan.Constant(time.Second), Failure: []float64{0}},
			2, 0, map[retry.Reason]float64{0: 1}, time.Second,
		},
		{
			"a disabled policy makes one attempt",
			retry.Policy{MaxAttempts: 2, Backoff: second, Disabled: true}, retryplan.Model{Failure: []float64{0.5}},
			1, retry.RetriesDisabled, map[retry.Reason]float64{0: 0.5, retry.RetriesDisabled: 0.5}, 0,
		},
	} {
		t.Run(row.name, func(t *testing.T) {
			plan := planned(t, row.policy, row.model)
			require.Equal(t, row.effective, plan.CanStart)
			require.Equal(t, row.never, plan.Attempts[len(plan.Attempts)-1].Never)
			require.Equal(t, row.endings, plan.Endings)
			require.Equal(t, row.worst, plan.WorstCase)
			require.Equal(t, row.worst, plan.Elapsed.Quantile(1))
		})
	}
}

func TestEndingsThatCannotHappenAreLeftOut(t *testing.T) {
	for _, jitter := range []retry.JitterMode{retry.NoJitter, retry.FullJitter, retry.EqualJitter, retry.RatioJitter, retry.DecorrelatedJitter} {
		for _, duration := range []retryplan.Dist{{}, retryplan.Constant(10 * time.Millisecond), retryplan.Uniform(0, 20*time.Millisecond)} {
			plan := planned(t, retry.Policy{
				MaxAttempts: 4,
				Backoff:     retry.Backoff{Base: 100 * time.Millisecond, Cap: time.Second, Jitter: jitter},
				TTL:         10 * time.Second,
			}, retryplan.Model{Failure: []float64{1e-4}, Duration: duration, Deadline: 20 * time.Second})
			require.Len(t, plan.Endings, 2, "%v %v", jitter, duration)
			require.InEpsilon(t, 1e-16, plan.Endings[retry.AttemptsExhausted], 1e-6)
		}
	}
}

func TestLimitsThatAreNeverMetChangeNothing(t *testing.T) {
	for _, duration := range []retryplan.Dist{{}, retryplan.Uniform(0, 20*time.Millisecond)} {
		for _, jitter := range []retry.JitterMode{retry.NoJitter, retry.FullJitter, retry.DecorrelatedJitter} {
			p := retry.Policy{MaxAttempts: 6, Backoff: retry.Backoff{Base: 10 * time.Millisecond, Cap: time.Minute, Jitter: jitter}}
			m := retryplan.Model{Failure: []float64{0.5}, Duration: duration}
			want := planned(t, p, m)
			p.TTL = 24 * time.Hour
			require.Equal(t, want, planned(t, p, m))
			m.Deadline = 48 * time.Hour
			got := planned(t, p, m)
			require.Equal(t, want.Endings, got.Endings)
			for q := 0.; q <= 1; q += 0.01 {
				require.InDelta(t, float64(want.Elapsed.Quantile(q)), float64(got.Elapsed.Quantile(q)), 1e3)
			}
		}
	}
}

func TestUniformDurationsFarFromZeroAreExact(t *testing.T) {
	const far = 5000 * time.Hour
	for _, width := range []time.Duration{1, 2, 100, 1000} {
		d := retryplan.Uniform(far, far+width)
		plan := planned(t, retry.Policy{MaxAttempts: 1}, retryplan.Model{Duration: d, Failure: []float64{0.25}})
		require.Len(t, plan.Endings, 2)
		require.InDelta(t, 0.75, plan.Endings[0], 1e-12)
		require.InDelta(t, 0.25, plan.Endings[retry.AttemptsExhausted], 1e-12)
		for i := range width {
			want := float64(i+1) / float64(width)
			require.InDelta(t, want, d.CDF(far+i), 1e-12)
			require.InDelta(t, want, plan.Elapsed.CDF(far+i), 1e-9, "%d of %d", i, width)
		}
		require.InDelta(t, float64(width-1)/2, float64(plan.Elapsed.Mean()-far), 0.51)
	}
}

func TestOfAPolicyThatGoesOnTheFirstHundredAttemptsArePlanned(t *testing.T) {
	for attempts, truncated := range map[int]bool{retry.Unlimited: true, 101: true, 100: false} {
		plan := planned(t, retry.Policy{MaxAttempts: attempts}, retryplan.Model{})
		require.Len(t, plan.Attempts, 100)
		require.Equal(t, truncated, plan.Truncated)
		require.Equal(t, map[retry.Reason]float64{retry.AttemptsExhausted: 1}, plan.Endings)
	}
	require.False(t, planned(t, retry.Policy{MaxAttempts: retry.Unlimited, Disabled: true}, retryplan.Model{}).Truncated)
}

func TestClassifyGateAndRandAreNotCalled(t *testing.T) {
	p := retry.Policy{
		Backoff:  retry.Backoff{Jitter: retry.FullJitter},
		Classify: func(error) retry.Class { panic("classified") },
		Rand:     func() float64 { panic("drawn") },
	}
	require.Equal(t, 8., math.Round(planned(t, p, retryplan.Model{}).Load*1e9)/1e9)
}

func TestBadModelsAreRefusedFieldByField(t *testing.T) {
	_, err := retryplan.New(retry.Policy{MaxAttempts: -2}, retryplan.Model{Failure: []float64{0.5, math.NaN(), 2}, Deadline: -1})
	require.EqualError(t, err, "retry: Policy.MaxAttempts -2 is below -1, which is Unlimited; "+
		"retryplan: Model.Failure[1] NaN is outside [0,1]; Model.Failure[2] 2 is outside [0,1]; "+
		"Model.Deadline -1ns is negative")
	var bad *retry.FieldError
	require.ErrorAs(t, err, &bad)
	require.Equal(t, retry.FieldError{Field: "Policy.MaxAttempts", Value: "-2", Rule: "is below -1, which is Unlimited"}, *bad)
}

func TestWhatNoPlanFollowsIsRefused(t *testing.T) {
	p := retry.Policy{Wait: func(int, error, time.Duration) time.Duration { panic("asked") }}
	_, err := retryplan.New(p, retryplan.Model{})
	require.EqualError(t, err, "retryplan: Policy.Wait (set) is code, whose waits have no distribution to compute with")

	p = retry.Policy{ResetAfter: time.Minute}
	m := retryplan.Model{Duration: retryplan.Exponential(time.Second)}
	_, err = retryplan.New(p, m)
	require.EqualError(t, err, "retryplan: Policy.ResetAfter 1m can be reached by an attempt, and a plan counts attempts without resets")
	p.AttemptTimeout = time.Minute - 1
	require.Equal(t, planned(t, retry.Policy{AttemptTimeout: p.AttemptTimeout}, m), planned(t, p, m))
}

func TestHugeDurationsSaturate(t *testing.T) {
	const most = time.Duration(math.MaxInt64)
	for _, jitter := range []retry.JitterMode{retry.NoJitter, retry.FullJitter, retry.EqualJitter, retry.RatioJitter, retry.DecorrelatedJitter} {
		for _, d := range []retryplan.Dist{{}, retryplan.Constant(most), retryplan.Exponential(most), retryplan.LogNormal(1, most), retryplan.Uniform(0, most)} {
			p := retry.Policy{MaxAttempts: 12, Backoff: retry.Backoff{Base: 1 << 58, Cap: most, Jitter: jitter}}
			plan := planned(t, p, retryplan.Model{Duration: d, Failure: []float64{0.5}})
			require.Equal(t, most, plan.WorstCase)
			require.InDelta(t, 1-math.Pow(0.5, 12), plan.Success, 1e-9)
			require.Equal(t, 1., plan.TotalWait.CDF(most))
		}
	}
}

func FuzzPlanKeepsItsPromises(f *testing.F) {
	f.Add(int64(1e8), int64(1e10), int64(1e9), int64(1e9), int64(2e9), uint8(0x30), uint8(10), 0.5, int64(1e7), int64(1e8))
	f.Add(int64(1), int64(3), int64(0), int64(0), int64(0), uint8(0x10), uint8(30), 1., int64(1), int64(2))
	f.Add(int64(1e9), int64(math.MaxInt64), int64(0), int64(math.MaxInt64), int64(0), uint8(0x43), uint8(99), 0.1, int64(1), int64(math.MaxInt64))
	f.Add(int64(1e9), int64(math.MaxInt64), int64(0), int64(math.MaxInt64), int64(0), uint8(0x88), uint8('c'), 0.1, int64(1), int64(math.MaxInt64))
	f.Add(int64(1e9), int64(math.MaxInt64), int64(0), int64(math.MaxInt64), int64(0), uint8(0x88), uint8('\''), 0.1, int64(89), int64(math.MaxInt64-11))
	f.Fuzz(func(t *testing.T, base, limit, timeout, ttl, deadline int64, kinds, attempts uint8, failure float64, a, b int64) {
		p := retry.Policy{
			MaxAttempts: int(attempts%40) + 1,
			Backoff:     retry.Backoff{Mode: retry.Mode(kinds & 3 % 3), Base: time.Duration(base), Cap: time.Duration(limit), Jitter: retry.JitterMode(kinds >> 2 & 7)},
			TTL:         time.Duration(ttl), AttemptTimeout: time.Duration(timeout),
		}
		dists := []retryplan.Dist{
			retryplan.Constant(time.Duration(a)), retryplan.Exponential(time.Duration(a)),
			retryplan.Uniform(time.Duration(a), time.Duration(b)), retryplan.LogNormal(time.Duration(a), time.Duration(b)),
		}
		m := retryplan.Model{Failure: []float64{failure}, Deadline: time.Duration(deadline), Duration: dists[int(kinds>>5)%len(dists)]}
		plan, err := retryplan.New(p, m)
		if err != nil {
			return
		}
		var endings float64
		for reason, share := range plan.Endings {
			require.True(t, share > 0 && share <= 1+1e-9, "%v: %v", reason, share)
			endings += share
		}
		require.InDelta(t, 1, endings, 1e-9)
		require.InDelta(t, plan.Success, plan.Endings[0], 1e-12)
		require.True(t, plan.Load >= 1-1e-9 && plan.Load <= float64(len(plan.Attempts))+1e-9, plan.Load)
		if ttl == 0 && deadline == 0 && timeout == 0 {
			require.InDelta(t, 1-math.Pow(failure, float64(len(plan.Attempts))), plan.Success, 1e-9)
		}
		lo, hi := p.TotalWait()
		require.Equal(t, []time.Duration{lo, hi}, []time.Duration{plan.TotalWait.Min(), plan.TotalWait.Max()})
		before := plan.Attempts[0]
		require.InDelta(t, 1, before.Starts, 1e-12)
		for _, a := range plan.Attempts[1:] {
			require.LessOrEqual(t, a.Starts, before.Starts+1e-12)
			require.True(t, a.Never == 0 || a.Starts == 0)
			p50, p90, p99 := a.Wait.Quantile(.5), a.Wait.Quantile(.9), a.Wait.Quantile(.99)
			require.True(t, a.Wait.Min() <= p50 && p50 <= p90 && p90 <= p99 && p99 <= a.Wait.Max(), "%+v", a.Wait)
			require.LessOrEqual(t, a.Earliest, a.Latest)
			before = a
		}
		for _, d := range []retryplan.Distribution{plan.TotalWait, plan.Elapsed} {
			keepsPromises(t, d)
		}
	})
}

func keepsPromises(t *testing.T, d retryplan.Distribution) {
	t.Helper()
	require.True(t, d.Min() <= d.Mean() && d.Mean() <= d.Max(), "%v %v %v", d.Min(), d.Mean(), d.Max())
	last := 0.
	for i := range 20 {
		x := d.Min() + (d.Max()-d.Min())/19*time.Duration(i)
		below, at := d.CDF(x-1), d.CDF(x)
		require.True(t, at >= last-1e-12 && at >= below-1e-12 && at <= 1, "%v %v after %v", below, at, last)
		last = at
	}
	require.Equal(t, 1., d.CDF(d.Max()))
	for q := 0.; q <= 1; q += 1. / 16 {
		x := d.Quantile(q)
		require.GreaterOrEqual(t, d.CDF(x), q)
		if x > d.Min() {
			require.Less(t, d.CDF(x-1), q)
		}
	}
}

func BenchmarkNew(b *testing.B) {
	backoff := retry.Backoff{Base: 100 * time.Millisecond, Cap: 10 * time.Second}
	for _, jitter := range []retry.JitterMode{retry.NoJitter, retry.FullJitter, retry.EqualJitter, retry.RatioJitter, retry.DecorrelatedJitter} {
		for _, d := range []retryplan.Dist{{}, retryplan.Exponential(50 * time.Millisecond)} {
			for _, ttl := range []time.Duration{0, 20 * time.Second} {
				name := jitter.String() + "/duration " + d.String() + "/ttl " + ttl.String()
				b.Run(name, func(b *testing.B) {
					p := retry.Policy{MaxAttempts: 10, Backoff: backoff, TTL: ttl}
					p.Jitter = jitter
					b.ReportAllocs()
					for b.Loop() {
						_, err := retryplan.New(p, retryplan.Model{Failure: []float64{0.5}, Duration: d})
						require.NoError(b, err)
					}
				})
			}
		}
	}
}
