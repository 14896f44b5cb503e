package retryotel

import (
	"context"
	"time"

	"go.opentelemetry.io/otel/attribute"
	"go.opentelemetry.io/otel/metric"

	"github.com/retrygo/retry/retryjob"
)

// ObserveSchedules reports how overdue each schedule of recurring jobs is (retry.schedule.overdue), in seconds, 0 if it is
// not, with the name as retry.engine and that of the schedule as retry.schedule. A schedule is overdue if its occurrence
// has been due for more than a minute and has not begun, or if the next one cannot be enqueued. A backup that no longer
// runs fails no attempt. The schedules are read at each collection, within its context, from a. Its error goes to the
// SDK. If several processes share a database, only one should observe it. Unregister of the result ends the observation.
// A nil a is refused.
func ObserveSchedules(o Options, name string, a retryjob.Admin) (metric.Registration, error) {
	if a == nil {
		return nil, unset("a")
	}
	meter, engine := o.meter(), keyEngine.String(valid(name))
	overdue, err := meter.Float64ObservableGauge("retry.schedule.overdue",
		metric.WithUnit("s"),
		metric.WithDescription("How long an occurrence of a schedule has been due without having begun."))
	if err := refused(err); err != nil {
		return nil, err
	}
	registration, err := meter.RegisterCallback(func(ctx context.Context, to metric.Observer) error {
		schedules, err := retryjob.ReadSchedules(ctx, a, time.Now())
		if err != nil {
			return err
		}
		for _, s := range schedules {
			to.ObserveFloat64(overdue, s.Overdue.Seconds(), metric.WithAttributeSet(attribute.NewSet(engine, keySchedule.String(s.Name))))
		}
		return nil
	}, overdue)
	return registration, refused(err)
}
