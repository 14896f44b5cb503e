// Package cli is command retryjobs without its process. Arguments and a clock come in, text and an exit status go out.
package cli

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"
	"time"

	"github.com/spf13/cobra"

	"github.com/retrygo/retry/retryjob"
	"github.com/retrygo/retry/retryjob/jobsui"
)

// Options are the process's inputs to the commands. Open, Migrate, Now and Getenv must be set.
type Options struct {
	// Open opens the database with the given name, which is not empty. ctx bounds the opening.
	Open func(ctx context.Context, database string) (Store, error)
	// Migrate brings the database with the given name, which exists, up to date.
	Migrate func(ctx context.Context, database string) error
	// Now returns the current time, for relative times and for jobs that are not final.
	Now func() time.Time
	// Getenv returns an environment variable, or "" if it is not set.
	Getenv func(name string) string
	// Answers is the terminal that answers questions, which are written to stderr. Nil means no terminal.
	Answers io.Reader
	// Version is the output of --version. Empty means that the flag does not exist.
	Version string
}

// Store is an open database.
type Store interface {
	retryjob.Admin
	Close() error
}

// The exit statuses of Run.
const (
	Done   = 0
	Failed = 1 // the command line is valid, but not everything could be done
	Usage  = 2 // the command line is invalid, and the database was not changed
)

// openTimeout is how long a database may take to open: a handshake that loses two packets takes 3 s (RFC 6298: 1 s, then
// 2 s), and TLS and the login follow.
const openTimeout = 10 * time.Second

// Run runs the command in args, which do not include the program's name, and returns the exit status. The results go to
// stdout. Errors and remarks go to stderr, each on one line that begins with "retryjobs: ". When ctx ends the command
// ends too, and keeps the changes made until then.
func Run(ctx context.Context, o Options, args []string, stdout, stderr io.Writer) int {
	a := &app{Options: o}
	root := a.root()
	root.SetArgs(append([]string{}, args...)) // for nil, cobra would take the arguments of the process
	root.SetOut(stdout)
	root.SetErr(stderr)
	cmd, err := root.ExecuteContextC(ctx)
	if err == nil {
		return Done
	}
	if failed, ok := errors.AsType[*failure](err); ok {
		if ctx.Err() != nil {
			err = fmt.Errorf("interrupted: %w", failed)
		}
		a.complain(stderr, err)
		return Failed
	}
	a.complain(stderr, err)
	fmt.Fprintf(stderr, "retryjobs: '%s --help' says more\n", cmd.CommandPath())
	return Usage
}

// failure is an error of a valid command. All other errors are about the command line.
type failure struct{ error }

// app is one invocation of the program.
type app struct {
	Options
	database string
	json     bool
	chosen   string   // of database and environment
	secrets  []string // parts of database that must not be shown
}

func (a *app) root() *cobra.Command {
	root := &cobra.Command{
		Use:                        "retryjobs",
		Version:                    a.Version,
		Short:                      "Look at the jobs of a retryriver database, and change them",
		SuggestionsMinimumDistance: 2,
		SilenceErrors:              true,
		SilenceUsage:               true,
	}
	flags := root.PersistentFlags()
	flags.StringVar(&a.database, "database", "", "SQLite `file` or postgres:// URL (default $"+databaseVariable+")")
	flags.BoolVar(&a.json, "json", false, "print JSON")
	root.AddCommand(a.listCommand(), a.showCommand(), a.statsCommand(), a.schedulesCommand(), a.serveCommand(), a.migrateCommand())
	for _, action := range jobsui.Actions() {
		root.AddCommand(a.changeCommand(action))
	}
	return root
}

// session is a running command with an open database.
type session struct {
	*app
	store Store
	out   *bufio.Writer
	err   io.Writer
	now   time.Time
}

func (a *app) migrateCommand() *cobra.Command {
	return &cobra.Command{
		Use:   "migrate",
		Short: "Bring an existing database of an older version up to date",
		Long:  "migrate brings River's tables and those of retryriver up to date, as the program that works on the jobs does when it starts.\nWriters of jobs wait meanwhile: a few seconds for a hundred thousand jobs.",
		Args:  cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			database, err := a.choose(cmd.Flags().Changed("database"))
			if err != nil {
				return err
			}
			if err := a.Migrate(cmd.Context(), database); err != nil {
				return &failure{fmt.Errorf("database %s: %w", label(database), err)}
			}
			return nil
		},
	}
}

// work opens the database, calls do and closes it. The error is a *failure, unless it is about the flags.
func (a *app) work(cmd *cobra.Command, now time.Time, do func(context.Context, *session) error) error {
	database, err := a.choose(cmd.Flags().Changed("database"))
	if err != nil {
		return err
	}
	ctx, cancel := context.WithTimeoutCause(cmd.Context(), openTimeout, fmt.Errorf("no answer within %v", openTimeout))
	store, err := a.Open(ctx, database)
	if cause := context.Cause(ctx); err != nil && errors.Is(ctx.Err(), context.DeadlineExceeded) {
		err = fmt.Errorf("%w: %w", cause, err)
	}
	cancel()
	if err != nil {
		return &failure{fmt.Errorf("database %s: %w", label(database), err)}
	}
	s := &session{app: a, store: store, out: bufio.NewWriter(cmd.OutOrStdout()), err: cmd.ErrOrStderr(), now: now}
	err = do(cmd.Context(), s)
	if err = errors.Join(err, s.out.Flush(), store.Close()); err != nil {
		return &failure{err}
	}
	return nil
}

// remark prints a line to stderr, after the output so far.
func (s *session) remark(format string, args ...any) {
	_ = s.out.Flush() // it fails again at the end
	s.complain(s.err, fmt.Errorf(format, args...))
}

// complain prints err on one line.
func (a *app) complain(w io.Writer, err error) {
	fmt.Fprintf(w, "retryjobs: %s\n", a.text(err))
}

// text returns an error on one line, without the database's password and without control characters.
func (a *app) text(err error) string { return printable(redact(err.Error(), a.secrets)) }
