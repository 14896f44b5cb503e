package cli_test

import (
	"context"
	"iter"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/retrygo/retry/cmd/retryjobs/internal/cli"
	"github.com/retrygo/retry/retryjob"
)

func TestStatsCounts(t *testing.T) {
	want := `
STATUS             JOBS
pending            1
leased             1
waiting_retry      1
succeeded          1
dead_letter        2
expired            1
failed_no_retries  1
canceled           1
total              9

DEAD LETTERS  KIND     REASON              CODE  NEWEST  ENDED                 ERROR
1             webhook  terminal_error      -     dead-2  2026-11-20T11:00:00Z  -
1             webhook  attempts_exhausted  -     dead-1  2026-11-20T10:00:00Z  no such account

next due  2026-11-21T12:10:00Z (in 10m)
`
	require.Equal(t, ran{Out: want[1:]}, run(t, newFake(jobs()...), "stats"))
}

// TestStatsReadsNoOtherJobs: the store counts the jobs for stats. It reads those that recur.
func TestStatsReadsNoOtherJobs(t *testing.T) {
	store := &listed{fake: newFake(jobs()...)}
	require.Equal(t, cli.Done, run(t, store, "stats").Exit)
	require.Zero(t, store.jobs)
}

// listed counts the jobs that are listed.
type listed struct {
	*fake
	jobs int
}

func (l *listed) List(ctx context.Context, f retryjob.Filter) iter.Seq2[retryjob.Info, error] {
	return func(yield func(retryjob.Info, error) bool) {
		for info, err := range l.fake.List(ctx, f) {
			if l.jobs++; !yield(info, err) {
				return
			}
		}
	}
}

// Groups does not count as reading jobs.
func (l *listed) Groups(ctx context.Context, f retryjob.Filter) ([]retryjob.Group, error) {
	return l.fake.Groups(ctx, f)
}

func TestStatsShowWhatRecurs(t *testing.T) {
	all := jobs()
	all[1].Tags, all[2].Tags = []string{"recurring", "recurring_sync"}, []string{"eu", "recurring", "recurring_report"}
	all[4].Tags = []string{"recurring", "recurring_ended"}
	want := `
RECURRING  KIND     STATUS         DUE                   ATTEMPTS  JOB        ERROR
sync       webhook  leased         -                     2         leased-1   503 Service Unavailable
report     webhook  waiting_retry  2026-11-21T12:10:00Z  3         waiting-1  429 Too Many Requests
`
	require.Contains(t, run(t, newFake(all...), "stats").Out, want)
	require.Contains(t, run(t, newFake(all...), "stats", "--json").Out, `"err":"503 Service Unavailable"},`+
		`{"name":"report","kind":"webhook","status":"waiting_retry","due":"2026-11-21T12:10:00Z","attempts":3,"job":"waiting-1","err":"429 Too Many Requests"}]}`)
	require.Contains(t, run(t, newFake(all...), "list", "--tag", "recurring_sync").Out, "recurring,recurring_sync")
}

func TestStatsOfAnEmptyDatabase(t *testing.T) {
	want := `
STATUS             JOBS
pending            0
leased             0
waiting_retry      0
succeeded          0
dead_letter        0
expired            0
failed_no_retries  0
canceled           0
total              0

next due  -
`
	require.Equal(t, ran{Out: want[1:]}, run(t, newFake(), "stats"))
	require.Equal(t, ran{Out: `{"jobs":0,"by_status":{"canceled":0,"dead_letter":0,"expired":0,"failed_no_retries":0,"leased":0,"pending":0,` +
		`"succeeded":0,"waiting_retry":0}}` + "\n"}, run(t, newFake(), "stats", "--json"))
}

func TestStatsPrintsOneObject(t *testing.T) {
	want := `{"jobs":9,"by_status":{"canceled":1,"dead_letter":2,"expired":1,"failed_no_retries":1,"leased":1,"pending":1,"succeeded":1,` +
		`"waiting_retry":1},"dead_letters":[{"jobs":1,"kind":"webhook","reason":"terminal_error","newest":"dead-2",` +
		`"ended":"2026-11-20T11:00:00Z"},{"jobs":1,"kind":"webhook","reason":"attempts_exhausted","newest":"dead-1","ended":"2026-11-20T10:00:00Z",` +
		`"err":"no such account"}],` +
		`"next_due":"2026-11-21T12:10:00Z"}` + "\n"
	require.Equal(t, ran{Out: want}, run(t, newFake(jobs()...), "stats", "--json"))
}
