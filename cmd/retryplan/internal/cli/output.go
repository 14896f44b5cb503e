package cli

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"strings"
	"unicode"
	"unicode/utf16"
	"unicode/utf8"

	"github.com/jedib0t/go-pretty/v6/table"
	"github.com/jedib0t/go-pretty/v6/text"
	"github.com/spf13/pflag"

	"github.com/retrygo/retry/cmd/retryplan/internal/literal"
	"github.com/retrygo/retry/cmd/retryplan/internal/plots"
	"github.com/retrygo/retry/cmd/retryplan/internal/wire"
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

// grid is a table in plain characters: columns two spaces apart, a line under the header. A column in which no row has
// anything is left out.
type grid struct {
	table.Writer
	columns int
}

func newGrid(header ...string) *grid {
	g := &grid{table.NewWriter(), len(header)}
	g.SetStyle(style)
	g.SuppressTrailingSpaces()
	g.SuppressEmptyColumns()
	g.AppendHeader(row(header))
	return g.words()
}

// words makes columns, from 0 on, flush left. The others are numbers.
func (g *grid) words(columns ...int) *grid {
	configs := make([]table.ColumnConfig, g.columns)
	for i := range configs {
		configs[i] = table.ColumnConfig{Number: i + 1, Align: text.AlignRight, AlignHeader: text.AlignRight}
	}
	for _, c := range columns {
		configs[c].Align, configs[c].AlignHeader = text.AlignLeft, text.AlignLeft
	}
	g.SetColumnConfigs(configs)
	return g
}

func (g *grid) row(cells ...string) { g.AppendRow(row(cells)) }

func row(cells []string) (r table.Row) {
	for _, cell := range cells {
		r = append(r, wire.OneLine(cell))
	}
	return r
}

func (a *app) print(g *grid) { a.line("%s", g.Render()) }

// facts are labels, each with a sentence that may be long.
type facts [][2]string

func (f *facts) add(label, sentence string) { *f = append(*f, [2]string{label, sentence}) }

func (a *app) printFacts(f facts) {
	longest := 0
	for _, fact := range f {
		longest = max(longest, len(fact[0]))
	}
	for _, fact := range f {
		a.wrapped(fmt.Sprintf("%-*s  ", longest, fact[0]), fact[1], longest+2)
	}
}

// line prints a line; errors of the writer come up when it is flushed.
func (a *app) line(format string, args ...any) { fmt.Fprintf(a.out, format+"\n", args...) }

// measure is the width of text unless the terminal is narrower: the default width of a terminal.
const measure = 80

// wrapped prints a sentence after a label, with its other lines indented by so many spaces.
func (a *app) wrapped(label, sentence string, indent int) {
	width := measure
	if a.Width > 0 {
		width = max(min(a.Width, measure), 40)
	}
	line, columns, empty := label, utf8.RuneCountInString(label), true
	for word := range strings.FieldsSeq(wire.OneLine(sentence)) {
		n := utf8.RuneCountInString(word)
		switch {
		case empty:
		case columns+1+n > width:
			a.line("%s", line)
			line, columns = strings.Repeat(" ", indent), indent
		default:
			line, columns = line+" ", columns+1
		}
		line, columns, empty = line+word, columns+n, false
	}
	a.line("%s", line)
}

// shown is what --json prints of one policy or chain, as far as the command has it.
type shown struct {
	Name        string         `json:"name,omitempty"`   // as the output calls it
	Change      string         `json:"change,omitempty"` // of a chain
	Policy      any            `json:"policy,omitempty"`
	Fleet       any            `json:"fleet,omitempty"`
	Scenario    any            `json:"scenario,omitempty"`
	Plan        any            `json:"plan,omitempty"`
	Result      any            `json:"result,omitempty"`      // with the first seed
	Spread      *spread        `json:"spread,omitempty"`      // with --seeds
	Interrupted bool           `json:"interrupted,omitempty"` // Result is what was seen until then
	Certificate any            `json:"certificate,omitempty"`
	Simulation  any            `json:"simulation,omitempty"`
	Changes     []shown        `json:"changes,omitzero"`
	Findings    []wire.Finding `json:"findings,omitzero"`
}

// policy prints what text prints of a policy below its title, or keeps data for --json.
func (a *app) policy(n named, data shown, text func()) {
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

// finish prints what was made of the policies with --json.
func (a *app) finish() error {
	if !a.json {
		return nil
	}
	return a.printJSON(object{"policies": a.all})
}

// object is one of JSON, whose keys are sorted.
type object = map[string]any

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

// plural returns "1 run", "2 runs", "2 policies".
func plural(n int, noun string) string {
	switch stem, ok := strings.CutSuffix(noun, "y"); {
	case n == 1:
		return "1 " + noun
	case ok:
		return fmt.Sprintf("%d %sies", n, stem)
	}
	return fmt.Sprintf("%d %ss", n, noun)
}

// graph is the file that a picture goes to, empty for none.
type graph struct{ file string }

func (g *graph) add(flags *pflag.FlagSet) {
	flags.Var(&funcFlag{set: func(text string) error {
		if plots.CheckFile(text) != nil {
			return errors.New("give a file that ends in .svg")
		}
		if g.file != "" {
			return fmt.Errorf("%s is given already, and one picture is drawn", g.file)
		}
		g.file = text
		return nil
	}, kind: "file"}, "plot", "draw a picture into this `file`, which ends in .svg")
}

// fits refuses a picture of more policies than one can show, before anything is computed.
func (g *graph) fits(policies int) error {
	if g.file != "" && policies > plots.Most {
		return misusef("a picture shows up to %d policies, not %d", plots.Most, policies)
	}
	return nil
}

// draw puts a picture into the file, if there is one.
func (a *app) draw(g *graph, picture func() (*plots.Picture, error)) error {
	if g.file == "" {
		return nil
	}
	drawn, err := picture()
	if err != nil {
		return err
	}
	if err := drawn.Save(g.file); err != nil {
		return fmt.Errorf("--plot: %w", err)
	}
	a.remark("drew %s", g.file)
	return nil
}
