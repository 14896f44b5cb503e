package cli

import (
	"fmt"
	"strings"

	"github.com/jedib0t/go-pretty/v6/table"
	"github.com/jedib0t/go-pretty/v6/text"

	"github.com/retrygo/retry/cmd/retryplan/internal/say"
)

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

// grid is a table in plain characters. Columns without a cell are left out.
type grid struct{ table.Writer }

// newGrid returns a table. The columns whose headers begin with a minus sign, which is not shown, are flush left.
func newGrid(header ...string) grid {
	g := grid{table.NewWriter()}
	g.SetStyle(style)
	g.SuppressTrailingSpaces()
	g.SuppressEmptyColumns()
	var columns []table.ColumnConfig
	for i, title := range header {
		var left bool
		align := text.AlignRight
		if header[i], left = strings.CutPrefix(title, "-"); left {
			align = text.AlignLeft
		}
		columns = append(columns, table.ColumnConfig{Number: i + 1, Align: align, AlignHeader: align})
	}
	g.SetColumnConfigs(columns)
	g.AppendHeader(row(header))
	return g
}

func (g grid) row(cells ...string) { g.AppendRow(row(cells)) }

func row(cells []string) (r table.Row) {
	for _, cell := range cells {
		r = append(r, say.OneLine(cell))
	}
	return r
}

func (a *app) print(g grid) { a.line("%s", g.Render()) }

// facts prints a line for each fact.
func (a *app) facts(all say.Facts) {
	longest := 0
	for _, f := range all {
		longest = max(longest, len(f.Name))
	}
	for _, f := range all {
		a.wrapped(fmt.Sprintf("%-*s  ", longest, f.Name), f.Figure+f.More, longest+2)
	}
}

// line prints a line. The buffer keeps an error until it is flushed.
func (a *app) line(format string, args ...any) { fmt.Fprintf(a.out, format+"\n", args...) }

// wrapped prints a sentence after a label, in lines of at most 80 columns. All lines but the first are indented, by no
// fewer columns than the label has.
func (a *app) wrapped(label, sentence string, indent int) {
	for line := range strings.SplitSeq(text.WrapSoft(say.OneLine(sentence), max(80-indent, 40)), "\n") {
		a.line("%s%s", label, strings.TrimRight(line, " "))
		label = strings.Repeat(" ", indent)
	}
}

// show prints a policy, and then calls text to print the figures about it.
func (a *app) show(n named, text func()) {
	if a.shown {
		a.line("")
	}
	a.shown = true
	a.title(n)
	a.line("")
	text()
}

// title prints a policy on one line.
func (a *app) title(n named) {
	a.wrapped("", n.name+": "+say.Schedule(n.policy), 2)
	if hint := n.policy.MaxHint; hint > 0 {
		a.line("longest hint that is honored: %s", say.Span(hint))
	}
}
