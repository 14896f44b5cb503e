// Command retryplan shows what a retry policy will do before it ships: its schedule and findings, the chance to succeed
// and the load on the backend, what an outage does to a fleet, and whether a storm of retries can become permanent. It
// calls nothing and does not wait.
//
//	go install github.com/retrygo/retry/cmd/retryplan@latest
//
//	retryplan show     [POLICY]...   the schedule of a policy, and what is wrong with it
//	retryplan plan     [POLICY]...   how a run ends, how long it takes, how much load it makes
//	retryplan simulate [POLICY]...   a fleet of clients against a model of a server
//	retryplan certify  [POLICY]...   by law, whether a storm of retries can become permanent
//	retryplan chain    [POLICY]...   layers of services, and what one run costs the one at the bottom
//	retryplan solve                  a policy that does what is required, or the requirements that conflict
//	retryplan compare  POLICY...     policies side by side
//	retryplan lint     [POLICY]...   findings alone: a guard for CI
//	retryplan serve    [POLICY]      a page, for this machine alone, with sliders
//
// A POLICY is a document of package retryconf (policy.json or policy.yaml: one policy, or a catalog, all of whose
// policies are meant), one policy of a catalog (email@policies.json), a preset (preset:standard) or - for standard
// input. Flags such as --attempts 6 change it; without a POLICY they change the default policy.
//
//	retryplan show --preset standard
//
// With --json every command prints JSON. Durations that are given are text, "1m30s"; those that come out are seconds,
// under keys that end in _seconds. What never happens is null, and so is a duration without a bound.
//
// lint and certify read .retryplan.yaml, the first in the directories from the working one upwards. --from reads rate,
// failure rate and duration from the metrics of contrib/retryotel.
//
// --version prints the version.
//
// --plot out.svg draws what show, plan, simulate and compare print.
//
// The exit status is 0 if all was done; 1 if something failed, if requirements cannot be met, or if findings are at or
// above --fail-on (none by default, warning for lint); 2 if the command line is wrong; and 130 after an interrupt. The
// results of an interrupted simulation are printed.
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
