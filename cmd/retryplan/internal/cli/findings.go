package cli

import (
	"fmt"
	"path/filepath"
	"slices"
	"strings"

	"github.com/retrygo/retry"
	"github.com/retrygo/retry/cmd/retryplan/internal/say"
	"github.com/retrygo/retry/retryplan"
)

// finding is a finding about a policy, with its place in a document.
type finding struct {
	retryplan.Finding
	Place  place
	policy string
}

// findings returns the findings about a policy that are not ignored, and notes them for --fail-on. The policy has the
// budget of the fleet if there is one.
func (a *app) findings(n named) []finding {
	p := n.policy
	if c := a.fleet.Budget; c != nil {
		p.Budget = retry.NewBudget(*c)
	}
	return a.report(n, retryplan.Lint(p, a.setting)...)
}

// report returns the findings that are not ignored, and notes them for --fail-on. If there are none the list is empty, not
// nil.
func (a *app) report(n named, all ...retryplan.Finding) []finding {
	reported := []finding{}
	for _, f := range all {
		if f.Level != 0 && !slices.Contains(a.ignored, f.Code) && !slices.Contains(a.ignored, n.name+":"+f.Code) {
			a.note(f.Level, n.name+" "+f.Code)
			reported = append(reported, finding{f, n.place, n.name})
		}
	}
	return reported
}

// lostCode is the code of a verdict that is a finding: seeds of the fleet are lost.
const lostCode = "fleet-lost"

// note notes a finding for --fail-on.
func (a *app) note(level retryplan.Level, what string) {
	if a.failOn != 0 && level >= a.failOn {
		a.caught = append(a.caught, what)
	}
}

// guard returns an error that names the first ten findings of --fail-on.
func (a *app) guard() error {
	if len(a.caught) == 0 {
		return nil
	}
	named := strings.Join(a.caught[:min(len(a.caught), 10)], ", ")
	if more := len(a.caught) - 10; more > 0 {
		named += fmt.Sprintf(" and %d more", more)
	}
	return fmt.Errorf("findings at or above %v: %s", a.failOn, named)
}

// showFindings prints an empty line and findings, with their changes or without.
func (a *app) showFindings(findings []finding, changes bool) {
	if len(findings) == 0 {
		a.line("\nno findings")
		return
	}
	a.line("\nfindings")
	for _, f := range findings {
		a.wrapped(fmt.Sprintf("  %-7v  ", f.Level), f.Code+": "+f.Text, 11)
		if changes && f.Change != "" {
			a.wrapped("           ", "do: "+f.Change, 11)
		}
	}
}

// sentences returns the text of a finding and its change.
func (f finding) sentences() string {
	if f.Change == "" {
		return f.Text
	}
	return f.Text + " Do: " + f.Change
}

func (f finding) line() string {
	text := fmt.Sprintf("%s: %s %s: %s", f.policy, f.Level, f.Code, f.sentences())
	if f.Place.File != "" {
		text = fmt.Sprintf("%s:%d: %s", f.Place.File, f.Place.Line, text)
	}
	return say.OneLine(text)
}

// annotation returns a command of GitHub's runners: https://docs.github.com/actions/reference/workflow-commands.
func (f finding) annotation() string {
	kind := map[retryplan.Level]string{retryplan.Note: "notice", retryplan.Warning: "warning", retryplan.Severe: "error"}[f.Level]
	properties := "title=" + property.Replace("retryplan "+f.Code)
	if f.Place.File != "" {
		properties = fmt.Sprintf("file=%s,line=%d,%s", property.Replace(filepath.ToSlash(f.Place.File)), max(f.Place.Line, 1), properties)
	}
	return fmt.Sprintf("::%s %s::%s", kind, properties, strings.ReplaceAll(say.OneLine(f.policy+": "+f.sentences()), "%", "%25"))
}

// property makes GitHub's escapes: actions/toolkit, packages/core/src/command.ts.
var property = strings.NewReplacer("%", "%25", "\r", "%0D", "\n", "%0A", ":", "%3A", ",", "%2C")
