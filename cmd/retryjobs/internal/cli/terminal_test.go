package cli_test

import (
	"strings"
	"testing"
	"unicode/utf8"

	"github.com/stretchr/testify/require"

	"github.com/retrygo/retry/cmd/retryjobs/internal/cli"
)

func TestATableFitsTheTerminal(t *testing.T) {
	job := jobs()[2]
	job.History = job.History[:2]
	job.History[1].Err = strings.Repeat("long ", 100)
	f := newFake(job)
	for _, width := range []int{120, 140, 400} {
		got := runOn(t, f, cli.Options{Width: width}, "list")
		for line := range strings.Lines(got.Out) {
			require.LessOrEqual(t, utf8.RuneCountInString(strings.TrimSuffix(line, "\n")), width)
		}
		_, row, _ := strings.Cut(strings.TrimSpace(got.Out), "\n")
		require.InDelta(t, width, utf8.RuneCountInString(row), 1, "all of the width is used, but for a space at the end")
	}
	require.Contains(t, runOn(t, f, cli.Options{Width: 10}, "list").Out, "long long long long…", "however narrow it is")
	require.Contains(t, runOn(t, f, cli.Options{Width: 100}, "show", "waiting-1").Out, job.History[1].Err[:499], "show is for all of it")
}

func TestStatusesHaveColors(t *testing.T) {
	f := newFake(jobs()...)
	for _, args := range []string{"list", "show waiting-1", "stats"} {
		plain := run(t, f, strings.Fields(args)...)
		require.NotContains(t, plain.Out, "\x1b")
		got := runOn(t, f, cli.Options{Color: true}, strings.Fields(args)...)
		require.Contains(t, got.Out, "\x1b[33mwaiting_retry\x1b[0m")
		bare := got.Out
		for _, color := range []string{"31", "32", "33", "34", "35", "0"} {
			bare = strings.ReplaceAll(bare, "\x1b["+color+"m", "")
		}
		require.Equal(t, plain.Out, bare, "columns stay where they are")
	}
	require.NotContains(t, runOn(t, f, cli.Options{Color: true}, "list", "--json").Out, "\x1b")
}

func TestValuesAreCompleted(t *testing.T) {
	f := newFake(jobs()...)
	for args, want := range map[string]string{
		"list --status ":   "pending leased waiting_retry succeeded dead_letter expired failed_no_retries canceled",
		"replay --status ": "dead_letter expired failed_no_retries",
		"purge --reason ":  "terminal_error attempts_exhausted budget_exhausted ttl_elapsed deadline_passed deadline_too_near hint_too_long retries_disabled caller_canceled",
		"list --policy ":   "",
		"show d":           "",
		"list --since ":    "",
		"list ":            "",
		"stats ":           "",
	} {
		got := run(t, f, append([]string{"__complete"}, strings.Split(args, " ")...)...)
		require.Equal(t, cli.Done, got.Exit, got.Err)
		values, _, ok := strings.Cut(got.Out, ":4\n") // ShellCompDirectiveNoFileComp
		require.True(t, ok, "%s: %q", args, got.Out)
		require.Equal(t, want, strings.Join(strings.Fields(values), " "), args)
	}
}
