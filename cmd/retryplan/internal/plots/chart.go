package plots

import (
	"cmp"
	"math"
)

// chart is series within two axes, beneath their legend.
type chart struct {
	title  string // empty for none
	note   string // in smaller letters under the title; empty for none
	height float64
	x, y   axis
	series []series // the first at the bottom
	labels []label
	empty  string // what is said if there are no series
}

// series is something drawn in a chart, under a name that its legend has. One without a name is not in the legend.
type series struct {
	name   string
	look   look
	points []point // of a line, in their order
	area   bool    // with a tint beneath the line
	marks  []point // the places of markers
	boxes  []box   // tinted; one without height is a line
}

// point is a place in the values of the axes.
type point struct{ x, y float64 }

// box is a rectangle in the values of the axes. What is beyond the axes is cut off.
type box struct{ left, right, lo, hi float64 }

// upright is as high as its chart.
func upright(left, right float64) box { return box{left, right, math.Inf(-1), math.Inf(1)} }

// label is a text above a point.
type label struct {
	at   point
	text string
}

// frame is the part of a canvas within the axes of a chart.
type frame struct {
	*canvas
	left, top, right, bottom float64
	xAxis, yAxis             axis
}

func (f frame) x(v float64) float64 { return f.left + f.xAxis.norm(v)*(f.right-f.left) }
func (f frame) y(v float64) float64 { return f.bottom - f.yAxis.norm(v)*(f.bottom-f.top) }

func (s series) draw(f frame) {
	tint, filled := look{class: s.look.class}, "fill"
	if s.look.hollow {
		filled = "thin"
	}
	shades, levels, curve, markers := "", "", "", ""
	for _, b := range s.boxes {
		left, right, low, high := f.x(b.left), f.x(b.right), f.y(b.lo), f.y(b.hi)
		if b.lo == b.hi {
			levels += place("M", left, high) + place("H", right)
			continue
		}
		wide, thick := max(2-(right-left), 0)/2, max(2-(low-high), 0)/2 // the least that is seen
		shades += rectangle(left-wide, high-thick, right+wide, low+thick)
	}
	for i, q := range s.points {
		command := "L"
		if i == 0 {
			command = "M"
		}
		curve += place(command, f.x(q.x), f.y(q.y))
	}
	if s.area && curve != "" {
		shades += curve + place("V", f.bottom) + place("H", f.x(s.points[0].x)) + "z"
	}
	for _, q := range s.marks {
		markers += place("M", f.x(q.x), f.y(q.y)) + s.look.glyph
	}
	f.path(tint, "tint", shades)
	f.path(s.look, "thin", levels)
	f.path(s.look, "curve", curve)
	f.path(tint, filled, markers)
}

// sample draws s as its legend shows it.
func (s series) sample(c *canvas, left, y float64) {
	switch {
	case s.boxes == nil:
		s.points = []point{{0, .5}, {1, .5}}
	case s.boxes[0].lo == s.boxes[0].hi:
		s.boxes = []box{{0, 1, .5, .5}}
	default:
		s.boxes = []box{{0, 1, 0, 1}}
	}
	if s.marks != nil {
		s.marks = []point{{.5, .5}}
	}
	s.draw(frame{c, left, y - 5, left + swatch, y + 5, axis{max: 1}, axis{max: 1}})
}

// legend breaks the series that have names into lines that fit.
func (c chart) legend(width float64) (rows [][]series) {
	used := math.Inf(1)
	for _, s := range c.series {
		if s.name == "" {
			continue
		}
		if used += s.width(); used > width {
			rows, used = append(rows, nil), s.width()
		}
		rows[len(rows)-1] = append(rows[len(rows)-1], s)
	}
	return rows
}

func (s series) width() float64 { return swatch + 5 + widthOf(s.name, labelSize) + 18 }

// total returns how high c is with its legend.
func (c chart) total(width float64) float64 {
	h := c.height + 2*gap + float64(len(c.legend(width)))*legendRow
	if c.title != "" {
		h += titleSize * 1.5
	}
	if c.note != "" {
		h += legendRow
	}
	return h
}

// upTicks returns the ticks of the upright axis, and how much room the axis takes.
func (c chart) upTicks() (ticks []tick, beside float64) {
	ticks = c.y.ticks(c.within(), func(string) float64 { return 2.5 * tickSize })
	for _, t := range ticks {
		beside = max(beside, widthOf(t.label, tickSize))
	}
	return ticks, beside + 8 + labelSize + 6
}

// within returns how high the part within the axes is.
func (c chart) within() float64 { return c.height - tickSize - labelSize - 13 }

// draw draws c, with so much of the width left of its upright axis.
func (c chart) draw(to *canvas, left, y, width, beside float64) {
	if c.title != "" {
		to.text("title ink", titleSize, left, y+titleSize*0.75, c.title)
		y += titleSize * 1.5
	}
	if c.note != "" {
		to.text("faint", labelSize, left, y+legendRow/2, c.note)
		y += legendRow
	}
	for _, row := range c.legend(width) {
		x := left
		for _, s := range row {
			s.sample(to, x, y+legendRow/2)
			to.text("ink", labelSize, x+swatch+5, y+legendRow/2, s.name)
			x += s.width()
		}
		y += legendRow
	}
	y += gap
	after := 8 + widthOf(c.x.text(c.x.max), tickSize)/2 // the last label may stand at the very end
	f := frame{to, left + beside, y, left + width - after, y + c.within(), c.x, c.y}
	across := c.x.ticks(f.right-f.left, func(label string) float64 { return widthOf(label, tickSize) + 26 })
	up, _ := c.upTicks()
	grid := ""
	for _, t := range across {
		grid += place("M", f.x(t.value), f.top) + place("V", f.bottom)
		to.text("ink", tickSize, f.x(t.value)-widthOf(t.label, tickSize)/2, f.bottom+4+tickSize/2, t.label)
	}
	for _, t := range up {
		grid += place("M", f.left, f.y(t.value)) + place("H", f.right)
		to.text("ink", tickSize, f.left-5-widthOf(t.label, tickSize), f.y(t.value), t.label)
	}
	to.path(look{class: "grid"}, "thin", grid)
	to.path(look{class: "faint"}, "thin", place("M", f.left, f.top)+place("V", f.bottom)+place("H", f.right))
	nothing := true
	for _, s := range c.series {
		s.draw(f)
		nothing = nothing && s.points == nil
	}
	if nothing {
		to.text("faint", labelSize, (f.left+f.right-widthOf(c.empty, labelSize))/2, (f.top+f.bottom)/2, c.empty)
	}
	c.label(f)
	to.text("ink", labelSize, (f.left+f.right-widthOf(c.x.title(), labelSize))/2, y+c.height-labelSize/2, c.x.title())
	to.upright(labelSize, left+labelSize/2, (f.top+f.bottom)/2, c.y.title())
}

// label writes the labels of c, but for those that would run into an earlier one.
func (c chart) label(f frame) {
	var written []box
	for _, l := range c.labels {
		width := widthOf(l.text, tickSize)
		left, y := max(min(f.x(l.at.x)-width/2, f.right-width), f.left), f.y(l.at.y)-10
		b := box{left - 3, left + width + 3, y - tickSize/2, y + tickSize/2}
		free := true
		for _, w := range written {
			free = free && (w.right < b.left || b.right < w.left || w.hi < b.lo || b.hi < w.lo)
		}
		if free {
			written = append(written, b)
			f.text("ink halo", tickSize, left, y, l.text)
		}
	}
}

// table is what c draws in figures, for those who do not see it: a row for each point of its last line, at most about
// so many.
func (c chart) table(rows int) Table {
	t := Table{Head: []string{c.x.name}, Rows: [][]string{}}
	var shown []series
	var at []point
	for _, s := range c.series {
		if s.points == nil && s.boxes == nil {
			continue
		}
		shown, t.Head = append(shown, s), append(t.Head, cmp.Or(s.name, c.y.name))
		if s.points != nil {
			at = s.points
		}
	}
	for i := 0; i < len(at); i += (len(at) + rows - 1) / rows {
		row := []string{c.x.text(at[i].x)}
		for _, s := range shown {
			row = append(row, s.text(i, at[i].x, c.y))
		}
		t.Rows = append(t.Rows, row)
	}
	return t
}

// text returns what s is at a place, which is that of its ith point if it is a line.
func (s series) text(i int, x float64, y axis) string {
	if i < len(s.points) && s.points[i].x == x {
		return y.text(s.points[i].y)
	}
	for _, b := range s.boxes {
		switch {
		case x < b.left || b.right < x:
		case math.IsInf(b.lo, -1):
			return "yes"
		case b.lo == b.hi:
			return y.text(b.lo)
		default:
			return y.text(b.lo) + " to " + y.text(b.hi)
		}
	}
	return ""
}
