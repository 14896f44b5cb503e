// Command retryjobs looks at the jobs of a retryriver database, SQLite or PostgreSQL, and changes them: what waits, what
// has been given up and why, what to do again. It runs no job, makes no database and migrates none.
//
//	go install github.com/retrygo/retry/cmd/retryjobs@latest
//
//	retryjobs [--database DB] [--json] list   [filter]
//	retryjobs [--database DB] [--json] show   [--payload=false] ID
//	retryjobs [--database DB] [--json] replay ID...
//	retryjobs [--database DB] [--json] replay --all [filter | --yes]
//	retryjobs [--database DB] [--json] purge  [--dry-run] [filter | --yes]
//	retryjobs [--database DB] [--json] stats
//
// DB is a SQLite file, as path or sqlite:path, or a URL postgres://user:password@host/database. Environment variable
// RETRYJOBS_DATABASE stands in for it, and is the place for a password: the arguments of a process are no secret. An error
// never shows the password.
//
// A filter is any of these flags. All that are given must apply; a flag that is given twice, or with commas, takes any of
// its values:
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
// list prints the jobs, the one that changed last first. show prints all that is known of one job, with the timeline of its
// attempts since it was enqueued or replayed. replay makes jobs that were given up (dead_letter, expired,
// failed_no_retries) due again, with the same ID and no attempts made; it names each job that could not be. purge removes
// jobs that have ended. Both change many jobs only if a filter says which, or --yes that all are meant; there is no
// prompt, so a script does what the same command does by hand. stats counts.
//
// Times are UTC. With --json, list prints a line for each job and the others print one, show and list with the field names
// of retryjob.Info; control characters are escaped, and in tables as well, so that the error text of a job can do a
// terminal no harm.
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

	"github.com/retrygo/retry/cmd/retryjobs/internal/cli"
	"github.com/retrygo/retry/contrib/retryriver"
)

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	context.AfterFunc(ctx, stop) // a second signal ends the process at once
	os.Exit(cli.Run(ctx, cli.Options{Open: open, Now: time.Now, Getenv: os.Getenv, Version: version()}, os.Args[1:], os.Stdout, os.Stderr))
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
