// Package plots draws the results of package retryplan, as SVG elements of a page.
//
// The same input gives the same bytes. Pictures are light or dark as their reader prefers. Lines differ in dashes as
// well as in color, so that they survive a gray printer.
package plots

// Picture is charts, one below the other.
type Picture []chart

// Part returns chart i of p as an SVG element for a page that links to Stylesheet: so wide, without a
// background, and with axes no higher than most, if that leaves room for them. Sizes are in pixels.
func (p Picture) Part(i int, width, most float64) string {
	part := p[i]
	part.height = min(part.height, max(most-60, 40))
	c := canvas{width: width}
	height := part.draw(&c, 0, 0, width)
	return element(width, height, `aria-hidden="true"`, c.String())
}
