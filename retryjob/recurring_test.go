package retryjob_test

import (
	"bytes"
	"context"
	"fmt"
	"log/slog"
	"runtime"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/retrygo/retry"
	"github.com/retrygo/retry/retryjob"
)

func TestWhenAnOccurrenceIsDue(t *testing.T) {
	at := func(s int) time.Time { return epoch.Add(time.Duration(s) * sec) }
	for _, row := range []struct {
		name             string
		next             func(due, ended time.Time) time.Time
		due, ended, want int
	}{
		{"after the end", retryjob.AfterEnd(60 * sec), 0, 7, 67},
		{"at a rate", retryjob.AtRate(60 * sec), 0, 7, 60},
		{"at a rate, the first one", retryjob.AtRate(60 * sec), 0, 0, 60},
		{"at a rate, for exactly that long", retryjob.AtRate(60 * sec), 0, 60, 60},
		{"at a rate, after three were missed", retryjob.AtRate(60 * sec), 0, 181, 240},
	} {
		t.Run(row.name, func(t *testing.T) { require.Equal(t, at(row.want), row.next(at(row.due), at(row.ended))) })
	}
	for _, none := range []time.Duration{0, -60 * sec} {
		require.Zero(t, retryjob.AtRate(none)(at(0), at(7)), "there is no next one")
		require.Zero(t, retryjob.AfterEnd(none)(at(0), at(7)), "there is no next one")
	}
}

func TestOptionsRefuseWhatCannotComeBack(t *testing.T) {
	bad := retryjob.Options{
		Policies: retryjob.FromMap(map[string]retry.Policy{"p": {}}), Handlers: map[string]retryjob.Handler{"work": succeed},
		Recurring: []retryjob.Recurring{
			{Name: "beat", Job: retryjob.Job{Kind: "work", Policy: "p"}, Next: retryjob.AfterEnd(sec)},
			{Name: "beat", Job: retryjob.Job{Kind: "work", Policy: "p", ID: "own"}, Next: retryjob.AfterEnd(sec)},
			{Name: "a-b", Job: retryjob.Job{Kind: "other", Policy: "p", Due: epoch}},
			{Name: "more", Job: retryjob.Job{Kind: "work", Policy: "q"}, Next: retryjob.AfterEnd(sec)},
		},
	}
	require.EqualError(t, bad.Validate(), `retryjob: Options.Recurring[1].Name "beat" is there twice; Options.Recurring[1].Job.ID "own" must not be set; `+
		`Options.Recurring[2].Name "a-b" is not 1 to 64 letters, digits and underscores; Options.Recurring[2].Next <nil> must be set; `+
		`Options.Recurring[2].Job.Due 2026-11-02 09:00:00 +0000 UTC must not be set; Options.Recurring[2].Job.Kind "other" has no handler; `+
		`Options.Recurring[3]: retryjob: Job.Policy "q" is not the name of a policy`)
}

// TestARecurringJobIsCanceledOrFailsAndComesBack: an Admin ends an occurrence, not the schedule.
func TestARecurringJobIsCanceledOrFailsAndComesBack(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		e := open(t, fixed(1, sec), fail, func(o *retryjob.Options) {
			o.Recurring = []retryjob.Recurring{{Name: "x", Job: retryjob.Job{Kind: "work", Policy: "p"}, Next: retryjob.AtRate(time.Hour)}}
		})
		start := time.Now()
		synctest.Wait()
		require.NoError(t, e.Cancel(t.Context(), "recurring:x:work:1"))
		synctest.Wait()
		var got []string
		list := func() {
			got = nil
			for i, err := range e.List(t.Context(), retryjob.Filter{Tags: []string{"recurring_x"}}) {
				require.NoError(t, err)
				got = append(got, fmt.Sprint(i.Status, " ", i.FirstDue.Sub(start)))
			}
		}
		list()
		require.Equal(t, []string{"pending 1h0m0s", "canceled 1h0m0s"}, got)
		<-time.After(2*time.Hour + time.Second)
		synctest.Wait()
		list()
		require.Equal(t, []string{"pending 3h0m0s", "dead_letter 2h0m0s", "dead_letter 1h0m0s", "canceled 1h0m0s"}, got)
		left := shutdown(t, e)
		require.Len(t, left, 1)
		<-time.After(2 * time.Hour)
	})
}

// TestAScheduleThatNeverBegan: Next has no first time, or does not return.
func TestAScheduleThatNeverBegan(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var log bytes.Buffer
		e := open(t, fixed(1, sec), succeed, func(o *retryjob.Options) {
			o.Logger = slog.New(slog.NewTextHandler(&log, nil))
			for name, next := range map[string]func(due, ended time.Time) time.Time{
				"over":  func(_, _ time.Time) time.Time { return time.Time{} },
				"exits": func(_, _ time.Time) time.Time { runtime.Goexit(); return time.Time{} },
			} {
				o.Recurring = append(o.Recurring, retryjob.Recurring{Name: name, Job: retryjob.Job{Kind: "work", Policy: "p"}, Next: next})
			}
		})
		<-time.After(sec / 2)
		schedules, err := retryjob.ReadSchedules(t.Context(), e, time.Now())
		require.NoError(t, err)
		require.Len(t, schedules, 2)
		exits, over := schedules[0], schedules[1]
		require.Equal(t, []any{"exits", "retryjob: Recurring.Next ended its goroutine", false}, []any{exits.Name, exits.Err, exits.Over})
		require.Equal(t, []any{"over", "", true}, []any{over.Name, over.Err, over.Over})
		require.Equal(t, 1, strings.Count(log.String(), "Recurring.Next ended its goroutine"), log.String())
		require.EqualError(t, retryjob.RunSchedule(t.Context(), e, "over"), "retryjob: schedule over is over")
		require.NoError(t, retryjob.PauseSchedule(t.Context(), e, "over"))
		require.NoError(t, retryjob.ResumeSchedule(t.Context(), e, "over"))
		require.ErrorIs(t, retryjob.RunSchedule(t.Context(), e, "nope"), retryjob.ErrUnknownSchedule)
	})
}

func ExampleRecurring() {
	done := make(chan struct{}, 2)
	e, err := retryjob.New(retryjob.Options{
		Policies: retryjob.FromMap(map[string]retry.Policy{"inline": retry.Inline()}),
		Handlers: map[string]retryjob.Handler{"sync": func(ctx context.Context, job retryjob.Job) error {
			done <- struct{}{}
			return nil
		}},
		Recurring: []retryjob.Recurring{
			{Name: "often", Job: retryjob.Job{Kind: "sync", Policy: "inline"}, Next: retryjob.AfterEnd(time.Millisecond)},
			{Name: "weekly", Job: retryjob.Job{Kind: "sync", Policy: "inline"}, Next: func(_, ended time.Time) time.Time {
				day := ended.AddDate(0, 0, (int(time.Monday-ended.Weekday())+6)%7+1) // or a cron library: schedule.Next(ended)
				return time.Date(day.Year(), day.Month(), day.Day(), 9, 0, 0, 0, ended.Location())
			}},
		},
	})
	if err != nil {
		fmt.Println(err)
		return
	}
	<-done
	<-done
	fmt.Println("made twice")
	_, _ = e.Shutdown(context.Background())
	// Output: made twice
}
