package fit

import (
	"errors"
	"fmt"
	"math"
	"regexp"
	"slices"
	"strconv"
	"strings"
)

// Query names the metrics of any program, as Prometheus does: NAME, or NAME{label="value",other=~"a|b"} with =, !=, =~ and
// !~. All series that match are added. The zero Query means the metrics of contrib/retryotel.
type Query struct {
	Runs   string // a counter of runs; empty means that attempts are taken for runs
	Calls  string // a counter of attempts; empty means the count of Took
	Errors string // a counter of those that failed; empty means that none did
	Took   string // a histogram of their durations: in seconds, or in milliseconds if its name says so; empty means not known
}

// The names of contrib/retryotel, as OpenTelemetry's exporter writes them for Prometheus.
const (
	runs        = "retry_runs_total"
	policyLabel = "retry_policy"
)

// retryotel returns the metrics of a policy, or of all.
func retryotel(policy string) Query {
	of := ""
	if policy != "" {
		of = policyLabel + "=" + strconv.Quote(policy)
	}
	return Query{
		Runs: runs + "{" + of + "}", Calls: "retry_attempts_total{" + of + "}",
		Errors: `retry_attempts_total{retry_class!~"succeeded|terminal",` + of + "}",
		Took:   `retry_attempt_duration_seconds{retry_class="succeeded",` + of + "}",
	}
}

// selectors are a Query that was read.
type selectors struct{ runs, calls, errors, took selector }

func (q Query) parse() (s selectors, err error) {
	for _, one := range []struct {
		text string
		to   *selector
	}{{q.Runs, &s.runs}, {q.Calls, &s.calls}, {q.Errors, &s.errors}, {q.Took, &s.took}} {
		if *one.to, err = parse(one.text); err != nil {
			break
		}
	}
	return s, err
}

// selector selects series. The zero selector selects none.
type selector struct {
	name   string
	labels []matcher
}

type matcher struct {
	label string
	value *regexp.Regexp
	not   bool
}

var (
	selecting = regexp.MustCompile(`^([a-zA-Z_:][\w:.]*)(?:\{(.*)\})?$`)
	matching  = regexp.MustCompile(`^\s*([a-zA-Z_][\w.]*)\s*(=~|!~|!=|=)\s*("(?:[^"\\]|\\.)*")\s*(?:,|$)`)
)

func parse(text string) (s selector, err error) {
	if text == "" {
		return s, nil
	}
	form := selecting.FindStringSubmatch(text)
	if form == nil {
		return s, fmt.Errorf("%q is not NAME or NAME{label=\"value\"}", text)
	}
	s.name = form[1]
	for rest := form[2]; rest != ""; {
		m := matching.FindStringSubmatch(rest)
		if m == nil {
			return s, fmt.Errorf("%q is not NAME or NAME{label=\"value\"}", text)
		}
		rest = rest[len(m[0]):]
		value, err := strconv.Unquote(m[3])
		if err != nil {
			return s, fmt.Errorf("%q has %s, which is no value", text, m[3])
		}
		if !strings.HasSuffix(m[2], "~") {
			value = regexp.QuoteMeta(value)
		}
		wanted, err := regexp.Compile("^(?:" + value + ")$")
		if err != nil {
			return s, fmt.Errorf("%q: %w", text, err)
		}
		s.labels = append(s.labels, matcher{m[1], wanted, m[2][0] == '!'})
	}
	return s, nil
}

// has reports whether a series is asked for. A label that is not there is empty. In OpenMetrics the name of a counter is
// that without _total, and a histogram counts as one.
func (s selector) has(name string, labels map[string]string) bool {
	return s.name != "" && (name == s.name || name == s.name+"_total" || name+"_count" == s.name) && !slices.ContainsFunc(s.labels, func(m matcher) bool {
		return m.value.MatchString(labels[m.label]) == m.not
	})
}

// Series returns the mean and the largest of the rates per second in the last column of a CSV. A first line without a
// number is its header.
func Series(data []byte) (mean, most float64, err error) {
	n := 0
	for i, line := range strings.Split(strings.TrimSpace(string(data)), "\n") {
		text := strings.Trim(line[strings.LastIndexAny(line, ",;\t")+1:], " \r\"")
		rate, err := strconv.ParseFloat(text, 64)
		switch {
		case text == "" || err != nil && i == 0: // a gap, or the header
		case err != nil || !(rate >= 0 && rate <= math.MaxFloat64):
			return 0, 0, fmt.Errorf("line %d: %q is not a rate", i+1, text)
		default:
			n, mean, most = n+1, mean+rate, max(most, rate)
		}
	}
	if most == 0 {
		return 0, 0, errors.New("there is no rate above 0")
	}
	return mean / float64(n), most, nil
}
