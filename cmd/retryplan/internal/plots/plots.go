// Package plots draws what package retryplan computes: as an SVG file, and as SVG elements of a page.
//
// The same input gives the same bytes. Pictures are light or dark as their reader prefers. Lines differ in dashes as
// well as in color, so that they survive a gray printer.
package plots

import (
	"fmt"
	"html"
	"strings"

	"github.com/retrygo/retry/cmd/retryplan/internal/say"
	"github.com/retrygo/retry/retryplan"
)

// Most is the number of plans or runs that one picture can show: a reader cannot distinguish more lines.
const Most = 8

// Plan is a plan with the name that the picture gives it.
type Plan struct {
	Name string
	Plan *retryplan.Plan
}

// Run is a simulation with the name that the picture gives it.
type Run struct {
	Name   string
	Result retryplan.Result // whose trigger is shaded
}

// Picture is charts, one below the other.
type Picture []chart

// Plans draws the wait before each attempt with its range, of 1 to Most plans.
func Plans(plans ...Plan) Picture { return Picture{schedule(plans)} }

// Simulation draws the time series of 1 to Most runs. Of one run it draws the load and the goodput, and below them the
// queue. Of several it draws the goodput, and below it the attempts. If a series is empty, the picture says so.
func Simulation(runs ...Run) Picture { return simulation(runs) }

// short returns a name, which may come from a file, on one line that fits beside the figures of a legend.
func short(name string) string {
	const longest = 40
	runes := []rune(say.OneLine(name))
	if len(runes) > longest {
		return strings.TrimSpace(string(runes[:longest-1])) + "…"
	}
	return string(runes)
}

// SVG returns p as an SVG file with a background, light or dark as its reader prefers.
func (p Picture) SVG() string {
	c := canvas{width: pictureWidth}
	y := margin
	for _, part := range p {
		y = part.draw(&c, margin, y, pictureWidth-2*margin)
	}
	var back canvas
	fmt.Fprintf(&back, "<title>%s</title>\n<style>\n%s</style>\n", html.EscapeString(p[0].title), Stylesheet)
	back.path("fill", "back", "", rectangle(0, 0, pictureWidth, y+margin))
	return element(pictureWidth, y+margin, `role="img"`, back.String()+c.String())
}

// Part returns chart i of p as an SVG element for a page that links to Stylesheet: so wide, without a title or a
// background, and with axes no higher than most, if that leaves room for them. Sizes are in pixels.
func (p Picture) Part(i int, width, most float64) string {
	part := p[i]
	part.title, part.height = "", min(part.height, max(most-60, 40))
	c := canvas{width: width}
	height := part.draw(&c, 0, 0, width)
	return element(width, height, `aria-hidden="true"`, c.String())
}
