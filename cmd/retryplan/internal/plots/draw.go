package plots

import (
	"image/color"
	"math"

	"gonum.org/v1/plot"
	"gonum.org/v1/plot/vg"
	"gonum.org/v1/plot/vg/draw"
)

// point is a place in a panel, in the values of its axes.
type point struct{ x, y float64 }

// scale returns where a value lies on the canvas.
type scale func(float64) vg.Length

// mark is something drawn in a panel.
type mark interface {
	draw(c draw.Canvas, x, y scale)
}

// layer is a mark on the axes of its panel.
type layer struct {
	x, y axis
	mark
}

// Plot makes layer a plot.Plotter.
func (l layer) Plot(c draw.Canvas, _ *plot.Plot) {
	l.draw(c,
		func(v float64) vg.Length { return c.X(l.x.norm(v)) },
		func(v float64) vg.Length { return c.Y(l.y.norm(v)) })
}

// gridLines are drawn first, under everything.
type gridLines struct{ x, y []plot.Tick }

func (g gridLines) draw(c draw.Canvas, x, y scale) {
	style := draw.LineStyle{Color: grid, Width: 0.5}
	for _, t := range g.x {
		c.StrokeLine2(style, x(t.Value), c.Min.Y, x(t.Value), c.Max.Y)
	}
	for _, t := range g.y {
		c.StrokeLine2(style, c.Min.X, y(t.Value), c.Max.X, y(t.Value))
	}
}

// line joins points in their order.
type line struct {
	style  draw.LineStyle
	points []point
}

func (l line) draw(c draw.Canvas, x, y scale) {
	path := make([]vg.Point, 0, len(l.points))
	for _, q := range l.points {
		path = append(path, vg.Point{X: x(q.x), Y: y(q.y)})
	}
	if len(path) > 1 {
		c.StrokeLines(l.style, path)
	}
}

// area fills what lies between points and the lower end of the panel.
type area struct {
	color  color.NRGBA
	points []point
}

func (a area) draw(c draw.Canvas, x, y scale) {
	if len(a.points) == 0 {
		return
	}
	path := make([]vg.Point, 0, len(a.points)+2)
	path = append(path, vg.Point{X: x(a.points[0].x), Y: c.Min.Y})
	for _, q := range a.points {
		path = append(path, vg.Point{X: x(q.x), Y: y(q.y)})
	}
	path = append(path, vg.Point{X: x(a.points[len(a.points)-1].x), Y: c.Min.Y})
	c.FillPolygon(a.color, path)
}

// marks draws a glyph at each point.
type marks struct {
	style  draw.GlyphStyle
	points []point
}

func (m marks) draw(c draw.Canvas, x, y scale) {
	c.SetLineStyle(draw.LineStyle{Color: m.style.Color, Width: 1})
	for _, q := range m.points {
		c.DrawGlyphNoClip(m.style, vg.Point{X: x(q.x), Y: y(q.y)})
	}
}

// box is a rectangle from lo to hi, width wide in values of the horizontal axis.
type box struct{ x, width, lo, hi float64 }

// boxes fills all of its boxes as one path, which keeps files small. One without height is drawn as a stroke, so that it is
// seen.
type boxes struct {
	color color.NRGBA
	all   []box
}

func (b boxes) draw(c draw.Canvas, x, y scale) {
	const least vg.Length = 1.5
	var path vg.Path
	for _, q := range b.all {
		left, right := x(q.x-q.width/2), x(q.x+q.width/2)
		low, high := y(q.lo), y(q.hi)
		if high-low < least {
			middle := (low + high) / 2
			low, high = middle-least/2, middle+least/2
		}
		path.Move(vg.Point{X: left, Y: low})
		path.Line(vg.Point{X: right, Y: low})
		path.Line(vg.Point{X: right, Y: high})
		path.Line(vg.Point{X: left, Y: high})
		path.Close()
	}
	if len(path) > 0 {
		c.SetColor(b.color)
		c.Fill(path)
	}
}

// strokes are level lines, as wide as the boxes that they cross.
type strokes struct {
	style draw.LineStyle
	width float64
	at    []point
}

func (s strokes) draw(c draw.Canvas, x, y scale) {
	for _, q := range s.at {
		c.StrokeLine2(s.style, x(q.x-s.width/2), y(q.y), x(q.x+s.width/2), y(q.y))
	}
}

// stripe shades the whole height of a panel from one place of the horizontal axis to another, and draws its edges.
type stripe struct{ from, to float64 }

func (s stripe) draw(c draw.Canvas, x, _ scale) {
	left, right := max(x(s.from), c.Min.X), min(x(s.to), c.Max.X)
	if left > right {
		return
	}
	right = max(right, left+1) // one too short to be seen is seen all the same
	c.FillPolygon(alarm, []vg.Point{{X: left, Y: c.Min.Y}, {X: right, Y: c.Min.Y}, {X: right, Y: c.Max.Y}, {X: left, Y: c.Max.Y}})
	edge := draw.LineStyle{Color: orange, Width: 0.5}
	c.StrokeLine2(edge, left, c.Min.Y, left, c.Max.Y)
	c.StrokeLine2(edge, right, c.Min.Y, right, c.Max.Y)
}

// label is text dy above a place and dx to the right of it, or where that would leave the panel as much to the left. One
// that is centered stands on the middle of its place, one that is ended ends there, and one that is boxed has a box of white
// that lets it stand on lines.
type label struct {
	at                     point
	dx, dy                 vg.Length
	text                   string
	centered, ended, boxed bool
}

type labels []label

func (ls labels) draw(c draw.Canvas, x, y scale) {
	style := textStyle(tickSize, ink)
	for _, l := range ls {
		width := style.Width(l.text)
		left := x(l.at.x) + l.dx
		switch {
		case l.centered:
			left = x(l.at.x) - width/2
			left = max(min(left, c.Max.X-width), c.Min.X)
		case l.ended:
			left = max(x(l.at.x)-l.dx-width, c.Min.X)
		case left+width > c.Max.X:
			left = max(x(l.at.x)-l.dx-width, c.Min.X)
		}
		middle := y(l.at.y) + l.dy
		if l.boxed {
			half := tickSize * 0.7
			c.FillPolygon(color.White, corners(vg.Rectangle{
				Min: vg.Point{X: left - 1.5, Y: middle - half}, Max: vg.Point{X: left + width + 1.5, Y: middle + half},
			}))
		}
		c.FillText(style, vg.Point{X: left, Y: middle}, l.text)
	}
}

// message is a sentence in the middle of a panel that has nothing else to show.
type message string

func (m message) draw(c draw.Canvas, _, _ scale) {
	style := textStyle(labelSize, faint)
	style.XAlign = draw.XCenter
	c.FillText(style, c.Center(), string(m))
}

// lineKey returns the entry of a line, with the markers on it if there are any.
func lineKey(name string, style draw.LineStyle, glyph draw.GlyphStyle) key {
	return key{name, func(c draw.Canvas, left, right, y vg.Length) {
		c.StrokeLine2(style, left, y, right, y)
		if glyph.Shape != nil {
			c.SetLineStyle(draw.LineStyle{Color: glyph.Color, Width: 1})
			c.DrawGlyphNoClip(glyph, vg.Point{X: (left + right) / 2, Y: y})
		}
	}}
}

// boxKey returns the entry of a shade.
func boxKey(name string, fill color.NRGBA) key {
	return key{name, func(c draw.Canvas, left, right, y vg.Length) {
		c.FillPolygon(fill, corners(vg.Rectangle{Min: vg.Point{X: left, Y: y - 4}, Max: vg.Point{X: right, Y: y + 4}}))
	}}
}

// thin returns about 2·stretches of the points, in order: the first, of each stretch the lowest and the highest, and the
// last, so that no peak is lost. Fewer points are returned as they are.
func thin(points []point, stretches int) []point {
	if len(points) <= 2*stretches {
		return points
	}
	kept := []point{points[0]}
	last := 0
	for i := range stretches {
		from, to := i*len(points)/stretches, (i+1)*len(points)/stretches
		low, high := from, from
		for j := from; j < to; j++ {
			if points[j].y < points[low].y {
				low = j
			}
			if points[j].y > points[high].y {
				high = j
			}
		}
		for _, j := range []int{min(low, high), max(low, high)} {
			if j > last {
				kept, last = append(kept, points[j]), j
			}
		}
	}
	if last < len(points)-1 {
		kept = append(kept, points[len(points)-1])
	}
	return kept
}

// upper returns the largest of values, 0 where there is none above it. What is not a number is passed over.
func upper(values ...float64) float64 {
	most := 0.0
	for _, v := range values {
		if v > most && !math.IsInf(v, 1) {
			most = v
		}
	}
	return most
}
