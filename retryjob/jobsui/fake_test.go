package jobsui_test

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"iter"
	"net/http"
	"net/http/httptest"
	"net/url"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/retrygo/retry"
	"github.com/retrygo/retry/retryjob"
	"github.com/retrygo/retry/retryjob/jobsui"
)

// fake is an Admin of jobs in memory, which reads and writes their records only.
type fake struct {
	retryjob.Admin // nil
	jobs           map[string]*retryjob.Info
	schedules      []retryjob.Schedule
	broken         error
	listed         int // jobs that lists have yielded
	counted        int // calls of Count and Groups
	slow           time.Duration
}

func newFake(jobs ...retryjob.Info) *fake {
	f := &fake{jobs: map[string]*retryjob.Info{}}
	for _, job := range jobs {
		f.jobs[job.JobID] = &job
	}
	return f
}

func (f *fake) Get(_ context.Context, id string) (retryjob.Info, error) {
	if f.broken != nil {
		return retryjob.Info{}, f.broken
	}
	if job := f.jobs[id]; job != nil {
		return *job, nil
	}
	return retryjob.Info{}, retryjob.ErrNeverKnown
}

func (f *fake) List(ctx context.Context, filter retryjob.Filter) iter.Seq2[retryjob.Info, error] {
	return func(yield func(retryjob.Info, error) bool) {
		if f.broken != nil {
			yield(retryjob.Info{}, f.broken)
			return
		}
		for _, job := range f.selected(filter) {
			time.Sleep(f.slow)
			if err := ctx.Err(); err != nil {
				yield(retryjob.Info{}, err)
				return
			}
			if f.listed++; !yield(*job, nil) {
				return
			}
		}
	}
}

func (f *fake) selected(filter retryjob.Filter) []*retryjob.Info {
	var found []*retryjob.Info
	for _, job := range f.jobs {
		if filter.Selects(job) {
			found = append(found, job)
		}
	}
	slices.SortFunc(found, func(a, b *retryjob.Info) int {
		return cmp.Or(b.Changed().Compare(a.Changed()), cmp.Compare(b.JobID, a.JobID))
	})
	if i := slices.IndexFunc(found, func(job *retryjob.Info) bool {
		return job.JobID == filter.After.ID && job.Changed().UnixMicro() == filter.After.Changed.UnixMicro()
	}); i >= 0 {
		found = found[i+1:]
	}
	if filter.Limit > 0 && len(found) > filter.Limit {
		found = found[:filter.Limit]
	}
	return found
}

func (f *fake) Replay(_ context.Context, id string) error {
	if f.jobs[id] == nil {
		return retryjob.ErrNeverKnown
	}
	return f.jobs[id].Replay(time.Now())
}

func (f *fake) ReplayAll(ctx context.Context, filter retryjob.Filter) (n int, err error) {
	if f.broken != nil {
		return 0, f.broken
	}
	for _, job := range f.selected(filter.ForReplay()) {
		if job.Replay(time.Now()) == nil {
			n++
		}
	}
	return n, nil
}

func (f *fake) Cancel(_ context.Context, id string) error {
	if f.jobs[id] == nil {
		return retryjob.ErrNeverKnown
	}
	return f.jobs[id].Cancel(time.Now())
}

func (f *fake) Purge(_ context.Context, filter retryjob.Filter) (n int, err error) {
	for _, job := range f.selected(filter) {
		if job.Status.Final() {
			delete(f.jobs, job.JobID)
			n++
		}
	}
	return n, nil
}

func (f *fake) Count(ctx context.Context, filter retryjob.Filter) (map[retryjob.Status]retryjob.Tally, error) {
	f.counted++
	if time.Sleep(f.slow); ctx.Err() != nil || f.broken != nil {
		return nil, cmp.Or(f.broken, ctx.Err())
	}
	n := map[retryjob.Status]retryjob.Tally{}
	for _, job := range f.selected(filter) {
		t := n[job.Status]
		t.Add(job)
		n[job.Status] = t
	}
	return n, nil
}

// dead returns a dead letter that ended so long ago.
func dead(id string, ago time.Duration) retryjob.Info {
	ended := time.Now().Add(-ago)
	return retryjob.Info{Payload: json.RawMessage(`{"order":"` + id + `"}`), Record: retryjob.Record{Kind: "webhook",
		Version: 1, JobID: id, Policy: "standard", FirstDue: ended.Add(-time.Hour), Status: retryjob.DeadLettered,
		Reason: retry.AttemptsExhausted, Ended: ended, Attempts: 2, History: []retryjob.Attempt{
			{ID: id + ".0.1", Number: 1, Start: ended.Add(-time.Hour), End: ended.Add(-time.Hour + 2*time.Second), Due: ended.Add(-time.Second), Status: retryjob.WaitingRetry, Err: "503 Service Unavailable", Code: "503"},
			{ID: id + ".0.2", Number: 2, Start: ended.Add(-time.Second), End: ended, Status: retryjob.DeadLettered, Reason: retry.AttemptsExhausted, Err: "connection refused"},
		},
	}}
}

// waiting returns a job that is due in an hour.
func waiting(id string, ago time.Duration) retryjob.Info {
	job := dead(id, ago)
	job.Status, job.Reason, job.Due, job.Ended, job.Attempts = retryjob.WaitingRetry, 0, time.Now().Add(time.Hour), time.Time{}, 1
	job.History = job.History[:1]
	return job
}

// many returns n dead letters, dead-0000 the newest, one a second.
func many(n int) (jobs []retryjob.Info) {
	for i := range n {
		jobs = append(jobs, dead(fmt.Sprintf("dead-%04d", i), time.Duration(i+1)*time.Second))
	}
	return jobs
}

var errBroken = errors.New("the connection broke")

func handler(t testing.TB, admin retryjob.Admin) http.Handler {
	t.Helper()
	h, err := jobsui.New(jobsui.Options{Admin: admin, Name: "tests", Hosts: []string{"jobs.example.org"}, Access: anyone})
	require.NoError(t, err)
	return h
}

func get(t testing.TB, h http.Handler, address string) *httptest.ResponseRecorder {
	t.Helper()
	w := httptest.NewRecorder()
	h.ServeHTTP(w, httptest.NewRequest(http.MethodGet, "http://127.0.0.1:8080/"+strings.TrimPrefix(address, "./"), nil))
	return w
}

func post(t testing.TB, h http.Handler, address string, form url.Values) *httptest.ResponseRecorder {
	t.Helper()
	r := httptest.NewRequest(http.MethodPost, "http://127.0.0.1:8080/"+address, strings.NewReader(form.Encode()))
	r.Header.Set("Content-Type", "application/x-www-form-urlencoded")
	r.Header.Set("Sec-Fetch-Site", "same-origin")
	w := httptest.NewRecorder()
	h.ServeHTTP(w, r)
	return w
}

func (f *fake) Groups(ctx context.Context, filter retryjob.Filter) ([]retryjob.Group, error) {
	f.counted++
	return retryjob.GroupsOf(f.List(ctx, filter))
}

func anyone(*http.Request) jobsui.Access { return jobsui.ReadWrite }

// after returns the page to which an answer leads, as a browser gets it.
func after(t testing.TB, h http.Handler, w *httptest.ResponseRecorder) *httptest.ResponseRecorder {
	t.Helper()
	r := httptest.NewRequest(http.MethodGet, "http://127.0.0.1:8080/"+strings.TrimPrefix(w.Header().Get("Location"), "./"), nil)
	for _, cookie := range w.Result().Cookies() {
		require.True(t, cookie.HttpOnly || cookie.MaxAge < 0)
		r.AddCookie(cookie)
	}
	next := httptest.NewRecorder()
	h.ServeHTTP(next, r)
	return next
}

func (f *fake) Queues(context.Context) ([]retryjob.QueueDepth, error) {
	var all iter.Seq2[retryjob.Info, error] = func(yield func(retryjob.Info, error) bool) {
		for _, job := range f.jobs {
			if !yield(*job, nil) {
				return
			}
		}
	}
	return retryjob.QueuesOf(all, time.Now())
}

func (f *fake) Schedules(context.Context) ([]retryjob.Schedule, error) { return f.schedules, nil }

func (f *fake) ChangeSchedule(_ context.Context, name string, change func(*retryjob.Schedule) (*retryjob.Job, error)) error {
	at := slices.IndexFunc(f.schedules, func(s retryjob.Schedule) bool { return s.Name == name })
	if at < 0 {
		_, err := change(&retryjob.Schedule{Name: name})
		return err
	}
	_, err := change(&f.schedules[at])
	return err
}
