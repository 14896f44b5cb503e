package retrydebug

import (
	"cmp"
	"crypto/sha256"
	"embed"
	"encoding/base64"
	"fmt"
	"html/template"
	"io"
	"slices"
	"strings"
	"text/tabwriter"
	texttemplate "text/template"
	"time"
)

var (
	//go:embed page.html page.txt
	pages embed.FS
	//go:embed style.css
	style string

	// contentPolicy allows only the style of the page. It allows no script and no other origin.
	contentPolicy = "default-src 'none'; style-src 'sha256-" + hash(style) +
		"'; img-src data:; base-uri 'none'; form-action 'none'; frame-ancestors 'none'"

	functions = map[string]any{
		"style":    func() template.HTML { return template.HTML("<style>" + style + "</style>") },
		"heads":    func() []cell { return cells(&Policy{}) },
		"policies": func(s Snapshot) []*Policy { return pointers(s.Policies) },
		"cells":    cells,
		"summary":  summary,
		"named":    func(policy string) string { return cmp.Or(policy, "(no name)") },
		"headline": headline,
		"details":  details,
		"meaning":  meaning,
		"guide":    func() []word { return guide },
		"uses":     uses,
		"refusals": refusals,
		"short":    short,
		"minutes":  minutesSVG,
		"line":     minutesText,
		"lists":    lists,
		"shownOf":  shownOf,
		"first":    func(list []*Run) []*Run { return list[:min(len(list), 10)] }, // a terminal has few lines
		"ending":   ending,
		"facts":    facts,
		"bar":      barSVG,
		"history":  historyHTML,
		"attempt":  attemptText,
		"upper":    strings.ToUpper,
	}
	asHTML = template.Must(template.New("page.html").Funcs(functions).ParseFS(pages, "page.html"))
	asText = texttemplate.Must(texttemplate.New("page.txt").Funcs(functions).ParseFS(pages, "page.txt"))
)

func hash(text string) string {
	sum := sha256.Sum256([]byte(text))
	return base64.StdEncoding.EncodeToString(sum[:])
}

func writeHTML(w io.Writer, s Snapshot, live bool) error {
	return asHTML.Execute(w, struct {
		Snapshot
		Live bool
	}{s, live})
}

func writeText(w io.Writer, s Snapshot) error {
	table := tabwriter.NewWriter(w, 0, 0, 2, ' ', 0)
	if err := asText.Execute(table, s); err != nil {
		return err
	}
	return table.Flush()
}

// minutesSVG draws the last hour of a policy as a line for each minute. Over the retries it draws the runs that gave
// up.
func minutesSVG(p *Policy) template.HTML {
	const height = 20
	most := 1
	for i := range p.Retries {
		most = max(most, p.Retries[i], p.GaveUp[i])
	}
	var b strings.Builder
	fmt.Fprintf(&b, `<svg class="minutes" viewBox="0 0 %d %d" preserveAspectRatio="none" aria-hidden="true">`, minutes, height)
	draw := func(class string, counts []int) {
		fmt.Fprintf(&b, `<path class="%s" d="`, class)
		for i, n := range counts {
			if n > 0 {
				fmt.Fprintf(&b, "M%d.5 %dv-%.1f", i, height, max(1, height*float64(n)/float64(most)))
			}
		}
		b.WriteString(`"/>`)
	}
	draw("retries", p.Retries)
	draw("gaveup", p.GaveUp)
	fmt.Fprintf(&b, `</svg><small class="axis"><span>1h ago</span> <span>top %d/min</span> <span>now</span></small>`, most)
	return template.HTML(b.String()) // numbers only
}

// minutesText draws the runs of a policy that gave up in each minute of the last hour, the newest last. It is "" if none
// did.
func minutesText(p *Policy) string {
	most := slices.Max(p.GaveUp)
	if most == 0 {
		return ""
	}
	levels := []rune(".▁▂▃▄▅▆▇█")
	var b strings.Builder
	for _, n := range p.GaveUp {
		b.WriteRune(levels[(n*(len(levels)-1)+most-1)/most])
	}
	return fmt.Sprintf("gave up, 1h ago %s now, top %d/min", b.String(), most)
}

// barSVG draws a run in time. It draws attempts by how they ended, waits between them, the end of the wait that a
// server asked for, and deadline and TTL if they are near the end of the run.
func barSVG(r *Run) template.HTML {
	scale := max(r.Elapsed, 1)
	limits := []time.Duration{r.Deadline, r.TTL}
	for _, limit := range limits {
		if limit < r.Elapsed+r.Elapsed/2 {
			scale = max(scale, limit)
		}
	}
	const width, least = 1000, 4
	var b strings.Builder
	fmt.Fprintf(&b, `<svg viewBox="0 0 %d 10" preserveAspectRatio="none" aria-hidden="true">`, width)
	box := func(class string, from, to time.Duration, y, height int) {
		if from <= scale {
			left := min(width*float64(from)/float64(scale), width-least)
			right := min(width*float64(to)/float64(scale), width)
			fmt.Fprintf(&b, `<rect class="%s" x="%.1f" y="%d" width="%.1f" height="%d"/>`, class, left, y, max(right-left, least), height)
		}
	}
	for _, a := range r.History {
		end := a.Start + a.Duration
		if a.Wait > 0 {
			box("wait", end, min(end+a.Wait, r.Elapsed), 4, 2)
		}
		if a.Hint > 0 {
			box("hint", end+a.Hint, end+a.Hint, 1, 8)
		}
		box("bar "+a.Ended, a.Start, end, 0, 10)
	}
	for _, limit := range limits {
		if limit > 0 {
			box("limit", limit, limit, 0, 10)
		}
	}
	b.WriteString("</svg>")
	return template.HTML(b.String()) // numbers, and words of Attempt.Ended
}

// historyHTML lists the attempts of a run. The template would take four times as long for a thousand of them.
func historyHTML(r *Run) template.HTML {
	var b strings.Builder
	b.WriteString("<ol>")
	for _, a := range r.History {
		fmt.Fprintf(&b, `<li class="%s"><bdi>%s</bdi></li>`, a.Ended, template.HTMLEscapeString(attemptText(a)))
	}
	b.WriteString("</ol>")
	return template.HTML(b.String())
}
