package retryriver_test

import (
	"cmp"
	"context"
	"encoding/json"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/riverqueue/river"
	"github.com/riverqueue/river/riverdriver"
	"github.com/riverqueue/river/rivertype"
	"github.com/stretchr/testify/require"

	"github.com/retrygo/retry/contrib/retryriver"
	"github.com/retrygo/retry/retryjob"
)

// A leader suspended between finding stuck jobs and rescuing them resumes after they have ended.
func TestARescuerThatIsTooLateRescuesNothing(t *testing.T) {
	o := newOffice(t, "quick", func(context.Context, *river.Job[mail]) error { return nil })
	o.open()
	ended, id := o.send(retryjob.Job{})
	before := o.ended(id)
	horizon := time.Now().Add(-time.Minute)
	later, _ := o.send(retryjob.Job{Due: time.Now().Add(time.Hour)})
	stuck, stuckID := o.send(retryjob.Job{Due: time.Now().Add(time.Hour)})
	fresh, _ := o.send(retryjob.Job{Due: time.Now().Add(time.Hour)})
	o.exec(`UPDATE river_job SET state = 'running', attempt = 1, attempted_at = datetime('now', '-1 hour') WHERE id = ?`, stuck)
	o.exec(`UPDATE river_job SET state = 'running', attempt = 1, attempted_at = datetime('now') WHERE id = ?`, fresh)
	rows := []int64{ended, later, stuck, fresh}
	p := &riverdriver.JobRescueManyParams{StuckHorizon: horizon}
	for _, row := range rows {
		p.ID = append(p.ID, row)
		p.Error = append(p.Error, []byte(`{"error":"stuck"}`))
		p.FinalizedAt = append(p.FinalizedAt, nil)
		p.ScheduledAt = append(p.ScheduledAt, time.Now().Add(time.Hour))
		p.State = append(p.State, string(rivertype.JobStateRetryable))
	}
	_, err := o.client.Driver().GetExecutor().JobRescueMany(t.Context(), p)
	require.NoError(t, err)
	var states []rivertype.JobState
	for _, row := range rows {
		job, err := o.client.JobGet(t.Context(), row)
		require.NoError(t, err)
		states = append(states, job.State)
	}
	require.Equal(t, []rivertype.JobState{
		rivertype.JobStateCompleted, rivertype.JobStateScheduled, rivertype.JobStateRetryable, rivertype.JobStateRunning,
	}, states)
	require.Equal(t, before, o.ended(id))
	i, err := o.Get(t.Context(), stuckID)
	require.NoError(t, err)
	require.Equal(t, retryjob.WaitingRetry, i.Status)
}

// lease makes this process have an attempt on a row as it is leased now, which has ended, and returns its mark.
func (o *office) lease(row int64, river int, line retryjob.Attempt) int64 {
	job, err := o.client.JobGet(o.t.Context(), row)
	require.NoError(o.t, err)
	return retryriver.NoteLease(o.adapter, row, job.AttemptedAt.UnixMicro(), river, line)
}

// A result is written if it says that it is of the current attempt, or does not say of which.
func TestAResultIsWrittenIfItIsOfTheCurrentAttempt(t *testing.T) {
	type result struct {
		river   int // of the mark; 0 means that there is none
		line    func(i *retryjob.Info) retryjob.Attempt
		rest    string // of the updates
		attempt int    // of the row
		state   string // of the row; empty means running
		ask     rivertype.JobState
	}
	const done, retry = rivertype.JobStateCompleted, rivertype.JobStateRetryable
	ended := time.Now().UTC().Truncate(time.Millisecond)
	ask := func(state rivertype.JobState, ids ...int64) *riverdriver.JobSetStateIfRunningManyParams {
		p := &riverdriver.JobSetStateIfRunningManyParams{ID: ids}
		for range ids {
			p.Attempt, p.ErrData, p.MetadataDoMerge = append(p.Attempt, nil), append(p.ErrData, nil), append(p.MetadataDoMerge, true)
			p.State = append(p.State, state)
			if state == retry {
				p.FinalizedAt, p.ScheduledAt = append(p.FinalizedAt, nil), append(p.ScheduledAt, &ended)
			} else {
				p.FinalizedAt, p.ScheduledAt = append(p.FinalizedAt, &ended), append(p.ScheduledAt, nil)
			}
		}
		return p
	}
	line := func(number int, end time.Time) func(*retryjob.Info) retryjob.Attempt {
		return func(i *retryjob.Info) retryjob.Attempt {
			return retryjob.Attempt{ID: i.AttemptID(number), Number: number, Start: ended.Add(-time.Second), End: end, Status: retryjob.WaitingRetry, Err: "no"}
		}
	}
	for _, row := range []struct {
		name    string
		results []result
		written bool
		late    int    // lines
		output  string // in the metadata
	}{
		{"the current one", []result{{1, line(1, time.Time{}), `"output":"x"`, 1, "", done}}, true, 0, `"x"`},
		{"of no attempt in particular", []result{{0, nil, `"output":"x"`, 1, "", done}}, true, 0, `"x"`},
		{"an earlier one", []result{{1, line(1, ended), `"output":"x"`, 2, "", done}}, false, 1, ``},
		{"an earlier one, twice", []result{{1, line(1, ended), ``, 2, "", done}, {1, line(1, ended), ``, 2, "", done}}, false, 1, ``},
		{"the current one, which has been given up as lost", []result{{1, line(1, ended), ``, 1, "retryable", done}}, false, 1, ``},
		{"two earlier ones", []result{{1, line(1, ended), ``, 3, "", done}, {2, line(2, ended), ``, 3, "", done}}, false, 2, ``},
		{"an earlier one that was not made", []result{{1, line(1, time.Time{}), ``, 2, "", done}}, false, 0, ``},
		{"one of an earlier life of the job", []result{{1, func(i *retryjob.Info) retryjob.Attempt {
			before := *i
			before.FirstDue = before.FirstDue.Add(-time.Hour)
			return line(1, ended)(&before)
		}, ``, 2, "", done}}, false, 0, ``},
		{"the same number in an earlier life", []result{{1, func(i *retryjob.Info) retryjob.Attempt {
			before := *i
			before.FirstDue = before.FirstDue.Add(-time.Hour)
			return line(1, ended)(&before)
		}, ``, 1, "", done}}, false, 0, ``},
		{"a retry, of the current one", []result{{1, line(1, ended), `"output":"x"`, 1, "", retry}}, false, 0, `"x"`},
		{"a retry, of one that has been given up as lost", []result{{1, line(1, ended), ``, 1, "retryable", retry}}, false, 1, ``},
		{"an end, of one that has been canceled", []result{{1, line(1, ended), ``, 1, "cancelled", rivertype.JobStateCancelled}}, false, 1, ``},
	} {
		t.Run(row.name, func(t *testing.T) {
			o := newOffice(t, "quick", nil)
			_, err := o.Enqueue(t.Context(), retryjob.Job{ID: "a", Kind: "mail", Policy: "quick"})
			require.NoError(t, err)
			for _, r := range row.results {
				o.exec(`UPDATE river_job SET state = ?1, attempt = ?2, attempted_at = datetime('now', 'subsec'), scheduled_at = datetime('now', '-1 hour'),
					finalized_at = CASE ?1 WHEN 'cancelled' THEN datetime('now', '-1 hour') END`, cmp.Or(r.state, "running"), r.attempt)
				i, err := o.Get(t.Context(), "a")
				require.NoError(t, err)
				updates := map[string]any{}
				if r.rest != "" {
					require.NoError(t, json.Unmarshal([]byte("{"+r.rest+"}"), &updates))
				}
				if r.river > 0 {
					attempt := r.line(&i)
					mark := o.lease(1, r.river, attempt)
					if attempt.ID != i.AttemptID(attempt.Number) { // another life had another lease
						mark = retryriver.NoteLease(o.adapter, 1, mark-1, r.river, attempt)
					}
					updates["retryjob_attempt"] = mark
				}
				text, err := json.Marshal(updates)
				require.NoError(t, err)
				p := ask(r.ask, 1)
				p.MetadataUpdates = [][]byte{text}
				_, err = o.client.Driver().GetExecutor().JobSetStateIfRunningMany(t.Context(), p)
				require.NoError(t, err)
				require.Equal(t, text, p.MetadataUpdates[0], "the caller's is not changed")
			}
			job, err := o.client.JobGet(t.Context(), 1)
			require.NoError(t, err)
			require.Equal(t, row.written, job.State == rivertype.JobStateCompleted)
			var metadata map[string]json.RawMessage
			require.NoError(t, json.Unmarshal(job.Metadata, &metadata))
			require.NotContains(t, metadata, "retryjob_attempt")
			require.Equal(t, row.output, string(metadata["output"]))
			var late []retryjob.Attempt
			if text, has := metadata["retryjob_late"]; has {
				require.NoError(t, json.Unmarshal(text, &late))
			}
			require.Len(t, late, row.late)
			for _, a := range late {
				require.True(t, a.Late)
				require.Equal(t, "no", a.Err)
			}
		})
	}
	t.Run("a result whose answer was lost is written again", func(t *testing.T) {
		o := newOffice(t, "quick", nil)
		for range 2 {
			o.send(retryjob.Job{})
		}
		o.exec("UPDATE river_job SET state = 'running', attempt = id, attempted_at = datetime('now', 'subsec')")
		attempt := func(row int64) retryjob.Attempt {
			job, err := o.client.JobGet(t.Context(), row)
			require.NoError(t, err)
			return line(1, ended)(retryriver.InfoOf(o.adapter, job))
		}
		first, second := o.lease(1, 1, attempt(1)), o.lease(2, 1, attempt(2))
		p := ask(retry, 1)
		p.MetadataUpdates = [][]byte{fmt.Appendf(nil, `{"retryjob_attempt":%d}`, first)}
		exec := o.client.Driver().GetExecutor()
		_, err := exec.JobSetStateIfRunningMany(t.Context(), p)
		require.NoError(t, err)
		o.lease(1, 1, attempt(1)) // as if its end were not known
		p = ask(retry, 1, 2)
		p.MetadataUpdates = [][]byte{fmt.Appendf(nil, `{"retryjob_attempt":%d}`, first), fmt.Appendf(nil, `{"retryjob_attempt":%d}`, second)}
		_, err = exec.JobSetStateIfRunningMany(t.Context(), p)
		require.NoError(t, err)
		for row, late := range map[int64]bool{1: false, 2: true} {
			job, err := o.client.JobGet(t.Context(), row)
			require.NoError(t, err)
			require.Equal(t, late, strings.Contains(string(job.Metadata), "retryjob_late"), row)
		}
	})
	t.Run("the result of a job that is gone is dropped", func(t *testing.T) {
		o := newOffice(t, "quick", nil)
		_, err := o.client.Driver().GetExecutor().JobSetStateIfRunningMany(t.Context(), &riverdriver.JobSetStateIfRunningManyParams{
			ID: []int64{7}, Attempt: []*int{nil}, ErrData: [][]byte{nil}, FinalizedAt: []*time.Time{&ended}, MetadataDoMerge: []bool{true},
			MetadataUpdates: [][]byte{fmt.Appendf(nil, `{"retryjob_attempt":%d}`, retryriver.NoteLease(o.adapter, 7, 1, 1, retryjob.Attempt{ID: "gone", Number: 1, End: ended}))},
			ScheduledAt:     []*time.Time{nil}, State: []rivertype.JobState{rivertype.JobStateCompleted},
		})
		require.NoError(t, err)
	})
	t.Run("a mark that cannot be read is an error", func(t *testing.T) {
		o := newOffice(t, "quick", nil)
		row, id := o.send(retryjob.Job{})
		o.exec("UPDATE river_job SET state = 'running', attempt = 1, attempted_at = datetime('now', 'subsec')")
		_, err := o.client.Driver().GetExecutor().JobSetStateIfRunningMany(t.Context(), &riverdriver.JobSetStateIfRunningManyParams{
			ID: []int64{row}, Attempt: []*int{nil}, ErrData: [][]byte{nil}, FinalizedAt: []*time.Time{&ended}, MetadataDoMerge: []bool{true},
			MetadataUpdates: [][]byte{[]byte(`{"retryjob_attempt":7}`)}, ScheduledAt: []*time.Time{nil}, State: []rivertype.JobState{rivertype.JobStateCompleted},
		})
		require.ErrorContains(t, err, "no attempt of this process has the mark 7")
		i, err := o.Get(t.Context(), id)
		require.NoError(t, err)
		require.Equal(t, retryjob.Leased, i.Status)
	})
}
