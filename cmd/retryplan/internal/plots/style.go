package plots

import (
	"image/color"

	xfont "golang.org/x/image/font"
	"gonum.org/v1/plot"
	"gonum.org/v1/plot/font"
	"gonum.org/v1/plot/vg"
	"gonum.org/v1/plot/vg/draw"
)

// The colours are those of Okabe and Ito, "Color Universal Design" (2008), https://jfly.uni-koeln.de/color/, without yellow,
// which cannot be seen on white.
var (
	black  = color.NRGBA{R: 0, G: 0, B: 0, A: 255}
	blue   = color.NRGBA{R: 0, G: 114, B: 178, A: 255}
	red    = color.NRGBA{R: 213, G: 94, B: 0, A: 255} // vermillion
	green  = color.NRGBA{R: 0, G: 158, B: 115, A: 255}
	orange = color.NRGBA{R: 230, G: 159, B: 0, A: 255}
	purple = color.NRGBA{R: 204, G: 121, B: 167, A: 255}
	sky    = color.NRGBA{R: 86, G: 180, B: 233, A: 255}

	ink   = color.NRGBA{R: 34, G: 34, B: 34, A: 255}    // text
	faint = color.NRGBA{R: 96, G: 96, B: 96, A: 255}    // text that matters less
	grid  = color.NRGBA{R: 228, G: 228, B: 228, A: 255} // lighter than any shade
	alarm = color.NRGBA{R: 252, G: 231, B: 200, A: 255} // while a trigger lasts
)

// look is how one of several series is drawn.
type look struct {
	color  color.NRGBA
	dashes []vg.Length
	glyph  draw.GlyphDrawer
}

// looks differ in dashes and marker, so that colour is not needed.
var looks = [Most]look{
	{blue, nil, draw.CircleGlyph{}},
	{red, []vg.Length{6, 2.5}, draw.BoxGlyph{}},
	{green, []vg.Length{2, 2}, draw.PyramidGlyph{}},
	{purple, []vg.Length{8, 2.5, 2, 2.5}, draw.RingGlyph{}},
	{black, []vg.Length{11, 3}, draw.SquareGlyph{}},
	{orange, []vg.Length{4, 2, 1.5, 2, 1.5, 2}, draw.TriangleGlyph{}},
	{sky, []vg.Length{3.5, 3.5}, draw.CrossGlyph{}},
	{faint, []vg.Length{1, 2.5}, draw.PlusGlyph{}},
}

func (l look) line(width vg.Length) draw.LineStyle {
	return draw.LineStyle{Color: l.color, Width: width, Dashes: l.dashes}
}

func (l look) mark(radius vg.Length) draw.GlyphStyle {
	return draw.GlyphStyle{Color: l.color, Radius: radius, Shape: l.glyph}
}

// tint mixes c with white: share 1 is c itself. Mixed rather than transparent, so that layers do not add up to a colour that
// no legend shows.
func tint(c color.NRGBA, share float64) color.NRGBA {
	mix := func(v uint8) uint8 { return uint8(255 - (255-float64(v))*share) }
	return color.NRGBA{R: mix(c.R), G: mix(c.G), B: mix(c.B), A: 255}
}

// Sizes in points; 540 points are 720 CSS pixels.
const (
	pictureWidth vg.Length = 540
	margin       vg.Length = 8
	titleSize    vg.Length = 11
	labelSize    vg.Length = 9
	tickSize     vg.Length = 8.25 // 11 pixels: the least that reads well
	legendRow    vg.Length = 14
	swatch       vg.Length = 22
)

func textStyle(size vg.Length, c color.Color) draw.TextStyle {
	f := font.From(font.Font{Typeface: "Liberation", Variant: "Sans"}, size)
	return draw.TextStyle{Color: c, Font: f, Handler: plot.DefaultTextHandler, YAlign: draw.YCenter}
}

func boldStyle(size vg.Length, c color.Color) draw.TextStyle {
	style := textStyle(size, c)
	style.Font.Weight = xfont.WeightBold
	return style
}
