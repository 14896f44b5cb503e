package sdks_test

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"net/http"
	"net/http/httptest"
	"slices"
	"time"

	"go.opentelemetry.io/contrib/instrumentation/net/http/otelhttp"
	"go.opentelemetry.io/otel/attribute"
	sdkmetric "go.opentelemetry.io/otel/sdk/metric"
	"go.opentelemetry.io/otel/sdk/metric/metricdata"
	sdktrace "go.opentelemetry.io/otel/sdk/trace"
	"go.opentelemetry.io/otel/sdk/trace/tracetest"
	"go.opentelemetry.io/otel/trace"

	"github.com/retrygo/retry"
	"github.com/retrygo/retry/contrib/retryotel"
	"github.com/retrygo/retry/retryhttp"
	"github.com/retrygo/retry/retryjob"
)

// quick retries at once, so that the examples do not wait.
var quick = retry.Policy{Name: "price", MaxAttempts: 4, Backoff: retry.Backoff{Mode: retry.Fixed, Base: time.Microsecond}}

// measured returns Options, and a function that prints the counters and gauges that are not zero.
func measured() (o retryotel.Options, show func()) {
	reader := sdkmetric.NewManualReader()
	return retryotel.Options{MeterProvider: sdkmetric.NewMeterProvider(sdkmetric.WithReader(reader))}, func() {
		var all metricdata.ResourceMetrics
		_ = reader.Collect(context.Background(), &all)
		for _, m := range all.ScopeMetrics[0].Metrics {
			points := valuesOf(m.Data)
			for _, label := range slices.Sorted(maps.Keys(points)) {
				if points[label] != 0 {
					fmt.Println(m.Name, points[label], m.Unit, label)
				}
			}
		}
	}
}

func Example_observe() {
	o, show := measured()
	observe, err := retryotel.Observe(o)
	if err != nil {
		fmt.Println(err)
		return
	}
	p := quick
	p.Observe = observe
	_ = retry.Do(context.Background(), p, func(context.Context) error { return errors.New("no route") })
	show()
	// Output:
	// retry.runs 1 {run} retry.kind=failed_with_retry,retry.policy=price,retry.reason=attempts_exhausted,retry.status=dead_letter
	// retry.attempts 4 {attempt} retry.class=retryable,retry.policy=price
}

func Example_observeBudget() {
	o, show := measured()
	budget := retry.NewBudget(retry.BudgetConfig{Initial: 5})
	registration, err := retryotel.ObserveBudget(o, "payments", budget)
	if err != nil {
		fmt.Println(err)
		return
	}
	defer func() { _ = registration.Unregister() }()

	retry.Policy{Budget: budget}.Spend(context.Background(), retry.Decision{Status: retry.WaitingRetry}, time.Now()) // what each retry does
	show()
	// Output: retry.budget.tokens 4 {token} retry.budget=payments
}

func Example_observeBudgetSet() {
	o, show := measured()
	tenants := retry.NewBudgets(retry.BudgetConfig{}, 1000)
	registration, err := retryotel.ObserveBudgetSet(o, "tenants", tenants)
	if err != nil {
		fmt.Println(err)
		return
	}
	defer func() { _ = registration.Unregister() }()

	tenants.For("acme")
	show()
	// Output: retry.budget.key.count 1 {key} retry.budget=tenants
}

// show prints spans in the order in which they ended.
func show(spans *tracetest.InMemoryExporter) {
	for _, span := range spans.GetSpans() {
		values := set(span.Attributes)
		switch span.Name {
		case "retry.run":
			fmt.Println(span.Name, values["retry.policy"], values["retry.status"], "attempts:", values["retry.attempts"])
		case "retry.attempt":
			fmt.Println(span.Name, values["retry.attempt"], span.Status.Code, span.Status.Description, "links:", len(span.Links))
		default:
			fmt.Println(span.Name, values["http.response.status_code"], "resends:", values["http.request.resend_count"])
		}
	}
}

func Example_do() {
	spans := tracetest.NewInMemoryExporter()
	o := retryotel.Options{TracerProvider: sdktrace.NewTracerProvider(sdktrace.WithSyncer(spans))}
	err := retryotel.Do(context.Background(), quick, o, func(ctx context.Context) error {
		if retry.AttemptNumber(ctx) < 3 {
			return errors.New("no route")
		}
		return nil
	})
	fmt.Println(err)
	show(spans)
	// Output:
	// <nil>
	// retry.attempt 1 Error no route links: 0
	// retry.attempt 2 Error no route links: 1
	// retry.attempt 3 Unset  links: 1
	// retry.run price succeeded attempts: 3
}

func Example_doValue() {
	spans := tracetest.NewInMemoryExporter()
	o := retryotel.Options{TracerProvider: sdktrace.NewTracerProvider(sdktrace.WithSyncer(spans))}
	price, err := retryotel.DoValue(context.Background(), quick, o, func(context.Context) (string, error) { return "price 7", nil })
	fmt.Println(price, err)
	show(spans)
	// Output:
	// price 7 <nil>
	// retry.attempt 1 Unset  links: 0
	// retry.run price succeeded attempts: 1
}

// With otelhttp as the Base of a retryhttp.Transport each request that is sent has a span and a duration. sends adds the
// number of a resend, which otelhttp does not know.
func Example_run() {
	calls := 0
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, req *http.Request) {
		if calls++; calls == 1 {
			w.WriteHeader(http.StatusServiceUnavailable)
		}
	}))
	defer server.Close()

	spans := tracetest.NewInMemoryExporter()
	o := retryotel.Options{TracerProvider: sdktrace.NewTracerProvider(sdktrace.WithSyncer(spans))}
	p := quick
	var err error
	if p.Observe, err = retryotel.Observe(o); err != nil {
		fmt.Println(err)
		return
	}
	client := &http.Client{Transport: &retryhttp.Transport{
		Policy: p,
		Base:   otelhttp.NewTransport(sends{http.DefaultTransport}, otelhttp.WithTracerProvider(o.TracerProvider)),
	}}
	_ = retryotel.Run(context.Background(), o, func(ctx context.Context) error {
		req, err := http.NewRequestWithContext(ctx, http.MethodGet, server.URL, nil)
		if err != nil {
			return err
		}
		resp, err := client.Do(req)
		if err != nil {
			return err
		}
		return resp.Body.Close()
	})
	show(spans)
	// Output:
	// HTTP GET 503 resends: <nil>
	// HTTP GET 200 resends: 1
	// retry.run price succeeded attempts: 2
}

type sends struct{ http.RoundTripper }

func (s sends) RoundTrip(req *http.Request) (*http.Response, error) {
	if n := retry.AttemptNumber(req.Context()); n > 1 {
		trace.SpanFromContext(req.Context()).SetAttributes(attribute.Int("http.request.resend_count", n-1))
	}
	return s.RoundTripper.RoundTrip(req)
}

func Example_observeJobs() {
	o, show := measured()
	engine, err := retryjob.New(retryjob.Options{
		Policies: retryjob.FromMap(map[string]retry.Policy{"": retry.Standard()}),
		Handlers: map[string]retryjob.Handler{"mail": func(context.Context, retryjob.Job) error { return nil }},
	})
	if err != nil {
		fmt.Println(err)
		return
	}
	registration, err := retryotel.ObserveJobs(o, "mails", engine.Count)
	if err != nil {
		fmt.Println(err)
		return
	}
	defer func() { _ = registration.Unregister() }()

	tomorrow := time.Now().Add(24 * time.Hour)
	_, _ = engine.EnqueueMany(context.Background(), []retryjob.Job{{Kind: "mail", Due: tomorrow}, {Kind: "mail", Due: tomorrow}})
	show()
	// Output: retry.job.count 2 {job} retry.engine=mails,retry.status=pending
}
