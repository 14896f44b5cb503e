// Command retryjobs shows and changes the jobs of a retryriver database, SQLite or PostgreSQL: which are waiting, which
// have failed and why, and which to repeat. It does not run jobs, and does not create a database.
//
//	retryjobs stats
//	retryjobs schedules [run|pause|resume NAME...]
//	retryjobs list   --status dead_letter --since 24h
//	retryjobs show   ID
//	retryjobs replay ID... | filter | --all
//	retryjobs cancel ID... | filter | --all
//	retryjobs purge  ID... | filter | --all
//	retryjobs serve
//	retryjobs migrate
//
// "retryjobs help COMMAND" has the flags of each. The flag --database or the environment variable RETRYJOBS_DATABASE
// names the database: a SQLite file, as path or sqlite:path, or a URL postgres://user:password@host/database. Put a
// password into the variable, since the arguments of a process are not secret. An error never shows the password.
//
// All flags of a filter must apply. One that is given twice, or with commas, matches any of its values. purge, and the
// others with --all and no filter, ask for confirmation. A script passes --yes.
//
// A job is in doubt if its last attempt failed in a way that may have done the work. replay leaves such a job as it is
// without --doubt. Find out what happened before: a replay does the work again.
//
// Times are UTC, but in JSON as the engine wrote them. With --json, list prints a line for each job and the others print
// one. show and list use the field names of retryjob.Info. Characters that are not printable are escaped, so a text of a
// job cannot affect a terminal. show hides text that looks like a secret in a payload, as the page does. --json has all of it.
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
	o := cli.Options{Open: open, Migrate: retryriver.Migrate, Now: time.Now, Getenv: os.Getenv, Version: "(devel)"}
	if info, ok := debug.ReadBuildInfo(); ok {
		o.Version = info.Main.Version
	}
	if term.IsTerminal(int(os.Stdin.Fd())) && term.IsTerminal(int(os.Stderr.Fd())) {
		o.Answers = os.Stdin
	}
	os.Exit(cli.Run(ctx, o, os.Args[1:], os.Stdout, os.Stderr))
}

// open opens the given database.
func open(ctx context.Context, database string) (cli.Store, error) {
	store, err := retryriver.OpenStore(ctx, database)
	if err != nil {
		return nil, err // not a nil *Store in an interface
	}
	return store, nil
}
