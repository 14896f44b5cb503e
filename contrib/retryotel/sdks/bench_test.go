package sdks_test

import (
	"context"
	"strconv"
	"testing"

	metricnoop "go.opentelemetry.io/otel/metric/noop"
	sdkmetric "go.opentelemetry.io/otel/sdk/metric"
	sdktrace "go.opentelemetry.io/otel/sdk/trace"
	tracenoop "go.opentelemetry.io/otel/trace/noop"

	"github.com/retrygo/retry"
	"github.com/retrygo/retry/contrib/retryotel"
)

func succeed(context.Context) error { return nil }

// The cost of a run that succeeds at once: without Observe, with it and no SDK, with the SDK, and with a recording
// span.
func BenchmarkObserve(b *testing.B) {
	sdk := retryotel.Options{
		MeterProvider:  sdkmetric.NewMeterProvider(sdkmetric.WithReader(sdkmetric.NewManualReader())),
		TracerProvider: sdktrace.NewTracerProvider(),
	}
	recording, span := sdk.TracerProvider.Tracer("").Start(b.Context(), "caller")
	defer span.End()
	for _, row := range []struct {
		name string
		ctx  context.Context
		o    *retryotel.Options
	}{
		{"none", b.Context(), nil},
		{"api", b.Context(), &retryotel.Options{MeterProvider: metricnoop.NewMeterProvider()}},
		{"sdk", b.Context(), &sdk},
		{"span", recording, &sdk},
	} {
		b.Run(row.name, func(b *testing.B) {
			p := retry.Policy{Name: "charge"}
			if row.o != nil {
				observe, err := retryotel.Observe(*row.o)
				if err != nil {
					b.Fatal(err)
				}
				p.Observe = observe
			}
			b.ReportAllocs()
			for b.Loop() {
				_ = retry.Do(row.ctx, p, succeed)
			}
		})
	}
}

// All cores record for 100 known policies at once.
func BenchmarkObserveParallel(b *testing.B) {
	observe, err := retryotel.Observe(retryotel.Options{MeterProvider: metricnoop.NewMeterProvider()})
	if err != nil {
		b.Fatal(err)
	}
	var events [100]retry.Event
	for i := range events {
		events[i] = retry.Event{Policy: "policy-" + strconv.Itoa(i), Outcome: &retry.Outcome{Status: retry.Succeeded, Attempts: 1}}
	}
	b.ReportAllocs()
	b.RunParallel(func(pb *testing.PB) {
		for i := 0; pb.Next(); i++ {
			observe(context.Background(), events[i%len(events)])
		}
	})
}

// Without an SDK, what is left is the API's own cost of a tracer and a span.
func BenchmarkDo(b *testing.B) {
	sampled := func(sampler sdktrace.Sampler) retryotel.Options {
		return retryotel.Options{TracerProvider: sdktrace.NewTracerProvider(sdktrace.WithSampler(sampler))}
	}
	for name, o := range map[string]retryotel.Options{
		"sampled": sampled(sdktrace.AlwaysSample()), "unsampled": sampled(sdktrace.NeverSample()),
		"no SDK": {}, "noop": {TracerProvider: tracenoop.NewTracerProvider()},
	} {
		b.Run(name, func(b *testing.B) {
			b.ReportAllocs()
			for b.Loop() {
				_ = retryotel.Do(b.Context(), retry.Policy{Name: "charge"}, o, succeed)
			}
		})
	}
}
