package main

import (
	"context"
	"net/http"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/collectors"
	"github.com/prometheus/client_golang/prometheus/promhttp"
	"github.com/prometheus/otlptranslator"
	otelprometheus "go.opentelemetry.io/otel/exporters/prometheus"
	sdkmetric "go.opentelemetry.io/otel/sdk/metric"

	"github.com/retrygo/retry"
	"github.com/retrygo/retry/contrib/retryotel"
)

// metrics measures the policies and the process.
type metrics struct {
	options retryotel.Options
	observe func(context.Context, retry.Event) // for Policy.Observe
	handler http.Handler                       // for Prometheus
}

func newMetrics() (*metrics, error) {
	registry := prometheus.NewRegistry()
	registry.MustRegister(collectors.NewGoCollector(), collectors.NewProcessCollector(collectors.ProcessCollectorOpts{}))
	exporter, err := otelprometheus.New(otelprometheus.WithRegisterer(registry),
		otelprometheus.WithTranslationStrategy(otlptranslator.UnderscoreEscapingWithSuffixes))
	if err != nil {
		return nil, err
	}
	options := retryotel.Options{MeterProvider: sdkmetric.NewMeterProvider(sdkmetric.WithReader(exporter))}
	observe, err := retryotel.Observe(options)
	return &metrics{options, observe, promhttp.HandlerFor(registry, promhttp.HandlerOpts{})}, err
}
