package plots

import (
	"fmt"
	"math"
	"strings"

	"github.com/guptarohit/asciigraph"
	"github.com/rivo/uniseg"
)

// rangeRow is a line of a chart of ranges: what lies between lo and hi, with a mark.
type rangeRow struct {
	name         string
	lo, mark, hi float64
	figures      string
}

// rangeChart draws rows as "name ░░█░░ figures" on the scale of x, with the ends of the scale under the bars.
func rangeChart(b *strings.Builder, rows []rangeRow, x axis, width int) {
	names, figures := 0, 0
	for _, r := range rows {
		names, figures = max(names, columns(r.name)), max(figures, columns(r.figures))
	}
	names = min(names, width/3)
	bars := width - names - figures - 4
	below := bars < 10 // then the figures get lines of their own
	if below {
		bars = max(width-names-3, 5)
	}
	cell := func(v float64) int {
		return int(min(max(x.norm(v), 0), 1) * float64(bars-1))
	}
	for _, r := range rows {
		bar := []rune(strings.Repeat(" ", bars))
		for i := cell(r.lo); i <= cell(r.hi); i++ {
			bar[i] = '░'
		}
		bar[cell(r.mark)] = '█'
		text := fmt.Sprintf(" %s %s", pad(r.name, names), string(bar))
		if below {
			writeLine(b, text, width)
			if r.figures != "" {
				writeLine(b, "  "+r.figures, width)
			}
			continue
		}
		writeLine(b, text+"  "+r.figures, width)
	}
	from, to := "0", secondsText(x.max)
	if x.log || x.min > 0 {
		from = secondsText(x.min)
		if x.log && len(x.ticks) > 0 && x.ticks[0].label == "0" {
			from = "0"
		}
	}
	scale := ""
	if x.log {
		scale = "log scale"
	}
	room := max(bars-columns(from)-columns(to)-columns(scale), 0)
	writeLine(b, strings.Repeat(" ", names+2)+from+strings.Repeat(" ", room/2)+scale+strings.Repeat(" ", room-room/2)+to, width)
}

func scheduleText(plans []Plan) func(int) string {
	return func(width int) string {
		var all, means []float64
		for _, p := range plans {
			for _, a := range waits(p.Plan) {
				all = append(all, a.Wait.Lo.Seconds(), a.Wait.Hi.Seconds())
				means = append(means, a.Wait.Mean.Seconds())
			}
		}
		x := waitAxis(all, means).endingAt(upper(all...))
		var b strings.Builder
		for i, p := range plans {
			if i > 0 {
				b.WriteString("\n")
			}
			writeLine(&b, "Wait before each attempt: "+p.Name, width)
			rows, left := scheduleRows(p)
			if len(rows) == 0 {
				writeLine(&b, " one attempt: there is no wait", width)
				continue
			}
			rangeChart(&b, rows, x, width)
			if left > 0 {
				writeLine(&b, fmt.Sprintf(" … %d attempts are not shown", left), width)
			}
			if p.Plan.Truncated {
				writeLine(&b, fmt.Sprintf(" … and more after attempt %d", len(p.Plan.Attempts)), width)
			}
		}
		return b.String()
	}
}

// mostRows is how many attempts a terminal shows: a screen of them.
const mostRows = 24

func scheduleRows(p Plan) (rows []rangeRow, left int) {
	attempts := waits(p.Plan)
	for i, a := range attempts {
		if len(attempts) > mostRows && i >= mostRows-1 && i < len(attempts)-1 {
			left++
			continue
		}
		figures := durationText(a.Wait.Mean)
		if a.Wait.Hi > a.Wait.Lo {
			figures += " (" + durationText(a.Wait.Lo) + " to " + durationText(a.Wait.Hi) + ")"
		}
		if a.Never != 0 {
			figures += " never: " + a.Never.Error()
		}
		rows = append(rows, rangeRow{
			fmt.Sprint(a.Number), a.Wait.Lo.Seconds(), a.Wait.Mean.Seconds(), a.Wait.Hi.Seconds(), figures,
		})
	}
	return rows, left
}

func totalText(ts totals) func(int) string {
	return func(width int) string {
		var b strings.Builder
		if ts.note != "" {
			writeLine(&b, ts.note, width)
		}
		if len(ts.all) == 1 {
			d := ts.all[0].d
			writeLine(&b, ts.title+": "+ts.all[0].name, width)
			if d.Max() == d.Min() {
				writeLine(&b, " always "+durationText(d.Max())+ts.due(), width)
				return b.String()
			}
			b.WriteString(cdfText(d, width))
			writeLine(&b, " "+ts.all[0].figures()+ts.due(), width)
			return b.String()
		}
		writeLine(&b, ts.title+": shortest to worst, mark at p50"+ts.due(), width)
		var rows []rangeRow
		var ends []float64
		least := math.Inf(1)
		for _, t := range ts.all {
			rows = append(rows, rangeRow{
				t.name, t.d.Min().Seconds(), t.d.Quantile(0.5).Seconds(), t.d.Max().Seconds(), t.figures(),
			})
			ends = append(ends, t.d.Quantile(0.5).Seconds(), t.d.Max().Seconds())
			least = min(least, t.d.Min().Seconds())
		}
		rangeChart(&b, rows, totalTextAxis(ends, least), width)
		return b.String()
	}
}

// due returns the deadline, if any, as a figure after others.
func (ts totals) due() string {
	if ts.deadline == 0 {
		return ""
	}
	return ", deadline " + durationText(ts.deadline)
}

func totalTextAxis(ends []float64, least float64) axis {
	lo := leastPositive(ends)
	return durationAxis(lo, upper(ends...), spans(ends), least < lo, 5).endingAt(upper(ends...))
}

func cdfText(d distribution, width int) string {
	x := linearDurations(d.Min().Seconds(), d.Max().Seconds(), 5)
	intervals := 1
	if n := len(x.ticks); n > 1 { // up to the next tick, so that all that the library places evenly are round
		step := x.ticks[1].value - x.ticks[0].value
		intervals = int(math.Ceil((x.max-x.min)/step - 1e-9))
		x.max = x.min + float64(intervals)*step
	}
	n := width - 12 // beside the scale
	shares := make([]float64, n)
	curve := cdfCurve(d, x)
	j := 0
	for i := range shares {
		at := x.at(float64(i) / float64(n-1))
		for j+1 < len(curve) && curve[j+1].x <= at {
			j++
		}
		shares[i] = curve[j].y
	}
	return asciigraph.Plot(shares,
		asciigraph.Height(10), asciigraph.LowerBound(0), asciigraph.UpperBound(1),
		asciigraph.YAxisValueFormatter(func(v float64) string { return fmt.Sprintf("%3.0f %%", v*100) }),
		asciigraph.XAxisRange(x.min, x.max), asciigraph.XAxisTickCount(intervals+1),
		asciigraph.XAxisValueFormatter(secondsText),
	) + "\n"
}

func simulationText(runs []Run) func(int) string {
	return func(width int) string {
		var b strings.Builder
		for i, r := range runs {
			if i > 0 {
				b.WriteString("\n")
			}
			writeLine(&b, "Simulation of "+durationText(length(r.Result))+": "+r.Name, width)
			if len(r.Result.Series) == 0 {
				writeLine(&b, " no data: nothing was simulated", width)
				continue
			}
			for _, m := range []measure{offered, attempts, goodput, queue} {
				// All rates share one scale, in all runs, so that their heights can be compared.
				top := 0.0
				for _, other := range runs {
					for _, n := range []measure{offered, attempts, goodput, queue} {
						if n.rate == m.rate {
							top = max(top, upper(n.values(other.Result)...))
						}
					}
				}
				vs := m.values(r.Result)
				most := "most " + countText(upper(vs...))
				if m.rate {
					most += "/s"
				}
				writeLine(&b, fmt.Sprintf(" %-13s %s  %s", m.name, sparkline(vs, top, width-31), most), width)
			}
			x := axis{}.endingAt(length(r.Result).Seconds())
			for _, t := range nameTriggers([]Run{r}, linearDurations(0, x.max, 5), pictureWidth) {
				writeLine(&b, fmt.Sprintf(" %-13s %s", "trigger", under(t, x, width-31)), width)
				writeLine(&b, fmt.Sprintf("   %s from %s", t.name, durationText(t.From)), width)
			}
		}
		return b.String()
	}
}

// under marks how long t lasts on the scale of x.
func under(t trigger, x axis, width int) string {
	cell := func(s float64) float64 { return min(max(x.norm(s), 0), 1) * float64(width) }
	from := min(int(cell(t.From.Seconds())), width-1)
	to := max(int(math.Ceil(cell(end(t.Trigger).Seconds()))), from+1)
	return strings.Repeat(" ", from) + strings.Repeat("▔", to-from)
}

// sparkline draws the highest value of each of width parts as a block of up to eight eighths, on a scale from 0 to top. A value
// above 0 is never drawn as nothing.
func sparkline(values []float64, top float64, width int) string {
	blocks := []rune(" ▁▂▃▄▅▆▇█")
	out := make([]rune, width)
	for i := range out {
		from := i * len(values) / width
		to := max((i+1)*len(values)/width, from+1)
		v := upper(values[from:min(to, len(values))]...)
		n := 0
		if v > 0 && top > 0 {
			n = max(1, int(math.Round(v/top*8)))
		}
		out[i] = blocks[min(n, 8)]
	}
	return string(out)
}

func columns(s string) int { return uniseg.StringWidth(s) }

// fit cuts s to width columns.
func fit(s string, width int) string {
	if columns(s) <= width {
		return s
	}
	var b strings.Builder
	used := 1 // of the ellipsis
	graphemes := uniseg.NewGraphemes(s)
	for graphemes.Next() {
		used += columns(graphemes.Str())
		if used > width {
			break
		}
		b.WriteString(graphemes.Str())
	}
	return b.String() + "…"
}

// pad cuts or fills s to width columns.
func pad(s string, width int) string {
	s = fit(s, width)
	return s + strings.Repeat(" ", max(width-columns(s), 0))
}

func writeLine(b *strings.Builder, s string, width int) {
	b.WriteString(strings.TrimRight(fit(s, width), " "))
	b.WriteString("\n")
}
