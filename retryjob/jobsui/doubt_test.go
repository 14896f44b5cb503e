package jobsui_test

import (
	"fmt"
	"net/http"
	"net/url"
	"slices"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/retrygo/retry"
	"github.com/retrygo/retry/retryjob"
)

// terminal returns a dead letter that ended with terminal_error, in doubt or not.
func terminal(id string, ago time.Duration, inDoubt bool) retryjob.Info {
	job := dead(id, ago)
	job.Reason, job.Attempts = retry.TerminalError, 1
	job.History = []retryjob.Attempt{{Number: 1, End: job.Ended, Status: retryjob.DeadLettered, Reason: job.Reason, Err: "lost the answer of DATA 7", Ambiguous: inDoubt}}
	return job
}

// replayed returns the jobs of f that were replayed, sorted.
func replayed(f *fake) (ids []string) {
	for id, job := range f.jobs {
		if job.Replays > 0 {
			ids = append(ids, id)
		}
	}
	slices.Sort(ids)
	return ids
}

func TestAReplayAsksAboutDoubt(t *testing.T) {
	const (
		cause    = "cause=lost+the+answer+of+DATA+%23"
		refusal  = "<dt><bdi>lost-1</bdi></dt><dd><bdi>in doubt: the work may have been done</bdi></dd>"
		required = `<input type="checkbox" name="doubt" value="1" required>`
		optional = `<input type="checkbox" name="doubt" value="1">`
	)
	lost := []string{"lost-1", "lost-2"}
	for _, row := range []struct {
		name     string
		all      bool
		view     string
		ids      []string
		says     []string
		saysNot  string
		unticked []string // the jobs that are replayed if the box is left as it is
		ticked   []string
		refused  bool // unless the box is ticked
	}{
		{"all of a cause", true, cause, nil,
			[]string{"Replay 3 jobs?", "In doubt: 2 of these jobs.", "Ended with terminal_error: 1 of these jobs.", optional}, "required",
			[]string{"refused"}, []string{"lost-1", "lost-2", "refused"}, false},
		{"all in doubt", true, "in-doubt=yes", nil,
			[]string{"Replay 2 jobs?", "In doubt: all of these jobs.", required}, "terminal_error:",
			nil, lost, false},
		{"all but those in doubt", true, "in-doubt=no&" + cause, nil,
			[]string{"Replay 1 job?", "Ended with terminal_error: this job."}, "In doubt:",
			[]string{"refused"}, nil, false},
		{"one in doubt", false, "", lost[:1],
			[]string{"Replay 1 job?", "In doubt: this job.", required}, "terminal_error:",
			nil, lost[:1], true},
		{"a selection", false, "", []string{"lost-1", "given-up"},
			[]string{"Replay 2 jobs?", "In doubt: 1 of these jobs.", optional}, "terminal_error:",
			[]string{"given-up"}, []string{"given-up", "lost-1"}, true},
		{"without doubt", false, "", []string{"given-up"},
			[]string{"Replay 1 job?", ">replay 1 job</button>"}, "doubt",
			[]string{"given-up"}, nil, false},
	} {
		t.Run(row.name, func(t *testing.T) {
			for _, ticks := range []bool{false, true} {
				f := newFake(terminal("lost-1", 3*time.Minute, true), terminal("lost-2", 2*time.Minute, true), terminal("refused", time.Minute, false), dead("given-up", time.Minute))
				h := handler(t, f)
				address := "confirm"
				if row.all {
					address = "confirm?all"
				}
				body := post(t, h, address, url.Values{"do": {"replay"}, "id": row.ids, "view": {row.view}}).Body.String()
				for _, text := range row.says {
					require.Contains(t, body, text)
				}
				require.NotContains(t, body, row.saysNot)
				fields := form(t, body) // as if the box, if there is one, were ticked
				if ticks && !fields.Has("doubt") {
					continue
				}
				want := row.ticked
				if !ticks {
					fields.Del("doubt")
					want = row.unticked
				}
				w := post(t, h, "act", fields)
				require.Equal(t, want, replayed(f))
				if row.refused && !ticks {
					require.Equal(t, http.StatusOK, w.Code)
					require.Contains(t, w.Body.String(), refusal)
				} else {
					require.Equal(t, http.StatusSeeOther, w.Code, w.Body.String())
				}
			}
		})
	}
}

func TestALongReplayOfJobsInDoubtGoesOnAsItWasOrdered(t *testing.T) {
	var jobs []retryjob.Info
	for i := range 1200 {
		jobs = append(jobs, terminal(fmt.Sprint("lost-", i), time.Minute, true))
	}
	f := newFake(jobs...)
	h := handler(t, f)
	body := post(t, h, "act", url.Values{"do": {"replay"}, "all": {"1"}, "doubt": {"1"}}).Body.String()
	require.Contains(t, body, "Replayed 1,000 jobs so far")
	require.Equal(t, http.StatusSeeOther, post(t, h, "act", form(t, body)).Code)
	require.Len(t, replayed(f), 1200)
}

func TestThePagesSayWhatIsInDoubt(t *testing.T) {
	f := newFake(terminal("lost-1", 72*time.Hour, true), terminal("lost-2", 3*time.Minute, true), terminal("refused", 5*time.Minute, false), dead("given-up", time.Minute))
	h := handler(t, f)
	body := get(t, h, "").Body.String()
	for _, text := range []string{
		"<summary>Dead letters by cause (4, 2 in doubt)</summary>",
		`<bdi>lost the answer of DATA 7</bdi> <a href="./?cause=lost&#43;the&#43;answer`,
		`<bdi>lost the answer of DATA #</bdi></a></th>`,
		`<td data-label="Jobs">3 <small class="doubt">(2 in doubt)</small></td>`,
		">3d ago</time></td><td data-label=\"Newest\"><a href=\"job?id=lost-2\">",
		"terminal_error <small>a replay fails again unless its cause is mended</small> <small>in doubt: the work may have been done, so find out before a replay</small></td>",
		`<td class="reason" data-label="Reason">attempts_exhausted</td>`,
		`<small>terminal_error</small> <small class="doubt">in doubt</small></td>`,
		"<summary>Now (0 due, 0 running)</summary>",
	} {
		require.Contains(t, body, text)
	}
	require.Equal(t, []string{"lost-2", "lost-1"}, rows(get(t, h, "?in-doubt=yes").Body.String()))
	require.Equal(t, []string{"given-up", "refused"}, rows(get(t, h, "?in-doubt=no").Body.String()))
	require.Contains(t, get(t, h, "?in-doubt=perhaps").Body.String(), "The filter is not understood")

	require.Contains(t, get(t, h, "job?id=lost-1").Body.String(), "<dt>in doubt</dt><dd><bdi>the work may have been done</bdi></dd>")
	require.NotContains(t, get(t, h, "job?id=refused").Body.String(), "in doubt")
	require.NoError(t, f.Replay(t.Context(), "lost-1"))
	body = get(t, h, "job?id=lost-1").Body.String()
	require.NotContains(t, body, "<dt>in doubt</dt>")
	require.Contains(t, body, "<bdi>in doubt, the work may have been done: lost the answer of DATA 7</bdi>")
}
