// Package cli implements command retryplan without its process: Run takes arguments, writes text and returns an exit
// status.
package cli

import (
	"bufio"
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"strings"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"github.com/retrygo/retry/cmd/retryplan/internal/say"
)

// Options describe the process that a command runs in.
type Options struct {
	// Stdin is read for a policy named "-".
	Stdin io.Reader
	// Version is printed by --version. Empty means that there is no such flag.
	Version string
}

// The exit statuses of Run.
const (
	Done        = 0
	Failed      = 1   // the command failed, or has findings at or above --fail-on
	Usage       = 2   // the command line is wrong, and nothing was done
	Interrupted = 130 // the command was interrupted, and printed its results so far
)

// Run runs the command line args, which do not include the program's name, and returns the exit status. The output goes
// to stdout. Errors and remarks go to stderr, each on one line that begins with "retryplan: ". If ctx ends, Run stops a
// simulation and prints its results so far.
func Run(ctx context.Context, o Options, args []string, stdout, stderr io.Writer) int {
	a := &app{Options: o, ctx: ctx, out: bufio.NewWriter(stdout), err: stderr}
	root := a.root()
	root.SetArgs(append([]string{}, args...)) // for nil, cobra would take the arguments of the process
	root.SetOut(a.out)
	root.SetErr(stderr)
	cmd, err := root.ExecuteContextC(ctx)
	flushed := a.out.Flush()
	err = cmp.Or(flushed, blame(err))
	_, isUsage := errors.AsType[*misuse](err)
	switch {
	case err == nil:
		return Done
	case isUsage || a.flags == nil && flushed == nil: // cobra refused the command line
		a.complain(err)
		fmt.Fprintf(stderr, "retryplan: run '%s --help' for usage\n", cmd.CommandPath())
		return Usage
	case ctx.Err() != nil && flushed == nil:
		a.complain(fmt.Errorf("interrupted: %w", err))
		return Interrupted
	}
	a.complain(err)
	return Failed
}

// misuse is an error of the command line.
type misuse struct{ error }

func (m *misuse) Unwrap() error { return m.error }

func misusef(format string, args ...any) error { return &misuse{fmt.Errorf(format, args...)} }

// blame makes a misuse of an error about fields that flags set. Those of documents are retryconf's.
func blame(err error) error {
	if fields := say.Fields(err); len(fields) > 0 && fields[0].Package != "retryconf" {
		return &misuse{err}
	}
	return err
}

// app is one run of the program.
type app struct {
	Options
	inputs
	ctx    context.Context
	flags  *pflag.FlagSet // of the command; nil until cobra has accepted the command line
	out    *bufio.Writer
	err    io.Writer
	shown  bool     // whether a policy was printed
	caught []string // findings at or above --fail-on
}

func (a *app) root() *cobra.Command {
	root := &cobra.Command{
		Use:           "retryplan",
		Version:       a.Version,
		Short:         "Show what a retry policy will do before it ships",
		Long:          overview,
		SilenceErrors: true,
		SilenceUsage:  true,
		PersistentPreRunE: func(cmd *cobra.Command, _ []string) error {
			a.flags = cmd.Flags()
			return a.settle()
		},
	}
	root.CompletionOptions.HiddenDefaultCmd = true
	root.AddCommand(
		a.showCommand(), a.simulateCommand(), a.chainCommand(),
		a.compareCommand(), a.lintCommand(), a.serveCommand(),
	)
	for _, cmd := range root.Commands() {
		cmd.Flags().SortFlags = false
	}
	return root
}

// complain prints err on one line.
func (a *app) complain(err error) {
	fmt.Fprintf(a.err, "retryplan: %s\n", rephrase.Replace(say.OneLine(err.Error())))
}

// rephrase leaves out the names of package retryplan and its structs, and makes one sentence of cobra's lines.
var rephrase = strings.NewReplacer("retryplan: ", "", "Fleet.", "", "Chain.", "", "Question.", "", "Model.", "", "Did you mean this?; ", "did you mean ")

// remark prints a line on stderr after the output so far.
func (a *app) remark(format string, args ...any) {
	_ = a.out.Flush() // an error is sticky; Run reports it
	a.complain(fmt.Errorf(format, args...))
}

const overview = `retryplan shows what a retry policy will do before it ships: the schedule with its spread, the chance of success, the
load on the backend, and in how many simulations a fleet comes back from a stall. It makes no calls and does not wait.

A POLICY is one of the following. Flags change it. Without one, it is the default policy.
  policy.json          a document of retryconf: one policy, or a catalog, which is all its policies
  email@policies.json  the policy "email" of a catalog
  preset:standard      inline, aggressive, standard, patient, cautious or delivery
  -                    a document on standard input
Fields that a document leaves out have the library's defaults, not those of the program that loads it.

A duration is written 250ms, 30s, 1m30s or 2h. A distribution is written "10ms", "exponential 10ms", "uniform 5ms
20ms" or "lognormal 20ms 200ms" (median, 99th percentile).

Exit status: 0 if the command is done; 1 if it failed or has findings at or above --fail-on; 2 if the command line is
wrong; 130 if it was interrupted, after printing what it had.`
