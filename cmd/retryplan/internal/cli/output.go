package cli

import (
	"bytes"
	"encoding/json"
	"fmt"
	"unicode"
	"unicode/utf16"

	"github.com/jedib0t/go-pretty/v6/table"
	"github.com/jedib0t/go-pretty/v6/text"

	"github.com/retrygo/retry/cmd/retryplan/internal/literal"
	"github.com/retrygo/retry/cmd/retryplan/internal/wire"
)

// grid is a table in plain characters: columns two spaces apart, a line under the header.
type grid struct {
	header []string
	rows   [][]string
	left   map[int]bool // columns that are words, not numbers
}

func newGrid(header ...string) *grid { return &grid{header: header, left: map[int]bool{}} }

// words makes columns flush left.
func (g *grid) words(columns ...int) *grid {
	for _, c := range columns {
		g.left[c] = true
	}
	return g
}

// empty reports whether no row has anything in a column.
func (g *grid) empty(column int) bool {
	for _, row := range g.rows {
		if column < len(row) && row[column] != "" {
			return false
		}
	}
	return true
}

// clear empties a column, so that it is left out.
func (g *grid) clear(column int) {
	for _, row := range g.rows {
		row[column] = ""
	}
}

func (g *grid) row(cells ...string) { g.rows = append(g.rows, cells) }

// style has no borders, so that columns survive cut and awk, and no colors.
var style = table.Style{
	Name:   "plain",
	Box:    table.BoxStyle{MiddleHorizontal: "-", MiddleSeparator: "  ", MiddleVertical: "  ", PaddingRight: ""},
	Format: table.FormatOptions{Header: text.FormatDefault, Row: text.FormatDefault},
	Options: table.Options{
		SeparateColumns: true,
		SeparateHeader:  true,
	},
}

// print prints the table; a column in which no row has anything is left out, unless it is the first.
func (a *app) print(g *grid) {
	w := table.NewWriter()
	w.SetStyle(style)
	w.SuppressTrailingSpaces()
	var kept []int
	for c := range g.header {
		if c == 0 || !g.empty(c) {
			kept = append(kept, c)
		}
	}
	var configs []table.ColumnConfig
	header := table.Row{}
	titled := false
	for i, c := range kept {
		align := text.AlignRight
		if g.left[c] {
			align = text.AlignLeft
		}
		configs = append(configs, table.ColumnConfig{Number: i + 1, Align: align, AlignHeader: align})
		header = append(header, g.header[c])
		titled = titled || g.header[c] != ""
	}
	if !titled { // facts: a label, and a sentence that may be long
		first := 0
		for _, row := range g.rows {
			first = max(first, len(row[0]))
		}
		configs[len(configs)-1].WidthMax = a.width() - first - 2
		configs[len(configs)-1].WidthMaxEnforcer = text.WrapSoft
	}
	w.SetColumnConfigs(configs)
	if titled {
		w.AppendHeader(header)
	}
	for _, row := range g.rows {
		cells := table.Row{}
		for _, c := range kept {
			cell := ""
			if c < len(row) {
				cell = wire.OneLine(row[c])
			}
			cells = append(cells, cell)
		}
		w.AppendRow(cells)
	}
	a.line("%s", w.Render())
}

// line prints a line; errors of the writer come up when it is flushed.
func (a *app) line(format string, args ...any) { fmt.Fprintf(a.out, format+"\n", args...) }

// printJSON prints v as one line of JSON that a terminal can show: beyond ASCII, encoding/json leaves control
// characters as they are.
func (a *app) printJSON(v any) error {
	var b bytes.Buffer
	encoder := json.NewEncoder(&b)
	encoder.SetEscapeHTML(false)
	if err := encoder.Encode(v); err != nil {
		return err
	}
	for _, r := range literal.CompactJSON(b.String()) {
		switch {
		case r == '\n' || unicode.IsPrint(r):
			a.out.WriteRune(r)
		case r > 0xffff:
			high, low := utf16.EncodeRune(r)
			fmt.Fprintf(a.out, `\u%04x\u%04x`, high, low)
		default:
			fmt.Fprintf(a.out, `\u%04x`, r)
		}
	}
	return nil // an error of the writer comes up when it is flushed
}

// policiesText returns "1 policy", "2 policies".
func policiesText(n int) string {
	if n == 1 {
		return "1 policy"
	}
	return fmt.Sprintf("%d policies", n)
}

// plural returns "1 run", "2 runs".
func plural(n int, noun string) string {
	if n == 1 {
		return "1 " + noun
	}
	return fmt.Sprintf("%d %ss", n, noun)
}
