// Package cli is command retryplan without its process: arguments come in, text and an exit status go out.
package cli

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"
	"strings"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"github.com/retrygo/retry"
	"github.com/retrygo/retry/cmd/retryplan/internal/wire"
)

// Options are what the commands take from the process that they run in.
type Options struct {
	// Stdin is read for a policy named "-".
	Stdin io.Reader
	// Width is the width of the terminal that stdout is, in columns. Zero means that it is none.
	Width int
	// Progress says that stderr is a terminal, on which long simulations show their progress. The zero value means none
	// is shown.
	Progress bool
	// Serve serves the page of retryplan serve until ctx ends, which is no error, and calls ready with its address.
	Serve func(ctx context.Context, addr string, p retry.Policy, ready func(url string)) error
	// Version is what --version prints. Empty means that there is no such flag.
	Version string
}

// The exit statuses of Run.
const (
	Done        = 0
	Failed      = 1   // the command was understood and could not be done, or found what --fail-on is about
	Usage       = 2   // the command line is wrong, and nothing was done
	Interrupted = 130 // the command was stopped; what there was so far is printed
)

// Run runs the command that args give, the program's name not among them, and returns the exit status. What is asked for
// goes to stdout; errors and remarks go to stderr, each on one line that begins with "retryplan: ". When ctx ends, a
// simulation stops and what it has seen is printed.
func Run(ctx context.Context, o Options, args []string, stdout, stderr io.Writer) int {
	a := &app{Options: o, ctx: ctx, out: bufio.NewWriter(stdout), err: stderr}
	root := a.root()
	root.SetArgs(append([]string{}, args...)) // not nil, for which cobra takes those of the process
	root.SetOut(a.out)
	root.SetErr(stderr)
	cmd, err := root.ExecuteContextC(ctx)
	err = a.blame(err)
	_, isUsage := errors.AsType[*misuse](err)
	flushed := a.out.Flush()
	switch {
	case err == nil && flushed == nil:
		return Done
	case flushed != nil:
		a.complain(flushed)
		return Failed
	case isUsage || a.flags == nil: // it did not come as far as its own work
		a.complain(err)
		fmt.Fprintf(stderr, "retryplan: '%s --help' says more\n", cmd.CommandPath())
		return Usage
	case ctx.Err() != nil:
		a.complain(fmt.Errorf("interrupted: %w", err))
		return Interrupted
	}
	a.complain(err)
	return Failed
}

// misuse is an error of the command line.
type misuse struct{ error }

func (m *misuse) Unwrap() error { return m.error }

// misusef returns an error of the command line.
func misusef(format string, args ...any) error { return &misuse{fmt.Errorf(format, args...)} }

// app is one run of the program.
type app struct {
	Options
	ctx   context.Context
	flags *pflag.FlagSet // of the command, once it begins its work
	out   *bufio.Writer
	err   io.Writer
	json  bool
	all   []shown // what was made of each policy
}

func (a *app) root() *cobra.Command {
	root := &cobra.Command{
		Use:           "retryplan",
		Version:       a.Version,
		Short:         "See what a retry policy will do before it ships",
		Long:          overview,
		SilenceErrors: true,
		SilenceUsage:  true,

		SuggestionsMinimumDistance: 2,
		Args: func(cmd *cobra.Command, args []string) error {
			if len(args) == 0 {
				return nil
			}
			err := fmt.Errorf("unknown command %q", args[0])
			if near := cmd.SuggestionsFor(args[0]); len(near) > 0 {
				err = fmt.Errorf("%w; did you mean %s?", err, strings.Join(near, " or "))
			}
			return err
		},
		PersistentPreRun: func(cmd *cobra.Command, _ []string) { a.flags = cmd.Flags() },
		RunE:             func(cmd *cobra.Command, _ []string) error { return cmd.Help() },
	}
	root.PersistentFlags().BoolVar(&a.json, "json", false, "print JSON")
	root.SetFlagErrorFunc(func(_ *cobra.Command, err error) error { return flagError(err) })
	root.CompletionOptions.HiddenDefaultCmd = true
	root.AddCommand(
		a.showCommand(), a.planCommand(), a.simulateCommand(), a.certifyCommand(), a.chainCommand(), a.solveCommand(), a.compareCommand(),
		a.lintCommand(), a.schemaCommand(), a.serveCommand(),
	)
	for _, cmd := range root.Commands() {
		cmd.Flags().SortFlags = false
	}
	return root
}

// complain prints err on one line.
func (a *app) complain(err error) {
	text := strings.ReplaceAll(wire.OneLine(err.Error()), "retryplan: ", "")
	fmt.Fprintf(a.err, "retryplan: %s\n", text)
}

// remark prints a line beside the output, after what there is of that.
func (a *app) remark(format string, args ...any) {
	_ = a.out.Flush() // it fails again at the end
	a.complain(fmt.Errorf(format, args...))
}

const overview = `retryplan shows what a retry policy will do before it ships: the schedule with its spread, the chance to succeed, the
load on the backend, and whether a storm of retries can become permanent. It calls nothing and does not wait.

A POLICY is any of these; without one it is the default policy, as the flags change it:
  policy.json          a document of retryconf, JSON or YAML: one policy, or a catalog, all of whose policies are meant
  email@policies.json  the policy "email" of a catalog
  preset:standard      inline, aggressive, standard, patient, cautious or delivery; --preset standard is the same
  -                    a document on standard input
What a program defines beneath a catalog is not known here: what the document does not give has its default.

Durations are written 250ms, 30s, 1m30s, 2h. Distributions are written "10ms", "exponential 10ms", "normal 10ms 2ms"
(mean, standard deviation), "uniform 5ms 20ms" and "lognormal 20ms 200ms" (median, 99th percentile).

With --json, durations that are given are text and durations that come out are seconds, under keys that end in _seconds;
null is one that never comes, or that has no bound.

Exit status: 0 done; 1 it could not be done, or findings at or above --fail-on; 2 the command line is wrong;
130 interrupted, with what there was so far printed.`
