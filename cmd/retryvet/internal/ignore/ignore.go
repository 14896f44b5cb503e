// Package ignore lets a comment silence a finding, if it gives a reason:
//
//	//retryvet:ignore loop the device answers within a second or never
//
// stands at the end of the line or on the line above it.
package ignore

import (
	"go/ast"
	"go/token"
	"slices"
	"strings"

	"golang.org/x/tools/go/analysis"
	"golang.org/x/tools/go/analysis/passes/inspect"
)

const prefix = "//retryvet:ignore"

// Names are the analyzers that a comment can name.
var Names = []string{"attemptctx", "attempts", "loop", "marks", "nested", "policy", "replay"}

// Analyzer reports comments that silence nothing: those without a reason or with a name that no analyzer has.
var Analyzer = &analysis.Analyzer{
	Name: "retryignore",
	Doc:  "report //retryvet:ignore comments that name no analyzer or give no reason",
	Run: func(pass *analysis.Pass) (any, error) {
		for _, file := range pass.Files {
			for _, d := range directives(file) {
				switch {
				case !slices.Contains(Names, d.name):
					pass.Reportf(d.pos, "no analyzer has the name %q: want //retryvet:ignore NAME reason", d.name)
				case d.reason == "":
					pass.Reportf(d.pos, "nothing is ignored without a reason: want //retryvet:ignore %s reason", d.name)
				}
			}
		}
		return nil, nil
	},
}

// New returns the analyzer that runs run on what package inspect has found, without the findings that a comment silences
// and without those in generated files.
func New(name, doc string, run func(*analysis.Pass) (any, error), facts ...analysis.Fact) *analysis.Analyzer {
	return &analysis.Analyzer{
		Name: name, Doc: doc, URL: "https://pkg.go.dev/github.com/retrygo/retry/cmd/retryvet/" + name,
		Requires: []*analysis.Analyzer{inspect.Analyzer}, FactTypes: facts, Run: wrap(name, run),
	}
}

func wrap(name string, run func(*analysis.Pass) (any, error)) func(*analysis.Pass) (any, error) {
	return func(pass *analysis.Pass) (any, error) {
		silenced := map[string][]int{} // lines by file
		for _, file := range pass.Files {
			f := pass.Fset.File(file.FileStart)
			if ast.IsGenerated(file) {
				silenced[f.Name()] = nil
				continue
			}
			lines := []int{}
			for _, d := range directives(file) {
				if d.name == name && d.reason != "" {
					line := f.Line(d.pos)
					lines = append(lines, line, line+1)
				}
			}
			silenced[f.Name()] = lines
		}
		filtered := *pass
		filtered.Report = func(d analysis.Diagnostic) {
			f := pass.Fset.File(d.Pos)
			lines, known := silenced[f.Name()]
			if known && (lines == nil || slices.Contains(lines, f.Line(d.Pos))) {
				return
			}
			d.Category = name
			pass.Report(d)
		}
		return run(&filtered)
	}
}

type directive struct {
	pos          token.Pos
	name, reason string
}

func directives(file *ast.File) (all []directive) {
	for _, group := range file.Comments {
		for _, c := range group.List {
			rest, ok := strings.CutPrefix(c.Text, prefix)
			if !ok || rest != "" && rest[0] != ' ' && rest[0] != '\t' {
				continue
			}
			rest, _, _ = strings.Cut(rest, "//") // a comment on the comment
			name, reason, _ := strings.Cut(strings.TrimSpace(rest), " ")
			all = append(all, directive{c.Pos(), name, strings.TrimSpace(reason)})
		}
	}
	return all
}
