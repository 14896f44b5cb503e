package sdks_test

import (
	"context"
	"fmt"
	"maps"
	"os"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
	"go.opentelemetry.io/otel/sdk/metric/metricdata"

	"github.com/retrygo/retry"
	"github.com/retrygo/retry/contrib/retryotel"
	"github.com/retrygo/retry/retryhedge"
	"github.com/retrygo/retry/retryjob"
)

// jobs are those of an engine.
type jobs map[retryjob.Status]retryjob.Tally

func (j jobs) Count(context.Context, retryjob.Filter) (map[retryjob.Status]retryjob.Tally, error) {
	return j, nil
}

// The table of the package documentation is what an SDK gets, and its names follow the conventions: a counter that goes
// up and down is never a plural.
func TestTheTableOfMetrics(t *testing.T) {
	s, observe := observed(t)
	p := retry.Policy{Name: "a", MaxAttempts: 2, Backoff: retry.Backoff{Base: 1}, Observe: observe}
	require.Error(t, retry.Do(t.Context(), p, func(context.Context) error { return errDown }))
	hedges, err := retryotel.ObserveHedges(s.Options)
	require.NoError(t, err)
	hedges(t.Context(), retryhedge.Event{Policy: "a", Calls: make([]retryhedge.Call, 2)})
	_, err = retryotel.ObserveBudget(s.Options, "b", retry.NewBudget(retry.BudgetConfig{}))
	require.NoError(t, err)
	_, err = retryotel.ObserveBudgetSet(s.Options, "c", retry.NewBudgets(retry.BudgetConfig{}, 1))
	require.NoError(t, err)
	_, err = retryotel.ObserveJobs(s.Options, "d", jobs{retryjob.Pending: {Jobs: 1}}.Count)
	require.NoError(t, err)
	_, err = retryotel.ObserveSchedules(s.Options, "d", scheduled{})
	require.NoError(t, err)

	var all metricdata.ResourceMetrics
	require.NoError(t, s.reader.Collect(t.Context(), &all))
	var got []string
	for _, m := range all.ScopeMetrics[0].Metrics {
		kind, keys := s.describe(m)
		got = append(got, fmt.Sprintf("%s %s %s %s", m.Name, kind, m.Unit, strings.Join(keys, ", ")))
		require.False(t, kind == "up-down counter" && strings.HasSuffix(m.Name, "s"), m.Name)
	}
	doc, err := os.ReadFile("../doc.go")
	require.NoError(t, err)
	var want []string
	for _, row := range regexp.MustCompile(`(?m)^//\t(retry\.\S+) +(counter|histogram|gauge|up-down counter) +(\S+) +(retry.*)$`).FindAllStringSubmatch(string(doc), -1) {
		keys := strings.Split(row[4], ", ")
		slices.Sort(keys)
		want = append(want, fmt.Sprintf("%s %s %s %s", row[1], row[2], row[3], strings.Join(keys, ", ")))
	}
	require.ElementsMatch(t, want, got)
}

// describe returns the instrument of a metric, and the keys of its points.
func (s *sdk) describe(m metricdata.Metrics) (kind string, keys []string) {
	switch data := m.Data.(type) {
	case metricdata.Sum[int64]:
		kind = map[bool]string{true: "counter", false: "up-down counter"}[data.IsMonotonic]
	case metricdata.Gauge[float64]:
		kind = "gauge"
	default:
		kind = "histogram"
	}
	points := slices.AppendSeq(slices.Collect(maps.Keys(s.values(m.Name))), maps.Keys(s.histogram(m.Name)))
	for label := range strings.SplitSeq(strings.Join(points, ","), ",") {
		key, _, _ := strings.Cut(label, "=")
		keys = append(keys, key)
	}
	slices.Sort(keys)
	return kind, slices.Compact(keys)
}

// scheduled is an engine with one schedule.
type scheduled struct{ retryjob.Admin }

func (scheduled) Schedules(context.Context) ([]retryjob.Schedule, error) {
	return []retryjob.Schedule{{Name: "hourly"}}, nil
}
