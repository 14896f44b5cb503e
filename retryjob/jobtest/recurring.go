package jobtest

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"slices"
	"strings"
	"sync/atomic"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/retrygo/retry"
	"github.com/retrygo/retry/retryjob"
)

// recurring has the claims about jobs that come back.
var recurring = []scenario{
	{claim: "a recurring job is due a delay after the end of the one before it, and retried by its policy", play: func(s *stage) {
		var d diary
		s.recur(&d, retryjob.AfterEnd(s.unit))
		made := s.occurrences(3)
		for n, i := range made {
			require.Equal(s.t, retryjob.Succeeded, i.Status)
			require.Equal(s.t, 2, i.Attempts, "its policy retried it")
			require.Equal(s.t, []string{"recurring", "recurring_beat"}, i.Tags)
			if n > 0 {
				due := made[n-1].Ended.Add(s.unit)
				if i.Enqueued.IsZero() { // a slow machine enqueued it when it was due already
					require.False(s.t, i.FirstDue.Before(due.Add(-2*time.Millisecond)))
				} else {
					require.WithinDuration(s.t, due, i.FirstDue, 2*time.Millisecond) // databases round to the millisecond
				}
				require.GreaterOrEqual(s.t, i.History[0].Start.Sub(made[n-1].Ended), s.unit-2*time.Millisecond)
			}
		}
	}},

	{claim: "a recurring job comes back once after a crash", needs: aCrash, play: func(s *stage) {
		var d diary
		s.recur(&d, retryjob.AtRate(s.unit))
		s.occurrences(1)
		s.crash()
		s.occurrences(4)
	}},

	{claim: "an occurrence whose attempt was under way in a crash is attempted again, with no other beside it", needs: aCrash, play: func(s *stage) {
		begun, release := make(chan struct{}), make(chan error)
		s.t.Cleanup(func() { close(release) })
		var made atomic.Int64
		hold := wait(begun, release)
		s.recurring(func(ctx context.Context, job retryjob.Job) error {
			if made.Add(1) == 2 {
				return hold(ctx, job)
			}
			return nil
		}, retryjob.AtRate(s.unit))
		receive(s, begun, "the attempt of the second occurrence")
		s.crash()
		second := s.occurrences(3)[1]
		require.Equal(s.t, []any{retryjob.Succeeded, 2}, []any{second.Status, second.Attempts})
		require.Equal(s.t, retryjob.ErrLost.Error(), second.History[0].Err)
	}},

	{claim: "two engines on the same data make each occurrence once", needs: aSuspension, play: func(s *stage) {
		var d diary
		s.recur(&d, retryjob.AfterEnd(s.unit/2))
		other, resume := s.h.Suspend(s.t, s.q)
		resume()
		defer func() {
			ctx, cancel := context.WithCancel(context.Background())
			cancel()
			_, _ = other.Shutdown(ctx)
		}()
		s.occurrences(4)
		counts := map[string]int{}
		for _, a := range d.all() {
			counts[a.AttemptID]++
			require.Equal(s.t, 1, counts[a.AttemptID])
		}
	}},

	{claim: "the IDs of occurrences are their own, and a caller's job with the name of a schedule does not disturb it", play: func(s *stage) {
		var d diary
		s.recur(&d, retryjob.AtRate(s.unit))
		ctx := s.t.Context()
		s.put(retryjob.Job{ID: "beat", Kind: "other", Policy: "p"})
		for _, id := range []string{"recurring:beat:work:1", "recurring:beat:work:2", "recurring:"} {
			_, err := s.q.Enqueue(ctx, retryjob.Job{ID: id, Kind: "other", Policy: "p"})
			require.ErrorContains(s.t, err, "begins as the IDs of recurring jobs do")
			_, err = s.q.EnqueueMany(ctx, []retryjob.Job{{ID: id, Kind: "other", Policy: "p"}})
			require.ErrorContains(s.t, err, "begins as the IDs of recurring jobs do")
		}
		for n, i := range s.occurrences(3) {
			require.Equal(s.t, []string{fmt.Sprint("recurring:beat:work:", n+1), kind}, []string{i.JobID, i.Kind})
		}
		require.Equal(s.t, "other", s.final("beat").Kind)
	}},

	{claim: "a schedule goes on when its ended occurrences are purged, and its state outlives them", play: func(s *stage) {
		var d diary
		s.recur(&d, retryjob.AfterEnd(s.unit))
		s.occurrences(1)
		s.schedule("has two occurrences", func(i retryjob.ScheduleInfo) bool { return i.Number == 2 })
		_, err := s.q.Purge(s.t.Context(), retryjob.Filter{})
		require.NoError(s.t, err)
		require.Equal(s.t, retryjob.Succeeded, s.schedule("", nil).Last.Status)
		s.occurrences(2)
	}},

	{claim: "a schedule has the end of its last occurrence while the next one waits, and a dead occurrence is not replayed beside it", play: func(s *stage) {
		var d diary
		s.recurring(d.always(errFlaky), retryjob.AtRate(1000*s.unit))
		s.schedule("has an occurrence", func(i retryjob.ScheduleInfo) bool { return i.Number == 1 })
		ctx := s.t.Context()
		require.NoError(s.t, retryjob.RunSchedule(ctx, s.q, "beat")) // the next one waits for long, on a slow machine too
		i := s.schedule("has run", func(i retryjob.ScheduleInfo) bool { return i.Number == 3 })
		require.Equal(s.t, []any{"recurring:beat:work:2", retryjob.DeadLettered, errFlaky.Error()}, []any{i.Last.Job, i.Last.Status, i.Last.Err})
		require.Equal(s.t, retryjob.Pending, i.Open.Status)
		err := s.q.Replay(ctx, i.Last.Job)
		require.ErrorIs(s.t, err, retryjob.ErrNotReplayable)
		require.ErrorContains(s.t, err, "recurring:beat:work:3")
		n, err := s.q.ReplayAll(ctx, retryjob.Filter{})
		require.NoError(s.t, err)
		require.Zero(s.t, n)
		require.Len(s.t, s.list(retryjob.Pending, retryjob.Leased, retryjob.WaitingRetry), 1)
	}},

	{claim: "a paused schedule enqueues nothing, its dead occurrences are replayed one at a time, and it goes on when it is resumed", play: func(s *stage) {
		var d diary
		s.recurring(d.always(errFlaky), retryjob.AfterEnd(s.unit))
		ctx := s.t.Context()
		s.schedule("has ended twice", func(i retryjob.ScheduleInfo) bool { return i.Number == 3 })
		require.NoError(s.t, retryjob.PauseSchedule(ctx, s.q, "beat"))
		paused := s.schedule("waits for nothing", func(i retryjob.ScheduleInfo) bool { return i.Paused && i.Open == nil })
		require.Equal(s.t, retryjob.DeadLettered, paused.Last.Status, "one that was canceled before it started is not the last")
		require.Zero(s.t, paused.Overdue)
		n, err := s.q.ReplayAll(ctx, retryjob.Filter{})
		require.NoError(s.t, err)
		require.GreaterOrEqual(s.t, n, 1)
		for _, i := range s.list(retryjob.DeadLettered) {
			s.until(i.JobID, "has ended", func(i retryjob.Info) bool { return i.Status.Final() })
		}
		require.Equal(s.t, paused.Number, s.schedule("", nil).Number)
		require.NoError(s.t, retryjob.ResumeSchedule(ctx, s.q, "beat"))
		s.schedule("has another occurrence", func(i retryjob.ScheduleInfo) bool { return i.Number > paused.Number })
		s.apart()
		for _, err := range []error{
			retryjob.PauseSchedule(ctx, s.q, "nope"), retryjob.ResumeSchedule(ctx, s.q, "nope"), retryjob.RunSchedule(ctx, s.q, "nope"),
		} {
			require.ErrorIs(s.t, err, retryjob.ErrUnknownSchedule)
		}
		all, err := s.q.Schedules(ctx)
		require.NoError(s.t, err)
		require.Len(s.t, all, 1)
	}},

	{claim: "a schedule runs now on request, in place of the occurrence that waits", play: func(s *stage) {
		var d diary
		s.recur(&d, retryjob.AtRate(1000*s.unit))
		s.schedule("has an occurrence", func(i retryjob.ScheduleInfo) bool { return i.Number == 1 })
		require.NoError(s.t, retryjob.RunSchedule(s.t.Context(), s.q, "beat"))
		i := s.schedule("has run", func(i retryjob.ScheduleInfo) bool { return i.Last.Status == retryjob.Succeeded && i.Number == 3 })
		require.Equal(s.t, "recurring:beat:work:2", i.Last.Job)
		require.Equal(s.t, retryjob.Canceled, s.get("recurring:beat:work:1").Status)
		require.Greater(s.t, time.Until(i.Open.Due), 900*s.unit)
		require.Len(s.t, d.all(), 2, "its first attempt fails")
	}},

	{claim: "the zero time ends a schedule, and a Next that panics or stands still does not end the process but is shown", play: func(s *stage) {
		var d diary
		next := func(row func(due, ended time.Time) time.Time) func(due, ended time.Time) time.Time {
			first := true
			return func(due, ended time.Time) time.Time {
				if first {
					first = false
					return ended.Add(time.Nanosecond)
				}
				return row(due, ended)
			}
		}
		job := retryjob.Job{Kind: kind, Policy: "p"}
		s.openWith(retryjob.Options{
			Policies: retryjob.FromMap(policies{"p": {}}), Handlers: map[string]retryjob.Handler{kind: d.script()}, Logger: slog.New(slog.DiscardHandler),
			Recurring: []retryjob.Recurring{
				{Name: "over", Job: job, Next: next(func(_, _ time.Time) time.Time { return time.Time{} })},
				{Name: "panics", Job: job, Next: next(func(_, _ time.Time) time.Time { panic("no calendar") })},
				{Name: "stands", Job: job, Next: next(func(due, _ time.Time) time.Time { return due })},
			},
		})
		for name, err := range map[string]string{"over": "", "panics": "Recurring.Next panicked: no calendar", "stands": "which is not after the due time"} {
			i := s.scheduleOf(name, "has stopped", func(i retryjob.ScheduleInfo) bool { return i.Over || i.Err != "" })
			require.Equal(s.t, []any{1, name == "over", err == ""}, []any{i.Number, i.Over, i.Failing.IsZero()})
			require.Contains(s.t, i.Err, err)
			require.Equal(s.t, retryjob.Succeeded, s.get("recurring:"+name+":work:1").Status)
		}
		require.Len(s.t, d.all(), 3)
	}},

	{claim: "a schedule whose policy is away says so, is overdue, and goes on when it is back", needs: virtualTime, play: func(s *stage) {
		var d diary
		var away atomic.Bool
		var log bytes.Buffer
		known := retryjob.FromMap(policies{"p": {}})
		s.openWith(retryjob.Options{
			Handlers: map[string]retryjob.Handler{kind: d.script()}, Logger: slog.New(slog.NewTextHandler(&log, nil)),
			Policies: func(j *retryjob.Job) (retry.Policy, error) {
				if away.Load() {
					return retry.Policy{}, errors.New("the catalog does not answer")
				}
				return known(j)
			},
			Recurring: []retryjob.Recurring{{Name: "beat", Job: retryjob.Job{Kind: kind, Policy: "p"}, Next: retryjob.AfterEnd(s.unit)}},
		})
		s.occurrences(1)
		s.schedule("has the next one", func(i retryjob.ScheduleInfo) bool { return i.Number == 2 })
		away.Store(true)
		require.NoError(s.t, s.q.Cancel(s.t.Context(), "recurring:beat:work:2"))
		failing := s.schedule("fails", func(i retryjob.ScheduleInfo) bool { return !i.Failing.IsZero() }).Failing
		<-time.After(time.Until(failing.Add(9*time.Minute + 30*time.Second)))
		i := s.schedule("", nil)
		require.Contains(s.t, i.Err, "the catalog does not answer")
		require.Equal(s.t, 9*time.Minute+30*time.Second, i.Overdue)
		require.Equal(s.t, 10, strings.Count(log.String(), "WARN"), "at first and each minute: %s", log.String())
		away.Store(false)
		s.occurrences(3)
		i = s.schedule("goes on", func(i retryjob.ScheduleInfo) bool { return i.Err == "" })
		require.True(s.t, i.Failing.IsZero())
	}},
}

// recur opens an engine whose job "beat" comes back. Its first attempt fails.
func (s *stage) recur(d *diary, next func(due, ended time.Time) time.Time) {
	s.recurring(d.script(errFlaky), next)
}

// recurring opens an engine whose job "beat" comes back. It is attempted twice.
func (s *stage) recurring(h retryjob.Handler, next func(due, ended time.Time) time.Time) {
	s.openWith(retryjob.Options{
		Policies:  retryjob.FromMap(policies{"p": fixed(2, short)}),
		Handlers:  map[string]retryjob.Handler{kind: h, "other": func(context.Context, retryjob.Job) error { return nil }},
		Recurring: []retryjob.Recurring{{Name: "beat", Job: retryjob.Job{Kind: kind, Policy: "p"}, Next: next}},
	})
}

// schedule polls the schedule "beat" until ok, if it is not nil, reports true.
func (s *stage) schedule(what string, ok func(retryjob.ScheduleInfo) bool) retryjob.ScheduleInfo {
	s.t.Helper()
	return s.scheduleOf("beat", what, ok)
}

func (s *stage) scheduleOf(name, what string, ok func(retryjob.ScheduleInfo) bool) (found retryjob.ScheduleInfo) {
	s.t.Helper()
	s.poll("schedule "+name+" "+what, func() bool {
		all, err := retryjob.ReadSchedules(s.t.Context(), s.q, time.Now())
		require.NoError(s.t, err)
		for _, i := range all {
			if i.Name == name {
				found = i
				return ok == nil || ok(i)
			}
		}
		return false
	})
	return found
}

// list returns the occurrences of "beat" with one of the statuses.
func (s *stage) list(statuses ...retryjob.Status) (found []retryjob.Info) {
	s.t.Helper()
	for i, err := range s.q.List(s.t.Context(), retryjob.Filter{Tags: []string{"recurring_beat"}, Statuses: statuses}) {
		require.NoError(s.t, err)
		found = append(found, i)
	}
	return found
}

// apart requires that no two attempts of "beat" overlap.
func (s *stage) apart() {
	s.t.Helper()
	var attempts []retryjob.Attempt
	for _, i := range s.list() {
		attempts = append(attempts, i.History...)
	}
	slices.SortFunc(attempts, func(a, b retryjob.Attempt) int { return a.Start.Compare(b.Start) })
	for n, a := range attempts[1:] {
		require.False(s.t, a.Start.Before(attempts[n].End.Add(-time.Millisecond)), "%s and %s overlap", attempts[n].ID, a.ID)
	}
}

// occurrences waits until at least n occurrences have ended, and returns them, the first one first. At no time are
// there two that have not.
func (s *stage) occurrences(n int) (made []retryjob.Info) {
	s.t.Helper()
	s.poll("the occurrences have ended", func() bool {
		made = nil
		open := 0
		for _, i := range s.list() {
			if i.Status.Final() {
				made = append(made, i)
			} else {
				open++
			}
		}
		require.LessOrEqual(s.t, open, 1)
		return len(made) >= n
	})
	slices.Reverse(made)
	for n, i := range made[1:] {
		for _, a := range i.History {
			if !a.Start.IsZero() { // of one that was lost it may be unknown
				require.False(s.t, a.Start.Before(made[n].Ended.Add(-time.Millisecond)), "two of one name overlap")
			}
		}
	}
	return made
}
