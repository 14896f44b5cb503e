//go:build linux

package main

import (
	"encoding/xml"
	"fmt"
	"html"
	"io"
	"maps"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

// chart is the picture of a storm: lines with bars, and rows with a column for each second.
type chart struct {
	title    string
	seconds  int
	faults   []bar
	alerts   []bar // those that page
	orders   []columns
	attempts []columns // of each layer
}

// bar is a time in a line of the chart. Bars of the same name share a line.
type bar struct {
	name     string
	from, to float64 // in seconds since the beginning of the storm
	text     string  // shown to a pointer
	label    string  // in or beside the bar, and only of an outage
}

// columns are the numbers of events in each second.
type columns struct {
	name, color string
	values      []int
}

const (
	faultColor, alertColor = "#c33", "#d80"
	loadColor              = "#bbb"
	goodputColor           = "#2a7"
	attemptColor           = "#47c"
)

// chart returns the picture of a.
func (a *audit) chart(seed uint64) chart {
	s := a.storm
	long := s.ended.Sub(s.began)
	c := chart{
		title:   fmt.Sprintf("Storm of seed %d: %d orders a second, %s", seed, *rate, long.Round(time.Second)),
		seconds: int(long.Seconds()) + 1,
	}
	for _, f := range s.faults {
		b := bar{name: strings.TrimSuffix(string(f.kind), " on"), from: f.begin.Seconds(), to: f.end.Seconds(), text: f.String()}
		if f.outage {
			b.label = f.target
		}
		c.faults = append(c.faults, b)
	}
	for _, fires := range a.alarms {
		c.alerts = append(c.alerts, bar{
			name: alertLine(fires.name, fires.labels), text: fires.String(),
			from: fires.from.Seconds() / stretch, to: fires.to.Seconds() / stretch,
		})
	}
	load := columns{"all that come", loadColor, make([]int, c.seconds)}
	goodput := columns{"acknowledged", goodputColor, make([]int, c.seconds)}
	layers := map[string]columns{}
	add := func(r columns, at time.Time) {
		if i := int(at.Sub(s.began).Seconds()); at.After(s.began) && i < len(r.values) {
			r.values[i]++
		}
	}
	for _, l := range a.lines {
		switch l.What {
		case "order", "again":
			add(load, l.Time.Add(-time.Duration(l.Took*float64(time.Second))))
			if l.Status == acknowledged {
				add(goodput, l.Time)
			}
		case "try":
			if _, ok := layers[l.Layer]; !ok {
				layers[l.Layer] = columns{l.Layer, attemptColor, make([]int, c.seconds)}
			}
			add(layers[l.Layer], l.Time)
		}
	}
	c.orders = []columns{load, goodput}
	for _, name := range slices.Sorted(maps.Keys(layers)) {
		c.attempts = append(c.attempts, layers[name])
	}
	return c
}

// alertLine returns the name of an alert and the values of its labels, as in "RetryRunsFailing shop.orders".
func alertLine(name, labels string) string {
	for i, part := range strings.Split(labels, `"`) {
		if i%2 == 1 {
			name += " " + part
		}
	}
	return name
}

// The measures of a chart, in pixels. The names are on the left, so that no text crosses a bar.
const (
	chartWidth  = 1000
	namesWidth  = 215
	rightMargin = 15
	lineHeight  = 13
	rowHeight   = 54
	headHeight  = 24
)

// x returns the place of a time in seconds.
func (c *chart) x(at float64) float64 {
	return namesWidth + at*(chartWidth-namesWidth-rightMargin)/float64(c.seconds)
}

// draw writes c as SVG.
func (c chart) draw(out *strings.Builder) {
	const top = 46
	var b strings.Builder
	y := c.bars(&b, "Faults", top, c.faults, faultColor)
	y = c.bars(&b, "Alerts that page", y, c.alerts, alertColor)
	y = c.rows(&b, "Orders", y, c.orders)
	y = c.rows(&b, "Attempts, by layer", y, c.attempts)
	for at := 0; at <= c.seconds; at += max(10, c.seconds/10/10*10) {
		fmt.Fprintf(&b, `<text x="%.1f" y="%d" text-anchor="middle">%ds</text>`, c.x(float64(at)), y+18, at)
	}
	height := y + 28
	fmt.Fprintf(out, `<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 %d %d" width="%d" height="%d" font-family="sans-serif" font-size="11" style="background:#fff" role="img" aria-label="%s">`+"\n",
		chartWidth, height, chartWidth, height, html.EscapeString(c.title))
	fmt.Fprintf(out, `<text x="6" y="18" font-size="16" font-weight="bold">%s</text>`+"\n", html.EscapeString(c.title))
	out.WriteString(`<text x="6" y="36" fill="#777">A red stripe is a fault, a wide one an outage. The columns count events in each second.</text>` + "\n")
	for _, f := range c.faults {
		fmt.Fprintf(out, `<rect x="%.1f" y="%d" width="%.1f" height="%d" fill="%s" opacity="0.1"/>`+"\n",
			c.x(f.from), top, max(1, c.x(f.to)-c.x(f.from)), y-top, faultColor)
	}
	out.WriteString(b.String() + "</svg>\n")
}

// bars draws a line for each name, below y, and returns where they end.
func (c *chart) bars(b *strings.Builder, head string, y int, bars []bar, color string) (end int) {
	heading(b, head, y)
	y += headHeight
	lines := map[string]int{}
	for _, one := range bars {
		at, known := lines[one.name]
		if !known {
			at = y + lineHeight*len(lines)
			lines[one.name] = at
			fmt.Fprintf(b, `<text x="6" y="%d">%s</text>`, at+8, html.EscapeString(one.name))
		}
		from, width := c.x(one.from), max(1, c.x(one.to)-c.x(one.from))
		fmt.Fprintf(b, `<rect x="%.1f" y="%d" width="%.1f" height="9" fill="%s"><title>%s</title></rect>`,
			from, at, width, color, html.EscapeString(one.text))
		switch label := html.EscapeString(one.label); {
		case label == "":
		case width > float64(8*len(label)):
			fmt.Fprintf(b, `<text x="%.1f" y="%d" font-size="9" fill="#fff">%s</text>`, from+4, at+8, label)
		default:
			fmt.Fprintf(b, `<text x="%.1f" y="%d">%s</text>`, from+width+3, at+8, label)
		}
		b.WriteByte('\n')
	}
	return y + lineHeight*len(lines) + 8
}

// rows draws a row of columns for each of rows, below y, and returns where they end.
func (c *chart) rows(b *strings.Builder, head string, y int, rows []columns) (end int) {
	heading(b, head, y)
	y += headHeight
	for _, r := range rows {
		most := max(1, slices.Max(r.values))
		fmt.Fprintf(b, `<text x="6" y="%d">%s</text><text x="6" y="%d" fill="#777">up to %d/s</text>`, y+24, r.name, y+38, most)
		y += rowHeight
		fmt.Fprintf(b, `<path fill="%s" d="M%d %d`, r.color, namesWidth, y)
		for i, v := range r.values {
			fmt.Fprintf(b, "V%.1fH%.1f", float64(y)-float64(v*(rowHeight-8))/float64(most), c.x(float64(i+1)))
		}
		fmt.Fprintf(b, `V%d"/>`+"\n", y)
	}
	return y + 8
}

func heading(b *strings.Builder, text string, y int) {
	fmt.Fprintf(b, `<text x="6" y="%d" font-weight="bold">%s</text>`+"\n", y+16, text)
}

// TestNoNameInAChartCrossesABar draws a storm with an outage and two alerts, as a picture that an XML parser reads.
func TestNoNameInAChartCrossesABar(t *testing.T) {
	c := chart{
		title: `Storm of seed 1: "a" & b`, seconds: 120,
		faults: []bar{
			{name: "kill", from: 10, to: 11, text: "kill shop"},
			{name: "kill", from: 40, to: 90, text: "kill stock", label: "stock"},
			{name: "429", from: 100, to: 101, text: "429 shop-orders", label: "shop-orders"},
		},
		alerts: []bar{{name: alertLine("RetryRunsFailing", `{retry_policy="orders.stock"}`), from: 45, to: 95}},
		orders: []columns{{"all that come", loadColor, make([]int, 120)}},
	}
	var picture strings.Builder
	c.draw(&picture)
	texts := map[string]float64{}
	decoder := xml.NewDecoder(strings.NewReader(picture.String()))
	for {
		token, err := decoder.Token()
		if err == io.EOF {
			break
		}
		require.NoError(t, err)
		start, ok := token.(xml.StartElement)
		if !ok || start.Name.Local != "text" {
			continue
		}
		var text struct {
			X       float64 `xml:"x,attr"`
			Content string  `xml:",chardata"`
		}
		require.NoError(t, decoder.DecodeElement(&text, &start))
		require.NotContains(t, texts, text.Content)
		texts[text.Content] = text.X
	}
	require.Contains(t, texts, c.title)
	for _, name := range []string{"kill", "429", "RetryRunsFailing orders.stock", "all that come"} {
		require.Contains(t, texts, name)
		require.Less(t, texts[name], float64(namesWidth))
	}
	require.InDelta(t, c.x(40)+4, texts["stock"], 0.1, "in the bar, which is wide enough")
	require.InDelta(t, c.x(101)+3, texts["shop-orders"], 0.1, "behind the bar")
}
