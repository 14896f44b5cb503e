// Package cli is command retryjobs without its process: arguments and a clock come in, text and an exit status go out.
package cli

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/retrygo/retry/retryjob"
)

// Options are what the commands take from the process that they run in. Open, Now and Getenv must be set.
type Options struct {
	// Open opens the database of a name that is not empty. ctx bounds the opening.
	Open func(ctx context.Context, database string) (Store, error)
	// Now is the clock: for times ago, and for jobs that are not final.
	Now func() time.Time
	// Getenv returns a variable of the environment, "" for one that is not set.
	Getenv func(name string) string
	// Width is how many columns the terminal of stdout has. Zero means that stdout is not a terminal.
	Width int
	// Color is whether stdout shows colors.
	Color bool
	// Answers is the terminal that answers questions, which go to stderr. Nil means that there is none.
	Answers io.Reader
	// Version is what --version prints. Empty means that there is no such flag.
	Version string
}

// Store is an open database.
type Store interface {
	retryjob.Admin
	// Policies returns the names of the policies of all jobs, sorted.
	Policies(ctx context.Context) ([]string, error)
	Close() error
}

// The exit statuses of Run.
const (
	Done   = 0
	Failed = 1 // the command was understood and could not be done, or not all of it
	Usage  = 2 // the command line is wrong, and nothing was done
)

// openTimeout is how long a database may take to open. A handshake of which two packets are lost takes 3 s (RFC 6298: 1
// s, then 2 s), and TLS and the login follow. Without it, an address that swallows packets holds the terminal for
// minutes.
const openTimeout = 10 * time.Second

// Run runs the command that args give, the program's name not among them, and returns the exit status. What is asked for
// goes to stdout; errors and remarks go to stderr, each on one line that begins with "retryjobs: ". When ctx ends, so
// does the command: what it has done until then stays done.
func Run(ctx context.Context, o Options, args []string, stdout, stderr io.Writer) int {
	a := &app{Options: o}
	root := a.root()
	root.SetArgs(args)
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

// failure is an error of a command that was understood. All others are the command line's.
type failure struct{ error }

func (f *failure) Unwrap() error { return f.error }

// app is one call of the program.
type app struct {
	Options
	database string
	json     bool
	chosen   string   // the database that is meant
	secrets  []string // parts of database that no text may show
}

func (a *app) root() *cobra.Command {
	root := &cobra.Command{
		Use:     "retryjobs",
		Version: a.Version,
		Short:   "Look at the jobs of a retryriver database, and change them",
		Args:    cobra.ArbitraryArgs,
		RunE: func(cmd *cobra.Command, args []string) error {
			if len(args) == 0 {
				return cmd.Help()
			}
			meant := ""
			if similar := cmd.SuggestionsFor(args[0]); len(similar) > 0 {
				meant = "; did you mean " + strings.Join(similar, " or ") + "?"
			}
			return fmt.Errorf("unknown command %q%s", args[0], meant)
		},
		SuggestionsMinimumDistance: 2,
		SilenceErrors:              true,
		SilenceUsage:               true,
	}
	flags := root.PersistentFlags()
	flags.StringVar(&a.database, "database", "", "SQLite `file` or postgres:// URL (default $"+databaseVariable+")")
	flags.BoolVar(&a.json, "json", false, "print JSON")
	root.AddCommand(a.listCommand(), a.showCommand(), a.replayCommand(), a.cancelCommand(), a.purgeCommand(), a.statsCommand(),
		a.watchCommand(), a.serveCommand())
	return root
}

// session is a command at work on an open database.
type session struct {
	*app
	store Store
	out   *bufio.Writer
	err   io.Writer
	now   time.Time
}

// work opens the database, lets do work on it and closes it. The error is a *failure, unless it is about the flags.
func (a *app) work(cmd *cobra.Command, now time.Time, do func(context.Context, *session) error) error {
	database, err := a.choose(cmd.Flags().Changed("database"))
	if err != nil {
		return err
	}
	a.chosen = database
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

// remark prints a line beside the output, after what there is of that.
func (s *session) remark(format string, args ...any) {
	_ = s.out.Flush() // it fails again at the end
	s.complain(s.err, fmt.Errorf(format, args...))
}

// complain prints err on one line.
func (a *app) complain(w io.Writer, err error) {
	fmt.Fprintf(w, "retryjobs: %s\n", a.text(err))
}

// text returns an error on one line, without the database's password and without what could harm a terminal.
func (a *app) text(err error) string { return printable(redact(err.Error(), a.secrets)) }
