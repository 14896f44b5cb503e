package plots

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strings"

	"gonum.org/v1/plot"
	"gonum.org/v1/plot/vg"
	"gonum.org/v1/plot/vg/draw"
	"gonum.org/v1/plot/vg/vgimg"
	"gonum.org/v1/plot/vg/vgsvg"
)

// Picture is a drawing that can be written in several forms. The zero Picture is blank. It is not safe for concurrent use.
type Picture struct {
	sections []section
	text     func(width int) string
}

// Format is a kind of picture file.
type Format string

// The formats.
const (
	SVG Format = "svg"
	PNG Format = "png" // two pixels for each CSS pixel
)

// FormatOf returns the format that the ending of a file's name asks for, in upper or lower case, and an error for any other
// ending.
func FormatOf(path string) (Format, error) {
	ending := filepath.Ext(path)
	switch f := Format(strings.ToLower(strings.TrimPrefix(ending, "."))); f {
	case SVG, PNG:
		return f, nil
	case "":
		return "", fmt.Errorf("plots: %q has no ending that says what to draw: want .svg or .png", path)
	}
	return "", fmt.Errorf("plots: %q ends in %q: want .svg or .png", path, ending)
}

// Save writes p to a file, in the format of its ending. A file that is there is replaced; one that could not be written whole
// is removed.
func (p *Picture) Save(path string) error {
	f, err := FormatOf(path)
	if err != nil {
		return err
	}
	var b bytes.Buffer
	if err := p.Write(&b, f); err != nil {
		return err
	}
	if err := os.WriteFile(path, b.Bytes(), 0o644); err != nil {
		var refused *os.PathError // one that could not even be opened is not ours to remove
		if errors.As(err, &refused) && refused.Op == "write" {
			err = errors.Join(err, os.Remove(path))
		}
		return fmt.Errorf("plots: %w", err)
	}
	return nil
}

// Write writes p to w in the given format. It returns an error for an unknown format and those of w.
func (p *Picture) Write(w io.Writer, f Format) error {
	height := 2 * margin
	for _, s := range p.sections {
		height += s.height()
	}
	switch f {
	case SVG:
		c := &svgCanvas{Canvas: vgsvg.New(pictureWidth, height)}
		p.draw(draw.New(c))
		if err := c.write(w, p.title()); err != nil {
			return fmt.Errorf("plots: %w", err)
		}
	case PNG:
		c := vgimg.PngCanvas{Canvas: vgimg.NewWith(vgimg.UseWH(pictureWidth, height), vgimg.UseDPI(2*96))}
		p.draw(draw.New(c))
		if _, err := c.WriteTo(w); err != nil {
			return fmt.Errorf("plots: %w", err)
		}
	default:
		return fmt.Errorf("plots: unknown format %q: want %q or %q", f, SVG, PNG)
	}
	return nil
}

// Text returns p for a terminal of so many columns, clamped to 40 to 200, without colours. It ends with a line break.
func (p *Picture) Text(width int) string {
	if p.text == nil {
		return "\n"
	}
	return p.text(min(max(width, 40), 200))
}

func (p *Picture) title() string {
	var titles []string
	for _, s := range p.sections {
		titles = append(titles, s.title)
	}
	return strings.Join(titles, "; ")
}

func (p *Picture) draw(c draw.Canvas) {
	c.FillPolygon(plot.New().BackgroundColor, corners(c.Rectangle))
	c = draw.Crop(c, margin, -margin, margin, -margin)
	top := c.Max.Y
	left, right := vg.Length(0), vg.Length(0) // of all panels: the most that any needs beside it
	for _, s := range p.sections {
		for _, panel := range s.panels {
			area := panel.DataCanvas(c)
			left, right = max(left, area.Min.X-c.Min.X), max(right, c.Max.X-area.Max.X)
		}
	}
	for _, s := range p.sections {
		part := c
		part.Max.Y = top
		part.Min.Y = top - s.height()
		top = part.Min.Y
		s.draw(part, left, right)
	}
}

// section is a part of a picture: a title, a legend, and panels.
type section struct {
	title  string
	note   string // in smaller letters under the title; empty for none
	keys   []key
	panels []panel
}

type panel struct {
	height vg.Length
	x, y   axis
	*plot.Plot
}

// key is an entry of a legend: a sample, drawn from left to right at a height, and its name.
type key struct {
	name   string
	sample func(c draw.Canvas, left, right, y vg.Length)
}

const gap vg.Length = 6 // between panels

func (s section) height() vg.Length {
	h := 2*gap + titleSize*1.5 + vg.Length(len(s.rows()))*legendRow
	if s.note != "" {
		h += legendRow
	}
	for _, p := range s.panels {
		h += p.height + gap
	}
	return h
}

// rows breaks the legend into lines that fit.
func (s section) rows() [][]key {
	var rows [][]key
	var row []key
	used := vg.Length(0)
	for _, k := range s.keys {
		width := k.width()
		if len(row) > 0 && used+width > pictureWidth-2*margin {
			rows, row, used = append(rows, row), nil, 0
		}
		row, used = append(row, k), used+width
	}
	if len(row) > 0 {
		rows = append(rows, row)
	}
	return rows
}

func (k key) width() vg.Length {
	return swatch + 4 + textStyle(labelSize, ink).Width(k.name) + 14
}

func (s section) draw(c draw.Canvas, left, right vg.Length) {
	y := c.Max.Y - titleSize*0.75
	c.FillText(boldStyle(titleSize, ink), vg.Point{X: c.Min.X, Y: y}, s.title)
	y -= titleSize * 0.75
	if s.note != "" {
		c.FillText(textStyle(labelSize, faint), vg.Point{X: c.Min.X, Y: y - legendRow/2}, s.note)
		y -= legendRow
	}
	for _, row := range s.rows() {
		x := c.Min.X
		for _, k := range row {
			k.sample(c, x, x+swatch, y-legendRow/2)
			c.FillText(textStyle(labelSize, ink), vg.Point{X: x + swatch + 4, Y: y - legendRow/2 + 0.8}, k.name)
			x += k.width()
		}
		y -= legendRow
	}
	y -= gap

	for _, p := range s.panels {
		part := c
		part.Max.Y, part.Min.Y = y, y-p.height
		area := p.DataCanvas(part)
		p.Draw(draw.Crop(part, left-(area.Min.X-part.Min.X), -(right - (part.Max.X - area.Max.X)), 0, 0))
		y -= p.height + gap
	}
}

// newPanel returns an empty panel with its axes and a grid.
func newPanel(height vg.Length, x axis, xLabel string, y axis, yLabel string) panel {
	p := plot.New()
	for _, side := range []struct {
		to    *plot.Axis
		from  axis
		label string
	}{{&p.X, x, xLabel}, {&p.Y, y, yLabel}} {
		// The plot sees a linear axis from 0 to 1: it places the label of any other as if it were linear in its values.
		side.to.Min, side.to.Max = 0, 1
		side.to.Tick.Marker = side.from.normTicks()
		side.to.Tick.Label.Font = textStyle(tickSize, ink).Font
		side.to.Tick.Label.Color = ink
		side.to.Tick.Length = 3
		side.to.Tick.LineStyle.Color, side.to.LineStyle.Color = faint, faint
		side.to.Padding = 0
		side.to.Label.Text = side.label
		side.to.Label.TextStyle.Font = textStyle(labelSize, ink).Font
		side.to.Label.TextStyle.Color = ink
		side.to.Label.Padding = 3
	}
	made := panel{height, x, y, p}
	made.add(gridLines{x.ticks, y.ticks})
	return made
}

// add draws marks on top of what is there.
func (p panel) add(marks ...mark) {
	for _, m := range marks {
		p.Add(layer{p.x, p.y, m})
	}
}

// corners returns the path around r.
func corners(r vg.Rectangle) []vg.Point {
	return []vg.Point{r.Min, {X: r.Max.X, Y: r.Min.Y}, r.Max, {X: r.Min.X, Y: r.Max.Y}}
}
