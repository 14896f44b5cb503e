package sdks_test

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/retrygo/retry"
	"github.com/retrygo/retry/contrib/retryotel"
)

func TestBudgetsAreGaugesUntilUnregistered(t *testing.T) {
	s := newSDK(t)
	payments := retry.NewBudget(retry.BudgetConfig{Initial: 3})
	registration, err := retryotel.ObserveBudget(s.Options, "payments", payments)
	require.NoError(t, err)
	more, err := retryotel.ObserveBudget(s.Options, "search", retry.NewBudget(retry.BudgetConfig{Initial: -1}))
	require.NoError(t, err)

	require.Equal(t, map[string]float64{"retry.budget=payments": 3, "retry.budget=search": 0}, s.values("retry.budget.tokens"))
	for _, s := range []retry.Status{retry.WaitingRetry, retry.Succeeded} {
		require.Equal(t, s, retry.Policy{Budget: payments}.Spend(t.Context(), retry.Decision{Status: s}, time.Time{}).Status)
	}
	require.Equal(t, map[string]float64{"retry.budget=payments": 2.1, "retry.budget=search": 0}, s.values("retry.budget.tokens"))

	require.NoError(t, registration.Unregister())
	require.Equal(t, map[string]float64{"retry.budget=search": 0}, s.values("retry.budget.tokens"))
	require.NoError(t, registration.Unregister()) // a second time does no harm
	require.NoError(t, more.Unregister())
	require.Empty(t, s.values("retry.budget.tokens"))
}

func TestABudgetSetIsCounted(t *testing.T) {
	s := newSDK(t)
	budgets := retry.NewBudgets(retry.BudgetConfig{}, 2)
	registration, err := retryotel.ObserveBudgetSet(s.Options, "tenants", budgets)
	require.NoError(t, err)
	budgets.For("a")
	require.Equal(t, map[string]float64{"retry.budget=tenants": 1}, s.values("retry.budget.key.count"))
	budgets.For("b")
	budgets.For("c") // which gets the shared one
	require.Equal(t, map[string]float64{"retry.budget=tenants": 2}, s.values("retry.budget.key.count"))
	require.Equal(t, map[string]float64{"retry.budget=tenants": 1}, s.values("retry.budget.overflows"))
	require.NoError(t, registration.Unregister())
	require.Empty(t, s.values("retry.budget.key.count"))
	require.Empty(t, s.values("retry.budget.overflows"))
}

func TestWhatIsNilIsRefused(t *testing.T) {
	o := newSDK(t).Options
	_, budget := retryotel.ObserveBudget(o, "mail", nil)
	_, set := retryotel.ObserveBudgetSet(o, "tenants", nil)
	_, jobs := retryotel.ObserveJobs(o, "mails", nil)
	_, schedules := retryotel.ObserveSchedules(o, "reports", nil)
	for name, err := range map[string]error{"budget": budget, "set": set, "count": jobs, "a": schedules} {
		require.EqualError(t, err, "retryotel: "+name+" <nil> must be set")
		require.ErrorAs(t, err, new(*retry.FieldError))
	}
}
