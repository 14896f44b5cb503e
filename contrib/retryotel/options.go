package retryotel

import (
	"cmp"

	"go.opentelemetry.io/otel"
	"go.opentelemetry.io/otel/metric"
	"go.opentelemetry.io/otel/propagation"
	semconv "go.opentelemetry.io/otel/semconv/v1.43.0"
	"go.opentelemetry.io/otel/trace"

	"github.com/retrygo/retry"
)

// scope is the name of the instrumentation scope.
const scope = "github.com/retrygo/retry/contrib/retryotel"

// A policy's runs end in 19 ways: 2 of success, and 17 of failure by reason and by whether there was a retry. 100
// names, the runs without a name and those beyond the 100 make 1,938 series of retry.runs. The SDK folds what is beyond
// 2,000 per instrument into one series (sdk/metric, WithCardinalityLimit).
const defaultMaxPolicies = 100

// Options are the destinations of measurements and spans. The zero Options use OpenTelemetry's globals, which may be
// set later.
type Options struct {
	// MeterProvider makes the instruments of Observe, ObserveBudgets and ObserveBudgetSet. Nil means the global one.
	MeterProvider metric.MeterProvider
	// TracerProvider makes the spans of Do, DoValue, Wrap and HTTP, and those that Observe makes for jobs. Nil means the
	// global one.
	TracerProvider trace.TracerProvider
	// Propagator writes the trace context into the headers of what HTTP sends. Nil means the global one, which writes
	// nothing before it is set.
	Propagator propagation.TextMapPropagator
	// MaxPolicies is how many policy names the metrics of one Observe distinguish, in the order of their first use.
	// Runs of further names count under "_OTHER". Runs without a name do not count. Negative is refused. Zero means
	// 100.
	MaxPolicies int
}

// Validate returns nil or retry.FieldErrors: a negative MaxPolicies is refused.
func (o Options) Validate() error {
	var bad retry.FieldErrors
	if o.MaxPolicies < 0 {
		bad.Refuse("retryotel.Options.MaxPolicies", o.MaxPolicies, "is negative")
	}
	return bad.Err()
}

func (o *Options) maxPolicies() int { return cmp.Or(o.MaxPolicies, defaultMaxPolicies) }

func (o *Options) meter() metric.Meter {
	provider := o.MeterProvider
	if provider == nil {
		provider = otel.GetMeterProvider()
	}
	return provider.Meter(scope, metric.WithSchemaURL(semconv.SchemaURL))
}

func (o *Options) tracer() trace.Tracer {
	provider := o.TracerProvider
	if provider == nil {
		provider = otel.GetTracerProvider()
	}
	return provider.Tracer(scope, trace.WithSchemaURL(semconv.SchemaURL))
}

func (o *Options) propagator() propagation.TextMapPropagator {
	if o.Propagator == nil {
		return otel.GetTextMapPropagator()
	}
	return o.Propagator
}
