//go:build linux

package main

import (
	"fmt"
	"html"
	"os"
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
	a.chart(seed).draw(&b)
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
