package cli

import (
	"fmt"
	"math"
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
	g := newGrid("", "").words(0, 1)
	g.row("simulated", fmt.Sprintf("%s, seed %d", say.Span(r.Simulated), s.Seed))
	for _, t := range s.Triggers {
		g.row("trigger", wire.NewTrigger(t).String())
	}
	g.row("runs", count(r.Runs))
	g.row("attempts", fmt.Sprintf("%s, %s per run", count(r.Attempts), say.Number(r.Amplification)))
	if r.Rejected > 0 {
		g.row("rejected", fmt.Sprintf("%s, %s of the attempts", count(r.Rejected), say.Percent(ratio(r.Rejected, r.Attempts))))
	}
	if r.Wasted > 0 {
		g.row("wasted", fmt.Sprintf("%s, %s of the attempts: no client waited for the result", count(r.Wasted), say.Percent(ratio(r.Wasted, r.Attempts))))
	}
	shares := map[retry.Reason]float64{}
	for reason, n := range r.Endings {
		shares[reason] = ratio(n, r.Runs)
	}
	if len(shares) > 0 {
		g.row("runs ended as", endings(shares))
	}
	if r.Unfinished > 0 {
		g.row("unfinished", fmt.Sprintf("%s, %s of the runs", count(r.Unfinished), say.Percent(ratio(r.Unfinished, r.Runs))))
	}
	g.row("peak", fmt.Sprintf("%s attempts in the %s from %s on", count(r.Peak), say.Span(r.Step), say.Span(r.PeakAt)))
	if r.Latency.Count() > 0 {
		g.row("success takes", quantiles(r.Latency))
	}
	if len(s.Triggers) > 0 && s.Arrivals.Rate > 0 {
		g.row("recovery", recovery(r, s))
	}
	a.print(g)
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

// quantiles returns the figures of d on one line.
func quantiles(d retryplan.Durations) string {
	return "p50 " + say.Span(d.Quantile(.5)) + ", p90 " + say.Span(d.Quantile(.9)) + ", p99 " + say.Span(d.Quantile(.99)) + ", at most " + say.Span(d.Quantile(1))
}

// series prints the time series in so many lines at most, 0 for one for each step: rates are means over a line, what is
// a state is that at its end. Columns in which nothing happens are left out.
func (a *app) series(r *retryplan.Result, s *retryplan.Scenario, rows int) {
	if len(r.Series) == 0 {
		return
	}
	per := 1
	if rows > 0 {
		per = (len(r.Series) + rows - 1) / rows
	}
	per = tidy(per, r.Step)
	g := newGrid("from", "runs", "attempts", "goodput", "failed", "timed out", "rejected", "queue", "waiting", "tokens", "open", "").words(11)
	for i := 0; i < len(r.Series); i += per {
		line := r.Series[i:min(i+per, len(r.Series))]
		from, last := line[0].Start, line[len(line)-1]
		length := min(time.Duration(len(line))*r.Step, max(r.Simulated-from, 1))
		rate := func(of func(retryplan.Point) int) string {
			sum := 0
			for _, p := range line {
				sum += of(p)
			}
			return rounded(float64(sum) / length.Seconds())
		}
		g.row(say.Span(from), rate(func(p retryplan.Point) int { return p.Offered }), rate(func(p retryplan.Point) int { return p.Attempts }),
			rate(func(p retryplan.Point) int { return p.Goodput }), rate(func(p retryplan.Point) int { return p.Failed }),
			rate(func(p retryplan.Point) int { return p.TimedOut }), rate(func(p retryplan.Point) int { return p.Rejected }),
			count(last.Queue), count(last.Waiting), rounded(last.Tokens), count(last.Open), during(s.Triggers, from, from+length))
	}
	for c := 1; c < len(g.header); c++ {
		if c >= 4 && g.zero(c) {
			g.clear(c)
		}
	}
	var states []string
	for c := 7; c <= 10; c++ {
		if !g.empty(c) {
			states = append(states, g.header[c])
		}
	}
	note := "per second, means over " + say.Span(time.Duration(per)*r.Step)
	if len(states) > 0 {
		note += "; " + strings.Join(states, ", ") + " at its end"
	}
	a.line("%s", note)
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

// zero reports whether a column has nothing but zeros.
func (g *grid) zero(column int) bool {
	for _, row := range g.rows {
		if row[column] != "0" && row[column] != "" {
			return false
		}
	}
	return true
}

// rounded returns a rate: whole from 100 on, else to a decimal.
func rounded(x float64) string {
	if x >= 100 {
		return strconv.FormatFloat(math.Round(x), 'f', 0, 64)
	}
	return strings.TrimSuffix(strconv.FormatFloat(x, 'f', 1, 64), ".0")
}

func count(n int) string { return strconv.Itoa(n) }

func ratio(n, of int) float64 {
	if of == 0 {
		return 0
	}
	return float64(n) / float64(of)
}
