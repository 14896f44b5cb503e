package retry_test

import (
	"context"
	"errors"
	"fmt"
	"math"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/retrygo/retry"
)

func TestTheZeroPolicyIsValid(t *testing.T) {
	require.NoError(t, retry.Policy{}.Validate())
	require.NoError(t, retry.Backoff{}.Validate())
	for _, p := range []retry.Policy{retry.Aggressive(), retry.Standard(), retry.Patient(), retry.Cautious()} {
		require.NoError(t, p.Validate())
	}
}

func TestPresetsAreNewEachTime(t *testing.T) {
	retry.Standard().Delays[0] = 0
	require.Equal(t, minute, retry.Standard().Delays[0])
}

func TestValidateNamesFieldValueAndRule(t *testing.T) {
	for _, row := range []struct {
		policy retry.Policy
		want   string
	}{
		{retry.Policy{MaxAttempts: -2}, "Policy.MaxAttempts -2 is below -1, which is Unlimited"},
		{retry.Policy{MaxAttempts: math.MinInt32}, "Policy.MaxAttempts -2147483648 is below -1, which is Unlimited"},
		{retry.Policy{AttemptTimeout: -sec}, "Policy.AttemptTimeout -1s is negative"},
		{retry.Policy{TTL: -sec}, "Policy.TTL -1s is negative"},
		{retry.Policy{MaxHint: -sec}, "Policy.MaxHint -1s is negative"},
		{retry.Policy{AttemptTimeout: 2 * minute, TTL: minute}, "Policy.AttemptTimeout 2m is above TTL 1m"},
		{backoff(retry.Backoff{Mode: 5}), "Policy.Mode 5 is not one of Exponential, Linear, Fixed and List"},
		{backoff(retry.Backoff{Base: -1}), "Policy.Base -1ns is negative"},
		{backoff(retry.Backoff{Cap: -1}), "Policy.Cap -1ns is negative"},
		{backoff(retry.Backoff{Base: 5 * sec, Cap: sec}), "Policy.Cap 1s is below Base 5s"},
		{backoff(retry.Backoff{Factor: math.NaN()}), "Policy.Factor NaN is not a finite number"},
		{backoff(retry.Backoff{Factor: math.Inf(1)}), "Policy.Factor +Inf is not a finite number"},
		{backoff(retry.Backoff{Factor: -2}), "Policy.Factor -2 is negative"},
		{backoff(retry.Backoff{Mode: retry.Linear, Factor: -2}), "Policy.Factor -2 is negative"},
		{backoff(retry.Backoff{Factor: 0.5}), "Policy.Factor 0.5 is below 1, which Exponential needs"},
		{backoff(retry.Backoff{Mode: retry.List}), "Policy.Delays [] is empty, and Mode List needs one delay at least"},
		{backoff(retry.Backoff{Mode: retry.Fixed, Delays: list}), "Policy.Mode fixed is set together with Delays, which need Mode List or none"},
		{backoff(retry.Backoff{Base: sec, Delays: list}), "Policy.Base 1s is set together with Delays"},
		{backoff(retry.Backoff{Factor: 2, Delays: list}), "Policy.Factor 2 is set together with Delays"},
		{backoff(retry.Backoff{Delays: []time.Duration{0, sec, -sec}}), "Policy.Delays[2] -1s is negative"},
		{backoff(retry.Backoff{Delays: []time.Duration{-1, -1, -1, -1, -1, -1, -1, -1, -1, -1, -1, -1, -1}}),
			"Policy.Delays[0] -1ns is negative; Policy.Delays[1] -1ns is negative; Policy.Delays[2] -1ns is negative; " +
				"Policy.Delays[3] -1ns is negative; Policy.Delays[4] -1ns is negative; Policy.Delays[5] -1ns is negative; " +
				"Policy.Delays[6] -1ns is negative; Policy.Delays[7] -1ns is negative; Policy.Delays[8] -1ns is negative; " +
				"Policy.Delays[9] -1ns is negative; Policy.Delays[10] -1ns is negative; " +
				"Policy.Delays[11] -1ns is negative, and later ones are not looked at"},
		{backoff(retry.Backoff{Jitter: 5}),
			"Policy.Jitter 5 is not one of NoJitter, FullJitter, EqualJitter, RatioJitter and DecorrelatedJitter"},
		{backoff(retry.Backoff{Mode: retry.Linear, Jitter: retry.DecorrelatedJitter}),
			"Policy.Jitter decorrelated goes with Exponential only, not with linear"},
		{backoff(retry.Backoff{Delays: list, Jitter: retry.DecorrelatedJitter}),
			"Policy.Jitter decorrelated goes with Exponential only, not with list"},
		{backoff(retry.Backoff{JitterRatio: 0.5}), "Policy.JitterRatio 0.5 is set without RatioJitter"},
		{backoff(retry.Backoff{Jitter: retry.FullJitter, JitterRatio: 0.5}), "Policy.JitterRatio 0.5 is set without RatioJitter"},
		{backoff(retry.Backoff{Jitter: retry.RatioJitter, JitterRatio: 1.5}), "Policy.JitterRatio 1.5 is outside (0,1]"},
		{backoff(retry.Backoff{Jitter: retry.RatioJitter, JitterRatio: -0.5}), "Policy.JitterRatio -0.5 is outside (0,1]"},
		{backoff(retry.Backoff{Jitter: retry.RatioJitter, JitterRatio: math.NaN()}), "Policy.JitterRatio NaN is outside (0,1]"},
		{retry.Policy{MaxAttempts: -3, TTL: -1, Backoff: retry.Backoff{Base: 3, Cap: 2}},
			"Policy.Cap 2ns is below Base 3ns; Policy.MaxAttempts -3 is below -1, which is Unlimited; Policy.TTL -1ns is negative"},
	} {
		t.Run(row.want, func(t *testing.T) {
			err := row.policy.Validate()
			require.EqualError(t, err, "retry: "+row.want)
			var field *retry.FieldError
			require.ErrorAs(t, err, &field)
			require.Contains(t, row.want, field.Field+" "+field.Value+" "+field.Rule)

			calls := 0
			err = retry.Do(context.Background(), row.policy, func(context.Context) error { calls++; return nil })
			require.EqualError(t, err, "retry: "+row.want, "Do refuses what Validate refuses")
			require.Zero(t, calls, "and makes no attempt")
			var failed *retry.Error
			require.False(t, errors.As(err, &failed), "nothing ran, so it is no *Error")
		})
	}
	t.Run("every bad field is found by errors.As, each as a line of its own", func(t *testing.T) {
		err := retry.Policy{MaxAttempts: -3, TTL: -1}.Validate()
		var texts []string
		for _, e := range err.(interface{ Unwrap() []error }).Unwrap() {
			texts = append(texts, e.Error())
		}
		require.Equal(t, []string{
			"retry: Policy.MaxAttempts -3 is below -1, which is Unlimited", "retry: Policy.TTL -1ns is negative"}, texts)
	})
	t.Run("a Backoff speaks of itself", func(t *testing.T) {
		require.EqualError(t, retry.Backoff{Base: -1}.Validate(), "retry: Backoff.Base -1ns is negative")
	})
}

var list = []time.Duration{sec}

func backoff(b retry.Backoff) retry.Policy { return retry.Policy{Backoff: b} }

func TestValidateAllows(t *testing.T) {
	for name, p := range map[string]retry.Policy{
		"unlimited attempts":                    {MaxAttempts: retry.Unlimited},
		"a base above the default cap":          backoff(retry.Backoff{Base: 2 * hour}),
		"a cap below the default base":          backoff(retry.Backoff{Cap: ms}),
		"a base equal to the cap":               backoff(retry.Backoff{Base: sec, Cap: sec}),
		"a list with its mode":                  backoff(retry.Backoff{Mode: retry.List, Delays: list}),
		"a list with a cap and jitter":          backoff(retry.Backoff{Delays: list, Cap: ms, Jitter: retry.FullJitter}),
		"a list of zeros":                       backoff(retry.Backoff{Delays: []time.Duration{0}}),
		"an empty list without the mode":        backoff(retry.Backoff{Delays: []time.Duration{}}),
		"linear with a fraction":                backoff(retry.Backoff{Mode: retry.Linear, Factor: 0.1}),
		"exponential with factor 1":             backoff(retry.Backoff{Factor: 1}),
		"ratio jitter of 1":                     backoff(retry.Backoff{Jitter: retry.RatioJitter, JitterRatio: 1}),
		"decorrelated jitter without a mode":    backoff(retry.Backoff{Jitter: retry.DecorrelatedJitter}),
		"an attempt timeout equal to the TTL":   {AttemptTimeout: sec, TTL: sec},
		"an attempt timeout without a TTL":      {AttemptTimeout: hour},
		"the largest of everything":             {MaxAttempts: math.MaxInt, TTL: longest, MaxHint: longest, AttemptTimeout: longest},
		"a disabled policy with everything set": {Disabled: true, MaxAttempts: 9, TTL: hour},
	} {
		t.Run(name, func(t *testing.T) { require.NoError(t, p.Validate()) })
	}
}

func TestOr(t *testing.T) {
	full := retry.Policy{
		Name: "defaults", MaxAttempts: 5,
		Backoff:        retry.Backoff{Mode: retry.Linear, Base: sec, Factor: 3, Cap: minute, Jitter: retry.RatioJitter, JitterRatio: 0.3},
		AttemptTimeout: sec, TTL: hour, MaxHint: minute,
	}
	t.Run("the zero policy takes everything", func(t *testing.T) {
		require.Equal(t, full, retry.Policy{}.Or(full))
	})
	t.Run("a full policy takes nothing", func(t *testing.T) {
		require.Equal(t, full, full.Or(retry.Policy{
			Name: "x", MaxAttempts: 1, Backoff: retry.Backoff{Mode: retry.Fixed, Base: 1, Factor: 1, Cap: 1, Jitter: retry.FullJitter},
			AttemptTimeout: 1, TTL: 1, MaxHint: 1}))
	})
	t.Run("the zero defaults give nothing", func(t *testing.T) {
		require.Equal(t, full, full.Or(retry.Policy{}))
	})
	for name, own := range map[string]retry.Backoff{
		"Mode":   {Mode: retry.Fixed},
		"Base":   {Base: 2 * sec},
		"Factor": {Factor: 2},
		"Delays": {Delays: list},
	} {
		t.Run(name+" alone keeps the formula's other three", func(t *testing.T) {
			got := retry.Policy{Backoff: own}.Or(full).Backoff
			own.Cap, own.Jitter, own.JitterRatio = minute, retry.RatioJitter, 0.3
			require.Equal(t, own, got)
		})
	}
	t.Run("a ratio does not come to another jitter", func(t *testing.T) {
		p := backoff(retry.Backoff{Jitter: retry.FullJitter}).Or(full)
		require.NoError(t, p.Validate())
		require.Zero(t, p.JitterRatio)
	})
	t.Run("an empty list is no list", func(t *testing.T) {
		p := backoff(retry.Backoff{Delays: []time.Duration{}}).Or(retry.Standard())
		require.Equal(t, retry.Standard().Delays, p.Delays)
	})
	t.Run("a list takes a cap but no formula", func(t *testing.T) {
		p := retry.Standard().Or(full)
		require.NoError(t, p.Validate())
		require.Equal(t, "standard", p.Name)
		require.Equal(t, minute, p.Delay(3))
	})
	t.Run("Disabled cannot be turned off", func(t *testing.T) {
		require.True(t, retry.Policy{}.Or(retry.Policy{Disabled: true}).Disabled)
		require.True(t, retry.Policy{Disabled: true}.Or(retry.Policy{}).Disabled)
	})
	t.Run("what is code is taken and kept", func(t *testing.T) {
		budget, other := retry.NewBudget(retry.BudgetConfig{}), retry.NewBudget(retry.BudgetConfig{})
		told := ""
		code := func(name string, b *retry.Budget) retry.Policy {
			return retry.Policy{
				Classify: func(error) retry.Class { told += name + ".Classify "; return retry.Terminal },
				Budget:   b,
				Gate:     func(context.Context) time.Duration { told += name + ".Gate "; return 0 },
				Observe:  func(context.Context, retry.Event) { told += name + ".Observe " },
				Rand:     func() float64 { return 0 },
			}
		}
		for _, p := range []retry.Policy{retry.Policy{}.Or(code("a", budget)), code("a", budget).Or(code("b", other))} {
			told = ""
			require.Same(t, budget, p.Budget)
			require.NotNil(t, p.Rand)
			require.ErrorIs(t, retry.Do(context.Background(), p, failing), retry.TerminalError)
			require.Equal(t, "a.Gate a.Classify a.Observe a.Observe ", told)
		}
	})
	t.Run("two set values that conflict are kept for Validate to tell", func(t *testing.T) {
		p := backoff(retry.Backoff{Base: hour}).Or(backoff(retry.Backoff{Cap: minute}))
		require.EqualError(t, p.Validate(), "retry: Policy.Cap 1m is below Base 1h")
	})
	t.Run("neither is changed", func(t *testing.T) {
		p, d := retry.Policy{}, full
		p.Or(d)
		require.Equal(t, retry.Policy{}, p)
		require.Equal(t, full, d)
	})
}

func failing(context.Context) error { return errFlaky }

func TestTotalWait(t *testing.T) {
	for _, row := range []struct {
		name   string
		policy retry.Policy
		lo, hi time.Duration
	}{
		{"the zero policy waits 10m35s", retry.Policy{}, 635 * sec, 635 * sec},
		{"one attempt waits nothing", retry.Policy{MaxAttempts: 1}, 0, 0},
		{"disabled waits nothing", retry.Policy{Disabled: true}, 0, 0},
		{"jitter makes a range", retry.Policy{MaxAttempts: 3, Backoff: retry.Backoff{Base: sec, Jitter: retry.EqualJitter}}, 1500 * ms, 3 * sec},
		{"decorrelated covers all histories",
			retry.Policy{MaxAttempts: 4, Backoff: retry.Backoff{Base: sec, Cap: 20 * sec, Jitter: retry.DecorrelatedJitter}}, 3 * sec, 32 * sec},
		{"unlimited saturates", retry.Policy{MaxAttempts: retry.Unlimited}, longest, longest},
		{"unlimited with full jitter has no least", retry.Policy{MaxAttempts: retry.Unlimited, Backoff: retry.Backoff{Jitter: retry.FullJitter}}, 0, longest},
		{"unlimited without waits is 0", retry.Policy{MaxAttempts: retry.Unlimited, Backoff: retry.Backoff{Delays: []time.Duration{0}}}, 0, 0},
		{"unlimited with one wait at the head of a list is that wait",
			retry.Policy{MaxAttempts: retry.Unlimited, Backoff: retry.Backoff{Delays: []time.Duration{sec, 0}}}, sec, sec},
		{"a billion fixed waits are multiplied", retry.Policy{MaxAttempts: 1_000_000_001, Backoff: retry.Backoff{Mode: retry.Fixed, Base: ms}},
			1_000_000 * sec, 1_000_000 * sec},
		{"the largest number of waits saturates", retry.Policy{MaxAttempts: math.MaxInt, Backoff: retry.Backoff{Mode: retry.Fixed, Base: hour}}, longest, longest},
		{"a list longer than its attempts is cut", retry.Policy{MaxAttempts: 2, Backoff: retry.Standard().Backoff}, minute, minute},
		{"a growing delay beyond 10,000 waits is bracketed", retry.Policy{MaxAttempts: 10_003, Backoff: retry.Backoff{Mode: retry.Linear, Base: 1}},
			10_000*10_001/2 + 2*10_001, 10_000*10_001/2 + 2*10_002},
		{"TTL and MaxHint are ignored", retry.Policy{MaxAttempts: 2, TTL: 1, MaxHint: 1}, 5 * sec, 5 * sec},
	} {
		t.Run(row.name, func(t *testing.T) {
			lo, hi := row.policy.TotalWait()
			require.Equal(t, [2]time.Duration{row.lo, row.hi}, [2]time.Duration{lo, hi})
		})
	}
}

func TestPolicyString(t *testing.T) {
	for _, row := range []struct {
		policy retry.Policy
		want   string
	}{
		{retry.Policy{}, "8 attempts, exponential 5s ×2, cap 1h: 5s 10s 20s 40s 1m20s 2m40s 5m20s (10m35s in all)"},
		{retry.Policy{MaxAttempts: 12, Backoff: retry.Backoff{Base: 10 * sec, Factor: 2, Cap: 30 * minute}},
			"12 attempts, exponential 10s ×2, cap 30m: 10s 20s 40s 1m20s 2m40s 5m20s 10m40s 21m20s 30m 30m 30m (2h12m30s in all)"},
		{retry.Standard(), "4 attempts, list: 1m 30m 3h (3h31m in all)"},
		{retry.Policy{MaxAttempts: 3, Backoff: retry.Backoff{Mode: retry.Fixed, Base: 5 * sec}}, "3 attempts, fixed 5s: 5s 5s (10s in all)"},
		{retry.Policy{MaxAttempts: 4, Backoff: retry.Backoff{Mode: retry.Linear, Base: sec, Factor: 0.5}},
			"4 attempts, linear 1s +500ms, cap 1h: 1s 1.5s 2s (4.5s in all)"},
		{retry.Policy{MaxAttempts: 1}, "1 attempt, exponential 5s ×2, cap 1h"},
		{retry.Policy{Disabled: true}, "retries disabled, exponential 5s ×2, cap 1h"},
		{retry.Policy{MaxAttempts: retry.Unlimited, TTL: hour, AttemptTimeout: 1500 * ms,
			Backoff: retry.Backoff{Base: 100 * ms, Factor: 1.5, Cap: sec, Jitter: retry.FullJitter}},
			"unlimited attempts, exponential 100ms ×1.5, cap 1s, full jitter, attempt timeout 1.5s, TTL 1h: " +
				"100ms 150ms 225ms 337.5ms 506.25ms 759.375ms 1s 1s 1s 1s 1s 1s ..."},
		{retry.Policy{MaxAttempts: 20, Backoff: retry.Backoff{Mode: retry.Fixed, Cap: sec, Jitter: retry.RatioJitter}},
			"20 attempts, fixed 1s, cap 1s, ratio jitter 0.2: 1s 1s 1s 1s 1s 1s 1s 1s 1s 1s 1s 1s ... (15.2s to 19s in all)"},
		{retry.Policy{MaxAttempts: 2, Backoff: retry.Backoff{Jitter: retry.DecorrelatedJitter}},
			"2 attempts, exponential 5s ×2, cap 1h, decorrelated jitter: 5s (5s to 15s in all)"},
	} {
		t.Run(row.want, func(t *testing.T) {
			require.Equal(t, row.want, row.policy.String())
			require.Equal(t, row.want, fmt.Sprint(row.policy))
		})
	}
}

// FuzzPolicy holds for any policy, valid or not: nothing panics, nothing takes long, and what Do trusts is what Validate
// says.
func FuzzPolicy(f *testing.F) {
	f.Add(uint8(0), uint8(0), 0, int64(0), int64(0), int64(0), int64(0), int64(0), 0.0, false, 0.0, int64(0))
	f.Add(uint8(1), uint8(3), retry.Unlimited, int64(1), int64(longest), int64(sec), int64(1), int64(0), 1.0000001, false, 0.5, int64(sec))
	f.Add(uint8(2), uint8(4), maxTries, int64(1), int64(longest), int64(1), int64(1), int64(0), 1e-9, false, 2.0, int64(2))
	f.Add(uint8(4), uint8(9), math.MinInt, int64(-1), int64(-1), int64(-1), int64(-1), int64(-1), math.NaN(), true, math.NaN(), int64(-1))
	f.Fuzz(func(t *testing.T, mode, jitter uint8, attempts int, base, limit, ttl, maxHint, delay int64, factor float64, off bool, ratio float64, timeout int64) {
		p := anyPolicy(mode, jitter, attempts, base, limit, ttl, maxHint, delay, factor, off)
		p.JitterRatio, p.AttemptTimeout = ratio, time.Duration(timeout)
		err := p.Validate()
		calls := 0
		ran := retry.Do(context.Background(), p, func(context.Context) error { calls++; return nil })
		if err == nil {
			require.NoError(t, ran)
			require.Equal(t, 1, calls)
		} else {
			require.Equal(t, err, ran)
			require.Zero(t, calls)
			require.NotContains(t, err.Error(), "\n")
		}
		lo, hi := p.TotalWait()
		require.GreaterOrEqual(t, lo, time.Duration(0))
		require.GreaterOrEqual(t, hi, lo)
		require.NotContains(t, p.String(), "\n")
		require.Equal(t, p.Or(retry.Policy{}).String(), p.String())
	})
}
