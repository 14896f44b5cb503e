package retry_test

import (
	"context"
	"errors"
	"math"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/retrygo/retry"
)

var errOutage = errors.New("outage")

// anyTime is the now of a budget without Trickle, which does not read it.
var anyTime time.Time

// noWait retries without a wait. It needs MaxAttempts: as a List it would make two attempts.
var noWait = retry.Backoff{Delays: []time.Duration{0}}

// takeAll withdraws until there is no token and returns how many there were.
func takeAll(b *retry.Budget) int {
	for n := 0; ; n++ {
		if !take(b, anyTime) {
			return n
		}
	}
}

func depositTimes(b *retry.Budget, n int) {
	for range n {
		fund(b)
	}
}

func TestTheZeroBudgetConfigAllowsTenRetriesAtOnce(t *testing.T) {
	b := retry.NewBudget(retry.BudgetConfig{})
	require.Equal(t, 10.0, b.Tokens())
	require.Equal(t, 10, takeAll(b))
	require.Equal(t, 0.0, b.Tokens())
}

func TestBudgetRatio(t *testing.T) {
	const smallest = math.SmallestNonzeroFloat64
	for _, row := range []struct {
		name  string
		ratio float64
		burst int
		want  float64 // Tokens after one success
	}{
		{name: "zero means a tenth", ratio: 0, want: 0.1},
		{name: "negative zero means a tenth", ratio: math.Copysign(0, -1), want: 0.1},
		{name: "a half is a half", ratio: 0.5, want: 0.5},
		{name: "one is a token", ratio: 1, want: 1},
		{name: "two and a half is more than a token", ratio: 2.5, want: 2.5},
		{name: "a third is kept to a millionth", ratio: 1.0 / 3, want: 0.333333},
		{name: "two thirds are kept to a millionth", ratio: 2.0 / 3, want: 0.666667},
		{name: "a millionth is the least", ratio: 1e-6, want: 1e-6},
		{name: "half a millionth counts as a millionth", ratio: 5e-7, want: 1e-6},
		{name: "less than half a millionth counts as a millionth", ratio: 4e-7, want: 1e-6},
		{name: "the smallest positive number counts as a millionth", ratio: smallest, want: 1e-6},
		{name: "a negative one funds nothing", ratio: -0.1, want: 0},
		{name: "the largest negative number funds nothing", ratio: -smallest, want: 0},
		{name: "NaN funds nothing", ratio: math.NaN(), want: 0},
		{name: "just below Burst does not fill", ratio: 9.999999, want: 9.999999},
		{name: "Burst fills at once", ratio: 10, want: 10},
		{name: "above Burst fills and no more", ratio: 11, want: 10},
		{name: "a number with too many millionths fills and no more", ratio: 9.9e12, want: 10},
		{name: "a number with too many millionths fills the largest Burst", ratio: 1e15, burst: 1e9, want: 1e9},
		{name: "+Inf fills and no more", ratio: math.Inf(1), want: 10},
		{name: "the largest number fills the largest Burst", ratio: math.MaxFloat64, burst: 1e9, want: 1e9},
		{name: "a millionth below the largest Burst is kept", ratio: 999_999_999.999999, burst: 1e9, want: 999_999_999.999999},
	} {
		t.Run(row.name, func(t *testing.T) {
			b := retry.NewBudget(retry.BudgetConfig{Ratio: row.ratio, Burst: row.burst, Initial: -1})
			fund(b)
			require.Equal(t, row.want, b.Tokens())
		})
	}
}

func TestBudgetBurst(t *testing.T) {
	for _, row := range []struct {
		name  string
		burst int
		want  float64
	}{
		{name: "zero means ten", burst: 0, want: 10},
		{name: "one is the least", burst: 1, want: 1},
		{name: "-1 is clamped to one", burst: -1, want: 1},
		{name: "the least int is clamped to one", burst: math.MinInt, want: 1},
		{name: "a billion is the most", burst: 1_000_000_000, want: 1e9},
		{name: "a billion and one is clamped to a billion", burst: 1_000_000_001, want: 1e9},
		{name: "the largest int is clamped to a billion", burst: math.MaxInt, want: 1e9},
	} {
		t.Run(row.name, func(t *testing.T) {
			b := retry.NewBudget(retry.BudgetConfig{Ratio: math.Inf(1), Burst: row.burst, Initial: -1})
			fund(b)
			require.Equal(t, row.want, b.Tokens())
			fund(b)
			b.Refund()
			require.Equal(t, row.want, b.Tokens())
			require.True(t, take(b, anyTime))
			require.Equal(t, row.want-1, b.Tokens())
		})
	}
}

func TestBudgetInitial(t *testing.T) {
	for _, row := range []struct {
		name           string
		initial, burst int
		want           float64
	}{
		{name: "zero means Burst, which is ten", initial: 0, want: 10},
		{name: "zero means one if Burst is one", initial: 0, burst: 1, want: 1},
		{name: "zero means Burst", initial: 0, burst: 25, want: 25},
		{name: "one means one", initial: 1, want: 1},
		{name: "-1 means none", initial: -1, want: 0},
		{name: "-2 means none", initial: -2, want: 0},
		{name: "the least int means none", initial: math.MinInt, want: 0},
		{name: "it may be as much as Burst", initial: 7, burst: 7, want: 7},
		{name: "above Burst it is Burst", initial: 8, burst: 7, want: 7},
		{name: "above the default Burst it is ten", initial: 11, want: 10},
		{name: "above a clamped Burst it is one", initial: 5, burst: -3, want: 1},
		{name: "the largest int is Burst", initial: math.MaxInt, want: 10},
		{name: "two largest ints are a billion", initial: math.MaxInt, burst: math.MaxInt, want: 1e9},
	} {
		t.Run(row.name, func(t *testing.T) {
			b := retry.NewBudget(retry.BudgetConfig{Initial: row.initial, Burst: row.burst})
			require.Equal(t, row.want, b.Tokens())
			require.Equal(t, row.want >= 1, take(b, anyTime))
		})
	}
}

func TestBudgetArithmetic(t *testing.T) {
	for _, row := range []struct {
		name      string
		config    retry.BudgetConfig
		successes int
		tokens    float64 // after them
		granted   int     // retries
		left      float64
	}{
		{"nine successes buy no retry", retry.BudgetConfig{Initial: -1}, 9, 0.9, 0, 0.9},
		{"ten buy one", retry.BudgetConfig{Initial: -1}, 10, 1, 1, 0},
		{"ten are saved after ninety successes, not before", retry.BudgetConfig{Initial: 1}, 89, 9.9, 9, 0.9},
		{"ten are saved after ninety successes", retry.BudgetConfig{Initial: 1}, 90, 10, 10, 0},
		{"no more are saved", retry.BudgetConfig{Initial: 1}, 1090, 10, 10, 0},
		{"three times three tenths are no token", retry.BudgetConfig{Ratio: 0.3, Initial: -1}, 3, 0.9, 0, 0.9},
		{"four times three tenths are one and a part", retry.BudgetConfig{Ratio: 0.3, Initial: -1}, 4, 1.2, 1, 0.2},
		{"one short of a million millionths are no token", retry.BudgetConfig{Ratio: 1e-6, Initial: -1}, 999_999, 0.999999, 0, 0.999999},
		{"a million millionths are one", retry.BudgetConfig{Ratio: 1e-6, Initial: -1}, 1_000_000, 1, 1, 0},
		{"three thirds are a millionth short of one", retry.BudgetConfig{Ratio: 1.0 / 3, Initial: -1}, 3, 0.999999, 0, 0.999999},
		{"a hundred thousand tenths do not drift", retry.BudgetConfig{Burst: 20_000, Initial: -1}, 100_000, 10_000, 10_000, 0},
		{"a success into the last part of a token stops at Burst", retry.BudgetConfig{Ratio: 0.4, Burst: 2, Initial: 1}, 3, 2, 2, 0},
	} {
		t.Run(row.name, func(t *testing.T) {
			b := retry.NewBudget(row.config)
			depositTimes(b, row.successes)
			require.Equal(t, row.tokens, b.Tokens())
			require.Equal(t, row.granted, takeAll(b))
			for range 100 {
				require.False(t, take(b, anyTime), "a refusal takes nothing, however often")
			}
			require.Equal(t, row.left, b.Tokens())
		})
	}
	t.Run("a refund is a whole token, whatever the ratio, up to Burst", func(t *testing.T) {
		b := retry.NewBudget(retry.BudgetConfig{Ratio: -1, Burst: 2})
		require.True(t, take(b, anyTime))
		for range 2 {
			b.Refund()
			require.Equal(t, 2.0, b.Tokens())
		}
	})
	t.Run("a refund into the last part of a token stops at Burst", func(t *testing.T) {
		b := retry.NewBudget(retry.BudgetConfig{Burst: 2})
		require.True(t, take(b, anyTime))
		fund(b)
		require.Equal(t, 1.1, b.Tokens())
		b.Refund()
		require.Equal(t, 2.0, b.Tokens())
	})
	t.Run("without Trickle the time is not read", func(t *testing.T) {
		b := retry.NewBudget(retry.BudgetConfig{Initial: 2})
		require.True(t, take(b, time.Unix(math.MaxInt32, 0)))
		require.True(t, take(b, time.Time{}))
		require.False(t, take(b, time.Now().Add(math.MaxInt64)))
	})
}

func TestANilBudgetHasEndlessTokensAndItsMethodsDoNothing(t *testing.T) {
	var b *retry.Budget
	fund(b)
	b.Refund()
	for range 100 {
		require.True(t, take(b, anyTime))
	}
	require.Equal(t, math.Inf(1), b.Tokens())
}

func TestBudgetAllocatesNothing(t *testing.T) {
	// The race detector adds no allocation of its own here, so the check runs under it too.
	at := time.Now().Add(time.Hour)
	for _, row := range []struct {
		name   string
		config retry.BudgetConfig
	}{
		{name: "with tokens it allocates nothing", config: retry.BudgetConfig{Burst: 1e9, Initial: 1e9}},
		{name: "on refusals it allocates nothing", config: retry.BudgetConfig{Ratio: -1, Initial: -1}},
		{name: "with Trickle it allocates nothing", config: retry.BudgetConfig{Ratio: 1, Trickle: time.Second}},
	} {
		t.Run(row.name, func(t *testing.T) {
			b := retry.NewBudget(row.config)
			require.Equal(t, 0.0, testing.AllocsPerRun(1000, func() { fund(b) }), "Deposit")
			require.Equal(t, 0.0, testing.AllocsPerRun(1000, func() { take(b, at) }), "Withdraw")
			require.Equal(t, 0.0, testing.AllocsPerRun(1000, b.Refund), "Refund")
			require.Equal(t, 0.0, testing.AllocsPerRun(1000, func() { b.Tokens() }), "Tokens")
		})
	}
}

func TestBudgetTrickle(t *testing.T) {
	const T = time.Minute // the period, unless a row has its own
	type ask struct {
		at   time.Duration // since creation
		want bool
	}
	for _, row := range []struct {
		name   string
		config retry.BudgetConfig
		asks   []ask
	}{
		{"the first token comes one period after creation and not a nanosecond before", retry.BudgetConfig{},
			[]ask{{0, false}, {T - 1, false}, {T, true}}},
		{"a period grants one token", retry.BudgetConfig{},
			[]ask{{T, true}, {T, false}, {T + T/2, false}, {2*T - 1, false}, {2 * T, true}, {2 * T, false}}},
		{"ten idle periods grant one token and not ten", retry.BudgetConfig{},
			[]ask{{10 * T, true}, {10 * T, false}, {11*T - 1, false}, {11 * T, true}}},
		{"the periods are counted from creation and not from the last grant", retry.BudgetConfig{},
			[]ask{{2*T - 1, true}, {2 * T, true}, {3*T - 1, false}, {3 * T, true}}},
		{"a token taken in mid period is followed by a grant at the period's end", retry.BudgetConfig{Initial: 1},
			[]ask{{T / 2, true}, {T/2 + 1, false}, {T - 1, false}, {T, true}}},
		{"a token taken just before a period's end is followed by a grant at it", retry.BudgetConfig{Initial: 1},
			[]ask{{T - 1, true}, {T - 1, false}, {T, true}, {T, false}}},
		{"a token taken exactly at a period's end is followed by a grant at the next", retry.BudgetConfig{Initial: 1},
			[]ask{{T, true}, {T, false}, {2*T - 1, false}, {2 * T, true}}},
		{"periods that end while there is a token grant nothing", retry.BudgetConfig{Initial: 2},
			[]ask{{5 * T, true}, {9*T + T/2, true}, {9*T + T/2, false}, {10*T - 1, false}, {10 * T, true}}},
		{"it is the last whole token that counts", retry.BudgetConfig{Initial: 3},
			[]ask{{T / 4, true}, {T / 4, true}, {3 * T / 2, true}, {3 * T / 2, false}, {2 * T, true}}},
		{"time that goes back grants nothing twice", retry.BudgetConfig{},
			[]ask{{5 * T / 2, true}, {3 * T / 2, false}, {2 * T, false}, {0, false}, {3*T - 1, false}, {3 * T, true}}},
		{"time that goes back does not reopen the period in which the last token was taken", retry.BudgetConfig{Initial: 1},
			[]ask{{5 * T / 2, true}, {3 * T / 2, false}, {3*T - 1, false}, {3 * T, true}}},
		{"times before creation grant nothing and spoil nothing", retry.BudgetConfig{},
			[]ask{{-1, false}, {-T, false}, {-10 * T, false}, {math.MinInt64, false}, {T - 1, false}, {T, true}}},
		{"a token taken before creation spoils nothing", retry.BudgetConfig{Initial: 1}, []ask{{-3 * T, true}, {T - 1, false}, {T, true}}},
		{"the end of time grants one token", retry.BudgetConfig{}, []ask{{math.MaxInt64, true}, {math.MaxInt64, false}, {T, false}}},
		{"a nanosecond is a period", retry.BudgetConfig{Trickle: 1},
			[]ask{{0, false}, {1, true}, {1, false}, {2, true}, {math.MaxInt64, true}, {math.MaxInt64, false}}},
		{"the largest Duration is a period", retry.BudgetConfig{Trickle: math.MaxInt64},
			[]ask{{math.MaxInt64 - 1, false}, {math.MaxInt64, true}, {math.MaxInt64, false}}},
		{"a negative period means never", retry.BudgetConfig{Trickle: -T}, []ask{{T, false}, {math.MaxInt64, false}, {-T, false}}},
		{"the least Duration means never", retry.BudgetConfig{Trickle: math.MinInt64},
			[]ask{{T, false}, {math.MaxInt64, false}, {math.MinInt64, false}}},
	} {
		inBubble(t, row.name, func(t *testing.T) {
			c := row.config
			if c.Trickle == 0 {
				c.Trickle = T
			}
			if c.Initial == 0 {
				c.Initial = -1
			}
			ask := func(b *retry.Budget, created time.Time) {
				for i, a := range row.asks {
					require.Equal(t, a.want, take(b, created.Add(a.at)), "ask %d, at %v", i+1, a.at)
				}
				require.Equal(t, 0.0, b.Tokens())
			}
			ask(retry.NewBudget(c), time.Now())
			for _, created := range []time.Time{{}, time.Unix(0, 0), time.Now().Add(100 * T)} {
				ask(c.NewAt(created), created)
			}
		})
	}
}

// take takes the token for one retry and reports whether there was one.
func take(b *retry.Budget, now time.Time) bool {
	return spendOn(b, retry.Decision{Status: retry.WaitingRetry}, now).Status == retry.WaitingRetry
}

// fund adds what one success is worth.
func fund(b *retry.Budget) { spendOn(b, retry.Decision{Status: retry.Succeeded}, time.Time{}) }

// spendOn is Policy.Spend of a policy that has a budget and nothing else.
func spendOn(b *retry.Budget, d retry.Decision, now time.Time) retry.Decision {
	return retry.Policy{Budget: b}.Spend(context.Background(), d, now)
}

func TestBudgetConfigEffective(t *testing.T) {
	for _, row := range []struct {
		name        string
		given, want retry.BudgetConfig
	}{
		{"the zero value has the defaults", retry.BudgetConfig{}, retry.BudgetConfig{Ratio: 0.1, Burst: 10, Initial: 10}},
		{"what is set stays", retry.BudgetConfig{Ratio: 0.25, Burst: 4, Initial: 3, Trickle: sec}, retry.BudgetConfig{Ratio: 0.25, Burst: 4, Initial: 3, Trickle: sec}},
		{"no funding, nothing at first, and no Trickle", retry.BudgetConfig{Ratio: -3, Initial: -7, Trickle: -1}, retry.BudgetConfig{Ratio: -1, Burst: 10, Initial: -1}},
		{"what is too large is clamped", retry.BudgetConfig{Ratio: math.Inf(1), Burst: 2, Initial: 9}, retry.BudgetConfig{Ratio: 2, Burst: 2, Initial: 2}},
	} {
		require.Equal(t, row.want, row.given.Effective(), row.name)
		require.Equal(t, row.want, row.want.Effective(), row.name)
	}
}

// TestABudgetKnowsWhatItRefused: a page or a metric needs the capacity and the refusals, whatever the policies that share
// the budget are called.
func TestABudgetKnowsWhatItRefused(t *testing.T) {
	for _, row := range []struct {
		name                  string
		budget                *retry.Budget
		asked, burst, refused int
	}{
		{"the defaults", retry.NewBudget(retry.BudgetConfig{Initial: 1}), 3, 10, 2},
		{"a burst that is clamped", retry.NewBudget(retry.BudgetConfig{Burst: math.MaxInt, Initial: -1}), 1, 1_000_000_000, 1},
		{"a token for a period", retry.BudgetConfig{Initial: -1, Trickle: time.Second}.NewAt(anyTime.Add(-time.Minute)), 3, 10, 2},
		{"the zero Budget", &retry.Budget{}, 2, 0, 2},
		{"no budget", nil, 2, 0, 0},
	} {
		t.Run(row.name, func(t *testing.T) {
			for range row.asked {
				take(row.budget, anyTime)
			}
			require.Equal(t, row.burst, row.budget.Burst())
			require.Equal(t, row.refused, row.budget.Refused())
		})
	}
	t.Run("a refund takes no refusal back", func(t *testing.T) {
		b := retry.NewBudget(retry.BudgetConfig{Initial: -1})
		take(b, anyTime)
		b.Refund()
		require.Equal(t, 1, b.Refused())
	})
}
