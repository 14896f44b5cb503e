package jobtest

import (
	"context"
	"encoding/json"
	"errors"
	"slices"
	"strings"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/retrygo/retry"
	"github.com/retrygo/retry/retryjob"
)

// listing has the claims about List, Count and Groups.
var listing = []scenario{
	{claim: "Queues counts what is due, what is due later and what runs in each queue, and what is due for the longest time", play: func(s *stage) {
		begun, release := make(chan struct{}), make(chan error)
		s.openWith(retryjob.Options{
			Policies: retryjob.FromMap(policies{"p": s.held(retry.Policy{})}), Queues: map[string]int{"default": 1, "narrow": 1},
			Handlers: map[string]retryjob.Handler{kind: wait(begun, release)},
		})
		put := func(queue string, due time.Time) {
			s.put(retryjob.Job{Kind: kind, Policy: "p", Queue: queue, Due: due})
		}
		for _, queue := range []string{"", "narrow"} {
			put(queue, time.Time{})
			receive(s, begun, "the attempt")
			put(queue, time.Now().Add(100*s.unit))
		}
		before := time.Now()
		put("", time.Time{})
		put("", time.Time{})
		depths, err := s.q.Queues(s.t.Context())
		require.NoError(s.t, err)
		slices.SortFunc(depths, func(a, b retryjob.QueueDepth) int { return strings.Compare(a.Queue, b.Queue) })
		require.Len(s.t, depths, 2)
		require.WithinDuration(s.t, before, depths[0].Oldest, s.unit)
		depths[0].Oldest = time.Time{}
		require.Equal(s.t, []retryjob.QueueDepth{{Queue: "default", Due: 2, Later: 1, Running: 1}, {Queue: "narrow", Later: 1, Running: 1}}, depths)
		close(release)
	}},

	{claim: "errors of one kind are one group, whatever their numbers and addresses, and are selected and replayed by it", play: func(s *stage) {
		var d diary
		causes := map[string]string{
			"dial tcp 10.0.0.7:443: connect: connection refused": "dial tcp #: connect: connection refused",
			"dial tcp [::1]:80: connect: connection refused":     "dial tcp #: connect: connection refused",
			"no answer in 1500 ms":                               "no answer in # ms",
		}
		s.open(policies{"p": fixed(1, short)}, func(ctx context.Context, job retryjob.Job) error {
			if d.note(ctx, job).Replays > 0 {
				return nil
			}
			return errors.New(job.Correlation)
		})
		for text := range causes {
			s.final(s.put(retryjob.Job{Kind: kind, Policy: "p", Correlation: text}).ID())
		}
		ctx := s.t.Context()
		groups, err := s.q.Groups(ctx, retryjob.Filter{})
		require.NoError(s.t, err)
		jobs := map[string]int{}
		for _, g := range groups {
			jobs[g.Cause] = g.Jobs
		}
		require.Equal(s.t, map[string]int{"dial tcp #: connect: connection refused": 2, "no answer in # ms": 1}, jobs)
		refused := retryjob.Filter{Causes: []string{"dial tcp #: connect: connection refused"}}
		for i, err := range s.q.List(ctx, refused) {
			require.NoError(s.t, err)
			require.Equal(s.t, refused.Causes[0], i.Cause())
		}
		n, err := s.q.ReplayAll(ctx, refused)
		require.NoError(s.t, err)
		require.Equal(s.t, 2, n)
		s.poll("both have succeeded", func() bool {
			counts, err := s.q.Count(ctx, statuses(retryjob.Succeeded, retryjob.DeadLettered))
			require.NoError(s.t, err)
			return counts[retryjob.Succeeded].Jobs == 2 && counts[retryjob.DeadLettered].Jobs == 1
		})
	}},

	{claim: "List gives the job that changed last first, each once, whatever the size of a page, up to Limit", play: func(s *stage) {
		want := s.deadLetters(7)
		slices.Reverse(want)
		for _, size := range []int{-1, 0, 1, 2, 3, 7, 8} {
			f := retryjob.Filter{PageSize: size, Limit: -1}
			require.Equal(s.t, want, ids(s, s.q.List(s.t.Context(), f)), "in pages of %d", size)
			require.Equal(s.t, want, ids(s, s.q.List(s.t.Context(), dead(f))), "in pages of %d", size)
			f.Limit = max(size, 1)
			require.Equal(s.t, want[:min(f.Limit, 7)], ids(s, s.q.List(s.t.Context(), f)), "limit %d", f.Limit)
		}
		list := s.q.List(s.t.Context(), retryjob.Filter{PageSize: 2})
		for range 2 { // it can be left early and walked again
			var first []string
			for i, err := range list {
				require.NoError(s.t, err)
				if first = append(first, i.JobID); len(first) == 3 {
					break
				}
			}
			require.Equal(s.t, want[:3], first)
		}
		for n, id := range want { // it goes on after any of its jobs, also after one that is gone
			i := s.get(id)
			require.Equal(s.t, append([]string(nil), want[n+1:]...), ids(s, s.q.List(s.t.Context(), retryjob.Filter{After: i.Cursor(), PageSize: 2})))
		}
		gone := s.get(want[2])
		_, err := s.q.Purge(s.t.Context(), retryjob.Filter{IDs: want[2:3]})
		require.NoError(s.t, err)
		require.Equal(s.t, want[3:4], ids(s, s.q.List(s.t.Context(), retryjob.Filter{After: gone.Cursor(), Limit: 1})))
	}},

	{claim: "a job that is due in the future has changed when it was enqueued or replayed, not when it is due", play: func(s *stage) {
		s.deadLetters(2)
		list := func() []string { return ids(s, s.q.List(s.t.Context(), retryjob.Filter{PageSize: 1})) }
		s.pass(s.unit / 10)
		s.put(retryjob.Job{ID: "later", Kind: kind, Policy: "p", Due: time.Now().Add(99 * s.unit)})
		later := s.get("later")
		require.False(s.t, later.Changed().After(time.Now()))
		require.Equal(s.t, "later", list()[0])
		s.pass(s.unit / 10)
		s.put(retryjob.Job{ID: "now", Kind: kind, Policy: "p"})
		s.final("now")
		require.Equal(s.t, []string{"now", "later", "b-letter", "a-letter"}, list())
		require.Equal(s.t, []string{"later"}, ids(s, s.q.List(s.t.Context(), retryjob.Filter{
			Statuses: []retryjob.Status{retryjob.Pending}, Until: time.Now().Add(s.unit),
		})))
	}},

	{claim: "a filter selects by status, reason, policy, kind, tag and time, and all of them together", play: func(s *stage) {
		all := s.zoo()
		exhausted, expired := s.get("exhausted"), s.get("expired")
		for _, row := range []struct {
			name   string
			filter retryjob.Filter
			want   []string
		}{
			{"nothing", retryjob.Filter{}, all},
			{"a status", statuses(retryjob.DeadLettered), []string{"terminal", "exhausted"}},
			{"pending", statuses(retryjob.Pending), []string{"pending"}},
			{"waiting", statuses(retryjob.WaitingRetry), []string{"waiting"}},
			{"two statuses", statuses(retryjob.Expired, retryjob.Succeeded), []string{"expired", "succeeded"}},
			{"all statuses", statuses(retryjob.Statuses()...), all},
			{"a status that none has", statuses(retryjob.Leased), nil},
			{"a reason", retryjob.Filter{Reasons: []retry.Reason{retry.TerminalError}}, []string{"terminal"}},
			{"reasons", retryjob.Filter{Reasons: []retry.Reason{retry.RetriesDisabled, retry.CallerCanceled}}, []string{"failed", "canceled"}},
			{"a policy", retryjob.Filter{Policies: []string{"brief"}}, []string{"expired"}},
			{"policies", retryjob.Filter{Policies: []string{"brief", "off", "nobody's"}}, []string{"expired", "failed"}},
			{"a kind", retryjob.Filter{Kinds: []string{"other"}}, []string{"terminal", "canceled"}},
			{"kinds", retryjob.Filter{Kinds: []string{"other", kind}}, all},
			{"a tag", retryjob.Filter{Tags: []string{"eu_west"}}, []string{"exhausted", "pending"}},
			{"tags", retryjob.Filter{Tags: []string{"large-one", "eu-west"}}, []string{"exhausted", "terminal"}},
			{"a part of a tag, and another case", retryjob.Filter{Tags: []string{"eu", "EU_WEST"}}, nil},
			{"all at once", retryjob.Filter{
				Statuses: []retryjob.Status{retryjob.DeadLettered}, Reasons: []retry.Reason{retry.TerminalError},
				Policies: []string{"two"}, Kinds: []string{"other"},
			}, []string{"terminal"}},
			{"a contradiction", retryjob.Filter{Policies: []string{"off"}, Kinds: []string{"other"}}, nil},
			{"a time and before", retryjob.Filter{Since: exhausted.Ended, Until: expired.Ended}, []string{"exhausted"}},
			{"since a time", retryjob.Filter{Since: expired.Ended, Statuses: final()}, []string{"expired", "failed", "succeeded", "canceled"}},
			{"just after", retryjob.Filter{Since: exhausted.Ended.Add(1), Until: expired.Ended.Add(1)}, []string{"expired"}},
			{"a long time ago", retryjob.Filter{Until: time.Now().Add(-99 * s.unit)}, nil},
		} {
			require.ElementsMatch(s.t, row.want, ids(s, s.q.List(s.t.Context(), row.filter)), row.name)
			counts, err := s.q.Count(s.t.Context(), row.filter)
			require.NoError(s.t, err)
			jobs := 0
			for _, tally := range counts {
				jobs += tally.Jobs
			}
			require.Equal(s.t, len(row.want), jobs, row.name)
		}
	}},

	{claim: "a list of IDs has those jobs, each once, together with the rest of the filter", play: func(s *stage) {
		s.zoo()
		wanted := []string{"canceled", "none", "pending", "exhausted", "river-1-x", "exhausted"}
		for _, size := range []int{0, 1, 2} {
			require.Equal(s.t, []string{"canceled", "exhausted", "pending"}, ids(s, s.q.List(s.t.Context(), retryjob.Filter{IDs: wanted, PageSize: size})))
		}
		last := s.get("canceled")
		require.Equal(s.t, []string{"exhausted", "pending"}, ids(s, s.q.List(s.t.Context(), retryjob.Filter{IDs: wanted, After: last.Cursor()})))
		some := retryjob.Filter{IDs: wanted, Statuses: final(), Kinds: []string{kind}}
		require.Equal(s.t, []string{"exhausted"}, ids(s, s.q.List(s.t.Context(), some)))
		counts, err := s.q.Count(s.t.Context(), some)
		require.NoError(s.t, err)
		require.Equal(s.t, 1, counts[retryjob.DeadLettered].Jobs)
		n, err := s.q.ReplayAll(s.t.Context(), retryjob.Filter{IDs: wanted})
		require.NoError(s.t, err)
		require.Equal(s.t, 1, n)
		n, err = s.q.Purge(s.t.Context(), retryjob.Filter{IDs: []string{"canceled", "succeeded", "pending", "none"}})
		require.NoError(s.t, err)
		require.Equal(s.t, 2, n)
	}},

	{claim: "Count counts by status, and Groups by kind, policy, reason and cause too, each with the oldest time and the newest job", play: func(s *stage) {
		s.zoo()
		type key struct {
			status             retryjob.Status
			kind, policy, code string
			reason             retry.Reason
		}
		for _, f := range []retryjob.Filter{{}, statuses(retryjob.DeadLettered), {Policies: []string{"two"}, Kinds: []string{"other"}}, {Reasons: []retry.Reason{retry.TTLElapsed}}} {
			want, tallies := map[key]retryjob.Group{}, map[retryjob.Status]retryjob.Tally{}
			for i, err := range s.q.List(s.t.Context(), f) {
				require.NoError(s.t, err)
				k := key{i.Status, i.Kind, i.Policy, "", i.Reason}
				if i.Status.Final() && i.Status != retryjob.Succeeded {
					k.code = i.Cause()
				}
				t := tallies[i.Status]
				t.Add(&i)
				tallies[i.Status] = t
				g := want[k]
				if g.Tally.Add(&i); g.Jobs == 1 {
					i.Payload = nil
					g.Newest = i
				}
				want[k] = g
			}
			f.Limit, f.After = 1, retryjob.Cursor{Changed: time.Now().Add(-s.unit), ID: "exhausted"} // which both ignore
			counts, err := s.q.Count(s.t.Context(), f)
			require.NoError(s.t, err)
			require.Len(s.t, counts, len(tallies))
			for status, w := range tallies {
				require.Equal(s.t, w.Jobs, counts[status].Jobs)
				require.WithinDuration(s.t, w.Oldest, counts[status].Oldest, 10*time.Millisecond) // as the database rounds
			}
			groups, err := s.q.Groups(s.t.Context(), f)
			require.NoError(s.t, err)
			require.Len(s.t, groups, len(want))
			for _, g := range groups {
				w := want[key{g.Status, g.Kind, g.Policy, g.Cause, g.Reason}]
				require.Equal(s.t, w.Jobs, g.Jobs)
				require.WithinDuration(s.t, w.Oldest, g.Oldest, 10*time.Millisecond)
				require.Equal(s.t, asJSON(s, w.Newest), asJSON(s, g.Newest))
			}
		}
	}},

	{claim: "a list has the same of a job as Get, and what a caller does to an Info does not reach the engine", play: func(s *stage) {
		s.zoo()
		seen := 0
		for i, err := range s.q.List(s.t.Context(), retryjob.Filter{}) {
			require.NoError(s.t, err)
			got := s.get(i.JobID)
			before := asJSON(s, got)
			require.Equal(s.t, before, asJSON(s, i))
			for _, info := range []retryjob.Info{i, got} {
				clear(info.History)
				clear(info.Payload)
			}
			require.Equal(s.t, before, asJSON(s, s.get(i.JobID)))
			seen++
		}
		require.Equal(s.t, 8, seen)
	}},
}

// final returns the statuses that are.
func final() (list []retryjob.Status) {
	for _, status := range retryjob.Statuses() {
		if status.Final() {
			list = append(list, status)
		}
	}
	return list
}

func statuses(list ...retryjob.Status) retryjob.Filter { return retryjob.Filter{Statuses: list} }

// deadLetters opens an engine with n dead letters, which have ended one after the other, and returns their IDs.
func (s *stage) deadLetters(n int) (made []string) {
	var d diary
	s.open(policies{"p": {}}, d.always(retry.Permanent(errFlaky)))
	for i := range n {
		id := string(rune('a'+i)) + "-letter"
		s.put(retryjob.Job{ID: id, Kind: kind, Policy: "p", Due: time.Now().Add(s.unit / 10)})
		s.final(id)
		made = append(made, id)
	}
	return made
}

// zoo opens an engine with a job for each status but leased, and two for dead letters, and returns their IDs. The final
// ones have ended one after the other, in this order. The handlers of those that could go on succeed from now on.
func (s *stage) zoo() []string {
	var d diary
	h := func(wanted error) retryjob.Handler {
		return func(ctx context.Context, job retryjob.Job) error {
			a := d.note(ctx, job)
			switch {
			case a.Replays > 0 || job.ID == "succeeded" || job.ID == "waiting" && a.Number > 1:
				return nil
			default:
				return wanted
			}
		}
	}
	s.openWith(retryjob.Options{
		Policies: retryjob.FromMap(policies{
			"two": fixed(2, short), "slow": fixed(2, s.never()), "brief": s.unlucky(5), "off": {Disabled: true},
		}),
		Handlers: map[string]retryjob.Handler{kind: h(errFlaky), "other": h(retry.Permanent(errFlaky))},
	})
	s.put(retryjob.Job{ID: "pending", Kind: kind, Policy: "two", Tags: []string{"eu_west"}, Due: time.Now().Add(s.never())})
	s.put(retryjob.Job{ID: "waiting", Kind: kind, Policy: "slow", Payload: []byte(`{"n": 1}`)})
	s.reaches("waiting", retryjob.WaitingRetry)
	for _, job := range []retryjob.Job{
		{ID: "terminal", Kind: "other", Policy: "two", Tags: []string{"eu-west"}},
		{ID: "exhausted", Kind: kind, Policy: "two", Tags: []string{"eu_west", "large-one"}, Payload: []byte(`{"n": 2}`), Correlation: "trace"},
		{ID: "expired", Kind: kind, Policy: "brief"},
		{ID: "failed", Kind: kind, Policy: "off"},
		{ID: "succeeded", Kind: kind, Policy: "two"},
	} {
		job.Due = time.Now().Add(s.unit / 10)
		s.put(job)
		s.final(job.ID)
	}
	s.put(retryjob.Job{ID: "canceled", Kind: "other", Policy: "two", Due: time.Now().Add(s.never())})
	s.pass(s.unit / 10)
	require.NoError(s.t, s.q.Cancel(s.t.Context(), "canceled"))
	s.final("canceled")
	return []string{"pending", "waiting", "terminal", "exhausted", "expired", "failed", "succeeded", "canceled"}
}

// asJSON returns v as JSON, in which equal times are equal even if they differ in memory.
func asJSON(s *stage, v any) string {
	s.t.Helper()
	text, err := json.Marshal(v)
	require.NoError(s.t, err)
	return string(text)
}
