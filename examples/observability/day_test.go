package main

import (
	"fmt"
	"io"
	"maps"
	"math"
	"net/http"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	dto "github.com/prometheus/client_model/go"
	"github.com/stretchr/testify/require"

	"github.com/retrygo/retry"
	"github.com/retrygo/retry/retryhttp"
)

const (
	day        = 24 * time.Hour
	burstBegin = 14 * time.Hour
	burstEnd   = burstBegin + 12*time.Minute
)

// shop is a peer on an ordinary day: it has pages, an old address of one, one that has not changed, and none for a link
// that a crawler follows again and again. While it is down it answers 503.
type shop struct{ down bool }

func (s *shop) RoundTrip(req *http.Request) (*http.Response, error) {
	status, header := http.StatusOK, http.Header{}
	switch {
	case s.down:
		status = http.StatusServiceUnavailable
	case req.URL.Path == "/missing":
		status = http.StatusNotFound
	case req.URL.Path == "/old":
		status = http.StatusFound
		header.Set("Location", "/new")
	case req.Header.Get("If-None-Match") != "":
		status = http.StatusNotModified
	}
	return &http.Response{StatusCode: status, Header: header, Body: http.NoBody, Request: req}, nil
}

// record makes ten requests in each minute of a day, and returns the scraped samples and the log.
func record(t *testing.T, burst bool) (scraped series, log string, statuses map[int]int) {
	scraped, statuses = series{}, map[int]int{}
	synctest.Test(t, func(t *testing.T) {
		made, err := newTelemetry()
		require.NoError(t, err)
		defer made.close()
		peer := &shop{}
		catalog := made.policy("catalog")
		catalog.Budget = retry.NewBudget(retry.BudgetConfig{})
		client := &http.Client{Transport: &retryhttp.Transport{
			Base:   peer,
			Policy: catalog,
		}}
		began, minute := time.Now(), 0
		samples := map[string][]float64{}
		for ; time.Since(began) <= day; minute++ {
			made.sample(t, samples, minute)
			peer.down = burst && time.Since(began) >= burstBegin && time.Since(began) < burstEnd
			for i, path := range []string{"/", "/new", "/missing", "/", "/old", "/", "/same", "/new", "/", "/"} {
				req, err := http.NewRequestWithContext(t.Context(), http.MethodGet, "http://shop.test"+path, nil)
				require.NoError(t, err)
				if path == "/same" {
					req.Header.Set("If-None-Match", `"1"`)
				}
				resp, err := client.Do(req)
				require.NoError(t, err, i)
				statuses[resp.StatusCode]++
				_, _ = io.Copy(io.Discard, resp.Body)
				require.NoError(t, resp.Body.Close())
			}
			time.Sleep(time.Until(began.Add(time.Duration(minute+1) * time.Minute))) // of the bubble
		}
		for name, values := range samples {
			scraped[name] = func(minute float64) float64 {
				if int(minute) >= len(values) {
					return math.NaN()
				}
				return values[int(minute)]
			}
		}
		log = made.log.String()
	})
	return scraped, log, statuses
}

// sample adds the counters and gauges of a minute to samples, with NaN before the first.
func (t *telemetry) sample(test *testing.T, samples map[string][]float64, minute int) {
	families, err := t.registry.Gather()
	require.NoError(test, err)
	for _, family := range families {
		for _, m := range family.Metric {
			if m.Histogram != nil {
				continue // no alert asks for one
			}
			name := seriesName(family.GetName(), m.Label)
			for len(samples[name]) < minute {
				samples[name] = append(samples[name], math.NaN())
			}
			samples[name] = append(samples[name], m.GetCounter().GetValue()+m.GetGauge().GetValue())
		}
	}
}

func seriesName(name string, pairs []*dto.LabelPair) string {
	list := make([]string, len(pairs))
	for i, pair := range pairs {
		list[i] = fmt.Sprintf("%s=%q", pair.GetName(), pair.GetValue())
	}
	return name + "{" + strings.Join(list, ",") + "}"
}

// TestARecordedDay runs every alert over a day of 200s, 404s, 304s and redirects, without and with a burst of 503s.
func TestARecordedDay(t *testing.T) {
	for _, row := range []struct {
		name  string
		burst bool
		want  map[string][]alarm
	}{
		{"nothing is broken", false, map[string][]alarm{}},
		{"down for twelve minutes", true, map[string][]alarm{
			"RetryBudgetExhausted": {{`{retry_policy="catalog"}`, burstBegin + 7*time.Minute, burstBegin + 16*time.Minute}},
		}},
	} {
		t.Run(row.name, func(t *testing.T) {
			scraped, log, statuses := record(t, row.burst)
			t.Logf("the client's answers: %v", statuses)
			for _, name := range slices.Sorted(maps.Keys(scraped)) {
				if strings.HasPrefix(name, "retry_runs_total") {
					t.Logf("at the end of the day: %s %v", name, scraped[name](day.Minutes()))
				}
			}
			got := map[string][]alarm{}
			for _, rule := range readAlerts(t) {
				fires := alarms(t, scraped, rule.Expr, time.Duration(rule.For), day)
				if fires != nil {
					got[rule.Alert] = fires
				}
				t.Logf("%-23s %s", rule.Alert, shownAlarms(fires))
			}
			errors := strings.Count(log, "level=ERROR")
			t.Logf("records in the log: %d, of which %d errors", strings.Count(log, "\n"), errors)
			require.Equal(t, row.want, got)
			require.Equal(t, row.burst, errors > 0)
			require.Equal(t, row.burst, strings.Contains(log, "level=WARN"))
		})
	}
}

func shownAlarms(fires []alarm) string {
	if fires == nil {
		return "is silent"
	}
	var list []string
	for _, a := range fires {
		clock := func(d time.Duration) string { return begin.Add(d).Format("15:04") }
		list = append(list, fmt.Sprintf("%s fires from %s to %s", a.labels, clock(a.from), clock(a.to)))
	}
	return strings.Join(list, "; ")
}
