package jobsui_test

import (
	"context"
	"fmt"
	"html"
	"net/http"
	"net/http/httptest"
	"net/url"
	"regexp"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/retrygo/retry/retryjob"
)

// form returns the fields of the form on a page that is sent to act, with the value of its button.
func form(t testing.TB, body string) url.Values {
	t.Helper()
	fields := url.Values{}
	found := regexp.MustCompile(`(?s)<form method="post" action="act".*?</form>`).FindString(body)
	require.NotEmpty(t, found, body)
	for _, field := range regexp.MustCompile(`name="([^"]*)" value="([^"]*)"`).FindAllStringSubmatch(found, -1) {
		fields.Add(field[1], html.UnescapeString(field[2]))
	}
	return fields
}

func TestEveryActionIsConfirmedFirst(t *testing.T) {
	for _, row := range []struct {
		do, id, question, done string
		status                 retryjob.Status // 0: the job is gone
	}{
		{"replay", "dead", "Replay 1 job?", "Replayed 1 job.", retryjob.Pending},
		{"cancel", "waits", "Cancel 1 job?", "Canceled 1 job.", retryjob.Canceled},
		{"purge", "dead", "Purge 1 job?", "Purged 1 job.", 0},
	} {
		for _, from := range []string{"", "job"} {
			t.Run(row.do+from, func(t *testing.T) {
				f := newFake(dead("dead", time.Minute), waiting("waits", time.Minute))
				before := f.jobs[row.id].Status
				h := handler(t, f)
				w := post(t, h, "confirm", url.Values{"do": {row.do}, "id": {row.id}, "view": {"policy=standard&live=1"}, "from": {from}})
				require.Equal(t, http.StatusOK, w.Code)
				require.Contains(t, w.Body.String(), row.question)
				require.Equal(t, before, f.jobs[row.id].Status, "nothing is done yet")

				w = post(t, h, "act", form(t, w.Body.String()))
				require.Equal(t, http.StatusSeeOther, w.Code)
				to := w.Header().Get("Location")
				if from == "job" && row.do != "purge" {
					require.Equal(t, "job?id="+row.id, to)
				} else {
					require.Equal(t, "./?live=1&policy=standard", to)
				}
				done := after(t, h, w)
				require.Contains(t, done.Body.String(), row.done)
				require.Negative(t, done.Result().Cookies()[0].MaxAge, "it is said once")
				if row.status == 0 {
					require.NotContains(t, f.jobs, row.id)
				} else {
					require.Equal(t, row.status, f.jobs[row.id].Status)
				}
			})
		}
	}
}

// TestWhatWasDoneIsNotInTheAddress: a link could make the page say so.
func TestWhatWasDoneIsNotInTheAddress(t *testing.T) {
	h := handler(t, newFake(dead("a", time.Minute)))
	for _, address := range []string{"?jobsui-done=purge.9", "?flash=Purged+9+jobs.", "?done=purge&made=9", "job?id=a&jobsui-done=purge.9"} {
		require.Contains(t, get(t, h, address).Body.String(), `<p id="flash" class="flash" role="status"></p>`, address)
	}
	for _, value := range []string{"purge.x", "purge.-1", "explode.9", "Send money to x", ""} { // by a page on another port of this host
		r := httptest.NewRequest(http.MethodGet, "http://127.0.0.1:8080/", nil)
		r.AddCookie(&http.Cookie{Name: "jobsui-done", Value: value})
		w := httptest.NewRecorder()
		h.ServeHTTP(w, r)
		require.Contains(t, w.Body.String(), `<p id="flash" class="flash" role="status"></p>`, value)
	}
}

func TestASelectionNamesEachJobThatWasLeft(t *testing.T) {
	f := newFake(dead("dead-1", time.Minute), dead("dead-2", time.Hour), waiting("waits", time.Minute))
	h := handler(t, f)
	ids := []string{"dead-1", "waits", "gone", "dead-2"}
	for _, row := range []struct {
		do   string
		left map[string]string
	}{
		{"replay", map[string]string{"waits": "not replayable: job waits is waiting_retry, and only dead-lettered, expired and failed jobs are replayed", "gone": "unknown job: never known here"}},
		{"purge", map[string]string{"waits": "the job is waiting_retry, and only jobs that have ended are purged"}},
		{"cancel", map[string]string{"gone": "unknown job: never known here"}},
	} {
		w := post(t, h, "act", url.Values{"do": {row.do}, "id": ids})
		require.Equal(t, http.StatusOK, w.Code)
		for id, text := range row.left {
			require.Contains(t, w.Body.String(), "<dt><bdi>"+id+"</bdi></dt><dd><bdi>"+text+"</bdi></dd>")
		}
	}
	require.Equal(t, retryjob.Canceled, f.jobs["dead-1"].Status, "replayed, not purged, canceled")
}

func TestOneJobIsPurgedAndNoOther(t *testing.T) {
	one, twin, other := dead("one", time.Minute), dead("twin", time.Minute), dead("other", time.Minute)
	twin.Ended = one.Ended
	f := newFake(one, twin, other)
	h := handler(t, f)
	require.Equal(t, http.StatusSeeOther, post(t, h, "act", url.Values{"do": {"purge"}, "id": {"one"}}).Code)
	require.Nil(t, f.jobs["one"])
	require.Len(t, f.jobs, 2)
}

func TestAllThatMatchAreChangedInBatches(t *testing.T) {
	for _, do := range []string{"replay", "purge", "cancel"} {
		t.Run(do, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) { // counts have a time limit
				f := newFake()
				for i := range 2_500 {
					job := dead(fmt.Sprintf("job-%04d", i), time.Duration(i+1)*time.Second)
					if do == "cancel" {
						job = waiting(job.JobID, time.Minute)
					}
					f.jobs[job.JobID] = &job
				}
				other := dead("other", time.Hour)
				other.Kind = "mail"
				f.jobs["other"] = &other
				h := handler(t, f)
				w := post(t, h, "confirm?all", url.Values{"do": {do}, "view": {"kind=webhook"}, "id": {"other"}})
				require.Contains(t, w.Body.String(), "2,500 jobs?")
				for _, made := range []string{"1,000", "2,000"} {
					w = post(t, h, "act", form(t, w.Body.String()))
					require.Equal(t, http.StatusOK, w.Code)
					require.Contains(t, w.Body.String(), made+" jobs so far")
				}
				w = post(t, h, "act", form(t, w.Body.String()))
				require.Equal(t, "./?kind=webhook", w.Header().Get("Location"))
				require.Contains(t, after(t, h, w).Body.String(), "2,500 jobs.")
				require.Equal(t, retryjob.DeadLettered, f.jobs["other"].Status)
				for _, job := range f.jobs {
					require.True(t, job.JobID == "other" || job.Status == retryjob.Pending || job.Status == retryjob.Canceled)
				}
			})
		})
	}
}

// again is an engine whose jobs fail again as soon as they are replayed.
type again struct{ *fake }

func (a again) ReplayAll(_ context.Context, f retryjob.Filter) (n int, err error) {
	for _, job := range a.selected(f) {
		job.Replays++
		job.Ended = time.Now()
		n++
	}
	return n, nil
}

func TestWhatFailsAgainIsNotReplayedAgain(t *testing.T) {
	synctest.Test(t, func(t *testing.T) { // counts and searches have a time limit
		f := newFake(many(1_500)...)
		h := handler(t, again{f})
		w := post(t, h, "confirm?all", url.Values{"do": {"replay"}})
		for w.Code == http.StatusOK {
			w = post(t, h, "act", form(t, w.Body.String()))
		}
		require.Contains(t, after(t, h, w).Body.String(), "Replayed 1,500 jobs.")
		for _, job := range f.jobs {
			require.Equal(t, 1, job.Replays)
		}
	})
}

func TestFormsThatAskForNothing(t *testing.T) {
	f := newFake(many(2)...)
	h := handler(t, f)
	long := url.Values{"do": {"purge"}}
	for i := range 501 {
		long.Add("id", fmt.Sprintf("job-%d", i))
	}
	for name, row := range map[string]struct {
		form url.Values
		text string
	}{
		"no action":                         {url.Values{"id": {"dead-0000"}}, "asks for nothing"},
		"an action that is none":            {url.Values{"do": {"drop"}, "id": {"dead-0000"}}, "asks for nothing"},
		"no job":                            {url.Values{"do": {"purge"}}, "No job is selected"},
		"more jobs than a selection":        {long, "More than 500 jobs"},
		"all that match a search":           {url.Values{"do": {"purge"}, "all": {"1"}, "view": {"q=x"}}, "asks for nothing"},
		"an address that is not understood": {url.Values{"do": {"purge"}, "all": {"1"}, "view": {"status=x"}}, "asks for nothing"},
		"an address that is malformed":      {url.Values{"do": {"purge"}, "all": {"1"}, "view": {"%zz"}}, "asks for nothing"},
		"more than a form holds":            {url.Values{"do": {"purge"}, "id": {string(make([]byte, 300<<10))}}, "too long"},
	} {
		for _, path := range []string{"confirm", "act"} {
			w := post(t, h, path, row.form)
			require.Equal(t, http.StatusBadRequest, w.Code, name)
			require.Contains(t, w.Body.String(), row.text, name)
		}
	}
	w := post(t, h, "confirm?all", url.Values{"do": {"cancel"}, "view": {"status=dead_letter"}})
	require.Contains(t, w.Body.String(), "No job with this status can be canceled.")
	w = post(t, h, "act?all", url.Values{"do": {"replay"}, "view": {"status=succeeded"}})
	require.Equal(t, http.StatusSeeOther, w.Code)
	require.Len(t, f.jobs, 2)
}

func TestAConfirmationSaysHowMany(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f := newFake(many(1_234)...)
		all := url.Values{"do": {"purge"}, "view": {"kind=webhook&until=1s"}}
		time.Sleep(time.Minute)
		require.Contains(t, post(t, handler(t, f), "confirm?all", all).Body.String(), "Purge 1,234 jobs?")
		f.slow = 2 * time.Second
		body := post(t, handler(t, f), "confirm?all", all).Body.String()
		require.Contains(t, body, "Purge all jobs that match?")
		require.Contains(t, body, "<dt>status</dt><dd><bdi>succeeded, dead_letter, expired, failed_no_retries, canceled</bdi>")
		require.Contains(t, body, "<dt>kind</dt><dd><bdi>webhook</bdi>")
		f.broken = errBroken
		require.Contains(t, post(t, handler(t, f), "confirm?all", all).Body.String(), "Purge all jobs that match?")
	})
}

// tired is an engine that replays one job and then takes too long.
type tired struct{ *fake }

func (a tired) ReplayAll(ctx context.Context, f retryjob.Filter) (int, error) {
	f.Limit = 1
	n, _ := a.fake.ReplayAll(ctx, f)
	if n == 0 {
		return 0, nil
	}
	<-ctx.Done()
	return n, ctx.Err()
}

func (a tired) Cancel(ctx context.Context, id string) error {
	<-ctx.Done()
	return ctx.Err()
}

func TestABatchThatTakesTooLongGoesOn(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f := newFake(append(many(2), waiting("waits", time.Minute))...)
		h := handler(t, tired{f})
		w := post(t, h, "confirm?all", url.Values{"do": {"replay"}})
		start := time.Now()
		for _, made := range []string{"1 job so far", "2 jobs so far"} {
			w = post(t, h, "act", form(t, w.Body.String()))
			require.Contains(t, w.Body.String(), made)
		}
		require.Equal(t, 20*time.Second, time.Since(start))
		require.Equal(t, http.StatusSeeOther, post(t, h, "act", form(t, w.Body.String())).Code)

		w = post(t, h, "act?all", url.Values{"do": {"cancel"}})
		require.Contains(t, w.Body.String(), "It ended with an error: no answer in time")
		w = post(t, h, "act", url.Values{"do": {"cancel"}, "id": {"waits"}})
		require.Contains(t, w.Body.String(), "<dd><bdi>no answer in time</bdi></dd>")
	})
}

func TestAMountedPageStaysUnderItsPath(t *testing.T) {
	f := newFake(many(2)...)
	mux := http.NewServeMux()
	mux.Handle("/ops/jobs/", http.StripPrefix("/ops/jobs", handler(t, f)))
	server := httptest.NewServer(mux)
	defer server.Close()
	for _, row := range []struct{ do, from, want string }{
		{"replay", "job", "/ops/jobs/job"}, {"purge", "", "/ops/jobs/"},
	} {
		answer, err := server.Client().PostForm(server.URL+"/ops/jobs/act", url.Values{"do": {row.do}, "id": {"dead-0001"}, "from": {row.from}})
		require.NoError(t, err)
		require.NoError(t, answer.Body.Close())
		require.Equal(t, http.StatusOK, answer.StatusCode)
		require.Equal(t, row.want, answer.Request.URL.Path)
		if job := f.jobs["dead-0001"]; job != nil {
			*job = dead("dead-0001", time.Second)
		}
	}
}

func FuzzForm(f *testing.F) {
	for _, seed := range []string{
		"do=purge&id=dead-0001&from=job", "do=replay&all=1&from=job&view=status%3Ddead_letter&before=2026-01-01T00:00:00Z&made=-5",
		"do=cancel&id=&id=a&view=at%3Dx.y", "do=purge&all&view=q%3Da", "%zz",
	} {
		f.Add(seed)
	}
	f.Fuzz(func(t *testing.T, form string) {
		jobs := newFake(append(many(3), waiting("waits", time.Minute))...)
		h := handler(t, jobs)
		for _, path := range []string{"confirm", "act"} {
			r := httptest.NewRequest(http.MethodPost, "http://localhost/"+path, strings.NewReader(form))
			r.Header.Set("Content-Type", "application/x-www-form-urlencoded")
			w := httptest.NewRecorder()
			h.ServeHTTP(w, r)
			require.Contains(t, []int{http.StatusOK, http.StatusSeeOther, http.StatusBadRequest}, w.Code)
			if to := w.Header().Get("Location"); to != "" {
				require.Regexp(t, `^(\./|job\?)`, to, "an answer leads nowhere else")
			}
			if path == "confirm" {
				require.Len(t, jobs.jobs, 4)
			}
		}
	})
}
