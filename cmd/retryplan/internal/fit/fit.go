// Package fit reads from metrics what a fleet does in production: the rate of its runs, the share of its attempts that
// fail, and the duration of an attempt. It knows the metrics of contrib/retryotel, and others by name.
package fit

import (
	"bytes"
	"errors"
	"fmt"
	"maps"
	"math"
	"regexp"
	"slices"
	"strings"
	"time"

	"github.com/prometheus/common/expfmt"
	"github.com/prometheus/common/model"

	"github.com/retrygo/retry/retryplan"
)

// Traffic is the measured load of a policy.
type Traffic struct {
	Over     time.Duration
	Runs     float64
	Attempts float64
	// Failed is the number of attempts that failed so that another can follow: those of class terminal are answers.
	Failed float64
	// Mean is that of the attempts that succeeded; Duration is the log-normal with their median and 99th percentile.
	Mean     time.Duration
	Duration retryplan.Dist
}

// Rate returns the runs a second, and Failure the share of attempts that failed.
func (t Traffic) Rate() float64    { return t.Runs / t.Over.Seconds() }
func (t Traffic) Failure() float64 { return t.Failed / t.Attempts }

// String returns the fitted figures and the counts behind them.
func (t Traffic) String() string {
	text := fmt.Sprintf("%.4g runs/s (%.0f in %v), %.3g %% of %.0f attempts failed",
		t.Rate(), t.Runs, t.Over.Round(time.Second), 100*t.Failure(), t.Attempts)
	if t.Duration != (retryplan.Dist{}) {
		text += fmt.Sprintf(", an attempt takes %v, mean %v", t.Duration, t.Mean)
	}
	return text
}

// Read returns the traffic that a process has counted in so much time, more than none. Of two scrapes, the earlier first,
// it is what was counted between them; of one, since the process began. They are in the text format of Prometheus or in
// OpenMetrics, which do not say over what time they count. The zero Query means the metrics of contrib/retryotel for a
// policy, of which "" is the only one that has runs.
func Read(policy string, q Query, over time.Duration, scrapes ...[]byte) (Traffic, error) {
	own := q == (Query{})
	if own {
		q = retryotel(policy)
	}
	asked, err := q.parse()
	if err != nil {
		return Traffic{}, err
	}
	var first, last counts
	for i, data := range scrapes {
		if last, err = read(data, asked); err != nil {
			return Traffic{}, err
		}
		if i == 0 {
			first = last
		}
	}
	names := slices.Sorted(maps.Keys(last.policies))
	switch {
	case own && (policy == "" && len(names) > 1 || len(names) > 0 && last.runs == 0):
		return Traffic{}, fmt.Errorf("which policy? The metrics have %s; write NAME@FILE", strings.Join(names, ", "))
	case last.runs == 0:
		return Traffic{}, errors.New("no series is the counter that is asked for, or it has counted nothing")
	case len(scrapes) > 1 && !last.subtract(&first):
		return Traffic{}, errors.New("a counter fell between the scrapes: the process restarted, or they are in the wrong order")
	}
	t := Traffic{Over: over, Runs: last.runs, Attempts: last.attempts, Failed: last.failed}
	took := last.below[math.Inf(1)]
	switch {
	case !(t.Runs > 0 && t.Attempts > 0) || took == 0 && q.Took != "":
		return Traffic{}, errors.New("no run succeeded in that time")
	case took == 0:
		return t, nil
	}
	t.Mean = rounded(last.sum / took)
	median, p99 := last.quantile(0.5), last.quantile(0.99)
	t.Duration = retryplan.LogNormal(rounded(median), rounded(max(median, p99)))
	return t, nil
}

// counts are what a scrape has of the series that are asked for.
type counts struct {
	runs, attempts, failed float64
	histogram                              // the duration of attempts, in seconds
	policies               map[string]bool // of retryotel that have runs
}

// histogram counts durations.
type histogram struct {
	sum   float64
	below map[float64]float64 // the number up to each bound; that of infinity is the number of all
}

// openMetricsLine matches a series of OpenMetrics with its value, which a time in fractions of a second and an exemplar
// can follow, and a type that the text format has not.
var openMetricsLine = regexp.MustCompile(`^([^\s#{]+(?:\{.*?\})? [^\s#]+)( [\d.eE+-]+)?( # \{.*)?\s*$|^# TYPE \S+ (?:info|stateset|gaugehistogram|unknown)\s*$`)

// read reads a scrape.
func read(data []byte, asked selectors) (counts, error) {
	if bytes.HasSuffix(bytes.TrimSpace(data), []byte("# EOF")) { // OpenMetrics, whose exemplars and times are left out
		var plain bytes.Buffer
		for line := range bytes.Lines(data) {
			if m := openMetricsLine.FindSubmatch(line); m != nil {
				line = append(slices.Clone(m[1]), '\n')
			}
			plain.Write(line)
		}
		data = plain.Bytes()
	}
	parser := expfmt.NewTextParser(model.UTF8Validation)
	families, err := parser.TextToMetricFamilies(bytes.NewReader(data))
	if err != nil {
		return counts{}, err
	}
	c := counts{histogram: histogram{below: map[float64]float64{}}, policies: map[string]bool{}}
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
			c.add(asked, name, labels, m.GetCounter().GetValue()+m.GetUntyped().GetValue()+m.GetGauge().GetValue(), h)
		}
	}
	return c, nil
}

// add adds a series, a counter or a histogram, to what asks for it.
func (c *counts) add(asked selectors, name string, labels map[string]string, value float64, h histogram) {
	count := value + h.below[math.Inf(1)]
	took := asked.took.has(name, labels)
	if asked.runs.has(name, labels) {
		c.runs += count
	}
	if asked.calls.has(name, labels) || asked.calls.name == "" && took {
		c.attempts += count
		if asked.runs.name == "" {
			c.runs += count
		}
	}
	if asked.errors.has(name, labels) {
		c.failed += count
	}
	if took {
		unit := 1.0
		if strings.HasSuffix(name, "_milliseconds") || strings.HasSuffix(name, "_ms") {
			unit = 1e-3
		}
		c.sum += h.sum * unit
		for bound, n := range h.below {
			c.below[bound*unit] += n
		}
	}
	if name == runs && count > 0 {
		c.policies[labels[policyLabel]] = true
	}
}

// subtract subtracts the counts of an earlier scrape, and reports whether none was larger.
func (c *counts) subtract(before *counts) bool {
	c.runs, c.attempts, c.failed, c.sum = c.runs-before.runs, c.attempts-before.attempts, c.failed-before.failed, c.sum-before.sum
	for bound, n := range before.below {
		c.below[bound] -= n
	}
	return min(c.runs, c.attempts, c.failed, c.sum, c.below[math.Inf(1)]) >= 0
}

// quantile interpolates within the bucket, as histogram_quantile of Prometheus does. A value above the last finite bound
// counts as that bound.
func (h histogram) quantile(q float64) float64 {
	rank, below, from := q*h.below[math.Inf(1)], 0., 0.
	for _, bound := range slices.Sorted(maps.Keys(h.below)) {
		n := h.below[bound]
		if math.IsInf(bound, 1) {
			break
		}
		if n >= rank && n > below {
			return from + (bound-from)*(rank-below)/(n-below)
		}
		below, from = n, bound
	}
	return from
}

// rounded returns a number of seconds with three digits, which is more than buckets say.
func rounded(seconds float64) time.Duration {
	d, unit := time.Duration(seconds*float64(time.Second)), time.Duration(1)
	for d >= 1000*unit {
		unit *= 10
	}
	return d.Round(unit)
}
