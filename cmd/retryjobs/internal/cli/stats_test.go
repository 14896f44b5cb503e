package cli_test

import (
	"context"
	"iter"
	"strings"
	"testing"
	"time"

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

QUEUE    DUE  OLDEST  LATER  RUNNING
default  0    -       2      1

RUNNING   KIND     SINCE                          PROCESS
leased-1  webhook  2026-11-21T11:59:56Z (4s ago)  -

DEAD LETTERS  KIND     REASON              CAUSE            FIRST                 NEWEST  ENDED                 ERROR
1             webhook  terminal_error      -                2026-11-20T11:00:00Z  dead-2  2026-11-20T11:00:00Z  -
1             webhook  attempts_exhausted  no such account  2026-11-20T10:00:00Z  dead-1  2026-11-20T10:00:00Z  no such account

next due    2026-11-21T12:10:00Z (in 10m)
oldest due  -
last hour   ▁▁▁▁▁█▁▁▁▁▁▁ 1 succeeded, 0 failed
`
	require.Equal(t, ran{Out: want[1:]}, run(t, newFake(jobs()...), "stats"))
}

// TestStatsReadsNoOtherJobs: the store counts the jobs for stats. It reads those that run.
func TestStatsReadsNoOtherJobs(t *testing.T) {
	store := &listed{fake: newFake(jobs()...)}
	require.Equal(t, cli.Done, run(t, store, "stats").Exit)
	require.Equal(t, 1, store.jobs)
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

// withSchedules returns a store with a schedule whose last occurrence failed, and one that cannot go on.
func withSchedules() *fake {
	all := jobs()
	all[2].JobID, all[2].Tags = "recurring:report:webhook:8", []string{"recurring", "recurring_report"}
	f := newFake(all...)
	f.schedules = []retryjob.Schedule{
		{Name: "report", Kind: "webhook", Number: 8, Job: all[2].JobID, Due: all[2].FirstDue, Last: retryjob.Occurrence{
			Job: "recurring:report:webhook:7", Status: retryjob.DeadLettered, Ended: at(25 * time.Hour), Err: "the card was declined",
		}},
		{Name: "sync", Kind: "mail", Number: 3, Err: "the catalog does not answer", Failing: at(5 * time.Minute)},
	}
	return f
}

func TestStatsShowWhatRecurs(t *testing.T) {
	want := `
SCHEDULE  KIND     STATE            DUE                   JOB                         LAST         ENDED                 ERROR
report    webhook  waiting_retry    2026-11-21T12:10:00Z  recurring:report:webhook:8  dead_letter  2026-11-20T11:00:00Z  429 Too Many Requests
sync      mail     overdue by 5m0s  -                     -                           -            -                     the catalog does not answer
`
	require.Contains(t, run(t, withSchedules(), "stats").Out, want)
	require.Equal(t, want[1:], run(t, withSchedules(), "schedules").Out)
	require.Contains(t, run(t, withSchedules(), "stats", "--json").Out, `"schedules":[{"name":"report","kind":"webhook","state":"waiting_retry",`)
	require.Equal(t, 2, strings.Count(run(t, withSchedules(), "schedules", "--json").Out, "\n"))
	require.Contains(t, run(t, withSchedules(), "list", "--tag", "recurring_report").Out, "recurring,recurring_report")
}

func TestASchedulesIsRunPausedAndResumed(t *testing.T) {
	f := withSchedules()
	require.Equal(t, ran{Out: "paused sync\n"}, run(t, f, "schedules", "pause", "sync"))
	require.True(t, f.schedules[1].Paused)
	require.Equal(t, ran{Out: `{"done":"resume","schedule":"sync"}` + "\n"}, run(t, f, "schedules", "resume", "sync", "--json"))
	require.False(t, f.schedules[1].Paused)
	require.Equal(t, ran{Out: "runs now sync\n"}, run(t, f, "schedules", "run", "sync"))
	require.True(t, f.schedules[1].Requested)
	got := run(t, f, "schedules", "run", "report")
	require.Equal(t, cli.Failed, got.Exit)
	require.Contains(t, got.Err, "occurrence recurring:report:webhook:8 of schedule report is waiting_retry")
	require.Contains(t, run(t, f, "schedules", "pause", "nope").Err, "unknown schedule")
}

func TestAGroupIsReplayedByItsCause(t *testing.T) {
	f := newFake(jobs()...)
	require.Equal(t, ran{Out: "replayed 1 job\n"}, run(t, f, "replay", "--cause", "no such account"))
	require.Equal(t, []string{"dead-1"}, replayedJobs(f))
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

next due    -
oldest due  -
last hour   -
`
	require.Equal(t, ran{Out: want[1:]}, run(t, newFake(), "stats"))
	require.Equal(t, ran{Out: `{"jobs":0,"by_status":{"canceled":0,"dead_letter":0,"expired":0,"failed_no_retries":0,"leased":0,"pending":0,` +
		`"succeeded":0,"waiting_retry":0}}` + "\n"}, run(t, newFake(), "stats", "--json"))
}

func TestStatsPrintsOneObject(t *testing.T) {
	want := `{"jobs":9,"by_status":{"canceled":1,"dead_letter":2,"expired":1,"failed_no_retries":1,"leased":1,"pending":1,"succeeded":1,` +
		`"waiting_retry":1},"dead_letters":[{"jobs":1,"kind":"webhook","reason":"terminal_error","first":"2026-11-20T11:00:00Z","newest":"dead-2",` +
		`"ended":"2026-11-20T11:00:00Z"},{"jobs":1,"kind":"webhook","reason":"attempts_exhausted","cause":"no such account","first":"2026-11-20T10:00:00Z","newest":"dead-1",` +
		`"ended":"2026-11-20T10:00:00Z","err":"no such account"}],"next_due":"2026-11-21T12:10:00Z",` +
		`"queues":[{"queue":"default","due":0,"later":2,"running":1}],"running":[{"job":"leased-1","kind":"webhook","since":"2026-11-21T11:59:56Z"}],` +
		`"rate":[{"from":"2026-11-21T11:05:00Z","succeeded":0,"failed":0},`
	got := run(t, newFake(jobs()...), "stats", "--json")
	require.Equal(t, want, got.Out[:min(len(want), len(got.Out))])
	require.Equal(t, 12, strings.Count(got.Out, `"from":`))
}
