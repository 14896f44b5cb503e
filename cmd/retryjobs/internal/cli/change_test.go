package cli_test

import (
	"context"
	"io"
	"maps"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/retrygo/retry/cmd/retryjobs/internal/cli"
	"github.com/retrygo/retry/retryjob"
)

// replayedJobs returns the jobs of f that were replayed, sorted.
func replayedJobs(f *fake) []string {
	var ids []string
	for id, job := range f.jobs {
		if job.Status == retryjob.Pending && job.FirstDue.Equal(now) {
			ids = append(ids, id)
		}
	}
	slices.Sort(ids)
	return ids
}

func TestReplayTakesIDs(t *testing.T) {
	f := newFake(jobs()...)
	require.Equal(t, ran{Out: "replayed dead-1\nreplayed expired-1\n"}, run(t, f, "replay", "dead-1", "expired-1"))
	require.Equal(t, []string{"dead-1", "expired-1"}, replayedJobs(f))

	require.Equal(t, ran{Out: `{"job":"failed-1","replayed":true}` + "\n"}, run(t, f, "replay", "failed-1", "--json"))
}

func TestReplayNamesEachJobThatFailed(t *testing.T) {
	refused := "retryjob: not replayable: job pending-1 is pending, and only dead-lettered, expired and failed jobs are replayed"
	f := newFake(jobs()...)
	require.Equal(t, ran{
		cli.Failed,
		"replayed dead-1\nreplayed dead-2\n",
		"retryjobs: job pending-1: " + refused + "\n" +
			"retryjobs: job nope: retryjob: unknown job: never known here\n" +
			"retryjobs: 2 of 4 jobs were not replayed\n",
	}, run(t, f, "replay", "dead-1", "pending-1", "nope", "dead-2"))
	require.Equal(t, []string{"dead-1", "dead-2"}, replayedJobs(f))

	require.Equal(t, ran{
		cli.Failed,
		`{"job":"expired-1","replayed":true}` + "\n" + `{"err":"job pending-1: ` + refused + `","job":"pending-1","replayed":false}` + "\n",
		"retryjobs: job pending-1: " + refused + "\nretryjobs: 1 of 2 jobs were not replayed\n",
	}, run(t, f, "replay", "--json", "expired-1", "pending-1"))

	require.Equal(t, ran{cli.Failed, "", "retryjobs: job pending-1: " + refused + "\n"}, run(t, f, "replay", "pending-1"))
}

func TestReplayTakesAllThatAFilterSelects(t *testing.T) {
	for _, row := range []struct {
		name string
		args []string
		out  string
		want []string
	}{
		{"by policy, only what was given up", []string{"--policy", "patient"}, "replayed 1 job\n", []string{"dead-2"}},
		{"by status", []string{"--status", "expired,failed_no_retries"}, "replayed 2 jobs\n", []string{"expired-1", "failed-1"}},
		{"without a filter, once it is sure", []string{"--yes"}, "replayed 4 jobs\n", []string{"dead-1", "dead-2", "expired-1", "failed-1"}},
		{"at most so many", []string{"--yes", "--limit", "1"}, "replayed 1 job\n", []string{"expired-1"}},
		{"as JSON", []string{"--since", "25h", "--json"}, `{"replayed":2}` + "\n", []string{"dead-2", "expired-1"}},
		{"none", []string{"--kind", "mail"}, "replayed 0 jobs\n", nil},
	} {
		t.Run(row.name, func(t *testing.T) {
			f := newFake(jobs()...)
			require.Equal(t, ran{Out: row.out}, run(t, f, append([]string{"replay", "--all"}, row.args...)...))
			require.Equal(t, row.want, replayedJobs(f))
		})
	}
}

func TestAReplayThatBreaksSaysHowFarItCame(t *testing.T) {
	f := newFake(jobs()...)
	f.broken = errBroken
	require.Equal(t, ran{cli.Failed, "replayed 1 job\n", "retryjobs: the connection broke\n"}, run(t, f, "replay", "--all", "--yes"))
	f = newFake(jobs()...)
	f.broken = errBroken
	require.Equal(t, ran{cli.Failed, `{"replayed":1}` + "\n", "retryjobs: the connection broke\n"}, run(t, f, "replay", "--all", "--yes", "--json"))
}

func TestPurgeRemovesWhatHasEnded(t *testing.T) {
	for _, row := range []struct {
		name string
		args []string
		out  string
		left int
	}{
		{"by status", []string{"--status", "succeeded,dead_letter"}, "purged 3 jobs\n", 6},
		{"by age", []string{"--until", "48h"}, "purged 2 jobs\n", 7},
		{"without a filter", []string{"--all"}, "purged 6 jobs\n", 3},
		{"as JSON", []string{"--all", "--json"}, `{"purged":6}` + "\n", 3},
		{"none, to see how many", []string{"--until", "48h", "--dry-run"}, "would purge 2 jobs\n", 9},
		{"none, to see how many in all", []string{"--dry-run", "--json"}, `{"would_purge":6}` + "\n", 9},
		{"what has ended only", []string{"--policy", "standard"}, "purged 4 jobs\n", 5},
	} {
		t.Run(row.name, func(t *testing.T) {
			f := newFake(jobs()...)
			require.Equal(t, ran{Out: row.out}, run(t, f, append([]string{"purge", "--yes"}, row.args...)...))
			require.Len(t, slices.Collect(maps.Keys(f.jobs)), row.left)
		})
	}
}

func TestACountThatBreaksFails(t *testing.T) {
	f := newFake(jobs()...)
	f.broken = errBroken
	require.Equal(t, ran{cli.Failed, "", "retryjobs: the connection broke\n"}, run(t, f, "purge", "--dry-run"))
	require.Equal(t, ran{cli.Failed, "", "retryjobs: the connection broke\n"}, run(t, f, "stats"))
}

func TestPurgeTakesIDs(t *testing.T) {
	f := newFake(jobs()...)
	require.Equal(t, ran{
		cli.Failed, "purged dead-1\n",
		"retryjobs: job waiting-1: retryjob: the job is waiting_retry, and only jobs that have ended are purged\n" +
			"retryjobs: job nope: retryjob: unknown job: never known here\nretryjobs: 2 of 3 jobs were not purged\n",
	}, run(t, f, "purge", "--yes", "dead-1", "waiting-1", "nope"))
	require.Len(t, f.jobs, 8)
	require.Equal(t, ran{Out: `{"job":"dead-2","purged":true}` + "\n"}, run(t, f, "purge", "--yes", "--json", "dead-2"))
	require.Len(t, f.jobs, 7)
}

func TestAPurgedIDTakesNoOtherJobAlong(t *testing.T) {
	twin := jobs()[4]
	twin.JobID = "twin"
	f := newFake(append(jobs(), twin)...)
	require.Equal(t, ran{Out: "purged dead-1\n"}, run(t, f, "purge", "--yes", "dead-1"))
	require.Len(t, f.jobs, 9)
}

func TestCancelTakesIDs(t *testing.T) {
	f := newFake(jobs()...)
	require.Equal(t, ran{
		cli.Failed, "canceled waiting-1\ncanceled pending-1\n",
		"retryjobs: job dead-1: retryjob: job dead-1 is dead_letter already\nretryjobs: 1 of 3 jobs were not canceled\n",
	}, run(t, f, "cancel", "waiting-1", "dead-1", "pending-1"))
	require.Equal(t, retryjob.Canceled, f.jobs["waiting-1"].Status)
	require.Equal(t, ran{Out: `{"canceled":true,"job":"leased-1"}` + "\n"}, run(t, f, "cancel", "leased-1", "--json"))
}

func TestPurgeAsksOnATerminal(t *testing.T) {
	for _, row := range []struct {
		answer string
		args   []string
		asked  string
		out    string
		left   int
	}{
		{"y\n", []string{"--status", "succeeded,dead_letter"}, "purge 3 jobs?", "purged 3 jobs\n", 6},
		{" YES \n", []string{"--all"}, "purge 6 jobs?", "purged 6 jobs\n", 3},
		{"y", []string{"dead-1", "dead-2"}, "purge 2 jobs?", "purged dead-1\npurged dead-2\n", 7},
		{"n\n", []string{"--all"}, "purge 6 jobs?", "", 9},
		{"\n", []string{"dead-1"}, "purge 1 job?", "", 9},
		{"", []string{"--all"}, "purge 6 jobs?", "", 9},
	} {
		f := newFake(jobs()...)
		got := runOn(t, f, cli.Options{Answers: strings.NewReader(row.answer)}, append([]string{"purge"}, row.args...)...)
		require.Equal(t, row.out, got.Out, row.answer)
		if want := "retryjobs: " + row.asked + " [y/N] "; row.left == 9 {
			require.Equal(t, ran{cli.Failed, "", want + "retryjobs: no job was changed\n"}, got)
		} else {
			require.Equal(t, want, got.Err)
		}
		require.Len(t, f.jobs, row.left)
	}
	// A command that removes nothing does not ask.
	for _, args := range [][]string{{"--kind", "fax"}, {"--all", "--dry-run"}, {"--all", "--yes"}} {
		got := runOn(t, newFake(jobs()...), cli.Options{Answers: strings.NewReader("")}, append([]string{"purge"}, args...)...)
		require.Equal(t, ran{Out: got.Out}, got)
	}
}

func TestAQuestionEndsWithTheCommand(t *testing.T) {
	ctx, cancel := context.WithCancel(t.Context())
	f := newFake(jobs()...)
	question, silence := io.Pipe()
	defer silence.Close()
	go cancel()
	got := runIn(ctx, cli.Options{
		Open: func(context.Context, string) (cli.Store, error) { return f, nil }, Now: func() time.Time { return now },
		Getenv: func(string) string { return "jobs.db" }, Answers: question,
	}, "purge", "--all")
	require.Equal(t, cli.Failed, got.Exit)
	require.Contains(t, got.Err, "retryjobs: interrupted: context canceled\n")
	require.Len(t, f.jobs, 9)
}

func TestReplayCanOnlyCount(t *testing.T) {
	f := newFake(jobs()...)
	require.Equal(t, ran{Out: "would replay 4 jobs\n"}, run(t, f, "replay", "--all", "--dry-run"))
	require.Equal(t, ran{Out: "would replay 1 job\n"}, run(t, f, "replay", "--all", "--dry-run", "--reason", "ttl_elapsed"))
	require.Equal(t, ran{Out: `{"would_replay":2}` + "\n"}, run(t, f, "--json", "replay", "--all", "--dry-run", "--limit", "2"))
	require.Equal(t, retryjob.DeadLettered, f.jobs["dead-1"].Status)
	require.Equal(t, ran{Out: "would replay 1 job\n"}, run(t, f, "replay", "--dry-run", "dead-1", "leased-1", "unknown"))
	require.Equal(t, ran{Out: "would cancel 3 jobs\n"}, run(t, f, "cancel", "--dry-run"))
	require.Equal(t, ran{Out: "would purge 1 job\n"}, run(t, f, "purge", "--dry-run", "dead-1"))
}

func TestAFilterNeedsNoAll(t *testing.T) {
	f := newFake(jobs()...)
	require.Equal(t, ran{Out: "replayed 1 job\n"}, run(t, f, "replay", "--policy", "patient"))
	require.Equal(t, ran{Out: "canceled 2 jobs\n"}, run(t, f, "cancel", "--status", "leased,waiting_retry"))
	require.Equal(t, retryjob.Canceled, f.jobs["leased-1"].Status)
	require.Equal(t, retryjob.Pending, f.jobs["pending-1"].Status)
}

func TestAChangeOfAllJobsAsks(t *testing.T) {
	f := newFake(jobs()...)
	for _, command := range []string{"replay", "cancel"} {
		require.Equal(t, cli.Usage, run(t, f, command, "--all").Exit)
		got := runOn(t, f, cli.Options{Answers: strings.NewReader("n\n")}, command, "--all")
		require.Equal(t, cli.Failed, got.Exit)
		require.Contains(t, got.Err, "no job was changed")
	}
	require.Equal(t, ran{Out: "canceled 3 jobs\n"}, run(t, f, "cancel", "--all", "--yes"))
}
