// Package fit reads from metrics what a fleet does in production: the rate of its runs, the share of its attempts that
// fail, and the duration of an attempt. It knows the metrics of contrib/retryotel, and others by name.
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

// ErrTime is the error of Read if neither the metrics nor the caller say over what time they count.
var ErrTime = errors.New("the metrics do not say over what time they count")

// Traffic is the measured load of a policy.
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

// String returns the fitted figures and the counts behind them.
func (t Traffic) String() string {
	text := fmt.Sprintf("%.4g runs/s (%.0f in %v), %.3g %% of %.0f attempts failed",
		t.Rate(), t.Runs, t.Over.Round(time.Second), 100*t.Failure(), t.Attempts)
	if t.Duration != (retryplan.Dist{}) {
		text += fmt.Sprintf(", an attempt takes %v, mean %v", t.Duration, t.Mean)
	}
	return text
}

// Read returns the traffic that the metrics of a process have counted for a policy; "" means the only one that has runs.
// Of two files it is what was counted between them, the earlier first; of one, since the process began. Each is Prometheus
// text, OpenMetrics, or OTLP/JSON with cumulative counters and a request on each line. over is how long that was. It must
// be given for text, which does not say; for OTLP zero means what the file says. With a Query the files are text.
func Read(policy string, q Query, over time.Duration, files ...[]byte) (Traffic, error) {
	var scrapes []scrape
	pick, err := q.picker()
	if err != nil {
		return Traffic{}, err
	}
	for _, data := range files {
		read := func(data []byte) ([]scrape, error) { return prometheus(data, pick) }
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
	if c := last.policies[""]; q != (Query{}) && (c == nil || c.runs == 0) {
		err = errors.New("no series is the counter that is asked for, or it has counted nothing")
	}
	if err != nil {
		return Traffic{}, err
	}
	c, measured := last.policies[name], last.at.Sub(last.start)
	if before := first.policies[name]; len(scrapes) > 1 {
		measured = last.at.Sub(first.at)
		if before != nil && !c.subtract(before) {
			return Traffic{}, errors.New("a counter fell between the scrapes: the process restarted, or they are in the wrong order")
		}
	}
	t := Traffic{Policy: name, Over: cmp.Or(over, measured), Runs: c.runs, Attempts: c.attempts, Failed: c.failed}
	if t.Over <= 0 || last.at.IsZero() && over == 0 {
		return Traffic{}, ErrTime
	}
	timed := q == (Query{}) || q.Took != ""
	if !(t.Runs > 0 && t.Attempts > 0 && (c.below[math.Inf(1)] > 0 || !timed)) {
		return Traffic{}, fmt.Errorf("no run of %s succeeded in that time", cmp.Or(name, "the policy without a name"))
	}
	if !timed {
		return t, nil
	}
	t.Mean = rounded(c.sum / c.below[math.Inf(1)])
	median, p99 := c.quantile(0.5), c.quantile(0.99)
	t.Duration = retryplan.LogNormal(rounded(median), rounded(max(median, p99)))
	return t, nil
}

// scrape has the counts of each policy at one time.
type scrape struct {
	start, at time.Time // zero if unknown
	policies  map[string]*counts
}

// counts are the metrics of a policy.
type counts struct {
	runs, attempts, failed float64
	histogram              // the duration of the attempts that succeeded, in seconds
}

// histogram counts durations.
type histogram struct {
	sum   float64
	below map[float64]float64 // the number up to each bound; that of infinity is the number of all
}

// add adds a series of a metric, whose labels have no "retry." before their names: either a value, or a histogram.
func (s *scrape) add(metric string, labels map[string]string, value float64, h histogram) {
	c, class := s.policies[labels["policy"]], labels["class"]
	if c == nil {
		c = &counts{histogram: histogram{below: map[float64]float64{}}}
		s.policies[labels["policy"]] = c
	}
	switch metric {
	case "retry.runs":
		c.runs += value
	case "retry.attempts":
		c.attempts += value
		if class != "succeeded" && class != "terminal" {
			c.failed += value
		}
	case "retry.attempt.duration":
		if class != "succeeded" {
			return
		}
		c.sum += h.sum
		for bound, n := range h.below {
			c.below[bound] += n
		}
	}
}

// which returns the name of the policy that is meant.
func (s scrape) which(policy string) (string, error) {
	maps.DeleteFunc(s.policies, func(_ string, c *counts) bool { return c.runs == 0 })
	names := slices.Sorted(maps.Keys(s.policies))
	switch {
	case len(names) == 0:
		return "", errors.New("there is no retry.runs of retryotel")
	case policy == "" && len(names) == 1:
		return names[0], nil
	case policy == "" || !slices.Contains(names, policy):
		return "", fmt.Errorf("which policy? The metrics have %s; write NAME@FILE", strings.Join(names, ", "))
	}
	return policy, nil
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
