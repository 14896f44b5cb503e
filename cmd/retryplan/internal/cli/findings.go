package cli

import (
	"fmt"
	"strings"
	"unicode/utf8"

	"github.com/spf13/pflag"

	"github.com/retrygo/retry/cmd/retryplan/internal/wire"
	"github.com/retrygo/retry/retryplan"
)

// guard collects what --fail-on is about.
type guard struct {
	level  retryplan.Level // zero: nothing fails
	caught []string
}

func (g *guard) add(flags *pflag.FlagSet, preset string) {
	if preset != "" {
		_ = g.set(preset)
	}
	flags.Var(&guardFlag{g}, "fail-on", "exit with status 1 for findings of this level or above: none, note, warning or severe")
}

// findings notes what of findings is grave enough.
func (g *guard) findings(name string, findings []retryplan.Finding) {
	for _, f := range findings {
		g.note(f.Level, name+" "+f.Code)
	}
}

// note notes one thing of a level.
func (g *guard) note(level retryplan.Level, what string) {
	if g.level != 0 && level >= g.level {
		g.caught = append(g.caught, what)
	}
}

// err returns an error that names what was caught.
func (g *guard) err() error {
	if len(g.caught) == 0 {
		return nil
	}
	told := strings.Join(g.caught[:min(len(g.caught), mostCaught)], ", ")
	if more := len(g.caught) - mostCaught; more > 0 {
		told += fmt.Sprintf(" and %d more", more)
	}
	return fmt.Errorf("%s at or above %s: %s", plural(len(g.caught), "finding"), g.level.String(), told)
}

// mostCaught is how many findings an error names, since it is one line.
const mostCaught = 10

func (g *guard) set(text string) error {
	if text == "none" {
		g.level = 0
		return nil
	}
	level, err := wire.ParseLevel(text)
	if err != nil {
		return fmt.Errorf("%q is not one of none, note, warning, severe", text)
	}
	g.level = level
	return nil
}

type guardFlag struct{ g *guard }

func (f *guardFlag) Set(text string) error { return f.g.set(text) }
func (f *guardFlag) Type() string          { return "level" }
func (f *guardFlag) String() string {
	if f.g == nil || f.g.level == 0 {
		return ""
	}
	return f.g.level.String()
}

// showFindings prints findings, each with what to do about it.
func (a *app) showFindings(findings []retryplan.Finding) {
	if len(findings) == 0 {
		a.line("no findings")
		return
	}
	a.line("%s", plural(len(findings), "finding"))
	for _, f := range findings {
		a.wrapped(fmt.Sprintf("  %-7s  %s: ", f.Level.String(), f.Code), f.Text, 11)
		if f.Change != "" {
			a.wrapped("           do: ", f.Change, 11)
		}
	}
}

// measure is the width of text unless the terminal is narrower: the default width of a terminal.
const measure = 80

// width returns how wide text may be.
func (a *app) width() int {
	if a.Width > 0 {
		return max(min(a.Width, measure), 40)
	}
	return measure
}

// wrapped prints a sentence after a label, with its other lines indented by so many spaces.
func (a *app) wrapped(label, sentence string, indent int) {
	line, columns, empty := label, utf8.RuneCountInString(label), true
	for word := range strings.FieldsSeq(wire.OneLine(sentence)) {
		n := utf8.RuneCountInString(word)
		switch {
		case empty:
		case columns+1+n > a.width():
			a.line("%s", line)
			line, columns = strings.Repeat(" ", indent), indent
		default:
			line, columns = line+" ", columns+1
		}
		line, columns, empty = line+word, columns+n, false
	}
	a.line("%s", line)
}
