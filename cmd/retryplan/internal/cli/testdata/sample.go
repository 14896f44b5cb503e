//go:build ignore

// This program made metrics.txt: 2,000 runs of two policies in 30 seconds, as retryotel exports them by the Prometheus exporter. It
// ran in a module of its own that requires contrib/retryotel, exporters/prometheus and client_golang.
package main

import (
	"context"
	"errors"
	"math"
	"math/rand/v2"
	"net/http"
	"net/http/httptest"
	"os"
	"sync"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/promhttp"
	otelprometheus "go.opentelemetry.io/otel/exporters/prometheus"
	"go.opentelemetry.io/otel/sdk/metric"

	"github.com/retrygo/retry"
	"github.com/retrygo/retry/contrib/retryotel"
)

func main() {
	ctx := context.Background()
	registry := prometheus.NewRegistry()
	scraped, err := otelprometheus.New(otelprometheus.WithRegisterer(registry))
	check(err)
	provider := metric.NewMeterProvider(metric.WithReader(scraped))
	observe, err := retryotel.Observe(retryotel.Options{MeterProvider: provider})
	check(err)

	random := rand.New(rand.NewPCG(1, 1))
	var draw sync.Mutex
	start := func(name string, failing float64, median time.Duration, runs int, done *sync.WaitGroup) {
		policy := retry.Policy{Name: name, MaxAttempts: 4, Backoff: retry.Backoff{Base: 50 * time.Millisecond, Jitter: retry.FullJitter}, Observe: observe}
		for i := range runs {
			done.Go(func() {
				time.Sleep(time.Duration(i) * 30 * time.Second / time.Duration(runs))
				retry.Do(ctx, policy, func(context.Context) error {
					draw.Lock()
					fails, takes := random.Float64() < failing, time.Duration(float64(median)*math.Exp(0.6*random.NormFloat64()))
					draw.Unlock()
					time.Sleep(takes)
					if fails {
						return errors.New("unavailable")
					}
					return nil
				})
			})
		}
	}
	var done sync.WaitGroup
	start("price", 0.05, 30*time.Millisecond, 1500, &done)
	start("search", 0.2, 8*time.Millisecond, 500, &done)
	done.Wait()
	w := httptest.NewRecorder()
	promhttp.HandlerFor(registry, promhttp.HandlerOpts{}).ServeHTTP(w, httptest.NewRequest(http.MethodGet, "/metrics", nil))
	check(os.WriteFile("metrics.txt", w.Body.Bytes(), 0o644))
}

func check(err error) {
	if err != nil {
		panic(err)
	}
}
