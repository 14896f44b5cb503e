package cli_test

import (
	"maps"
	"slices"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/retrygo/retry/cmd/retryjobs/internal/cli"
	"github.com/retrygo/retry/retryjob"
)

// replayedJobs returns the jobs of f that were replayed, sorted.
func replayedJobs(f *fake) []string {
	var ids []string
	for id, job := range f.jobs {
		if job.Status == retryjob.Pending && job.First.Equal(now) {
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
	refused := "retryjob: only dead-lettered, expired and failed jobs are replayed: job pending-1 is pending"
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
		`{"job":"expired-1","replayed":true}` + "\n" + `{"job":"pending-1","replayed":false,"err":"job pending-1: ` + refused + `"}` + "\n",
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
		{"without a filter, once it is sure", []string{"--yes"}, "purged 6 jobs\n", 3},
		{"as JSON", []string{"--yes", "--json"}, `{"purged":6}` + "\n", 3},
		{"none, to see how many", []string{"--until", "48h", "--dry-run"}, "would purge 2 jobs\n", 9},
		{"none, to see how many in all", []string{"--dry-run", "--json"}, `{"would_purge":6}` + "\n", 9},
		{"what has ended only", []string{"--policy", "standard"}, "purged 4 jobs\n", 5},
	} {
		t.Run(row.name, func(t *testing.T) {
			f := newFake(jobs()...)
			require.Equal(t, ran{Out: row.out}, run(t, f, append([]string{"purge"}, row.args...)...))
			require.Len(t, slices.Collect(maps.Keys(f.jobs)), row.left)
		})
	}
}

func TestACountThatBreaksFails(t *testing.T) {
	f := newFake(jobs()...)
	f.broken = errBroken
	require.Equal(t, ran{cli.Failed, "would purge 1 job\n", "retryjobs: the connection broke\n"}, run(t, f, "purge", "--dry-run"))
	require.Equal(t, ran{cli.Failed, "", "retryjobs: the connection broke\n"}, run(t, f, "stats"))
}
