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

	"github.com/retrygo/retry/cmd/retryplan/internal/plots"
	"github.com/retrygo/retry/cmd/retryplan/internal/say"
)

// Options describe the process that a command runs in.
type Options struct {
	// Stdin is what a policy named "-" is read from. Nil means that standard input is closed.
	Stdin io.Reader
	// Version is what --version prints. Empty means that there is no such flag.
	Version string
}

// The exit statuses of Run.
const (
	Done        = 0
	Failed      = 1   // the command failed, or found what --fail-on asks for
	Usage       = 2   // the command line is wrong, and nothing was done
	Interrupted = 130 // the command was interrupted, and printed what it had
)

// Run runs the command line args, which do not include the program's name, and returns the exit status. The output goes
// to stdout. Errors and remarks go to stderr, each on one line that begins with "retryplan: ". If ctx ends, Run stops a
// simulation and prints what it has seen.
func Run(ctx context.Context, o Options, args []string, stdout, stderr io.Writer) int {
	a := &app{Options: o, ctx: ctx, out: bufio.NewWriter(stdout), err: stderr}
	root := a.root()
	root.SetArgs(append([]string{}, args...)) // for nil, cobra would take the arguments of the process
	root.SetOut(a.out)
	root.SetErr(stderr)
	cmd, err := root.ExecuteContextC(ctx)
	flushed := a.out.Flush()
	err = cmp.Or(flushed, a.blame(err))
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

// app is one run of the program.
type app struct {
	Options
	inputs
	ctx    context.Context
	flags  *pflag.FlagSet // of the command; nil until cobra has accepted the command line
	out    *bufio.Writer
	err    io.Writer
	all    []shown // what --json prints
	plans  []plots.Plan
	runs   []plots.Run // what --plot draws, or the plans if there are none
	caught []string    // what --fail-on asks for
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
			return a.settle(cmd)
		},
	}
	root.PersistentFlags().BoolVar(&a.json, "json", false, "print JSON")
	root.CompletionOptions.HiddenDefaultCmd = true
	root.AddCommand(
		a.showCommand(), a.simulateCommand(), a.chainCommand(),
		a.compareCommand(), a.lintCommand(), a.serveCommand(), a.pageCommand(),
	)
	for _, cmd := range root.Commands() {
		cmd.Flags().SortFlags = false
		for name, values := range completions {
			if cmd.Flags().Lookup(name) != nil {
				_ = cmd.RegisterFlagCompletionFunc(name, cobra.FixedCompletions(values, cobra.ShellCompDirectiveNoFileComp))
			}
		}
	}
	return root
}

// completions are the values of flags that a shell offers.
var completions = map[string][]string{
	"preset":  {"inline", "aggressive", "standard", "patient", "cautious", "delivery"},
	"format":  {"text", "github"},
	"jitter":  {"none", "full", "equal", "ratio", "decorrelated"},
	"trigger": {"stall 10s", "outage 5m", "failing 5m 0.5", "slowdown 10s 3", "capacity_cut 10s 0.5", "surge 10s 3", "none"},
}

// complain prints err on one line.
func (a *app) complain(err error) {
	fmt.Fprintf(a.err, "retryplan: %s\n", rephrase.Replace(say.OneLine(err.Error())))
}

// rephrase leaves out the prefix of package retryplan, and makes one sentence of cobra's lines.
var rephrase = strings.NewReplacer("retryplan: ", "", "Did you mean this?; ", "did you mean ")

// remark prints a line on stderr after the output so far.
func (a *app) remark(format string, args ...any) {
	_ = a.out.Flush() // an error is sticky; Run reports it
	a.complain(fmt.Errorf(format, args...))
}

const overview = `retryplan shows what a retry policy will do before it ships: the schedule with its spread, the chance of success, the
load on the backend, and in how many simulations a fleet comes back from a stall. It makes no calls and does not wait.

A POLICY is one of the following. Flags change it. Without one, it is the default policy.
  policy.json          a document of retryconf, JSON or YAML: one policy, or a catalog, which is all its policies
  email@policies.json  the policy "email" of a catalog
  preset:standard      inline, aggressive, standard, patient, cautious or delivery; also written --preset standard
  -                    a document on standard input
Fields that a document leaves out have the library's defaults, not those of the program that loads it.

A duration is written 250ms, 30s, 1m30s or 2h. A distribution is written "10ms", "exponential 10ms", "uniform 5ms
20ms" or "lognormal 20ms 200ms" (median, 99th percentile).

With --json, input is repeated as text, and computed durations are in seconds under keys that end in _seconds. A
duration that never comes or has no bound is null.

Exit status: 0 if the command is done; 1 if it failed or has findings at or above --fail-on; 2 if the command line is
wrong; 130 if it was interrupted, after printing what it had.`
