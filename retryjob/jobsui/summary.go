package jobsui

import (
	"context"
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
	Recurring   []Occurrence            `json:"recurring,omitempty"`
}

// Occurrence is the occurrence of a retryjob.Recurring that has not ended. Due is zero while an attempt is under way.
type Occurrence struct {
	Name     string          `json:"name"`
	Kind     string          `json:"kind"`
	Status   retryjob.Status `json:"status"`
	Due      time.Time       `json:"due,omitzero"`
	Attempts int             `json:"attempts"`
	Job      string          `json:"job"`
	Err      string          `json:"err,omitempty"` // the last error
}

// Summarize returns the figures of all jobs, with up to 200 recurring ones.
func Summarize(ctx context.Context, a retryjob.Admin) (s Summary, err error) {
	tallies, err := a.Count(ctx, retryjob.Filter{})
	if err != nil {
		return s, err
	}
	s.ByStatus = map[retryjob.Status]int{}
	var open []retryjob.Status
	for _, status := range retryjob.Statuses() {
		tally := tallies[status]
		s.ByStatus[status] = tally.Jobs
		s.Jobs += tally.Jobs
		if !status.Final() && tally.Jobs > 0 {
			open = append(open, status)
			if status != retryjob.Leased && (s.NextDue.IsZero() || tally.Oldest.Before(s.NextDue)) {
				s.NextDue = tally.Oldest.UTC()
			}
		}
	}
	if tallies[retryjob.DeadLettered].Jobs > 0 {
		groups, err := a.Groups(ctx, retryjob.Filter{Statuses: []retryjob.Status{retryjob.DeadLettered}})
		if err != nil {
			return s, err
		}
		s.DeadLetters = retryjob.FailuresOf(groups, retryjob.DeadLettered)
	}
	if len(open) == 0 {
		return s, nil
	}
	for i, err := range a.List(ctx, retryjob.Filter{Tags: []string{retryjob.RecurringTag}, Statuses: open, Limit: 200}) {
		if err != nil {
			return s, err
		}
		s.Recurring = append(s.Recurring, Occurrence{recurring(&i), i.Kind, i.Status, i.Due.UTC(), i.Attempts, i.JobID, i.LastErr()})
	}
	return s, nil
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

// overview is the figures at a time, or why there are none.
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
	if o.Summary, o.err = Summarize(limited, h.Admin); ctx.Err() == nil {
		h.counted = o // also an error: otherwise each request waits for countTime
	}
	return o
}
