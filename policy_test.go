package retry_test

import (
	"context"
	"errors"
	"fmt"
	"math"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/retrygo/retry"
)

func TestPresets(t *testing.T) {
	require.Equal(t, retry.Policy{Name: "inline", MaxAttempts: 4, MaxHint: 10 * sec,
		Backoff: retry.Backoff{Base: 50 * ms, Cap: sec, Jitter: retry.FullJitter}}, retry.Inline())
	retry.Standard().Delays[0] = 0
	require.Equal(t, minute, retry.Standard().Delays[0], "they are new each time")
}

// Do looks at a policy at a glance first, which must not overlook the least fault that Validate finds.
func TestValidateNamesFieldValueAndRule(t *testing.T) {
	for _, row := range []struct {
		policy retry.Policy
		want   string
	}{
		{retry.Policy{MaxAttempts: -2}, "Policy.MaxAttempts -2 is below -1, which is Unlimited"},
		{retry.Policy{AttemptTimeout: -1}, "Policy.AttemptTimeout -1ns is negative"},
		{retry.Policy{TTL: -1}, "Policy.TTL -1ns is negative"},
		{retry.Policy{MaxHint: -1}, "Policy.MaxHint -1ns is negative"},
		{retry.Policy{ResetAfter: -1}, "Policy.ResetAfter -1ns is negative"},
		{backoff(retry.Backoff{Mode: 5}), "Policy.Mode 5 is not one of Exponential, Linear, Fixed and List"},
		{backoff(retry.Backoff{Base: -1}), "Policy.Base -1ns is negative"},
		{backoff(retry.Backoff{Cap: -1}), "Policy.Cap -1ns is negative"},
		{backoff(retry.Backoff{Base: 5 * sec, Cap: sec}), "Policy.Cap 1s is below Base 5s"},
		{backoff(retry.Backoff{Base: sec + 1, Cap: sec}), "Policy.Cap 1s is below Base 1.000000001s"},
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
				"Policy.Delays[9] -1ns is negative; Policy.Delays[10] -1ns is negative, and later ones are not looked at"},
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
		{retry.Policy{Budget: &retry.Budget{}}, "Policy.Budget is not from NewBudget, NewAt or Budgets.For"},
	} {
		t.Run(row.want, func(t *testing.T) {
			err := row.policy.Validate()
			require.EqualError(t, err, "retry: "+row.want)
			var field *retry.FieldError
			require.ErrorAs(t, err, &field)
			require.Contains(t, row.want, strings.Join(strings.Fields(field.Field+" "+field.Value+" "+field.Rule), " "))

			calls := 0
			err = retry.Do(context.Background(), row.policy, func(context.Context) error { calls++; return nil })
			require.EqualError(t, err, "retry: "+row.want, "Do refuses what Validate refuses")
			require.Zero(t, calls, "and makes no attempt")
			var failed *retry.Error
			require.False(t, errors.As(err, &failed), "nothing ran, so it is not an *Error")
		})
	}
	t.Run("a delay of 0 is good after any number of bad ones", func(t *testing.T) {
		bad := slices.Repeat([]time.Duration{-1}, 20)
		require.Len(t, retry.Policy{Backoff: retry.Backoff{Delays: append(bad[:10:10], 0)}}.Validate(), 10)
		require.Len(t, retry.Policy{Backoff: retry.Backoff{Delays: append(bad[:10:10], 0, 0, -1)}}.Validate(), 11)
		require.Len(t, retry.Policy{Backoff: retry.Backoff{Delays: bad}}.Validate(), 11)
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
		"an attempt timeout above the TTL":      {AttemptTimeout: hour, TTL: sec},
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
		AttemptTimeout: sec, TTL: hour, MaxHint: minute, ResetAfter: hour,
	}
	for _, row := range []struct {
		name              string
		p, defaults, want retry.Policy
	}{
		{"the zero policy takes everything", retry.Policy{}, full, full},
		{"a full policy takes nothing", full, retry.Policy{
			Name: "x", MaxAttempts: 1, Backoff: retry.Backoff{Mode: retry.Fixed, Base: 1, Factor: 1, Cap: 1, Jitter: retry.FullJitter},
			AttemptTimeout: 1, TTL: 1, MaxHint: 1, ResetAfter: 1}, full},
		{"the zero defaults give nothing", full, retry.Policy{}, full},
		{"a ratio does not come to another jitter", retry.Policy{Name: "p", Backoff: retry.Backoff{Jitter: retry.FullJitter}},
			backoff(retry.Backoff{Jitter: retry.RatioJitter, JitterRatio: 0.3}),
			retry.Policy{Name: "p", Backoff: retry.Backoff{Jitter: retry.FullJitter}}},
		{"a list takes a cap but no formula", retry.Standard(), backoff(retry.Backoff{Mode: retry.Linear, Base: sec, Factor: 3, Cap: minute}),
			retry.Policy{Name: "standard", Backoff: retry.Backoff{Delays: retry.Standard().Delays, Cap: minute}}},
		{"Disabled is taken", retry.Policy{}, retry.Policy{Disabled: true}, retry.Policy{Disabled: true}},
		{"Disabled cannot be turned off", retry.Policy{Disabled: true}, retry.Policy{}, retry.Policy{Disabled: true}},
		{"two set values that conflict are kept for Validate", backoff(retry.Backoff{Base: hour}), backoff(retry.Backoff{Cap: minute}),
			backoff(retry.Backoff{Base: hour, Cap: minute})},
	} {
		t.Run(row.name, func(t *testing.T) { require.Equal(t, row.want, row.p.Or(row.defaults)) })
	}
	t.Run("what is code is taken and kept", func(t *testing.T) {
		budget, other := retry.NewBudget(retry.BudgetConfig{}), retry.NewBudget(retry.BudgetConfig{})
		called := ""
		code := func(name string, b *retry.Budget) retry.Policy {
			return retry.Policy{
				Backoff:  retry.Backoff{Jitter: retry.FullJitter},
				Classify: func(error) retry.Class { called += name + ".Classify "; return retry.Unknown },
				Budget:   b,
				Gate:     func(context.Context) time.Duration { called += name + ".Gate "; return 0 },
				Observe:  func(context.Context, retry.Event) { called += name + ".Observe " },
				Rand:     func() float64 { called += name + ".Rand "; return 0 },
				Wait:     func(int, error, time.Duration) time.Duration { called += name + ".Wait "; return 0 },
				Pay:      func(context.Context, retry.Decision) bool { called += name + ".Pay "; return false },
			}
		}
		for _, p := range []retry.Policy{retry.Policy{}.Or(code("a", budget)), code("a", budget).Or(code("b", other))} {
			called = ""
			require.Same(t, budget, p.Budget)
			require.ErrorIs(t, retry.Do(context.Background(), p, failing), retry.BudgetExhausted)
			require.Equal(t, "a.Gate a.Classify a.Rand a.Wait a.Pay a.Observe a.Observe ", called)
		}
	})
}

// TestOrOfSchedules is rule 36 in full: each way to set a part of a schedule, over each kind of defaults.
func TestOrOfSchedules(t *testing.T) {
	const (
		exp = retry.Exponential
		lin = retry.Linear
		fix = retry.Fixed
	)
	formula := func(m retry.Mode, base time.Duration, factor float64) retry.Backoff {
		return retry.Backoff{Mode: m, Base: base, Factor: factor}
	}
	listed := func(m retry.Mode, d ...time.Duration) retry.Backoff { return retry.Backoff{Mode: m, Delays: d} }
	defaults := [...]retry.Backoff{
		formula(0, 7*sec, 3),      // exponential, although it does not say so
		formula(lin, 7*sec, 3),    //
		formula(fix, 7*sec, 0),    //
		listed(0, 7*sec),          // a list, although it does not say so
		listed(retry.List, 7*sec), //
		formula(0, 0, 0),          // nothing
		formula(exp, 0, 0),        // the mode alone
		formula(0, 0, 3),          // the factor alone
	}
	for _, row := range []struct {
		name string
		own  retry.Backoff
		want [len(defaults)]retry.Backoff // over each of defaults
	}{
		{"nothing", formula(0, 0, 0), defaults},
		{"an empty list", listed(0, []time.Duration{}...), defaults},
		{"Mode Exponential", formula(exp, 0, 0), [...]retry.Backoff{
			formula(exp, 7*sec, 3), formula(exp, 7*sec, 0), formula(exp, 7*sec, 0), formula(exp, 0, 0), formula(exp, 0, 0),
			formula(exp, 0, 0), formula(exp, 0, 0), formula(exp, 0, 3)}},
		{"Mode Linear", formula(lin, 0, 0), [...]retry.Backoff{
			formula(lin, 7*sec, 0), formula(lin, 7*sec, 3), formula(lin, 7*sec, 0), formula(lin, 0, 0), formula(lin, 0, 0),
			formula(lin, 0, 0), formula(lin, 0, 0), formula(lin, 0, 0)}},
		{"Mode Fixed", formula(fix, 0, 0), [...]retry.Backoff{
			formula(fix, 7*sec, 0), formula(fix, 7*sec, 0), formula(fix, 7*sec, 0), formula(fix, 0, 0), formula(fix, 0, 0),
			formula(fix, 0, 0), formula(fix, 0, 0), formula(fix, 0, 0)}},
		{"Mode List", formula(retry.List, 0, 0), [...]retry.Backoff{ // which is not a mode without Delays
			formula(retry.List, 0, 0), formula(retry.List, 0, 0), formula(retry.List, 0, 0), listed(0, 7*sec), listed(retry.List, 7*sec),
			formula(retry.List, 0, 0), formula(retry.List, 0, 0), formula(retry.List, 0, 0)}},
		{"Base", formula(0, sec, 0), [...]retry.Backoff{
			formula(0, sec, 3), formula(lin, sec, 3), formula(fix, sec, 0), formula(0, sec, 0), formula(0, sec, 0),
			formula(0, sec, 0), formula(exp, sec, 0), formula(0, sec, 3)}},
		{"Factor", formula(0, 0, 1.5), [...]retry.Backoff{
			formula(0, 7*sec, 1.5), formula(lin, 7*sec, 1.5), formula(fix, 7*sec, 1.5), formula(0, 0, 1.5), formula(0, 0, 1.5),
			formula(0, 0, 1.5), formula(exp, 0, 1.5), formula(0, 0, 1.5)}},
		{"Mode and Base", formula(lin, sec, 0), [...]retry.Backoff{
			formula(lin, sec, 0), formula(lin, sec, 3), formula(lin, sec, 0), formula(lin, sec, 0), formula(lin, sec, 0),
			formula(lin, sec, 0), formula(lin, sec, 0), formula(lin, sec, 0)}},
		{"Mode and Factor", formula(lin, 0, 1.5), [...]retry.Backoff{
			formula(lin, 7*sec, 1.5), formula(lin, 7*sec, 1.5), formula(lin, 7*sec, 1.5), formula(lin, 0, 1.5), formula(lin, 0, 1.5),
			formula(lin, 0, 1.5), formula(lin, 0, 1.5), formula(lin, 0, 1.5)}},
		{"Base and Factor", formula(0, sec, 1.5), [...]retry.Backoff{
			formula(0, sec, 1.5), formula(lin, sec, 1.5), formula(fix, sec, 1.5), formula(0, sec, 1.5), formula(0, sec, 1.5),
			formula(0, sec, 1.5), formula(exp, sec, 1.5), formula(0, sec, 1.5)}},
		{"all of a formula", formula(exp, sec, 1.5), everywhere(formula(exp, sec, 1.5))},
		{"Delays", listed(0, sec), everywhere(listed(0, sec))},
		{"Delays and Mode List", listed(retry.List, sec), everywhere(listed(retry.List, sec))},
	} {
		for i, d := range defaults {
			t.Run(fmt.Sprintf("%s over %+v", row.name, d), func(t *testing.T) {
				got := retry.Policy{Backoff: row.own}.Or(retry.Policy{Backoff: d}).Backoff
				if len(got.Delays) == 0 {
					got.Delays = nil // an empty list is none
				}
				require.Equal(t, row.want[i], got)
				if unlimited(row.own).Validate() == nil {
					require.NoError(t, unlimited(got).Validate(), "two valid schedules make a valid one")
				}
			})
		}
	}
}

func everywhere(b retry.Backoff) (same [8]retry.Backoff) {
	for i := range same {
		same[i] = b
	}
	return same
}

func TestOrSchedule(t *testing.T) {
	inline := retry.Inline()
	other := retry.Policy{TTL: sec, AttemptTimeout: sec, Disabled: true, MaxAttempts: inline.MaxAttempts, Backoff: inline.Backoff, MaxHint: inline.MaxHint}
	for _, row := range []struct {
		name string
		p    retry.Policy
		want retry.Policy
	}{
		{"nothing of a schedule takes it as a whole", retry.Policy{Name: "own", AttemptTimeout: sec, TTL: minute, ResetAfter: hour, Disabled: true},
			retry.Policy{Name: "own", AttemptTimeout: sec, TTL: minute, ResetAfter: hour, Disabled: true,
				MaxAttempts: 4, Backoff: inline.Backoff, MaxHint: 10 * sec}},
		{"an own MaxHint stays", retry.Policy{MaxHint: minute}, retry.Policy{MaxHint: minute, MaxAttempts: 4, Backoff: inline.Backoff}},
		{"one attempt leaves the delays alone", retry.Policy{MaxAttempts: 1}, retry.Policy{MaxAttempts: 1, Backoff: inline.Backoff, MaxHint: 10 * sec}},
		{"unlimited attempts leave them alone", retry.Policy{MaxAttempts: retry.Unlimited},
			retry.Policy{MaxAttempts: retry.Unlimited, Backoff: inline.Backoff, MaxHint: 10 * sec}},
		{"Mode alone keeps all delays, and MaxHint", backoff(retry.Backoff{Mode: retry.Exponential}),
			retry.Policy{MaxAttempts: 4, Backoff: retry.Backoff{Mode: retry.Exponential}}},
		{"Base alone keeps them", backoff(retry.Backoff{Base: sec}), retry.Policy{MaxAttempts: 4, Backoff: retry.Backoff{Base: sec}}},
		{"Factor alone keeps them", backoff(retry.Backoff{Factor: 2}), retry.Policy{MaxAttempts: 4, Backoff: retry.Backoff{Factor: 2}}},
		{"Cap alone keeps them", backoff(retry.Backoff{Cap: sec}), retry.Policy{MaxAttempts: 4, Backoff: retry.Backoff{Cap: sec}}},
		{"Jitter alone keeps them", backoff(retry.Backoff{Jitter: retry.EqualJitter}),
			retry.Policy{MaxAttempts: 4, Backoff: retry.Backoff{Jitter: retry.EqualJitter}}},
		{"Delays keep the attempts too", retry.Standard(), retry.Standard()},
		{"an empty list is none", backoff(retry.Backoff{Delays: []time.Duration{}}), retry.Policy{MaxAttempts: 4, Backoff: inline.Backoff, MaxHint: 10 * sec}},
	} {
		t.Run(row.name, func(t *testing.T) {
			require.Equal(t, row.want, row.p.OrSchedule(inline))
			require.Equal(t, row.want, row.p.OrSchedule(other), "only the schedule is taken")
		})
	}
}

// anySchedule makes a policy out of small numbers, valid or not, so that rows meet.
func anySchedule(r *rand.Rand) retry.Policy {
	durations := []time.Duration{0, 0, 0, -1, 1, ms, sec, 3 * sec, minute, hour, 2 * hour, longest}
	factors := []float64{0, 0, 0, 0.5, 1, 1.5, 2, 3, -1, math.NaN(), math.Inf(1), 1e300}
	pick := func() time.Duration { return durations[r.IntN(len(durations))] }
	p := retry.Policy{
		MaxAttempts: r.IntN(13) - 2,
		Backoff: retry.Backoff{Mode: retry.Mode(r.IntN(6)), Base: pick(), Factor: factors[r.IntN(len(factors))], Cap: pick(),
			Jitter: retry.JitterMode(r.IntN(6)), JitterRatio: []float64{0, 0.5, 1, 2, -1}[r.IntN(5)]},
		TTL: pick(), MaxHint: pick(), ResetAfter: pick(), Disabled: r.IntN(10) == 0,
	}
	for range r.IntN(4) * r.IntN(2) {
		p.Delays = append(p.Delays, pick())
	}
	if r.IntN(10) == 0 {
		p.Wait = func(_ int, _ error, computed time.Duration) time.Duration { return computed / 2 }
	}
	return p
}

func TestEffective(t *testing.T) {
	for _, row := range []struct {
		name string
		own  retry.Policy
		want retry.Policy
	}{
		{"the zero policy", retry.Policy{}, retry.Policy{MaxAttempts: 8, MaxHint: hour,
			Backoff: retry.Backoff{Mode: retry.Exponential, Base: 5 * sec, Factor: 2, Cap: hour}}},
		{"a list", retry.Standard(), retry.Policy{Name: "standard", MaxAttempts: 4, MaxHint: hour,
			Backoff: retry.Backoff{Mode: retry.List, Delays: retry.Standard().Delays}}},
		{"linear", backoff(retry.Backoff{Mode: retry.Linear}), retry.Policy{MaxAttempts: 8, MaxHint: hour,
			Backoff: retry.Backoff{Mode: retry.Linear, Base: 5 * sec, Factor: 1, Cap: hour}}},
		{"a base above the default cap", backoff(retry.Backoff{Base: 2 * hour}), retry.Policy{MaxAttempts: 8, MaxHint: hour,
			Backoff: retry.Backoff{Mode: retry.Exponential, Base: 2 * hour, Factor: 2, Cap: 2 * hour}}},
		{"a cap below the default base", backoff(retry.Backoff{Cap: sec}), retry.Policy{MaxAttempts: 8, MaxHint: hour,
			Backoff: retry.Backoff{Mode: retry.Exponential, Base: sec, Factor: 2, Cap: sec}}},
		{"ratio jitter", backoff(retry.Backoff{Jitter: retry.RatioJitter}), retry.Policy{MaxAttempts: 8, MaxHint: hour,
			Backoff: retry.Backoff{Mode: retry.Exponential, Base: 5 * sec, Factor: 2, Cap: hour, Jitter: retry.RatioJitter, JitterRatio: 0.2}}},
		{"what is set and has no default", retry.Policy{Name: "n", MaxAttempts: retry.Unlimited, AttemptTimeout: sec, TTL: sec, MaxHint: sec,
			ResetAfter: sec, Disabled: true},
			retry.Policy{Name: "n", MaxAttempts: retry.Unlimited, AttemptTimeout: sec, TTL: sec, MaxHint: sec, ResetAfter: sec, Disabled: true,
				Backoff: retry.Backoff{Mode: retry.Exponential, Base: 5 * sec, Factor: 2, Cap: hour}}},
	} {
		t.Run(row.name, func(t *testing.T) { require.Equal(t, row.want, row.own.Effective()) })
	}
	t.Run("it does nothing else than p, for any p, and is its own Effective", func(t *testing.T) {
		r := rand.New(rand.NewPCG(14, 36))
		for i := range 10_000 {
			p := anySchedule(r)
			e := p.Effective()
			if i < 3 {
				t.Logf("%v is %d attempts and %+v", p, e.MaxAttempts, e.Backoff)
			}
			schedule := func(p retry.Policy) string { return strings.TrimSuffix(p.String(), " (not valid)") }
			require.Equal(t, fmt.Sprintf("%+v", e.Effective()), fmt.Sprintf("%+v", e), "%#v", p)
			if e.Mode != retry.Fixed { // whose String shows a Cap only if it is set
				require.Equal(t, schedule(p), schedule(e), "%#v", p.Backoff)
			}
			if p.Validate() == nil {
				require.NoError(t, e.Validate(), "%#v", p.Backoff)
			}
			for attempt := range 12 {
				prev := time.Duration(r.IntN(10)) * sec
				pr := retry.Progress{Attempt: attempt, Elapsed: time.Duration(r.IntN(10)) * sec, Lasted: time.Duration(r.IntN(2)) * sec, Prev: prev}
				u := r.Float64()
				require.Equal(t, p.Delay(attempt), e.Delay(attempt), "%#v", p.Backoff)
				require.Equal(t, p.Jittered(attempt, prev, u), e.Jittered(attempt, prev, u), "%#v", p.Backoff)
				err := retry.After(time.Duration(r.IntN(3))*45*minute, errFlaky)
				require.Equal(t, p.Decide(pr, err, u), e.Decide(pr, err, u), "%#v", p.Backoff)
			}
			lo, hi := p.TotalWait()
			elo, ehi := e.TotalWait()
			require.Equal(t, [2]time.Duration{lo, hi}, [2]time.Duration{elo, ehi}, "%#v", p.Backoff)
		}
	})
	t.Run("p stays as it is", func(t *testing.T) {
		p := retry.Standard()
		p.Effective()
		require.Equal(t, retry.Standard(), p)
	})
}

func TestSchedule(t *testing.T) {
	for _, row := range []struct {
		name   string
		policy retry.Policy
		u      float64 // that Schedule is given; 0 is no function
		want   []time.Duration
	}{
		{"one attempt has none", everySecond(1), 0, nil},
		{"a disabled policy has none", retry.Policy{Disabled: true}, 0, nil},
		{"TTL is ignored", retry.Policy{MaxAttempts: 3, TTL: 1}, 0, []time.Duration{5 * sec, 10 * sec}},
		{"unlimited attempts have no end", everySecond(retry.Unlimited), 0, slices.Repeat([]time.Duration{sec}, 20)},
		{"without a function there is no jitter", retry.Policy{MaxAttempts: 3, Backoff: retry.Backoff{Base: sec, Jitter: retry.DecorrelatedJitter}}, 0,
			[]time.Duration{sec, 2 * sec}},
		{"a function is called once for each wait", retry.Policy{MaxAttempts: 3, Backoff: retry.Backoff{Base: sec, Jitter: retry.FullJitter}}, 0.5,
			[]time.Duration{sec / 2, sec}},
		// 1+½(3·1−1)=2, 1+½(3·2−1)=3.5, 1+½(3·3.5−1)=5.75, 1+½(3·5.75−1)=9.125, 1+½(20−1)=10.5
		{"decorrelated jitter feeds on the delay before",
			retry.Policy{MaxAttempts: 6, Backoff: retry.Backoff{Base: sec, Cap: 20 * sec, Jitter: retry.DecorrelatedJitter}}, 0.5,
			[]time.Duration{2 * sec, 3500 * ms, 5750 * ms, 9125 * ms, 10500 * ms}},
	} {
		t.Run(row.name, func(t *testing.T) {
			calls := 0
			var rnd func() float64
			if row.u != 0 {
				rnd = func() float64 { calls++; return row.u }
			}
			require.Equal(t, row.want, scheduled(t, row.policy, rnd))
			if row.u != 0 {
				require.Equal(t, len(row.want), calls)
			}
		})
	}
	t.Run("a policy without jitter does not call the function", func(t *testing.T) {
		for _, b := range []retry.Backoff{{}, {Jitter: 99}, {Mode: retry.Fixed, Jitter: retry.DecorrelatedJitter}} {
			scheduled(t, backoff(b), func() float64 { t.Error("called"); return 0 })
		}
	})
	t.Run("each range starts anew", func(t *testing.T) {
		schedule := retry.Policy{Backoff: retry.Backoff{Jitter: retry.DecorrelatedJitter}}.Schedule(func() float64 { return 0.9 })
		for range 2 {
			for attempt, delay := range schedule {
				require.Equal(t, 1, attempt)
				require.Equal(t, 14*sec, delay)
				break
			}
		}
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
		{"a list longer than 10,000 is added up", retry.Policy{Backoff: retry.Backoff{Delays: slices.Repeat([]time.Duration{1, 2}, 10_000)}}, 30_000, 30_000},
		{"own waits are between 0 and Cap", retry.Policy{MaxAttempts: 4, Wait: ownWait, Backoff: retry.Backoff{Cap: 2 * sec}}, 0, 6 * sec},
		{"own waits of a List without a cap have no bound", retry.Policy{Wait: ownWait, Backoff: retry.Backoff{Delays: list}}, 0, longest},
		{"10,001 waits of a growing delay", retry.Policy{MaxAttempts: 10_002, Backoff: retry.Backoff{Mode: retry.Linear, Base: 1}},
			10_001 * 10_002 / 2, 10_001 * 10_002 / 2},
		{"ResetAfter is ignored", retry.Policy{MaxAttempts: 2, ResetAfter: 1}, 5 * sec, 5 * sec},
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
		{retry.Policy{MaxAttempts: -3, Backoff: retry.Backoff{Mode: retry.Fixed, Base: sec, Cap: sec}},
			"8 attempts, fixed 1s, cap 1s: 1s 1s 1s 1s 1s 1s 1s (7s in all) (not valid)"},
		{retry.Policy{MaxAttempts: 3, Backoff: retry.Backoff{Mode: retry.Fixed, Base: 5 * sec}}, "3 attempts, fixed 5s: 5s 5s (10s in all)"},
		{retry.Policy{MaxAttempts: 4, Backoff: retry.Backoff{Mode: retry.Linear, Base: sec, Factor: 0.5}},
			"4 attempts, linear 1s +500ms, cap 1h: 1s 1.5s 2s (4.5s in all)"},
		{retry.Policy{MaxAttempts: 1}, "1 attempt, exponential 5s ×2, cap 1h"},
		{retry.Policy{MaxAttempts: 2, AttemptTimeout: 1, TTL: 1, ResetAfter: 1, Backoff: retry.Backoff{Mode: retry.Fixed, Base: 1, Cap: 1}},
			"2 attempts, fixed 1ns, cap 1ns, attempt timeout 1ns, TTL 1ns, reset after 1ns: 1ns (1ns in all)"},
		{retry.Policy{MaxAttempts: 2, Backoff: retry.Backoff{Cap: 1, Delays: []time.Duration{2}}}, "2 attempts, list, cap 1ns: 1ns (1ns in all)"},
		{retry.Policy{MaxAttempts: 2, Backoff: retry.Backoff{Mode: retry.Linear, Cap: 1}}, "2 attempts, linear 1ns +1ns, cap 1ns: 1ns (1ns in all)"},
		{retry.Policy{Disabled: true}, "retries disabled, exponential 5s ×2, cap 1h"},
		{retry.Policy{MaxAttempts: retry.Unlimited, TTL: hour, AttemptTimeout: 1500 * ms,
			Backoff: retry.Backoff{Base: 100 * ms, Factor: 1.5, Cap: sec, Jitter: retry.FullJitter}},
			"unlimited attempts, exponential 100ms ×1.5, cap 1s, full jitter, attempt timeout 1.5s, TTL 1h: " +
				"100ms 150ms 225ms 337.5ms 506.25ms 759.375ms 1s 1s 1s 1s 1s 1s ..."},
		{retry.Policy{MaxAttempts: 20, Backoff: retry.Backoff{Mode: retry.Fixed, Cap: sec, Jitter: retry.RatioJitter}},
			"20 attempts, fixed 1s, cap 1s, ratio jitter 0.2: 1s 1s 1s 1s 1s 1s 1s 1s 1s 1s 1s 1s ... (15.2s to 19s in all)"},
		{retry.Policy{MaxAttempts: 2, Backoff: retry.Backoff{Jitter: retry.DecorrelatedJitter}},
			"2 attempts, decorrelated 5s to 3×last, cap 1h (5s to 15s in all)"},
		{retry.Policy{MaxAttempts: retry.Unlimited, Backoff: retry.Backoff{Jitter: retry.DecorrelatedJitter}},
			"unlimited attempts, decorrelated 5s to 3×last, cap 1h"},
		{retry.Policy{Name: "reconnect", MaxAttempts: 4, ResetAfter: hour, Wait: ownWait},
			"reconnect: 4 attempts, exponential 5s ×2, cap 1h, own waits, reset after 1h (0s to 3h in all)"},
		{retry.Policy{MaxAttempts: retry.Unlimited, Wait: ownWait, Backoff: retry.Backoff{Mode: retry.Fixed, Base: sec, Cap: sec}},
			"unlimited attempts, fixed 1s, cap 1s, own waits"},
		{retry.Policy{MaxAttempts: 1, Wait: ownWait}, "1 attempt, exponential 5s ×2, cap 1h, own waits"},
		{retry.Policy{Name: "two\nlines", MaxAttempts: 1}, "two; lines: 1 attempt, exponential 5s ×2, cap 1h"},
		{retry.Policy{MaxAttempts: 14, Backoff: retry.Backoff{Mode: retry.Fixed, Base: sec}},
			"14 attempts, fixed 1s: 1s 1s 1s 1s 1s 1s 1s 1s 1s 1s 1s 1s ... (13s in all)"},
		{retry.Policy{MaxAttempts: 13, Backoff: retry.Backoff{Mode: retry.Fixed, Base: sec}},
			"13 attempts, fixed 1s: 1s 1s 1s 1s 1s 1s 1s 1s 1s 1s 1s 1s (12s in all)"},
	} {
		t.Run(row.want, func(t *testing.T) {
			require.Equal(t, row.want, row.policy.String())
			require.Equal(t, row.want, fmt.Sprint(row.policy))
		})
	}
}

func ownWait(int, error, time.Duration) time.Duration { return sec }
