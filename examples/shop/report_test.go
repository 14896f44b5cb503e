//go:build linux

package main

import (
	"fmt"
	"html"
	"os"
	"slices"
	"strings"
	"time"
)

// report writes the page of a storm: the invariants with their figures, and what happened in each second.
func (a *audit) report(path string, seed uint64) error {
	var b strings.Builder
	s := a.storm
	fmt.Fprintf(&b, `<!doctype html><meta charset="utf-8"><title>Storm %d</title>
<style>body{font:14px sans-serif;max-width:1000px;margin:2em auto}td{padding:2px 12px 2px 0;vertical-align:top}.bad{color:#b00}</style>
<h1>Storm of seed %d, %s</h1><p>%d faults.</p><table>`, seed, seed, s.ended.Sub(s.began).Round(time.Second), len(s.faults))
	for _, r := range a.results {
		fmt.Fprintf(&b, "<tr><td>%s<td>%s<td>%s\n", verdictOf(r), html.EscapeString(r.name), html.EscapeString(r.figure))
		for _, text := range r.broken[:min(10, len(r.broken))] {
			fmt.Fprintf(&b, "<tr><td><td colspan=2 class=bad>%s\n", html.EscapeString(text))
		}
	}
	b.WriteString("</table>\n")
	a.picture(&b)
	b.WriteString("<h2>Faults</h2><pre>")
	for _, f := range s.faults {
		fmt.Fprintln(&b, html.EscapeString(f.String()))
	}
	b.WriteString("</pre>\n")
	return os.WriteFile(path, []byte(b.String()), 0o644)
}

func verdictOf(r result) string {
	if len(r.broken) > 0 {
		return "<b class=bad>broken</b>"
	}
	return "held"
}

// The picture: rows of columns, one for each second.
const (
	width, left  = 960, 110
	right        = 20
	rowHeight    = 54
	faultsHeight = 70 // five lines
)

var colors = map[string]string{"load": "#bbb", "goodput": "#2a7", "attempts": "#47c", "faults": "#c33", "alerts": "#d80"}

// picture draws the faults, the alerts that page, load and goodput, and the attempts of each layer, over time.
func (a *audit) picture(b *strings.Builder) {
	s := a.storm
	seconds := int(s.ended.Sub(s.began).Seconds()) + 1
	load, goodput, layers := make([]int, seconds), make([]int, seconds), map[string][]int{}
	add := func(row []int, at time.Time) {
		if i := int(at.Sub(s.began).Seconds()); at.After(s.began) && i < len(row) {
			row[i]++
		}
	}
	for _, l := range a.lines {
		switch {
		case l.What == "order" || l.What == "again":
			add(load, l.Time.Add(-time.Duration(l.Took*float64(time.Second))))
			if l.Status == acknowledged {
				add(goodput, l.Time)
			}
		case l.What == "try":
			if layers[l.Layer] == nil {
				layers[l.Layer] = make([]int, seconds)
			}
			add(layers[l.Layer], l.Time)
		}
	}
	names := make([]string, 0, len(layers))
	for name := range layers {
		names = append(names, name)
	}
	slices.Sort(names)
	var alerts []string // one line each, in the order in which they first fire
	for _, fires := range a.alarms {
		if !slices.Contains(alerts, fires.name+fires.labels) {
			alerts = append(alerts, fires.name+fires.labels)
		}
	}
	alertsHeight := 24 + 12*len(alerts)
	height := faultsHeight + alertsHeight + rowHeight*(2+len(names)) + 30
	fmt.Fprintf(b, `<h2>Each second</h2>
<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 %d %d" width="%d" height="%d" font-family="sans-serif" font-size="11" style="background:#fff" role="img" aria-label="Faults, alerts, load, goodput and attempts over time">
`, width, height, width, height)
	x := func(at float64) float64 { return left + at*(width-left-right)/float64(seconds) }
	for i, f := range s.faults {
		from, to := x(f.begin.Seconds()), x(f.end.Seconds())
		fmt.Fprintf(b, `<rect x="%.1f" y="0" width="%.1f" height="%d" fill="%s" opacity="0.12"/>`, from, to-from, height-30, colors["faults"])
		fmt.Fprintf(b, `<rect x="%.1f" y="%d" width="%.1f" height="8" fill="%s"><title>%s</title></rect>`+"\n",
			from, 8+i%5*12, to-from, colors["faults"], html.EscapeString(f.String()))
		if seconds <= 120 || f.outage {
			fmt.Fprintf(b, `<text x="%.1f" y="%d">%s</text>`, to+3, 16+i%5*12, html.EscapeString(f.name()))
		}
	}
	for i, alert := range alerts {
		y := faultsHeight + 8 + 12*i
		var first, last float64
		for _, fires := range a.alarms {
			if fires.name+fires.labels != alert {
				continue
			}
			from, to := x(fires.from.Seconds()/stretch), x(fires.to.Seconds()/stretch)
			if first == 0 {
				first = from
			}
			last = max(last, to)
			fmt.Fprintf(b, `<rect x="%.1f" y="%d" width="%.1f" height="8" fill="%s"/>`, from, y, max(1, to-from), colors["alerts"])
		}
		anchor, at := "start", last+3
		if last > 2*width/3 {
			anchor, at = "end", first-3
		}
		fmt.Fprintf(b, `<text x="%.1f" y="%d" text-anchor="%s">%s</text>`, at, y+8, anchor, html.EscapeString(alert))
	}
	fmt.Fprintf(b, `<text x="0" y="20">faults</text>`)
	fmt.Fprintf(b, `<text x="0" y="%d">alerts</text>`, faultsHeight+20)
	y := faultsHeight + alertsHeight
	row := func(name, color string, values []int) {
		most := max(1, slices.Max(values))
		fmt.Fprintf(b, `<text x="0" y="%d">%s</text><text x="0" y="%d" fill="#777">up to %d/s</text>`, y+20, name, y+34, most)
		y += rowHeight
		fmt.Fprintf(b, `<path fill="%s" d="M%d %d`, color, left, y)
		for i, v := range values {
			fmt.Fprintf(b, "V%.1fH%.1f", float64(y)-float64(v*(rowHeight-8))/float64(most), x(float64(i+1)))
		}
		fmt.Fprintf(b, `V%d"/>`+"\n", y)
	}
	row("load", colors["load"], load)
	row("goodput", colors["goodput"], goodput)
	for _, name := range names {
		row(name, colors["attempts"], layers[name])
	}
	for at := 0; at <= seconds; at += max(10, seconds/10/10*10) {
		fmt.Fprintf(b, `<text x="%.1f" y="%d" text-anchor="middle">%ds</text>`, x(float64(at)), height-10, at)
	}
	b.WriteString("</svg>\n")
}
