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

func (a *app) statsCommand() *cobra.Command {
	return &cobra.Command{
		Use:               "stats",
		Short:             "Count jobs by status, those that have ended by reason and policy, and dead letters by error",
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
	DeadLetters      []retryjob.Failures       `json:"dead_letters,omitempty"`
	OldestDeadLetter *oldest                   `json:"oldest_dead_letter,omitempty"`
	NextDue          time.Time                 `json:"next_due,omitzero"`
}

type oldest struct {
	Job   string    `json:"job"`
	Ended time.Time `json:"ended"`
}

// stats counts in the database.
func (s *session) stats(ctx context.Context) (*stats, error) {
	st := &stats{ByStatus: map[string]int{}, ByReason: map[string]int{}, ByPolicy: map[string]map[string]int{}}
	for _, status := range retryjob.Statuses() {
		st.ByStatus[status.String()] = 0
	}
	groups, err := s.store.Groups(ctx, retryjob.Filter{})
	if err != nil {
		return nil, err
	}
	var dead time.Time // the oldest dead letter
	for i := range groups {
		g := &groups[i]
		status := g.Status.String()
		st.Jobs += g.Jobs
		st.ByStatus[status] += g.Jobs
		switch {
		case g.Status.Final():
			if g.Reason != 0 {
				st.ByReason[g.Reason.Error()] += g.Jobs
			}
			if st.ByPolicy[g.Policy] == nil {
				st.ByPolicy[g.Policy] = map[string]int{}
			}
			st.ByPolicy[g.Policy][status] += g.Jobs
			if g.Status == retryjob.DeadLettered && (dead.IsZero() || g.Oldest.Before(dead)) {
				dead = g.Oldest
			}
		case g.Status != retryjob.Leased && (st.NextDue.IsZero() || g.Oldest.Before(st.NextDue)):
			st.NextDue = g.Oldest.UTC()
		}
	}
	st.DeadLetters = retryjob.FailuresOf(groups, retryjob.DeadLettered)
	// The list is sorted by change, the newest first: this is the oldest.
	f := retryjob.Filter{Statuses: []retryjob.Status{retryjob.DeadLettered}, Until: dead.Add(time.Microsecond), Limit: 1}
	for info, err := range s.store.List(ctx, f) {
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
	if len(st.DeadLetters) > 0 {
		fmt.Fprintln(s.out)
		t = s.newTable("DEAD LETTERS", "KIND", "REASON", "CODE", "NEWEST", "ENDED", "ERROR")
		t.fit = true
		for _, f := range st.DeadLetters {
			t.line(strconv.Itoa(f.Jobs), f.Kind, f.Reason.Error(), f.Code, f.Newest, stamp(f.Ended), f.Err)
		}
		t.flush()
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
