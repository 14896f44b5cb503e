package retryotel

import (
	"fmt"

	"go.opentelemetry.io/otel/metric"

	"github.com/retrygo/retry"
)

type instruments struct {
	runs            metric.Int64Counter
	runAttempts     metric.Int64Histogram
	runDuration     metric.Float64Histogram
	delay           metric.Float64Histogram
	attempts        metric.Int64Counter
	attemptDuration metric.Float64Histogram
}

func newInstruments(m metric.Meter) (i instruments, err error) {
	var errs [6]error
	seconds := func(n int, name, description string) (h metric.Float64Histogram) {
		h, errs[n] = m.Float64Histogram(name, metric.WithUnit("s"), metric.WithDescription(description),
			// From an immediate retry to a day. From 10s on they are the waits of the published schedules (retry.Aggressive,
			// Standard, Patient, Cautious), so each of them is exactly on a bound.
			metric.WithExplicitBucketBoundaries(0.001, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 5, 10, 30,
				60, 300, 600, 1800, 3600, 3*3600, 6*3600, 12*3600, 24*3600))
		return h
	}
	i.runDuration = seconds(0, "retry.run.duration", "Time from the beginning of a run to its end, waits included.")
	i.delay = seconds(1, "retry.delay", "Wait decided before a retry.")
	i.attemptDuration = seconds(2, "retry.attempt.duration", "Time that an attempt took.")
	i.runs, errs[3] = m.Int64Counter("retry.runs",
		metric.WithUnit("{run}"), metric.WithDescription("Runs that ended, by how they ended."))
	i.attempts, errs[4] = m.Int64Counter("retry.attempts",
		metric.WithUnit("{attempt}"), metric.WithDescription("Attempts that ended, by their class."))
	i.runAttempts, errs[5] = m.Int64Histogram("retry.run.attempts",
		metric.WithUnit("{attempt}"), metric.WithDescription("Attempts that a run made, the first one included."),
		// 0 is a run whose caller's context had already ended.
		metric.WithExplicitBucketBoundaries(0, 1, 2, 3, 4, 5, 6, 8, 10, 15, 20, 50, 100))
	return i, refused(errs[:]...)
}

// refused returns the errors of a MeterProvider about our instruments as one error on one line, or nil.
func refused(errs ...error) error {
	var bad retry.FieldErrors
	for _, err := range errs {
		if err != nil {
			bad.Append(fmt.Errorf("retryotel: Options.MeterProvider: %w", err))
		}
	}
	return bad.Err()
}
