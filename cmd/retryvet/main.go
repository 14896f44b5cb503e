// Command retryvet finds bugs of retries in Go source: in calls of this library and in hand-written loops.
//
//	go install github.com/retrygo/retry/cmd/retryvet@latest
//
//	go vet -vettool=$(which retryvet) ./...   cached by the go command; with -fix it applies the fixes that it has
//	retryvet [flags] PACKAGE...               runs alone; --format text, sarif or github
//	retryvet -migrate [-diff] [-w] PACKAGE... moves calls of other retry libraries to this one
//	retryvet -loop PACKAGE...                 the analyzer loop, which does not run by default
//	retryvet help [ANALYZER]                  the findings and the flags
//	retryvet --version
//
// The comment //retryvet:ignore ANALYZER reason, at the end of a line or above it, silences a finding.
//
// The exit status is that of go vet: 0 without findings, 1 with findings or if packages do not load, and 2 if the
// command line is wrong. With -migrate it is 0 if no call of another library is left, and 1 if one is refused, or found
// without -w.
package main

import (
	"os"
	"runtime/debug"
	"slices"
	"strings"

	"golang.org/x/tools/go/analysis"
	"golang.org/x/tools/go/analysis/unitchecker"

	"github.com/retrygo/retry/cmd/retryvet/internal/check"
	"github.com/retrygo/retry/cmd/retryvet/internal/suite"
)

func main() {
	if vettool(os.Args[1:]) {
		analyzers := suite.Analyzers()
		if strings.HasSuffix(os.Args[len(os.Args)-1], ".cfg") && !slices.ContainsFunc(os.Args[1:], asksForMore) {
			analyzers = slices.DeleteFunc(analyzers, func(a *analysis.Analyzer) bool { return !suite.ByDefault(a) })
		}
		unitchecker.Main(analyzers...)
	}
	os.Exit(check.Run(suite.Analyzers(), version(), os.Args[1:], os.Stdout, os.Stderr))
}

// vettool reports whether the go command runs retryvet: with -V=full, -flags or a file that describes a package.
func vettool(args []string) bool {
	if len(args) == 0 {
		return false
	}
	last := args[len(args)-1]
	return strings.HasPrefix(last, "-V=") || last == "-flags" || last == "help" || args[0] == "help" || strings.HasSuffix(last, ".cfg")
}

// asksForMore reports whether arg is the flag of an analyzer that does not run by default.
func asksForMore(arg string) bool {
	name, _, _ := strings.Cut(strings.TrimLeft(arg, "-"), "=")
	return strings.HasPrefix(arg, "-") && slices.ContainsFunc(suite.Analyzers(), func(a *analysis.Analyzer) bool {
		return a.Name == name && !suite.ByDefault(a)
	})
}

// version returns the version of this module, and "(devel)" for a build from a checkout.
func version() string {
	if info, ok := debug.ReadBuildInfo(); ok {
		return info.Main.Version
	}
	return "(devel)"
}
