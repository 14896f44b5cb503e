package retryjob

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"math"
	"regexp"
	"slices"
	"sync"
	"time"

	"github.com/retrygo/retry"
)

// Recurring is a job that comes back: each occurrence is a job of its own, which its policy retries. The next one is
// enqueued when it has ended, in whatever way, so no two of one name overlap, in any number of processes. If no process
// ran when an occurrence was due, it is made once.
//
// An engine keeps the Schedule of each name. All occurrences have the tags RecurringTag and recurring_NAME, by which
// lists show and select them, and IDs that begin with "recurring:". If the schedule of a name has changed, an engine
// that starts cancels an occurrence that has not started, and enqueues another one. If a name is removed, an engine that
// starts without it cancels its occurrence that waits, if it has a handler for the kind, and looks again each minute. So
// the processes that share a database and have handlers for a kind must have the same Recurring, except during a
// deployment: a process that still has the name enqueues it again until it ends.
//
// If the next occurrence cannot be enqueued, because its policy or the database is away for example, the engine tries
// again each second, and logs a warning at first and each minute.
type Recurring struct {
	// Name has 1 to 64 ASCII letters, digits and underscores. It must be set, and unique in Options.Recurring.
	Name string
	// Job is the job of each occurrence. ID and Due must not be set.
	Job Job
	// Next returns the time at which the next occurrence is due. due and ended are the times of the occurrence before it,
	// or both the current time if there is none, in UTC. It must depend on its arguments alone, and return a time after
	// due. The zero time ends the schedule. Use AfterEnd, AtRate, or the Next of a cron library:
	// func(_, ended time.Time) time.Time { return schedule.Next(ended) }. It must be set.
	Next func(due, ended time.Time) time.Time
}

// AfterEnd returns a Recurring.Next by which an occurrence is due d after the end of the one before it. A d of 0 or below
// ends the schedule.
func AfterEnd(d time.Duration) func(due, ended time.Time) time.Time {
	return func(_, ended time.Time) time.Time {
		if d <= 0 {
			return time.Time{}
		}
		return ended.Add(d)
	}
}

// AtRate returns a Recurring.Next by which an occurrence is due d after the due time of the one before it. Due times
// that pass before that one has ended are left out. A d of 0 or below ends the schedule.
func AtRate(d time.Duration) func(due, ended time.Time) time.Time {
	return func(due, ended time.Time) time.Time {
		if d <= 0 {
			return time.Time{}
		}
		return due.Add(d * max(1, (ended.Sub(due)+d-1)/d))
	}
}

// RecurringTag is a tag of all occurrences of Options.Recurring.
const RecurringTag = "recurring"

// tag returns the tag of the occurrences.
func (r *Recurring) tag() string { return RecurringTag + "_" + r.Name }

func isScheduleName(name string) bool {
	return len(name) <= 64 && ofScheduleName.MatchString(name)
}

var ofScheduleName = regexp.MustCompile(`^[A-Za-z0-9_]+$`)

// refuseRecurring adds the bad fields of Options.Recurring.
func (o *Options) refuseRecurring(bad *retry.FieldErrors) {
	names := map[string]bool{}
	for n := range o.Recurring {
		r := &o.Recurring[n]
		field := fmt.Sprintf("retryjob.Options.Recurring[%d].", n)
		if !isScheduleName(r.Name) {
			bad.Refuse(field+"Name", shown(r.Name), "is not 1 to 64 letters, digits and underscores")
		} else if names[r.Name] {
			bad.Refuse(field+"Name", shown(r.Name), "is there twice")
		}
		names[r.Name] = true
		if r.Next == nil {
			bad.Refuse(field+"Next", "<nil>", "must be set")
		}
		longest := Schedule{Name: r.Name, Kind: r.Job.Kind, Number: math.MaxInt32}
		if len(longest.occurrenceID()) > longestName {
			bad.Refuse(field+"Job.Kind", shown(r.Job.Kind), "is too long for the ID of an occurrence")
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

// Scheduler is the part of an engine that Options.Recur needs.
type Scheduler interface {
	Admin
	// Wait returns the job once its Status is final, or the error of ctx.
	Wait(ctx context.Context, id string) (Info, error)
}

// Recur enqueues the occurrences of o.Recurring in q until ctx ends, and cancels those of removed names. It is for
// engines, which call it once they run jobs, and end ctx in Shutdown. It returns when everything that it started has
// ended.
func (o *Options) Recur(ctx context.Context, q Scheduler) {
	var running sync.WaitGroup
	for n := range o.Recurring {
		r := &recurrence{Recurring: &o.Recurring[n], engine: q}
		r.complaints = complaints{logger: o.logger(), message: "retryjob: a schedule does not go on", schedule: r.Name}
		running.Go(func() { r.run(ctx) })
	}
	if len(o.Handlers) > 0 {
		o.endRemoved(ctx, q)
	}
	running.Wait()
}

const (
	tryAgain  = time.Second     // after an error
	lookAgain = 5 * time.Second // at a schedule that is paused or over
	complain  = time.Minute     // between two warnings about the same schedule
)

// endRemoved ends the schedules of other names than those of o.Recurring whose jobs o.Handlers could run, each minute
// until ctx ends.
func (o *Options) endRemoved(ctx context.Context, q Scheduler) {
	c := complaints{logger: o.logger(), message: "retryjob: the schedules cannot be read", once: true}
	for ctx.Err() == nil {
		err := o.endRemovedNow(ctx, q)
		c.report(ctx, err)
		if err != nil {
			pause(ctx, tryAgain)
		} else {
			pause(ctx, time.Minute)
		}
	}
}

func (o *Options) endRemovedNow(ctx context.Context, q Scheduler) error {
	schedules, err := q.Schedules(ctx)
	if err != nil {
		return err
	}
	for _, s := range schedules {
		known := slices.ContainsFunc(o.Recurring, func(r Recurring) bool { return r.Name == s.Name })
		if known || s.Over || o.Handlers[s.Kind] == nil {
			continue
		}
		if err := endSchedule(ctx, q, &s); err != nil {
			return err
		}
	}
	return nil
}

// endSchedule makes a schedule over and cancels its occurrence that waits. An attempt that is under way goes on, and the
// schedule is over after it.
func endSchedule(ctx context.Context, q Scheduler, s *Schedule) error {
	i, err := q.Get(ctx, s.Job)
	switch {
	case errors.Is(err, ErrUnknownJob):
	case err != nil:
		return err
	case i.Status == Leased:
		return nil
	case !i.Status.Final():
		if err := q.Cancel(ctx, s.Job); err != nil {
			return err
		}
	}
	return q.ChangeSchedule(ctx, s.Name, func(now *Schedule) (*Job, error) {
		if now.Number == s.Number {
			now.end()
		}
		return nil, nil
	})
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

// complaints logs an error when it begins, and each minute while it lasts.
type complaints struct {
	logger   *slog.Logger
	message  string
	schedule string // empty means no schedule
	once     bool   // do not repeat it
	last     time.Time
}

// report logs err if it is time. A nil err ends the complaint.
func (c *complaints) report(ctx context.Context, err error) {
	if err == nil || ctx.Err() != nil {
		c.last = time.Time{}
		return
	}
	now := time.Now()
	if !c.last.IsZero() && (c.once || now.Sub(c.last) < complain) {
		return
	}
	c.last = now
	attrs := []any{"error", err.Error()}
	if c.schedule != "" {
		attrs = append(attrs, "schedule", c.schedule)
	}
	c.logger.WarnContext(ctx, c.message, attrs...)
}

// recurrence enqueues the occurrences of one Recurring.
type recurrence struct {
	*Recurring
	complaints
	engine  Scheduler
	checked bool // the due time of an occurrence that has not started was compared with Next
	taken   int  // the number of IDs in a row that other jobs have
}

// run enqueues occurrences until ctx ends.
func (r *recurrence) run(ctx context.Context) {
	for ctx.Err() == nil {
		idle, err := r.step(ctx)
		if errors.Is(err, ErrShutdown) {
			return
		}
		r.report(ctx, err)
		if err != nil {
			r.keep(ctx, err)
			idle = tryAgain
		}
		pause(ctx, idle)
	}
}

// step waits for the end of the occurrence that the schedule waits for, and enqueues the next one. It returns how long
// to wait before the next step.
func (r *recurrence) step(ctx context.Context) (idle time.Duration, err error) {
	s, open, err := r.read(ctx)
	if err != nil {
		return 0, err
	}
	if open.JobID == "" || open.Status.Final() {
		r.checked = true
		return r.advance(ctx, &s, &open)
	}
	if !r.checked && open.Status == Pending {
		moved, err := r.moved(&s)
		if err != nil {
			return 0, err
		}
		if moved {
			return 0, r.engine.Cancel(ctx, open.JobID)
		}
	}
	r.checked = true
	if _, err = r.engine.Wait(ctx, open.JobID); errors.Is(err, ErrUnknownJob) {
		err = nil // it was removed since it ended
	}
	return 0, err
}

// read returns the schedule and the job that it waits for, which are zero if there are none.
func (r *recurrence) read(ctx context.Context) (s Schedule, open Info, err error) {
	all, err := r.engine.Schedules(ctx)
	if err != nil {
		return s, open, err
	}
	at := slices.IndexFunc(all, func(s Schedule) bool { return s.Name == r.Name })
	if at < 0 || all[at].Job == "" {
		return Schedule{Name: r.Name}, open, nil
	}
	open, err = r.engine.Get(ctx, all[at].Job)
	if errors.Is(err, ErrUnknownJob) {
		return all[at], Info{}, nil
	}
	return all[at], open, err
}

// advance enqueues the occurrence after the one that seen waits for, which has ended as the job says, unless another
// process has.
func (r *recurrence) advance(ctx context.Context, seen *Schedule, job *Info) (idle time.Duration, err error) {
	err = r.engine.ChangeSchedule(ctx, r.Name, func(s *Schedule) (*Job, error) {
		idle = 0
		if s.Number != seen.Number || s.Job != seen.Job {
			return nil, nil
		}
		if job.JobID != "" && (job.Attempts > 0 || job.Status != Canceled) {
			s.Last = Occurrence{Job: job.JobID, Status: job.Status, Reason: job.Reason, Ended: job.Ended.UTC(), Err: job.LastErr()}
		}
		if s.Paused && !s.Requested {
			idle = lookAgain
			return nil, nil
		}
		return r.following(s, job, &idle)
	})
	if errors.Is(err, ErrDuplicate) {
		r.taken++
	} else if err == nil {
		r.taken = 0
	}
	return idle, err
}

// following returns the occurrence after the given job, and makes it the newest one of s. It returns no job if the
// schedule is over.
func (r *recurrence) following(s *Schedule, job *Info, idle *time.Duration) (*Job, error) {
	now := time.Now().UTC()
	if s.Requested {
		return r.occurrence(s, time.Time{}, time.Time{}, now), nil
	}
	afterDue, afterEnd := s.after(job, now)
	due, err := r.next(afterDue, afterEnd)
	switch {
	case err != nil:
		return nil, err
	case due.IsZero():
		s.end()
		*idle = lookAgain
		return nil, nil
	case !due.After(afterDue):
		return nil, fmt.Errorf("retryjob: Recurring.Next returned %v, which is not after the due time of the occurrence before, %v", due, afterDue)
	}
	return r.occurrence(s, afterDue, afterEnd, due), nil
}

// occurrence returns the job of an occurrence that is due at the given time, and makes it the newest one of s. afterDue
// and afterEnd are the arguments of Next, zero if it was not called.
func (r *recurrence) occurrence(s *Schedule, afterDue, afterEnd, due time.Time) *Job {
	last := *s
	*s = Schedule{
		Name:     r.Name,
		Number:   last.Number + 1 + r.taken,
		Kind:     r.Job.Kind,
		Due:      due.UTC(),
		AfterDue: afterDue,
		AfterEnd: afterEnd,
		Last:     last.Last,
		Paused:   last.Paused,
	}
	s.Job = s.occurrenceID()
	next := r.Job
	next.ID = s.Job
	next.Due = due
	next.occurrence = true
	next.Tags = append(slices.Clone(next.Tags), RecurringTag, r.tag())
	return &next
}

// end makes the schedule over.
func (s *Schedule) end() {
	s.Over = true
	s.Err = ""
	s.Failing = time.Time{}
}

// after returns the arguments of Next for the occurrence after the given job. The clocks of two processes differ, and a
// clock can be set back: neither time is after now, and the end is never before the due time.
func (s *Schedule) after(job *Info, now time.Time) (due, end time.Time) {
	if s.Number == 0 {
		return now, now
	}
	due, end = s.Due, now
	switch {
	case job.JobID != "":
		end = job.Ended.UTC()
		if job.Attempts == 0 && end.Before(due) { // it was canceled before it was due
			due = s.AfterDue
		}
	case s.Last.Job == s.Job:
		end = s.Last.Ended
	}
	if s.AfterEnd.After(end) { // since ResumeSchedule
		end = s.AfterEnd
	}
	if end.After(now) {
		end = now
	}
	if due.IsZero() {
		due = end
	}
	if due.After(now) {
		due = now
	}
	if end.Before(due) {
		end = due
	}
	return due, end
}

// next calls Next, in a goroutine of its own. A panic is an error, since it must not end the process, and so is
// runtime.Goexit, which would end the goroutine of the schedule.
func (r *recurrence) next(due, ended time.Time) (time.Time, error) {
	var at time.Time
	err := errors.New("retryjob: Recurring.Next ended its goroutine")
	done := make(chan struct{})
	go func() {
		defer close(done)
		defer func() {
			if value := recover(); value != nil {
				err = fmt.Errorf("retryjob: Recurring.Next panicked: %v", value)
			}
		}()
		at = r.Next(due, ended)
		err = nil
	}()
	<-done
	return at, err
}

// moved reports whether an occurrence that has not started would now be another one: of another kind, or due at another
// time.
func (r *recurrence) moved(s *Schedule) (bool, error) {
	if s.AfterDue.IsZero() { // it was requested
		return s.Kind != r.Job.Kind, nil
	}
	due, err := r.next(s.AfterDue, s.AfterEnd)
	return s.Kind != r.Job.Kind || due.Sub(s.Due).Abs() > time.Second, err
}

// keep notes in the schedule why it does not go on, if the engine can.
func (r *recurrence) keep(ctx context.Context, err error) {
	why := text(err)
	_ = r.engine.ChangeSchedule(ctx, r.Name, func(s *Schedule) (*Job, error) {
		if s.Failing.IsZero() {
			s.Failing = time.Now().UTC()
		}
		s.Err = why
		return nil, nil
	})
}
