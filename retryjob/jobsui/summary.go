package jobsui

import (
	"cmp"
	"context"
	"slices"
	"strings"
	"time"

	"github.com/retrygo/retry/retryjob"
)

// Summary is the figures of an engine's jobs, as the page and "retryjobs stats" show them.
type Summary struct {
	Jobs        int                     `json:"jobs"`
	ByStatus    map[retryjob.Status]int `json:"by_status"` // with every status
	DeadLetters []retryjob.Failures     `json:"dead_letters,omitempty"`
	NextDue     time.Time               `json:"next_due,omitzero"`
	// OldestDue is the due time of the job that has waited longest for a worker; zero if none waits for one.
	OldestDue time.Time             `json:"oldest_due,omitzero"`
	Queues    []retryjob.QueueDepth `json:"queues,omitempty"`    // by name
	Running   []Running             `json:"running,omitempty"`   // up to 10, the one that runs longest first
	Schedules []Schedule            `json:"schedules,omitempty"` // by name
	Rate      []Rate                `json:"rate,omitempty"`      // of the last hour, the oldest first
}

// Running is an attempt under way.
type Running struct {
	Job    string    `json:"job"`
	Kind   string    `json:"kind"`
	Since  time.Time `json:"since,omitzero"`
	Worker string    `json:"worker,omitempty"` // the process; empty if it is not known
}

// Schedule is a schedule of recurring jobs.
type Schedule struct {
	Name string `json:"name"`
	Kind string `json:"kind,omitempty"`
	// State is "paused", "over", "overdue" or "failing", and otherwise the status of the occurrence that waits or runs,
	// or "ended" between two of them.
	State    string              `json:"state"`
	Due      time.Time           `json:"due,omitzero"`      // of the occurrence; zero while an attempt is under way
	Overdue  time.Duration       `json:"overdue,omitempty"` // as retryjob.ScheduleInfo.Overdue, in nanoseconds
	Attempts int                 `json:"attempts"`          // of the occurrence
	Job      string              `json:"job,omitempty"`     // the occurrence; empty between two of them
	Last     retryjob.Occurrence `json:"last,omitzero"`
	Err      string              `json:"err,omitempty"` // why the next occurrence cannot be enqueued, or the last error of the present one
}

// Rate is how many jobs ended in some minutes, of those that the engine still keeps.
type Rate struct {
	From      time.Time `json:"from"`
	Succeeded int       `json:"succeeded"`
	Failed    int       `json:"failed"` // DeadLettered, Expired or FailedNoRetries
}

const (
	mostRunning = 10
	rateStep    = 5 * time.Minute
	rateSteps   = 12
)

// Summarize returns the figures of all jobs at now.
func Summarize(ctx context.Context, a retryjob.Admin, now time.Time) (s Summary, err error) {
	tallies, err := a.Count(ctx, retryjob.Filter{})
	if err != nil {
		return s, err
	}
	s.ByStatus = map[retryjob.Status]int{}
	for _, status := range retryjob.Statuses() {
		s.ByStatus[status] = tallies[status].Jobs
		s.Jobs += tallies[status].Jobs
	}
	for _, status := range []retryjob.Status{retryjob.Pending, retryjob.WaitingRetry} {
		tally := tallies[status]
		if tally.Jobs > 0 && (s.NextDue.IsZero() || tally.Oldest.Before(s.NextDue)) {
			s.NextDue = tally.Oldest.UTC()
		}
	}
	if s.DeadLetters, err = deadLetters(ctx, a, tallies); err != nil {
		return s, err
	}
	if err := s.readQueues(ctx, a); err != nil {
		return s, err
	}
	if tallies[retryjob.Leased].Jobs > 0 {
		if s.Running, err = running(ctx, a); err != nil {
			return s, err
		}
	}
	if s.Schedules, err = schedules(ctx, a, now); err != nil {
		return s, err
	}
	s.Rate, err = rates(ctx, a, tallies, now)
	return s, err
}

func deadLetters(ctx context.Context, a retryjob.Admin, tallies map[retryjob.Status]retryjob.Tally) ([]retryjob.Failures, error) {
	if tallies[retryjob.DeadLettered].Jobs == 0 {
		return nil, nil
	}
	groups, err := a.Groups(ctx, retryjob.Filter{Statuses: []retryjob.Status{retryjob.DeadLettered}})
	if err != nil {
		return nil, err
	}
	return retryjob.FailuresOf(groups, retryjob.DeadLettered), nil
}

// readQueues sets Queues and OldestDue.
func (s *Summary) readQueues(ctx context.Context, a retryjob.Admin) error {
	depths, err := a.Queues(ctx)
	if err != nil {
		return err
	}
	slices.SortFunc(depths, func(a, b retryjob.QueueDepth) int { return strings.Compare(a.Queue, b.Queue) })
	s.Queues = depths
	for _, d := range depths {
		if d.Due > 0 && (s.OldestDue.IsZero() || d.Oldest.Before(s.OldestDue)) {
			s.OldestDue = d.Oldest.UTC()
		}
	}
	return nil
}

// running returns the attempts that have been under way for the longest time, of up to 200.
func running(ctx context.Context, a retryjob.Admin) (all []Running, err error) {
	for i, err := range a.List(ctx, retryjob.Filter{Statuses: []retryjob.Status{retryjob.Leased}, Limit: 200}) {
		if err != nil {
			return nil, err
		}
		all = append(all, Running{i.JobID, i.Kind, i.Last().Start.UTC(), i.Worker})
	}
	slices.SortFunc(all, func(a, b Running) int { return cmp.Or(a.Since.Compare(b.Since), strings.Compare(a.Job, b.Job)) })
	return all[:min(len(all), mostRunning)], nil
}

func schedules(ctx context.Context, a retryjob.Admin, now time.Time) (all []Schedule, err error) {
	infos, err := retryjob.ReadSchedules(ctx, a, now)
	if err != nil {
		return nil, err
	}
	for i := range infos {
		all = append(all, ScheduleOf(&infos[i]))
	}
	return all, nil
}

// ScheduleOf returns a schedule as it is shown.
func ScheduleOf(i *retryjob.ScheduleInfo) Schedule {
	s := Schedule{Name: i.Name, Kind: i.Kind, Overdue: i.Overdue, Last: i.Last, Err: i.Err}
	if i.Open != nil {
		s.Job, s.Due, s.Attempts = i.Open.JobID, i.Open.Due.UTC(), i.Open.Attempts
		s.Err = cmp.Or(s.Err, i.Open.LastErr())
	}
	switch {
	case i.Paused:
		s.State = "paused"
	case i.Over:
		s.State = "over"
	case i.Overdue > 0:
		s.State = "overdue"
	case i.Err != "":
		s.State = "failing"
	case i.Open != nil:
		s.State = i.Open.Status.String()
	default:
		s.State = "ended"
	}
	return s
}

// rates returns the figures of the last hour, or nil if no job that is kept ended then.
func rates(ctx context.Context, a retryjob.Admin, tallies map[retryjob.Status]retryjob.Tally, now time.Time) ([]Rate, error) {
	failures := []retryjob.Status{retryjob.DeadLettered, retryjob.Expired, retryjob.FailedNoRetries}
	f := retryjob.Filter{Statuses: slices.DeleteFunc(append(failures, retryjob.Succeeded), func(s retryjob.Status) bool { return tallies[s].Jobs == 0 })}
	if len(f.Statuses) == 0 {
		return nil, nil
	}
	all, ended := make([]Rate, rateSteps), 0
	first := now.Truncate(rateStep).Add(-(rateSteps - 1) * rateStep)
	for i := range all {
		all[i].From = first.Add(time.Duration(i) * rateStep).UTC()
		f.Since, f.Until = all[i].From, all[i].From.Add(rateStep)
		counts, err := a.Count(ctx, f)
		if err != nil {
			return nil, err
		}
		all[i].Succeeded = counts[retryjob.Succeeded].Jobs
		for _, status := range failures {
			all[i].Failed += counts[status].Jobs
		}
		ended += all[i].Succeeded + all[i].Failed
	}
	if ended == 0 {
		return nil, nil
	}
	return all, nil
}

// Ended returns the number of jobs that ended in the last hour.
func (s *Summary) Ended() (succeeded, failed int) {
	for _, r := range s.Rate {
		succeeded += r.Succeeded
		failed += r.Failed
	}
	return succeeded, failed
}

// recurring returns the name of the retryjob.Recurring that made a job, "" for none.
func recurring(i *retryjob.Info) string {
	for _, tag := range i.Tags {
		if name, ok := strings.CutPrefix(tag, "recurring_"); ok {
			return name
		}
	}
	return ""
}

const (
	countTime  = time.Second     // for all counts of a page
	countedFor = 5 * time.Second // how long counts are shown
)

// overview is the figures at a time, or the reason for their absence.
type overview struct {
	Summary
	err   error
	taken time.Time
}

// overview returns the figures, which may be some seconds old. One request counts at a time.
func (h *handler) overview(ctx context.Context) overview {
	h.counting.Lock()
	defer h.counting.Unlock()
	if time.Since(h.counted.taken) < countedFor {
		return h.counted
	}
	limited, cancel := context.WithTimeout(ctx, countTime)
	defer cancel()
	o := overview{taken: time.Now()}
	if o.Summary, o.err = Summarize(limited, h.Admin, o.taken); ctx.Err() == nil {
		h.counted = o // also an error: otherwise each request waits for countTime
	}
	return o
}
