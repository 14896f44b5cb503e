//go:build unix

package killtest_test

import (
	"context"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/retrygo/retry/retryjob"
)

// TestTheAuditSeesWhatIsWrong checks the audit of the kill test: each row corrupts valid data in one way.
func TestTheAuditSeesWhatIsWrong(t *testing.T) {
	t.Parallel()
	jobs := map[string]string{"job": "fails_once"}
	for _, row := range []struct {
		name  string
		spoil func(info *retryjob.Info, effects *[]effect)
		fault string
	}{
		{"a status that is not final", func(info *retryjob.Info, _ *[]effect) { info.Status = retryjob.Leased }, "not final"},
		{"another ending", func(info *retryjob.Info, _ *[]effect) { info.Status = retryjob.Canceled }, "it ended as"},
		{"a record that does not check", func(info *retryjob.Info, _ *[]effect) { info.Ended = time.Time{} }, "does not go with"},
		{"a last attempt of another status", func(info *retryjob.Info, _ *[]effect) { info.History[1].Status = retryjob.DeadLettered }, "ended otherwise"},
		{"a first attempt that was the end", func(info *retryjob.Info, _ *[]effect) { info.History[0].Status = retryjob.Succeeded }, "was not the last"},
		{"a gap", func(info *retryjob.Info, _ *[]effect) { info.History = info.History[1:] }, "entry 1 is attempt 2"},
		{"an attempt of another job", func(info *retryjob.Info, _ *[]effect) { info.History[0].ID = "else.0.1" }, "not its own"},
		{"more attempts than entries", func(info *retryjob.Info, _ *[]effect) { info.Attempts = 3 }, "not the last"},
		{"more attempts than allowed", func(info *retryjob.Info, _ *[]effect) { info.Attempts = 9 }, "more attempts"},
		{"a start too early", func(info *retryjob.Info, _ *[]effect) { info.History[1].Start = info.History[0].End }, "before it was due"},
		{"an end before the start", func(info *retryjob.Info, _ *[]effect) { info.History[1].End = info.History[0].Start }, "ended before it started"},
		{"an effect of nobody", func(_ *retryjob.Info, e *[]effect) { *e = append(*e, effect{ID: "else.0.1"}) }, "no record tells"},
		{"no effect", func(_ *retryjob.Info, e *[]effect) { *e = (*e)[1:] }, "attempt 1 left []"},
		{"an attempt made twice", func(_ *retryjob.Info, e *[]effect) { *e = append(*e, (*e)[1]) }, "attempt 2 left"},
		{"a late attempt without an end", func(info *retryjob.Info, _ *[]effect) { info.History[0].Late, info.History[0].End = true, time.Time{} }, "was lost, and has an end"},
		{"a late attempt of another effect", func(info *retryjob.Info, e *[]effect) { info.History[0].Late, (*e)[0].Did = true, done }, "attempt 1 left"},
		{"another effect", func(_ *retryjob.Info, e *[]effect) { (*e)[0].Did = done }, "attempt 1 left"},
	} {
		t.Run(row.name, func(t *testing.T) {
			info, effects := rightJob(t)
			require.Empty(t, newAudit([]retryjob.Info{info}, effects).faults(jobs))
			row.spoil(&info, &effects)
			faults := newAudit([]retryjob.Info{info}, effects).faults(jobs)
			require.NotEmpty(t, faults)
			require.Contains(t, faults[0], row.fault)
		})
	}
	info, effects := rightJob(t)
	first := &info.History[0]
	first.Late, first.Start, first.End = true, first.Start.Add(time.Hour), first.End.Add(time.Hour)
	require.Empty(t, newAudit([]retryjob.Info{info}, effects).faults(jobs), "it was suspended before it started")

	info, _ = rightJob(t)
	require.Len(t, newAudit([]retryjob.Info{info, info}, nil).missing(jobs), 1)
	require.Len(t, newAudit(nil, nil).missing(jobs), 1)
	require.Len(t, newAudit([]retryjob.Info{info}, nil).missing(nil), 1)
	require.Empty(t, newAudit([]retryjob.Info{info}, nil).missing(jobs))
}

// TestTwoAttemptsLostInARowAreHeldToTheirStarts: the third attempt may have recorded both losses, with the due times. In each
// row the second attempt starts before the due time of the first.
func TestTwoAttemptsLostInARowAreHeldToTheirStarts(t *testing.T) {
	t.Parallel()
	for _, row := range []struct {
		name  string
		lose  func(first, second *retryjob.Attempt)
		right bool
	}{
		{"both returned late", func(first, second *retryjob.Attempt) { first.Late, second.Late = true, true }, true},
		{"only the second returned", func(first, second *retryjob.Attempt) {
			first.Err, first.End, second.Late = retryjob.ErrLost.Error(), time.Time{}, true
		}, true},
		{"only the second returned, and it started before the first", func(first, second *retryjob.Attempt) {
			first.Err, first.End, second.Late = retryjob.ErrLost.Error(), time.Time{}, true
			second.Start = first.Start.Add(-time.Second)
		}, false},
		{"the second was not lost", func(first, _ *retryjob.Attempt) { first.Late = true }, false},
	} {
		t.Run(row.name, func(t *testing.T) {
			info, _ := rightJob(t)
			first, third := info.History[0], info.History[1]
			second := first
			second.ID, second.Number, second.Start = info.AttemptID(2), 2, first.End
			third.ID, third.Number = info.AttemptID(3), 3
			row.lose(&first, &second)
			info.History = []retryjob.Attempt{first, second, third}
			require.Equal(t, row.right, len(newAudit(nil, nil).runFaults(&info)) == 0)
		})
	}
}

// rightJob returns a job that failed once, and the effects of its attempts.
func rightJob(t *testing.T) (retryjob.Info, []effect) {
	now := time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC)
	stepper := retryjob.Stepper{Policies: policies(), Now: func() time.Time { now = now.Add(time.Second); return now }}
	job := retryjob.Job{ID: "job", Kind: "fails_once", Policy: "fails_once"}
	record := retryjob.NewRecord(&job, now)
	for attempt, result := range []error{errOf[failed], nil} {
		_, err := stepper.Step(t.Context(), &record, attempt+1, func(context.Context) error { return result })
		require.NoError(t, err)
	}
	return retryjob.Info{Record: record}, []effect{
		{Job: "job", ID: record.AttemptID(1), Number: 1, Did: failed},
		{Job: "job", ID: record.AttemptID(2), Number: 2, Did: done},
	}
}
