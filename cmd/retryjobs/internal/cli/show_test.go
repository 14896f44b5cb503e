package cli_test

import (
	"encoding/json"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/retrygo/retry"
	"github.com/retrygo/retry/cmd/retryjobs/internal/cli"
	"github.com/retrygo/retry/retryjob"
)

// head returns the result of show before the payload.
func head(r ran) ran {
	r.Out, _, _ = strings.Cut(r.Out, "\npayload:\n")
	return r
}

func TestShowPrintsAJobAndItsTimeline(t *testing.T) {
	want := `
job          waiting-1
status       waiting_retry
kind         webhook
policy       standard
recurring    report
correlation  trace-7
tags         recurring_report
attempts     3
replays      0
first due    2026-11-21T09:00:00Z (3h ago)
next due     2026-11-21T12:10:00Z (in 10m)

ATTEMPT  START                 DURATION      STATUS         WAIT     CODE          ERROR
1        2026-11-21T09:00:00Z  lost, 1h0m0s  waiting_retry  -        -             retryjob: the worker was lost
2        2026-11-21T10:00:00Z  1.5s          waiting_retry  29m59s   ECONNREFUSED  dial tcp: \u001b[31mrefused\u009b2J by a firewall that has a very long story to tell about it
3        2026-11-21T10:30:00Z  1.25ms        waiting_retry  1h40m0s  429           429 Too Many Requests

payload:
{
  "url": "http://a/?b&c",
  "n": 1
}
`
	all := jobs()
	all[2].Tags = []string{"recurring_report"}
	require.Equal(t, ran{Out: want[1:]}, run(t, newFake(all...), "show", "waiting-1"))
}

func TestShowPrintsAJobThatHasEnded(t *testing.T) {
	want := `
job        dead-1
status     dead_letter
kind       webhook
policy     standard
reason     attempts_exhausted
attempts   1
replays    1
first due  2026-11-20T09:00:00Z (27h ago)
ended      2026-11-20T10:00:00Z (26h ago)

ATTEMPT  START                 DURATION  STATUS       WAIT  CODE  ERROR
1        2026-11-20T09:00:00Z  1h0m0s    dead_letter  -     -     no such account
`
	require.Equal(t, ran{Out: want[1:]}, head(run(t, newFake(jobs()...), "show", "dead-1")))
}

func TestShowPrintsAJobBeforeItsFirstAttempt(t *testing.T) {
	job := jobs()[0]
	job.Payload = nil
	want := `
job        pending-1
status     pending
kind       mail
policy     standard
attempts   0
replays    0
first due  2026-11-21T13:00:00Z (in 60m)
next due   2026-11-21T13:00:00Z (in 60m)

payload:
null
`
	require.Equal(t, ran{Out: want[1:]}, run(t, newFake(job), "show", "pending-1"))
}

func TestShowPrintsOneObject(t *testing.T) {
	want := `{"v":1,"job":"dead-1","kind":"webhook","policy":"standard","first_due":"2026-11-20T09:00:00Z","replays":1,"status":"dead_letter",` +
		`"reason":"attempts_exhausted","ended":"2026-11-20T10:00:00Z","attempts":1,"history":[{"id":"dead-1.1.1","number":1,` +
		`"start":"2026-11-20T09:00:00Z","end":"2026-11-20T10:00:00Z","status":"dead_letter","reason":"attempts_exhausted",` +
		`"err":"no such account"}],"payload":{"url":"http://a/?b&c","n":1}}` + "\n"
	require.Equal(t, ran{Out: want}, run(t, newFake(jobs()...), "--json", "show", "dead-1"))
}

func TestAPayloadDoesATerminalNoHarm(t *testing.T) {
	job := jobs()[0]
	job.Payload = json.RawMessage("{\"a\":\"\u009b2J\u202e\u007f\xff\U000E0041 \"}")
	got := run(t, newFake(job), "show", "pending-1")
	require.Contains(t, got.Out, "payload:\n{\n  \"a\": \"\\u009b2J\\u202e\\u007f\uFFFD\\udb40\\udc41 \"\n}\n")

	job.Payload = json.RawMessage("no \x1b JSON")
	got = run(t, newFake(job), "show", "pending-1")
	require.Contains(t, got.Out, "payload:\nno \\u001b JSON\n")
	got = run(t, newFake(job), "show", "pending-1", "--json")
	require.Equal(t, cli.Failed, got.Exit)
	require.Contains(t, got.Err, "invalid character")
}

func TestAPayloadIsShownWithoutSecrets(t *testing.T) {
	job := jobs()[0]
	job.Payload = json.RawMessage(`{"to":"a","login":{"token":{"value":"hush"}}}`)
	got := run(t, newFake(job), "show", "pending-1")
	require.Contains(t, got.Out, `"token": "(hidden)"`)
	require.NotContains(t, got.Out, "hush")
	require.Contains(t, run(t, newFake(job), "show", "pending-1", "--json").Out, "hush", "JSON is for programs")
}

// TestTimeline shows the rows of different records: the part between the empty line and the total.
func TestTimeline(t *testing.T) {
	run1 := retryjob.Attempt{Number: 1, Start: at(time.Hour), End: at(time.Hour - time.Second), Due: at(50 * time.Minute), Status: retryjob.WaitingRetry, Err: "no"}
	lost := func(attempt int, start time.Time) retryjob.Attempt {
		return retryjob.Attempt{Number: attempt, Start: start, Status: retryjob.WaitingRetry, Err: "lost"}
	}
	many := []retryjob.Attempt{run1}
	for n := 8; n <= 70; n++ {
		many = append(many, retryjob.Attempt{Number: n, Start: at(time.Minute), End: at(time.Minute), Due: at(time.Minute), Status: retryjob.WaitingRetry})
	}
	for _, row := range []struct {
		name     string
		status   retryjob.Status
		attempts int
		history  []retryjob.Attempt
		rows     string // all of the table, or its beginning if the record is long
	}{
		{"an attempt that has just begun and is not in the record is under way", retryjob.Leased, 2, []retryjob.Attempt{run1}, `
ATTEMPT  START                 DURATION  STATUS         WAIT   CODE  ERROR
1        2026-11-21T11:00:00Z  1s        waiting_retry  9m59s  -     no
2        -                     -         leased         -      -     -
`},
		{"attempts before it that nobody recorded are lost", retryjob.Leased, 4, []retryjob.Attempt{run1}, `
ATTEMPT  START                 DURATION  STATUS         WAIT   CODE  ERROR
1        2026-11-21T11:00:00Z  1s        waiting_retry  9m59s  -     no
2-3      -                     -         -              -      -     not in the record: the worker was lost
4        -                     -         leased         -      -     -
`},
		{"the first attempt is lost and nothing is known of it", retryjob.DeadLettered, 1, nil, `
ATTEMPT  START  DURATION  STATUS  WAIT  CODE  ERROR
1        -      -         -       -     -     not in the record: the worker was lost
`},
		{"the start of a lost attempt is known, and of the next one is not", retryjob.WaitingRetry, 3,
			[]retryjob.Attempt{lost(1, at(time.Hour)), lost(2, time.Time{}), lost(3, at(time.Minute))}, `
ATTEMPT  START                 DURATION  STATUS         WAIT  CODE  ERROR
1        2026-11-21T11:00:00Z  lost      waiting_retry  -     -     lost
2        -                     lost      waiting_retry  -     -     lost
3        2026-11-21T11:59:00Z  lost      waiting_retry  -     -     lost
`},
		{"a clock that went back makes nothing negative", retryjob.WaitingRetry, 1,
			[]retryjob.Attempt{{Number: 1, Start: at(0), End: at(time.Minute), Due: at(time.Hour), Status: retryjob.WaitingRetry}}, `
ATTEMPT  START                 DURATION  STATUS         WAIT  CODE  ERROR
1        2026-11-21T12:00:00Z  0s        waiting_retry  0s    -     -
`},
		{"a long record keeps its first and its newest attempts", retryjob.WaitingRetry, 70, many, `
ATTEMPT  START                 DURATION  STATUS         WAIT   CODE  ERROR
1        2026-11-21T11:00:00Z  1s        waiting_retry  9m59s  -     no
2-7      -                     -         -              -      -     no longer in the record
8        2026-11-21T11:59:00Z  0s        waiting_retry  0s     -     -
`},
	} {
		t.Run(row.name, func(t *testing.T) {
			job := retryjob.Info{Record: retryjob.Record{
				Version: 1, JobID: "a", Policy: "p", FirstDue: at(time.Hour), Status: row.status, Attempts: row.attempts, History: row.history,
			}}
			if row.status.Final() {
				job.Ended, job.Reason = now, retry.AttemptsExhausted
			}
			got := head(run(t, newFake(job), "show", "a"))
			require.Equal(t, cli.Done, got.Exit, got.Err)
			require.Contains(t, got.Out, "\n"+row.rows)
		})
	}
}

func TestAnAttemptThatEndedLateIsMarked(t *testing.T) {
	job := jobs()[2]
	job.JobID = "late-1"
	job.History = append([]retryjob.Attempt(nil), job.History...)
	first := &job.History[0]
	first.End, first.Late, first.Err, first.Due = first.Start.Add(2*time.Hour), true, "", at(2*time.Hour)
	got := run(t, newFake(job), "show", "late-1")
	require.Contains(t, got.Out, "\n1        2026-11-21T09:00:00Z  2h0m0s, late  waiting_retry  -  ")
}

func TestShowPrintsWhyAJobFailedBeforeItWasReplayed(t *testing.T) {
	f := newFake(jobs()...)
	require.NoError(t, f.jobs["dead-1"].Replay(now))
	got := run(t, f, "show", "dead-1")
	require.Contains(t, got.Out, "BEFORE A REPLAY")
	require.Regexp(t, `dead_letter +attempts_exhausted +1 +- +no such account`, got.Out)
}
