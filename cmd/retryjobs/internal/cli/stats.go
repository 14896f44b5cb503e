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

	"github.com/retrygo/retry"
	"github.com/retrygo/retry/retryjob"
)

func (a *app) statsCommand() *cobra.Command {
	return &cobra.Command{
		Use:               "stats",
		Short:             "Count jobs by status, and those that have ended by reason and policy",
		Args:              cobra.NoArgs,
		ValidArgsFunction: cobra.NoFileCompletions,
		RunE: func(cmd *cobra.Command, _ []string) error {
			return a.work(cmd, a.Now(), func(ctx context.Context, s *session) error {
				st, err := s.stats(ctx)
				if err != nil {
					return err
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

// stats holds counts of jobs. The field names are those of --json, which has every status in by_status and only nonzero
// counts in the others.
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

// stats counts in the database. A job that changes in the meantime may be counted in its old state in one place and in
// its new state in another.
func (s *session) stats(ctx context.Context) (*stats, error) {
	st := &stats{ByStatus: map[string]int{}, ByReason: map[string]int{}, ByPolicy: map[string]map[string]int{}}
	all, err := s.store.Count(ctx, retryjob.Filter{})
	if err != nil {
		return nil, err
	}
	plain := map[string]int{} // the final jobs without a policy in the database: plain River jobs
	for _, status := range retryjob.Statuses() {
		t := all[status]
		st.Jobs += t.Jobs
		st.ByStatus[status.String()] = t.Jobs
		if status.Final() {
			plain[status.String()] = t.Jobs
		} else if status != retryjob.Leased && t.Jobs > 0 && (st.NextDue.IsZero() || t.Oldest.Before(st.NextDue)) {
			st.NextDue = t.Oldest.UTC()
		}
	}
	final := statusesThat(retryjob.Status.Final)
	for _, reason := range retryjob.Reasons() {
		n, err := s.count(ctx, retryjob.Filter{Statuses: final, Reasons: []retry.Reason{reason}})
		if err != nil {
			return nil, err
		}
		if n > 0 {
			st.ByReason[reason.Error()] = n
		}
	}
	policies, err := s.store.Policies(ctx)
	if err != nil {
		return nil, err
	}
	add := func(policy, status string, n int) {
		if st.ByPolicy[policy] == nil {
			st.ByPolicy[policy] = map[string]int{}
		}
		st.ByPolicy[policy][status] += n
	}
	for _, policy := range policies {
		counts, err := s.store.Count(ctx, retryjob.Filter{Statuses: final, Policies: []string{policy}})
		if err != nil {
			return nil, err
		}
		for status, t := range counts {
			add(policy, status.String(), t.Jobs)
			plain[status.String()] -= t.Jobs
		}
	}
	for status, n := range plain {
		if n > 0 {
			add("", status, n)
		}
	}
	// The list is sorted by change, the newest first: this is the oldest.
	oldestDead := retryjob.Filter{Statuses: []retryjob.Status{retryjob.DeadLettered}, Until: all[retryjob.DeadLettered].Oldest.Add(time.Microsecond), Limit: 1}
	for info, err := range s.store.List(ctx, oldestDead) {
		if err != nil {
			return nil, err
		}
		st.OldestDeadLetter = &oldest{info.JobID, info.Ended.UTC()}
	}
	return st, nil
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
