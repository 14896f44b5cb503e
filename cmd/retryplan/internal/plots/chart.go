package plots

import "math"

// chart is series within two axes, below their legend.
type chart struct {
	height float64
	x, y   axis
	series []series // the first at the bottom
	empty  string   // the text of a chart without lines
}

// series is a line with boxes behind it. A series without a name is not in the legend.
type series struct {
	name, class, dash string // class is a color in Stylesheet
	points            []point
	area              bool // whether the area below the line is tinted
	boxes             []box
}

// point is a place in the values of the axes.
type point struct{ x, y float64 }

// box is a rectangle in the values of the axes. The part beyond the axes is cut off.
type box struct{ left, right, lo, hi float64 }

// upright returns a box as high as its chart.
func upright(left, right float64) box { return box{left, right, math.Inf(-1), math.Inf(1)} }

// draw draws c with its upper left corner at a place, and returns the height of its lower edge.
func (c chart) draw(to *canvas, left, y, width float64) (bottom float64) {
	y = c.legend(to, left, y, width)
	to.text("ink", "start", labelSize, left, y+rowHeight/2, c.y.name)
	f := frame{c.x, c.y, left + beside, y + rowHeight + gap, left + width - after, y + c.height}
	grid := ""
	for _, v := range c.x.ticks(f.right-f.left, func(label string) float64 { return widthOf(label, tickSize) + 16 }) {
		grid += place("M", f.x(v), f.top) + place("V", f.bottom)
		to.text("ink", "middle", tickSize, f.x(v), f.bottom+4+tickSize/2, c.x.text(v))
	}
	for _, v := range c.y.ticks(f.bottom-f.top, func(string) float64 { return 2 * tickSize }) {
		grid += place("M", f.left, f.y(v)) + place("H", f.right)
		to.text("ink", "end", tickSize, f.left-5, f.y(v), c.y.text(v))
	}
	to.path("thin", "grid", "", grid)
	to.path("thin", "faint", "", place("M", f.left, f.top)+place("V", f.bottom)+place("H", f.right))
	lines := false
	for _, s := range c.series {
		f.draw(to, s)
		lines = lines || s.points != nil
	}
	middle := (f.left + f.right) / 2
	if !lines {
		to.text("faint", "middle", labelSize, middle, (f.top+f.bottom)/2, c.empty)
	}
	to.text("ink", "middle", labelSize, middle, f.bottom+tickSize+labelSize, c.x.name)
	return f.bottom + tickSize + 2*labelSize + gap
}

// legend draws the names of the series in rows, and returns the height of its lower edge.
func (c chart) legend(to *canvas, left, y, width float64) (bottom float64) {
	x := left + width
	for _, s := range c.series {
		if s.name == "" {
			continue
		}
		wide := swatch + 5 + widthOf(s.name, labelSize) + 12
		if x+wide > left+width {
			x, y = left, y+rowHeight
		}
		middle := y - rowHeight/2
		if s.boxes != nil {
			to.path("tint", s.class, "", rectangle(x, middle-5, x+swatch, middle+5))
		}
		if s.boxes == nil || s.points != nil {
			to.path("curve", s.class, s.dash, place("M", x, middle)+place("H", x+swatch))
		}
		to.text("ink", "start", labelSize, x+swatch+5, middle, s.name)
		x += wide
	}
	return y
}

// frame is the part of a canvas within the axes of a chart.
type frame struct {
	xAxis, yAxis             axis
	left, top, right, bottom float64
}

func (f frame) x(v float64) float64 { return f.left + f.xAxis.norm(v)*(f.right-f.left) }
func (f frame) y(v float64) float64 { return f.bottom - f.yAxis.norm(v)*(f.bottom-f.top) }

// draw draws s. A box is at least two pixels wide and high, so that it is seen.
func (f frame) draw(to *canvas, s series) {
	tint, curve := "", ""
	for _, b := range s.boxes {
		left, right, low, high := f.x(b.left), f.x(b.right), f.y(b.lo), f.y(b.hi)
		wide, thick := max(2-(right-left), 0)/2, max(2-(low-high), 0)/2
		tint += rectangle(left-wide, high-thick, right+wide, low+thick)
	}
	for i, p := range s.points {
		command := "L"
		if i == 0 {
			command = "M"
		}
		curve += place(command, f.x(p.x), f.y(p.y))
	}
	if s.area && curve != "" {
		tint += curve + place("V", f.bottom) + place("H", f.x(s.points[0].x)) + "z"
	}
	to.path("tint", s.class, "", tint)
	to.path("curve", s.class, s.dash, curve)
}
