//go:build linux

package main

import (
	"context"
	"fmt"
	"io"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"os"
	"slices"
	"strings"
	"testing"
	"time"

	dto "github.com/prometheus/client_model/go"
	"github.com/prometheus/common/expfmt"
	"github.com/prometheus/common/model"
	"github.com/prometheus/prometheus/model/labels"
	"github.com/prometheus/prometheus/model/rulefmt"
	"github.com/prometheus/prometheus/promql"
	"github.com/prometheus/prometheus/promql/parser"
	"github.com/prometheus/prometheus/storage"
	"github.com/prometheus/prometheus/tsdb/chunkenc"
	"github.com/prometheus/prometheus/util/annotations"
	"github.com/stretchr/testify/require"
)

// Of Prometheus, in the time of the alerts.
const (
	scrapeStep = 30 * time.Second
	evalStep   = 15 * time.Second
)

// recording is what Prometheus would have scraped, in the time of the alerts, which is the stretched time since the storm
// began.
type recording struct {
	series map[string]*samples // by their labels
	until  time.Duration
	end    chan struct{}
	ended  chan struct{}
}

type samples struct {
	labels labels.Labels
	points []promql.FPoint
}

// record scrapes the processes and the customers until stop.
func record(h *house, customers http.Handler, began time.Time) *recording {
	r := &recording{series: map[string]*samples{}, end: make(chan struct{}), ended: make(chan struct{})}
	go func() {
		defer close(r.ended)
		for !pause(r.end, scrapeStep/stretch) {
			answer := httptest.NewRecorder()
			customers.ServeHTTP(answer, httptest.NewRequest(http.MethodGet, "/metrics", nil))
			r.add("customers", stretch*time.Since(began), parse(answer.Body))
			for _, name := range processes {
				if found := h.scrape(name); found != nil {
					r.add(name, stretch*time.Since(began), found)
				}
			}
		}
		r.until = stretch * time.Since(began)
	}()
	return r
}

func (r *recording) stop() {
	close(r.end)
	<-r.ended
}

func parse(text io.Reader) map[string]*dto.MetricFamily {
	p := expfmt.NewTextParser(model.LegacyValidation)
	families, err := p.TextToMetricFamilies(text)
	if err != nil {
		return nil // it broke off
	}
	return families
}

func (r *recording) add(process string, at time.Duration, families map[string]*dto.MetricFamily) {
	for name, family := range families {
		if !strings.HasPrefix(name, "retry_") || family.GetType() == dto.MetricType_HISTOGRAM { // no alert asks for one
			continue
		}
		for _, m := range family.Metric {
			pairs := []string{model.MetricNameLabel, name, "job", process}
			for _, l := range m.Label {
				pairs = append(pairs, l.GetName(), l.GetValue())
			}
			set := labels.FromStrings(pairs...)
			s := r.series[set.String()]
			if s == nil {
				s = &samples{labels: set}
				r.series[set.String()] = s
			}
			s.points = append(s.points, promql.FPoint{T: at.Milliseconds(), F: m.GetCounter().GetValue() + m.GetGauge().GetValue()})
		}
	}
}

// Querier makes the recording a storage of Prometheus.
func (r *recording) Querier(_, _ int64) (storage.Querier, error) {
	return &storage.MockQuerier{SelectMockFunction: func(_ bool, _ *storage.SelectHints, by ...*labels.Matcher) storage.SeriesSet {
		all := found{nil}
		for _, s := range r.series {
			if slices.ContainsFunc(by, func(m *labels.Matcher) bool { return !m.Matches(s.labels.Get(m.Name)) }) {
				continue
			}
			chunk := chunkenc.NewXORChunk()
			to, err := chunk.Appender()
			if err != nil {
				return storage.ErrSeriesSet(err)
			}
			for _, p := range s.points {
				to.Append(0, p.T, p.F)
			}
			all = append(all, &storage.SeriesEntry{Lset: s.labels,
				SampleIteratorFn: func(it chunkenc.Iterator) chunkenc.Iterator { return chunk.Iterator(it) }})
		}
		return &all
	}}, nil
}

// found is a storage.SeriesSet that begins before its first series: at an empty place that Next takes away.
type found []storage.Series

func (f *found) Next() bool {
	*f = (*f)[1:]
	return len(*f) > 0
}

func (f *found) At() storage.Series                { return (*f)[0] }
func (f *found) Err() error                        { return nil }
func (f *found) Warnings() annotations.Annotations { return nil }

// alarm is an alert that fires from one time to another.
type alarm struct {
	name, labels, severity string
	from, to               time.Duration
}

func (a alarm) String() string {
	return fmt.Sprintf("%s%s from %.1f to %.1f min", a.name, a.labels, a.from.Minutes(), a.to.Minutes())
}

// alarms evaluates the rules of examples/observability: an alert fires when its expression has had a value at each
// evaluation for its duration.
func (r *recording) alarms(t *testing.T) (fires []alarm) {
	text, err := os.ReadFile("../../examples/observability/alerts.yaml")
	require.NoError(t, err)
	groups, errs := rulefmt.Parse(text, false, model.LegacyValidation, parser.NewParser(parser.Options{}), slog.New(slog.DiscardHandler))
	require.Empty(t, errs)
	engine := promql.NewEngine(promql.EngineOpts{MaxSamples: 50_000_000, Timeout: time.Minute, Parser: parser.NewParser(parser.Options{})})
	defer engine.Close()
	begin := time.UnixMilli(0)
	for _, rule := range groups.Groups[0].Rules {
		q, err := engine.NewRangeQuery(context.Background(), r, nil, rule.Expr, begin, begin.Add(r.until), evalStep)
		require.NoError(t, err)
		result, err := q.Exec(context.Background()).Matrix()
		require.NoError(t, err)
		for _, alert := range result {
			pending := 0 // the point from which on the alert has had a value
			for i, point := range alert.Floats {
				if i == 0 || point.T-alert.Floats[i-1].T != evalStep.Milliseconds() {
					pending = i
				}
				at, active := time.Duration(point.T)*time.Millisecond, time.Duration(point.T-alert.Floats[pending].T)*time.Millisecond
				switch {
				case active == time.Duration(rule.For):
					fires = append(fires, alarm{rule.Alert, alert.Metric.String(), rule.Labels["severity"], at, at})
				case active > time.Duration(rule.For):
					fires[len(fires)-1].to = at
				}
			}
		}
		q.Close()
	}
	return fires
}

// alerts checks that in each outage an alert that pages fires, and at no other time.
func (a *audit) alerts(t *testing.T, r *recording) {
	var broken, others, heard []string
	for _, fires := range r.alarms(t) {
		t.Log(fires)
		if fires.severity == "critical" {
			a.alarms = append(a.alarms, fires)
		} else if !slices.Contains(others, fires.name) {
			others = append(others, fires.name)
		}
	}
	if !slices.ContainsFunc(a.storm.faults, func(f fault) bool { return f.outage }) {
		a.note("alerts, in a storm without an outage", fmt.Sprintf("%d pages; of others: %v", len(a.alarms), others), nil)
		return
	}
	called := slices.Clone(a.alarms)
	for _, f := range a.storm.faults {
		if !f.outage {
			continue
		}
		begin, end, over := stretch*f.begin, stretch*f.end, stretch*(f.end+f.recovery())+5*time.Minute
		first := time.Duration(-1)
		for _, fires := range a.alarms {
			if fires.from <= end && fires.to >= begin && (first < 0 || fires.from < first) {
				first = max(fires.from, begin)
			}
		}
		called = slices.DeleteFunc(called, func(fires alarm) bool { return fires.from >= begin && fires.to <= over })
		if first < 0 {
			broken = append(broken, "no alert paged in the outage of "+f.String())
			continue
		}
		heard = append(heard, fmt.Sprintf("%s after %.1f of %.1f min", f.name(), (first-begin).Minutes(), (end-begin).Minutes()))
	}
	justified := 0
	for _, fires := range called {
		if *slack > 1 && a.failing(fires.from) {
			justified++
			continue
		}
		broken = append(broken, "at another time: "+fires.String())
	}
	a.note("an alert pages in each outage of more than five minutes, and at no other time",
		fmt.Sprintf("%s; %d more when runs failed for another reason; of others, over the whole storm: %v", strings.Join(heard, ", "), justified, others), broken)
}

// failing reports whether, by the journals, more than a tenth of the runs of a layer, which is what budgets pay for, failed in
// the five minutes of the alerts before at.
func (a *audit) failing(at time.Duration) bool {
	until := a.storm.began.Add(at / stretch)
	runs, failed := map[string]int{}, map[string]int{}
	for _, l := range a.lines {
		if since := until.Sub(l.Time); l.What == "run" && since >= 0 && since <= 5*time.Minute/stretch {
			if runs[l.Layer]++; l.Status != "succeeded" {
				failed[l.Layer]++
			}
		}
	}
	for layer, n := range failed {
		if 10*n > runs[layer] {
			return true
		}
	}
	return false
}
