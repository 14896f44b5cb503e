package fit

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"math"
	"strconv"
	"strings"
	"time"

	"github.com/prometheus/common/expfmt"
	"github.com/prometheus/common/model"
)

// units are what OpenTelemetry's Prometheus exporter adds to names, and its escapes.
var units = strings.NewReplacer("_total", "", "_seconds", "", "_", ".")

// prometheus reads a scrape in the text format. It says nothing of when it was made.
func prometheus(data []byte) ([]scrape, error) {
	parser := expfmt.NewTextParser(model.UTF8Validation)
	families, err := parser.TextToMetricFamilies(bytes.NewReader(data))
	if err != nil {
		return nil, err
	}
	var s scrape
	for name, family := range families {
		for _, m := range family.Metric {
			labels := map[string]string{}
			for _, l := range m.Label {
				labels[strings.TrimPrefix(units.Replace(l.GetName()), "retry.")] = l.GetValue()
			}
			from := m.GetHistogram()
			h := counts{{of: sum}: from.GetSampleSum(), {of: durations}: float64(from.GetSampleCount())}
			for _, b := range from.GetBucket() {
				h[series{of: buckets, bound: b.GetUpperBound()}] = float64(b.GetCumulativeCount())
			}
			s.add(units.Replace(name), labels, m.GetCounter().GetValue()+m.GetUntyped().GetValue(), h)
		}
	}
	return []scrape{s}, nil
}

// exported is what is used of an ExportMetricsServiceRequest: opentelemetry-proto, collector/metrics/v1. In its JSON,
// 64-bit integers are text.
type exported struct {
	ResourceMetrics []struct {
		ScopeMetrics []struct {
			Metrics []struct {
				Name           string
				Sum, Histogram points
			}
		}
	}
}

type points struct {
	AggregationTemporality any // 2 or AGGREGATION_TEMPORALITY_CUMULATIVE
	DataPoints             []struct {
		Attributes []struct {
			Key   string
			Value struct{ StringValue string }
		}
		StartTimeUnixNano, TimeUnixNano, AsInt, Count integer
		Sum                                           float64
		BucketCounts                                  []integer
		ExplicitBounds                                []float64
	}
}

// integer is one that is written as text or as a number.
type integer int64

func (i *integer) UnmarshalJSON(data []byte) error {
	n, err := strconv.ParseInt(strings.Trim(string(data), `"`), 10, 64)
	*i = integer(n)
	return err
}

// otlp reads a request for each line, as the file exporter of OpenTelemetry's collector writes them.
func otlp(data []byte) ([]scrape, error) {
	var all []scrape
	d := json.NewDecoder(bytes.NewReader(data))
	for {
		var request exported
		if err := d.Decode(&request); errors.Is(err, io.EOF) {
			return all, nil
		} else if err != nil {
			return nil, fmt.Errorf("OTLP: %w", err)
		}
		var s scrape
		for _, r := range request.ResourceMetrics {
			for _, scope := range r.ScopeMetrics {
				for _, m := range scope.Metrics {
					for _, p := range []points{m.Sum, m.Histogram} {
						if err := s.addPoints(m.Name, p); err != nil {
							return nil, err
						}
					}
				}
			}
		}
		if len(s.policies) > 0 { // a request has other metrics, or traces
			all = append(all, s)
		}
	}
}

func (s *scrape) addPoints(name string, all points) error {
	if !strings.HasPrefix(name, "retry.") || len(all.DataPoints) == 0 {
		return nil
	}
	if t := fmt.Sprint(all.AggregationTemporality); t != "2" && t != "AGGREGATION_TEMPORALITY_CUMULATIVE" {
		return fmt.Errorf("OTLP: %s is not cumulative", name)
	}
	for _, p := range all.DataPoints {
		labels := map[string]string{}
		for _, a := range p.Attributes {
			labels[strings.TrimPrefix(a.Key, "retry.")] = a.Value.StringValue
		}
		h := counts{{of: sum}: p.Sum, {of: durations}: float64(p.Count)}
		below := 0.
		for i, n := range p.BucketCounts {
			below += float64(n)
			bound := math.Inf(1)
			if i < len(p.ExplicitBounds) {
				bound = p.ExplicitBounds[i]
			}
			h[series{of: buckets, bound: bound}] = below
		}
		s.add(name, labels, float64(p.AsInt), h)
		if start := time.Unix(0, int64(p.StartTimeUnixNano)); s.start.IsZero() || start.Before(s.start) {
			s.start = start
		}
		if at := time.Unix(0, int64(p.TimeUnixNano)); at.After(s.at) {
			s.at = at
		}
	}
	return nil
}
