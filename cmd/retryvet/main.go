// Command retryvet finds bugs of retries in Go source: in calls of this library and of others, and in hand-written loops.
//
//	go install github.com/retrygo/retry/cmd/retryvet@latest
//
//	retryvet [-ANALYZER] PACKAGE...           runs go vet with the analyzers
//	go vet -vettool=$(which retryvet) ./...   the same
//	retryvet help [ANALYZER]                  the findings and the flags; -version prints the version
//
// The comment //retryvet:ignore ANALYZER reason, at the end of a line or above it, silences a finding.
//
// The exit status is that of go vet: 0 without findings, and 1 with findings or if packages do not load. 2 is a wrong command line.
package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"os/signal"
	"runtime/debug"
	"slices"
	"strings"
	"syscall"

	"golang.org/x/tools/go/analysis/unitchecker"

	"github.com/retrygo/retry/cmd/retryvet/internal/suite"
)

func main() {
	args := os.Args[1:]
	switch {
	case vettool(args):
		unitchecker.Main(suite.Analyzers()...)
	case len(args) == 1 && (args[0] == "-version" || args[0] == "--version"):
		fmt.Println("retryvet", version())
	case !slices.ContainsFunc(args, func(arg string) bool { return !strings.HasPrefix(arg, "-") }):
		fmt.Fprintln(os.Stderr, "usage: retryvet [-ANALYZER] PACKAGE...\n       retryvet help [ANALYZER]")
		os.Exit(2)
	default:
		os.Exit(vet(args))
	}
}

// vettool reports whether the go command runs retryvet: with -V=full, -flags or a file that describes a package.
func vettool(args []string) bool {
	if len(args) == 0 {
		return false
	}
	last := args[len(args)-1]
	return strings.HasPrefix(last, "-V=") || last == "-flags" || last == "help" || args[0] == "help" || strings.HasSuffix(last, ".cfg")
}

// vet runs go vet with this program as its tool, and returns the exit status. A signal ends both.
func vet(args []string) int {
	self, err := os.Executable()
	if err != nil {
		fmt.Fprintln(os.Stderr, "retryvet:", err)
		return 1
	}
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	cmd := exec.CommandContext(ctx, "go", append([]string{"vet", "-vettool=" + self}, args...)...)
	cmd.Stdout, cmd.Stderr = os.Stdout, os.Stderr
	if runs := cmd.Run(); runs != nil {
		exit := (*exec.ExitError)(nil)
		if errors.As(runs, &exit) && exit.ExitCode() > 0 {
			return exit.ExitCode()
		}
		fmt.Fprintln(os.Stderr, "retryvet:", runs)
		return 1
	}
	return 0
}

// version returns the version of this module, and "(devel)" for a build from a checkout.
func version() string {
	if info, ok := debug.ReadBuildInfo(); ok {
		return info.Main.Version
	}
	return "(devel)"
}
