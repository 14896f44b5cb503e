package retryconf_test

import (
	"encoding/json"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/retrygo/retry"
	"github.com/retrygo/retry/retryconf"
)

func ExampleHedge_Policy() {
	s, err := retryconf.Parse([]byte(`{"extends": "inline", "hedge": {"share": 0.02, "max_delay": "1s"}}`), retryconf.Spec{}, retryconf.Limits{})
	if err != nil {
		fmt.Println(err)
		return
	}
	p, err := s.Policy()
	hedge, _ := s.Hedge.Policy() // which Parse has checked
	p.Budget = retry.NewBudget(retry.BudgetConfig{})
	hedge.Budget, hedge.InRun = p.Budget, true
	fmt.Println(hedge, err)
	// Output:
	// hedge 2% of calls, after 1ms to 1s, at most 2 calls, with a budget <nil>
}

func ExampleRef_Hedge() {
	var c retryconf.Catalog
	prices := c.Define("prices", retry.Inline())
	err := c.Load(strings.NewReader(`{"policies": {"prices": {"hedge": {"delay": "50ms"}}}}`))
	fmt.Println(prices.Hedge(), err)
	// Output: prices: hedge after 50ms, at most 2 calls <nil>
}

func TestHedges(t *testing.T) {
	for document, want := range map[string]string{
		`{}`:                                   "no hedges",
		`{"max_calls": 1}`:                     "no hedges",
		`{"delay": "50ms"}`:                    "hedge after 50ms, at most 2 calls",
		`{"delay": "50ms", "max_calls": 1}`:    "no hedges",
		`{"share": 0.02}`:                      "hedge 2% of calls, after 1ms to 10s, at most 2 calls",
		`{"min_delay": "5ms", "max_calls": 8}`: "hedge 5% of calls, after 5ms to 10s, at most 8 calls",
		`{"max_delay": "1s"}`:                  "hedge 5% of calls, after 1ms to 1s, at most 2 calls",
		`{"share": 0.6}`:                       "hedge.share 0.6 is outside (0, 0.5]",
		`{"max_calls": 9, "delay": "1s"}`:      "hedge.max_calls 9 is outside 1 to 8",
		`{"max_calls": "unlimited"}`:           "hedge.max_calls \"unlimited\" is not a number of 1 to 8",
		`{"max_calls": 3}`:                     "hedge.max_calls 3 is given without a delay or a share",
		`{"delay": "1s", "share": 0.1}`:        `hedge.delay "1s" is given together with a share or its bounds, which choose it`,
		`{"min_delay": "1m"}`:                  `hedge.min_delay "1m" is above max_delay 10s`,
		`{"delay": "0s", "shard": 1}`:          `hedge.delay "0s" is not above 0 (leave it out for the default); hedge.shard is not a known key (did you mean "share"?)`,
		`{"delay": "1s", "max_calls": 2, "share": 0.9}`: `hedge.delay "1s" is given together with a share or its bounds, which choose it; ` +
			"hedge.share 0.9 is outside (0, 0.5]",
		`[]`: "hedge [] is not a JSON object",
	} {
		s, err := retryconf.Parse([]byte(`{"hedge": `+document+`}`), retryconf.Spec{}, noLimits)
		if err != nil {
			require.EqualError(t, err, "retryconf: "+want, document)
			requireFields(t, err)
			continue
		}
		p, err := s.Hedge.Policy()
		require.NoError(t, err)
		require.Equal(t, want, p.String(), document)

		text, err := json.Marshal(s)
		require.NoError(t, err)
		fromEnviron := []string{}
		var keys struct{ Hedge map[string]any }
		require.NoError(t, json.Unmarshal(text, &keys))
		for key, value := range keys.Hedge {
			value, _ := json.Marshal(value)
			fromEnviron = append(fromEnviron, "X_HEDGE_"+strings.ToUpper(key)+"="+strings.Trim(string(value), `"`))
		}
		again, err := retryconf.FromEnviron("X_", fromEnviron)
		require.NoError(t, err)
		require.Equal(t, s, again, document)
	}
	_, err := retryconf.Hedge{MaxCalls: 3}.Policy()
	require.EqualError(t, err, "retryconf: max_calls 3 is given without a delay or a share")
	_, err = retryconf.FromEnviron("X_", []string{"X_HEDGE=1s", "X_HEDGE_DELAI=1s"})
	require.EqualError(t, err, `retryconf: X_HEDGE "1s" is an object: set HEDGE_DELAY and so on; X_HEDGE_DELAI is not a known key (did you mean "DELAY"?)`)
}

func TestHedgesOfTenants(t *testing.T) {
	type limits = retryconf.Limits
	base := retryconf.Spec{Hedge: retryconf.Hedge{Share: 0.05}}
	for _, row := range []struct {
		document string
		limits   limits
		want     string
	}{
		{`{"delay": "1ns"}`, limits{}, ""},
		{`{"delay": "1s"}`, retryconf.ServiceLimits(), "hedge.max_calls 2 (the default) is above 1"},
		{`{"delay": "1s", "max_calls": 1}`, retryconf.ServiceLimits(), ""},
		{`{"share": 0.1, "max_calls": 3}`, limits{MaxHedgeCalls: 2}, "hedge.max_calls 3 is above 2"},
		{`{"share": 0.1, "max_calls": 2}`, limits{MaxHedgeCalls: 2}, ""},
		{`{"delay": "9ms"}`, limits{MinHedgeDelay: 10 * time.Millisecond}, `hedge.delay "9ms" is below 10ms`},
		{`{"delay": "10ms"}`, limits{MinHedgeDelay: 10 * time.Millisecond}, ""},
		{`{"share": 0.1}`, limits{MinHedgeDelay: 10 * time.Millisecond}, `hedge.min_delay "1ms" (the default) is below 10ms`},
		{`{"min_delay": "2ms"}`, limits{MinHedgeDelay: 10 * time.Millisecond}, `hedge.min_delay "2ms" is below 10ms`},
		{`{"max_calls": 9, "delay": 5}`, limits{}, `hedge.delay 5 is a number (write it as a string with its unit, such as "30s")`},
	} {
		s, err := retryconf.Parse([]byte(`{"hedge": `+row.document+`}`), base, row.limits)
		if row.want != "" {
			require.EqualError(t, err, "retryconf: "+row.want, row.document)
			continue
		}
		require.NoError(t, err, row.document)
		require.Equal(t, s.Hedge, s.Or(base).Hedge, "as a whole")
	}
	require.Equal(t, base.Hedge, retryconf.Spec{Base: 1}.Or(base).Hedge)
}

func TestHedgesOfACatalog(t *testing.T) {
	var c retryconf.Catalog
	prices, orders := c.Define("prices", retry.Policy{}), c.Define("orders", retry.Policy{Name: "o"})
	require.True(t, prices.Hedge().Off())
	require.True(t, new(retryconf.Ref).Hedge().Off())

	load := func(document string) { t.Helper(); require.NoError(t, c.Load(strings.NewReader(document))) }
	load(`{"defaults": {"hedge": {"share": 0.02}}, "policies": {"orders": {"hedge": {"max_calls": 1}}}}`)
	first := prices.Hedge()
	require.Equal(t, "prices: hedge 2% of calls, after 1ms to 10s, at most 2 calls", first.String())
	require.Equal(t, "o: no hedges", orders.Hedge().String())
	require.True(t, c.All()[1].Loaded, "defaults that change it")

	load(`{"policies": {"prices": {"name": "p", "hedge": {"share": 0.02}}, "orders": {"extends": "prices"}}}`)
	require.Same(t, first.Tracker, prices.Hedge().Tracker, "the same data keep what is learned")
	require.Equal(t, "p", prices.Hedge().Name)
	require.NotSame(t, first.Tracker, orders.Hedge().Tracker)
	require.Equal(t, "o: hedge 2% of calls, after 1ms to 10s, at most 2 calls", orders.Hedge().String())

	var written strings.Builder
	_, err := c.WriteTo(&written)
	require.NoError(t, err)
	load(`{"policies": {"prices": {"hedge": {"delay": "1s"}}}}`)
	require.Equal(t, "prices: hedge after 1s, at most 2 calls", prices.Hedge().String())
	require.True(t, orders.Hedge().Off())
	load(written.String())
	require.Equal(t, "p: hedge 2% of calls, after 1ms to 10s, at most 2 calls", prices.Hedge().String())
	require.NotSame(t, first.Tracker, prices.Hedge().Tracker)

	require.EqualError(t, c.Load(strings.NewReader(`{"policies": {"prices": {"hedge": {"share": 2}}}}`)),
		"retryconf: policies.prices.hedge.share 2 is outside (0, 0.5]")
}
