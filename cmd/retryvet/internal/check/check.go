// Package check is the stand-alone command: it loads packages, runs the analyzers and prints what they find.
package check

import (
	"cmp"
	"context"
	"flag"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"unicode"

	"golang.org/x/tools/go/analysis"
	"golang.org/x/tools/go/analysis/checker"
	"golang.org/x/tools/go/packages"
)

// A finding is a diagnostic of an analyzer. A diagnostic of a package and of its test variant is one finding.
type finding struct {
	file              string // relative to the working directory if it is below it, with slashes
	line, column      int
	message, analyzer string
}

// The exit statuses.
const (
	clean = iota
	hasFindings
	badUsage
	notLoaded // packages do not load or type-check, or the output cannot be written
)

// Run runs the command with args and returns the exit status. When ctx is done, it stops loading packages.
func Run(ctx context.Context, analyzers []*analysis.Analyzer, version string, args []string, stdout, stderr io.Writer) int {
	flags := flag.NewFlagSet("retryvet", flag.ContinueOnError)
	flags.SetOutput(stderr)
	flags.Usage = func() {
		fmt.Fprint(stderr, "usage: retryvet [flags] PACKAGE...\n       retryvet help [ANALYZER]\n")
		flags.PrintDefaults()
	}
	tests := flags.Bool("test", true, "analyze tests too")
	printVersion := flags.Bool("version", false, "print the version and exit")
	chosen := map[string]*bool{}
	for _, a := range analyzers {
		chosen[a.Name] = flags.Bool(a.Name, false, "run only this analyzer, and others so chosen; =false leaves it out")
		a.Flags.VisitAll(func(f *flag.Flag) { flags.Var(f.Value, a.Name+"."+f.Name, f.Usage) })
	}
	switch err := flags.Parse(args); {
	case err == flag.ErrHelp:
		return clean
	case err != nil:
		return badUsage
	case *printVersion:
		fmt.Fprintln(stdout, "retryvet", version)
		return clean
	}
	named, left := false, map[string]bool{}
	flags.Visit(func(f *flag.Flag) {
		if is := chosen[f.Name]; is != nil {
			named, left[f.Name] = named || *is, !*is
		}
	})
	late := func(arg string) bool { return strings.HasPrefix(arg, "-") } // a flag after a package
	if flags.NArg() == 0 || slices.ContainsFunc(flags.Args(), late) {
		flags.Usage()
		return badUsage
	}
	analyzers = slices.DeleteFunc(slices.Clone(analyzers), func(a *analysis.Analyzer) bool { // as go vet does
		return named && !*chosen[a.Name] || left[a.Name]
	})
	found, failed := findings(ctx, analyzers, *tests, flags.Args())
	for _, f := range found {
		if _, err := fmt.Fprintf(stdout, "%s:%d:%d: %s (%s)\n", shown(f.file), f.line, f.column, f.message, f.analyzer); err != nil {
			failed = append(failed, err)
			break
		}
	}
	for _, err := range failed {
		fmt.Fprintln(stderr, "retryvet:", err)
	}
	switch {
	case len(failed) > 0:
		return notLoaded
	case len(found) > 0:
		return hasFindings
	}
	return clean
}

// findings returns what the analyzers find in the packages that type-check, and the errors of the others.
func findings(ctx context.Context, analyzers []*analysis.Analyzer, tests bool, patterns []string) ([]finding, []error) {
	pkgs, err := packages.Load(&packages.Config{Context: ctx, Mode: packages.LoadAllSyntax | packages.NeedModule, Tests: tests}, patterns...)
	if err == nil && len(pkgs) == 0 {
		err = fmt.Errorf("no packages match %s", strings.Join(patterns, " "))
	}
	if err != nil {
		return nil, []error{err}
	}
	var failed []error
	packages.Visit(pkgs, nil, func(p *packages.Package) {
		for _, e := range p.Errors {
			if !slices.ContainsFunc(failed, func(err error) bool { return err.Error() == e.Error() }) {
				failed = append(failed, e)
			}
		}
	})
	pkgs = slices.DeleteFunc(pkgs, func(p *packages.Package) bool { return p.IllTyped })
	graph, err := checker.Analyze(analyzers, pkgs, nil)
	if err != nil {
		return nil, append(failed, err)
	}
	var found []finding
	for _, act := range graph.Roots {
		if act.Err != nil {
			failed = append(failed, fmt.Errorf("%s: %w", act, act.Err))
			continue
		}
		for _, d := range act.Diagnostics {
			at := act.Package.Fset.PositionFor(d.Pos, false) // no //line comments
			found = append(found, finding{relative(at.Filename), at.Line, at.Column, d.Message, act.Analyzer.Name})
		}
	}
	slices.SortFunc(found, func(a, b finding) int {
		return cmp.Or(cmp.Compare(a.file, b.file), cmp.Compare(a.line, b.line), cmp.Compare(a.column, b.column),
			cmp.Compare(a.analyzer, b.analyzer), cmp.Compare(a.message, b.message))
	})
	return slices.Compact(found), failed
}

// relative returns file relative to the working directory if it is below it, with slashes.
func relative(file string) string {
	if dir, err := os.Getwd(); err == nil {
		if rel, err := filepath.Rel(dir, file); err == nil && filepath.IsLocal(rel) {
			return filepath.ToSlash(rel)
		}
	}
	return file
}

// shown returns file as a terminal can show it: a name with control characters is quoted.
func shown(file string) string {
	if strings.ContainsFunc(file, func(r rune) bool { return !unicode.IsPrint(r) }) {
		return strconv.Quote(file)
	}
	return file
}
