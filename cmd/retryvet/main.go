// Command retryvet finds bugs of retries in Go source: in calls of this library and in hand-written loops.
//
//	go install github.com/retrygo/retry/cmd/retryvet@latest
//
//	go vet -vettool=$(which retryvet) ./...   cached by the go command
//	retryvet [flags] PACKAGE...               runs alone
//	retryvet -loop.more PACKAGE...            with findings of the analyzer loop that can be intended
//	retryvet help [ANALYZER]                  the findings and the flags
//	retryvet --version
//
// The comment //retryvet:ignore ANALYZER reason, at the end of a line or above it, silences a finding.
//
// The exit status is 0 without findings, 1 with findings, 2 if the command line is wrong, and 3 if packages do not load or
// type-check; the findings of the others are printed all the same.
package main

import (
	"context"
	"os"
	"os/signal"
	"runtime/debug"
	"strings"
	"syscall"

	"golang.org/x/tools/go/analysis/unitchecker"

	"github.com/retrygo/retry/cmd/retryvet/internal/check"
	"github.com/retrygo/retry/cmd/retryvet/internal/suite"
)

func main() {
	if vettool(os.Args[1:]) {
		unitchecker.Main(suite.Analyzers()...)
	}
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	os.Exit(check.Run(ctx, suite.Analyzers(), version(), os.Args[1:], os.Stdout, os.Stderr))
}

// vettool reports whether the go command runs retryvet: with -V=full, -flags or a file that describes a package.
func vettool(args []string) bool {
	if len(args) == 0 {
		return false
	}
	last := args[len(args)-1]
	return strings.HasPrefix(last, "-V=") || last == "-flags" || last == "help" || args[0] == "help" || strings.HasSuffix(last, ".cfg")
}

// version returns the version of this module, and "(devel)" for a build from a checkout.
func version() string {
	if info, ok := debug.ReadBuildInfo(); ok {
		return info.Main.Version
	}
	return "(devel)"
}
