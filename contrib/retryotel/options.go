package retryotel

import (
	"go.opentelemetry.io/otel"
	"go.opentelemetry.io/otel/metric"
	"go.opentelemetry.io/otel/trace"
)

const scope = "github.com/retrygo/retry/contrib/retryotel"

// schemaURL names the version of the conventions in which error.type is as it is used here.
const schemaURL = "https://opentelemetry.io/schemas/1.43.0"

// A policy's runs end in 21 ways (TestTheSeriesAreFewerThanTheSDKsLimit counts them). 80 names, the runs without a name
// and those beyond the 80 make 1,722 series of retry.runs. The SDK folds those beyond 2,000 per instrument into one
// series (sdk/metric, WithCardinalityLimit).
const maxPolicies = 80

// Options are the destinations of measurements and spans. The zero Options use OpenTelemetry's globals, which may be
// set later.
type Options struct {
	// MeterProvider makes the instruments. Nil means the global one.
	MeterProvider metric.MeterProvider
	// TracerProvider makes the spans. Nil means the global one.
	TracerProvider trace.TracerProvider
}

func (o *Options) meter() metric.Meter {
	provider := o.MeterProvider
	if provider == nil {
		provider = otel.GetMeterProvider()
	}
	return provider.Meter(scope, metric.WithSchemaURL(schemaURL))
}

func (o *Options) tracer() trace.Tracer {
	provider := o.TracerProvider
	if provider == nil {
		provider = otel.GetTracerProvider()
	}
	return provider.Tracer(scope, schema...)
}

// schema is here so that a tracer, which Do needs for each run, costs less.
var schema = []trace.TracerOption{trace.WithSchemaURL(schemaURL)}
