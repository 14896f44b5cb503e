package main

import (
	"context"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"

	"github.com/prometheus/client_golang/prometheus/promhttp"
)

// handler is a service's handler for /metrics.
func (t *telemetry) handler() http.Handler {
	return promhttp.HandlerFor(t.registry, promhttp.HandlerOpts{})
}

// scrape calls the handler once, as Prometheus does every few seconds.
func (t *telemetry) scrape(ctx context.Context) (string, error) {
	req := httptest.NewRequestWithContext(ctx, http.MethodGet, "/metrics", nil)
	// Prometheus 3.0 and later accepts names of any form. For others promhttp writes underscores, whatever the
	// exporter's strategy.
	req.Header.Set("Accept", "text/plain;version=1.0.0;escaping=allow-utf-8")
	answer := httptest.NewRecorder()
	t.handler().ServeHTTP(answer, req)
	text, err := io.ReadAll(answer.Result().Body)
	if err == nil && answer.Code != http.StatusOK {
		err = fmt.Errorf("scrape: status %d: %s", answer.Code, text)
	}
	return string(text), err
}

// stable returns the part that is the same in each run. It leaves out the buckets, which are many, the sums of
// durations, and the metrics of otelhttp, which have the port.
func stable(scraped string) string {
	var b strings.Builder
	for line := range strings.Lines(scraped) {
		name, _, _ := strings.Cut(line, "{")
		switch {
		case strings.HasSuffix(name, "_bucket"), strings.Contains(name, "http_client_request_"):
			continue
		case name == "retry_run_duration_seconds_sum", name == "retry_attempt_duration_seconds_sum":
			line = line[:strings.LastIndexByte(line, ' ')] + " (differs)\n"
		}
		b.WriteString(line)
	}
	return b.String()
}
