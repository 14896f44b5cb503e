package cli

import (
	"context"
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/retrygo/retry/retryjob"
)

// countPage is how many jobs are read at once where they are only counted: few queries, and some megabytes of payloads.
const countPage = 500

func (a *app) statsCommand() *cobra.Command {
	return &cobra.Command{
		Use:               "stats",
		Short:             "Count jobs by status, and those that have ended by reason and policy",
		Args:              cobra.NoArgs,
		ValidArgsFunction: cobra.NoFileCompletions,
		RunE: func(cmd *cobra.Command, _ []string) error {
			return a.work(cmd, a.Now(), func(ctx context.Context, s *session) error {
				st := newStats()
				for info, err := range s.store.List(ctx, retryjob.Filter{PageSize: countPage}) {
					if err != nil {
						return err
					}
					st.add(&info.Record)
				}
				if s.json {
					return s.printJSON(st)
				}
				s.showStats(st)
				return nil
			})
		},
	}
}

// stats is counts of jobs. The field names are those of --json, which has every status in by_status and only what there is
// in the others.
type stats struct {
	Jobs             int                       `json:"jobs"`
	ByStatus         map[string]int            `json:"by_status"`
	ByReason         map[string]int            `json:"by_reason"` // of the final jobs
	ByPolicy         map[string]map[string]int `json:"by_policy"` // of the final jobs, by status
	OldestDeadLetter *oldest                   `json:"oldest_dead_letter,omitempty"`
	NextDue          time.Time                 `json:"next_due,omitzero"`
}

type oldest struct {
	Job   string    `json:"job"`
	Ended time.Time `json:"ended"`
}

func newStats() *stats {
	st := &stats{ByStatus: map[string]int{}, ByReason: map[string]int{}, ByPolicy: map[string]map[string]int{}}
	for _, status := range retryjob.Statuses() {
		st.ByStatus[status.String()] = 0
	}
	return st
}

func (st *stats) add(rec *retryjob.Record) {
	status := rec.Status.String()
	st.Jobs++
	st.ByStatus[status]++
	if !rec.Due.IsZero() && (st.NextDue.IsZero() || rec.Due.Before(st.NextDue)) {
		st.NextDue = rec.Due.UTC()
	}
	if !rec.Status.Final() {
		return
	}
	if rec.Reason != 0 {
		st.ByReason[rec.Reason.Error()]++
	}
	if st.ByPolicy[rec.Policy] == nil {
		st.ByPolicy[rec.Policy] = map[string]int{}
	}
	st.ByPolicy[rec.Policy][status]++
	if rec.Status == retryjob.DeadLettered && (st.OldestDeadLetter == nil || rec.Ended.Before(st.OldestDeadLetter.Ended)) {
		st.OldestDeadLetter = &oldest{rec.JobID, rec.Ended.UTC()}
	}
}

func (s *session) showStats(st *stats) {
	t := s.newTable("STATUS", "JOBS")
	for _, status := range retryjob.Statuses() {
		t.line(status.String(), strconv.Itoa(st.ByStatus[status.String()]))
	}
	t.line("total", strconv.Itoa(st.Jobs))
	t.flush()
	if len(st.ByReason) > 0 {
		fmt.Fprintln(s.out)
		t = s.newTable("REASON", "JOBS")
		for _, reason := range retryjob.Reasons() {
			if n := st.ByReason[reason.Error()]; n > 0 {
				t.line(reason.Error(), strconv.Itoa(n))
			}
		}
		t.flush()
	}
	if len(st.ByPolicy) > 0 {
		fmt.Fprintln(s.out)
		s.showPolicies(st.ByPolicy)
	}
	fmt.Fprintln(s.out)
	t = s.newTable()
	dead := ""
	if o := st.OldestDeadLetter; o != nil {
		dead = relative(stamp(o.Ended), o.Ended, s.now) + " " + o.Job
	}
	t.line("oldest dead letter", dead)
	t.line("next due", relative(stamp(st.NextDue), st.NextDue, s.now))
	t.flush()
}

func (s *session) showPolicies(byPolicy map[string]map[string]int) {
	final := statusesThat(retryjob.Status.Final)
	header := []string{"POLICY"}
	for _, status := range final {
		header = append(header, strings.ToUpper(status.String()))
	}
	t := s.newTable(header...)
	for _, policy := range slices.Sorted(maps.Keys(byPolicy)) {
		cells := []string{policy}
		for _, status := range final {
			cells = append(cells, strconv.Itoa(byPolicy[policy][status.String()]))
		}
		t.line(cells...)
	}
	t.flush()
}
