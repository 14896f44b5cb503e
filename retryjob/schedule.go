package retryjob

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/retrygo/retry"
)

// Schedule is the state of a Recurring that an engine keeps. There is one for each name. Its occurrences have numbers,
// so that no clock decides which one is the newest.
type Schedule struct {
	// Name is Recurring.Name.
	Name string `json:"name"`
	// Number is that of the newest occurrence, from 1. Zero means that no occurrence was enqueued yet.
	Number int `json:"number"`
	// Kind is the kind of the newest occurrence.
	Kind string `json:"kind,omitempty"`
	// Job is the ID of the occurrence that must end before the next one is enqueued: the newest one or, if an earlier
	// one was replayed after its end, that one.
	Job string `json:"job,omitempty"`
	// Due is the time at which the newest occurrence was first due.
	Due time.Time `json:"due,omitzero"`
	// AfterDue and AfterEnd are the arguments for which Recurring.Next returned Due.
	AfterDue time.Time `json:"after_due,omitzero"`
	AfterEnd time.Time `json:"after_end,omitzero"`
	// Last is the occurrence that ended last, leaving out those that were canceled before they started. It is zero if
	// there is none.
	Last Occurrence `json:"last,omitzero"`
	// Paused means that no occurrence is enqueued until ResumeSchedule.
	Paused bool `json:"paused,omitempty"`
	// Requested means that the next occurrence is due at once, because of RunSchedule.
	Requested bool `json:"requested,omitempty"`
	// Over means that there is no next occurrence: Recurring.Next has returned the zero time, or an engine has started
	// without the name.
	Over bool `json:"over,omitempty"`
	// Err is the reason why the next occurrence cannot be enqueued, and Failing the time since when. An engine tries
	// again each second. Err is empty after a success.
	Err     string    `json:"err,omitempty"`
	Failing time.Time `json:"failing,omitzero"`
}

// Occurrence is how an occurrence of a Schedule ended. It outlives the job.
type Occurrence struct {
	Job    string       `json:"job"`
	Status Status       `json:"status"`
	Reason retry.Reason `json:"reason,omitzero"`
	Ended  time.Time    `json:"ended"`
	Err    string       `json:"err,omitempty"` // the last error
}

// ErrUnknownSchedule means that the engine has no Schedule with that name.
var ErrUnknownSchedule = errors.New("retryjob: unknown schedule")

// occurrencePrefix begins the IDs of occurrences. Enqueue refuses it, so that no job of a caller's can take the place of
// an occurrence.
const occurrencePrefix = "recurring:"

// occurrenceID returns the ID of the newest occurrence, such as "recurring:nightly:report:17". It has the kind, so that
// a Recurring whose Job.Kind has changed does not meet its earlier jobs.
func (s *Schedule) occurrenceID() string {
	return fmt.Sprintf("%s%s:%s:%d", occurrencePrefix, s.Name, s.Kind, s.Number)
}

// ScheduleOf returns the name of the Schedule of a job with the given ID. It reports false for the ID of any other job.
func ScheduleOf(jobID string) (name string, ok bool) {
	rest, ok := strings.CutPrefix(jobID, occurrencePrefix)
	if !ok {
		return "", false
	}
	name, _, ok = strings.Cut(rest, ":")
	return name, ok
}

// Claim makes a final occurrence the one that the schedule waits for, so that it can be replayed without overlapping
// another one. open is the job with the ID s.Job, or the zero Info if there is none. Claim returns ErrNotReplayable if
// that is another occurrence that has not ended. It is for engines.
func (s *Schedule) Claim(jobID string, open *Info) error {
	if open.JobID != "" && open.JobID != jobID && !open.Status.Final() {
		return fmt.Errorf("%w: occurrence %s of schedule %s is %s, and no two of them overlap (run the schedule now instead)", ErrNotReplayable, s.Job, s.Name, open.Status)
	}
	s.Job = jobID
	return nil
}

// ScheduleInfo is a Schedule with the occurrence that it waits for.
type ScheduleInfo struct {
	Schedule
	// Open is the job with the ID Schedule.Job, if it has not ended. Nil means that none is waiting or under way.
	Open *Info
	// Overdue is how long the next attempt of Open, or the next occurrence if there is no Open, has been due. It is zero
	// up to a minute, and for a schedule that is paused or over or whose occurrence is under way.
	Overdue time.Duration
}

// overdueAfter is how late an occurrence may be before it is called overdue: queues have their own delays.
const overdueAfter = time.Minute

// ReadSchedules returns the schedules of an engine, by name, as they are at now.
func ReadSchedules(ctx context.Context, a Admin, now time.Time) ([]ScheduleInfo, error) {
	schedules, err := a.Schedules(ctx)
	if err != nil || len(schedules) == 0 {
		return nil, err
	}
	var ids []string
	infos := make([]ScheduleInfo, len(schedules))
	for i, s := range schedules {
		infos[i].Schedule = s
		if s.Job != "" {
			ids = append(ids, s.Job)
		}
	}
	open := map[string]*Info{}
	if len(ids) > 0 {
		for i, err := range a.List(ctx, Filter{IDs: ids, Statuses: []Status{Pending, Leased, WaitingRetry}}) {
			if err != nil {
				return nil, err
			}
			i.Payload = nil
			open[i.JobID] = &i
		}
	}
	for i := range infos {
		infos[i].Open = open[infos[i].Job]
		infos[i].Overdue = infos[i].overdue(now)
	}
	slices.SortFunc(infos, func(a, b ScheduleInfo) int { return strings.Compare(a.Name, b.Name) })
	return infos, nil
}

func (s *ScheduleInfo) overdue(now time.Time) time.Duration {
	var since time.Time
	switch {
	case s.Paused || s.Over:
		return 0
	case s.Open != nil && s.Open.Status == Leased:
		return 0
	case s.Open != nil:
		since = s.Open.Due
	case !s.Failing.IsZero():
		since = s.Failing
	case s.Last.Ended.After(s.Due):
		since = s.Last.Ended
	default:
		since = s.Due
	}
	late := now.Sub(since)
	if since.IsZero() || late <= overdueAfter {
		return 0
	}
	return late
}

// PauseSchedule makes the schedule with the given name enqueue no occurrence until ResumeSchedule, and cancels an
// occurrence that has not started. An occurrence that has started goes on. It returns ErrUnknownSchedule if there is no
// such schedule.
func PauseSchedule(ctx context.Context, a Admin, name string) error {
	waiting, err := pendingOccurrence(ctx, a, name)
	if err != nil {
		return err
	}
	err = changeKnown(ctx, a, name, func(s *Schedule) { s.Paused, s.Requested = true, false })
	if err != nil || waiting == nil {
		return err
	}
	if waiting.Status != Pending || aboutToStart(waiting) {
		return nil
	}
	return a.Cancel(ctx, waiting.JobID)
}

// aboutToStart reports whether a job that waits may start before it can be canceled, so that Cancel would end its
// attempt.
func aboutToStart(i *Info) bool { return time.Until(i.Due) < time.Second }

// ResumeSchedule undoes PauseSchedule. The next occurrence is the first one after now. Those that were left out are not
// made up for. It returns ErrUnknownSchedule if there is no such schedule.
func ResumeSchedule(ctx context.Context, a Admin, name string) error {
	return changeKnown(ctx, a, name, func(s *Schedule) {
		if s.Paused {
			s.Paused, s.AfterEnd = false, time.Now().UTC()
		}
	})
}

// RunSchedule makes the next occurrence of the schedule with the given name due at once, in place of one that waits. The
// engine that runs the schedule enqueues it: at once or, if the schedule is paused, within some seconds. RunSchedule
// returns an error if an occurrence has started and not ended, if the schedule is over, and, with ErrUnknownSchedule, if
// there is no such schedule.
func RunSchedule(ctx context.Context, a Admin, name string) error {
	waiting, err := pendingOccurrence(ctx, a, name)
	if err != nil {
		return err
	}
	if waiting != nil && waiting.Status != Pending {
		return fmt.Errorf("retryjob: occurrence %s of schedule %s is %s", waiting.JobID, name, waiting.Status)
	}
	if waiting != nil && aboutToStart(waiting) {
		return nil
	}
	over := false
	err = changeKnown(ctx, a, name, func(s *Schedule) { over, s.Requested = s.Over, !s.Over })
	switch {
	case err != nil:
		return err
	case over:
		return fmt.Errorf("retryjob: schedule %s is over", name)
	case waiting != nil:
		return a.Cancel(ctx, waiting.JobID)
	}
	return nil
}

// pendingOccurrence returns the occurrence that the schedule waits for if it has not ended, and otherwise nil.
func pendingOccurrence(ctx context.Context, a Admin, name string) (*Info, error) {
	schedules, err := a.Schedules(ctx)
	if err != nil {
		return nil, err
	}
	at := slices.IndexFunc(schedules, func(s Schedule) bool { return s.Name == name })
	if at < 0 {
		return nil, fmt.Errorf("%w: %.80q", ErrUnknownSchedule, name)
	}
	if schedules[at].Job == "" {
		return nil, nil
	}
	i, err := a.Get(ctx, schedules[at].Job)
	switch {
	case errors.Is(err, ErrUnknownJob):
		return nil, nil
	case err != nil:
		return nil, err
	case i.Status.Final():
		return nil, nil
	}
	return &i, nil
}

// changeKnown changes a schedule that the engine has. A new one has only a name.
func changeKnown(ctx context.Context, a Admin, name string, change func(s *Schedule)) error {
	return a.ChangeSchedule(ctx, name, func(s *Schedule) (*Job, error) {
		if *s == (Schedule{Name: name}) {
			return nil, fmt.Errorf("%w: %.80q", ErrUnknownSchedule, name)
		}
		change(s)
		return nil, nil
	})
}
