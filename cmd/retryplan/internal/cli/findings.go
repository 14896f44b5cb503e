package cli

import (
	"fmt"
	"strings"

	"github.com/spf13/pflag"

	"github.com/retrygo/retry/cmd/retryplan/internal/wire"
	"github.com/retrygo/retry/retryplan"
)

// guard collects what --fail-on is about.
type guard struct {
	level  retryplan.Level // zero: nothing fails
	caught []string
}

// add adds --fail-on, whose default is a level or "" for none.
func (g *guard) add(flags *pflag.FlagSet, preset string) {
	g.level, _ = wire.Parse(retryplan.Note, retryplan.Severe, preset)
	flags.Var(&funcFlag{set: func(text string) error {
		level, err := wire.Parse(retryplan.Note, retryplan.Severe, text)
		if err != nil && text != "none" {
			return fmt.Errorf("%q is not one of none, note, warning, severe", text)
		}
		g.level = level
		return nil
	}, kind: "level", text: preset}, "fail-on", "exit with status 1 for findings of this level or above: none, note, warning or severe")
}

// findings notes what of findings is grave enough.
func (g *guard) findings(name string, findings []retryplan.Finding) {
	for _, f := range findings {
		g.note(f.Level, name+" "+f.Code)
	}
}

// gravity has the levels of what is no good news.
var gravity = map[retryplan.Stability]retryplan.Level{
	retryplan.Vulnerable: retryplan.Note, retryplan.Metastable: retryplan.Severe, retryplan.Overloaded: retryplan.Severe,
}

// verdicts are the codes of these as findings.
var verdicts = []string{retryplan.Vulnerable.String(), retryplan.Metastable.String(), retryplan.Overloaded.String()}

// stability notes a stability that is no good news.
func (g *guard) stability(name string, s retryplan.Stability) {
	g.note(gravity[s], fmt.Sprintf("%s is %v", name, s))
}

// note notes one thing of a level.
func (g *guard) note(level retryplan.Level, what string) {
	if g.level != 0 && level >= g.level {
		g.caught = append(g.caught, what)
	}
}

// err returns an error that names what was caught, or the first ten of it, since it is one line.
func (g *guard) err() error {
	if len(g.caught) == 0 {
		return nil
	}
	named := strings.Join(g.caught[:min(len(g.caught), 10)], ", ")
	if more := len(g.caught) - 10; more > 0 {
		named += fmt.Sprintf(" and %d more", more)
	}
	return fmt.Errorf("%s at or above %s: %s", plural(len(g.caught), "finding"), g.level.String(), named)
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
