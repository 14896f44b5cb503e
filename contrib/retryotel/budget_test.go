package retryotel_test

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/retrygo/retry"
	"github.com/retrygo/retry/contrib/retryotel"
)

func TestBudgetsAreGaugesUntilUnregistered(t *testing.T) {
	s := newSDK(t)
	payments, mail := retry.NewBudget(retry.BudgetConfig{Initial: 3}), retry.NewBudget(retry.BudgetConfig{Initial: 10})
	given := map[string]*retry.Budget{"payments": payments, "mail": mail}
	registration, err := retryotel.ObserveBudgets(s.Options, given)
	require.NoError(t, err)
	delete(given, "mail") // the map is copied
	more, err := retryotel.ObserveBudgets(s.Options, map[string]*retry.Budget{"search": retry.NewBudget(retry.BudgetConfig{Initial: -1})})
	require.NoError(t, err)

	require.Equal(t, map[string]float64{"retry.budget=payments": 3, "retry.budget=mail": 10, "retry.budget=search": 0}, s.gauge("retry.budget.tokens"))
	for _, s := range []retry.Status{retry.Waiting, retry.Succeeded} {
		require.Equal(t, s, retry.Policy{Budget: payments}.Spend(t.Context(), retry.Decision{Status: s}, time.Time{}).Status)
	}
	require.Equal(t, map[string]float64{"retry.budget=payments": 2.1, "retry.budget=mail": 10, "retry.budget=search": 0}, s.gauge("retry.budget.tokens"))

	require.NoError(t, registration.Unregister())
	require.Equal(t, map[string]float64{"retry.budget=search": 0}, s.gauge("retry.budget.tokens"))
	require.NoError(t, registration.Unregister()) // a second time does no harm
	require.NoError(t, more.Unregister())
	require.Empty(t, s.gauge("retry.budget.tokens"))
}

func TestABudgetSetIsCounted(t *testing.T) {
	s := newSDK(t)
	budgets := retry.NewBudgets(retry.BudgetConfig{}, 2)
	registration, err := retryotel.ObserveBudgetSet(s.Options, "tenants", budgets)
	require.NoError(t, err)
	budgets.For("a")
	require.Equal(t, map[string]int64{"retry.budget=tenants": 1}, s.sums("retry.budget.key.count"))
	budgets.For("b")
	budgets.For("c") // which gets the shared one
	require.Equal(t, map[string]int64{"retry.budget=tenants": 2}, s.sums("retry.budget.key.count"))
	require.Equal(t, map[string]int64{"retry.budget=tenants": 1}, s.sums("retry.budget.overflows"))
	require.NoError(t, registration.Unregister())
	require.Empty(t, s.sums("retry.budget.key.count"))
	require.Empty(t, s.sums("retry.budget.overflows"))
}

func TestBudgetsThatAreRefused(t *testing.T) {
	s := newSDK(t)
	_, err := retryotel.ObserveBudgets(s.Options, map[string]*retry.Budget{"mail": nil, "good": retry.NewBudget(retry.BudgetConfig{}), "card": nil})
	require.EqualError(t, err, `retryotel: budgets["card"] <nil> must be set; budgets["mail"] <nil> must be set`)
	require.ErrorAs(t, err, new(*retry.FieldError))
	_, err = retryotel.ObserveBudgetSet(s.Options, "tenants", nil)
	require.EqualError(t, err, "retryotel: set <nil> must be set")
	require.ErrorAs(t, err, new(*retry.FieldError))
	registration, err := retryotel.ObserveBudgets(s.Options, nil)
	require.NoError(t, err)
	require.Empty(t, s.gauge("retry.budget.tokens"))
	require.NoError(t, registration.Unregister())
}
