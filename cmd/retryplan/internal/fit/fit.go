// Package fit reads the traffic of a fleet in production from the metrics of contrib/retryotel. That is the rate of its
// runs, the share of its attempts that fail, and the duration of an attempt.
package fit

import (
	"bytes"
	"errors"
	"fmt"
	"maps"
	"math"
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

// Read returns the traffic of a policy that a process has counted in the given time, more than none. Of two scrapes, the
// earlier first, it is the difference between them. One scrape counts since the process began. They are in the text format
// of Prometheus, which does not include the time over which they count. The policy "" is the only one that has runs.
func Read(policy string, over time.Duration, scrapes ...[]byte) (Traffic, error) {
	var first, last counts
	for i, data := range scrapes {
		var err error
		if last, err = read(data, policy); err != nil {
			return Traffic{}, err
		}
		if i == 0 {
			first = last
		}
	}
	names := slices.Sorted(maps.Keys(last.policies))
	switch {
	case policy == "" && len(names) > 1 || len(names) > 0 && last.runs == 0:
		return Traffic{}, fmt.Errorf("which policy? The metrics have %s; write NAME@FILE", strings.Join(names, ", "))
	case last.runs == 0:
		return Traffic{}, fmt.Errorf("there is no %s, or it has counted nothing", runs)
	case len(scrapes) > 1 && !last.subtract(&first):
		return Traffic{}, errors.New("a counter fell between the scrapes: the process restarted, or they are in the wrong order")
	}
	t := Traffic{Over: over, Runs: last.runs, Attempts: last.attempts, Failed: last.failed}
	took := last.below[math.Inf(1)]
	if !(t.Runs > 0 && t.Attempts > 0 && took > 0) {
		return Traffic{}, errors.New("no run succeeded in that time")
	}
	t.Mean = rounded(last.sum / took)
	median, p99 := last.quantile(0.5), last.quantile(0.99)
	t.Duration = retryplan.LogNormal(rounded(median), rounded(max(median, p99)))
	return t, nil
}

// The names of contrib/retryotel, as OpenTelemetry's exporter writes them for Prometheus.
const (
	runs        = "retry_runs_total"
	attempts    = "retry_attempts_total"
	duration    = "retry_attempt_duration_seconds"
	policyLabel = "retry_policy"
	classLabel  = "retry_class"
)

// counts are the figures of a policy in a scrape.
type counts struct {
	runs, attempts, failed float64
	histogram                              // the duration of attempts that succeeded, in seconds
	policies               map[string]bool // that have runs
}

// histogram counts durations.
type histogram struct {
	sum   float64
	below map[float64]float64 // the number up to each bound; that of infinity is the number of all
}

// read reads a scrape.
func read(data []byte, policy string) (counts, error) {
	parser := expfmt.NewTextParser(model.UTF8Validation)
	families, err := parser.TextToMetricFamilies(bytes.NewReader(data))
	if err != nil {
		return counts{}, err
	}
	c := counts{histogram: histogram{below: map[float64]float64{}}, policies: map[string]bool{}}
	for _, name := range []string{runs, attempts, duration} {
		for _, m := range families[name].GetMetric() {
			labels := map[string]string{}
			for _, l := range m.Label {
				labels[l.GetName()] = l.GetValue()
			}
			count := m.GetCounter().GetValue() + m.GetUntyped().GetValue()
			if name == runs && count > 0 {
				c.policies[labels[policyLabel]] = true
			}
			if policy != "" && labels[policyLabel] != policy {
				continue
			}
			switch class := labels[classLabel]; {
			case name == runs:
				c.runs += count
			case name == attempts:
				c.attempts += count
				if class != "succeeded" && class != "terminal" {
					c.failed += count
				}
			case class == "succeeded":
				h := m.GetHistogram()
				c.sum += h.GetSampleSum()
				c.below[math.Inf(1)] += float64(h.GetSampleCount())
				for _, b := range h.GetBucket() {
					if bound := b.GetUpperBound(); !math.IsInf(bound, 1) {
						c.below[bound] += float64(b.GetCumulativeCount())
					}
				}
			}
		}
	}
	return c, nil
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
