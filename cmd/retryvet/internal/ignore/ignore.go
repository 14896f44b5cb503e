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

// pages show, for an analyzer, what to write instead.
var pages = map[string]string{"loop": ", see https://github.com/retrygo/retry/blob/main/docs/migrating/by-hand.md"}

const prefix = "//retryvet:ignore"

// New returns the analyzer that runs run on what package inspect has found, without the findings that a comment silences
// and without those in generated files.
func New(name, doc string, run func(*analysis.Pass) (any, error), facts ...analysis.Fact) *analysis.Analyzer {
	return &analysis.Analyzer{
		Name: name, Doc: doc, URL: "https://pkg.go.dev/github.com/retrygo/retry/cmd/retryvet/" + name,
		Requires: []*analysis.Analyzer{inspect.Analyzer}, FactTypes: facts, Run: func(pass *analysis.Pass) (any, error) {
			silenced := map[string][]int{} // lines by file
			for _, file := range pass.Files {
				f := pass.Fset.File(file.FileStart)
				if silenced[f.Name()] = lines(f, file, name); ast.IsGenerated(file) {
					silenced[f.Name()] = nil
				}
			}
			report := pass.Report
			named := *pass
			named.Report = func(d analysis.Diagnostic) {
				d.Message += " (" + name + pages[name] + ")" // the name is what a comment that ignores it has to say
				report(d)
			}
			return run(only(&named, func(d analysis.Diagnostic) bool {
				f := pass.Fset.File(d.Pos)
				lines, known := silenced[f.Name()]
				return !known || lines != nil && !slices.Contains(lines, f.Line(d.Pos))
			}))
		},
	}
}

// OutsideTests is New without the findings in test files.
func OutsideTests(name, doc string, run func(*analysis.Pass) (any, error), facts ...analysis.Fact) *analysis.Analyzer {
	return New(name, doc, func(pass *analysis.Pass) (any, error) {
		return run(only(pass, func(d analysis.Diagnostic) bool { return !strings.HasSuffix(pass.Fset.File(d.Pos).Name(), "_test.go") }))
	}, facts...)
}

// only returns the pass, which reports only what keep keeps.
func only(pass *analysis.Pass, keep func(analysis.Diagnostic) bool) *analysis.Pass {
	filtered := *pass
	filtered.Report = func(d analysis.Diagnostic) {
		if d.Category = pass.Analyzer.Name; keep(d) {
			pass.Report(d)
		}
	}
	return &filtered
}

// lines returns the lines of file on which a comment with a reason silences the analyzer name; it is not nil.
func lines(f *token.File, file *ast.File, name string) []int {
	all := []int{}
	for _, group := range file.Comments {
		for _, c := range group.List {
			rest, _, _ := strings.Cut(strings.TrimPrefix(c.Text, "//"), "//") // without a comment on the comment
			words := strings.Fields(rest)
			if strings.HasPrefix(c.Text, prefix) && len(words) > 2 && words[0] == prefix[2:] && words[1] == name {
				all = append(all, f.Line(c.Pos()), f.Line(c.Pos())+1)
			}
		}
	}
	return all
}
