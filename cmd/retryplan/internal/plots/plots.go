// Package plots draws what package retryplan computes: as an SVG file, and as an SVG element of a page with its figures.
//
// The same input gives the same bytes. Pictures are light or dark as their reader prefers, and series differ in dashes
// and markers as well as in color, so that they survive a gray printer.
package plots

import (
	"fmt"
	"html"
	"os"
	"path/filepath"
	"strings"
	"time"
	"unicode"

	"github.com/retrygo/retry/retryplan"
)

// Most is how many plans or runs one picture can show: a reader cannot distinguish more lines.
const Most = 8

// Plan is a plan with the name that the picture gives it. An empty name counts as "policy 1", "policy 2", ...
type Plan struct {
	Name string
	Plan *retryplan.Plan
}

// Run is a simulation with the name that the picture gives it. An empty name counts as "run 1", "run 2", ...
type Run struct {
	Name   string
	Result retryplan.Result
	// Triggers are those of the Scenario: they are shaded and named.
	Triggers []retryplan.Trigger
}

// Table is a chart in figures. The first column heads the rows.
type Table struct {
	Head []string   `json:"head"`
	Rows [][]string `json:"rows"`
}

// Picture is charts, one above the other.
type Picture struct{ charts []chart }

// Plans draws the wait before each attempt with its jitter envelope, and beneath it the distribution of Plan.TotalWait,
// of one plan or of several side by side. It returns an error for no plan and for more than Most.
func Plans(plans ...Plan) (*Picture, error) {
	return draw(plans, schedule, totalWait)
}

// Outlook draws what Plans does and, beneath it, the distribution of Plan.Elapsed with the callers' deadline, zero for
// none. Errors are those of Plans.
func Outlook(deadline time.Duration, plans ...Plan) (*Picture, error) {
	return draw(plans, schedule, totalWait, func(plans []Plan) chart { return elapsed(plans, deadline) })
}

func draw(plans []Plan, parts ...func([]Plan) chart) (*Picture, error) {
	plans, err := named(plans, "plan", "policy", func(p *Plan) *string { return &p.Name })
	if err != nil {
		return nil, err
	}
	var p Picture
	for _, part := range parts {
		p.charts = append(p.charts, part(plans))
	}
	return &p, nil
}

// Simulation draws the time series of a run: its load and goodput, and beneath them its queue. Of several runs it draws
// the goodput of each, and beneath them the attempts of each. If the series is empty, the picture says so. It returns
// an error for no run and for more than Most.
func Simulation(runs ...Run) (*Picture, error) {
	runs, err := named(runs, "run", "run", func(r *Run) *string { return &r.Name })
	if err != nil {
		return nil, err
	}
	return &Picture{simulation(runs)}, nil
}

// named returns a copy of all whose names fit, and that can stand in XML and on a terminal: they may come from a file.
func named[T any](all []T, noun, fallback string, nameOf func(*T) *string) ([]T, error) {
	const longest = 40 // runes, which fit beside the figures of a legend
	if n := len(all); n == 0 || n > Most {
		return nil, fmt.Errorf("plots: a picture shows 1 to %d %ss, not %d", Most, noun, n)
	}
	all = append([]T(nil), all...)
	for i := range all {
		name := nameOf(&all[i])
		runes := []rune(strings.Join(strings.FieldsFunc(*name, func(r rune) bool {
			return !unicode.IsPrint(r) || r == ' ' || r == unicode.ReplacementChar
		}), " "))
		switch {
		case len(runes) == 0:
			*name = fmt.Sprintf("%s %d", fallback, i+1)
		case len(runes) > longest:
			*name = strings.TrimSpace(string(runes[:longest-1])) + "…"
		default:
			*name = string(runes)
		}
	}
	return all, nil
}

// CheckFile returns an error for a file whose name does not end in .svg, in upper or lower case.
func CheckFile(path string) error {
	if strings.EqualFold(filepath.Ext(path), ".svg") {
		return nil
	}
	return fmt.Errorf("plots: %q does not end in .svg", path)
}

// Save writes p to an SVG file that CheckFile accepts, and replaces one that is there.
func (p *Picture) Save(path string) error {
	if err := os.WriteFile(path, []byte(p.SVG()), 0o644); err != nil {
		return fmt.Errorf("plots: %w", err)
	}
	return nil
}

// SVG returns p as an SVG file with a background, light or dark as its reader prefers.
func (p *Picture) SVG() string {
	const width = pictureWidth - 2*margin
	height, beside := 2*margin, 0.
	var titles []string
	for _, c := range p.charts {
		height += c.total(width)
		_, room := c.upTicks()
		beside = max(beside, room) // all charts begin and end at the same places
		if c.title != "" {
			titles = append(titles, c.title)
		}
	}
	var c canvas
	c.open(pictureWidth, height, `role="img"`)
	fmt.Fprintf(&c, "<title>%s</title>\n<style>\n%s</style>\n", html.EscapeString(strings.Join(titles, "; ")), Stylesheet)
	c.path(look{class: "back"}, "fill", rectangle(0, 0, pictureWidth, height))
	y := margin
	for _, part := range p.charts {
		part.draw(&c, margin, y, width, beside)
		y += part.total(width)
	}
	c.WriteString("</svg>\n")
	return c.String()
}

// Part returns chart i of p for a page that links Stylesheet: as an SVG element that is so wide, with neither a title
// nor a background, and with axes no higher than most; and as a table. Sizes are in pixels.
func (p *Picture) Part(i int, width, most float64) (string, Table) {
	part := p.charts[i]
	part.title, part.height = "", min(part.height, max(most, 60))
	var c canvas
	c.open(width, part.total(width), `aria-hidden="true"`)
	_, beside := part.upTicks()
	part.draw(&c, 0, 0, width, beside)
	c.WriteString("</svg>")
	return c.String(), part.table(21)
}
