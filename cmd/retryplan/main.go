// Command retryplan shows the effect of a retry policy before it ships. It computes the schedule and findings, the chance
// of success and the load on the backend, and counts the simulations in which a fleet comes back from an outage. It makes
// no calls and does not wait.
//
//	go install github.com/retrygo/retry/cmd/retryplan@latest
//
//	retryplan show preset:standard
//
// Its commands are show, simulate, chain, compare, lint and serve. Run retryplan --help for their descriptions, the forms
// of a POLICY, and the meaning of the exit status.
package main

import (
	"context"
	"os"
	"os/signal"
	"runtime/debug"
	"syscall"

	"github.com/retrygo/retry/cmd/retryplan/internal/cli"
)

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	context.AfterFunc(ctx, stop) // a second signal ends the process at once
	os.Exit(cli.Run(ctx, cli.Options{Stdin: os.Stdin, Version: version()}, os.Args[1:], os.Stdout, os.Stderr))
}

// version returns the version of this module, or "(devel)" if the command was built from a checkout.
func version() string {
	if info, ok := debug.ReadBuildInfo(); ok {
		return info.Main.Version
	}
	return "(devel)"
}
