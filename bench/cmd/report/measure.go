package main

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"math/rand/v2"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"runtime"
	"slices"
	"strconv"
	"strings"
	"time"
)

type options struct {
	rounds    int
	benchtime time.Duration
	pattern   *regexp.Regexp // of benchmarks
}

const onceRounds = 6 // of scenarios with Once: the fewest from which the median has a confidence interval of 95 %

// measure builds the benchmarks of the module and runs those of the scenarios. It writes their results to w as they
// come. In each round every contender of a scenario runs once, in a process of its own and in an order that is drawn
// for the round, so that what slows the machine for a while slows all of them.
//
// A contender that fails in one of the rounds is reported in failed, and the others are measured nevertheless.
func measure(ctx context.Context, module string, o options, w, progress io.Writer) (failed, err error) {
	if !slices.ContainsFunc(scenarios, func(s scenario) bool { return o.pattern.MatchString(s.Bench) }) {
		return nil, fmt.Errorf("no benchmark matches %q", o.pattern)
	}
	dir, err := os.MkdirTemp("", "bench")
	if err != nil {
		return nil, err
	}
	defer os.RemoveAll(dir)
	b := binary(filepath.Join(dir, "bench.test"))
	if _, err := goCommand(ctx, module, "test", "-c", "-o", string(b), "."); err != nil {
		return nil, err
	}
	cores := min(runtime.NumCPU(), runtime.GOMAXPROCS(0))
	fmt.Fprintf(w, "cores: %d\ngo: %s\ndate: %s\nrounds: %d\nbenchtime: %v\n",
		cores, runtime.Version(), time.Now().Format(time.DateOnly), o.rounds, o.benchtime)
	config, err := b.run(ctx, "^BenchmarkClock$", "1x", "1")
	if err != nil {
		return nil, err
	}
	_, _ = w.Write(config[:bytes.Index(config, []byte("Benchmark"))]) // goos, goarch, pkg, cpu

	var failures []error
	done := map[string]bool{}
	for i, s := range scenarios {
		if done[s.Bench] || !o.pattern.MatchString(s.Bench) {
			continue
		}
		done[s.Bench] = true
		fmt.Fprintf(progress, "%s %d/%d %s\n", time.Now().Format(time.TimeOnly), i+1, len(scenarios), s.Bench)
		contenders, err := b.contenders(ctx, s.Bench)
		if err != nil { // the scenario is left out
			failures = append(failures, err)
		}
		rounds, benchtime := o.rounds, o.benchtime.String()
		if s.Once {
			rounds, benchtime = min(rounds, onceRounds), "1x"
		}
		for round := range rounds {
			order := rand.Perm(len(contenders))
			if round == 0 {
				slices.Sort(order) // so that the results name the contenders in the order of the source
			}
			for _, k := range order {
				lines, err := b.run(ctx, pattern(s.Bench, contenders[k]), benchtime, cpu(s.Cores, cores))
				if ctx.Err() != nil {
					return nil, context.Cause(ctx)
				}
				if err != nil {
					failures = append(failures, err)
					fmt.Fprintln(progress, err)
				}
				if _, err := w.Write(onlyResults(lines)); err != nil {
					return nil, err
				}
			}
		}
	}
	return errors.Join(failures...), nil
}

// binary is the path of the compiled benchmarks.
type binary string

// run returns what the benchmarks that match print, without the line of the verdict.
func (b binary) run(ctx context.Context, pattern, benchtime, cpu string, more ...string) ([]byte, error) {
	ctx, cancel := context.WithTimeout(ctx, 5*time.Minute)
	defer cancel()
	cmd := exec.CommandContext(ctx, string(b), append(more,
		"-test.run=^$", "-test.bench="+pattern, "-test.benchtime="+benchtime, "-test.cpu="+cpu)...)
	cmd.Env = slices.DeleteFunc(os.Environ(), func(s string) bool { return strings.HasPrefix(s, "GOMAXPROCS=") })
	text, err := cmd.CombinedOutput()
	if err != nil {
		return nil, fmt.Errorf("%s: %w\n%s", pattern, err, text)
	}
	return bytes.TrimSuffix(text, []byte("PASS\n")), nil
}

// contenders returns the sub-benchmarks of a benchmark, each of which it runs once.
func (b binary) contenders(ctx context.Context, bench string) ([]string, error) {
	text, err := b.run(ctx, "^Benchmark"+bench+"$", "1x", "1", "-test.short")
	var names []string
	for line := range bytes.Lines(onlyResults(text)) {
		name, _, _ := strings.Cut(string(line), " ")
		_, name, _ = strings.Cut(name, "/")
		names = append(names, strings.TrimSpace(name))
	}
	return names, err
}

func onlyResults(text []byte) (lines []byte) {
	for line := range bytes.Lines(text) {
		if bytes.HasPrefix(line, []byte("Benchmark")) {
			lines = append(lines, line...)
		}
	}
	return lines
}

func pattern(bench, contender string) string { return "^Benchmark" + bench + "$/^" + contender + "$" }

// cpu returns the numbers of cores that the machine has, as -test.cpu takes them.
func cpu(wanted []int, cores int) string {
	text := "1"
	for _, k := range wanted {
		if k > 1 && k <= cores {
			text += "," + strconv.Itoa(k)
		}
	}
	return text
}
