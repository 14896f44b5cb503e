package cli

import (
	"cmp"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"unicode"
	"unicode/utf16"

	"github.com/jedib0t/go-pretty/v6/table"
	"github.com/jedib0t/go-pretty/v6/text"
	"github.com/spf13/pflag"

	"github.com/retrygo/retry/cmd/retryplan/internal/plots"
	"github.com/retrygo/retry/cmd/retryplan/internal/say"
	"github.com/retrygo/retry/cmd/retryplan/internal/wire"
	"github.com/retrygo/retry/retryplan"
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

// shown is what --json prints of one policy or chain: the fields that the command has.
type shown struct {
	Name                string // as in the text
	Change              string // of a chain
	Policy, Fleet, Plan any
	Nodes               any // of a chain
	Verdict, Simulation any
	Band                any
	Changes             []shown
	Findings            []finding
	Advice              []retryplan.Advice
}

// show prints a policy and then, by text, what there is to say about it, or keeps data for --json.
func (a *app) show(n named, data shown, text func()) {
	data.Name, data.Policy = n.name, n.policy
	a.all = append(a.all, data)
	if a.json {
		return
	}
	if len(a.all) > 1 {
		a.line("")
	}
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

// finish ends a command about policies: it prints the JSON, draws the picture, and returns the first error, of which the
// last is that of --fail-on.
func (a *app) finish() error { return cmp.Or(a.printed(), a.draw(), a.guard()) }

// printed prints the policies so far if --json is given.
func (a *app) printed() error {
	if !a.json {
		return nil
	}
	return a.printJSON(map[string]any{"policies": a.all})
}

// printJSON prints v as one line of JSON. It escapes what a terminal would obey, which encoding/json leaves alone beyond
// ASCII.
func (a *app) printJSON(v any) error {
	data, err := wire.JSON(v)
	for _, r := range string(data) {
		if r == '\n' || unicode.IsPrint(r) {
			a.out.WriteRune(r)
			continue
		}
		for _, unit := range utf16.Encode([]rune{r}) {
			fmt.Fprintf(a.out, `\u%04x`, unit)
		}
	}
	return err // the buffer keeps its own until it is flushed
}

func (a *app) plotFlag(flags *pflag.FlagSet) {
	flags.StringVar(&a.plot, "plot", "", "draw a picture into this `file`, whose name ends in .svg")
}

// fits refuses a picture that cannot be drawn, before anything is computed.
func (a *app) fits(policies int) error {
	switch {
	case !a.given("plot"):
		return nil
	case !strings.EqualFold(filepath.Ext(a.plot), ".svg"):
		return misusef("--plot %q does not end in .svg", a.plot)
	case policies > plots.Most:
		return misusef("a picture shows up to %d policies, not %d", plots.Most, policies)
	}
	return nil
}

// draw draws the simulations, or the schedules if there are none, if --plot is given.
func (a *app) draw() error {
	if a.plot == "" {
		return nil
	}
	var picture plots.Picture
	if len(a.runs) > 0 {
		picture = plots.Simulation(a.runs[:min(len(a.runs), plots.Most)]...)
	} else {
		picture = plots.Plans(a.plans...)
	}
	if err := os.WriteFile(a.plot, []byte(picture.SVG()), 0o644); err != nil {
		return fmt.Errorf("--plot: %w", err)
	}
	a.remark("drew %s", a.plot)
	return nil
}
