package main

import (
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
	"strings"
	"time"
)

const onceRounds = 6 // of scenarios with Once: the fewest from which the median has a confidence interval of 95 %

// measure builds the benchmarks of the module and runs those of the scenarios that match. It writes their results to w
// as they come. In each round every contender of a scenario runs once, in a process of its own and in an order that is
// drawn for the round, so that what slows the machine for a while slows all of them.
//
// If a contender fails, the others are measured nevertheless.
func measure(
	ctx context.Context, module string, only *regexp.Regexp, rounds int, benchtime string, w io.Writer,
) (failed error) {
	dir, err := os.MkdirTemp("", "bench")
	if err != nil {
		return err
	}
	defer os.RemoveAll(dir)
	b := binary(filepath.Join(dir, "bench.test"))
	if _, err := goCommand(ctx, module, "test", "-c", "-o", string(b), "."); err != nil {
		return err
	}
	cores := min(runtime.NumCPU(), runtime.GOMAXPROCS(0))
	_, err = fmt.Fprintf(w, "cores: %d\ngo: %s\ndate: %s\nrounds: %d\nbenchtime: %s\n",
		cores, runtime.Version(), time.Now().Format(time.DateOnly), rounds, benchtime)
	if err != nil {
		return err
	}
	for i, s := range scenarios {
		if !only.MatchString(s.Bench) || i > 0 && s.Bench == scenarios[i-1].Bench {
			continue
		}
		fmt.Fprintf(os.Stderr, "%s %d/%d %s\n", time.Now().Format(time.TimeOnly), i+1, len(scenarios), s.Bench)
		contenders, err := b.contenders(ctx, s.Bench)
		failed = errors.Join(failed, err) // the scenario is left out
		rounds, benchtime := rounds, benchtime
		if s.Once {
			rounds, benchtime = min(rounds, onceRounds), "1x"
		}
		measured, _ := s.cores(cores)
		for round := range rounds {
			order := rand.Perm(len(contenders))
			if round == 0 {
				slices.Sort(order) // so that the results name the contenders in the order of the source
			}
			for _, k := range order {
				text, err := b.run(ctx, s.Bench+"$/^"+contenders[k]+"$", benchtime, measured)
				if ctx.Err() != nil {
					return context.Cause(ctx)
				}
				failed = errors.Join(failed, err)
				if _, err := w.Write(text); err != nil {
					return err
				}
			}
		}
	}
	return failed
}

// binary is the path of the compiled benchmarks.
type binary string

func (b binary) run(ctx context.Context, pattern, benchtime string, cores []int, more ...string) ([]byte, error) {
	cpu := strings.Trim(strings.ReplaceAll(fmt.Sprint(cores), " ", ","), "[]")
	text, err := exec.CommandContext(ctx, string(b), append(more, "-test.run=^$", "-test.bench=^Benchmark"+pattern,
		"-test.benchtime="+benchtime, "-test.cpu="+cpu, "-test.timeout=5m")...).CombinedOutput()
	if err != nil {
		return nil, fmt.Errorf("%s: %w\n%s", pattern, err, text)
	}
	return text, nil
}

// contenders returns the sub-benchmarks of a benchmark, each of which it runs once.
func (b binary) contenders(ctx context.Context, bench string) ([]string, error) {
	text, err := b.run(ctx, bench+"$", "1x", []int{1}, "-test.short")
	if err != nil {
		return nil, err
	}
	r, err := parse(text)
	return r.names[bench], err
}
