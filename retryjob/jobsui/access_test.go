package jobsui_test

import (
	"encoding/json"
	"fmt"
	"html"
	"net/http"
	"net/url"
	"regexp"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/retrygo/retry/retryconf"
	"github.com/retrygo/retry/retryjob"
	"github.com/retrygo/retry/retryjob/jobsui"
)

func TestARequestMayDoWhatAccessSays(t *testing.T) {
	for name, row := range map[string]struct {
		access       jobsui.Access
		list, change int
	}{
		"nothing":  {jobsui.NoAccess, http.StatusForbidden, http.StatusForbidden},
		"look":     {jobsui.ReadOnly, http.StatusOK, http.StatusForbidden},
		"change":   {jobsui.ReadWrite, http.StatusOK, http.StatusSeeOther},
		"no level": {7, http.StatusForbidden, http.StatusForbidden},
	} {
		t.Run(name, func(t *testing.T) {
			f := newFake(dead("a", time.Minute))
			h, err := jobsui.New(jobsui.Options{Admin: f, Access: func(*http.Request) jobsui.Access { return row.access }})
			require.NoError(t, err)
			for _, address := range []string{"", "job?id=a"} {
				w := get(t, h, address)
				require.Equal(t, row.list, w.Code)
				require.Equal(t, row.list == http.StatusOK, strings.Contains(w.Body.String(), "connection refused"))
				require.Equal(t, row.access == jobsui.ReadWrite, strings.Contains(w.Body.String(), "<button name=\"do\""), address)
				require.Equal(t, row.access == jobsui.ReadWrite && address == "", strings.Contains(w.Body.String(), "type=\"checkbox\""), address)
			}
			require.Equal(t, row.list, get(t, h, "style.css").Code)
			for _, path := range []string{"confirm", "act", "confirm?all", "act?all"} {
				for _, do := range []string{"replay", "cancel", "purge"} {
					w := post(t, h, path, url.Values{"do": {do}, "id": {"a"}})
					require.Equal(t, row.change == http.StatusForbidden, w.Code == http.StatusForbidden, path)
				}
			}
			require.Equal(t, row.change == http.StatusForbidden, f.jobs["a"] != nil)
		})
	}
}

func TestSecretsInAPayloadAreHidden(t *testing.T) {
	for name, row := range map[string]struct{ payload, want string }{
		"nothing secret":  {`{"to":"a","n":1,"list":["x"]}`, `{"to":"a","n":1,"list":["x"]}`},
		"a password":      {`{"user":"u","password":"hush \"x\", hush"}`, `{"user":"u","password":"(hidden)"}`},
		"other spellings": {`{"apiKey":"hush","API_KEY":"hush","x-api-key":"hush","accessToken":"hush"}`, `{"apiKey":"(hidden)","API_KEY":"(hidden)","x-api-key":"(hidden)","accessToken":"(hidden)"}`},
		"short names": {
			`{"pwd":"hush","pass":"hush","passphrase":"hush","auth":"hush","bearer":"hush","jwt":"hush","session":"hush","sessionId":"hush","cvv":123,"pin":1234,"private.key":"hush","sig":"hush","otp":"hush"}`,
			`{"pwd":"(hidden)","pass":"(hidden)","passphrase":"(hidden)","auth":"(hidden)","bearer":"(hidden)","jwt":"(hidden)","session":"(hidden)","sessionId":"(hidden)","cvv":"(hidden)","pin":"(hidden)","private.key":"(hidden)","sig":"(hidden)","otp":"(hidden)"}`,
		},
		"words that have them within": {`{"author":"ann","compass":"n","spinner":1,"keyboard":"k","key":"order-7","significant":1}`, `{"author":"ann","compass":"n","spinner":1,"keyboard":"k","key":"order-7","significant":1}`},
		"a name that is a value": {
			`[{"name":"Authorization","value":"hush"},{"value":"hush","key":"X-Api-Key"},{"name":"Accept","value":"json"}]`,
			`[{"name":"Authorization","value":"(hidden)"},{"value":"(hidden)","key":"X-Api-Key"},{"name":"Accept","value":"json"}]`,
		},
		"a signed URL":        {`["https://host/f?sig=hush&se=1","https://host/cb#access_token=hush&state=1"]`, `["https://host/f?sig=(hidden)\u0026se=1","https://host/cb#access_token=(hidden)\u0026state=1"]`},
		"a form":              {`{"body":"user=u&password=hush&n=2"}`, `{"body":"user=u\u0026password=(hidden)\u0026n=2"}`},
		"a data source":       {`{"db":"root:hush@tcp(127.0.0.1:3306)/x"}`, `{"db":"root:(hidden)@tcp(127.0.0.1:3306)/x"}`},
		"a header":            {`{"headers":{"Authorization":["Bearer hush"],"Cookie":["a=hush","b"]}}`, `{"headers":{"Authorization":"(hidden)","Cookie":"(hidden)"}}`},
		"numbers and words":   {`{"token" : 12345, "secret":true,"n":2}`, `{"token" : "(hidden)", "secret":true,"n":2}`},
		"an object":           {`{"credentials":{"id":"hush"},"n":2}`, `{"credentials":"(hidden)","n":2}`},
		"a URL":               {`{"url":"https://me:hush@host/path"}`, `{"url":"https://me:(hidden)@host/path"}`},
		"a text that is cut":  {`{"password":"hu`, `{"password":"(hidden)"`},
		"an escape that is":   {`{"password":"hu\`, `{"password":"(hidden)"`},
		"a list that is":      {`{"tokens":["hush`, `{"tokens":"(hidden)"`},
		"a text about tokens": {`{"text":"a token is no secret"}`, `{"text":"a token is no secret"}`},
		"objects in objects":  {`{"credentials":{"aws":{"key":"hush"},"list":[[{"v":"hush"}]]},"n":2}`, `{"credentials":"(hidden)","n":2}`},
		"JSON within a text":  {`{"body":"{\"password\":\"hush\",\"n\":\"{\\\"token\\\":1}\"}","n":2}`, `{"body":"{\"password\":\"(hidden)\",\"n\":\"{\\\"token\\\":\\\"(hidden)\\\"}\"}","n":2}`},
		"an escaped name":     {`{"pass\u0077ord":"hush"}`, `{"pass\u0077ord":"(hidden)"}`},
		"a parameter":         {`["https://host/path?a=1&api_key=hush&b=2#c","/path?Signature=hush"]`, `["https://host/path?a=1\u0026api_key=(hidden)\u0026b=2#c","/path?Signature=(hidden)"]`},
		"two of them":         {`[{"secret":"hush","n":1},{"n":2,"secret":["hush"]}]`, `[{"secret":"(hidden)","n":1},{"n":2,"secret":"(hidden)"}]`},
		"JSON that is cut":    {`{"n":1,"body":"{\"password\":\"hu`, `{"n":1,"body"(hidden)`},
		"a URL that is cut":   {`{"url":"https://me:hu`, `{"url"(hidden)`},
		"a name that is cut":  {`{"n":1,"passw`, `{"n":1(hidden)`},
		"a text like another": {`{"text":"and so o`, `{"text":"and so o`},
		"no value":            {`{"token":`, `{"token":"(hidden)"`},
		"no JSON":             {`password=hush`, `(hidden)`},
		"nothing":             {``, ``},
	} {
		t.Run(name, func(t *testing.T) {
			require.Equal(t, row.want, string(jobsui.RedactSecrets(json.RawMessage(row.payload))))
		})
	}
	job := dead("a", time.Minute)
	job.Payload = json.RawMessage(`{"order":"o-17","password":"hush"}`)
	admin := newFake(job)
	h := handler(t, admin)
	body := get(t, h, "job?id=a").Body.String()
	require.Contains(t, body, "o-17")
	require.NotContains(t, body, "hush")
	require.Equal(t, []string{"a"}, rows(get(t, h, "?q=o-17").Body.String()))
	require.Empty(t, rows(get(t, h, "?q=hush").Body.String()), "a search must not tell what is hidden")
	require.JSONEq(t, `{"order":"o-17","password":"hush"}`, string(admin.jobs["a"].Payload))

	own, err := jobsui.New(jobsui.Options{Admin: admin, Access: anyone, Redact: func(json.RawMessage) json.RawMessage { return nil }})
	require.NoError(t, err)
	require.NotContains(t, get(t, own, "job?id=a").Body.String(), "o-17")
}

// TestSecretsInAnErrorAreHidden: on the pages, and from a search.
func TestSecretsInAnErrorAreHidden(t *testing.T) {
	for _, row := range []struct{ name, text, want string }{
		{"nothing secret", "dial tcp 10.0.0.1:443: connect: connection refused", "dial tcp 10.0.0.1:443: connect: connection refused"},
		{"words about secrets", "auth: invalid token: password authentication failed for user \"u\"", "auth: invalid token: password authentication failed for user \"u\""},
		{"a bearer token", "401: Authorization: Bearer hush.123 was refused", "401: Authorization: (hidden)"},
		{"a bearer token alone", "refused bearer hush_123, sorry", "refused bearer (hidden), sorry"},
		{"a word after bearer", "no bearer authentication here", "no bearer authentication here"},
		{"a parameter", "connect host=db password=hush user=u: refused", "connect host=db password=(hidden) user=u: refused"},
		{"a quoted parameter", `bad DSN "user=u pwd='hu sh'"`, `bad DSN "user=u pwd=(hidden)"`},
		{"a data source", "open root:hush@tcp(db:3306)/x: refused", "open root:(hidden)@tcp(db:3306)/x: refused"},
		{"a URL", "parse postgres://u:hush@db/x: bad", "parse postgres://u:(hidden)@db/x: bad"},
		{"JSON in a text", `422: {"n":1,"client_secret":"hush"}`, `422: {"n":1,"client_secret":"(hidden)"}`},
		{"JSON that is quoted", `unexpected answer "{\"token\":\"hush\"}"`, `unexpected answer "{\"token\":\"(hidden)\"}"`},
		{"a web token", "bad eyJhbGciOiJIUzI1NiJ9.eyJzdWIiOiIxIn0.c2ln", "bad (hidden)"},
		{"a key with a known form", "key sk_live_hush12 is revoked", "key (hidden) is revoked"},
		{"a private key", "bad -----BEGIN RSA PRIVATE KEY-----\nhush\n-----END RSA PRIVATE KEY----- here", "bad (hidden) here"},
	} {
		t.Run(row.name, func(t *testing.T) {
			require.Equal(t, row.want, jobsui.RedactText(row.text))
			require.Equal(t, row.want, jobsui.RedactText(row.want))
		})
	}
	job := dead("a", time.Minute)
	job.History = []retryjob.Attempt{{Number: 1, Status: retryjob.DeadLettered, Err: "answer 17: token=hush"}}
	job.Earlier = []retryjob.Life{{Status: retryjob.DeadLettered, Err: "token=hush"}}
	h := handler(t, newFake(job))
	for _, page := range []string{"job?id=a", "./"} {
		body := get(t, h, page).Body.String()
		require.Contains(t, body, "answer 17: token=(hidden)", page)
		require.NotContains(t, body, "hush", page)
	}
	require.Equal(t, []string{"a"}, rows(get(t, h, "?q=answer").Body.String()))
	require.Empty(t, rows(get(t, h, "?q=hush").Body.String()))
}

// FuzzRedactText checks that nothing is left to hide.
func FuzzRedactText(f *testing.F) {
	for _, seed := range []string{"token=x&a=b", "Bearer abc.def", `{"password":"x"}`, "u:p@tcp(h)", "https://a:b@c?sig=d", "x-api-key: 7"} {
		f.Add(seed)
	}
	f.Fuzz(func(t *testing.T, text string) {
		shown := jobsui.RedactText(text)
		require.Equal(t, shown, jobsui.RedactText(shown))
	})
}

// FuzzRedactSecrets checks that JSON stays JSON, and that the value of a telling name is hidden wherever the payload is cut.
func FuzzRedactSecrets(f *testing.F) {
	for _, seed := range []string{`{"a":[1,{"b":"c?token=d"}],"e":null}`, `"{\"password\":\"x\"}"`, `[`, `{"a":"https://b:c@d"}`, `{"cookie":{}}`, "\xff", `{"a"`, `[1,]`} {
		f.Add(seed, 10)
	}
	f.Fuzz(func(t *testing.T, text string, cut int) {
		shown := jobsui.RedactSecrets([]byte(text))
		require.Equal(t, string(shown), string(jobsui.RedactSecrets(shown)), "nothing is left to hide")
		if !json.Valid([]byte(text)) || strings.Contains(text, "hush") {
			return
		}
		require.True(t, json.Valid(shown), "%s", shown)
		body, err := json.Marshal(map[string]json.RawMessage{"api_key": json.RawMessage(`{"x":["hush"]}`), "z": json.RawMessage(text)})
		require.NoError(t, err)
		within, err := json.Marshal(map[string]string{"body": string(body)})
		require.NoError(t, err)
		for _, payload := range [][]byte{body, within} {
			payload = payload[:min(max(cut, 0), len(payload))]
			require.NotContains(t, string(jobsui.RedactSecrets(payload)), "hush", "%s", payload)
		}
	})
}

// TestAConfirmationListsTheJobs: the jobs that an action is about are listed with their errors, before it is done.
func TestAConfirmationListsTheJobs(t *testing.T) {
	h := handler(t, newFake(many(60)...))
	body := post(t, h, "confirm", url.Values{"do": {"purge"}, "id": {"dead-0007", "dead-0059", "gone"}}).Body.String()
	require.Contains(t, body, "Purge 3 jobs?")
	require.Contains(t, body, `<bdi>dead-0007</bdi>`)
	require.Contains(t, body, `<bdi>dead-0059</bdi>`)
	require.Equal(t, 2, strings.Count(body, "connection refused"))
	body = post(t, h, "confirm?all", url.Values{"do": {"purge"}}).Body.String()
	require.Equal(t, 50, strings.Count(body, "connection refused"))
	require.Contains(t, body, "and 10 more")
	require.Less(t, strings.Index(body, `value="purge"`), strings.Index(body, "connection refused"), "the question is before the list")
}

func TestDeadLettersAreGroupedByTheirError(t *testing.T) {
	jobs := many(5)
	jobs[0].Kind, jobs[3].Kind = "mail", "mail"
	jobs[1].History[1].Code = "503"
	h := handler(t, newFake(append(jobs, waiting("w", time.Minute))...))
	body := get(t, h, "").Body.String()
	require.Contains(t, body, `<bdi>503</bdi></a></th><td data-label="Kind"><bdi>webhook</bdi></td>`)
	require.Contains(t, body, `&amp;kind=mail&amp;reason=attempts_exhausted&amp;status=dead_letter"><bdi>`)
	require.Contains(t, body, `<a href="job?id=dead-0002"><bdi>dead-0002</bdi></a>`, "the newest without a code")
	require.NotContains(t, body, "most frequent")
	require.NotContains(t, get(t, handler(t, newFake(waiting("w", time.Minute))), "").Body.String(), "Dead letters by cause")
	jobs = many(7)
	for i := range jobs {
		jobs[i].Kind = fmt.Sprintf("kind-%d", i)
	}
	body = get(t, handler(t, newFake(jobs...)), "").Body.String()
	require.Contains(t, body, "The most frequent of 7 causes.")
	require.Len(t, cells(body, `<a href="\./\?cause=.*?kind=(kind-\d)`), 5)
}

func TestTheFieldsOfAJobAreShown(t *testing.T) {
	job := dead("a", time.Minute)
	job.Spec = &retryconf.Spec{Name: "theirs"}
	job.Queue, job.Priority, job.Tags, job.TTL, job.BudgetKey = "bulk", 3, []string{"eu_west", "large", "recurring_report_daily"}, time.Hour, "tenant-7"
	h := handler(t, newFake(job, dead("b", time.Minute)))
	body := get(t, h, "job?id=a").Body.String()
	for _, text := range []string{"bulk", ">3<", "eu_west, large", "1h0m0s", "tenant-7", `<dt>spec</dt><dd><bdi>{&#34;name&#34;:&#34;theirs&#34;`, "<dt>recurring</dt><dd><bdi>report_daily</bdi>"} {
		require.Contains(t, body, text)
	}
	require.Contains(t, get(t, h, "").Body.String(), "<bdi>eu_west</bdi>")
	require.Equal(t, []string{"a"}, rows(get(t, h, "?tag=large").Body.String()))
	require.NotEmpty(t, jobsui.Facts(&retryjob.Info{}))
}

func TestAJobShowsWhyItFailedBeforeItWasReplayed(t *testing.T) {
	job := dead("a", time.Minute)
	require.NoError(t, job.Replay(time.Now()))
	body := get(t, handler(t, newFake(job)), "job?id=a").Body.String()
	require.Contains(t, body, "Before it was replayed")
	require.Contains(t, body, "connection refused")
	require.NotContains(t, get(t, handler(t, newFake(dead("b", time.Minute))), "job?id=b").Body.String(), "Before it was replayed")
}

// TestASchedulesLastFailureIsShownWhileTheNextOccurrenceWaits: a nightly job whose card was declined does not look as if
// all were well.
func TestASchedulesLastFailureIsShownWhileTheNextOccurrenceWaits(t *testing.T) {
	next := waiting("recurring:report:send:8", time.Minute)
	next.Tags, next.History = []string{"recurring", "recurring_report"}, nil
	f := newFake(next, waiting("other", time.Minute))
	f.schedules = []retryjob.Schedule{
		{Name: "report", Kind: "send", Number: 8, Job: next.JobID, Due: next.Due, Last: retryjob.Occurrence{
			Job: "recurring:report:send:7", Status: retryjob.DeadLettered, Ended: time.Now().Add(-2 * time.Hour), Err: "the card was declined",
		}},
		{Name: "late", Kind: "send", Number: 3, Job: "recurring:late:send:3", Failing: time.Now().Add(-5 * time.Minute), Err: "the catalog does not answer"},
		{Name: "rests", Kind: "send", Number: 1, Paused: true},
	}
	h := handler(t, f)
	body := get(t, h, "").Body.String()
	require.Equal(t, []string{"late", "report", "rests"}, cells(body, `<a href="\./\?tag=recurring_\w+"><bdi>(\w+)</bdi></a>`))
	require.Contains(t, body, `<a href="job?id=recurring%3Areport%3Asend%3A7"><span class="status" data-status="dead_letter">dead_letter</span></a>`)
	require.Contains(t, body, "the card was declined")
	require.Contains(t, body, `data-status="overdue">overdue</span> <small>by 5m0s</small>`)
	require.Contains(t, body, "the catalog does not answer")
	require.Equal(t, []string{"late run", "late pause", "report pause", "rests run", "rests resume"}, offered(body))
}

// offered returns the schedules and the actions that a page offers for them.
func offered(body string) (all []string) {
	for _, form := range regexp.MustCompile(`name="schedule" value="(\w+)">(.*?)</form>`).FindAllStringSubmatch(body, -1) {
		for _, do := range cells(form[2], `value="(\w+)"`) {
			all = append(all, form[1]+" "+do)
		}
	}
	return all
}

func TestAScheduleIsPausedAndResumedOnThePage(t *testing.T) {
	f := newFake()
	f.schedules = []retryjob.Schedule{{Name: "report", Kind: "send", Number: 1}}
	h := handler(t, f)
	for _, row := range []struct {
		do, schedule string
		status       int
		paused       bool
	}{
		{"pause", "report", http.StatusSeeOther, true},
		{"resume", "report", http.StatusSeeOther, false},
		{"run", "report", http.StatusSeeOther, false},
		{"stop", "report", http.StatusBadRequest, false},
		{"pause", "nope", http.StatusConflict, false},
	} {
		require.Equal(t, row.status, post(t, h, "schedule", url.Values{"do": {row.do}, "schedule": {row.schedule}}).Code, row)
		require.Equal(t, row.paused, f.schedules[0].Paused)
	}
	require.True(t, f.schedules[0].Requested)
	readOnly, err := jobsui.New(jobsui.Options{Admin: f, Access: func(*http.Request) jobsui.Access { return jobsui.ReadOnly }})
	require.NoError(t, err)
	require.Equal(t, http.StatusForbidden, post(t, readOnly, "schedule", url.Values{"do": {"pause"}, "schedule": {"report"}}).Code)
	require.Empty(t, offered(get(t, readOnly, "").Body.String()))
}

// TestWhatRunsAndWaitsNowIsShown: the figures that somebody on call looks at first.
func TestWhatRunsAndWaitsNowIsShown(t *testing.T) {
	now := time.Now()
	due, busy := waiting("due", time.Hour), waiting("busy", time.Minute)
	due.Due, due.Queue = now.Add(-7*time.Minute), "narrow"
	busy.Status, busy.Due, busy.Worker = retryjob.Leased, time.Time{}, "host-3"
	busy.History = []retryjob.Attempt{{Number: 1, Start: now.Add(-90 * time.Second), Status: retryjob.Leased}}
	h := handler(t, newFake(due, busy, dead("a", time.Minute), dead("b", 2*time.Minute)))
	body := get(t, h, "").Body.String()
	require.Contains(t, body, "<dd>due 7m ago</dd>")
	require.Contains(t, body, `<bdi>narrow</bdi></th><td data-label="Due">1</td>`)
	require.Contains(t, body, `<td data-label="Since">90s ago</td><td data-label="Process"><bdi>host-3</bdi></td>`)
	require.Contains(t, body, `<b data-status="dead_letter">2</b> failed`)
	require.Contains(t, body, "<polyline")
	require.NotContains(t, get(t, handler(t, newFake()), "").Body.String(), "<polyline")
}

// TestAGroupIsReplayedWithItsNewestFirst: the newest as a probe, and then the rest.
func TestAGroupIsReplayedWithItsNewestFirst(t *testing.T) {
	one, other, unlike := dead("one", time.Minute), dead("other", 2*time.Minute), dead("unlike", time.Minute)
	for i, job := range []*retryjob.Info{&one, &other} {
		job.History = []retryjob.Attempt{{Number: 1, Status: retryjob.DeadLettered, Err: fmt.Sprint("no answer in ", i+3, " s")}}
	}
	f := newFake(one, other, unlike)
	h := handler(t, f)
	body := get(t, h, "").Body.String()
	form := regexp.MustCompile(`(?s)<input type="hidden" name="view" value="([^"]*)"><input type="hidden" name="id" value="one"><button name="do" value="replay">Replay newest</button><button name="do" value="replay" formaction="confirm\?all">Replay all 2</button>`).FindStringSubmatch(body)
	require.NotNil(t, form, body)
	fields := url.Values{"view": {html.UnescapeString(form[1])}, "do": {"replay"}, "id": {"one"}}
	confirmed := post(t, h, "confirm?all", fields).Body.String()
	require.Contains(t, confirmed, "Replay 2 jobs?")
	require.Equal(t, http.StatusSeeOther, post(t, h, "act", fields).Code)
	require.Equal(t, []retryjob.Status{retryjob.Pending, retryjob.DeadLettered, retryjob.DeadLettered}, []retryjob.Status{f.jobs["one"].Status, f.jobs["other"].Status, f.jobs["unlike"].Status})
	fields.Del("id")
	require.Equal(t, http.StatusSeeOther, post(t, h, "act?all", fields).Code)
	require.Equal(t, []retryjob.Status{retryjob.Pending, retryjob.DeadLettered}, []retryjob.Status{f.jobs["other"].Status, f.jobs["unlike"].Status})
}
