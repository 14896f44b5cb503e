// Command retryplan shows what a retry policy will do before it ships: its schedule and findings, the chance to succeed
// and the load on the backend, what an outage does to a fleet, and whether a storm of retries can become permanent. It
// calls nothing and does not wait.
//
//	go install github.com/retrygo/retry/cmd/retryplan@latest
//
//	retryplan show --preset standard
//
// Its commands are show, plan, simulate, certify, chain, solve, compare, lint, schema and serve: retryplan --help lists
// them, and says what a POLICY is, what --json prints and what the exit status means. See the README for examples.
package main

import (
	"context"
	"os"
	"os/signal"
	"runtime/debug"
	"syscall"

	"golang.org/x/term"

	"github.com/retrygo/retry"
	"github.com/retrygo/retry/cmd/retryplan/internal/cli"
	"github.com/retrygo/retry/cmd/retryplan/internal/web"
)

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	context.AfterFunc(ctx, stop) // a second signal ends the process at once
	os.Exit(cli.Run(ctx, cli.Options{
		Stdin:    os.Stdin,
		Width:    width(os.Stdout),
		Progress: term.IsTerminal(int(os.Stderr.Fd())),
		Serve:    serve,
		Version:  version(),
	}, os.Args[1:], os.Stdout, os.Stderr))
}

// version returns the version of this module, and "(devel)" for a build from a checkout.
func version() string {
	if info, ok := debug.ReadBuildInfo(); ok {
		return info.Main.Version
	}
	return "(devel)"
}

func serve(ctx context.Context, addr string, p retry.Policy, ready func(url string)) error {
	return web.Serve(ctx, web.Options{Addr: addr, Policy: p, Ready: ready})
}

// width returns how many columns a terminal has, 0 for what is none.
func width(f *os.File) int {
	columns, _, err := term.GetSize(int(f.Fd()))
	switch {
	case err != nil:
		return 0
	case columns == 0: // a terminal that does not know
		return 80
	}
	return columns
}
