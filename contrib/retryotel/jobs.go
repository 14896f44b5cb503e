package retryotel

import (
	"context"
	"time"

	"go.opentelemetry.io/otel/attribute"
	"go.opentelemetry.io/otel/metric"

	"github.com/retrygo/retry/retryjob"
)

// ObserveJobs reports the number of jobs of an engine by status (retry.job.count), how many of them are occurrences of
// recurring jobs (retry.job.recurring), and how overdue the oldest waiting job is (retry.job.lag), 0 if no job is due, all
// with the name as retry.engine. They are counted at each collection, within its context, by count, which is the method
// Count of a retryjob.Admin. Its error goes to the SDK. If several processes share a database, only one should observe
// it. Unregister of the result ends the observation. A nil count is refused.
func ObserveJobs(
	o Options, name string, count func(context.Context, retryjob.Filter) (map[retryjob.Status]retryjob.Tally, error),
) (metric.Registration, error) {
	if count == nil {
		return nil, unset("count")
	}
	meter, engine := o.meter(), keyEngine.String(valid(name))
	held, heldErr := meter.Int64ObservableUpDownCounter("retry.job.count",
		metric.WithUnit("{job}"),
		metric.WithDescription("Jobs that an engine has."))
	lag, lagErr := meter.Float64ObservableGauge("retry.job.lag",
		metric.WithUnit("s"),
		metric.WithDescription("How long the oldest job that waits has been due."))
	recurring, recurringErr := meter.Int64ObservableUpDownCounter("retry.job.recurring",
		metric.WithUnit("{job}"),
		metric.WithDescription("Occurrences of recurring jobs that an engine has."))
	if err := refused(heldErr, lagErr, recurringErr); err != nil {
		return nil, err
	}
	registration, err := meter.RegisterCallback(func(ctx context.Context, to metric.Observer) error {
		counts, err := count(ctx, retryjob.Filter{})
		if err != nil {
			return err
		}
		back, err := count(ctx, retryjob.Filter{Tags: []string{retryjob.RecurringTag}})
		if err != nil {
			return err
		}
		behind := time.Duration(0)
		for _, s := range retryjob.Statuses() {
			t := counts[s]
			status := metric.WithAttributeSet(attribute.NewSet(engine, keyStatus.String(s.String())))
			to.ObserveInt64(held, int64(t.Jobs), status)
			to.ObserveInt64(recurring, int64(back[s].Jobs), status)
			if t.Jobs > 0 && (s == retryjob.Pending || s == retryjob.WaitingRetry) {
				behind = max(behind, time.Since(t.Oldest))
			}
		}
		to.ObserveFloat64(lag, behind.Seconds(), metric.WithAttributeSet(attribute.NewSet(engine)))
		return nil
	}, held, recurring, lag)
	return registration, refused(err)
}
