package jobsui_test

import (
	"fmt"
	"html"
	"io/fs"
	"net/http"
	"net/http/httptest"
	"net/url"
	"os"
	"regexp"
	"runtime"
	"strconv"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/retrygo/retry"
	"github.com/retrygo/retry/retryjob"
	"github.com/retrygo/retry/retryjob/jobsui"
)

// rows returns the IDs that a page lists.
func rows(body string) (ids []string) {
	for _, found := range regexp.MustCompile(`name="id" value="([^"]*)" aria-label`).FindAllStringSubmatch(body, -1) {
		ids = append(ids, html.UnescapeString(found[1]))
	}
	return ids
}

// link returns the address of the link with a text.
func link(t testing.TB, body, text string) string {
	t.Helper()
	found := regexp.MustCompile(`href="([^"]*)"[^>]*>` + regexp.QuoteMeta(text) + `<`).FindStringSubmatch(body)
	require.NotNil(t, found, "no link %s", text)
	return html.UnescapeString(found[1])
}

func TestOptionsAreValidated(t *testing.T) {
	_, err := jobsui.New(jobsui.Options{Hosts: []string{"a.example:80", "", "b.example"}})
	require.EqualError(t, err, `jobsui: Options.Admin <nil> must be set; Options.Access <nil> must be set; `+
		`Options.Hosts[0] "a.example:80" is not a host name without a port; Options.Hosts[1] "" is not a host name without a port`)
}

func TestRequestsThatAreRefused(t *testing.T) {
	for name, row := range map[string]struct {
		method, path string
		change       func(*http.Request)
		status       int
	}{
		"another name (DNS rebinding)":        {"GET", "/", func(r *http.Request) { r.Host = "evil.example:8080" }, http.StatusForbidden},
		"a name that begins like ours":        {"GET", "/", func(r *http.Request) { r.Host = "localhost.evil.example" }, http.StatusForbidden},
		"an address of the network":           {"GET", "/style.css", func(r *http.Request) { r.Host = "192.168.0.1:8080" }, http.StatusForbidden},
		"no name":                             {"GET", "/", func(r *http.Request) { r.Host = "" }, http.StatusForbidden},
		"a form of another site":              {"POST", "/act", func(r *http.Request) { r.Header.Set("Sec-Fetch-Site", "cross-site") }, http.StatusForbidden},
		"a form of another host of this site": {"POST", "/act", func(r *http.Request) { r.Header.Set("Sec-Fetch-Site", "same-site") }, http.StatusForbidden},
		"a form of another origin, by an old browser": {"POST", "/act", func(r *http.Request) {
			r.Header.Del("Sec-Fetch-Site")
			r.Header.Set("Origin", "http://evil.example")
		}, http.StatusForbidden},
		"an action by GET":           {"GET", "/act?do=purge&id=dead-1", func(*http.Request) {}, http.StatusMethodNotAllowed},
		"a confirmation by GET":      {"GET", "/confirm?do=purge&id=dead-1", func(*http.Request) {}, http.StatusMethodNotAllowed},
		"a file that does not exist": {"GET", "/handler.go", func(*http.Request) {}, http.StatusNotFound},
		"a template":                 {"GET", "/assets/list.html", func(*http.Request) {}, http.StatusNotFound},
	} {
		t.Run(name, func(t *testing.T) {
			f := newFake(dead("dead-1", time.Minute))
			r := httptest.NewRequest(row.method, "http://127.0.0.1:8080"+row.path, strings.NewReader("do=purge&id=dead-1"))
			r.Header.Set("Content-Type", "application/x-www-form-urlencoded")
			r.Header.Set("Sec-Fetch-Site", "same-origin")
			row.change(r)
			w := httptest.NewRecorder()
			handler(t, f).ServeHTTP(w, r)
			require.Equal(t, row.status, w.Code, w.Body)
			require.Contains(t, f.jobs, "dead-1")
			require.Empty(t, w.Header().Get("Access-Control-Allow-Origin"))
		})
	}
}

func TestNamesThatAreAnswered(t *testing.T) {
	h := handler(t, newFake())
	for _, host := range []string{"localhost", "localhost:8080", "127.0.0.1:8080", "127.8.9.1", "[::1]:8080", "[::1]", "LocalHost:8080", "localhost.", "jobs.example.org", "JOBS.example.org.:443"} {
		r := httptest.NewRequest(http.MethodGet, "http://127.0.0.1/", nil)
		r.Host = host
		w := httptest.NewRecorder()
		h.ServeHTTP(w, r)
		require.Equal(t, http.StatusOK, w.Code, host)
		policy := w.Header().Get("Content-Security-Policy")
		require.Contains(t, policy, "default-src 'none'; style-src 'self'; script-src 'self';")
		require.Contains(t, policy, "frame-ancestors 'none'")
		require.NotContains(t, policy, "unsafe")
		require.Equal(t, "nosniff", w.Header().Get("X-Content-Type-Options"))
		require.Equal(t, "no-store", w.Header().Get("Cache-Control"))
	}
}

// TestAssetsKeepTheContentPolicy holds that the page works without a network and under its own policy.
func TestAssetsKeepTheContentPolicy(t *testing.T) {
	files, err := fs.Glob(os.DirFS("assets"), "*")
	require.NoError(t, err)
	require.Len(t, files, 9)
	for _, name := range files {
		data, err := os.ReadFile("assets/" + name)
		require.NoError(t, err)
		text := strings.ReplaceAll(string(data), "http://www.w3.org/2000/svg", "")
		require.NotRegexp(t, `(https?:)?//[a-z][\w.-]*\.[a-z]+`, text, name)
		require.NotRegexp(t, `<script>|\sstyle="|\son\w+="|eval\(|innerHTML =`, text, name)
	}
}

func TestTextsOfJobsAreOnlyText(t *testing.T) {
	evil := `<script>alert(1)</script>"'&\` + "\u202e"
	job := dead(evil, time.Minute)
	job.Kind, job.Policy, job.Correlation, job.Payload = evil, evil, evil, []byte(`"<script>alert(2)</script>"`)
	job.History[0].Err, job.History[0].Code = evil, evil
	h := handler(t, newFake(job))
	for _, w := range []*httptest.ResponseRecorder{
		get(t, h, "?q=%3Cscript%3E"),
		get(t, h, "?policy="+url.QueryEscape(evil)),
		get(t, h, "job?"+url.Values{"id": {evil}}.Encode()),
		get(t, h, "job?"+url.Values{"id": {evil + "2"}}.Encode()),
		post(t, h, "confirm", url.Values{"do": {"purge"}, "id": {evil}}),
		post(t, h, "confirm?all", url.Values{"do": {"purge"}, "view": {url.Values{"policy": {evil}}.Encode()}}),
		post(t, h, "act", url.Values{"do": {"cancel"}, "id": {evil}}),
	} {
		require.NotContains(t, w.Body.String(), "<script>", w.Body)
		require.NotContains(t, w.Body.String(), "ZgotmplZ")
		require.Contains(t, w.Body.String(), "&lt;script&gt;")
		require.NotContains(t, regexp.MustCompile(`<[^>]*>`).ReplaceAllString(w.Body.String(), ""), "\u202e", "a text is not reordered")
	}
	require.Equal(t, []string{evil}, rows(get(t, h, "?q=ALERT").Body.String()))
}

func TestAListSelectsWhatTheAddressSays(t *testing.T) {
	mail := dead("mail", 2*time.Hour)
	mail.Kind, mail.Reason, mail.Correlation = "mail", retry.TerminalError, "Trace-7"
	h := handler(t, newFake(dead("new", time.Minute), mail, waiting("waits", time.Hour)))
	for address, want := range map[string][]string{
		"":                                    {"new", "waits", "mail"},
		"?status=dead_letter":                 {"new", "mail"},
		"?status=waiting_retry&status=leased": {"waits"},
		"?reason=terminal_error":              {"mail"},
		"?kind=mail&policy=standard":          {"mail"},
		"?policy=other":                       nil,
		"?since=30m":                          {"new"},
		"?until=30m":                          {"waits", "mail"},
		"?since=2000-01-01T00:00:00Z&since=":  {"new", "waits", "mail"},
		"?q=trace-7":                          {"mail"},
		"?q=REFUSED":                          {"new", "mail"},
		"?q=503&status=waiting_retry":         {"waits"},
		"?q=%22order%22%3A%22new":             {"new"},
		"?q=waits":                            {"waits"},
		"?q=nothing":                          nil,
		"?unknown=x":                          {"new", "waits", "mail"},
	} {
		w := get(t, h, address)
		require.Equal(t, http.StatusOK, w.Code, address)
		require.Equal(t, want, rows(w.Body.String()), address)
	}
	body := get(t, h, "?q=waits").Body.String()
	require.Contains(t, body, "This job has that ID.")
	require.Equal(t, []string{"waits"}, rows(get(t, h, link(t, body, "Search the texts of all jobs for it")).Body.String()))
}

func TestAFilterThatIsNotUnderstoodSelectsNothing(t *testing.T) {
	f := newFake(many(3)...)
	h := handler(t, f)
	for address, text := range map[string]string{
		"?status=running":                    "The filter is not understood",
		"?reason=because":                    "The filter is not understood",
		"?since=yesterday":                   "is neither a time ago (90m, 24h, 7d) nor a time as in RFC 3339 (2",
		"?until=-1h":                         "is neither a time ago",
		"?since=1h&until=2h":                 "is not after since 1h",
		"?at=x":                              "The filter is not understood",
		"?kind=" + strings.Repeat("k", 2000): "The filter is not understood",
	} {
		w := get(t, h, address)
		require.Equal(t, http.StatusBadRequest, w.Code, address)
		require.Contains(t, w.Body.String(), text)
		require.Empty(t, rows(w.Body.String()))
		for _, path := range []string{"confirm?all", "act?all"} {
			w = post(t, h, path, url.Values{"do": {"purge"}, "view": {address[1:]}})
			require.Equal(t, http.StatusBadRequest, w.Code)
		}
	}
	require.Len(t, f.jobs, 3)
}

func TestPagesLeadToEveryJobOnce(t *testing.T) {
	jobs := many(160)
	for i := 30; i < 140; i++ { // two pages that ended in the same instant
		jobs[i].Ended = jobs[30].Ended
	}
	h := handler(t, newFake(jobs...))
	var seen []string
	var addresses []string
	for address := "?policy=standard"; ; {
		addresses = append(addresses, address)
		body := get(t, h, address).Body.String()
		seen = append(seen, rows(body)...)
		if !strings.Contains(body, ">Older<") {
			break
		}
		address = link(t, body, "Older")
		require.Contains(t, address, "policy=standard")
	}
	require.Len(t, addresses, 4)
	require.Len(t, seen, 160)
	want := map[string]bool{}
	for _, id := range seen {
		want[id] = true
	}
	require.Len(t, want, 160)

	require.Equal(t, seen[:50], rows(get(t, h, link(t, get(t, h, addresses[2]).Body.String(), "Newest")).Body.String()))
}

func TestAPageGoesOnAfterAJobThatHasChanged(t *testing.T) {
	f := newFake(many(60)...)
	h := handler(t, f)
	older := link(t, get(t, h, "").Body.String(), "Older")
	require.NoError(t, f.Replay(t.Context(), "dead-0049"))
	body := get(t, h, older).Body.String()
	require.Equal(t, "dead-0050", rows(body)[0])
	require.Len(t, rows(body), 10)
}

func TestAMomentOfMoreJobsThanAPageReads(t *testing.T) {
	synctest.Test(t, func(t *testing.T) { // counts and searches have a time limit
		jobs := many(7_000)
		for i := range jobs {
			jobs[i].Ended = jobs[0].Ended
		}
		h := handler(t, newFake(jobs...))
		at := url.Values{"at": {strconv.FormatInt(jobs[0].Ended.UnixMicro(), 36) + ".dead-0100"}}
		require.Equal(t, "dead-0099", rows(get(t, h, "?"+at.Encode()).Body.String())[0], "the last job of a page is found however deep it is")
		at.Set("at", strconv.FormatInt(jobs[0].Ended.UnixMicro(), 36)+".gone")
		require.Equal(t, "dead-6999", rows(get(t, h, "?"+at.Encode()).Body.String())[0], "and if it is gone its moment is shown again")
	})
}

func TestASearchIsBoundedAndGoesOn(t *testing.T) {
	synctest.Test(t, func(t *testing.T) { // counts and searches have a time limit
		jobs := many(5_100)
		jobs[5_050].Correlation = "needle"
		f := newFake(jobs...)
		h := handler(t, f)
		get(t, h, "") // counts
		f.listed = 0
		body := get(t, h, "?q=needle").Body.String()
		require.Equal(t, 5_000, f.listed)
		require.Contains(t, body, "No such job so far.")
		require.Contains(t, body, "Looked at 5,000 jobs.")
		require.NotContains(t, body, "replay all…", "what matches a search is not known")
		require.Equal(t, []string{"dead-5050"}, rows(get(t, h, link(t, body, "Search on")).Body.String()))
	})
}

func TestASlowListIsCut(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f := newFake(many(400)...)
		f.slow = 11 * time.Millisecond
		h := handler(t, f)
		start := time.Now()
		body := get(t, h, "?q=dead-03").Body.String()
		require.Equal(t, 2*1001*time.Millisecond, time.Since(start), "a second for the counts, and one for the search to the end of a job")
		require.Contains(t, body, "Looked at 90 jobs.")

		f.slow = 11 * time.Second
		body = get(t, h, "").Body.String()
		require.Contains(t, body, "The jobs could not be listed: no answer in time.")
	})
}

func TestABrokenEngineIsShown(t *testing.T) {
	f := newFake()
	f.broken = errBroken
	h, err := jobsui.New(jobsui.Options{Admin: f, Access: anyone, ErrorText: func(err error) string {
		require.ErrorIs(t, err, errBroken)
		return "in other words"
	}})
	require.NoError(t, err)
	for address, text := range map[string]string{
		"":         "The jobs could not be listed: in other words.",
		"?q=a":     "The jobs could not be listed: in other words.",
		"job?id=a": "The job could not be read: in other words.",
	} {
		w := get(t, h, address)
		require.Equal(t, http.StatusServiceUnavailable, w.Code)
		require.Contains(t, w.Body.String(), text)
	}
	w := post(t, h, "act?all", url.Values{"do": {"replay"}})
	require.Contains(t, w.Body.String(), "It ended with an error: in other words")
}

func TestCountsByStatus(t *testing.T) {
	f := newFake(dead("a", time.Minute), dead("b", 2*time.Minute), dead("c", 3*time.Hour), waiting("w", time.Minute))
	body := get(t, handler(t, f), "").Body.String()
	require.Contains(t, body, `>all <b>4</b>`)
	require.Contains(t, body, `>dead_letter <b>3</b>`)
	require.Contains(t, body, `>leased <b>0</b>`)
	require.Equal(t, 2+12, f.counted, "the totals and the errors, and each five minutes of the last hour, once")
}

func TestCountsAreKeptForAWhile(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f := newFake(many(3)...)
		h := handler(t, f)
		get(t, h, "?status=leased")
		delete(f.jobs, "dead-0000")
		require.Contains(t, get(t, h, "?status=leased").Body.String(), `>dead_letter <b>3</b>`)
		time.Sleep(6 * time.Second)
		require.Contains(t, get(t, h, "?status=leased").Body.String(), `>dead_letter <b>2</b>`)

		f.slow = 2 * time.Second
		time.Sleep(6 * time.Second)
		for _, took := range []time.Duration{2 * time.Second, 0} { // the fake looks at its context after its sleep
			start := time.Now()
			require.Contains(t, get(t, h, "?status=leased").Body.String(), "The jobs could not be counted: no answer in time.")
			require.Equal(t, took, time.Since(start), "a count that takes too long is not repeated by each request")
		}
	})
}

func TestAJobShowsItsTimeline(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		job := dead("one", time.Minute)
		job.Correlation, job.Replays = "trace-9", 2
		gone := dead("gone", time.Minute)
		gone.Attempts, gone.History = 3, gone.History[:1]
		gone.History[0].End, gone.History[0].Err = time.Time{}, "a\x1b[2Jb"
		running := waiting("running", time.Minute)
		running.Status, running.Due, running.Attempts = retryjob.Leased, time.Time{}, 2
		running.History = append(running.History, retryjob.Attempt{Number: 2, Start: time.Now().Add(-3 * time.Second), Status: retryjob.Leased})
		late := dead("late", time.Minute)
		late.History[0].End, late.History[0].Late = late.History[0].Start.Add(2*time.Minute), true
		h := handler(t, newFake(job, gone, running, late))

		body := get(t, h, "job?id=one").Body.String()
		for _, part := range []string{
			"trace-9", "attempts_exhausted", "503 Service Unavailable", "connection refused", ">2s</td>", ">59m57s</td>",
			"&#34;order&#34;: &#34;one&#34;", `<dt>replays</dt><dd><bdi>2</bdi>`, `value="replay"`, `value="purge"`,
		} {
			require.Contains(t, body, part)
		}
		require.NotContains(t, body, `value="cancel"`, "what cannot be done is not offered")
		body = get(t, h, "job?id=gone").Body.String()
		require.Contains(t, body, ">lost</td>")
		require.Contains(t, body, "a\\u001b[2Jb")
		require.NotContains(t, body, "\x1b")
		require.Contains(t, body, `<th scope="row">2-3</th>`)
		require.Contains(t, body, "not in the record: the worker was lost")
		body = get(t, h, "job?id=late").Body.String()
		require.Contains(t, body, ">2m0s, late</td>")
		require.NotContains(t, body, ">59m57s</td>", "its wait was before its end")
		body = get(t, h, "job?id=running").Body.String()
		require.Contains(t, body, "3s so far")
		live := link(t, body, "Go live")
		require.Equal(t, "job?id=running", link(t, get(t, h, live).Body.String(), "Live: stop"))
		require.Contains(t, body, `value="cancel"`)
		require.NotContains(t, body, `value="purge"`)

		w := get(t, h, "job?id=nobody")
		require.Equal(t, http.StatusNotFound, w.Code)
		require.Contains(t, w.Body.String(), "There is no job nobody: unknown job: never known here.")
	})
}

func TestNoPayloadOfAListIsHeldOrCopied(t *testing.T) {
	synctest.Test(t, func(t *testing.T) { // a search ends after a second
		jobs := many(200)
		payload := []byte(`"` + strings.Repeat("x", 8<<20) + `"`)
		for i := range jobs {
			jobs[i].Payload = payload
		}
		h := handler(t, newFake(jobs...))
		var before, after runtime.MemStats
		runtime.ReadMemStats(&before)
		require.Len(t, rows(get(t, h, "?q=xxx").Body.String()), 50)
		runtime.ReadMemStats(&after)
		require.Less(t, after.TotalAlloc-before.TotalAlloc, uint64(32<<20), "64 KiB of each of 51 payloads are searched")
	})
}

func FuzzAddress(f *testing.F) {
	for _, seed := range []string{
		"status=dead_letter&q=a", "at=abc.dead-0001&at=.x&at=zzzzzzzzzzzzz.y", "since=7d&until=2026-01-01T00:00:00Z", "done=purge&n=9&live=1",
		"since=9999999d", "at=-1y2p0ij32e8e7.a", "id=dead-0001", "%zz",
	} {
		f.Add(seed)
	}
	h := handler(f, newFake(many(60)...))
	f.Fuzz(func(t *testing.T, query string) {
		for _, path := range []string{"/", "/job"} {
			r := httptest.NewRequest(http.MethodGet, "http://localhost"+path, nil)
			r.URL.RawQuery = query
			w := httptest.NewRecorder()
			h.ServeHTTP(w, r)
			require.Contains(t, []int{http.StatusOK, http.StatusBadRequest, http.StatusNotFound}, w.Code)
			for _, found := range regexp.MustCompile(`(?:href|action)="([^"]*)"`).FindAllStringSubmatch(w.Body.String(), -1) {
				u, err := url.Parse(html.UnescapeString(found[1]))
				require.NoError(t, err)
				require.Empty(t, u.Host+u.Scheme, "a link leaves the page")
			}
		}
	})
}

// TestAScheduleOfSecondsDoesNotFillThePage: its newest success is shown, and the others only on request.
func TestAScheduleOfSecondsDoesNotFillThePage(t *testing.T) {
	var jobs []retryjob.Info
	for n := range 60 {
		job := dead(fmt.Sprint("recurring:tick:beat:", n), time.Duration(60-n)*time.Second)
		job.Status, job.Reason, job.Tags = retryjob.Succeeded, 0, []string{"recurring", "recurring_tick"}
		jobs = append(jobs, job)
	}
	h := handler(t, newFake(append(jobs, dead("recurring:other:beat:1", time.Hour), dead("a", 2*time.Hour))...))
	body := get(t, h, "").Body.String()
	require.Equal(t, []string{"recurring:tick:beat:59", "recurring:other:beat:1", "a"}, rows(body))
	require.Contains(t, body, `59 earlier successes of recurring jobs are left out. <a href="./?routine=1">`)
	for _, address := range []string{"?routine=1", "?status=succeeded", "?tag=recurring_tick"} {
		require.Len(t, rows(get(t, h, address).Body.String()), 50, address)
	}
}
