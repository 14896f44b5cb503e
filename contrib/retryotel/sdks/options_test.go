package sdks_test

import (
	"context"
	"go/parser"
	"go/token"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"go.opentelemetry.io/otel"
	"go.opentelemetry.io/otel/metric"
	metricnoop "go.opentelemetry.io/otel/metric/noop"
	sdkmetric "go.opentelemetry.io/otel/sdk/metric"
	"go.opentelemetry.io/otel/trace"

	"github.com/retrygo/retry"
	"github.com/retrygo/retry/contrib/retryotel"
)

// refusingMeters is a MeterProvider whose histograms fail.
type refusingMeters struct{ metricnoop.MeterProvider }

type refusingMeter struct{ metricnoop.Meter }

func (refusingMeters) Meter(string, ...metric.MeterOption) metric.Meter { return refusingMeter{} }

func (refusingMeter) Float64Histogram(string, ...metric.Float64HistogramOption) (metric.Float64Histogram, error) {
	return nil, errDown
}

func TestAMeterProvidersRefusalIsReturned(t *testing.T) {
	_, err := retryotel.Observe(retryotel.Options{MeterProvider: refusingMeters{}})
	require.ErrorIs(t, err, errDown)
	const each = "retryotel: Options.MeterProvider: down"
	require.EqualError(t, err, each+"; "+each+"; "+each, "one line for the three histograms")
}

// global is the SDK of the globals, which can be set once in a process.
var global = sync.OnceValue(func() *sdk {
	s := newSDK(nil)
	otel.SetMeterProvider(s.MeterProvider)
	otel.SetTracerProvider(s.TracerProvider)
	return s
})

// The zero Options work before the globals are set, and from then on with them.
func TestZeroOptionsAreTheGlobals(t *testing.T) {
	observe, err := retryotel.Observe(retryotel.Options{})
	require.NoError(t, err)
	calls := 0
	call := func() (int, error) {
		return retryotel.DoValue(t.Context(), retry.Policy{Name: "of the globals", Observe: observe}, retryotel.Options{},
			func(context.Context) (int, error) { calls++; return calls, nil })
	}
	value, err := call()
	require.NoError(t, err)
	require.Equal(t, 1, value)

	s := global()
	s.t = t
	const series = "retry.kind=succeeded_without_retry,retry.policy=of the globals,retry.status=succeeded"
	runs, spans := s.values("retry.runs")[series], len(s.named("retry.attempt"))
	_, err = call()
	require.NoError(t, err)
	require.Equal(t, runs+1, s.values("retry.runs")[series])
	require.Len(t, s.named("retry.attempt"), spans+1)
}

// Without a recording span nothing is allocated, and with one only the SDK allocates.
func TestObserveAllocatesNothing(t *testing.T) {
	events := map[string]retry.Event{
		"a success": {Policy: "charge", Decision: retry.Decision{Status: retry.Succeeded},
			Outcome: &retry.Outcome{Policy: "charge", Status: retry.Succeeded, Attempts: 1, Elapsed: time.Second}},
		"a failure": {Policy: "beyond", Outcome: &retry.Outcome{Status: retry.Expired, Reason: retry.TTLElapsed, Attempts: 3}},
		"a failed attempt": {Policy: "charge", Attempt: retry.Attempt{Number: 1, Err: context.DeadlineExceeded},
			Decision: retry.Decision{Status: retry.WaitingRetry, Delay: time.Second}},
	}
	unsampled := trace.ContextWithSpanContext(t.Context(), trace.NewSpanContext(trace.SpanContextConfig{TraceID: trace.TraceID{1}, SpanID: trace.SpanID{1}}))
	for name, e := range events {
		for provider, meters := range map[string]metric.MeterProvider{
			"no SDK": metricnoop.NewMeterProvider(),
			"an SDK": sdkmetric.NewMeterProvider(sdkmetric.WithReader(sdkmetric.NewManualReader())),
		} {
			observe, err := retryotel.Observe(retryotel.Options{MeterProvider: meters})
			require.NoError(t, err)
			observe(unsampled, events["a success"])
			for i := range 80 { // the 80 names, with that one
				observe(unsampled, retry.Event{Policy: strconv.Itoa(i)})
			}
			require.Zero(t, testing.AllocsPerRun(100, func() { observe(unsampled, e) }), "%s with %s", name, provider)
		}
	}
}

// The program chooses its SDK, and this module must not import internal packages of another module. A package semconv is
// in a few versions of the API only.
func TestOnlyTheAPIIsImported(t *testing.T) {
	entries, err := os.ReadDir("..")
	require.NoError(t, err)
	seen := 0
	for _, e := range entries {
		if !strings.HasSuffix(e.Name(), ".go") || strings.HasSuffix(e.Name(), "_test.go") {
			continue
		}
		file, err := parser.ParseFile(token.NewFileSet(), filepath.Join("..", e.Name()), nil, parser.ImportsOnly)
		require.NoError(t, err)
		for _, spec := range file.Imports {
			seen++
			for _, part := range []string{"/sdk", "/exporters", "/proto/", "/internal/", "/semconv"} {
				require.NotContains(t, spec.Path.Value, part, e.Name())
			}
		}
	}
	require.NotZero(t, seen)
}
