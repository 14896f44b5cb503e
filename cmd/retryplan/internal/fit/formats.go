package fit

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"math"
	"regexp"
	"slices"
	"strings"
	"time"

	"github.com/prometheus/common/expfmt"
	"github.com/prometheus/common/model"
)

// units are what OpenTelemetry's Prometheus exporter adds to names, and its escapes.
var units = strings.NewReplacer("_total", "", "_seconds", "", "_", ".")

// openMetricsLine matches a series of OpenMetrics with its value, which a time in fractions of a second and an exemplar
// can follow, and a type that the text format has not.
var openMetricsLine = regexp.MustCompile(`^([^\s#{]+(?:\{.*?\})? [^\s#]+)( [\d.eE+-]+)?( # \{.*)?\s*$|^# TYPE \S+ (?:info|stateset|gaugehistogram|unknown)\s*$`)

// prometheus reads a scrape in the text format, or as OpenMetrics. It does not say when it was made.
func prometheus(data []byte, pick picker) ([]scrape, error) {
	parser := expfmt.NewTextParser(model.UTF8Validation)
	if bytes.HasSuffix(bytes.TrimSpace(data), []byte("# EOF")) {
		data = plain(data)
	}
	families, err := parser.TextToMetricFamilies(bytes.NewReader(data))
	if err != nil {
		return nil, err
	}
	s := scrape{policies: map[string]*counts{}}
	for name, family := range families {
		for _, m := range family.Metric {
			labels := map[string]string{}
			for _, l := range m.Label {
				labels[l.GetName()] = l.GetValue()
			}
			from := m.GetHistogram()
			h := histogram{from.GetSampleSum(), map[float64]float64{}}
			for _, b := range from.GetBucket() {
				h.below[b.GetUpperBound()] = float64(b.GetCumulativeCount())
			}
			h.below[math.Inf(1)] = float64(from.GetSampleCount())
			pick(&s, name, labels, m.GetCounter().GetValue()+m.GetUntyped().GetValue()+m.GetGauge().GetValue(), h)
		}
	}
	return []scrape{s}, nil
}

// plain returns the lines of OpenMetrics as those of the text format: series without exemplars and times.
func plain(data []byte) []byte {
	var out bytes.Buffer
	for line := range bytes.Lines(data) {
		if m := openMetricsLine.FindSubmatch(line); m != nil {
			line = append(slices.Clone(m[1]), '\n')
		}
		out.Write(line)
	}
	return out.Bytes()
}

// exported has the fields of an ExportMetricsServiceRequest that are read: opentelemetry-proto, collector/metrics/v1. In
// its JSON, 64-bit integers are text or numbers, and json.Number reads both.
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
		StartTimeUnixNano, TimeUnixNano, AsInt json.Number
		Sum                                    float64
		BucketCounts                           []json.Number
		ExplicitBounds                         []float64
	}
}

// otlp reads a request from each line, as the file exporter of OpenTelemetry's collector writes them.
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
		s := scrape{policies: map[string]*counts{}}
		for _, r := range request.ResourceMetrics {
			for _, scope := range r.ScopeMetrics {
				for _, m := range scope.Metrics {
					for _, points := range []points{m.Sum, m.Histogram} {
						if err := s.addPoints(m.Name, points); err != nil {
							return nil, err
						}
					}
				}
			}
		}
		if len(s.policies) > 0 { // a request may have other metrics, or traces
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
		h, below := histogram{p.Sum, map[float64]float64{}}, 0.
		for i, bound := range append(p.ExplicitBounds, math.Inf(1)) {
			if i < len(p.BucketCounts) {
				n, _ := p.BucketCounts[i].Float64()
				below += n
			}
			h.below[bound] = below
		}
		value, _ := p.AsInt.Float64()
		s.add(name, labels, value, h)
		start, _ := p.StartTimeUnixNano.Int64()
		at, _ := p.TimeUnixNano.Int64()
		if from := time.Unix(0, start); s.start.IsZero() || from.Before(s.start) {
			s.start = from
		}
		if to := time.Unix(0, at); to.After(s.at) {
			s.at = to
		}
	}
	return nil
}
