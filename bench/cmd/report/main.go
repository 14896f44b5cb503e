// Command report runs the benchmarks of package bench in turns and writes bench/RESULTS.md, and beside it RESULTS.txt,
// the results in Go's benchmark format, for benchstat. -from reads such a file instead of measuring.
//
//	go run ./bench/cmd/report
package main

import (
	"bytes"
	"cmp"
	"context"
	"errors"
	"flag"
	"fmt"
	"os"
	"os/exec"
	"os/signal"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
)

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt)
	context.AfterFunc(ctx, stop) // a second interrupt ends the process at once
	if err := run(ctx, os.Args[1:]); err != nil && !errors.Is(err, flag.ErrHelp) {
		fmt.Fprintln(os.Stderr, "report:", err)
		os.Exit(1)
	}
}

func run(ctx context.Context, args []string) error {
	flags := flag.NewFlagSet("report", flag.ContinueOnError)
	var (
		from      = flags.String("from", "", "read the results from `file`, and measure nothing")
		output    = flags.String("o", "", "`file` to write; by default RESULTS.md in the module's folder")
		only      = flags.String("run", "", "only the benchmarks whose name matches `regexp`")
		rounds    = flags.Int("rounds", 11, "how often each contender is measured")
		benchtime = flags.String("benchtime", "60ms", "about how long a contender runs in a round")
	)
	if err := flags.Parse(args); err != nil {
		return err
	}
	pattern, err := regexp.Compile(*only)
	switch {
	case err != nil:
		return err
	case flags.NArg() > 0:
		return fmt.Errorf("unexpected argument %q", flags.Arg(0))
	case *rounds < 1:
		return fmt.Errorf("-rounds %d is below 1", *rounds)
	case !slices.ContainsFunc(scenarios, func(s scenario) bool { return pattern.MatchString(s.Bench) }):
		return fmt.Errorf("no benchmark matches -run %q", *only)
	}
	module, err := goCommand(ctx, ".", "list", "-f", "{{.Module.Dir}}", "github.com/retrygo/retry/bench")
	if err != nil {
		return err
	}
	written := cmp.Or(*output, filepath.Join(module, "RESULTS.md"))
	var results []byte
	var failed error // contenders that could not be measured every time; the report is written nevertheless
	if *from != "" {
		results, err = os.ReadFile(*from)
	} else {
		var all bytes.Buffer
		failed = measure(ctx, module, pattern, *rounds, *benchtime, &all)
		results = all.Bytes()
		err = os.WriteFile(strings.TrimSuffix(written, filepath.Ext(written))+".txt", results, 0o644)
		err = cmp.Or(ctx.Err(), err)
	}
	if err != nil {
		return err
	}
	// Outside the workspace, the versions are those of the module's go.mod.
	modules, err := goCommand(ctx, module, "list", "-m", "-f",
		"{{if not (or .Main .Indirect .Replace)}}| {{.Path}} | {{.Version}} |{{end}}", "all")
	if err != nil {
		return errors.Join(err, failed)
	}
	text, err := render(results, modules)
	if err != nil {
		return errors.Join(err, failed)
	}
	return errors.Join(os.WriteFile(written, text, 0o644), failed)
}

// goCommand runs the go command in a folder, outside any workspace if the folder is a module's: the versions are then
// those of its go.mod.
func goCommand(ctx context.Context, dir string, args ...string) (string, error) {
	cmd := exec.CommandContext(ctx, "go", args...)
	cmd.Dir, cmd.Stderr = dir, os.Stderr
	if dir != "." {
		cmd.Env = append(os.Environ(), "GOWORK=off")
	}
	text, err := cmd.Output()
	if err != nil {
		return "", fmt.Errorf("go %s: %w", args[0], err)
	}
	return strings.TrimSpace(string(text)), nil
}
