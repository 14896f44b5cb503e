// Command retryjobs looks at the jobs of a retryriver database, SQLite or PostgreSQL, and changes them: what waits, what
// has been given up and why, what to do again. It runs no job, makes no database and migrates none.
//
//	go install github.com/retrygo/retry/cmd/retryjobs@latest
//
//	retryjobs [--database DB] [--json] list   [filter]
//	retryjobs [--database DB] [--json] show   [--payload=false] ID
//	retryjobs [--database DB] [--json] replay ID...
//	retryjobs [--database DB] [--json] replay --all [--rate 10] [filter | --yes]
//	retryjobs [--database DB] [--json] cancel ID...
//	retryjobs [--database DB] [--json] purge  [--yes] ID...
//	retryjobs [--database DB] [--json] purge  [--yes | --dry-run] [filter | --all]
//	retryjobs [--database DB] [--json] stats
//	retryjobs [--database DB] [--json] watch  [--every 2s] [filter]
//	retryjobs [--database DB] [--json] serve  [--addr 127.0.0.1:0] [--host NAME]
//
// DB is a SQLite file, as path or sqlite:path, or a URL postgres://user:password@host/database. Environment variable
// RETRYJOBS_DATABASE stands in for it, and is the place for a password: the arguments of a process are not secret. An
// error never shows the password.
//
// A filter is any of these flags. All that are given must apply; a flag that is given twice, or with commas, takes any
// of its values:
//
//	--status dead_letter   pending, leased, waiting_retry, succeeded, dead_letter, expired, failed_no_retries, canceled
//	--reason ttl_elapsed   terminal_error, attempts_exhausted, budget_exhausted, ttl_elapsed, deadline_passed,
//	                       deadline_too_near, hint_too_long, retries_disabled, caller_canceled
//	--policy standard      the name of the policy
//	--kind webhook         the kind of the job
//	--since 24h            changed since then: a time ago (90m, 24h, 7d) or a time (2026-11-21T09:00:00Z)
//	--until 7d             changed before then
//	--limit 50             so many jobs at most, 0 for all of them; list alone has a default
//
// list prints the jobs, the one that changed last first. show prints all that is known of one job, with the timeline of
// its attempts since it was enqueued or replayed. replay makes jobs that were given up (dead_letter, expired,
// failed_no_retries) due again, with the same ID and no attempts made; it names each job that could not be. With --rate
// it spreads them, so many in a second at most, for a receiver that has just come back. cancel ends jobs that have not
// ended. purge removes jobs that have. To change many jobs, replay and purge need a filter that says which, or a flag
// that all are meant. purge says how many jobs it would remove and asks; a script, which has no terminal to answer,
// gives --yes. stats counts. watch prints a line for each job that changes.
//
// serve shows all of this on a page, for this machine alone: see package retryjob/jobsui.
//
// On a terminal, statuses have colors and lists fit its width; the variable NO_COLOR turns colors off. "retryjobs help
// completion" shows how a shell completes commands, flags, statuses, reasons, policies, kinds and IDs.
//
// Times are UTC. With --json, list prints a line for each job and the others print one, show and list with the field
// names of retryjob.Info; control characters are escaped, and in tables as well, so that the error text of a job can do
// a terminal no harm.
//
// --version prints the version.
//
// The exit status is 0 if all was done, 1 if something failed, and 2 if the command line is wrong.
package main

import (
	"context"
	"os"
	"os/signal"
	"runtime/debug"
	"syscall"
	"time"

	"golang.org/x/term"

	"github.com/retrygo/retry/cmd/retryjobs/internal/cli"
	"github.com/retrygo/retry/contrib/retryriver"
)

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	context.AfterFunc(ctx, stop) // a second signal ends the process at once
	o := cli.Options{Open: open, Now: time.Now, Getenv: os.Getenv, Version: version()}
	if o.Width = width(os.Stdout); o.Width > 0 {
		o.Color = os.Getenv("NO_COLOR") == "" && os.Getenv("TERM") != "dumb"
	}
	if term.IsTerminal(int(os.Stdin.Fd())) && term.IsTerminal(int(os.Stderr.Fd())) {
		o.Answers = os.Stdin
	}
	os.Exit(cli.Run(ctx, o, os.Args[1:], os.Stdout, os.Stderr))
}

// width returns how many columns a terminal has, 0 if f is none.
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

// version returns the version of this module, and "(devel)" for a build from a checkout.
func version() string {
	if info, ok := debug.ReadBuildInfo(); ok {
		return info.Main.Version
	}
	return "(devel)"
}

// open opens the database that is meant.
func open(ctx context.Context, database string) (cli.Store, error) {
	store, err := retryriver.OpenStore(ctx, database)
	if err != nil {
		return nil, err // not a nil *Store in an interface
	}
	return store, nil
}
