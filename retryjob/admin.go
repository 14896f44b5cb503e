package retryjob

import (
	"cmp"
	"context"
	"encoding/json"
	"fmt"
	"iter"
	"maps"
	"slices"
	"strings"
	"time"

	"github.com/retrygo/retry"
)

// Info is a job as an engine keeps it: its Record and the fields of the Job that a Record does not have.
type Info struct {
	Record
	Queue    string          `json:"queue,omitempty"`
	Priority int             `json:"priority,omitempty"`
	Tags     []string        `json:"tags,omitempty"`
	Payload  json.RawMessage `json:"payload,omitempty"`
	// Worker is the process that makes the attempt under way, in the words of the engine. It is empty for a job that is
	// not Leased, and in an engine in memory, whose process makes all attempts.
	Worker string `json:"worker,omitempty"`
}

// Admin reads and changes the jobs of an engine, in the same way for each engine. If there is no job with the given ID,
// Replay and Cancel return the error of Get. The methods are safe for concurrent use. A list contains a job at most once,
// as it was or as it is. A durable engine reads page by page, and may leave out a job that changes meanwhile.
type Admin interface {
	// Get returns the job with the given ID, or ErrUnknownJob. An engine that can distinguish them returns ErrAgedOut
	// or ErrNeverKnown, which match it.
	Get(ctx context.Context, id string) (Info, error)
	// List returns the jobs that f selects, most recently changed first. The sequence reads page by page. An error ends
	// it.
	List(ctx context.Context, f Filter) iter.Seq2[Info, error]
	// Count returns the number of jobs that f selects, by Status, and the time of the oldest of each. It ignores f.Limit and
	// f.After.
	Count(ctx context.Context, f Filter) (map[Status]Tally, error)
	// Groups returns the jobs that f selects in groups, in no order. It ignores f.Limit and f.After.
	Groups(ctx context.Context, f Filter) ([]Group, error)
	// Replay makes a job Pending again, due at once, with the same ID, a new FirstDue and no attempts. It
	// returns ErrNotReplayable unless the job is DeadLettered, Expired or FailedNoRetries, and for an occurrence of a
	// Recurring if another one has not ended. Of two calls at once, one succeeds. It replays a job in doubt too: ask
	// Record.InDoubt before.
	Replay(ctx context.Context, id string) error
	// ReplayAll replays the DeadLettered, Expired and FailedNoRetries jobs that f selects, and returns their number. Set
	// Statuses to replay only those that are DeadLettered. The TTL of Expired and FailedNoRetries jobs begins again. It
	// leaves out jobs in doubt, unless f.InDoubt is OnlyInDoubt or InDoubtToo, and occurrences that Replay refuses. With an
	// error it returns the number replayed until then.
	ReplayAll(ctx context.Context, f Filter) (int, error)
	// Cancel makes a job that is not final Canceled: after it has returned nil, no attempt starts, and the job ends as
	// Canceled even if an attempt under way succeeds. The context of that attempt ends with ErrCanceled as its cause; an
	// attempt that does not look at its context does all of its work. A durable engine may make the job Canceled only
	// when that attempt has ended. Cancel returns an error for a final job.
	Cancel(ctx context.Context, id string) error
	// Purge removes the final jobs that f selects, and returns their number. With an error it returns the number removed
	// until then.
	Purge(ctx context.Context, f Filter) (int, error)
	// Queues returns the waiting and running jobs of each queue that has some, in no order.
	Queues(ctx context.Context) ([]QueueDepth, error)
	// Schedules returns the schedules of recurring jobs, in no order. ReadSchedules also has the jobs that they wait for.
	Schedules(ctx context.Context) ([]Schedule, error)
	// ChangeSchedule calls change with the schedule of a name, or with a new one if there is none, and keeps what change
	// makes of it. If change returns a job, the engine enqueues it in the same transaction. If change or the engine
	// returns an error, no change is kept. change may be called again if another process changes the schedule, and must
	// not call the engine. Use PauseSchedule, ResumeSchedule and RunSchedule. ChangeSchedule is for them and for engines.
	ChangeSchedule(ctx context.Context, name string, change func(s *Schedule) (*Job, error)) error
}

// Tally is the jobs of one Status.
type Tally struct {
	// Jobs is the number of jobs.
	Jobs int
	// Oldest is the earliest Due of jobs that are Pending or WaitingRetry, and the earliest Changed of others. So
	// time.Since(Oldest) is the lateness of the waiting jobs. It is negative if no job is due.
	Oldest time.Time
}

// Add counts a job.
func (t *Tally) Add(i *Info) {
	at := i.Due
	if at.IsZero() {
		at = i.Changed()
	}
	t.add(at)
}

func (t *Tally) add(at time.Time) {
	t.Jobs++
	if t.Jobs == 1 || at.Before(t.Oldest) {
		t.Oldest = at
	}
}

// QueueDepth is the jobs of a queue that have not ended.
type QueueDepth struct {
	Queue   string    `json:"queue"`           // "default" for jobs without a Queue
	Due     int       `json:"due"`             // the jobs that wait for a worker
	Later   int       `json:"later"`           // the jobs that are not due yet
	Running int       `json:"running"`         // the attempts under way
	Oldest  time.Time `json:"oldest,omitzero"` // the earliest due time of Due; zero without due jobs
}

// Group is the jobs with the same Status, Kind, Policy, Reason, Cause and InDoubt.
type Group struct {
	Status  Status
	Kind    string
	Policy  string
	Reason  retry.Reason
	Cause   string // Record.Cause
	InDoubt bool   // Record.InDoubt
	Tally
	// Newest is the job that changed last, without its Payload, as it was or as it is. It is zero if it is gone.
	Newest Info
}

// Failures is the jobs of one Status with the same Kind, Reason and Cause.
type Failures struct {
	Jobs    int          `json:"jobs"`
	InDoubt int          `json:"in_doubt,omitempty"` // the number of those that are in doubt
	Kind    string       `json:"kind"`
	Reason  retry.Reason `json:"reason,omitzero"`
	Cause   string       `json:"cause,omitempty"`  // Record.Cause
	First   time.Time    `json:"first,omitzero"`   // the time at which the first of the jobs ended
	Newest  string       `json:"newest,omitempty"` // the ID of the job that ended last
	Ended   time.Time    `json:"ended,omitzero"`   // the time at which it ended
	Err     string       `json:"err,omitempty"`    // its last error
}

// FailuresOf merges the groups of a final status that differ in their Policy and InDoubt alone. The largest are first.
func FailuresOf(groups []Group, status Status) []Failures {
	var all []Failures
	for i := range groups {
		g := &groups[i]
		if g.Status != status {
			continue
		}
		place := slices.IndexFunc(all, func(f Failures) bool { return f.Kind == g.Kind && f.Reason == g.Reason && f.Cause == g.Cause })
		if place < 0 {
			place = len(all)
			all = append(all, Failures{Kind: g.Kind, Reason: g.Reason, Cause: g.Cause, First: g.Oldest.UTC()})
		}
		f := &all[place]
		f.Jobs += g.Jobs
		if g.InDoubt {
			f.InDoubt += g.Jobs
		}
		if g.Oldest.Before(f.First) {
			f.First = g.Oldest.UTC()
		}
		if g.Newest.Ended.After(f.Ended) {
			f.Newest = g.Newest.JobID
			f.Ended = g.Newest.Ended.UTC()
			f.Err = g.Newest.LastErr()
		}
	}
	slices.SortFunc(all, func(a, b Failures) int { return cmp.Or(b.Jobs-a.Jobs, b.Ended.Compare(a.Ended)) })
	return all
}

// GroupsOf returns the groups of the jobs of a list, for an engine whose Admin.Groups reads all jobs.
func GroupsOf(list iter.Seq2[Info, error]) ([]Group, error) {
	type key struct {
		status              Status
		kind, policy, cause string
		reason              retry.Reason
		inDoubt             bool
	}
	places, groups := map[key]int{}, []Group{}
	for i, err := range list {
		if err != nil {
			return nil, err
		}
		k := key{status: i.Status, kind: i.Kind, policy: i.Policy, cause: i.Cause(), reason: i.Reason, inDoubt: i.InDoubt()}
		place, known := places[k]
		if !known {
			i.Payload = nil
			place, places[k] = len(groups), len(groups)
			groups = append(groups, Group{
				Status: k.status, Kind: k.kind, Policy: k.policy, Reason: k.reason, Cause: k.cause, InDoubt: k.inDoubt, Newest: i,
			})
		}
		groups[place].Add(&i)
	}
	return groups, nil
}

// GetAttempt returns the attempt with the given ID, and its job. It returns the error of Get if there is no such job, and
// one that matches ErrUnknownJob if the record of the job does not have the attempt, or no longer.
func GetAttempt(ctx context.Context, a Admin, attemptID string) (Info, Attempt, error) {
	i, err := a.Get(ctx, jobOf(attemptID))
	if err != nil {
		return Info{}, Attempt{}, err
	}
	for _, attempt := range i.History {
		if attempt.ID == attemptID {
			return i, attempt, nil
		}
	}
	return Info{}, Attempt{}, fmt.Errorf("%w: the record of job %q does not have the attempt %.300q", ErrUnknownJob, i.JobID, attemptID)
}

// jobOf returns the job's ID in the ID of an attempt: all but its last three parts.
func jobOf(attemptID string) string {
	id := attemptID
	for range 3 {
		id = id[:max(strings.LastIndexByte(id, '.'), 0)]
	}
	return id
}

// QueuesOf returns the depths of the queues of the jobs of a list at now, for an engine whose Admin.Queues has nothing
// better to read.
func QueuesOf(list iter.Seq2[Info, error], now time.Time) ([]QueueDepth, error) {
	depths := map[string]QueueDepth{}
	for i, err := range list {
		if err != nil {
			return nil, err
		}
		if i.Status.Final() {
			continue
		}
		d := depths[cmp.Or(i.Queue, "default")]
		d.Queue = cmp.Or(i.Queue, "default")
		d.add(i.Status, i.Due, !i.Due.After(now))
		depths[d.Queue] = d
	}
	return slices.Collect(maps.Values(depths)), nil
}

// add counts a job that has not ended.
func (d *QueueDepth) add(s Status, at time.Time, due bool) {
	switch {
	case s == Leased:
		d.Running++
	case !due:
		d.Later++
	default:
		d.Due++
		if d.Oldest.IsZero() || at.Before(d.Oldest) {
			d.Oldest = at
		}
	}
}

// PurgeOne removes the job with the given ID. It returns the error of Get if there is no such job, and an error that
// names the status of one that is not final.
func PurgeOne(ctx context.Context, a Admin, id string) error {
	n, err := a.Purge(ctx, Filter{IDs: []string{id}})
	if err != nil || n > 0 {
		return err
	}
	i, err := a.Get(ctx, id)
	if err != nil {
		return err
	}
	return fmt.Errorf("retryjob: the job is %s, and only jobs that have ended are purged", i.Status)
}
