package cli

import (
	"fmt"
	"net/url"
	"path/filepath"
	"slices"
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

// reported is a finding about a policy, and the policy's position.
type reported struct {
	retryplan.Finding
	policy string
	file   string // empty for none
	line   int
	reason string // why it is ignored; empty if it is not
}

// sentences return what was found, and what to do about it.
func (r reported) sentences() string {
	if r.Change == "" {
		return r.Text
	}
	return r.Text + " Do: " + r.Change
}

// formats write a report. What is ignored is in that for code scanning only.
var formats = map[string]func(*app, []reported) error{
	"text":   lines(reported.text),
	"github": lines(reported.annotation),
	"sarif":  (*app).sarif,
}

// lines returns a format of one line for each finding.
func lines(line func(reported) string) func(*app, []reported) error {
	return func(a *app, all []reported) error {
		for _, r := range all {
			if r.reason == "" {
				a.line("%s", line(r))
			}
		}
		return nil
	}
}

func (r reported) text() string {
	text := r.policy + ": " + r.Level.String() + " " + r.Code + ": " + r.sentences()
	if r.file != "" {
		text = fmt.Sprintf("%s:%d: %s", r.file, r.line, text)
	}
	return wire.OneLine(text)
}

// annotation returns a command of GitHub's runners: https://docs.github.com/actions/reference/workflow-commands.
func (r reported) annotation() string {
	kinds := map[retryplan.Level]string{retryplan.Note: "notice", retryplan.Warning: "warning", retryplan.Severe: "error"}
	properties := "title=" + property.Replace("retryplan "+r.Code)
	if r.file != "" {
		properties = fmt.Sprintf("file=%s,line=%d,%s", property.Replace(filepath.ToSlash(r.file)), max(r.line, 1), properties)
	}
	return fmt.Sprintf("::%s %s::%s", kinds[r.Level], properties, message.Replace(wire.OneLine(r.policy+": "+r.sentences())))
}

// GitHub's escapes: actions/toolkit, packages/core/src/command.ts.
var (
	message  = strings.NewReplacer("%", "%25", "\r", "%0D", "\n", "%0A")
	property = strings.NewReplacer("%", "%25", "\r", "%0D", "\n", "%0A", ":", "%3A", ",", "%2C")
)

// sarif writes SARIF 2.1.0, in which what is ignored is suppressed.
func (a *app) sarif(all []reported) error {
	levels := map[retryplan.Level]string{retryplan.Note: "note", retryplan.Warning: "warning", retryplan.Severe: "error"}
	rules, results, codes := []object{}, []object{}, []string{}
	for _, r := range all {
		if !slices.Contains(codes, r.Code) {
			codes, rules = append(codes, r.Code), append(rules, object{"id": r.Code})
		}
		result := object{
			"ruleId": r.Code, "ruleIndex": slices.Index(codes, r.Code), "level": levels[r.Level],
			"message": object{"text": r.policy + ": " + r.sentences()},
		}
		if r.file != "" {
			result["locations"] = []object{{"physicalLocation": object{
				"artifactLocation": object{"uri": (&url.URL{Path: filepath.ToSlash(r.file)}).EscapedPath()},
				"region":           object{"startLine": max(r.line, 1)},
			}}}
		}
		if r.reason != "" {
			result["suppressions"] = []object{{"kind": "external", "justification": r.reason}}
		}
		results = append(results, result)
	}
	driver := object{"name": "retryplan", "informationUri": "https://github.com/retrygo/retry", "rules": rules}
	if a.Version != "" {
		driver["version"] = a.Version
	}
	return a.printJSON(object{
		"$schema": "https://json.schemastore.org/sarif-2.1.0.json", "version": "2.1.0",
		"runs": []object{{"tool": object{"driver": driver}, "results": results}},
	})
}
