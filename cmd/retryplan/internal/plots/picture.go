package plots

import (
	"errors"
	"fmt"
	"html"
	"io"
	"math"
	"os"
	"path/filepath"
	"strings"
)

// Picture is a drawing that can be written in two forms.
type Picture struct {
	sections func(width float64) []section
}

// CheckFile returns an error for a file whose name does not end in .svg, in upper or lower case.
func CheckFile(path string) error {
	if strings.EqualFold(filepath.Ext(path), ".svg") {
		return nil
	}
	return fmt.Errorf("plots: %q does not end in .svg", path)
}

// Save writes p to an SVG file. A file that is there is replaced; one that could not be written whole is removed.
func (p *Picture) Save(path string) error {
	if err := CheckFile(path); err != nil {
		return err
	}
	var b strings.Builder
	if err := p.Write(&b); err != nil {
		return err
	}
	if err := os.WriteFile(path, []byte(b.String()), 0o644); err != nil {
		var refused *os.PathError // one that could not even be opened is not ours to remove
		if errors.As(err, &refused) && refused.Op == "write" {
			err = errors.Join(err, os.Remove(path))
		}
		return fmt.Errorf("plots: %w", err)
	}
	return nil
}

// Write writes p to w as an SVG file with a background, light or dark as its reader prefers.
func (p *Picture) Write(w io.Writer) error {
	sections := p.sections(pictureWidth)
	height := 2 * margin
	var titles []string
	for _, s := range sections {
		height += s.height(pictureWidth - 2*margin)
		titles = append(titles, s.title)
	}
	var c canvas
	open(&c, pictureWidth, height, `role="img"`)
	fmt.Fprintf(&c, "<title>%s</title>\n<style>\n%s</style>\n", html.EscapeString(strings.Join(titles, "; ")), Stylesheet)
	c.fill("fill", "back", 0, 0, pictureWidth, height)
	draw(&c, sections, margin, margin, pictureWidth-2*margin)
	c.WriteString("</svg>\n")
	if _, err := io.WriteString(w, c.String()); err != nil {
		return fmt.Errorf("plots: %w", err)
	}
	return nil
}

// Fragment returns p as an SVG element for a page that links Stylesheet, width pixels wide. It has neither titles nor a
// background, and no panel of it is higher than most pixels.
func (p *Picture) Fragment(width, most float64) string {
	sections := p.sections(width)
	height := 0.
	for i := range sections {
		s := &sections[i]
		s.title = ""
		for j := range s.panels {
			s.panels[j].height = min(s.panels[j].height, max(most, 60))
		}
		height += s.height(width)
	}
	var c canvas
	open(&c, width, height, `aria-hidden="true"`)
	draw(&c, sections, 0, 0, width)
	c.WriteString("</svg>")
	return c.String()
}

func open(c *canvas, width, height float64, more string) {
	fmt.Fprintf(c, `<svg xmlns="http://www.w3.org/2000/svg" class="chart" width="%[1]s" height="%[2]s" viewBox="0 0 %[1]s %[2]s" %[3]s>`+"\n",
		pixels(width), pixels(math.Ceil(height)), more)
}

// draw puts sections one above the other. All panels begin and end at the same places.
func draw(c *canvas, sections []section, left, top, width float64) {
	beside, after := 0., 8.
	for _, s := range sections {
		for _, p := range s.panels {
			b, a := p.beside()
			beside, after = max(beside, b), max(after, a)
		}
	}
	for _, s := range sections {
		s.draw(c, left, top, width, beside, after)
		top += s.height(width)
	}
}

// section is a part of a picture: a title, a legend, and panels.
type section struct {
	title  string // empty for none
	note   string // in smaller letters under the title; empty for none
	keys   []key
	panels []panel
}

const gap = 8. // between panels

func (s section) height(width float64) float64 {
	h := gap + float64(len(s.rows(width)))*legendRow
	if s.title != "" {
		h += gap + titleSize*1.5
	}
	if s.note != "" {
		h += legendRow
	}
	for _, p := range s.panels {
		h += p.height + gap
	}
	return h
}

// rows breaks the legend into lines that fit.
func (s section) rows(width float64) [][]key {
	var rows [][]key
	var row []key
	used := 0.
	for _, k := range s.keys {
		if len(row) > 0 && used+k.width() > width {
			rows, row, used = append(rows, row), nil, 0
		}
		row, used = append(row, k), used+k.width()
	}
	if len(row) > 0 {
		rows = append(rows, row)
	}
	return rows
}

func (s section) draw(c *canvas, left, y, width, beside, after float64) {
	if s.title != "" {
		c.text("title ink", titleSize, left, y+titleSize*0.75, s.title)
		y += titleSize * 1.5
	}
	if s.note != "" {
		c.text("faint", labelSize, left, y+legendRow/2, s.note)
		y += legendRow
	}
	for _, row := range s.rows(width) {
		x := left
		for _, k := range row {
			k.sample(c, x, x+swatch, y+legendRow/2)
			c.text("ink", labelSize, x+swatch+5, y+legendRow/2, k.name)
			x += k.width()
		}
		y += legendRow
	}
	y += gap
	for _, p := range s.panels {
		p.draw(c, left, y, width, beside, after)
		y += p.height + gap
	}
}

// panel is a chart: marks within two axes.
type panel struct {
	height         float64
	x, y           axis
	xLabel, yLabel string
	marks          []mark
}

// newPanel returns an empty panel with its axes and a grid.
func newPanel(height float64, x axis, xLabel string, y axis, yLabel string) panel {
	return panel{height, x, y, xLabel, yLabel, []mark{gridLines(x.ticks, y.ticks)}}
}

// add draws marks on top of what is there.
func (p *panel) add(marks ...mark) { p.marks = append(p.marks, marks...) }

// beside returns how much room the labels of p need on its left and on its right.
func (p panel) beside() (left, right float64) {
	for _, t := range p.y.ticks {
		left = max(left, widthOf(t.label, tickSize))
	}
	left += 8
	if p.yLabel != "" {
		left += labelSize + 6
	}
	if n := len(p.x.ticks); n > 0 { // the last may stand at the very end
		right = widthOf(p.x.ticks[n-1].label, tickSize)/2 + 1
	}
	return left, right
}

func (p panel) draw(c *canvas, left, top, width, beside, after float64) {
	below := tickSize + 8
	if p.xLabel != "" {
		below += labelSize + 5
	}
	f := frame{c, left + beside, left + width - after, top, top + p.height - below, p.x, p.y}
	for _, m := range p.marks {
		m(f)
	}
	c.path(stroke{class: "faint"}, "thin", place("M", f.left, f.top)+place("V", f.bottom)+place("H", f.right))
	for _, t := range p.x.ticks {
		c.text("ink", tickSize, f.x(t.value)-widthOf(t.label, tickSize)/2, f.bottom+4+tickSize/2, t.label)
	}
	for _, t := range p.y.ticks {
		c.text("ink", tickSize, f.left-5-widthOf(t.label, tickSize), f.y(t.value), t.label)
	}
	if p.xLabel != "" {
		c.text("ink", labelSize, (f.left+f.right-widthOf(p.xLabel, labelSize))/2, top+p.height-labelSize/2, p.xLabel)
	}
	if p.yLabel != "" {
		c.upright(labelSize, left+labelSize/2, (f.top+f.bottom)/2, p.yLabel)
	}
}
