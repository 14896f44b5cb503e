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
		t.Rate(), t.Runs, t.Over.Round(time.Second), 100*t.Failure(), t.Attempts, t.Duration, rounded(t.Mean))
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
	c, name, err := last.of(policy)
	if err != nil {
		return Traffic{}, err
	}
	measured := last.at.Sub(last.start)
	if len(scrapes) > 1 {
		measured = last.at.Sub(first.at)
		if before := first.policies[name]; before != nil {
			if err := c.subtract(before); err != nil {
				return Traffic{}, err
			}
		}
	}
	t := Traffic{Policy: name, Over: cmp.Or(over, measured), Runs: c.runs}
	if t.Over <= 0 || last.at.IsZero() && over == 0 {
		return Traffic{}, ErrTime
	}
	for class, n := range c.attempts {
		t.Attempts += n
		if class != "succeeded" && class != "terminal" {
			t.Failed += n
		}
	}
	if !(t.Runs > 0 && t.Attempts > 0 && c.count > 0) {
		return Traffic{}, fmt.Errorf("no run of %s succeeded in that time", named(name))
	}
	t.Mean = seconds(c.sum / c.count)
	median, p99 := c.quantile(0.5), c.quantile(0.99)
	t.Duration = retryplan.LogNormal(rounded(seconds(median)), rounded(seconds(max(median, p99))))
	return t, nil
}

// scrape is what was counted of each policy at one time.
type scrape struct {
	start, at time.Time // zero if they are not known
	policies  map[string]*counts
}

// counts are what is used of the metrics of a policy.
type counts struct {
	runs     float64
	attempts map[string]float64 // by class
	// Of the duration of attempts that succeeded; buckets are cumulative, by their upper bounds.
	sum, count float64
	buckets    map[float64]float64
}

func newScrape() scrape { return scrape{policies: map[string]*counts{}} }

// policy returns the counts of a policy, made if there are none.
func (s *scrape) policy(name string) *counts {
	if s.policies[name] == nil {
		s.policies[name] = &counts{attempts: map[string]float64{}, buckets: map[float64]float64{}}
	}
	return s.policies[name]
}

// add adds a series of a metric: either a value, or a histogram.
func (s *scrape) add(metric string, labels map[string]string, value float64, h *counts) {
	c := s.policy(labels["policy"])
	switch {
	case metric == "retry.runs":
		c.runs += value
	case metric == "retry.attempts":
		c.attempts[labels["class"]] += value
	case metric == "retry.attempt.duration" && h != nil && labels["class"] == "succeeded":
		c.sum, c.count = c.sum+h.sum, c.count+h.count
		for bound, n := range h.buckets {
			c.buckets[bound] += n
		}
	}
}

// of returns the counts of a policy and its name.
func (s scrape) of(policy string) (*counts, string, error) {
	maps.DeleteFunc(s.policies, func(_ string, c *counts) bool { return c.runs == 0 })
	names := slices.Sorted(maps.Keys(s.policies))
	switch {
	case len(names) == 0:
		return nil, "", errors.New("there is no retry.runs of retryotel")
	case policy == "" && len(names) == 1:
		return s.policies[names[0]], names[0], nil
	case s.policies[policy] == nil || policy == "":
		return nil, "", fmt.Errorf("which policy? It has %s; write NAME@FILE", strings.Join(names, ", "))
	}
	return s.policies[policy], policy, nil
}

// subtract takes off what an earlier scrape had counted.
func (c *counts) subtract(before *counts) error {
	c.runs -= before.runs
	c.sum, c.count = c.sum-before.sum, c.count-before.count
	for class, n := range before.attempts {
		c.attempts[class] -= n
	}
	for bound, n := range before.buckets {
		c.buckets[bound] -= n
	}
	least := min(c.runs, c.sum, c.count)
	for _, n := range c.attempts {
		least = min(least, n)
	}
	if least < 0 {
		return errors.New("a counter fell between the scrapes: the process began anew, or they are in the wrong order")
	}
	return nil
}

// quantile interpolates within the bucket, as histogram_quantile of Prometheus does: what is above the last bound
// counts as that.
func (c *counts) quantile(q float64) float64 {
	bounds := slices.Sorted(maps.Keys(c.buckets))
	rank := q * c.count
	below, from := 0., 0.
	for _, bound := range bounds {
		n := c.buckets[bound]
		if n >= rank && n > below {
			if math.IsInf(bound, 1) {
				return from
			}
			return from + (bound-from)*(rank-below)/(n-below)
		}
		if !math.IsInf(bound, 1) {
			below, from = n, bound
		}
	}
	return from
}

func seconds(s float64) time.Duration { return time.Duration(s * float64(time.Second)) }

// rounded returns d with three digits, which is more than buckets say.
func rounded(d time.Duration) time.Duration {
	unit := time.Duration(1)
	for d >= 1000*unit {
		unit *= 10
	}
	return d.Round(unit)
}

func named(policy string) string {
	if policy == "" {
		return "the policy without a name"
	}
	return policy
}
