package cli_test

import (
	"encoding/json"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/retrygo/retry/cmd/retryjobs/internal/cli"
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

// Which lines there are is tested where they are made, by jobsui.Attempts.
func TestShowPrintsLinesOfWhatTheRecordDoesNotHave(t *testing.T) {
	job := jobs()[1]
	job.Attempts, job.History = 4, job.History[:1]
	want := `
ATTEMPT  START                 DURATION  STATUS         WAIT    CODE  ERROR
1        2026-11-21T11:00:00Z  250ms     waiting_retry  59.75s  503   503 Service Unavailable
2-3      -                     -         -              -       -     not in the record: the worker was lost
4        -                     -         leased         -       -     -
`
	require.Contains(t, run(t, newFake(job), "show", "leased-1").Out, "\n"+want)
}

func TestShowPrintsWhyAJobFailedBeforeItWasReplayed(t *testing.T) {
	f := newFake(jobs()...)
	require.NoError(t, f.jobs["dead-1"].Replay(now))
	got := run(t, f, "show", "dead-1")
	require.Contains(t, got.Out, "BEFORE A REPLAY")
	require.Regexp(t, `dead_letter +attempts_exhausted +1 +- +no such account`, got.Out)
}
