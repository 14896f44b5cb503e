package retryjob_test

import (
	"context"
	"encoding/json"
	"errors"
	"net/http"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/retrygo/retry"
	"github.com/retrygo/retry/retryjob"
)

const sec = time.Second

var (
	epoch    = time.Date(2026, 11, 2, 9, 0, 0, 0, time.UTC)
	errFlaky = errors.New("flaky")
)

func TestNewRecord(t *testing.T) {
	job := retryjob.Job{ID: "j", Kind: "mail", Policy: "p", Correlation: "c"}
	for _, row := range []struct {
		name       string
		due, first time.Time
		enqueued   time.Time
	}{
		{"no due time means at once", time.Time{}, epoch, time.Time{}},
		{"a due time in the past means at once", epoch.Add(-time.Hour), epoch, time.Time{}},
		{"a due time now is now", epoch, epoch, time.Time{}},
		{"a due time in the future is waited for", epoch.Add(time.Hour), epoch.Add(time.Hour), epoch},
	} {
		t.Run(row.name, func(t *testing.T) {
			job.Due = row.due
			r := retryjob.NewRecord(&job, epoch)
			require.Equal(t, retryjob.Record{
				Version: retryjob.RecordVersion, JobID: "j", Kind: "mail", Policy: "p", Correlation: "c",
				FirstDue: row.first, Enqueued: row.enqueued, Status: retryjob.Pending, Due: row.first,
			}, r)
			require.NoError(t, r.Validate())
		})
	}
}

// A Stepper continues with a record of an earlier release, and writes it in the new form.
func TestARecordOfVersion1IsGoneOnWith(t *testing.T) {
	for name, change := range map[string]func(*trial){
		"an attempt":      func(x *trial) { x.step(1, ending(errFlaky)) },
		"a lost attempt":  func(x *trial) { x.lost(1) },
		"a cancellation":  func(x *trial) { require.NoError(t, x.r.Cancel(epoch)) },
		"a replay of one": func(x *trial) { x.step(1, ending(errFlaky)); x.r.Version = 1; require.NoError(t, x.r.Replay(epoch)) },
	} {
		x := newTrial(t, retry.Policy{MaxAttempts: 1})
		x.r = retryjob.Record{Version: 1, JobID: "j", Policy: "p", FirstDue: epoch, Status: retryjob.Pending, Due: epoch}
		change(x)
		require.Equal(t, 3, x.r.Version, name)
		require.NoError(t, x.r.Validate(), name)
	}
}

func TestRecordIsDataThatComesBack(t *testing.T) {
	r := retryjob.Record{
		Version: retryjob.RecordVersion, JobID: "j", Policy: "p", Correlation: "c", FirstDue: epoch, Replays: 2,
		Status: retryjob.WaitingRetry, Due: epoch.Add(9 * sec), Attempts: 2, Prev: 7 * sec,
		History: []retryjob.Attempt{
			{ID: "j.2.1", Number: 1, Status: retryjob.WaitingRetry, Err: "lost"},
			{ID: "j.2.2", Number: 2, Start: epoch.Add(sec), End: epoch.Add(2 * sec), Due: epoch.Add(9 * sec), Status: retryjob.WaitingRetry, Err: "flaky", Code: "503"},
		},
	}
	text, err := json.Marshal(r)
	require.NoError(t, err)
	require.JSONEq(t, `{
		"v": 3, "job": "j", "policy": "p", "correlation": "c", "first_due": "2026-11-02T09:00:00Z", "replays": 2,
		"status": "waiting_retry", "due": "2026-11-02T09:00:09Z", "attempts": 2, "prev_ns": 7000000000,
		"history": [
			{"id": "j.2.1", "number": 1, "status": "waiting_retry", "err": "lost"},
			{"id": "j.2.2", "number": 2, "start": "2026-11-02T09:00:01Z", "end": "2026-11-02T09:00:02Z",
			 "due": "2026-11-02T09:00:09Z", "status": "waiting_retry", "err": "flaky", "code": "503"}
		]}`, string(text))
	var back retryjob.Record
	require.NoError(t, json.Unmarshal(text, &back))
	require.Equal(t, r, back)

	ended := retryjob.Record{Version: retryjob.RecordVersion, JobID: "j", Policy: "p", FirstDue: epoch, Status: retryjob.Expired, Reason: retry.TTLElapsed, Ended: epoch.Add(sec)}
	text, err = json.Marshal(ended)
	require.NoError(t, err)
	require.JSONEq(t, `{"v": 3, "job": "j", "policy": "p", "first_due": "2026-11-02T09:00:00Z", "status": "expired",
		"reason": "ttl_elapsed", "ended": "2026-11-02T09:00:01Z", "attempts": 0}`, string(text))
}

func TestAttemptIDsNeverRepeat(t *testing.T) {
	seen := map[string]bool{}
	for _, id := range []string{"", "j", "j.0", "j.0.1", "j.1", ".", "1", "1.1"} {
		for replays := range 12 {
			r := retryjob.Record{JobID: id, Replays: replays}
			for attempt := 1; attempt <= 12; attempt++ {
				seen[r.AttemptID(attempt)] = true
			}
		}
	}
	require.Len(t, seen, 8*12*12)
}

func TestRecordLast(t *testing.T) {
	var r retryjob.Record
	require.Equal(t, retryjob.Attempt{}, r.Last())
	r.History = []retryjob.Attempt{{Number: 1}, {Number: 2}}
	require.Equal(t, 2, r.Last().Number)
}

func TestRecordChanged(t *testing.T) {
	at := func(n int) time.Time { return epoch.Add(time.Duration(n) * sec) }
	for _, row := range []struct {
		name   string
		record retryjob.Record
		want   time.Time
	}{
		{"a pending job has changed when it was first due", retryjob.Record{FirstDue: at(0), Status: retryjob.Pending, Due: at(0)}, at(0)},
		{"an ended job when it ended", retryjob.Record{FirstDue: at(0), Ended: at(9), History: []retryjob.Attempt{{Start: at(1), End: at(2)}}}, at(9)},
		{"a job that is due later when it was enqueued", retryjob.Record{FirstDue: at(9), Enqueued: at(1), Status: retryjob.Pending, Due: at(9)}, at(1)},
		{"a waiting job when its last attempt ended", retryjob.Record{FirstDue: at(0), History: []retryjob.Attempt{{Start: at(1), End: at(2)}, {Start: at(5), End: at(6)}}}, at(6)},
		{"a leased job when its attempt started", retryjob.Record{FirstDue: at(0), Status: retryjob.Leased, History: []retryjob.Attempt{{Start: at(1), End: at(2)}, {Start: at(5)}}}, at(5)},
		{"a lost attempt that ended late takes nothing forward", retryjob.Record{FirstDue: at(0), Status: retryjob.WaitingRetry, History: []retryjob.Attempt{{Start: at(1), End: at(8), Late: true}}}, at(1)},
		{"a lost attempt without times takes nothing back", retryjob.Record{FirstDue: at(0), Status: retryjob.WaitingRetry, History: []retryjob.Attempt{{Start: at(1), End: at(2)}, {Number: 2}}}, at(2)},
	} {
		t.Run(row.name, func(t *testing.T) { require.Equal(t, row.want, row.record.Changed()) })
	}
}

func TestRecordReplay(t *testing.T) {
	for _, status := range retryjob.Statuses() {
		t.Run(status.String(), func(t *testing.T) {
			r := retryjob.Record{
				Version: retryjob.RecordVersion, JobID: "j", Policy: "p", Correlation: "c", FirstDue: epoch, Replays: 3, Status: status,
				Attempts: 2, Prev: sec, History: []retryjob.Attempt{{Number: 1}, {Number: 2}},
			}
			if status.Final() {
				r.Ended, r.Reason = epoch.Add(sec), retry.AttemptsExhausted
			}
			before, now := r, epoch.Add(time.Hour)
			err := r.Replay(now)
			switch status {
			case retryjob.DeadLettered, retryjob.Expired, retryjob.FailedNoRetries:
				require.NoError(t, err)
				require.Equal(t, retryjob.Record{
					Version: retryjob.RecordVersion, JobID: "j", Policy: "p", Correlation: "c", FirstDue: now, Replays: 4, Status: retryjob.Pending, Due: now,
					Earlier: []retryjob.Life{{FirstDue: epoch, Ended: epoch.Add(sec), Status: status, Reason: retry.AttemptsExhausted, Attempts: 2}},
				}, r)
				require.NoError(t, r.Validate())
			default:
				require.ErrorIs(t, err, retryjob.ErrNotReplayable)
				require.ErrorContains(t, err, "job j is "+status.String())
				require.Equal(t, before, r)
			}
		})
	}
}

func TestRecordCancel(t *testing.T) {
	for _, status := range retryjob.Statuses() {
		t.Run(status.String(), func(t *testing.T) {
			r := retryjob.Record{Version: retryjob.RecordVersion, JobID: "j", FirstDue: epoch, Status: status, Attempts: 1, History: []retryjob.Attempt{{Number: 1}}}
			if status.Final() {
				r.Ended = epoch.Add(sec)
			} else if status != retryjob.Leased {
				r.Due = epoch.Add(sec)
			}
			before, now := r, epoch.Add(time.Hour)
			err := r.Cancel(now)
			if status.Final() {
				require.EqualError(t, err, "retryjob: job j is "+status.String()+" already")
				require.Equal(t, before, r)
				return
			}
			require.NoError(t, err)
			before.Status, before.Reason, before.Due, before.Ended = retryjob.Canceled, retry.CallerCanceled, time.Time{}, now
			require.Equal(t, before, r)
			require.NoError(t, r.Validate())
		})
	}
}

func TestRecordValidate(t *testing.T) {
	good := func(change func(*retryjob.Record)) retryjob.Record {
		r := retryjob.Record{Version: retryjob.RecordVersion, JobID: "j", Policy: "p", FirstDue: epoch, Status: retryjob.Pending, Due: epoch}
		change(&r)
		return r
	}
	for _, row := range []struct {
		name   string
		record retryjob.Record
		want   string // empty means fine
	}{
		{"pending", good(func(*retryjob.Record) {}), ""},
		{"waiting", good(func(r *retryjob.Record) { r.Status = retryjob.WaitingRetry }), ""},
		{"leased", good(func(r *retryjob.Record) { r.Status, r.Due = retryjob.Leased, time.Time{} }), ""},
		{"succeeded", good(func(r *retryjob.Record) { r.Status, r.Due, r.Ended = retryjob.Succeeded, time.Time{}, epoch }), ""},
		{"the zero Record", retryjob.Record{}, `retryjob: Record.Version 0 of job "" is not 1`},
		{"an older version", good(func(r *retryjob.Record) { r.Version = 0 }), "Record.Version 0"},
		{"a newer version", good(func(r *retryjob.Record) { r.Version = 4 }), `retryjob: Record.Version 4 of job "j" is not 1 to 3`},
		{"no status", good(func(r *retryjob.Record) { r.Status = 0 }), "Record.Status"},
		{"an unknown status", good(func(r *retryjob.Record) { r.Status = 9 }), "retryjob: Record.Status Status(9) of job \"j\" is not a status"},
		{"negative attempts", good(func(r *retryjob.Record) { r.Attempts = -1 }), "Record.Attempts -1"},
		{"negative replays", good(func(r *retryjob.Record) { r.Replays = -1 }), "Record.Replays -1"},
		{"no first time", good(func(r *retryjob.Record) { r.FirstDue = time.Time{} }), "Record.First"},
		{"pending without a due time", good(func(r *retryjob.Record) { r.Due = time.Time{} }), "Record.Due"},
		{"waiting without a due time", good(func(r *retryjob.Record) { r.Status, r.Due = retryjob.WaitingRetry, time.Time{} }), "Record.Due"},
		{"leased with a due time", good(func(r *retryjob.Record) { r.Status = retryjob.Leased }), "Record.Due"},
		{"final with a due time", good(func(r *retryjob.Record) { r.Status, r.Ended = retryjob.Expired, epoch }), "Record.Due"},
		{"final without an end", good(func(r *retryjob.Record) { r.Status, r.Due = retryjob.Canceled, time.Time{} }), "Record.Ended"},
		{"no job", good(func(r *retryjob.Record) { r.JobID = "" }), "Record.JobID"},
		{"a negative number of attempts written off", good(func(r *retryjob.Record) { r.Forgiven = -1 }), "Record.Forgiven -1"},
		{"several bad fields", good(func(r *retryjob.Record) { r.JobID, r.Replays, r.Prev = "", -1, -1 }),
			`retryjob: Record.JobID "" of job "" is empty; Record.Replays -1 of job "" is negative; Record.Prev -1ns of job "" is negative`},
		{"a negative delay", good(func(r *retryjob.Record) { r.Prev = -1 }), "Record.Prev -1ns"},
		{"more than 64 attempts", good(func(r *retryjob.Record) { r.Attempts, r.History = 65, make([]retryjob.Attempt, 65) }), "Record.History 65"},
		{"an attempt beyond Attempts", good(func(r *retryjob.Record) { r.History = []retryjob.Attempt{{Number: 1}} }), "Record.History 1"},
		{"attempts out of order", good(func(r *retryjob.Record) { r.Attempts, r.History = 2, []retryjob.Attempt{{Number: 2}, {Number: 1}} }), "Record.History 1"},
		{"waiting with an end", good(func(r *retryjob.Record) { r.Ended = epoch }), "Record.Ended"},
	} {
		t.Run(row.name, func(t *testing.T) {
			err := row.record.Validate()
			if row.want == "" {
				require.NoError(t, err)
				return
			}
			require.ErrorContains(t, err, row.want)
			var field *retry.FieldError
			require.ErrorAs(t, err, &field)
			require.Equal(t, "retryjob", field.Package)
		})
	}
}

func TestAHistoryOutOfOrderIsOneFault(t *testing.T) {
	r := retryjob.Record{
		Version: retryjob.RecordVersion, JobID: "j", FirstDue: epoch, Status: retryjob.WaitingRetry, Due: epoch, Attempts: 9,
		History: []retryjob.Attempt{{Number: 3}, {Number: 2}, {Number: 1}, {Number: 10}},
	}
	require.EqualError(t, r.Validate(), `retryjob: Record.History 2 of job "j" is not the number of the next attempt, or is beyond Attempts`)
}

func TestHistoryIsTheFirstAndTheNewest63(t *testing.T) {
	x := newTrial(t, evenly(retry.Unlimited, sec))
	for attempt := 1; attempt <= 200; attempt++ {
		x.c.now = x.step(attempt, ending(errFlaky)).Due
		want := []int{1}
		for n := max(2, attempt-62); n <= attempt; n++ {
			want = append(want, n)
		}
		var have []int
		for _, a := range x.r.History {
			have = append(have, a.Number)
			require.Equal(t, x.r.AttemptID(a.Number), a.ID)
		}
		require.Equal(t, want, have)
		require.Equal(t, attempt, x.r.Attempts)
	}
	t.Run("lost attempts are bounded too", func(t *testing.T) {
		x.step(301, ending(nil))
		require.Len(t, x.r.History, 64)
		require.Equal(t, []int{1, 239}, []int{x.r.History[0].Number, x.r.History[1].Number})
		require.Equal(t, retryjob.ErrLost.Error(), x.r.History[62].Err)
		require.Equal(t, 301, x.r.Attempts)
	})
}

func TestErrorTextsAreKeptAsText(t *testing.T) {
	for _, row := range []struct{ name, text, want string }{
		{"plain", "no route", "no route"},
		{"none", "", ""},
		{"several lines", "a\nb", "a\nb"},
		{"NUL, which PostgreSQL's JSON cannot hold", "a\x00b", "a\ufffdb"},
		{"not UTF-8", "a\xffb", "ab"},
		{"1 KiB", strings.Repeat("x", 1024), strings.Repeat("x", 1024)},
		{"more", strings.Repeat("x", 1025), strings.Repeat("x", 1024)},
		{"much more", strings.Repeat("x", 1<<20), strings.Repeat("x", 1024)},
		{"a letter across the end", strings.Repeat("x", 1023) + "ü", strings.Repeat("x", 1023)},
		{"nothing but NUL", strings.Repeat("\x00", 1024), strings.Repeat("\ufffd", 341)},
	} {
		t.Run(row.name, func(t *testing.T) {
			x := newTrial(t, retry.Policy{})
			x.s.Code = func(err error) string { return err.Error() }
			x.step(1, ending(errors.New(row.text)))
			require.Equal(t, row.want, x.r.History[0].Err)
			require.Equal(t, row.want, x.r.History[0].Code, "a code is cut in the same way")
			text, err := json.Marshal(x.r)
			require.NoError(t, err)
			var back retryjob.Record
			require.NoError(t, json.Unmarshal(text, &back))
			require.Equal(t, row.want, back.History[0].Err)
		})
	}
}

func TestErrorTextsHaveNoSecretsOfURLs(t *testing.T) {
	_, err := http.NewRequest("GET", "https://h:x/p?token=s3cret", nil)
	for _, row := range []struct{ text, want string }{
		{`Get "https://example.com/hooks/7?token=s3cret&a=b": dial tcp: refused`, `Get "https://example.com/hooks/7": dial tcp: refused`},
		{`Get "https://me:s3cret@example.com:8443/hooks#s3cret": EOF`, `Get "https://example.com:8443/hooks": EOF`},
		{`Get "https://s3cret@example.com": EOF`, `Get "https://example.com": EOF`},
		{`postgres://me:s3/cr?e#t@h:5432/db is out of reach`, `postgres://h:5432/db is out of reach`},
		{`cannot parse postgres:/me:s3cret@h/d`, `cannot parse postgres:/h/d`},
		{`one https://h/a?s3cret=1 and two https://h/b?s3cret=2`, `one https://h/a and two https://h/b`},
		{`GET /hooks?token=s3cret: 503`, `GET /hooks 503`},
		{`see https://example.com/@user/page`, `see https://example.com/@user/page`},
		{`mail to me@example.com failed, what now?`, `mail to me@example.com failed, what now?`},
		{strings.Repeat("x ", 8188) + `https://me:s3cret@h`, strings.Repeat("x ", 512)},
		{`https://` + strings.Repeat("s3cret", 5000) + `@h ` + `failed`, ``},
		{err.Error(), `parse "https://h:x/p": invalid port ":x" after host`},
	} {
		x := newTrial(t, retry.Policy{})
		x.step(1, ending(errors.New(row.text)))
		if row.want != "" {
			require.Equal(t, row.want, x.r.History[0].Err)
		}
		require.LessOrEqual(t, len(x.r.History[0].Err), 1024)
	}
}

func TestALateResultChangesItsOwnLineOnly(t *testing.T) {
	x := newTrial(t, evenly(3, sec))
	x.step(2, ending(errFlaky)) // the first attempt was lost
	r, before := &x.r, slices.Clone(x.r.History)
	late := retryjob.Attempt{ID: r.AttemptID(1), Number: 1, Start: epoch, End: epoch.Add(time.Hour), Status: retryjob.DeadLettered, Reason: retry.TerminalError, Err: "no", Code: "404"}

	require.True(t, r.AddLate(late))
	want := before[0]
	want.Start, want.End, want.Err, want.Code, want.Late = late.Start, late.End, "no", "404", true
	require.Equal(t, []retryjob.Attempt{want, before[1]}, r.History)
	require.Equal(t, retryjob.WaitingRetry, r.Status)
	require.Equal(t, epoch.Add(sec), r.Due)
	require.NoError(t, r.Validate())

	require.False(t, r.AddLate(late), "it is recorded")
	other := late
	other.ID = r.AttemptID(2)
	require.False(t, r.AddLate(other), "that attempt was not lost")
	other.ID = r.AttemptID(3)
	require.False(t, r.AddLate(other), "it is not in the record")
	leased := retryjob.Record{History: []retryjob.Attempt{{ID: late.ID, Number: 1, Start: epoch, Status: retryjob.Leased}}}
	require.False(t, leased.AddLate(late), "it is under way")
	require.Equal(t, []retryjob.Attempt{want, before[1]}, r.History)
}

// FuzzRecord checks that a decoded Record is encoded to JSON that decodes to the same Record, and that no method
// panics. A valid Record is still valid after Replay and Cancel.
func FuzzRecord(f *testing.F) {
	f.Add([]byte(`{}`))
	f.Add([]byte(`{"v":1,"job":"j","policy":"p","first_due":"2026-11-02T09:00:00Z","status":"pending","due":"2026-11-02T09:00:00Z","attempts":0}`))
	f.Add([]byte(`{"v":1,"job":"j","policy":"p","first_due":"2026-11-02T09:00:00Z","status":"leased","attempts":2,"prev_ns":-5,"history":[{"number":7,"status":"leased"}]}`))
	f.Add([]byte(`{"v":1,"job":"j","policy":"p","first_due":"2026-11-02T09:00:00Z","status":"dead_letter","reason":"terminal_error","ended":"2026-11-02T09:00:00Z","attempts":1,"replays":9223372036854775806}`))
	f.Add([]byte(`{"v":1,"job":"\u0000","policy":"p","first_due":"9999-12-31T23:59:59Z","status":"waiting_retry","due":"0001-01-02T00:00:00Z","attempts":9,"history":[{"id":"x","number":-1,"start":"2026-11-02T09:00:00Z","end":"0001-01-02T00:00:00Z","status":"expired","reason":"","err":"e"}]}`))
	f.Fuzz(func(t *testing.T, text []byte) {
		var r retryjob.Record
		if json.Unmarshal(text, &r) != nil {
			return
		}
		broken := r.Validate()
		_, _, _ = r.Last(), r.Changed(), r.AttemptID(r.Attempts)
		selects(&r)
		if broken == nil {
			require.Contains(t, []int{1, retryjob.RecordVersion}, r.Version)
			require.Contains(t, retryjob.Statuses(), r.Status)
			require.Equal(t, r.Status.Final(), !r.Ended.IsZero())
			require.Equal(t, r.Status == retryjob.Pending || r.Status == retryjob.WaitingRetry, !r.Due.IsZero())
		}
		if text, err := json.Marshal(r); err == nil {
			var back retryjob.Record
			require.NoError(t, json.Unmarshal(text, &back))
			again, err := json.Marshal(back)
			require.NoError(t, err)
			require.Equal(t, string(text), string(again))
		} else {
			require.False(t, broken == nil && wellFormed(&r), "a good record cannot be written: %v", err)
		}
		before, now := r, epoch.Add(time.Hour)
		switch err := r.Cancel(now); {
		case before.Status.Final():
			require.Error(t, err)
			require.Equal(t, before, r)
		default:
			require.NoError(t, err)
			require.True(t, r.Status.Final())
			require.Equal(t, broken == nil, r.Validate() == nil && broken == nil)
		}
		r = before
		switch err := r.Replay(now); {
		case before.Status.Replayable():
			require.NoError(t, err)
			require.Equal(t, before.JobID, r.JobID)
			require.Equal(t, 0, r.Attempts)
			if broken == nil && before.Replays < 1<<31-1 {
				require.NoError(t, r.Validate())
			}
		default:
			require.ErrorIs(t, err, retryjob.ErrNotReplayable)
			require.Equal(t, before, r)
		}
		steps(t, before, broken)
	})
}

// selects asks filters about a record.
func selects(r *retryjob.Record) {
	i := retryjob.Info{Record: *r}
	for _, f := range []retryjob.Filter{{}, {Since: epoch, Until: epoch}, {Statuses: retryjob.Statuses(), Reasons: []retry.Reason{0}}} {
		f.Selects(&i)
	}
}

// steps makes the next attempt of a record.
func steps(t *testing.T, r retryjob.Record, broken error) {
	if r.Attempts > 1<<30 {
		return
	}
	c := &clock{epoch}
	s := retryjob.Stepper{Now: c.Now, Policies: func(*retryjob.Job) (retry.Policy, error) { return retry.Policy{TTL: time.Hour}, nil }}
	before := clone(r)
	called := false
	v, err := s.Step(t.Context(), &r, r.Attempts+1, func(context.Context) error {
		called = true
		return errFlaky
	})
	if broken != nil || before.Status.Final() {
		require.Error(t, err)
	}
	if err != nil {
		require.False(t, called)
		require.Equal(t, retryjob.Next{}, v)
		require.Equal(t, before, r)
		return
	}
	require.NoError(t, r.Validate())
	require.Equal(t, v.Status, r.Status)
	require.Equal(t, v.Reason, r.Reason)
	require.Equal(t, v.Due, r.Due)
}

// wellFormed reports whether JSON can hold the record: it cannot hold attempts without a status and times beyond its
// years.
func wellFormed(r *retryjob.Record) bool {
	times := []time.Time{r.FirstDue, r.Due, r.Ended}
	for _, a := range r.History {
		if a.Status == 0 {
			return false
		}
		times = append(times, a.Start, a.End, a.Due)
	}
	for _, at := range times {
		if y := at.Year(); y < 0 || y > 9999 {
			return false
		}
	}
	return true
}

func TestInDoubt(t *testing.T) {
	doubtful := []retryjob.Attempt{{Number: 1, Ambiguous: true}}
	resolved := []retryjob.Attempt{{Number: 1, Ambiguous: true}, {Number: 2}}
	for _, row := range []struct {
		name string
		rec  retryjob.Record
		want bool
	}{
		{"the last attempt of a dead letter", retryjob.Record{Status: retryjob.DeadLettered, History: doubtful}, true},
		{"of an expired job", retryjob.Record{Status: retryjob.Expired, History: doubtful}, true},
		{"of a failed job", retryjob.Record{Status: retryjob.FailedNoRetries, History: doubtful}, true},
		{"of a job that cannot be replayed", retryjob.Record{Status: retryjob.Canceled, History: doubtful}, false},
		{"of a job that waits", retryjob.Record{Status: retryjob.WaitingRetry, History: doubtful}, false},
		{"an attempt before the last one", retryjob.Record{Status: retryjob.DeadLettered, History: resolved}, false},
		{"no attempt", retryjob.Record{Status: retryjob.Expired}, false},
	} {
		t.Run(row.name, func(t *testing.T) { require.Equal(t, row.want, row.rec.InDoubt()) })
	}
	t.Run("a late result keeps its doubt", func(t *testing.T) {
		r := retryjob.Record{Status: retryjob.DeadLettered, History: []retryjob.Attempt{{ID: "j.0.1.x", Number: 1, Status: retryjob.DeadLettered, Err: retryjob.ErrLost.Error()}}}
		require.False(t, r.InDoubt())
		require.True(t, r.AddLate(retryjob.Attempt{ID: "j.0.1.x", End: epoch, Err: "the answer was lost", Ambiguous: true}))
		require.True(t, r.InDoubt())
	})
}
