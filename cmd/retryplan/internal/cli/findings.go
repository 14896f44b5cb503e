package cli

import (
	"fmt"
	"path/filepath"
	"strings"

	"github.com/retrygo/retry/cmd/retryplan/internal/wire"
	"github.com/retrygo/retry/retryplan"
)

// gravity has the levels of the verdicts that are findings.
var gravity = map[retryplan.Stability]retryplan.Level{
	retryplan.Vulnerable: retryplan.Note, retryplan.Metastable: retryplan.Severe, retryplan.Overloaded: retryplan.Severe,
}

// verdicts are their codes.
var verdicts = []string{retryplan.Vulnerable.String(), retryplan.Metastable.String(), retryplan.Overloaded.String()}

// note notes a finding for --fail-on.
func (a *app) note(level retryplan.Level, what string) {
	if a.failOn != 0 && level >= a.failOn {
		a.caught = append(a.caught, what)
	}
}

func (a *app) noteFindings(name string, findings []retryplan.Finding) {
	for _, f := range findings {
		a.note(f.Level, name+" "+f.Code)
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

// showFindings prints an empty line and findings, each with its change.
func (a *app) showFindings(findings []retryplan.Finding) {
	if len(findings) == 0 {
		a.line("\nno findings")
		return
	}
	a.line("\nfindings")
	for _, f := range findings {
		a.wrapped(fmt.Sprintf("  %-7v  ", f.Level), f.Code+": "+f.Text, 11)
		if f.Change != "" {
			a.wrapped("           ", "do: "+f.Change, 11)
		}
	}
}

// reported is a finding about a policy.
type reported struct {
	wire.Finding
	policy string
}

// sentences returns what was found and what to do about it.
func (r reported) sentences() string {
	if r.Change == "" {
		return r.Text
	}
	return r.Text + " Do: " + r.Change
}

func (r reported) text() string {
	text := fmt.Sprintf("%s: %s %s: %s", r.policy, r.Level, r.Code, r.sentences())
	if r.File != "" {
		text = fmt.Sprintf("%s:%d: %s", r.File, r.Line, text)
	}
	return wire.OneLine(text)
}

// annotation returns a command of GitHub's runners: https://docs.github.com/actions/reference/workflow-commands.
func (r reported) annotation() string {
	kind := map[string]string{"note": "notice", "warning": "warning", "severe": "error"}[r.Level]
	properties := "title=" + property.Replace("retryplan "+r.Code)
	if r.File != "" {
		properties = fmt.Sprintf("file=%s,line=%d,%s", property.Replace(filepath.ToSlash(r.File)), max(r.Line, 1), properties)
	}
	return fmt.Sprintf("::%s %s::%s", kind, properties, strings.ReplaceAll(wire.OneLine(r.policy+": "+r.sentences()), "%", "%25"))
}

// property makes GitHub's escapes: actions/toolkit, packages/core/src/command.ts.
var property = strings.NewReplacer("%", "%25", "\r", "%0D", "\n", "%0A", ":", "%3A", ",", "%2C")
