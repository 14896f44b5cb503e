package main

import (
	"bytes"
	"context"
	"errors"
	"log/slog"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/otlptranslator"
	otelprometheus "go.opentelemetry.io/otel/exporters/prometheus"
	sdkmetric "go.opentelemetry.io/otel/sdk/metric"
	sdktrace "go.opentelemetry.io/otel/sdk/trace"
	"go.opentelemetry.io/otel/sdk/trace/tracetest"
	"go.opentelemetry.io/otel/trace"

	"github.com/retrygo/retry"
	"github.com/retrygo/retry/contrib/retryotel"
	"github.com/retrygo/retry/retryslog"
)

// telemetry is the setup that a service does once.
type telemetry struct {
	registry *prometheus.Registry
	meters   *sdkmetric.MeterProvider
	tracers  *sdktrace.TracerProvider
	tracer   trace.Tracer // of the spans around the calls, which are the service's own
	spans    *tracetest.InMemoryExporter
	log      *bytes.Buffer
	options  retryotel.Options
	observe  func(context.Context, retry.Event) // for Policy.Observe
}

func newTelemetry() (*telemetry, error) {
	t := &telemetry{
		registry: prometheus.NewRegistry(), // not the default one, which also has the metrics of the Go runtime
		spans:    tracetest.NewInMemoryExporter(),
		log:      &bytes.Buffer{},
	}
	exporter, err := otelprometheus.New(
		otelprometheus.WithRegisterer(t.registry),
		// retry.runs becomes retry_runs_total and retry.policy retry_policy, as dashboard.json and alerts.yaml require.
		// The exporter's default may keep the dots, and queries must then quote such names.
		otelprometheus.WithTranslationStrategy(otlptranslator.UnderscoreEscapingWithSuffixes),
		otelprometheus.WithoutScopeInfo(),  // three labels on each line that are always the same
		otelprometheus.WithoutTargetInfo()) // a service keeps it
	if err != nil {
		return nil, err
	}
	t.meters = sdkmetric.NewMeterProvider(sdkmetric.WithReader(exporter))
	t.tracers = sdktrace.NewTracerProvider(
		sdktrace.WithSyncer(t.spans),                 // a service has WithBatcher and an OTLP exporter
		sdktrace.WithIDGenerator(new(numberedSpans))) // for the same output each time, while a service keeps the random IDs
	t.tracer = t.tracers.Tracer("example")
	t.options = retryotel.Options{
		MeterProvider:  t.meters,
		TracerProvider: t.tracers,
	}

	measure, err := retryotel.Observe(t.options)
	if err != nil {
		return nil, err
	}
	write := retryslog.Observe(slog.New(slog.NewTextHandler(t.log, &slog.HandlerOptions{ReplaceAttr: withoutTimes})),
		retryslog.Options{Recovery: slog.LevelInfo, Canceled: slog.LevelWarn, Attrs: traceID})
	t.observe = retry.Observers(measure, write)
	return t, nil
}

// close shuts down the providers. Their errors would come from exporters, which cannot fail here.
func (t *telemetry) close() {
	ctx := context.Background()
	_ = errors.Join(t.tracers.Shutdown(ctx), t.meters.Shutdown(ctx))
}

// traceID is the attribute that connects a log line to its trace.
func traceID(ctx context.Context, _ retry.Event) []slog.Attr {
	return []slog.Attr{slog.String("trace_id", trace.SpanContextFromContext(ctx).TraceID().String())}
}

// withoutTimes removes the parts that differ from run to run, which are times, and the port in the host of a request.
func withoutTimes(groups []string, a slog.Attr) slog.Attr {
	switch a.Key {
	case slog.TimeKey, retryslog.KeyDuration, retryslog.KeyElapsed:
		return slog.Attr{}
	case "host":
		if len(groups) == 1 && groups[0] == retryslog.KeyRequest {
			return slog.Attr{}
		}
	}
	return a
}
