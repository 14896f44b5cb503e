package retryjob

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/retrygo/retry"
)

// Recurring is a job that comes back: each occurrence is a job of its own, which its policy retries. The next one is
// enqueued when it has ended, in whatever way, so no two of one name overlap, in any number of processes. If no process
// ran when an occurrence was due, it is made once.
//
// All occurrences have the tags RecurringTag and recurring_NAME, by which lists show and select them. If the schedule of
// a name has changed, an engine that starts cancels an occurrence that has not started, and enqueues another one. If a
// name is removed, an engine that starts without it cancels its occurrence that waits, if it has a handler for the kind,
// and looks again each minute. So the processes that share a database and have handlers for a kind must have the same
// Recurring, except during a deployment: a process that still has the name enqueues it again until it ends.
type Recurring struct {
	// Name has 1 to 64 ASCII letters, digits and underscores. It must be set, and unique in Options.Recurring.
	Name string
	// Job is the job of each occurrence. ID and Due must not be set.
	Job Job
	// Next returns when the next occurrence is due. due and ended are the times of the occurrence before it, or both the
	// current time if there is none. It must depend on its arguments alone. Use AfterEnd, AtRate, or the Next of a cron
	// library: func(_, ended time.Time) time.Time { return schedule.Next(ended) }. It must be set.
	Next func(due, ended time.Time) time.Time
}

// AfterEnd returns a Recurring.Next by which an occurrence is due d after the end of the one before it.
func AfterEnd(d time.Duration) func(due, ended time.Time) time.Time {
	return func(_, ended time.Time) time.Time { return ended.Add(d) }
}

// AtRate returns a Recurring.Next by which an occurrence is due d after the due time of the one before it. Due times
// that pass before that one has ended are left out. A d of 0 or below is 1ns.
func AtRate(d time.Duration) func(due, ended time.Time) time.Time {
	d = max(d, 1)
	return func(due, ended time.Time) time.Time {
		return due.Add(d * max(1, (ended.Sub(due)+d-1)/d))
	}
}

// RecurringTag is a tag of all occurrences of Options.Recurring.
const RecurringTag = "recurring"

// tag returns the tag of the occurrences.
func (r *Recurring) tag() string { return RecurringTag + "_" + r.Name }

// refuseRecurring adds the bad fields of Options.Recurring.
func (o *Options) refuseRecurring(bad *retry.FieldErrors) {
	names := map[string]bool{}
	for n := range o.Recurring {
		r := &o.Recurring[n]
		field := fmt.Sprintf("retryjob.Options.Recurring[%d].", n)
		if len(r.Name) > 64 || !ofTag.MatchString(r.tag()) || slices.Contains([]byte(r.Name), '-') || r.Name == "" {
			bad.Refuse(field+"Name", shown(r.Name), "is not 1 to 64 letters, digits and underscores")
		} else if names[r.Name] {
			bad.Refuse(field+"Name", shown(r.Name), "is there twice")
		}
		names[r.Name] = true
		if r.Next == nil {
			bad.Refuse(field+"Next", "<nil>", "must be set")
		}
		if r.Job.ID != "" {
			bad.Refuse(field+"Job.ID", shown(r.Job.ID), "must not be set")
		}
		if !r.Job.Due.IsZero() {
			bad.Refuse(field+"Job.Due", r.Job.Due, "must not be set")
		}
		if o.Handlers[r.Job.Kind] == nil {
			bad.Refuse(field+"Job.Kind", shown(r.Job.Kind), "has no handler")
		}
		if err := r.Job.Validate(o.Policies); err != nil && o.Policies != nil {
			bad.Append(fmt.Errorf("retryjob: Options.Recurring[%d]: %w", n, err))
		}
	}
}

// Recur enqueues the occurrences of o.Recurring in q until ctx ends, and cancels those of removed names. It is for
// engines, which call it once they run jobs, and end ctx in Shutdown. It returns when everything that it started has
// ended.
func (o *Options) Recur(ctx context.Context, q recurringQueue) {
	done := make(chan struct{})
	for n := range o.Recurring {
		go func() {
			defer func() { done <- struct{}{} }()
			r := &o.Recurring[n]
			for checked := false; ctx.Err() == nil; {
				err := r.step(ctx, q, &checked)
				if errors.Is(err, ErrShutdown) {
					return
				}
				if err != nil { // of the database, for example
					pause(ctx, time.Second)
				}
			}
		}()
	}
	if len(o.Handlers) > 0 {
		for ctx.Err() == nil {
			if o.endRemoved(ctx, q) == nil {
				pause(ctx, time.Minute)
			} else {
				pause(ctx, time.Second)
			}
		}
	}
	for range o.Recurring {
		<-done
	}
}

// endRemoved cancels the occurrences of other names than those of o.Recurring that wait and that o.Handlers could run.
func (o *Options) endRemoved(ctx context.Context, q recurringQueue) error {
	f := Filter{
		Tags: []string{RecurringTag}, Kinds: slices.Collect(maps.Keys(o.Handlers)), Statuses: []Status{Pending, WaitingRetry},
	}
	var removed []string
	for i, err := range q.List(ctx, f) {
		if err != nil {
			return err
		}
		if !slices.ContainsFunc(o.Recurring, func(r Recurring) bool { return slices.Contains(i.Tags, r.tag()) }) {
			removed = append(removed, i.JobID)
		}
	}
	for _, id := range removed {
		if err := q.Cancel(ctx, id); err != nil {
			return err
		}
	}
	return nil
}

// recurringQueue is what Recur needs of an engine.
type recurringQueue interface {
	Enqueuer
	Admin
	Wait(ctx context.Context, id string) (Info, error)
}

// pause returns after d or when ctx ends.
func pause(ctx context.Context, d time.Duration) {
	timer := time.NewTimer(d)
	defer timer.Stop()
	select {
	case <-timer.C:
	case <-ctx.Done():
	}
}

// step waits for the end of the occurrence that is not final, or enqueues one. checked reports whether the schedule of an
// occurrence that has not started was compared with Next.
func (r *Recurring) step(ctx context.Context, q recurringQueue, checked *bool) error {
	i, err := r.newest(ctx, q, Pending, Leased, WaitingRetry)
	switch {
	case err != nil:
		return err
	case i.JobID != "":
		if !*checked && i.Status == Pending && r.changed(&i) {
			return q.Cancel(ctx, i.JobID)
		}
		*checked = true
		_, err := q.Wait(ctx, i.JobID)
		return err
	}
	if i, err = r.newest(ctx, q, Succeeded, DeadLettered, Expired, FailedNoRetries, Canceled); err != nil {
		return err
	}
	*checked = true
	job := r.Job
	job.Tags = append(slices.Clone(job.Tags), RecurringTag, r.tag())
	if i.JobID == "" {
		now := time.Now()
		job.ID, job.Due = r.Name, r.Next(now, now)
	} else {
		ended := i.Ended.Truncate(time.Millisecond) // as SQLite keeps it, so that all processes make the same ID
		due := i.FirstDue.Truncate(time.Millisecond)
		if due.After(ended) { // it was canceled before it was due
			due = ended
		}
		job.ID = r.Name + "." + strconv.FormatInt(due.UnixMilli(), 36) + "." + strconv.FormatInt(ended.UnixMilli(), 36)
		job.Due = r.Next(due, ended)
	}
	_, err = q.Enqueue(ctx, job)
	return err
}

// newest returns the occurrence with one of the statuses that changed last, or the zero Info.
func (r *Recurring) newest(ctx context.Context, q Admin, statuses ...Status) (found Info, err error) {
	f := Filter{Tags: []string{r.tag()}, Kinds: []string{r.Job.Kind}, Statuses: statuses, Limit: 1}
	for i, failed := range q.List(ctx, f) {
		found, err = i, failed
	}
	return found, err
}

// changed reports whether an occurrence that has not started is due at another time than Next says.
func (r *Recurring) changed(i *Info) bool {
	due, ended := i.Enqueued, i.Enqueued // of the first one
	if parts := strings.Split(i.JobID, "."); len(parts) == 3 {
		d, err1 := strconv.ParseInt(parts[1], 36, 64)
		e, err2 := strconv.ParseInt(parts[2], 36, 64)
		if err1 != nil || err2 != nil {
			return false
		}
		due, ended = time.UnixMilli(d), time.UnixMilli(e)
	}
	off := r.Next(due, ended).Sub(i.FirstDue)
	return off > time.Second || off < -time.Second && !i.Enqueued.IsZero() // an occurrence that was due at once has no Enqueued
}
