// Command report measures retry beside its peers and writes bench/RESULTS.md. Run it from the repository's root:
//
//	go run ./bench/cmd/report
//
// It takes some minutes and a machine that has nothing else to do. -run measures some scenarios only and prints them.
package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"io"
	"os"
	"os/signal"
	"path/filepath"
	"regexp"
	"strings"
	"time"

	"github.com/retrygo/retry/bench/internal/contest"
	"github.com/retrygo/retry/bench/internal/scenario"
)

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt)
	context.AfterFunc(ctx, stop) // a second interrupt ends the process at once
	err := run(ctx, os.Args[1:], scenario.All(), os.Stdout, os.Stderr)
	if err != nil && !errors.Is(err, flag.ErrHelp) {
		fmt.Fprintln(os.Stderr, "report:", err)
		os.Exit(1)
	}
}

// run measures the scenarios that args name and writes the report, to stdout if args say so. It returns nil when the
// report was written, whatever it says.
func run(ctx context.Context, args []string, scenarios []contest.Scenario, stdout, stderr io.Writer) error {
	defaults := contest.Options{}.WithDefaults()
	flags := flag.NewFlagSet("report", flag.ContinueOnError)
	flags.SetOutput(stderr)
	var (
		output = flags.String("o", "", "`file` to write; by default bench/RESULTS.md, or the standard output with -run")
		rounds = flags.Int("rounds", defaults.Rounds, "how often each contender is sampled")
		sample = flags.Duration("sample", defaults.SampleTime, "about how long a contender runs in a round")
		only   = flags.String("run", "", "measure only the scenarios whose name matches `regexp`")
	)
	if err := flags.Parse(args); err != nil {
		return err
	}
	switch {
	case flags.NArg() > 0:
		return fmt.Errorf("unexpected argument %q", flags.Arg(0))
	case *rounds < 1:
		return fmt.Errorf("-rounds %d is below 1", *rounds)
	case *sample <= 0:
		return fmt.Errorf("-sample %v is not above 0", *sample)
	}
	scenarios, err := matching(scenarios, *only)
	if err != nil {
		return err
	}
	file := *output
	if file == "" && *only == "" {
		file = resultsFile()
	}
	if file != "" { // now, not after minutes of measuring
		if _, err := os.Stat(filepath.Dir(file)); err != nil {
			return err
		}
	}

	results, err := contest.Run(ctx, scenarios, contest.Options{Rounds: *rounds, SampleTime: *sample, Progress: stderr})
	if err != nil {
		return err
	}
	env := thisEnvironment(time.Now())
	env.Command, env.Rounds, env.SampleTime = command(flags), *rounds, *sample
	text, err := render(env, results)
	if err != nil {
		return err
	}
	if file == "" {
		_, err = io.WriteString(stdout, text)
		return err
	}
	return os.WriteFile(file, []byte(text), 0o644)
}

// matching returns the scenarios whose name the regular expression matches. It is an error if there are none.
func matching(scenarios []contest.Scenario, expression string) ([]contest.Scenario, error) {
	pattern, err := regexp.Compile(expression)
	if err != nil {
		return nil, fmt.Errorf("-run: %w", err)
	}
	var matched []contest.Scenario
	for _, s := range scenarios {
		if pattern.MatchString(s.Name) {
			matched = append(matched, s)
		}
	}
	if len(matched) == 0 {
		return nil, fmt.Errorf("-run: no scenario matches %q", expression)
	}
	return matched, nil
}

// resultsFile returns bench/RESULTS.md in the folder that has go.work: the working directory or the nearest one above
// it. Without one it is RESULTS.md in the working directory.
func resultsFile() string {
	const name = "RESULTS.md"
	dir, err := os.Getwd()
	if err != nil {
		return name
	}
	for {
		if _, err := os.Stat(filepath.Join(dir, "go.work")); err == nil {
			return filepath.Join(dir, "bench", name)
		}
		if filepath.Dir(dir) == dir {
			return name
		}
		dir = filepath.Dir(dir)
	}
}

// command returns the command line that measures the same again. It leaves out -o: a path is of one machine only.
func command(flags *flag.FlagSet) string {
	text := "go run ./bench/cmd/report"
	flags.Visit(func(f *flag.Flag) {
		if f.Name != "o" {
			text += fmt.Sprintf(" -%s %s", f.Name, quoted(f.Value.String()))
		}
	})
	return text
}

// quoted returns word as a shell reads it.
func quoted(word string) string {
	if word != "" && !strings.ContainsFunc(word, func(r rune) bool {
		return !strings.ContainsRune("abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789._-", r)
	}) {
		return word
	}
	return "'" + strings.ReplaceAll(word, "'", `'\''`) + "'"
}
