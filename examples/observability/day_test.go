package main

import (
	"context"
	"fmt"
	"maps"
	"math"
	"net"
	"net/http"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"syscall"
	"testing"
	"testing/synctest"
	"time"

	dto "github.com/prometheus/client_model/go"
	"github.com/stretchr/testify/require"

	"github.com/retrygo/retry"
	"github.com/retrygo/retry/retryhttp"
)

const (
	outageBegin = 30 * time.Minute
	outageEnd   = outageBegin + 12*time.Minute
)

// bubble is when the time of a synctest bubble begins.
var bubble = time.Date(2000, time.January, 1, 0, 0, 0, 0, time.UTC)

// client calls a peer at a steady rate.
type client struct {
	name      string
	perMinute float64
	method    string
	budget    *retry.Budget
	peer      http.RoundTripper
	canceled  int // every that many calls, the caller goes away; 0 means never
}

// call makes the n-th call.
func (c *client) call(t *testing.T, p retry.Policy, n int) {
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	if c.canceled > 0 && n%c.canceled == 0 {
		time.AfterFunc(10*time.Millisecond, cancel) // of the bubble
	}
	req, err := http.NewRequestWithContext(ctx, c.method, "http://shop.test/", nil)
	require.NoError(t, err)
	resp, err := (&http.Client{Transport: &retryhttp.Transport{Base: c.peer, Policy: p}}).Do(req)
	if err == nil {
		require.NoError(t, resp.Body.Close())
	}
}

// readmePolicy is that of retryhttp's README.
func readmePolicy(p retry.Policy) retry.Policy {
	p.MaxAttempts = 4
	p.Backoff = retry.Backoff{Base: 50 * time.Millisecond, Cap: time.Second, Jitter: retry.FullJitter}
	p.AttemptTimeout, p.TTL = 2*time.Second, 10*time.Second
	return p
}

// record lets the clients call for the given time, and returns the scraped samples and the log.
func record(t *testing.T, long time.Duration, clients []client) (scraped series, log string) {
	scraped = series{}
	synctest.Test(t, func(t *testing.T) {
		made, err := newTelemetry()
		require.NoError(t, err)
		defer made.close()
		var running sync.WaitGroup
		began := time.Now()
		for _, c := range clients {
			p := readmePolicy(made.policy(c.name))
			p.Budget = c.budget
			running.Go(func() {
				for n := 0; ; n++ {
					at := time.Duration((float64(n) + 0.5) / c.perMinute * float64(time.Minute))
					if at >= long {
						return
					}
					time.Sleep(time.Until(began.Add(at)))
					running.Go(func() { c.call(t, p, n) })
				}
			})
		}
		samples := map[string][]float64{}
		for minute := 0; time.Since(began) <= long; minute++ {
			synctest.Wait()
			made.sample(t, samples, minute)
			time.Sleep(time.Until(began.Add(time.Duration(minute+1) * time.Minute)))
		}
		running.Wait()
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
	return scraped, log
}

// roundTripper is a peer in the same process.
type roundTripper func(*http.Request) (*http.Response, error)

func (f roundTripper) RoundTrip(req *http.Request) (*http.Response, error) { return f(req) }

func answer(req *http.Request, status int, header ...string) *http.Response {
	resp := &http.Response{StatusCode: status, Header: http.Header{}, Body: http.NoBody, Request: req}
	for i := 0; i < len(header); i += 2 {
		resp.Header.Set(header[i], header[i+1])
	}
	return resp
}

// hang answers when the attempt is over.
func hang(req *http.Request) (*http.Response, error) {
	<-req.Context().Done()
	return nil, req.Context().Err()
}

func refuse(*http.Request) (*http.Response, error) {
	return nil, &net.OpError{Op: "dial", Net: "tcp", Err: syscall.ECONNREFUSED}
}

func unavailable(req *http.Request) (*http.Response, error) { return answer(req, 503), nil }

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

// ordinaryPeer returns a peer on an ordinary day: it has pages, an old address of one, one that has not changed, and none for a
// link that a crawler follows again and again. It limits rates, fails now and then, and is restarted at three o'clock.
func ordinaryPeer() roundTripper {
	var n atomic.Int64
	return func(req *http.Request) (*http.Response, error) {
		if since := time.Since(bubble); since >= 3*time.Hour && since < 3*time.Hour+time.Minute {
			return refuse(req)
		}
		k := n.Add(1) % 50
		switch {
		case k%10 == 2:
			return answer(req, 404), nil
		case k%10 == 4:
			return answer(req, 302, "Location", "/new"), nil
		case k%10 == 6:
			return answer(req, 304), nil
		case k == 18:
			return answer(req, 429, "Retry-After", "3"), nil
		case k == 28:
			return answer(req, 503), nil
		case k%20 == 9:
			time.Sleep(50 * time.Millisecond) // of the bubble
			if err := req.Context().Err(); err != nil {
				return nil, err
			}
		}
		return answer(req, 200), nil
	}
}

// TestAnOrdinaryDayIsSilent runs every alert over a day of clients without and with a budget.
func TestAnOrdinaryDayIsSilent(t *testing.T) {
	const day = 24 * time.Hour
	once := 0
	clients := []client{{name: "orders", perMinute: 2.0 / 60, method: "POST", peer: roundTripper(func(req *http.Request) (*http.Response, error) {
		if once++; once == 20 {
			return answer(req, 503), nil
		}
		return answer(req, 201), nil
	})}}
	for _, rate := range []float64{3, 10, 100} {
		clients = append(clients,
			client{name: fmt.Sprint("plain ", rate), perMinute: rate, method: "GET", peer: ordinaryPeer(), canceled: 30},
			client{name: fmt.Sprint("budget ", rate), perMinute: rate, method: "GET", peer: ordinaryPeer(), canceled: 30, budget: retry.NewBudget(retry.BudgetConfig{})})
	}
	scraped, log := record(t, day, clients)
	for _, name := range slices.Sorted(maps.Keys(scraped)) {
		if strings.HasPrefix(name, "retry_runs_total") {
			t.Logf("at the end of the day: %s %v", name, scraped[name](day.Minutes()))
		}
	}
	for _, rule := range readAlerts(t) {
		require.Empty(t, alarms(t, scraped, rule.Expr, time.Duration(rule.For), day), rule.Alert)
	}
	require.Equal(t, 1, strings.Count(log, "policy=orders"), "the POST that was not repeated")
}

// TestAnOutageIsHeardWithinFiveMinutes records clients of every kind in an outage of twelve minutes.
func TestAnOutageIsHeardWithinFiveMinutes(t *testing.T) {
	const long = 90 * time.Minute
	var clients []client
	for name, down := range map[string]roundTripper{"503": unavailable, "refused": refuse, "hanging": hang} {
		for _, method := range []string{"GET", "POST"} {
			for _, rate := range []float64{3, 10, 100} {
				peer := roundTripper(func(req *http.Request) (*http.Response, error) {
					if since := time.Since(bubble); since >= outageBegin && since < outageEnd {
						return down(req)
					}
					return answer(req, 200), nil
				})
				label := fmt.Sprintf("%s %s %v", name, method, rate)
				clients = append(clients,
					client{name: label, perMinute: rate, method: method, peer: peer},
					client{name: label + " budget", perMinute: rate, method: method, peer: peer, budget: retry.NewBudget(retry.BudgetConfig{})})
			}
		}
	}
	scraped, log := record(t, long, clients)
	heard := map[string]alarm{}
	for _, rule := range readAlerts(t) {
		for _, a := range alarms(t, scraped, rule.Expr, time.Duration(rule.For), long) {
			t.Logf("%-23s %s", rule.Alert, shownAlarms([]alarm{a}))
			if rule.Alert == "RetryRunsFailing" {
				heard[a.labels] = a
			}
			require.GreaterOrEqual(t, a.from, outageBegin, "%s %s", rule.Alert, a.labels)
		}
	}
	for _, c := range clients {
		a, ok := heard[fmt.Sprintf("{retry_policy=%q}", c.name)]
		require.True(t, ok, c.name)
		require.LessOrEqual(t, a.from, outageBegin+5*time.Minute, c.name)
		require.LessOrEqual(t, a.to, outageEnd+5*time.Minute, c.name)
		require.Contains(t, log, fmt.Sprintf("policy=%q", c.name))
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
