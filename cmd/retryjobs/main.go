// Command retryjobs shows and changes the jobs of a retryriver database, SQLite or PostgreSQL: which are waiting, which
// have failed and why, and which to repeat. It does not run jobs, and does not create a database.
//
//	go install github.com/retrygo/retry/cmd/retryjobs@latest
//
//	retryjobs [--database DB] [--json] list   [filter]
//	retryjobs [--database DB] [--json] show   [--payload=false] ID
//	retryjobs [--database DB] [--json] replay ID... | filter | --all   [--dry-run] [--yes] [--rate 10]
//	retryjobs [--database DB] [--json] cancel ID... | filter | --all   [--dry-run] [--yes]
//	retryjobs [--database DB] [--json] purge  ID... | filter | --all   [--dry-run] [--yes]
//	retryjobs [--database DB] [--json] stats
//	retryjobs [--database DB] [--json] serve  [--addr 127.0.0.1:0] [--read-only] [--host NAME] [--no-token]
//	retryjobs [--database DB] migrate
//
// DB is a SQLite file, as path or sqlite:path, or a URL postgres://user:password@host/database. If the flag is not
// given, the environment variable RETRYJOBS_DATABASE is used. Put a password there: the arguments of a process are not
// secret. An error never shows the password.
//
// A filter is any of these flags. All that are given must apply; a flag that is given twice, or with commas, matches
// any of its values:
//
//	--status dead_letter   pending, leased, waiting_retry, succeeded, dead_letter, expired, failed_no_retries, canceled
//	--reason ttl_elapsed   terminal_error, attempts_exhausted, budget_exhausted, ttl_elapsed, deadline_passed,
//	                       deadline_too_near, hint_too_long, retries_disabled, caller_canceled
//	--policy standard      the name of the policy
//	--kind webhook         the kind of the job
//	--tag eu               a tag of the job
//	--since 24h            changed since then: a time ago (90m, 24h, 7d) or a time (2026-11-21T09:00:00Z)
//	--until 7d             changed before then
//	--limit 50             the most jobs, 0 for all of them; list alone has a default
//
// list prints the jobs, the most recently changed first. show prints everything about one job, with the timeline of its
// attempts since it was enqueued or replayed. replay makes jobs that failed (dead_letter, expired, failed_no_retries)
// due again, with the same ID and no attempts made. With --rate it limits the number of jobs per second, for a receiver
// that has just recovered. cancel ends jobs that have not ended. purge removes jobs that have ended. These three name
// each job with a given ID that they could not change; --dry-run prints how many jobs they would change. purge, and the
// others with --all and no filter, ask for confirmation; a script passes --yes. stats counts jobs by status, groups dead
// letters by kind, reason and error code with the newest of each, and shows the recurring jobs that have not ended.
// migrate brings an existing database of an older version up to date.
//
// serve shows all of this on a page, to those who have the address that it prints: see package retryjob/jobsui.
//
// On a terminal, statuses have colors and lists fit its width; the variable NO_COLOR turns colors off. "retryjobs help
// completion" explains how to make a shell complete commands, flags, statuses and reasons.
//
// Times are UTC. With --json, list prints a line for each job and the others print one, show and list with the field
// names of retryjob.Info; control characters are escaped, also in tables, so the error text of a job cannot affect a
// terminal.
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
	o := cli.Options{Open: open, Migrate: retryriver.Migrate, Now: time.Now, Getenv: os.Getenv, Version: version()}
	if o.Width = width(os.Stdout); o.Width > 0 {
		o.Color = os.Getenv("NO_COLOR") == "" && os.Getenv("TERM") != "dumb"
	}
	if term.IsTerminal(int(os.Stdin.Fd())) && term.IsTerminal(int(os.Stderr.Fd())) {
		o.Answers = os.Stdin
	}
	os.Exit(cli.Run(ctx, o, os.Args[1:], os.Stdout, os.Stderr))
}

// width returns the number of columns of a terminal, or 0 if f is not one.
func width(f *os.File) int {
	columns, _, err := term.GetSize(int(f.Fd()))
	switch {
	case err != nil:
		return 0
	case columns == 0: // a terminal that does not report it
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

// open opens the given database.
func open(ctx context.Context, database string) (cli.Store, error) {
	store, err := retryriver.OpenStore(ctx, database)
	if err != nil {
		return nil, err // not a nil *Store in an interface
	}
	return store, nil
}
