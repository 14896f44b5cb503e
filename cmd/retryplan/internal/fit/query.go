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
	Calls  string // a counter of attempts, which are taken for runs; empty means the count of Took
	Errors string // a counter of those that failed; empty means that none did
	Took   string // a histogram of their durations: in seconds, or in milliseconds if its name says so; empty means not known
}

// picker adds a series to the counts if it is asked for.
type picker func(s *scrape, name string, labels map[string]string, value float64, h histogram)

// picker returns that of retryotel for the zero Query.
func (q Query) picker() (picker, error) {
	if q == (Query{}) {
		return func(s *scrape, name string, labels map[string]string, value float64, h histogram) {
			own := map[string]string{}
			for key, text := range labels {
				own[strings.TrimPrefix(units.Replace(key), "retry.")] = text
			}
			s.add(units.Replace(name), own, value, h)
		}, nil
	}
	var asked [3]selector
	for i, text := range []string{q.Calls, q.Errors, q.Took} {
		var err error
		if asked[i], err = parse(text); err != nil {
			return nil, err
		}
	}
	return func(s *scrape, name string, labels map[string]string, value float64, h histogram) {
		c := s.policies[""]
		if c == nil {
			c = &counts{histogram: histogram{below: map[float64]float64{}}}
			s.policies[""] = c
		}
		took, count := asked[2].has(name, labels), value+h.below[math.Inf(1)]
		if asked[0].has(name, labels) || q.Calls == "" && took {
			c.runs, c.attempts = c.runs+count, c.attempts+count
		}
		if asked[1].has(name, labels) {
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
	}, nil
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
