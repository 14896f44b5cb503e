package plots

import (
	_ "embed"
	"fmt"
	"html"
	"math"
	"strconv"
	"strings"

	"github.com/rivo/uniseg"
)

// Stylesheet has the colors of pictures, in light and in dark. A file has it within; a page that shows fragments links
// it.
//
//go:embed chart.css
var Stylesheet string

// Sizes in CSS pixels.
const (
	pictureWidth = 720.
	margin       = 10.
	titleSize    = 15.
	labelSize    = 12.
	tickSize     = 11. // the least that reads well
	legendRow    = 18.
	swatch       = 28.
	gap          = 8. // between charts
)

// look is how a series is drawn: class is that of a color in Stylesheet, glyph the path of a marker around its place.
type look struct {
	class, dash, glyph string
	hollow             bool
}

const (
	circle   = "m-3.5 0a3.5 3.5 0 1 0 7 0a3.5 3.5 0 1 0-7 0z"
	square   = "m-3.2-3.2h6.4v6.4h-6.4z"
	triangle = "m0-3.7l3.7 6.7h-7.4z"
	cross    = "m-3.2-3.2l6.4 6.4m-6.4 0l6.4-6.4"
	plus     = "m-3.7 0h7.4m-3.7-3.7v7.4"
)

// looks differ in dashes and marker, so that color is not needed.
var looks = [Most]look{
	{"blue", "", circle, false},
	{"red", "8 3", square, false},
	{"green", "2.5 2.5", triangle, false},
	{"purple", "11 3 3 3", circle, true},
	{"ink", "15 4", square, true},
	{"orange", "5 3 2 3 2 3", triangle, true},
	{"sky", "4.5 4.5", cross, true},
	{"faint", "1.5 3.5", plus, true},
}

// canvas is an SVG that is being written. Places are in pixels from its upper left corner.
type canvas struct {
	strings.Builder
	width float64
}

func (c *canvas) open(width, height float64, more string) {
	c.width = width
	fmt.Fprintf(c, `<svg xmlns="http://www.w3.org/2000/svg" class="chart" width="%[1]s" height="%[2]s" viewBox="0 0 %[1]s %[2]s" %[3]s>`+"\n",
		pixels(width), pixels(math.Ceil(height)), more)
}

// path draws d: its kind, a class of Stylesheet, says if it is filled or stroked.
func (c *canvas) path(l look, kind, d string) {
	if d == "" {
		return
	}
	fmt.Fprintf(c, `<path class="%s %s"`, kind, l.class)
	if l.dash != "" {
		fmt.Fprintf(c, ` stroke-dasharray="%s"`, l.dash)
	}
	fmt.Fprintf(c, ` d="%s"/>`+"\n", d)
}

// text writes a line of text whose middle is at the height y. It keeps its width if the reader has other fonts, and is
// narrowed if it would leave c.
func (c *canvas) text(class string, size, x, y float64, text string) {
	width := min(widthOf(text, size), c.width-x)
	fmt.Fprintf(c, `<text class="%s" font-size="%s" x="%s" y="%s" textLength="%s" lengthAdjust="spacingAndGlyphs">%s</text>`+"\n",
		class, pixels(size), pixels(x), pixels(y+0.35*size), pixels(width), html.EscapeString(text))
}

// upright writes a text that is read from below.
func (c *canvas) upright(size, x, y float64, text string) {
	fmt.Fprintf(c, `<g transform="translate(%s %s) rotate(-90)">`, pixels(x), pixels(y))
	c.text("ink", size, -widthOf(text, size)/2, 0, text)
	c.WriteString("</g>\n")
}

// place returns a command of a path.
func place(command string, at ...float64) string {
	for i, v := range at {
		if i > 0 {
			command += " "
		}
		command += pixels(v)
	}
	return command
}

// rectangle returns the path of one.
func rectangle(left, top, right, bottom float64) string {
	return place("M", left, bottom) + place("H", right) + place("V", top) + place("H", left) + "z"
}

// pixels returns v to a tenth of a pixel, and keeps it in a range that any renderer can draw.
func pixels(v float64) string {
	if math.IsNaN(v) {
		v = 0
	}
	v = min(max(math.Round(v*10)/10, -1e5), 1e5) + 0 // not -0
	return strconv.FormatFloat(v, 'f', -1, 64)
}

// widths are the advances of Helvetica in thousandths of the size, from space on: Adobe Font Metrics, Helvetica.afm
// 4.1. Arial and Liberation Sans have the same.
var widths = [...]float64{
	278, 278, 355, 556, 556, 889, 667, 191, 333, 333, 389, 584, 278, 333, 278, 278, 556, 556, 556, 556, 556, 556, 556, 556, 556, 556,
	278, 278, 584, 584, 584, 556, 1015, 667, 667, 722, 722, 667, 611, 778, 722, 278, 500, 667, 556, 833, 722, 778, 667, 778, 722, 667,
	611, 722, 667, 944, 667, 667, 611, 278, 278, 278, 469, 556, 333, 556, 556, 500, 556, 556, 278, 556, 556, 222, 222, 500, 222, 833,
	556, 556, 556, 556, 333, 500, 278, 556, 500, 722, 500, 500, 500, 334, 260, 334, 584,
}

// widthOf returns how wide a text is, in pixels. A column of what Helvetica has not is a thousandth wide for 600.
func widthOf(text string, size float64) float64 {
	sum := 0.
	for _, r := range text {
		if i := int(r) - ' '; i >= 0 && i < len(widths) {
			sum += widths[i]
		} else {
			sum += 600 * float64(uniseg.StringWidth(string(r)))
		}
	}
	return sum * size / 1000
}
