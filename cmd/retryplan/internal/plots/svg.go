package plots

import (
	_ "embed"
	"fmt"
	"html"
	"math"
	"strconv"
	"strings"
	"unicode/utf8"
)

// Stylesheet has the colors of pictures, light and dark. A file includes it; a page that shows parts of pictures links
// to it.
//
//go:embed chart.css
var Stylesheet string

// Sizes in CSS pixels.
const (
	labelSize = 12.
	tickSize  = 11. // the least that reads well
	rowHeight = 18.
	swatch    = 28.
	gap       = 8.
	beside    = 60. // left of the vertical axis, for its labels
	after     = 30. // right of the horizontal axis: its last label may stand at its very end
)

// element returns an SVG element.
func element(width, height float64, attribute, content string) string {
	return fmt.Sprintf(`<svg xmlns="http://www.w3.org/2000/svg" class="chart" width="%[1]s" height="%[2]s" viewBox="0 0 %[1]s %[2]s" %[3]s>`+
		"\n%[4]s</svg>\n", pixels(width), pixels(math.Ceil(height)), attribute, content)
}

// canvas is the content of an SVG element. Places are in pixels from its upper left corner.
type canvas struct {
	strings.Builder
	width float64
}

// path draws d. The class kind of Stylesheet says whether the path is filled or stroked, class is its color.
func (c *canvas) path(kind, class, dash, d string) {
	if d == "" {
		return
	}
	if dash != "" {
		class += `" stroke-dasharray="` + dash
	}
	fmt.Fprintf(c, `<path class="%s %s" d="%s"/>`+"\n", kind, class, d)
}

// text writes a line of text. Its start, middle or end is at x, and its middle is at the height y. A text that starts at x
// is squeezed if it could leave c.
func (c *canvas) text(class, anchor string, size, x, y float64, text string) {
	if room := c.width - x; anchor == "start" && widthOf(text, size) > room {
		anchor += `" lengthAdjust="spacingAndGlyphs" textLength="` + pixels(room)
	}
	fmt.Fprintf(c, `<text class="%s" text-anchor="%s" font-size="%s" x="%s" y="%s">%s</text>`+"\n",
		class, anchor, pixels(size), pixels(x), pixels(y+0.35*size), html.EscapeString(text))
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

// rectangle returns the path of a rectangle.
func rectangle(left, top, right, bottom float64) string {
	return place("M", left, bottom) + place("H", right) + place("V", top) + place("H", left) + "z"
}

// pixels returns v rounded to a tenth of a pixel, within a range that any renderer can draw.
func pixels(v float64) string {
	if math.IsNaN(v) {
		v = 0
	}
	v = min(max(math.Round(v*10)/10, -1e5), 1e5) + 0 // not -0
	return strconv.FormatFloat(v, 'f', -1, 64)
}

// widthOf returns an upper bound of the width of text in pixels. Words and figures in Helvetica, Arial and Liberation
// Sans take less than 0.6 times the font size per character.
func widthOf(text string, size float64) float64 {
	return 0.6 * size * float64(utf8.RuneCountInString(text))
}
