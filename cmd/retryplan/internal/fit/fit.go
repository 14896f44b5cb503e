// Package fit reads from the metrics of contrib/retryotel what a fleet does in production: how many runs it begins,
// what share of its attempts fails, and how long an attempt takes.
package fit

import (
	"bytes"
	"cmp"
	"errors"
	"fmt"
	"maps"
	"math"
	"slices"
	"strings"
	"time"

	"github.com/retrygo/retry/retryplan"
)

// ErrTime says that neither the metrics nor the caller say over what time they count.
var ErrTime = errors.New("the metrics do not say over what time they count")

// Traffic is what was measured of a policy.
type Traffic struct {
	Policy   string // empty for runs without a name
	Over     time.Duration
	Runs     float64
	Attempts float64
	// Failed is how many attempts failed so that another can follow: those of class terminal are answers.
	Failed float64
	// Mean is that of the attempts that succeeded; Duration is the log-normal with their median and 99th percentile.
	Mean     time.Duration
	Duration retryplan.Dist
}

// Rate returns the runs a second, and Failure the share of attempts that failed.
func (t Traffic) Rate() float64    { return t.Runs / t.Over.Seconds() }
func (t Traffic) Failure() float64 { return t.Failed / t.Attempts }

// String returns what was fitted, and from how much.
func (t Traffic) String() string {
	return fmt.Sprintf("%.4g runs/s (%.0f in %v), %.3g %% of %.0f attempts failed, an attempt takes %v, mean %v",
		t.Rate(), t.Runs, t.Over.Round(time.Second), 100*t.Failure(), t.Attempts, t.Duration, t.Mean)
}

// Read returns the traffic of a policy, "" for the only one that there is. Files are Prometheus text or OTLP/JSON, a
// request on each line, with cumulative counters. Two scrapes, the earlier first, are subtracted. Prometheus text does
// not say when it was scraped: over is the time between two scrapes, or since the process began. OTLP does say; there
// over is zero, or overrides it.
func Read(policy string, over time.Duration, files ...[]byte) (Traffic, error) {
	var scrapes []scrape
	for _, data := range files {
		read := prometheus
		if bytes.HasPrefix(bytes.TrimSpace(data), []byte("{")) {
			read = otlp
		}
		found, err := read(data)
		if err != nil {
			return Traffic{}, err
		}
		scrapes = append(scrapes, found...)
	}
	if len(scrapes) == 0 {
		return Traffic{}, errors.New("there are no metrics")
	}
	first, last := scrapes[0], scrapes[len(scrapes)-1]
	name, err := last.which(policy)
	if err != nil {
		return Traffic{}, err
	}
	c, measured := last.policies[name], last.at.Sub(last.start)
	if len(scrapes) > 1 {
		measured = last.at.Sub(first.at)
		if err := c.subtract(first.policies[name]); err != nil {
			return Traffic{}, err
		}
	}
	t := Traffic{Policy: name, Over: cmp.Or(over, measured), Runs: c[series{of: runs}]}
	if t.Over <= 0 || last.at.IsZero() && over == 0 {
		return Traffic{}, ErrTime
	}
	for s, n := range c {
		if s.of != attempts {
			continue
		}
		t.Attempts += n
		if s.class != "succeeded" && s.class != "terminal" {
			t.Failed += n
		}
	}
	count := c[series{of: durations}]
	if !(t.Runs > 0 && t.Attempts > 0 && count > 0) {
		return Traffic{}, fmt.Errorf("no run of %s succeeded in that time", cmp.Or(name, "the policy without a name"))
	}
	t.Mean = rounded(c[series{of: sum}] / count)
	median, p99 := c.quantile(0.5), c.quantile(0.99)
	t.Duration = retryplan.LogNormal(rounded(median), rounded(max(median, p99)))
	return t, nil
}

// scrape is what was counted of each policy at one time.
type scrape struct {
	start, at time.Time // zero if they are not known
	policies  map[string]counts
}

// counts are what is used of the metrics of a policy.
type counts map[series]float64

// series is one of them.
type series struct {
	of    string
	class string  // of attempts
	bound float64 // of a bucket, which counts all that is below
}

// What is counted. The last three are of the attempts that succeeded.
const (
	runs      = "retry.runs"
	attempts  = "retry.attempts"
	durations = "retry.attempt.duration"
	sum       = durations + " sum"
	buckets   = durations + " bucket"
)

// add adds a series of a metric, whose labels have no "retry." before their names: either a value, or a histogram.
func (s *scrape) add(metric string, labels map[string]string, value float64, histogram counts) {
	if s.policies == nil {
		s.policies = map[string]counts{}
	}
	c := s.policies[labels["policy"]]
	if c == nil {
		c = counts{}
		s.policies[labels["policy"]] = c
	}
	switch {
	case metric == runs:
		c[series{of: runs}] += value
	case metric == attempts:
		c[series{of: attempts, class: labels["class"]}] += value
	case metric == durations && labels["class"] == "succeeded":
		for one, n := range histogram {
			c[one] += n
		}
	}
}

// which returns the name of the policy that is meant.
func (s scrape) which(policy string) (string, error) {
	maps.DeleteFunc(s.policies, func(_ string, c counts) bool { return c[series{of: runs}] == 0 })
	names := slices.Sorted(maps.Keys(s.policies))
	switch {
	case len(names) == 0:
		return "", errors.New("there is no retry.runs of retryotel")
	case policy == "" && len(names) == 1:
		return names[0], nil
	case policy == "" || !slices.Contains(names, policy):
		return "", fmt.Errorf("which policy? It has %s; write NAME@FILE", strings.Join(names, ", "))
	}
	return policy, nil
}

// subtract takes off what an earlier scrape had counted.
func (c counts) subtract(before counts) error {
	for one, n := range before {
		if c[one] -= n; c[one] < 0 && one.of != buckets {
			return errors.New("a counter fell between the scrapes: the process began anew, or they are in the wrong order")
		}
	}
	return nil
}

// quantile interpolates within the bucket, as histogram_quantile of Prometheus does: what is above the last bound
// counts as that.
func (c counts) quantile(q float64) float64 {
	var bounds []float64
	for one := range c {
		if one.of == buckets && !math.IsInf(one.bound, 1) {
			bounds = append(bounds, one.bound)
		}
	}
	slices.Sort(bounds)
	rank := q * c[series{of: durations}]
	below, from := 0., 0.
	for _, bound := range bounds {
		n := c[series{of: buckets, bound: bound}]
		if n >= rank && n > below {
			return from + (bound-from)*(rank-below)/(n-below)
		}
		below, from = n, bound
	}
	return from
}

// rounded returns so many seconds with three digits, which is more than buckets say.
func rounded(seconds float64) time.Duration {
	d, unit := time.Duration(seconds*float64(time.Second)), time.Duration(1)
	for d >= 1000*unit {
		unit *= 10
	}
	return d.Round(unit)
}
