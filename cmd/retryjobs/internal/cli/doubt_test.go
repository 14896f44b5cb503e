package cli_test

import (
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/retrygo/retry/cmd/retryjobs/internal/cli"
	"github.com/retrygo/retry/retryjob"
)

// doubtful returns a store whose job dead-1 and a twin of it, lost-2, are in doubt.
func doubtful() *fake {
	all := jobs()
	all[4].History[0].Ambiguous = true
	twin := all[4]
	twin.JobID = "lost-2"
	return newFake(append(all, twin)...)
}

func TestAReplayOfJobsInDoubtNeedsAFlag(t *testing.T) {
	const left = " (2 in doubt left out: --doubt replays them too)\n"
	refused := "job dead-1: retryjob: in doubt: the work may have been done: find out, and replay it with --doubt"
	const help = "retryjobs: 'retryjobs replay --help' says more\n"
	needed := ran{Exit: cli.Usage, Err: "retryjobs: a replay of jobs in doubt needs --doubt: it does their work again, which may have been done\n" + help}
	both := []string{"dead-1", "lost-2"}
	for _, row := range []struct {
		args string
		want ran
		jobs []string
	}{
		{"--status dead_letter", ran{Out: "replayed 1 job" + left}, []string{"dead-2"}},
		{"--status dead_letter --dry-run", ran{Out: "would replay 1 job" + left}, nil},
		{"--status dead_letter --dry-run --json", ran{Out: `{"left_in_doubt":2,"would_replay":1}` + "\n"}, nil},
		{"--status dead_letter --json", ran{Out: `{"left_in_doubt":2,"replayed":1}` + "\n"}, []string{"dead-2"}},
		{"--status dead_letter --doubt --dry-run", ran{Out: "would replay 3 jobs\n"}, nil},
		{"--status dead_letter --doubt", ran{Out: "replayed 3 jobs\n"}, []string{"dead-1", "dead-2", "lost-2"}},
		{"--status dead_letter --in-doubt no", ran{Out: "replayed 1 job\n"}, []string{"dead-2"}},
		{"--in-doubt yes", needed, nil},
		{"--in-doubt yes --dry-run", needed, nil},
		{"--in-doubt yes --doubt", ran{Out: "replayed 2 jobs\n"}, both},
		{"--in-doubt perhaps", ran{Exit: cli.Usage, Err: "retryjobs: --in-doubt \"perhaps\" is not one of yes, no\n" + help}, nil},
		{"dead-1", ran{Exit: cli.Failed, Err: "retryjobs: " + refused + "\n"}, nil},
		{"dead-1 dead-2", ran{cli.Failed, "replayed dead-2\n", "retryjobs: " + refused + "\nretryjobs: 1 of 2 jobs were not replayed\n"}, []string{"dead-2"}},
		{"dead-1 dead-2 --dry-run", ran{Out: "would replay 1 job (1 in doubt left out: --doubt replays them too)\n"}, nil},
		{"dead-1 lost-2 --doubt", ran{Out: "replayed dead-1\nreplayed lost-2\n"}, both},
	} {
		t.Run(row.args, func(t *testing.T) {
			f := doubtful()
			require.Equal(t, row.want, run(t, f, append([]string{"replay"}, strings.Fields(row.args)...)...))
			require.Equal(t, row.jobs, replayedJobs(f))
		})
	}
	t.Run("the question says how many are left out", func(t *testing.T) {
		got := runOn(t, doubtful(), cli.Options{Answers: strings.NewReader("n\n")}, "replay", "--all")
		require.Contains(t, got.Err, "retryjobs: replay 3 jobs (2 in doubt left out: --doubt replays them too)? [y/N] ")
	})
	t.Run("no other command has the flag", func(t *testing.T) {
		require.Equal(t, cli.Usage, run(t, doubtful(), "purge", "--doubt", "--all").Exit)
		require.Equal(t, ran{Out: "purged 2 jobs\n"}, run(t, doubtful(), "purge", "--in-doubt", "yes", "--yes"))
	})
}

func TestWhatIsInDoubtIsShown(t *testing.T) {
	f := doubtful()
	require.Contains(t, run(t, f, "stats").Out, "\n2 (2 in doubt)  webhook  attempts_exhausted  no such account  2026-11-20T10:00:00Z  ")
	require.Contains(t, run(t, f, "stats", "--json").Out, `{"jobs":2,"in_doubt":2,"kind":"webhook",`)
	list := run(t, f, "list", "--in-doubt", "yes").Out
	require.Equal(t, 3, strings.Count(list, "\n"), list)
	require.Equal(t, 2, strings.Count(list, "attempts_exhausted (in doubt)  1"), list)
	require.Equal(t, 8, strings.Count(run(t, f, "list", "--in-doubt", "no", "--json").Out, "\n"))
	require.Regexp(t, `(?m)^in doubt +the work may have been done$`, run(t, f, "show", "dead-1").Out)
	require.NoError(t, f.jobs["dead-1"].Replay(now))
	shown := run(t, f, "show", "dead-1").Out
	require.NotRegexp(t, `(?m)^in doubt`, shown)
	require.Contains(t, shown, "in doubt, the work may have been done: no such account")
	require.Equal(t, retryjob.Pending, f.jobs["dead-1"].Status)
}
