package plots

import (
	"fmt"
	"html"

	"github.com/retrygo/retry/retryplan"
)

// Run is a simulation with the name that the picture gives it.
type Run struct {
	Name   string
	Result retryplan.Result // whose trigger is shaded
}

// Comparison draws the goodput of two runs, and below it their attempts.
func Comparison(a, b Run) Picture {
	top := chart{y: axis{name: "goodput, per second", steps: parts}}
	below := chart{y: axis{name: "attempts sent, per second", steps: parts}}
	for i, r := range []Run{a, b} {
		look := series{class: []string{"blue", "red"}[i], dash: []string{"", "8 3"}[i]}
		look.points = rates(r.Result, attempts)
		below.series = append(below.series, look)
		look.name, look.points = r.Name, rates(r.Result, goodput)
		top.series = append(top.series, look)
	}
	return overTime([]retryplan.Result{a.Result, b.Result}, top, below)
}

// SVG returns p as an SVG file with a title and a background, light or dark as its reader prefers.
func (p Picture) SVG(title string) string {
	const pictureWidth, margin, titleSize = 720., 10., 15.
	c := canvas{width: pictureWidth}
	c.text("title ink", "start", titleSize, margin, margin+titleSize*0.75, title)
	y := margin + titleSize*1.5
	for _, part := range p {
		y = part.draw(&c, margin, y, pictureWidth-2*margin)
	}
	var back canvas
	fmt.Fprintf(&back, "<title>%s</title>\n<style>\n%s</style>\n", html.EscapeString(title), Stylesheet)
	back.path("fill", "back", "", rectangle(0, 0, pictureWidth, y+margin))
	return element(pictureWidth, y+margin, `role="img"`, back.String()+c.String())
}
