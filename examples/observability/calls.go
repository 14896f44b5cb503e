package main

import (
	"context"
	"errors"
	"net/http"
	"net/http/httptest"
	"time"

	"go.opentelemetry.io/contrib/instrumentation/net/http/otelhttp"
	"go.opentelemetry.io/otel/propagation"

	"github.com/retrygo/retry"
	"github.com/retrygo/retry/contrib/retryotel"
	"github.com/retrygo/retry/retryhttp"
)

// makeCalls makes calls that end in every way. Only t shows how each of them ended.
func makeCalls(ctx context.Context, t *telemetry) error {
	server := httptest.NewServer(http.HandlerFunc(misbehave))
	defer server.Close()

	hosts := retry.NewBudgets(retry.BudgetConfig{}, 100)
	payments := retry.NewBudget(retry.BudgetConfig{Initial: 1}) // one retry at first, and one more for ten successes
	if err := observeBudgets(t, hosts, payments); err != nil {
		return err
	}
	catalog := newClient(t, t.policy("catalog"), hosts)
	defer catalog.CloseIdleConnections()
	slow := t.policy("reports")
	slow.MaxAttempts, slow.AttemptTimeout = 2, 50*time.Millisecond
	reports := newClient(t, slow, hosts)
	defer reports.CloseIdleConnections()

	t.call(ctx, "read article", func(ctx context.Context) error { return t.get(ctx, catalog, server.URL+"/steady") })
	t.call(ctx, "read comments", func(ctx context.Context) error { return t.get(ctx, catalog, server.URL+"/flaky") })
	t.call(ctx, "read reviews", func(ctx context.Context) error { return t.get(ctx, catalog, server.URL+"/down") })
	t.call(ctx, "build report", func(ctx context.Context) error { return t.get(ctx, reports, server.URL+"/stuck") })

	paid := t.policy("payments")
	paid.Budget = payments
	for range 2 { // the first takes the budget's one token
		t.call(ctx, "charge card", func(ctx context.Context) error {
			return retryotel.Do(ctx, paid, t.options, func(context.Context) error { return errors.New("card network is down") })
		})
	}
	t.call(ctx, "send receipt", func(ctx context.Context) error {
		return retry.Do(ctx, t.policy("mail"), func(context.Context) error {
			return retry.Permanent(errors.New("no such mailbox"))
		})
	})
	t.call(ctx, "ship order", func(ctx context.Context) error {
		ctx, cancel := context.WithTimeout(ctx, time.Minute)
		defer cancel()
		late := t.policy("shipping")
		late.Backoff = retry.Backoff{Base: 5 * time.Minute} // longer than the caller has
		return retry.Do(ctx, late, func(context.Context) error { return errors.New("depot is closed") })
	})
	t.call(ctx, "reserve seat", func(ctx context.Context) error {
		ctx, leave := context.WithCancel(ctx)
		defer leave()
		return retry.Do(ctx, t.policy("seats"), func(context.Context) error {
			leave() // the visitor closes the page
			return errors.New("seat map is locked")
		})
	})
	return nil
}

// policy returns a policy that t observes. Unlike a service's, it has no jitter, so that its waits are the same each
// time.
func (t *telemetry) policy(name string) retry.Policy {
	return retry.Policy{
		Name:        name,
		MaxAttempts: 3,
		Backoff:     retry.Backoff{Base: 4 * time.Millisecond},
		Observe:     t.observe,
	}
}

// call calls fn within a span of the service, to which a run adds its end.
func (t *telemetry) call(ctx context.Context, name string, fn func(context.Context) error) {
	ctx, span := t.tracer.Start(ctx, name)
	defer span.End()
	_ = fn(ctx) // t.observe has seen it
}

// observeBudgets reports the budgets until the meters are shut down.
func observeBudgets(t *telemetry, hosts *retry.Budgets, payments *retry.Budget) error {
	_, err := retryotel.ObserveBudget(t.options, "payments", payments)
	if err != nil {
		return err
	}
	_, err = retryotel.ObserveBudgetSet(t.options, "hosts", hosts)
	return err
}

// newClient returns a client with retries and a span for each request that is sent.
func newClient(t *telemetry, p retry.Policy, hosts *retry.Budgets) *http.Client {
	return &http.Client{Transport: &retryhttp.Transport{
		PolicyFor: func(req *http.Request) retry.Policy {
			p := p
			p.Budget = hosts.For(req.URL.Host)
			return p
		},
		AttemptHeader: retryhttp.AttemptHeader,
		Base: otelhttp.NewTransport(http.DefaultTransport, otelhttp.WithTracerProvider(t.tracers), otelhttp.WithMeterProvider(t.meters),
			otelhttp.WithPropagators(propagation.TraceContext{})),
	}}
}

// get makes a request within a span of its run.
func (t *telemetry) get(ctx context.Context, client *http.Client, url string) error {
	return retryotel.Run(ctx, t.options, func(ctx context.Context) error {
		req, err := http.NewRequestWithContext(ctx, http.MethodGet, url, nil)
		if err != nil {
			return err
		}
		resp, err := client.Do(req)
		if err != nil {
			return err
		}
		return resp.Body.Close()
	})
}
