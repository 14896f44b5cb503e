package retryplan_test

import (
	"cmp"
	"context"
	"fmt"
	"maps"
	"math"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/retrygo/retry"
	"github.com/retrygo/retry/retryplan"
)

// sensible is an inline policy that nothing is to be said about.
func sensible() retry.Policy {
	return retry.Policy{
		MaxAttempts:    4,
		Backoff:        retry.Backoff{Base: 50 * time.Millisecond, Cap: time.Second, Jitter: retry.FullJitter},
		AttemptTimeout: 2 * time.Second,
		TTL:            10 * time.Second,
		Budget:         retry.NewBudget(retry.BudgetConfig{}),
	}
}

// sensibleWith returns the sensible policy with a change.
func sensibleWith(change func(*retry.Policy)) retry.Policy {
	p := sensible()
	change(&p)
	return p
}

func codesOf(found []retryplan.Finding) (codes []string) {
	for _, f := range found {
		codes = append(codes, f.Code)
	}
	return codes
}

func findingOf(found []retryplan.Finding, code string) (retryplan.Finding, bool) {
	i := slices.IndexFunc(found, func(f retryplan.Finding) bool { return f.Code == code })
	if i < 0 {
		return retryplan.Finding{}, false
	}
	return found[i], true
}

func TestNothingIsSaidAboutASensiblePolicy(t *testing.T) {
	require.Nil(t, retryplan.Lint(sensible(), retryplan.Setting{}))
	require.Nil(t, retryplan.Lint(sensible(), retryplan.Setting{Inline: true, Clients: 1000, Deadline: 10 * time.Second,
		Duration: retryplan.LogNormal(20*time.Millisecond, 200*time.Millisecond)}))
}

func TestThePresetsLackJitterBudgetAndTimeoutOnly(t *testing.T) {
	for _, p := range []retry.Policy{retry.Aggressive(), retry.Standard(), retry.Patient(), retry.Cautious()} {
		found := retryplan.Lint(p, retryplan.Setting{})
		require.Equal(t, []string{"no-attempt-timeout", "no-budget", "no-jitter"}, codesOf(found), p.Name)
		for _, f := range found {
			require.Equal(t, retryplan.Note, f.Level)
		}
	}
}

// lintRow is a policy and a setting for which a code is found, and a near miss for which it is not.
type lintRow struct {
	name  string
	code  string
	level retryplan.Level
	p     retry.Policy
	s     retryplan.Setting
	near  func(*retry.Policy, *retryplan.Setting)
}

func lintRows() []lintRow {
	type P = retry.Policy
	type S = retryplan.Setting
	exp := func(base, limit time.Duration, jitter retry.JitterMode) retry.Backoff {
		return retry.Backoff{Base: base, Cap: limit, Jitter: jitter}
	}
	list := func(delays ...time.Duration) retry.Backoff {
		return retry.Backoff{Delays: delays, Jitter: retry.FullJitter}
	}
	const s, ms = time.Second, time.Millisecond
	return []lintRow{
		{name: "deadline", code: "no-retry-can-start", level: retryplan.Severe, p: P{}, s: S{Deadline: 5 * s},
			near: func(_ *P, s *S) { s.Deadline++ }},
		{name: "slow attempts", code: "no-retry-can-start", level: retryplan.Severe, p: sensible(), s: S{Deadline: s, Duration: retryplan.Constant(s)},
			near: func(_ *P, s *S) { s.Deadline += 26 * ms }},
		{name: "list", code: "no-retry-can-start", level: retryplan.Severe, p: retry.Standard(), s: S{Deadline: 30 * s},
			near: func(p *P, _ *S) { p.Delays[0] = 29 * s }},
		{code: "inline-wait-too-long", level: retryplan.Severe, p: P{}, s: S{Inline: true},
			near: func(_ *P, s *S) { s.Inline = false }},
		{name: "within a minute", code: "inline-wait-too-long", level: retryplan.Warning, p: P{TTL: 10*s + 1}, s: S{Inline: true},
			near: func(p *P, _ *S) { p.TTL-- }},
		{name: "list", code: "inline-wait-too-long", level: retryplan.Severe, p: retry.Standard(), s: S{Inline: true},
			near: func(p *P, _ *S) { p.Cap = 3 * s }},
		{name: "too many to be made short", code: "inline-wait-too-long", level: retryplan.Severe, s: S{Inline: true},
			p:    P{MaxAttempts: 100_000, AttemptTimeout: time.Minute, Backoff: exp(time.Minute, 0, retry.FullJitter)},
			near: func(p *P, _ *S) { p.Base, p.Cap = 10*time.Microsecond, 10*time.Microsecond }},
		{code: "invalid", level: retryplan.Severe, p: P{Backoff: exp(2*s, s, 0)}, near: func(p *P, _ *S) { p.Cap = 2 * s }},
		{name: "negative wait", code: "invalid", level: retryplan.Severe, p: P{Backoff: list(s, -s)}, near: func(p *P, _ *S) { p.Delays[1] = s }},
		{name: "empty list", code: "invalid", level: retryplan.Severe, p: P{Backoff: retry.Backoff{Mode: retry.List}}, near: func(p *P, _ *S) { p.Delays = []time.Duration{s} }},
		{code: "list-longer-than-attempts", level: retryplan.Warning, p: P{MaxAttempts: 3, Backoff: list(s, 2*s, 3*s)},
			near: func(p *P, _ *S) { p.MaxAttempts = 4 }},
		{code: "long-hint-inline", level: retryplan.Warning, p: sensibleWith(func(p *P) { p.TTL = 0 }), s: S{Inline: true},
			near: func(p *P, _ *S) { p.MaxHint = 10 * s }},
		{name: "bounded by the deadline", code: "long-hint-inline", level: retryplan.Note, p: sensibleWith(func(p *P) { p.TTL = 0 }), s: S{Inline: true, Deadline: 30 * s},
			near: func(_ *P, s *S) { s.Deadline = 10 * time.Second }},
		{code: "missing-unit", level: retryplan.Severe, p: sensibleWith(func(p *P) { p.AttemptTimeout = 2 }),
			near: func(p *P, _ *S) { p.AttemptTimeout = time.Microsecond }},
		{name: "several, with a list", code: "missing-unit", level: retryplan.Severe,
			p: P{AttemptTimeout: 500, TTL: 2 * time.Microsecond, MaxHint: 3, ResetAfter: 1, Backoff: list(1, 5, 30, s)},
			near: func(p *P, _ *S) {
				*p = P{AttemptTimeout: 1000, TTL: 1000, MaxHint: 1000, ResetAfter: 1000, Backoff: list(0, s)}
			}},
		{name: "several, whose seconds conflict", code: "missing-unit", level: retryplan.Severe,
			p:    P{AttemptTimeout: 500, Backoff: exp(1, 2*time.Microsecond, retry.FullJitter)},
			near: func(p *P, _ *S) { p.AttemptTimeout, p.Base = 1000, 1000 }},
		{code: "no-jitter", level: retryplan.Note, p: sensibleWith(func(p *P) { p.Jitter = retry.RatioJitter }),
			near: func(p *P, _ *S) { p.JitterRatio = 0.5 }},
		{name: "herd", code: "no-jitter", level: retryplan.Warning, p: sensibleWith(func(p *P) { p.Jitter, p.JitterRatio = retry.RatioJitter, 0.49 }), s: S{Clients: 1000},
			near: func(_ *P, s *S) { s.Clients = 1 }},
		{code: "no-attempt-timeout", level: retryplan.Note, p: sensibleWith(func(p *P) { p.AttemptTimeout = 0 }),
			near: func(p *P, _ *S) { p.AttemptTimeout = s }},
		{name: "inline", code: "no-attempt-timeout", level: retryplan.Warning, p: sensibleWith(func(p *P) { p.AttemptTimeout = 0 }), s: S{Inline: true},
			near: func(p *P, _ *S) { p.AttemptTimeout = s }},
		{name: "known duration", code: "no-attempt-timeout", level: retryplan.Note, p: sensibleWith(func(p *P) { p.AttemptTimeout = 0 }), s: S{Deadline: 5 * s, Duration: retryplan.Constant(s)},
			near: func(p *P, _ *S) { p.AttemptTimeout = s }},
		{code: "no-budget", level: retryplan.Warning, p: sensibleWith(func(p *P) { p.MaxAttempts, p.Budget = 5, nil }),
			near: func(p *P, _ *S) { p.Budget = sensible().Budget }},
		{name: "four attempts", code: "no-budget", level: retryplan.Note, p: sensibleWith(func(p *P) { p.MaxAttempts, p.Budget = 4, nil }), s: S{Inline: true},
			near: func(p *P, _ *S) { p.MaxAttempts = 1 }},
		{name: "a minute", code: "no-budget", level: retryplan.Warning, p: P{Backoff: retry.Backoff{Delays: []time.Duration{20 * s, 20 * s, 10 * s, 10 * s}}},
			near: func(p *P, _ *S) { p.Disabled = true }},
		{name: "slower than a minute", code: "no-budget", level: retryplan.Note, p: P{Backoff: retry.Backoff{Delays: []time.Duration{20 * s, 20 * s, 10 * s, 10*s + 1}}},
			near: func(p *P, _ *S) { p.MaxAttempts = 1 }},
		{name: "inline", code: "no-budget", level: retryplan.Warning, p: P{MaxAttempts: retry.Unlimited}, s: S{Inline: true},
			near: func(p *P, _ *S) { p.Disabled = true }},
		{code: "no-jitter", level: retryplan.Warning, p: sensibleWith(func(p *P) { p.Jitter = 0 }),
			near: func(_ *P, s *S) { s.Clients = 1 }},
		{name: "herd", code: "no-jitter", level: retryplan.Severe, p: retry.Standard(), s: S{Clients: 1000},
			near: func(p *P, _ *S) { p.Delays = []time.Duration{0} }},
		{name: "decorrelated without a window", code: "no-jitter", level: retryplan.Warning, p: P{Backoff: exp(s, s, retry.DecorrelatedJitter)},
			near: func(p *P, _ *S) { p.Cap++ }},
		{code: "timeout-below-duration", level: retryplan.Severe, p: sensible(), s: S{Duration: retryplan.Constant(2*s + 1)},
			near: func(_ *P, s *S) { s.Duration = retryplan.Constant(2 * time.Second) }},
		{name: "some", code: "timeout-below-duration", level: retryplan.Warning, p: sensibleWith(func(p *P) { p.TTL = 2 * s }), s: S{Duration: retryplan.Uniform(s, 2*s+60*ms)},
			near: func(_ *P, s *S) { s.Duration = retryplan.Uniform(time.Second, 2050*time.Millisecond) }},
		{name: "at the mean", code: "unreachable-attempts", level: retryplan.Note, p: sensibleWith(func(p *P) { p.TTL, p.AttemptTimeout = 174*ms, 20*ms }),
			near: func(p *P, _ *S) { p.TTL = 175 * ms }},
		{name: "at the mean", code: "no-retry-can-start", level: retryplan.Note, p: sensibleWith(func(p *P) { p.TTL, p.AttemptTimeout = 24*ms, 20*ms }),
			near: func(p *P, _ *S) { p.TTL = 25 * ms }},
		{code: "unlimited-without-ttl", level: retryplan.Warning, p: P{MaxAttempts: retry.Unlimited},
			near: func(_ *P, s *S) { s.Deadline = time.Hour }},
		{name: "inline", code: "unlimited-without-ttl", level: retryplan.Severe, p: P{MaxAttempts: retry.Unlimited, AttemptTimeout: time.Minute}, s: S{Inline: true},
			near: func(p *P, _ *S) { p.TTL = time.Hour }},
		{code: "unreachable-attempts", level: retryplan.Warning, p: P{TTL: 634 * s}, // 5+10+20+40+80+160+320 is 635
			near: func(p *P, _ *S) { p.TTL++; p.TTL = 635 * s }},
		{name: "TTL", code: "no-retry-can-start", level: retryplan.Severe, p: P{TTL: s},
			near: func(p *P, _ *S) { p.TTL = 5 * s }},
		{name: "unlimited", code: "no-retry-can-start", level: retryplan.Severe, p: P{MaxAttempts: retry.Unlimited, TTL: 5*s - 1},
			near: func(p *P, _ *S) { p.TTL = 5 * s }},
		{name: "deadline", code: "unreachable-attempts", level: retryplan.Warning, p: P{}, s: S{Deadline: 635 * s},
			near: func(_ *P, s *S) { s.Deadline++ }},
		{name: "slow attempts", code: "unreachable-attempts", level: retryplan.Warning, p: sensibleWith(func(p *P) { p.TTL, p.AttemptTimeout = 2*s, s }), s: S{Duration: retryplan.Uniform(s-1, 2*s)},
			near: func(p *P, s *S) { p.TTL = 3300 * time.Millisecond }},
		{code: "zero-delay", level: retryplan.Warning, p: P{Backoff: list(0, 0)},
			near: func(p *P, _ *S) { p.Delays = []time.Duration{1000, 1000} }},
		{name: "first alone", code: "zero-delay", level: retryplan.Note, p: P{Backoff: list(0, s)},
			near: func(p *P, _ *S) { p.Delays = []time.Duration{s, 0}; p.MaxAttempts = 2 }},
		{name: "busy loop", code: "zero-delay", level: retryplan.Severe, p: P{MaxAttempts: retry.Unlimited, Backoff: list(s, 0)},
			near: func(p *P, _ *S) { p.MaxAttempts = 2 }},
	}
}

// Each finding vanishes if it is done as it says, that of the row's code and every other.
func TestEachCodeIsFoundAndItsNearMissIsNot(t *testing.T) {
	seen := map[string]bool{}
	for _, row := range lintRows() {
		seen[row.code] = true
		t.Run(strings.TrimSpace(row.code+" "+row.name), func(t *testing.T) {
			f, ok := findingOf(retryplan.Lint(row.p, row.s), row.code)
			require.True(t, ok, "%v", codesOf(retryplan.Lint(row.p, row.s)))
			require.Equal(t, row.level, f.Level, f.Text)
			t.Log(f.Text, f.Change)
			for _, f := range retryplan.Lint(row.p, row.s) {
				requireCleared(t, row.p, row.s, f)
			}

			row.near(&row.p, &row.s)
			f, ok = findingOf(retryplan.Lint(row.p, row.s), row.code)
			require.False(t, ok, f.Text)
		})
	}
	require.ElementsMatch(t, retryplan.Codes(), slices.Collect(maps.Keys(seen)), "a code without a row")
}

// Plan counts in its own way which attempts can start.
func TestReachableAttemptsAreThoseOfThePlan(t *testing.T) {
	exp := retry.Backoff{Base: time.Second, Cap: 20 * time.Second}
	for _, jitter := range []retry.JitterMode{retry.NoJitter, retry.FullJitter, retry.EqualJitter, retry.RatioJitter, retry.DecorrelatedJitter} {
		for i, limit := range []time.Duration{1, 2, 3, 7, 8, 15, 16, 31, 34, 51, 52, 67} {
			limit *= time.Second
			exp.Jitter = jitter
			p := retry.Policy{Backoff: exp, TTL: limit}
			s := retryplan.Setting{Duration: retryplan.Uniform(300*time.Millisecond, time.Second)}
			if i%2 == 0 {
				p.TTL, s.Deadline = 0, limit
			}
			plan, err := retryplan.New(p, retryplan.Model{Duration: s.Duration, Deadline: s.Deadline})
			require.NoError(t, err)
			found := retryplan.Lint(p, s)
			none, never := findingOf(found, "no-retry-can-start")
			switch f, ok := findingOf(found, "unreachable-attempts"); {
			case ok:
				var usually int
				_, err := fmt.Sscanf(f.Text, "Only %d of 8 attempts", &usually)
				require.NoError(t, err)
				require.LessOrEqual(t, usually, plan.CanStart)
				require.Equal(t, f.Level == retryplan.Warning, plan.CanStart < 8, "%v %v", jitter, limit)
			case never:
				require.Equal(t, none.Level == retryplan.Severe, plan.CanStart == 1, "%v %v", jitter, limit)
			default:
				require.Equal(t, 8, plan.CanStart, "%v %v", jitter, limit)
			}
		}
	}
}

func TestEveryBadFieldIsAFindingAndNothingElseIs(t *testing.T) {
	p := retry.Policy{MaxAttempts: -2, TTL: -1, Backoff: retry.Backoff{Base: 2 * time.Second, Cap: time.Second}}
	found := retryplan.Lint(p, retryplan.Setting{Inline: true})
	require.Equal(t, []retryplan.Finding{
		{Code: "invalid", Level: retryplan.Severe, Text: "Cap 1s is below Base 2s, and Do refuses the policy.", Change: "Set Cap to 0."},
		{Code: "invalid", Level: retryplan.Severe, Text: "MaxAttempts -2 is below -1, which is Unlimited, and Do refuses the policy.", Change: "Set MaxAttempts to 0."},
		{Code: "invalid", Level: retryplan.Severe, Text: "TTL -1ns is negative, and Do refuses the policy.", Change: "Set TTL to 0."},
	}, found)
}

func TestLintCallsNothingOfThePolicy(t *testing.T) {
	p := sensible()
	p.Classify = func(error) retry.Class { panic("Classify") }
	p.Gate = func(context.Context) time.Duration { panic("Gate") }
	p.Observe = func(context.Context, retry.Event) { panic("Observe") }
	p.Rand = func() float64 { panic("Rand") }
	p.Pay = func(context.Context, retry.Decision) bool { panic("Pay") }
	p.Wait = func(int, error, time.Duration) time.Duration { panic("Wait") }
	require.Nil(t, retryplan.Lint(p, retryplan.Setting{}))
	require.Equal(t, 10., p.Budget.Tokens(), "as full as a new budget is")
}

func TestWaitsOfOnesOwnAreTakenForAnyUpToCap(t *testing.T) {
	p := retry.Policy{MaxAttempts: 4, AttemptTimeout: time.Second, TTL: 10 * time.Second, Budget: retry.NewBudget(retry.BudgetConfig{}),
		Backoff: retry.Backoff{Base: time.Minute, Cap: time.Minute}}
	setting := retryplan.Setting{Inline: true, Clients: 1000}
	require.Equal(t, []string{"no-jitter", "no-retry-can-start"}, codesOf(retryplan.Lint(p, setting)))

	p.Wait = func(int, error, time.Duration) time.Duration { return time.Second }
	require.Nil(t, retryplan.Lint(p, setting))
}

func TestFindingsComeByLevelAndThenByCode(t *testing.T) {
	found := retryplan.Lint(retry.Policy{}, retryplan.Setting{Inline: true, Clients: 1000})
	require.Equal(t, []string{"inline-wait-too-long", "no-jitter", // severe
		"long-hint-inline", "no-attempt-timeout", "no-budget"}, codesOf(found))
}

func TestANegativeSettingCountsAsNone(t *testing.T) {
	none := retryplan.Lint(retry.Policy{}, retryplan.Setting{})
	require.Equal(t, none, retryplan.Lint(retry.Policy{}, retryplan.Setting{Deadline: -1, Clients: -1}))
}

// requireCleared requires that the finding vanishes if its Change is done to the letter.
func requireCleared(t *testing.T, p retry.Policy, s retryplan.Setting, f retryplan.Finding) {
	t.Helper()
	applied, err := changed(p, f.Change)
	require.NoError(t, err, "%s: %s", f.Code, f.Change)
	if f.Code == "invalid" {
		for _, g := range retryplan.Lint(applied, s) {
			require.NotEqual(t, f.Text, g.Text)
		}
		return
	}
	require.NoError(t, applied.Validate(), "%s: %s", f.Code, f.Change)
	g, ok := findingOf(retryplan.Lint(applied, s), f.Code)
	another := ok && strings.Fields(g.Text)[0] != strings.Fields(f.Text)[0] // of the same code: once attempts are fewer, a hang can still take some
	require.True(t, !ok || another, "%s\n%s\n%s\n%+v %+v", f.Text, f.Change, g.Text, p, s)

	simulated, funded := retryplan.ChangedBy(f)
	if simulated == nil {
		require.Contains(t, []string{"long-hint-inline", "list-longer-than-attempts"}, f.Code, "it does not matter to a simulation")
		return
	}
	require.Equal(t, funded, applied.Budget != p.Budget)
	applied.Budget = simulated.Budget
	require.Equal(t, fmt.Sprintf("%+v", applied.Effective()), fmt.Sprintf("%+v", simulated.Effective()), "Advise simulates what the text says: %s", f.Change)
}

// changePattern matches "MaxAttempts to 3" and "Delays[2] to 0s" in a Change.
var changePattern = regexp.MustCompile(`\b(MaxAttempts|Mode|Base|Factor|Cap|Delays|Jitter|JitterRatio|Backoff|AttemptTimeout|TTL|MaxHint|ResetAfter|Budget)(?:\[(\d+)\])? to (\S+)`)

// changed makes the change of the text in p, up to its first alternative.
func changed(p retry.Policy, text string) (retry.Policy, error) {
	text, _, _ = strings.Cut(text, ", or ")
	found := changePattern.FindAllStringSubmatch(text, -1)
	if found == nil {
		return p, fmt.Errorf("nothing to do")
	}
	for _, m := range found {
		value := strings.TrimRight(m[3], ".,")
		durations := map[string]*time.Duration{"Base": &p.Base, "Cap": &p.Cap, "AttemptTimeout": &p.AttemptTimeout, "TTL": &p.TTL, "MaxHint": &p.MaxHint, "ResetAfter": &p.ResetAfter}
		var err error
		switch field := m[1]; field {
		case "MaxAttempts":
			p.MaxAttempts, err = strconv.Atoi(value)
		case "Factor":
			p.Factor, err = strconv.ParseFloat(value, 64)
		case "JitterRatio":
			p.JitterRatio, err = strconv.ParseFloat(value, 64)
		case "Mode":
			p.Mode, err = valueNamed(value, map[string]retry.Mode{"0": 0})
		case "Jitter":
			p.Jitter, err = valueNamed(value, map[string]retry.JitterMode{"0": 0, "retry.FullJitter": retry.FullJitter, "retry.RatioJitter": retry.RatioJitter})
		case "Budget":
			p.Budget, err = valueNamed(value, map[string]*retry.Budget{"retry.NewBudget(retry.BudgetConfig{})": retry.NewBudget(retry.BudgetConfig{})})
		case "Backoff":
			p.Backoff, err = valueNamed(value, map[string]retry.Backoff{"retry.Backoff{}": {}})
		case "Delays":
			p.Delays = slices.Clone(p.Delays)
			var i int
			if m[2] == "" {
				if _, err = fmt.Sscanf(value, "Delays[:%d]", &i); err == nil {
					p.Delays = p.Delays[:i]
				}
			} else if i, err = strconv.Atoi(m[2]); err == nil {
				p.Delays[i], err = time.ParseDuration(value)
			}
		default:
			*durations[field], err = time.ParseDuration(value)
		}
		if err != nil {
			return p, fmt.Errorf("%s: %w", m[0], err)
		}
	}
	return p, nil
}

func valueNamed[T any](value string, values map[string]T) (T, error) {
	v, ok := values[value]
	if !ok {
		return v, fmt.Errorf("%s is unknown", value)
	}
	return v, nil
}

func FuzzLint(f *testing.F) {
	f.Add(0, 0, int64(0), 0.0, int64(0), 0, 0.0, int64(0), int64(0), int64(0), false, false, false, int64(0), 0, uint8(0), int64(0), int64(0), int64(0), int64(0), 0)
	f.Add(5, 1, int64(time.Second), 2.0, int64(time.Minute), 1, 0.0, int64(2*time.Second), int64(10*time.Second), int64(time.Hour), false, true, true,
		int64(5*time.Second), 1000, uint8(4), int64(time.Second), int64(2*time.Second), int64(0), int64(0), 0)
	f.Add(-1, 0, int64(0), 0.0, int64(0), 3, 0.1, int64(30), int64(0), int64(9), false, false, true, int64(1), 2, uint8(1), int64(3), int64(3), int64(0), int64(time.Second), 3)
	f.Fuzz(func(t *testing.T, attempts, mode int, base int64, factor float64, limit int64, jitter int, ratio float64, timeout, ttl, hint int64,
		disabled, budget, inline bool, deadline int64, clients int, shape uint8, a, b, d1, d2 int64, delays int) {
		p := retry.Policy{MaxAttempts: attempts, AttemptTimeout: time.Duration(timeout), TTL: time.Duration(ttl), MaxHint: time.Duration(hint), Disabled: disabled,
			Backoff: retry.Backoff{Mode: retry.Mode(mode), Base: time.Duration(base), Factor: factor, Cap: time.Duration(limit),
				Jitter: retry.JitterMode(jitter), JitterRatio: ratio}}
		for i := range delays & 15 {
			p.Delays = append(p.Delays, time.Duration([]int64{d1, d2, 0}[i%3]))
		}
		if budget {
			p.Budget = retry.NewBudget(retry.BudgetConfig{})
		}
		durations := []retryplan.Dist{{}, retryplan.Constant(time.Duration(a)), retryplan.Exponential(time.Duration(a)),
			retryplan.Uniform(time.Duration(a), time.Duration(b)), retryplan.LogNormal(time.Duration(a), time.Duration(b))}
		s := retryplan.Setting{Inline: inline, Deadline: time.Duration(deadline), Clients: clients, Duration: durations[int(shape)%len(durations)]}

		found := retryplan.Lint(p, s)
		require.Equal(t, found, retryplan.Lint(p, s))
		require.True(t, slices.IsSortedFunc(found, func(x, y retryplan.Finding) int {
			return cmp.Or(cmp.Compare(y.Level, x.Level), cmp.Compare(x.Code, y.Code))
		}))
		for _, f := range found {
			require.Contains(t, retryplan.Codes(), f.Code)
			require.Equal(t, p.Validate() != nil, f.Code == "invalid")
			require.True(t, f.Level >= retryplan.Note && f.Level <= retryplan.Severe)
			for _, text := range []string{f.Text, f.Change} {
				require.True(t, strings.HasSuffix(text, ".") && !strings.Contains(text, "\n") && !strings.Contains(text, "%!"), text)
			}
			requireCleared(t, p, s, f)
		}
	})
}

// A policy of so many attempts would take years if each was looked at.
func TestLintIsBounded(t *testing.T) {
	for _, jitter := range []retry.JitterMode{retry.NoJitter, retry.FullJitter, retry.DecorrelatedJitter} {
		p := retry.Policy{MaxAttempts: math.MaxInt, TTL: time.Hour, Backoff: retry.Backoff{Base: 2, Cap: time.Microsecond, Jitter: jitter}}
		require.NotEmpty(t, retryplan.Lint(p, retryplan.Setting{Inline: true, Deadline: time.Hour, Clients: 10, Duration: retryplan.Exponential(time.Nanosecond)}))
	}
}

func BenchmarkLint(b *testing.B) {
	p, s := sensible(), retryplan.Setting{Inline: true, Clients: 1000, Deadline: 10 * time.Second}
	for b.Loop() {
		retryplan.Lint(p, s)
	}
}
