package plots

import (
	"bytes"
	"fmt"
	"html"
	"io"

	"gonum.org/v1/plot/font"
	"gonum.org/v1/plot/vg"
	"gonum.org/v1/plot/vg/vgsvg"
)

// svgCanvas is a vgsvg.Canvas whose text keeps its width when the reader has other fonts than those that it was measured
// with, and which names itself for those who cannot see it.
type svgCanvas struct {
	*vgsvg.Canvas
	widths []vg.Length // of each text, in order
}

// FillString makes svgCanvas a vg.Canvas.
func (c *svgCanvas) FillString(f font.Face, at vg.Point, text string) {
	c.widths = append(c.widths, f.Width(text))
	c.Canvas.FillString(f, at, text)
}

var (
	textStart  = []byte("<text ")
	familyHere = []byte("font-family:Liberation Sans;font-variant:normal;")
	plainHere  = []byte("font-weight:normal;")
	uprights   = []byte("font-style:normal;")
)

// write writes the picture. The fonts are named once, for all of it: Arial and Helvetica have the widths of Liberation Sans.
func (c *svgCanvas) write(w io.Writer, title string) error {
	var b bytes.Buffer
	if _, err := c.WriteTo(&b); err != nil {
		return err
	}
	head, body, found := bytes.Cut(b.Bytes(), []byte(">\n<g "))
	if !found {
		return fmt.Errorf("the drawing library wrote no group: %.80q", b.Bytes())
	}
	head = bytes.Replace(head, []byte("<svg "),
		[]byte(`<svg role="img" font-family="Liberation Sans, Arial, Helvetica, sans-serif" `), 1)
	for _, same := range [][]byte{familyHere, plainHere, uprights} {
		body = bytes.ReplaceAll(body, same, nil)
	}
	var out bytes.Buffer
	out.Write(head)
	out.WriteString(">\n<title>" + html.EscapeString(title) + "</title>\n<g ")
	for _, width := range c.widths {
		before, after, found := bytes.Cut(body, textStart)
		if !found {
			break
		}
		out.Write(before)
		fmt.Fprintf(&out, `<text textLength="%.4g" lengthAdjust="spacingAndGlyphs" `, width.Points())
		body = after
	}
	out.Write(body)
	_, err := w.Write(out.Bytes())
	return err
}
