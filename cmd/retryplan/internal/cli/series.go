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

// columns are those of the time series: what is counted for each interval, per second, and what is a state at its end.
var columns = []struct {
	title  string
	always bool // also if nothing happens
	state  bool
	of     func(*retryplan.Point) float64
}{
	{"runs", true, false, func(p *retryplan.Point) float64 { return float64(p.Offered) }},
	{"attempts", true, false, func(p *retryplan.Point) float64 { return float64(p.Attempts) }},
	{"goodput", true, false, func(p *retryplan.Point) float64 { return float64(p.Goodput) }},
	{"failed", false, false, func(p *retryplan.Point) float64 { return float64(p.Failed) }},
	{"timed out", false, false, func(p *retryplan.Point) float64 { return float64(p.TimedOut) }},
	{"rejected", false, false, func(p *retryplan.Point) float64 { return float64(p.Rejected) }},
	{"queue", false, true, func(p *retryplan.Point) float64 { return float64(p.Queue) }},
	{"waiting", false, true, func(p *retryplan.Point) float64 { return float64(p.Waiting) }},
	{"tokens", false, true, func(p *retryplan.Point) float64 { return p.Tokens }},
	{"open", false, true, func(p *retryplan.Point) float64 { return float64(p.Open) }},
}

// series prints the time series in so many lines at most, 0 for one for each step. Columns in which nothing happens are
// left out.
func (a *app) series(r *retryplan.Result, s *retryplan.Scenario, rows int) {
	if len(r.Series) == 0 {
		return
	}
	per := 1
	if rows > 0 {
		per = tidy((len(r.Series)+rows-1)/rows, r.Step)
	}
	header, table := []string{"from"}, [][]string{}
	lines := slices.Collect(slices.Chunk(r.Series, per))
	length := func(line []retryplan.Point) time.Duration {
		return min(time.Duration(len(line))*r.Step, max(r.Simulated-line[0].Start, 1))
	}
	for _, line := range lines {
		table = append(table, []string{say.Span(line[0].Start)})
	}
	note := "per second, means over " + say.Span(time.Duration(per)*r.Step)
	var states []string
	for _, c := range columns {
		cells, happens := make([]string, len(lines)), c.always
		for i, line := range lines {
			value := c.of(&line[len(line)-1])
			if !c.state {
				value = 0
				for j := range line {
					value += c.of(&line[j])
				}
				value /= length(line).Seconds()
			}
			cells[i] = rounded(value)
			happens = happens || cells[i] != "0"
		}
		if !happens {
			continue
		}
		header = append(header, c.title)
		for i, cell := range cells {
			table[i] = append(table[i], cell)
		}
		if c.state {
			states = append(states, c.title)
		}
	}
	if len(states) > 0 {
		note += "; " + strings.Join(states, ", ") + " at its end"
	}
	a.line("%s", note)
	g := newGrid(append(header, "")...).words(len(header))
	for i, line := range lines {
		from := line[0].Start
		g.row(append(table[i], during(s.Triggers, from, from+length(line)))...)
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
