package jobsui_test

import (
	"encoding/json"
	"fmt"
	"net/http"
	"net/url"
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
		"nothing secret":      {`{"to":"a","n":1,"list":["x"]}`, `{"to":"a","n":1,"list":["x"]}`},
		"a password":          {`{"user":"u","password":"hush \"x\", hush"}`, `{"user":"u","password":"(hidden)"}`},
		"other spellings":     {`{"apiKey":"hush","API_KEY":"hush","x-api-key":"hush","accessToken":"hush"}`, `{"apiKey":"(hidden)","API_KEY":"(hidden)","x-api-key":"(hidden)","accessToken":"(hidden)"}`},
		"a header":            {`{"headers":{"Authorization":["Bearer hush"],"Cookie":["a=hush","b"]}}`, `{"headers":{"Authorization":"(hidden)","Cookie":"(hidden)"}}`},
		"numbers and words":   {`{"token" : 12345, "secret":true,"n":2}`, `{"token" : "(hidden)", "secret":"(hidden)","n":2}`},
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
	require.Contains(t, body, `<a href="./?kind=mail&amp;reason=attempts_exhausted&amp;status=dead_letter"><bdi>mail</bdi></a>`)
	require.Contains(t, body, `<a href="job?id=dead-0002"><bdi>dead-0002</bdi></a>`, "the newest without a code")
	require.NotContains(t, body, "most frequent")
	require.NotContains(t, get(t, handler(t, newFake(waiting("w", time.Minute))), "").Body.String(), "Dead letters by error")
	jobs = many(7)
	for i := range jobs {
		jobs[i].Kind = fmt.Sprintf("kind-%d", i)
	}
	body = get(t, handler(t, newFake(jobs...)), "").Body.String()
	require.Contains(t, body, "The most frequent of 7 errors.")
	require.Len(t, cells(body, `<a href="\./\?kind=(kind-\d)`), 5)
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

func TestRecurringJobsAreShownUntilTheyEnd(t *testing.T) {
	next, ended := waiting("report.1.2", time.Minute), dead("old.1.2", time.Minute)
	next.Tags, ended.Tags = []string{"recurring", "recurring_report"}, []string{"recurring", "recurring_old"}
	h := handler(t, newFake(next, ended, waiting("other", time.Minute)))
	body := get(t, h, "").Body.String()
	require.Equal(t, []string{"report"}, cells(body, `<a href="\./\?tag=recurring_\w+"><bdi>(\w+)</bdi></a>`))
	require.Contains(t, body, `<td data-label="Due">in 59m</td><td data-label="Attempts">1</td><td data-label="Job"><a href="job?id=report.1.2">`)
	require.Equal(t, []string{"report.1.2"}, rows(get(t, h, "?tag=recurring_report").Body.String()))
	require.NotContains(t, get(t, handler(t, newFake(ended)), "").Body.String(), "Recurring jobs")
}
