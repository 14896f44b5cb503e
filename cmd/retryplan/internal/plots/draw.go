package plots

import "math"

// point is a place in a panel, in the values of its axes.
type point struct{ x, y float64 }

// frame is the part of a canvas that a panel's values are drawn in.
type frame struct {
	*canvas
	left, right, top, bottom float64
	xAxis, yAxis             axis
}

func (f frame) x(v float64) float64 { return f.left + f.xAxis.norm(v)*(f.right-f.left) }
func (f frame) y(v float64) float64 { return f.bottom - f.yAxis.norm(v)*(f.bottom-f.top) }

// along returns the path through points.
func (f frame) along(points []point) string {
	d := ""
	for i, q := range points {
		command := "L"
		if i == 0 {
			command = "M"
		}
		d += place(command, f.x(q.x), f.y(q.y))
	}
	return d
}

// mark is something drawn in a panel.
type mark func(frame)

// gridLines are drawn first, under everything.
func gridLines(x, y []tick) mark {
	return func(f frame) {
		d := ""
		for _, t := range x {
			d += place("M", f.x(t.value), f.top) + place("V", f.bottom)
		}
		for _, t := range y {
			d += place("M", f.left, f.y(t.value)) + place("H", f.right)
		}
		f.path(stroke{class: "grid"}, "thin", d)
	}
}

// line joins points in their order.
func line(s stroke, points []point) mark {
	return func(f frame) { f.path(s, "curve", f.along(points)) }
}

// area fills what lies between points and the lower end of the panel.
func area(s stroke, points []point) mark {
	return func(f frame) {
		if len(points) > 0 {
			f.path(stroke{class: s.class}, "tint",
				f.along(points)+place("V", f.bottom)+place("H", f.x(points[0].x))+"z")
		}
	}
}

// marks draws the marker of l at each point.
func marks(l look, r float64, points []point) mark {
	return func(f frame) {
		d := ""
		for _, q := range points {
			d += l.glyph(f.x(q.x), f.y(q.y), r)
		}
		kind := "fill"
		if l.hollow {
			kind = "thin"
		}
		f.path(stroke{class: l.class}, kind, d)
	}
}

// box is a rectangle from lo to hi, width wide in values of the horizontal axis.
type box struct{ x, width, lo, hi float64 }

// boxes fills all of its boxes as one path, which keeps files small. One without height is drawn as a stroke, so that
// it is seen.
func boxes(class string, all []box) mark {
	return func(f frame) {
		const least = 2
		d := ""
		for _, q := range all {
			low, high := f.y(q.lo), f.y(q.hi)
			if low-high < least {
				middle := (low + high) / 2
				low, high = middle+least/2, middle-least/2
			}
			d += place("M", f.x(q.x-q.width/2), low) + place("H", f.x(q.x+q.width/2)) + place("V", high) + place("H", f.x(q.x-q.width/2)) + "z"
		}
		f.path(stroke{class: class}, "tint", d)
	}
}

// strokes are level lines, as wide as the boxes that they cross.
func strokes(s stroke, width float64, at []point) mark {
	return func(f frame) {
		d := ""
		for _, q := range at {
			d += place("M", f.x(q.x-width/2), f.y(q.y)) + place("H", f.x(q.x+width/2))
		}
		f.path(s, "thin", d)
	}
}

// stripe shades the whole height of a panel from one place of the horizontal axis to another, and draws its edges.
func stripe(from, to float64) mark {
	return func(f frame) {
		left, right := max(f.x(from), f.left), min(f.x(to), f.right)
		if left > right {
			return
		}
		right = max(right, left+1) // one too short to be seen is seen all the same
		f.fill("tint", "orange", left, f.top, right, f.bottom)
		f.path(stroke{class: "orange"}, "thin", place("M", left, f.top)+place("V", f.bottom)+place("M", right, f.top)+place("V", f.bottom))
	}
}

// label is text dy below a place and dx to the right of it, or if that would leave the panel as much to the left. One
// that is centered stands on the middle of its place, one that is ended ends there, and one that is boxed has a
// background that lets it stand on lines.
type label struct {
	at                     point
	dx, dy                 float64
	text                   string
	centered, ended, boxed bool
}

func labels(ls ...label) mark {
	return func(f frame) {
		for _, l := range ls {
			width := widthOf(l.text, tickSize)
			left := f.x(l.at.x) + l.dx
			switch {
			case l.centered:
				left = max(min(f.x(l.at.x)-width/2, f.right-width), f.left)
			case l.ended, left+width > f.right:
				left = max(f.x(l.at.x)-l.dx-width, f.left)
			}
			middle := f.y(l.at.y) + l.dy
			if l.boxed {
				f.fill("fill", "back", left-2, middle-0.7*tickSize, left+width+2, middle+0.7*tickSize)
			}
			f.text("ink", tickSize, left, middle, l.text)
		}
	}
}

// message is a sentence in the middle of a panel that has nothing else to show.
func message(text string) mark {
	return func(f frame) {
		f.text("faint", labelSize, (f.left+f.right-widthOf(text, labelSize))/2, (f.top+f.bottom)/2, text)
	}
}

// key is an entry of a legend: a sample, drawn from left to right at a height, and its name.
type key struct {
	name   string
	sample func(c *canvas, left, right, y float64)
}

func (k key) width() float64 { return swatch + 5 + widthOf(k.name, labelSize) + 18 }

// lineKey returns the entry of a line.
func lineKey(name string, s stroke, kind string) key {
	return key{name, func(c *canvas, left, right, y float64) { c.level(s, kind, left, right, y) }}
}

// lookKey returns the entry of a line with markers on it.
func lookKey(name string, l look, r float64) key {
	return key{name, func(c *canvas, left, right, y float64) {
		c.level(l.stroke, "curve", left, right, y)
		kind := "fill"
		if l.hollow {
			kind = "thin"
		}
		c.path(stroke{class: l.class}, kind, l.glyph((left+right)/2, y, r))
	}}
}

// boxKey returns the entry of a shade.
func boxKey(name, class string) key {
	return key{name, func(c *canvas, left, right, y float64) { c.fill("tint", class, left, y-5, right, y+5) }}
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

// upper returns the largest of values, or 0 if none is above 0. It skips NaN.
func upper(values ...float64) float64 {
	most := 0.0
	for _, v := range values {
		if v > most && !math.IsInf(v, 1) {
			most = v
		}
	}
	return most
}
