package main

import (
	"maps"
	"slices"
	"strings"
	"testing"

	dto "github.com/prometheus/client_model/go"
	"github.com/prometheus/common/expfmt"
	"github.com/prometheus/common/model"
	"github.com/stretchr/testify/require"
)

// values are the values of each label of a metric.
type values map[string]map[string]bool

// emitted has the scraped names: families are the names in the TYPE lines, metrics those of the lines with numbers.
type emitted struct {
	families []string
	metrics  map[string]values
}

// emit runs the program and reads its scrape as Prometheus does, which refuses names that would have to be quoted.
func emit(t *testing.T) emitted {
	made, err := newTelemetry()
	require.NoError(t, err)
	defer made.close()
	require.NoError(t, makeCalls(t.Context(), made))
	scraped, err := made.scrape(t.Context())
	require.NoError(t, err)
	parser := expfmt.NewTextParser(model.LegacyValidation)
	families, err := parser.TextToMetricFamilies(strings.NewReader(scraped))
	require.NoError(t, err)
	for _, of := range []string{"duration_seconds", "body_size_bytes"} {
		delete(families, "http_client_request_"+of) // of otelhttp, for which dashboards exist
	}

	e := emitted{slices.Sorted(maps.Keys(families)), map[string]values{}}
	for name, family := range families {
		for _, m := range family.Metric {
			if m.Histogram == nil {
				e.add(name, m.Label)
				continue
			}
			e.add(name+"_sum", m.Label)
			e.add(name+"_count", m.Label)
			e.add(name+"_bucket", m.Label)
			e.metrics[name+"_bucket"]["le"] = map[string]bool{}
		}
	}
	return e
}

func (e emitted) add(name string, labels []*dto.LabelPair) {
	known := e.metrics[name]
	if known == nil {
		known = values{}
		e.metrics[name] = known
	}
	for _, l := range labels {
		if known[l.GetName()] == nil {
			known[l.GetName()] = map[string]bool{}
		}
		known[l.GetName()][l.GetValue()] = true
	}
}
