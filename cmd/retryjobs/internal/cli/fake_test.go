package cli_test

import (
	"bytes"
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"iter"
	"slices"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/retrygo/retry"
	"github.com/retrygo/retry/cmd/retryjobs/internal/cli"
	"github.com/retrygo/retry/retryjob"
)

// now is the time at which all commands are run on a fake.
var now = time.Date(2026, 11, 21, 12, 0, 0, 0, time.UTC)

func at(before time.Duration) time.Time { return now.Add(-before) }

// fake is a store in memory.
type fake struct {
	retryjob.Admin // nil for methods that the commands must not call
	jobs           map[string]*retryjob.Info
	schedules      []retryjob.Schedule
	broken         error // the error of List after its first job, and of all others at once
	closed         int
	closing        error
}

func newFake(jobs ...retryjob.Info) *fake {
	f := &fake{jobs: map[string]*retryjob.Info{}}
	for _, job := range jobs {
		f.jobs[job.JobID] = &job
	}
	return f
}

func (f *fake) Close() error { f.closed++; return f.closing }

func (f *fake) Get(_ context.Context, id string) (retryjob.Info, error) {
	if f.broken != nil {
		return retryjob.Info{}, f.broken
	}
	if job := f.jobs[id]; job != nil {
		return *job, nil
	}
	return retryjob.Info{}, retryjob.ErrNeverKnown
}

func (f *fake) List(_ context.Context, filter retryjob.Filter) iter.Seq2[retryjob.Info, error] {
	return func(yield func(retryjob.Info, error) bool) {
		for i, job := range f.selected(filter) {
			if f.broken != nil && i > 0 {
				yield(retryjob.Info{}, f.broken)
				return
			}
			if !yield(*job, nil) {
				return
			}
		}
	}
}

func (f *fake) Count(_ context.Context, filter retryjob.Filter) (map[retryjob.Status]retryjob.Tally, error) {
	n := map[retryjob.Status]retryjob.Tally{}
	for _, job := range f.selected(filter) {
		t := n[job.Status]
		t.Add(job)
		n[job.Status] = t
	}
	return n, f.broken
}

func (f *fake) selected(filter retryjob.Filter) []*retryjob.Info {
	var found []*retryjob.Info
	for _, job := range f.jobs {
		if filter.Selects(job) {
			found = append(found, job)
		}
	}
	slices.SortFunc(found, func(a, b *retryjob.Info) int {
		return cmp.Or(b.Changed().Compare(a.Changed()), cmp.Compare(a.JobID, b.JobID))
	})
	if filter.Limit > 0 && len(found) > filter.Limit {
		found = found[:filter.Limit]
	}
	return found
}

func (f *fake) Replay(_ context.Context, id string) error {
	job := f.jobs[id]
	switch {
	case f.broken != nil:
		return f.broken
	case job == nil:
		return retryjob.ErrNeverKnown
	}
	return job.Replay(now)
}

func (f *fake) Cancel(_ context.Context, id string) error {
	if f.jobs[id] == nil {
		return retryjob.ErrNeverKnown
	}
	return f.jobs[id].Cancel(now)
}

func (f *fake) ReplayAll(ctx context.Context, filter retryjob.Filter) (int, error) {
	n := 0
	for _, job := range f.selected(filter.ForReplay()) {
		if f.broken != nil && n > 0 {
			return n, f.broken
		}
		if job.Replay(now) == nil {
			n++
		}
	}
	return n, nil
}

func (f *fake) Purge(_ context.Context, filter retryjob.Filter) (int, error) {
	n := 0
	for _, job := range f.selected(filter) {
		if job.Status.Final() {
			delete(f.jobs, job.JobID)
			n++
		}
	}
	return n, nil
}

// ran is the result of a command.
type ran struct {
	Exit     int
	Out, Err string
}

// run runs a command on the store, under the name jobs.db.
func run(t *testing.T, store cli.Store, args ...string) ran {
	t.Helper()
	return runOn(t, store, cli.Options{}, args...)
}

// runOn is run with more Options.
func runOn(t *testing.T, store cli.Store, o cli.Options, args ...string) ran {
	t.Helper()
	o.Open = func(_ context.Context, database string) (cli.Store, error) {
		require.Equal(t, "jobs.db", database)
		return store, nil
	}
	o.Now = func() time.Time { return now }
	o.Getenv = func(string) string { return "jobs.db" }
	return runIn(t.Context(), o, args...)
}

func runIn(ctx context.Context, c cli.Options, args ...string) ran {
	var out, err bytes.Buffer
	exit := cli.Run(ctx, c, args, &out, &err)
	return ran{exit, out.String(), err.String()}
}

var errBroken = errors.New("the connection broke")

// jobs are one job of each kind that a table must show.
func jobs() []retryjob.Info {
	record := func(id string, status retryjob.Status, reason retry.Reason) retryjob.Record {
		return retryjob.Record{
			Version: 1, JobID: id, Kind: "webhook", Policy: "standard", FirstDue: at(3 * time.Hour), Status: status, Reason: reason,
		}
	}
	pending := record("pending-1", retryjob.Pending, 0)
	pending.FirstDue, pending.Due = at(-time.Hour), at(-time.Hour)

	leased := record("leased-1", retryjob.Leased, 0)
	leased.Attempts = 2
	leased.History = []retryjob.Attempt{
		{ID: "leased-1.0.1", Number: 1, Start: at(time.Hour), End: at(time.Hour - 250*time.Millisecond), Due: at(59 * time.Minute), Status: retryjob.WaitingRetry, Err: "503 Service Unavailable", Code: "503"},
		{ID: "leased-1.0.2", Number: 2, Start: at(4 * time.Second), Status: retryjob.Leased},
	}

	waiting := record("waiting-1", retryjob.WaitingRetry, 0)
	waiting.Attempts, waiting.Due, waiting.Correlation = 3, at(-10*time.Minute), "trace-7"
	waiting.History = []retryjob.Attempt{
		{ID: "waiting-1.0.1", Number: 1, Start: at(3 * time.Hour), Status: retryjob.WaitingRetry, Err: retryjob.ErrLost.Error()},
		{ID: "waiting-1.0.2", Number: 2, Start: at(2 * time.Hour), End: at(2*time.Hour - 1500*time.Millisecond), Due: at(90 * time.Minute), Status: retryjob.WaitingRetry, Err: "dial tcp:\n\x1b[31mrefused\u009b2J\tby a firewall that has a very long story to tell about it", Code: "ECONNREFUSED"},
		{ID: "waiting-1.0.3", Number: 3, Start: at(90 * time.Minute), End: at(90*time.Minute - 1250*time.Microsecond), Due: at(-10 * time.Minute), Status: retryjob.WaitingRetry, Err: "429 Too Many Requests", Code: "429"},
	}

	succeeded := record("succeeded-1", retryjob.Succeeded, 0)
	succeeded.Policy, succeeded.Attempts, succeeded.Ended = "patient", 2, at(30*time.Minute)
	succeeded.History = []retryjob.Attempt{
		{ID: "succeeded-1.0.1", Number: 1, Start: at(3 * time.Hour), End: at(3 * time.Hour), Due: at(30 * time.Minute), Status: retryjob.WaitingRetry, Err: "once"},
		{ID: "succeeded-1.0.2", Number: 2, Start: at(30 * time.Minute), End: at(30 * time.Minute), Status: retryjob.Succeeded},
	}

	dead := record("dead-1", retryjob.DeadLettered, retry.AttemptsExhausted)
	dead.Attempts, dead.Ended, dead.Replays = 1, at(26*time.Hour), 1
	dead.FirstDue = at(27 * time.Hour)
	dead.History = []retryjob.Attempt{{ID: "dead-1.1.1", Number: 1, Start: at(27 * time.Hour), End: at(26 * time.Hour), Status: retryjob.DeadLettered, Reason: dead.Reason, Err: "no such account"}}

	dead2 := record("dead-2", retryjob.DeadLettered, retry.TerminalError)
	dead2.Policy, dead2.Attempts, dead2.Ended = "patient", 1, at(25*time.Hour)

	expired := record("expired-1", retryjob.Expired, retry.TTLElapsed)
	expired.Ended = at(2 * time.Hour)
	failed := record("failed-1", retryjob.FailedNoRetries, retry.RetriesDisabled)
	failed.Ended, failed.Attempts = at(49*time.Hour), 1
	canceled := record("canceled-1", retryjob.Canceled, retry.CallerCanceled)
	canceled.Ended = at(72 * time.Hour)

	var all []retryjob.Info
	for _, rec := range []retryjob.Record{pending, leased, waiting, succeeded, dead, dead2, expired, failed, canceled} {
		all = append(all, retryjob.Info{Record: rec, Payload: json.RawMessage(`{"url":"http://a/?b&c","n":1}`)})
	}
	all[0].Kind = "mail"
	return all
}

func (f *fake) Groups(ctx context.Context, filter retryjob.Filter) ([]retryjob.Group, error) {
	return retryjob.GroupsOf(f.List(ctx, filter))
}

func (f *fake) Queues(ctx context.Context) ([]retryjob.QueueDepth, error) {
	return retryjob.QueuesOf(f.List(ctx, retryjob.Filter{}), now)
}

func (f *fake) Schedules(context.Context) ([]retryjob.Schedule, error) { return f.schedules, nil }

func (f *fake) ChangeSchedule(_ context.Context, name string, change func(*retryjob.Schedule) (*retryjob.Job, error)) error {
	at := slices.IndexFunc(f.schedules, func(s retryjob.Schedule) bool { return s.Name == name })
	if at < 0 {
		_, err := change(&retryjob.Schedule{Name: name})
		return err
	}
	_, err := change(&f.schedules[at])
	return err
}
