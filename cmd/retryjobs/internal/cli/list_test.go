package cli_test

import (
	"bufio"
	"encoding/json"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/retrygo/retry/cmd/retryjobs/internal/cli"
	"github.com/retrygo/retry/retryjob"
)

func TestListPrintsATable(t *testing.T) {
	want := `
ID           KIND     POLICY    STATUS             REASON              ATTEMPTS  TAGS  DUE OR ENDED          LAST ERROR
pending-1    mail     standard  pending            -                   0         -     2026-11-21T13:00:00Z  -
leased-1     webhook  standard  leased             -                   2         -     -                     503 Service Unavailable
succeeded-1  webhook  patient   succeeded          -                   2         -     2026-11-21T11:30:00Z  -
waiting-1    webhook  standard  waiting_retry      -                   3         -     2026-11-21T12:10:00Z  429 Too Many Requests
expired-1    webhook  standard  expired            ttl_elapsed         0         -     2026-11-21T10:00:00Z  -
dead-2       webhook  patient   dead_letter        terminal_error      1         -     2026-11-20T11:00:00Z  -
dead-1       webhook  standard  dead_letter        attempts_exhausted  1         -     2026-11-20T10:00:00Z  no such account
failed-1     webhook  standard  failed_no_retries  retries_disabled    1         -     2026-11-19T11:00:00Z  -
canceled-1   webhook  standard  canceled           caller_canceled     0         -     2026-11-18T12:00:00Z  -
`
	f := newFake(jobs()...)
	require.Equal(t, ran{Out: want[1:]}, run(t, f, "list"))
	require.Equal(t, 1, f.closed)
}

func TestListShortensAnErrorAndDisarmsIt(t *testing.T) {
	job := jobs()[2]
	job.History = job.History[:2]
	want := `
ID         KIND     POLICY    STATUS         REASON  ATTEMPTS  TAGS  DUE OR ENDED          LAST ERROR
waiting-1  webhook  standard  waiting_retry  -       3         -     2026-11-21T12:10:00Z  dial tcp: \u001b[31mrefused\u009b2J by a firewall that has…
`
	require.Equal(t, ran{Out: want[1:]}, run(t, newFake(job), "list"))
}

func TestListPrintsLinesOfJSON(t *testing.T) {
	job := jobs()[2]
	job.History = job.History[1:2]
	want := `
{"v":1,"job":"waiting-1","kind":"webhook","policy":"standard","correlation":"trace-7","first_due":"2026-11-21T09:00:00Z","status":"waiting_retry","due":"2026-11-21T12:10:00Z","attempts":3,"history":[{"id":"waiting-1.0.2","number":2,"start":"2026-11-21T10:00:00Z","end":"2026-11-21T10:00:01.5Z","due":"2026-11-21T10:30:00Z","status":"waiting_retry","err":"dial tcp:\n\u001b[31mrefused\u009b2J\tby a firewall that has a very long story to tell about it","code":"ECONNREFUSED"}],"payload":{"url":"http://a/?b&c","n":1}}
`
	require.Equal(t, ran{Out: want[1:]}, run(t, newFake(job), "list", "--json"))
}

func TestListedJSONIsTheJobs(t *testing.T) {
	f := newFake(jobs()...)
	got := run(t, f, "list", "--json")
	lines := bufio.NewScanner(strings.NewReader(got.Out))
	n := 0
	for ; lines.Scan(); n++ {
		var info retryjob.Info
		require.NoError(t, json.Unmarshal(lines.Bytes(), &info))
		require.Equal(t, *f.jobs[info.JobID], info)
	}
	require.Equal(t, len(f.jobs), n)
}

func TestListSelects(t *testing.T) {
	for _, row := range []struct {
		name string
		args []string
		want []string
	}{
		{"a status", []string{"--status", "dead_letter"}, []string{"dead-2", "dead-1"}},
		{"any of two statuses", []string{"--status", "expired,canceled"}, []string{"expired-1", "canceled-1"}},
		{"any of two flags", []string{"--status", "expired", "--status", "canceled"}, []string{"expired-1", "canceled-1"}},
		{"a reason", []string{"--reason", "terminal_error"}, []string{"dead-2"}},
		{"a policy", []string{"--policy", "patient"}, []string{"succeeded-1", "dead-2"}},
		{"a kind", []string{"--kind", "mail"}, []string{"pending-1"}},
		{"all flags together", []string{"--status", "dead_letter", "--policy", "standard"}, []string{"dead-1"}},
		{"since hours ago, that time included", []string{"--until", "2h", "--since", "25h"}, []string{"dead-2"}},
		{"until days ago, that time excluded", []string{"--until", "2d"}, []string{"failed-1", "canceled-1"}},
		{"until three days ago, exactly", []string{"--until", "3d"}, nil},
		{"since a time", []string{"--since", "2026-11-20T12:00:00+01:00", "--until", "2026-11-21T10:00:00Z"}, []string{"dead-2"}},
	} {
		t.Run(row.name, func(t *testing.T) {
			got := run(t, newFake(jobs()...), append([]string{"list", "--json"}, row.args...)...)
			require.Equal(t, cli.Done, got.Exit, got.Err)
			var ids []string
			for line := range strings.Lines(got.Out) {
				var info retryjob.Info
				require.NoError(t, json.Unmarshal([]byte(line), &info))
				ids = append(ids, info.JobID)
			}
			require.Equal(t, row.want, ids)
		})
	}
}

func TestListSaysWhatItLeavesOut(t *testing.T) {
	f := newFake(jobs()...)
	require.Equal(t, "retryjobs: there are more than 8 jobs; --limit 0 lists all\n", run(t, f, "list", "--limit", "8").Err)
	require.Equal(t, "retryjobs: there are more than 1 job; --limit 0 lists all\n", run(t, f, "list", "--limit", "1", "--json").Err)
	require.Empty(t, run(t, f, "list", "--limit", "9").Err)
	require.Empty(t, run(t, f, "list", "--limit", "0").Err)
	require.Equal(t, ran{Err: "retryjobs: no such jobs\n"}, run(t, f, "list", "--kind", "fax"))
}

func TestAListThatBreaksShowsWhatThereIs(t *testing.T) {
	f := newFake(jobs()...)
	f.broken = errBroken
	want := `
ID         KIND  POLICY    STATUS   REASON  ATTEMPTS  TAGS  DUE OR ENDED          LAST ERROR
pending-1  mail  standard  pending  -       0         -     2026-11-21T13:00:00Z  -
`
	require.Equal(t, ran{cli.Failed, want[1:], "retryjobs: the connection broke\n"}, run(t, f, "list"))
	require.Equal(t, 1, f.closed)
}

func TestALongTableIsWrittenInPieces(t *testing.T) {
	f := newFake()
	for i := range 2500 {
		job := jobs()[0]
		job.JobID = strings.Repeat("x", i/100) + time.Duration(i).String()
		f.jobs[job.JobID] = &job
	}
	got := run(t, f, "list", "--limit", "0")
	require.Equal(t, 2501, strings.Count(got.Out, "\n"))
}
