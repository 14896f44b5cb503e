package retryotel

import (
	"context"

	"go.opentelemetry.io/otel/attribute"
	"go.opentelemetry.io/otel/metric"

	"github.com/retrygo/retry"
)

// ObserveBudget reports the tokens of a budget as the gauge retry.budget.tokens, with the name as retry.budget. A name must
// be registered only once, since only one of two budgets with the same name is reported. Unregister of the result ends
// the observation. Until then the budget is kept. A nil budget is refused.
func ObserveBudget(o Options, name string, b *retry.Budget) (metric.Registration, error) {
	if b == nil {
		return nil, unset("budget")
	}
	meter, option := o.meter(), budgetOption(name)
	tokens, err := meter.Float64ObservableGauge("retry.budget.tokens",
		metric.WithUnit("{token}"),
		metric.WithDescription("Retries that a budget can pay for now."))
	if err != nil {
		return nil, refused(err)
	}
	registration, err := meter.RegisterCallback(func(_ context.Context, to metric.Observer) error {
		to.ObserveFloat64(tokens, b.Tokens(), option...)
		return nil
	}, tokens)
	return registration, refused(err)
}

// ObserveBudgetSet reports the number of keys that have a budget of their own in a set (retry.budget.key.count) and the
// number of times that another key got the one that such keys share (retry.budget.overflows), with the name as retry.budget. The tokens of each key are not
// reported, since there may be too many keys, such as tenants, for a metric. Unregister of the result ends the observation. A
// nil set is refused.
func ObserveBudgetSet(o Options, name string, set *retry.Budgets) (metric.Registration, error) {
	if set == nil {
		return nil, unset("set")
	}
	meter, option := o.meter(), budgetOption(name)
	keys, keysErr := meter.Int64ObservableUpDownCounter("retry.budget.key.count",
		metric.WithUnit("{key}"),
		metric.WithDescription("Keys that have a budget of their own in a set."))
	overflows, overflowsErr := meter.Int64ObservableCounter("retry.budget.overflows",
		metric.WithUnit("{budget}"),
		metric.WithDescription("How often a key without a budget of its own got the shared one of a set."))
	if err := refused(keysErr, overflowsErr); err != nil {
		return nil, err
	}
	registration, err := meter.RegisterCallback(func(_ context.Context, to metric.Observer) error {
		to.ObserveInt64(keys, int64(set.Len()), option...)
		to.ObserveInt64(overflows, int64(set.Overflows()), option...)
		return nil
	}, keys, overflows)
	return registration, refused(err)
}

func budgetOption(name string) []metric.ObserveOption {
	return []metric.ObserveOption{metric.WithAttributeSet(attribute.NewSet(keyBudget.String(valid(name))))}
}

// unset refuses a nil argument.
func unset(argument string) error {
	return &retry.FieldError{Package: "retryotel", Field: argument, Value: "<nil>", Rule: "must be set"}
}
