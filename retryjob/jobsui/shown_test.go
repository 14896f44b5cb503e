package jobsui_test

import (
	"context"
	"fmt"
	"net/http"
	"net/http/httptest"
	"net/url"
	"regexp"
	"strings"
	"testing"
	"testing/synctest"
	"time"
	"unicode/utf8"

	"github.com/stretchr/testify/require"

	"github.com/retrygo/retry/retryjob"
)

// cells returns the texts of the first group in each match.
func cells(body, pattern string) (texts []string) {
	for _, found := range regexp.MustCompile(pattern).FindAllStringSubmatch(body, -1) {
		texts = append(texts, strings.Join(found[1:], " "))
	}
	return texts
}

func TestTheBarsOfAttemptsAreSharesOfTheJobsTime(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		at := func(s int) time.Time { return time.Now().Add(time.Duration(s-100) * time.Second) }
		job := dead("job", 0)
		job.FirstDue, job.Attempts = at(0), 4
		job.History = []retryjob.Attempt{
			{Number: 1, Start: at(0), End: at(20), Due: at(60), Status: retryjob.WaitingRetry},
			{Number: 2, Start: at(60), End: at(60), Due: at(61), Status: retryjob.WaitingRetry},
			{Number: 3, Start: at(61), End: at(100), Due: at(100), Status: retryjob.WaitingRetry},
			{Number: 4, Start: at(100), End: at(100), Status: retryjob.DeadLettered},
		}
		body := get(t, handler(t, newFake(job)), "job?id=job").Body.String()
		require.Equal(t, []string{"0 60", "60 1", "61 39", "99.2 0"}, cells(body, `class="wait" x="([\d.]+)" y="4" width="([\d.]+)"`))
		bars := cells(body, `<rect data-status="\w+" x="([\d.]+)" y="0" width="([\d.]+)"`)
		require.Equal(t, []string{"0 20", "60 0.8", "61 39"}, bars[:3])
		require.Regexp(t, `^99\.2 0\.(8|79999)`, bars[3], "it can be seen, and stays inside")

		job = waiting("waits", 0)
		job.FirstDue, job.Due, job.History = at(0), at(200), []retryjob.Attempt{{Number: 1, Start: at(0), End: at(100), Due: at(200), Status: retryjob.WaitingRetry}}
		body = get(t, handler(t, newFake(job)), "job?id=waits").Body.String()
		require.Equal(t, []string{"0 100"}, cells(body, `class="wait" x="([\d.]+)" y="4" width="([\d.]+)"`), "to the time that is still to come")
		require.Equal(t, []string{"0 50"}, cells(body, `<rect data-status="\w+" x="([\d.]+)" y="0" width="([\d.]+)"`))
	})
}

func TestDurationsHaveThreeDigitsOrSo(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		for took, want := range map[time.Duration]string{
			100*time.Second + 400*time.Millisecond: "1m40s", 99*time.Second + 994*time.Millisecond: "1m39.99s", time.Hour + 600*time.Millisecond: "1h0m1s",
			time.Second + 4*time.Millisecond: "1s", time.Second + 6*time.Millisecond: "1.01s", 999600 * time.Microsecond: "1s",
			100400 * time.Microsecond: "100ms", 99400 * time.Microsecond: "99.4ms", 100400: "100µs", 99600: "100µs", 400: "0s", 0: "0s",
		} {
			job := dead("job", 0)
			job.Attempts = 1
			job.History = []retryjob.Attempt{{Number: 1, Start: job.Ended.Add(-took), End: job.Ended, Status: retryjob.DeadLettered}}
			body := get(t, handler(t, newFake(job)), "job?id=job").Body.String()
			require.Equal(t, []string{want}, cells(body, `data-label="Took">([^<]*)<`))
		}
	})
}

func TestTimesAreToldByTheirDistance(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		for distance, want := range map[time.Duration]string{
			0: "now", 999 * time.Millisecond: "now", time.Second: "1s ago", 99 * time.Second: "99s ago", 100 * time.Second: "1m ago",
			99 * time.Minute: "99m ago", 100 * time.Minute: "1h ago", 48*time.Hour - 1: "47h ago", 48 * time.Hour: "2d ago",
			-time.Second: "in 1s", -99 * time.Minute: "in 99m", -50 * time.Hour: "in 2d",
		} {
			job := dead("job", distance)
			body := get(t, handler(t, newFake(job)), "").Body.String()
			require.Equal(t, []string{want}, cells(body, `data-label="Changed"><time[^>]*>([^<]*)<`), distance)
			require.Equal(t, []string{""}, cells(body, `data-label="Due">([^<]*)<`))
		}
		job := waiting("job", 0)
		body := get(t, handler(t, newFake(job)), "").Body.String()
		require.Equal(t, []string{"in 60m"}, cells(body, `data-label="Due"><time[^>]*>([^<]*)<`))
	})
}

func TestAFilterTakesDays(t *testing.T) {
	h := handler(t, newFake(dead("new", time.Minute), dead("old", 3*24*time.Hour)))
	for address, want := range map[string][]string{
		"?since=2d": {"new"}, "?until=2d": {"old"}, "?since=4d": {"new", "old"}, "?since=40000d": {"new", "old"}, "?since=0d": nil, "?since=0s": nil,
	} {
		require.Equal(t, want, rows(get(t, h, address).Body.String()), address)
	}
	for _, address := range []string{"?since=40001d", "?since=-1d", "?since=1.5d", "?since=d", "?since=9999999999d"} {
		require.Equal(t, http.StatusBadRequest, get(t, h, address).Code, address)
	}
}

func TestClearKeepsWhatIsNotInTheForm(t *testing.T) {
	h := handler(t, newFake(dead("a", time.Minute)))
	for address, want := range map[string]string{
		"": "./", "?q=x&kind=a&reason=terminal_error&since=1h": "./",
		"?q=x&status=dead_letter&live=1&at=abc.a":       "./?live=1&status=dead_letter",
		"?policy=p&status=dead_letter&status=leased&q=": "./?status=dead_letter&status=leased",
	} {
		require.Equal(t, want, link(t, get(t, h, address).Body.String(), "Clear"), address)
	}
}

func TestWhatIsDoneToAllIsOfferedForAListThatIsKnown(t *testing.T) {
	h := handler(t, newFake(dead("dead", time.Minute), waiting("waits", time.Hour)))
	for address, want := range map[string][]string{
		"": {"replay", "cancel", "purge"}, "?status=dead_letter": {"replay", "purge"}, "?status=waiting_retry": {"cancel"},
		"?q=dead": nil, "?status=leased": nil, "?policy=none": nil,
	} {
		body := get(t, h, address).Body.String()
		require.ElementsMatch(t, want, cells(body, `value="(\w+)" class="\w+" formaction="confirm\?all"`), address)
	}
}

func TestHowAPayloadIsShown(t *testing.T) {
	deep := strings.Repeat("[", 2_000) + strings.Repeat("]", 2_000)
	for name, row := range map[string]struct{ payload, want string }{
		"indented": {`[1,2]`, "<bdi>[\n  1,\n  2\n]</bdi>"},
		"as it is if it would be indented by much": {deep, "<bdi>" + deep + "</bdi>"},
		"as it is if it is not JSON":               {"not JSON", "<bdi>not JSON</bdi>"},
		"whole up to 64 KiB":                       {`"` + strings.Repeat("x", 64<<10-2) + `"`, "xxx&#34;</bdi>"},
		"cut beyond":                               {`"` + strings.Repeat("x", 64<<10-1) + `"`, "Only the beginning is shown: the payload is 65,537 bytes long"},
		"cut between letters":                      {`"` + strings.Repeat("é", 100_000) + `"`, "the payload is 200,002 bytes long"},
	} {
		t.Run(name, func(t *testing.T) {
			job := dead("job", 0)
			job.Payload = []byte(row.payload)
			body := get(t, handler(t, newFake(job)), "job?id=job").Body.String()
			require.Contains(t, body, row.want)
			require.Less(t, len(body), 80_000)
			require.True(t, utf8.ValidString(body))
			require.Equal(t, strings.HasPrefix(name, "cut"), strings.Contains(body, "Only the beginning is shown"))
		})
	}
}

// contexts is an Admin that remembers the context of its last call.
type contexts struct {
	*fake
	last context.Context
}

func (c *contexts) Count(ctx context.Context, f retryjob.Filter) (map[retryjob.Status]retryjob.Tally, error) {
	c.last = ctx
	return c.fake.Count(ctx, f)
}

func (c *contexts) Get(ctx context.Context, id string) (retryjob.Info, error) {
	c.last = ctx
	return c.fake.Get(ctx, id)
}

func TestEachCallHasADeadlineAndItsTimerIsStopped(t *testing.T) {
	c := &contexts{fake: newFake(dead("a", time.Minute))}
	for _, address := range []string{"", "job?id=a"} {
		require.Equal(t, http.StatusOK, get(t, handler(t, c), address).Code)
		_, limited := c.last.Deadline()
		require.True(t, limited)
		require.ErrorIs(t, c.last.Err(), context.Canceled)
	}
}

func TestAnAttemptInDoubtIsMarked(t *testing.T) {
	job := dead("a", time.Minute)
	job.History[1].Ambiguous = true
	require.Equal(t, []string{"503 Service Unavailable", "in doubt, the work may have been done: connection refused"},
		cells(get(t, handler(t, newFake(job)), "job?id=a").Body.String(), `<td class="error whole"><bdi>([^<]*)</bdi>`))
}

func TestNumbersHaveACommaBeforeEachThousand(t *testing.T) {
	for n, want := range map[int]string{1: "1 job", 2: "2 jobs", 999: "999 jobs", 1000: "1,000 jobs", 999999: "999,999 jobs", 1234567: "1,234,567 jobs", 0: "0 jobs"} {
		h := handler(t, newFake())
		w := httptest.NewRecorder()
		http.SetCookie(w, &http.Cookie{Name: "jobsui-done", HttpOnly: true, Value: fmt.Sprintf("purge.%d", n)})
		require.Contains(t, after(t, h, w).Body.String(), "Purged "+want+".")
	}
}

func TestAListShowsTheNewestErrorOfAJobThatHasNotSucceeded(t *testing.T) {
	succeeded, failed, odd := dead("c", time.Minute), dead("b", time.Hour), dead("a", 2*time.Hour)
	succeeded.Status, succeeded.Reason = retryjob.Succeeded, 0
	odd.History[1].Err = ""
	_, body, _ := strings.Cut(get(t, handler(t, newFake(succeeded, failed, odd)), "").Body.String(), `id="rows"`)
	require.Equal(t, []string{"", "connection refused", "503 Service Unavailable"}, cells(body, `<td class="error"><bdi>([^<]*)</bdi>`))
}

func TestFurtherValuesOfAFieldAreKeptHidden(t *testing.T) {
	body := get(t, handler(t, newFake()), "?kind=a&kind=b&kind=c&policy=p&status=leased&status=expired").Body.String()
	hidden := cells(body, `type="hidden" name="(kind|policy|status)" value="(\w+)"`)
	require.ElementsMatch(t, []string{"kind b", "kind c", "status leased", "status expired"}, hidden)
	require.Contains(t, body, `name="kind" value="a"`)
}

func TestOnlyAnOrderForOneJobLeadsBackToItsPage(t *testing.T) {
	for name, row := range map[string]struct {
		address string
		ids     []string
		want    string
	}{
		"one job":           {"act", []string{"a"}, `^(\./)?job\?id=a$`},
		"two jobs":          {"act", []string{"a", "b"}, `^\./`},
		"all, and one more": {"act?all", []string{"a"}, `^\./`},
	} {
		h := handler(t, newFake(dead("a", time.Minute), dead("b", time.Minute)))
		w := post(t, h, row.address, url.Values{"do": {"replay"}, "id": row.ids, "from": {"job"}})
		require.Equal(t, http.StatusSeeOther, w.Code, name)
		require.Regexp(t, row.want, w.Header().Get("Location"), name)
	}
}
