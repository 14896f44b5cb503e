package retryexport_test

import (
	"context"
	"fmt"
	"math"
	"reflect"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/retrygo/retry"
	"github.com/retrygo/retry/contrib/retryexport"
)

// everything is lost: an entry for each field of a Policy and of its Backoff.
func everything() map[string]string {
	says := map[string]string{}
	for _, f := range reflect.VisibleFields(reflect.TypeFor[retry.Policy]()) {
		says[f.Name] = "lost"
	}
	return says
}

func TestEachFieldThatIsSetHasALine(t *testing.T) {
	p := retry.Policy{
		Name: "a\nb", MaxAttempts: retry.Unlimited,
		Backoff:        retry.Backoff{Mode: retry.Linear, Base: time.Second, Cap: time.Hour, Jitter: retry.RatioJitter},
		AttemptTimeout: time.Second, TTL: 90 * time.Second, MaxHint: time.Hour, ResetAfter: 1_587_345_678, Disabled: true,
		Classify: retry.RetryOn(), Budget: retry.NewBudget(retry.BudgetConfig{}), Rand: func() float64 { return 0 },
		Wait:    func(int, error, time.Duration) time.Duration { return 0 },
		Pay:     func(context.Context, retry.Decision) bool { return true },
		Gate:    func(context.Context) time.Duration { return 0 },
		Observe: func(context.Context, retry.Event) {},
	}
	require.Equal(t, []string{
		`Policy.Name "a\nb": lost`, "Policy.MaxAttempts Unlimited: lost", "Policy.Mode linear: lost", "Policy.Cap 1h: lost",
		"Policy.Delays of 0 entries: lost", "Policy.Jitter ratio: lost", "Policy.JitterRatio 0.2: lost",
		"Policy.AttemptTimeout 1s: lost", "Policy.TTL 1m30s: lost", "Policy.MaxHint 1h: lost", "Policy.ResetAfter 1.587s: lost",
		"Policy.Disabled true: lost", "Policy.Classify is set: lost", "Policy.Wait is set: lost", "Policy.Budget is set: lost",
		"Policy.Pay is set: lost", "Policy.Gate is set: lost", "Policy.Observe is set: lost", "Policy.Rand is set: lost",
	}, retryexport.Lost(p, everything()))
	require.Empty(t, retryexport.Lost(p, nil))
	require.Equal(t, []string{"Policy.TTL 1m30s: not held"}, retryexport.Lost(p, map[string]string{"TTL": "not held"}))
}

func TestAZeroFieldHasNoLineUnlessItIsPartOfTheSchedule(t *testing.T) {
	require.Equal(t, []string{
		"Policy.MaxAttempts 8: lost", "Policy.Mode exponential: lost", "Policy.Cap 1h: lost", "Policy.Delays of 0 entries: lost",
		"Policy.Jitter none: lost", "Policy.JitterRatio 0: lost",
	}, retryexport.Lost(retry.Policy{}, everything()))
}

func TestSeries(t *testing.T) {
	atLeastOne := func(s *retryexport.Series) { s.Factor = max(s.Factor, 1) }
	for name, row := range map[string]struct {
		backoff retry.Backoff
		waits   int
		fit     func(*retryexport.Series)
		want    retryexport.Series
		exact   bool
	}{
		"an exponential":      {retry.Backoff{Base: time.Second, Cap: time.Minute}, 7, nil, retryexport.Series{First: time.Second, Top: time.Minute, Factor: 2}, true},
		"the defaults":        {retry.Backoff{}, 7, nil, retryexport.Series{First: 5 * time.Second, Top: time.Hour, Factor: 2}, true},
		"fixed":               {retry.Backoff{Mode: retry.Fixed, Base: time.Second}, 7, nil, retryexport.Series{First: time.Second, Top: time.Second, Factor: 1}, true},
		"linear":              {retry.Backoff{Mode: retry.Linear, Base: time.Second}, 4, nil, retryexport.Series{First: time.Second, Top: 4 * time.Second, Factor: math.Cbrt(4)}, false},
		"a list that doubles": {retry.Backoff{Delays: []time.Duration{1e9, 2e9, 4e9, 4e9}}, 4, nil, retryexport.Series{First: 1e9, Top: 4e9, Factor: 2}, true},
		"a list that shrinks": {retry.Backoff{Delays: []time.Duration{4e9, 1e9}}, 2, atLeastOne, retryexport.Series{First: 4e9, Top: 4e9, Factor: 1}, false},
		"one wait of a list":  {retry.Backoff{Delays: []time.Duration{4e9, 1e9}}, 1, nil, retryexport.Series{First: 4e9, Top: 4e9, Factor: 1}, true},
		"no wait":             {retry.Backoff{Delays: []time.Duration{0}}, 0, nil, retryexport.Series{First: 1, Top: 1, Factor: 1}, true},
		"waits without end":   {retry.Backoff{Base: time.Second}, math.MaxInt, nil, retryexport.Series{First: time.Second, Top: time.Hour, Factor: 2}, true},
	} {
		t.Run(name, func(t *testing.T) {
			s, exact := retryexport.SeriesOf(row.backoff, row.waits, row.fit)
			require.InDelta(t, row.want.Factor, s.Factor, 1e-12)
			s.Factor = row.want.Factor
			require.Equal(t, row.want, s)
			require.Equal(t, row.exact, exact)
		})
	}
}

// TestAnExactSeriesHasTheWaits compares backoffs with their series, which are said to be exact.
func TestAnExactSeriesHasTheWaits(t *testing.T) {
	for base := time.Duration(1); base < 1e12; base = base*7 + 3 {
		for _, factor := range []float64{1, 1.1, 1.5, 2, 3.7, 1e6} {
			for _, limit := range []time.Duration{0, base, base * 3, base * 1000} {
				b := retry.Backoff{Base: base, Factor: factor, Cap: limit}
				s, exact := retryexport.SeriesOf(b, 200, nil)
				require.True(t, exact)
				for n := range 200 {
					require.InDelta(t, b.Delay(n+1), s.Wait(n+1), 1+float64(s.Wait(n+1))*1e-9)
				}
			}
		}
	}
}

func TestAWaitThatWouldOverflowIsTheTop(t *testing.T) {
	s := retryexport.Series{First: time.Hour, Top: math.MaxInt64, Factor: 1e9}
	require.Equal(t, time.Duration(math.MaxInt64), s.Wait(math.MaxInt))
}

func ExampleLost() {
	p := retry.Policy{MaxAttempts: 5, TTL: 90 * time.Second, Budget: retry.NewBudget(retry.BudgetConfig{})}
	for _, line := range retryexport.Lost(p, map[string]string{
		"TTL":    "an attempt starts at any time",
		"Budget": "retries are free",
		"Gate":   "it is not called",
	}) {
		fmt.Println(line)
	}
	// Output:
	// Policy.TTL 1m30s: an attempt starts at any time
	// Policy.Budget is set: retries are free
}

func ExampleSeriesOf() {
	b := retry.Backoff{Mode: retry.Linear, Base: time.Second}
	s, exact := retryexport.SeriesOf(b, 4, nil)
	fmt.Println(retryexport.Waits(b.Delay, 4), "as", retryexport.Waits(s.Wait, 4), exact)
	// Output: 1s 2s 3s 4s as 1s 1.587s 2.52s 4s false
}

func TestShort(t *testing.T) {
	for d, want := range map[time.Duration]string{
		0:                            "0s",
		1:                            "1ns",
		30 * time.Second:             "30s",
		80 * time.Second:             "1m20s",
		5 * time.Minute:              "5m",
		2 * time.Hour:                "2h",
		time.Hour + time.Second:      "1h0m1s",
		1_587_345_678:                "1.587s",
		time.Hour + time.Millisecond: "1h",
		math.MaxInt64:                "2562047h47m16.854775807s",
	} {
		require.Equal(t, want, retryexport.Short(d))
	}
}
