package main

import (
	"context"
	"math"
	"slices"
	"testing"
	"time"

	"github.com/prometheus/prometheus/model/labels"
	"github.com/prometheus/prometheus/promql"
	"github.com/prometheus/prometheus/promql/parser"
	"github.com/prometheus/prometheus/storage"
	"github.com/prometheus/prometheus/tsdb/chunkenc"
	"github.com/prometheus/prometheus/util/annotations"
	"github.com/stretchr/testify/require"
)

const (
	scrapeStep = 30 * time.Second
	evalStep   = time.Minute
)

var begin = time.Date(2026, time.January, 1, 0, 0, 0, 0, time.UTC)

// series are counters, as text, with their value at each minute; NaN means that there is none yet.
type series map[string]func(minute float64) float64

// during grows by perMinute from one minute to another, in whole steps.
func during(from, to, perMinute float64) func(float64) float64 {
	return func(minute float64) float64 {
		return 100 + math.Floor(perMinute*(min(max(minute, from), to)-from))
	}
}

// once grows by n at a minute.
func once(at, n float64) func(float64) float64 {
	return func(minute float64) float64 {
		if minute < at {
			return 100
		}
		return 100 + n
	}
}

// Querier makes series a storage of Prometheus.
func (s series) Querier(_, until int64) (storage.Querier, error) {
	return &storage.MockQuerier{SelectMockFunction: func(_ bool, _ *storage.SelectHints, by ...*labels.Matcher) storage.SeriesSet {
		all := found{nil}
		for text, value := range s {
			set, err := parser.NewParser(parser.Options{}).ParseMetric(text)
			if err != nil {
				return storage.ErrSeriesSet(err)
			}
			if !matches(set, by) {
				continue
			}
			one, err := scraped(set, value, time.UnixMilli(until).Sub(begin))
			if err != nil {
				return storage.ErrSeriesSet(err)
			}
			all = append(all, one)
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

func matches(set labels.Labels, by []*labels.Matcher) bool {
	for _, m := range by {
		if !m.Matches(set.Get(m.Name)) {
			return false
		}
	}
	return true
}

func scraped(set labels.Labels, value func(float64) float64, until time.Duration) (storage.Series, error) {
	chunk := chunkenc.NewXORChunk()
	to, err := chunk.Appender()
	if err != nil {
		return nil, err
	}
	for at := time.Duration(0); at <= until; at += scrapeStep {
		if v := value(at.Minutes()); !math.IsNaN(v) {
			to.Append(0, begin.Add(at).UnixMilli(), v)
		}
	}
	return &storage.SeriesEntry{
		Lset:             set,
		SampleIteratorFn: func(it chunkenc.Iterator) chunkenc.Iterator { return chunk.Iterator(it) },
	}, nil
}

// alarm is an alert that fires from one time to another.
type alarm struct {
	labels   string
	from, to time.Duration // since begin
}

// alarms returns when an alert fires in the given time: when expr has had a value at each evaluation for its duration.
func alarms(t *testing.T, s series, expr string, long, watched time.Duration) (fires []alarm) {
	engine := promql.NewEngine(promql.EngineOpts{
		MaxSamples: 10_000_000,
		Timeout:    time.Minute,
		Parser:     parser.NewParser(parser.Options{}),
	})
	defer func() { require.NoError(t, engine.Close()) }()
	q, err := engine.NewRangeQuery(context.Background(), s, nil, expr, begin, begin.Add(watched), evalStep)
	require.NoError(t, err)
	defer q.Close()
	result, err := q.Exec(context.Background()).Matrix()
	require.NoError(t, err)
	for _, alert := range result {
		pending := 0 // the point from which on the alert has had a value
		for i, point := range alert.Floats {
			if i == 0 || point.T-alert.Floats[i-1].T != evalStep.Milliseconds() {
				pending = i
			}
			active := time.Duration(point.T-alert.Floats[pending].T) * time.Millisecond
			at := time.UnixMilli(point.T).Sub(begin)
			switch {
			case active == long:
				fires = append(fires, alarm{alert.Metric.String(), at, at})
			case active > long:
				fires[len(fires)-1].to = at
			}
		}
	}
	return fires
}

// firing returns the labels of the alerts that fire within two hours.
func firing(t *testing.T, s series, expr string, long time.Duration) (fires []string) {
	for _, a := range alarms(t, s, expr, long, 2*time.Hour) {
		fires = append(fires, a.labels)
	}
	return slices.Compact(fires)
}
