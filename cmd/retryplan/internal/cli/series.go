package cli

import (
	"fmt"
	"math"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/retrygo/retry"
	"github.com/retrygo/retry/cmd/retryplan/internal/say"
	"github.com/retrygo/retry/cmd/retryplan/internal/wire"
	"github.com/retrygo/retry/retryplan"
)

// summary prints what a simulation came to.
func (a *app) summary(r *retryplan.Result, s *retryplan.Scenario) {
	var g facts
	g.add("simulated", fmt.Sprintf("%s, seed %d", say.Span(r.Simulated), s.Seed))
	for _, t := range s.Triggers {
		g.add("trigger", wire.Trigger(t))
	}
	g.add("runs", strconv.Itoa(r.Runs))
	g.add("attempts", fmt.Sprintf("%d, %s per run", r.Attempts, say.Number(r.Amplification)))
	if r.Rejected > 0 {
		g.add("rejected", share(r.Rejected, r.Attempts)+" of the attempts")
	}
	if r.Wasted > 0 {
		g.add("wasted", share(r.Wasted, r.Attempts)+" of the attempts: no client waited for the result")
	}
	shares := map[retry.Reason]float64{}
	for reason, n := range r.Endings {
		shares[reason] = ratio(n, r.Runs)
	}
	if len(shares) > 0 {
		g.add("runs ended as", endings(shares))
	}
	if r.Unfinished > 0 {
		g.add("unfinished", share(r.Unfinished, r.Runs)+" of the runs")
	}
	g.add("peak", fmt.Sprintf("%d attempts in the %s from %s on", r.Peak, say.Span(r.Step), say.Span(r.PeakAt)))
	if r.Latency.Count() > 0 {
		g.add("success takes", quantiles(r.Latency)+", at most "+say.Span(r.Latency.Quantile(1)))
	}
	if len(s.Triggers) > 0 && s.Arrivals.Rate > 0 {
		g.add("recovery", recovery(r, s))
	}
	a.printFacts(g)
}

// recovery says whether the fleet came back from its triggers.
func recovery(r *retryplan.Result, s *retryplan.Scenario) string {
	end := time.Duration(0)
	for _, t := range s.Triggers {
		end = max(end, t.End())
	}
	switch needed := s.Horizon(); {
	case r.Judged && r.Recovered:
		return say.Span(r.Recovery) + " after the trigger's end"
	case r.Judged:
		return "none in the " + say.Span(min(r.Simulated, s.Duration)-end) + " after the trigger's end"
	case end == math.MaxInt64 || needed == math.MaxInt64:
		return "not known: the trigger has no end"
	case s.Duration < needed:
		return fmt.Sprintf("not known: the last retries of what the trigger hit come later; give --duration %v", wire.Duration(seconds(needed)))
	}
	return "not known: it was interrupted before the last retries of what the trigger hit"
}

// seconds rounds d up to whole seconds.
func seconds(d time.Duration) time.Duration { return (d + time.Second - 1).Truncate(time.Second) }

// columns are those of the time series: first what is counted, per second, and from states on what there is at the end.
var columns = []struct {
	title string
	of    func(retryplan.Point) float64
}{
	{"runs", func(p retryplan.Point) float64 { return float64(p.Offered) }},
	{"attempts", func(p retryplan.Point) float64 { return float64(p.Attempts) }},
	{"goodput", func(p retryplan.Point) float64 { return float64(p.Goodput) }},
	{"failed", func(p retryplan.Point) float64 { return float64(p.Failed) }},
	{"timed out", func(p retryplan.Point) float64 { return float64(p.TimedOut) }},
	{"rejected", func(p retryplan.Point) float64 { return float64(p.Rejected) }},
	{"queue", func(p retryplan.Point) float64 { return float64(p.Queue) }},
	{"waiting", func(p retryplan.Point) float64 { return float64(p.Waiting) }},
	{"tokens", func(p retryplan.Point) float64 { return p.Tokens }},
	{"open", func(p retryplan.Point) float64 { return float64(p.Open) }},
}

const (
	always = 3 // columns, also if nothing happens in them
	states = 6
)

// series prints the time series in so many lines at most, 0 for one for each step.
func (a *app) series(r *retryplan.Result, s *retryplan.Scenario, rows int) {
	if len(r.Series) == 0 {
		return
	}
	per := 1
	if rows > 0 {
		per = tidy((len(r.Series)+rows-1)/rows, r.Step)
	}
	header, table := []string{"from"}, [][]string{}
	happens := make([]bool, len(columns))
	for line := range slices.Chunk(r.Series, per) {
		from := line[0].Start
		length := min(time.Duration(len(line))*r.Step, max(r.Simulated-from, 1))
		cells := []string{say.Span(from)}
		for i, c := range columns {
			value := c.of(line[len(line)-1])
			if i < states {
				value = 0
				for _, p := range line {
					value += c.of(p)
				}
				value /= length.Seconds()
			}
			cells = append(cells, rounded(value))
			happens[i] = happens[i] || i < always || cells[i+1] != "0"
		}
		table = append(table, append(cells, during(s.Triggers, from, from+length)))
	}
	note := "per second, means over " + say.Span(time.Duration(per)*r.Step)
	var ends []string
	for i, c := range columns {
		header = append(header, c.title)
		if happens[i] && i >= states {
			ends = append(ends, c.title)
		}
	}
	if len(ends) > 0 {
		note += "; " + strings.Join(ends, ", ") + " at its end"
	}
	a.line("%s", note)
	g := newGrid(append(header, "")...).words(len(columns) + 1)
	for _, cells := range table {
		for i := range columns {
			if !happens[i] {
				cells[i+1] = "" // and so the column is left out
			}
		}
		g.row(cells...)
	}
	a.print(g)
}

// tidy rounds how many steps a line has up, so that it covers 1, 2, 5, 10, 15, 30 or so of a unit.
func tidy(per int, step time.Duration) int {
	if per <= 1 {
		return 1
	}
	for _, unit := range []time.Duration{time.Millisecond, 10 * time.Millisecond, 100 * time.Millisecond, time.Second, 10 * time.Second, time.Minute, 10 * time.Minute, time.Hour, 24 * time.Hour} {
		for _, n := range []time.Duration{1, 2, 3, 5} {
			if d := n * unit; d >= time.Duration(per)*step && d%step == 0 {
				return int(d / step)
			}
		}
	}
	return per
}

// during names the triggers that are there between from and to.
func during(triggers []retryplan.Trigger, from, to time.Duration) string {
	var there []string
	for _, t := range triggers {
		if t.From < to && t.End() > from {
			there = append(there, t.Kind.String())
		}
	}
	return strings.Join(there, ", ")
}

// rounded returns a rate: whole from 100 on, else to a decimal.
func rounded(x float64) string {
	if x >= 100 {
		return strconv.FormatFloat(math.Round(x), 'f', 0, 64)
	}
	return strings.TrimSuffix(strconv.FormatFloat(x, 'f', 1, 64), ".0")
}

// share returns "3, 10%" for 3 of 30.
func share(n, of int) string { return fmt.Sprintf("%d, %s", n, say.Percent(ratio(n, of))) }

func ratio(n, of int) float64 {
	if of == 0 {
		return 0
	}
	return float64(n) / float64(of)
}

// spread is what simulations that differ in their seed alone came to.
type spread struct {
	Seeds           int     `json:"seeds"`
	Judged          int     `json:"judged"`
	Recovered       int     `json:"recovered"`
	Amplification   figures `json:"amplification"`
	Failed          figures `json:"failed"`
	Wasted          figures `json:"wasted"`
	Peak            figures `json:"peak"`
	LatencyP50      figures `json:"latency_p50_seconds"`
	LatencyP99      figures `json:"latency_p99_seconds"`
	RecoverySeconds figures `json:"recovery_seconds"` // of those that recovered
}

// figures are the median and the range of one figure; null if there is none.
type figures struct {
	Median *float64 `json:"median"`
	Least  *float64 `json:"least"`
	Most   *float64 `json:"most"`
}

// simulateSeeds simulates s with so many seeds from s.Seed on and returns what each came to. An error is about the last
// of them, which is not among the results unless it is the first.
func (a *app) simulateSeeds(name string, s retryplan.Scenario, seeds int) (results []retryplan.Result, err error) {
	for range seeds {
		r, err := a.simulate(name, s)
		if err == nil || len(results) == 0 && r.Simulated > 0 {
			results = append(results, r)
		}
		if err != nil {
			return results, err
		}
		s.Seed++
	}
	return results, nil
}

func newSpread(results []retryplan.Result) spread {
	s := spread{Seeds: len(results)}
	all := map[*figures][]float64{}
	for _, r := range results {
		note := func(to *figures, value float64, known bool) {
			if known {
				all[to] = append(all[to], value)
			}
		}
		note(&s.Amplification, r.Amplification, r.Runs > 0)
		note(&s.Failed, r.Failed, r.Runs > 0)
		note(&s.Wasted, ratio(r.Wasted, r.Attempts), r.Attempts > 0)
		note(&s.Peak, float64(r.Peak), true)
		note(&s.LatencyP50, r.Latency.Quantile(.5).Seconds(), r.Latency.Count() > 0)
		note(&s.LatencyP99, r.Latency.Quantile(.99).Seconds(), r.Latency.Count() > 0)
		note(&s.RecoverySeconds, r.Recovery.Seconds(), r.Judged && r.Recovered)
		if r.Judged {
			s.Judged++
		}
		if r.Judged && r.Recovered {
			s.Recovered++
		}
	}
	for to, values := range all {
		slices.Sort(values)
		median := (values[(len(values)-1)/2] + values[len(values)/2]) / 2
		*to = figures{&median, &values[0], &values[len(values)-1]}
	}
	return s
}

// spread prints the figures of several seeds, the first of which is given.
func (a *app) spread(s *spread, first uint64) {
	recovered := "recovery is not judged"
	if s.Judged > 0 {
		recovered = fmt.Sprintf("%d of %d recovered", s.Recovered, s.Judged)
	}
	a.line("%s, %d to %d: %s", plural(s.Seeds, "seed"), first, first+uint64(s.Seeds)-1, recovered)
	g := newGrid("", "median", "least", "most").words(0)
	row := func(what string, f figures, text func(float64) string) {
		if f.Median != nil {
			g.row(what, text(*f.Median), text(*f.Least), text(*f.Most))
		}
	}
	duration := func(seconds float64) string {
		return say.Span(time.Duration(math.Round(seconds * float64(time.Second))))
	}
	row("attempts per run", s.Amplification, say.Number)
	row("failed", s.Failed, say.Percent)
	row("wasted", s.Wasted, say.Percent)
	row("peak", s.Peak, say.Number)
	row("success takes, p50", s.LatencyP50, duration)
	row("success takes, p99", s.LatencyP99, duration)
	row("recovery", s.RecoverySeconds, duration)
	a.print(g)
}
