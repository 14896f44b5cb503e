package cli_test

import (
	"bytes"
	"context"
	"flag"
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
	"unicode/utf8"

	"github.com/stretchr/testify/require"

	"github.com/retrygo/retry/cmd/retryplan/internal/cli"
)

var update = flag.Bool("update", false, "write the golden files")

// ran is the result of a command.
type ran struct {
	Exit     int
	Out, Err string
}

// run runs a command line in testdata, without the word retryplan.
func run(t *testing.T, line string) ran {
	t.Helper()
	return runIn(t, t.Context(), cli.Options{Stdin: strings.NewReader("")}, line)
}

func runIn(t *testing.T, ctx context.Context, c cli.Options, line string) ran {
	t.Helper()
	if _, err := os.Stat("testdata"); err == nil {
		t.Chdir("testdata")
	}
	var out, err bytes.Buffer
	exit := cli.Run(ctx, c, split(line), &out, &err)
	return ran{exit, out.String(), err.String()}
}

// ended returns a context that is done: a page is served for a moment.
func ended(t *testing.T) context.Context {
	ctx, end := context.WithCancel(t.Context())
	end()
	return ctx
}

// headline returns the lines before the first empty one as one.
func headline(out string) string {
	first, _, _ := strings.Cut(out, "\n\n")
	return unwrapped(first)
}

var indented = regexp.MustCompile(`\n {2,}`)

// unwrapped appends lines that are indented to the one before.
func unwrapped(out string) string { return indented.ReplaceAllString(out, " ") }

// split splits a command line at spaces that are not between double quotes.
func split(line string) []string {
	var args []string
	for i, part := range strings.Split(line, `"`) {
		if i%2 == 1 {
			args = append(args, part)
		} else {
			args = append(args, strings.Fields(part)...)
		}
	}
	return args
}

// TestOutput holds the output of every command to the reviewed golden files. go test -update rewrites them.
func TestOutput(t *testing.T) {
	for _, row := range []struct{ name, line string }{
		{"help", ""},
		{"help_simulate", "simulate --help"},
		{"show_preset", "show preset:standard"},
		{"show_default", "show"},
		{"show_jitter", "show policy.json --inline --deadline 5s --duration 20ms --clients 1000"},
		{"show_catalog", "show policies.json"},
		{"show_unreachable", "show --attempts 6 --ttl 30s"},
		{"show_unlimited", "show --attempts unlimited --jitter decorrelated"},
		{"show_guard", "show policies.json --fail-on severe --deadline 1s"},
		{"show_run", `show policy.json --failure 0.9,0.5,0.1 --duration "lognormal 20ms 200ms" --deadline 10s`},
		{"simulate_lost", "simulate policy.json --attempt-timeout 1s --rate 70 --capacity 100"},
		{"simulate_back", `simulate policy.json --attempt-timeout 1s --rate 70 --capacity 100 --trigger "stall 5s" --budget`},
		{"simulate_mixed", `simulate policy.json --attempt-timeout 1s --rate 70 --capacity 100 --trigger "stall 1100ms" --seeds 10`},
		{"simulate_band", "simulate policy.json --attempt-timeout 1s --rate 20 --capacity 25 --seeds 4 --band"},
		{"simulate_hedges", `simulate preset:inline --attempt-timeout 2s --rate 70 --capacity 200 --trigger none --budget --duration "lognormal 10ms 300ms" --hedge-share 0.05 --seeds 3`},
		{"simulate_budget", "simulate policy.json --attempt-timeout 1s --rate 70 --capacity 100 --budget --clients 20 --seeds 5"},
		{"simulate_overloaded", "simulate policy.json --attempt-timeout 1s --rate 170 --capacity 100 --fail-on severe"},
		{"simulate_outage", `simulate --attempts 4 --base 2s --jitter full --attempt-timeout 1s --rate 70 --capacity 100 --trigger "outage 5m" --seeds 4`},
		{"simulate_drains", `simulate preset:inline --attempt-timeout 1s --rate 20 --capacity 100 --trigger "stall 10m" --seeds 3`},
		{"simulate_failing", `simulate --attempts 4 --delays 10ms --attempt-timeout 1s --rate 65 --capacity 100 --failure-rate 0.01 --trigger "failing 1m 0.5" --seeds 4`},
		{"chain", "chain --layers 3 --attempts 4 --base 50ms --failure 0.5"},
		{"chain_storm", "chain --layers 3 --attempts 3 --base 10ms --timeouts 10s,3.2s,1s --rate 10 --capacity 100 --seeds 4"},
		{"chain_guard", "chain --layers 3 --attempts 3 --delays 50ms --timeouts 10s,3.2s,900ms --rate 40 --capacity 100 --fail-on severe --seeds 2"},
		{"compare", "compare policy.json preset:aggressive email@policies.json --failure 0.3"},
		{"compare_fleet", `compare policies.json --attempt-timeout 1s --rate 40 --capacity 100 --trigger "stall 10s" --seeds 4`},
		{"lint", "lint policies.json"},
		{"lint_github", "lint policies.json --jitter none --format github"},
		{"simulate_from", "simulate preset:inline --from price@metrics.txt --over 30s --capacity 100 --budget --seeds 4"},
		{"show_from", "show policy.json --from price@metrics.txt --over 30s"},
		{"lint_fleet", "lint policies.json --attempt-timeout 1s --rate 70 --capacity 100 --seeds 4"},
	} {
		t.Run(row.name, func(t *testing.T) {
			got := run(t, row.line)
			text := fmt.Sprintf("$ retryplan %s\n%s", row.line, got.Out)
			if got.Err != "" || got.Exit != cli.Done {
				text += fmt.Sprintf("-- stderr, exit status %d\n%s", got.Exit, got.Err)
			}
			file := filepath.Join("golden", row.name+".txt")
			if *update {
				require.NoError(t, os.WriteFile(file, []byte(text), 0o644))
			}
			want, err := os.ReadFile(file)
			require.NoError(t, err)
			require.Equal(t, string(want), text)
			for line := range strings.Lines(got.Out) {
				require.Equal(t, strings.TrimRight(line, " \n")+"\n", line, "a space at the end of a line")
				if !strings.HasPrefix(row.name, "lint") && !strings.HasPrefix(row.name, "help") && line[0] != '\t' {
					require.LessOrEqual(t, utf8.RuneCountInString(line), 80+1, line)
				}
			}
		})
	}
}

// TestExamplesInHelp runs the examples that help shows.
func TestExamplesInHelp(t *testing.T) {
	n := 0
	for _, command := range commands {
		help := run(t, command+" --help")
		require.Equal(t, cli.Done, help.Exit)
		_, examples, ok := strings.Cut(help.Out, "Examples:\n")
		require.True(t, ok, command)
		for line := range strings.Lines(examples) {
			line, ok = strings.CutPrefix(strings.TrimSpace(line), "retryplan ")
			if !ok {
				break
			}
			n++
			t.Run(line, func(t *testing.T) {
				require.True(t, strings.HasPrefix(line, command+" ") || line == command)
				ctx := t.Context()
				if command == "serve" {
					ctx = ended(t)
				}
				got := runIn(t, ctx, cli.Options{}, line)
				require.NotEqual(t, cli.Usage, got.Exit, got.Err)
				require.NotEmpty(t, got.Out, got.Err)
				if got.Exit != cli.Done {
					require.Contains(t, got.Err, "at or above", "only a guard may fail")
				}
			})
		}
	}
	require.GreaterOrEqual(t, n, len(commands))
}

var commands = []string{"show", "simulate", "chain", "compare", "lint", "serve"}

// TestREADMEShowsWhatIsPrinted runs the commands in README.md. It may break lines elsewhere, and leave out lines at the
// end.
func TestREADMEShowsWhatIsPrinted(t *testing.T) {
	readme, err := os.ReadFile(filepath.Join("..", "..", "README.md"))
	require.NoError(t, err)
	words := func(text string) string { return strings.Join(strings.Fields(text), " ") }
	n := 0
	for block := range strings.SplitSeq(string(readme), "```text\n") {
		line, printed, _ := strings.Cut(block, "\n")
		command, ok := strings.CutPrefix(line, "$ retryplan ")
		if !ok {
			continue
		}
		n++
		printed, _, _ = strings.Cut(printed, "```")
		got := run(t, command)
		require.Contains(t, words(got.Out+got.Err), words(printed))
	}
	require.Equal(t, 4, n)
}
