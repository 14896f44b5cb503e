package retrydebug_test

import (
	"context"
	"crypto/sha256"
	"encoding/base64"
	"encoding/json"
	"html"
	"net/http"
	"net/http/httptest"
	"net/http/httputil"
	"net/url"
	"os"
	"reflect"
	"regexp"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/retrygo/retry"
	"github.com/retrygo/retry/retrydebug"
)

// TestOnlyThisMachineMaySeeThePage: what a client writes into its headers does not let it in, and a proxy on this machine
// that says what it does gets nothing for its clients.
func TestOnlyThisMachineMaySeeThePage(t *testing.T) {
	for _, row := range []struct {
		name, from, host string
		header           [2]string
		want             bool
	}{
		{"a program on this machine", "127.0.0.1:4711", "localhost:8080", [2]string{}, true},
		{"another loopback address", "127.8.9.10:4711", "127.0.0.1", [2]string{}, true},
		{"IPv6", "[::1]:4711", "[::1]:8080", [2]string{}, true},
		{"IPv6 without a port", "[::1]:4711", "[::1]", [2]string{}, true},
		{"IPv4 as IPv6", "[::ffff:127.0.0.1]:4711", "LOCALHOST", [2]string{}, true},
		{"another machine", "10.0.0.7:4711", "localhost:8080", [2]string{}, false},
		{"another machine, IPv6", "[2001:db8::1]:4711", "localhost", [2]string{}, false},
		{"IPv4 as IPv6, not loopback", "[::ffff:10.0.0.7]:4711", "localhost", [2]string{}, false},
		{"all addresses", "0.0.0.0:4711", "localhost", [2]string{}, false},
		{"a Unix socket", "@", "localhost", [2]string{}, false},
		{"no address", "", "localhost", [2]string{}, false},
		{"a client that claims to be here", "10.0.0.7:4711", "localhost", [2]string{"X-Forwarded-For", "127.0.0.1"}, false},
		{"a client that claims to be here by the standard", "10.0.0.7:4711", "localhost", [2]string{"Forwarded", "for=127.0.0.1"}, false},
		{"a name that resolves to this machine", "127.0.0.1:4711", "attacker.example", [2]string{}, false},
		{"a name that begins like one", "127.0.0.1:4711", "localhost.attacker.example", [2]string{}, false},
		{"a host that is no name", "127.0.0.1:4711", "", [2]string{}, false},
		{"a proxy with X-Forwarded-For", "127.0.0.1:4711", "localhost", [2]string{"X-Forwarded-For", "203.0.113.9"}, false},
		{"a proxy that claims loopback", "127.0.0.1:4711", "localhost", [2]string{"X-Forwarded-For", "127.0.0.1"}, false},
		{"a proxy with X-Forwarded-Proto", "127.0.0.1:4711", "localhost", [2]string{"X-Forwarded-Proto", "https"}, false},
		{"a proxy with Forwarded", "127.0.0.1:4711", "localhost", [2]string{"Forwarded", "for=203.0.113.9"}, false},
		{"a proxy with Via", "127.0.0.1:4711", "localhost", [2]string{"Via", "1.1 edge"}, false},
		{"a proxy with X-Real-IP", "127.0.0.1:4711", "localhost", [2]string{"X-Real-IP", "203.0.113.9"}, false},
		{"a sidecar", "127.0.0.6:4711", "localhost", [2]string{"X-Envoy-Attempt-Count", "1"}, false},
		{"a content network", "127.0.0.1:4711", "localhost", [2]string{"CF-Connecting-IP", "203.0.113.9"}, false},
	} {
		t.Run(row.name, func(t *testing.T) {
			r := httptest.NewRequest(http.MethodGet, "/debug/retry/", nil)
			r.RemoteAddr, r.Host = row.from, row.host
			if row.header[0] != "" {
				r.Header.Set(row.header[0], row.header[1])
			}
			require.Equal(t, row.want, retrydebug.IsLoopback(r))
			w := httptest.NewRecorder()
			live := retrydebug.New(retrydebug.Options{})
			live.Observe(t.Context(), firstTry)
			live.ServeHTTP(w, r)
			require.Equal(t, row.want, w.Code == http.StatusOK)
			require.Equal(t, row.want, strings.Contains(w.Body.String(), "POLICY"))
		})
	}
}

// TestAProxyOfTheStandardLibrary: one on the same machine, in front of the service, is recognized.
func TestAProxyOfTheStandardLibrary(t *testing.T) {
	service := httptest.NewServer(retrydebug.New(retrydebug.Options{}))
	defer service.Close()
	target, err := url.Parse(service.URL)
	require.NoError(t, err)
	proxy := httptest.NewServer(&httputil.ReverseProxy{Rewrite: func(r *httputil.ProxyRequest) { r.SetURL(target); r.SetXForwarded() }})
	defer proxy.Close()
	for address, want := range map[string]int{service.URL: http.StatusOK, proxy.URL: http.StatusForbidden} {
		resp, err := http.Get(address)
		require.NoError(t, err)
		require.NoError(t, resp.Body.Close())
		require.Equal(t, want, resp.StatusCode)
	}
}

func TestAllowDecidesAlone(t *testing.T) {
	asked := 0
	live := retrydebug.New(retrydebug.Options{Allow: func(r *http.Request) bool { asked++; return r.Header.Get("Admin") != "" }})
	r := httptest.NewRequest(http.MethodGet, "/debug/retry/", nil)
	r.RemoteAddr = "203.0.113.9:4711"
	for want, admin := range map[int]string{http.StatusForbidden: "", http.StatusOK: "yes"} {
		r.Header.Set("Admin", admin)
		w := httptest.NewRecorder()
		live.ServeHTTP(w, r)
		require.Equal(t, want, w.Code)
	}
	require.Equal(t, 2, asked)
	require.Equal(t, http.StatusForbidden, get(live, "", "").Code, "not even this machine")
}

func TestThePageCanOnlyBeRead(t *testing.T) {
	live := retrydebug.New(retrydebug.Options{})
	for _, method := range []string{http.MethodGet, http.MethodHead, http.MethodPost, http.MethodPut, http.MethodDelete, http.MethodOptions, http.MethodPatch, http.MethodTrace} {
		r := httptest.NewRequest(method, "http://localhost/debug/retry/", nil)
		r.RemoteAddr = "127.0.0.1:4711"
		w := httptest.NewRecorder()
		live.ServeHTTP(w, r)
		if method == http.MethodGet || method == http.MethodHead {
			require.Equal(t, http.StatusOK, w.Code, method)
			continue
		}
		require.Equal(t, http.StatusMethodNotAllowed, w.Code, method)
		require.Equal(t, "GET, HEAD", w.Header().Get("Allow"))
	}
}

func TestTheForms(t *testing.T) {
	live := retrydebug.New(retrydebug.Options{Name: "shop"})
	const browser = "text/html,application/xhtml+xml,application/xml;q=0.9,image/avif,*/*;q=0.8"
	const html, text, data = "text/html; charset=utf-8", "text/plain; charset=utf-8", "application/json"
	for _, row := range []struct {
		name, query, accept, kind, refresh string
		code                               int
	}{
		{"a browser", "", browser, html, "5", 200},
		{"curl", "", "*/*", text, "", 200},
		{"no Accept", "", "", text, "", 200},
		{"a program", "", "application/json", data, "", 200},
		{"JSON in a browser", "?format=json", browser, data, "", 200},
		{"a text in a browser", "?format=text", browser, text, "", 200},
		{"HTML with curl", "?format=html", "*/*", html, "5", 200},
		{"a slow refresh", "?refresh=60", browser, html, "60", 200},
		{"no refresh", "?refresh=0", browser, html, "", 200},
		{"a refresh that is none", "?refresh=-1", browser, html, "5", 200},
		{"a refresh with another header", "?refresh=5%0d%0aX:y", browser, html, "5", 200},
		{"a form that is none", "?format=xml", browser, text, "", 400},
	} {
		t.Run(row.name, func(t *testing.T) {
			w := get(live, row.query, row.accept)
			require.Equal(t, row.code, w.Code)
			require.Equal(t, row.kind, w.Header().Get("Content-Type"))
			require.Equal(t, row.refresh, w.Header().Get("Refresh"))
			require.Equal(t, "no-store", w.Header().Get("Cache-Control"))
			require.Equal(t, "nosniff", w.Header().Get("X-Content-Type-Options"))
		})
	}
}

// TestThePolicyOfThePageAllowsItsStyle: by the hash of the style, so that nothing else has effect.
func TestThePolicyOfThePageAllowsItsStyle(t *testing.T) {
	w := get(retrydebug.New(retrydebug.Options{}), "", "text/html")
	_, rest, _ := strings.Cut(w.Body.String(), "<style>")
	style, _, _ := strings.Cut(rest, "</style>")
	sum := sha256.Sum256([]byte(style))
	require.Contains(t, w.Header().Get("Content-Security-Policy"), "style-src 'sha256-"+base64.StdEncoding.EncodeToString(sum[:])+"'")
	require.NotContains(t, w.Body.String(), "<script")
	require.NotContains(t, w.Body.String(), " style=")
}

// TestTheTextOfAnIncident compares the page of a terminal with testdata.
func TestTheTextOfAnIncident(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		want, err := os.ReadFile("testdata/shop.txt")
		require.NoError(t, err)
		require.Equal(t, string(want), get(shop(t), "", "").Body.String(), "go test -run Incident; the new text is above")
	})
}

// TestAPageOnCall looks for what an engineer has to know first.
func TestAPageOnCall(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		live := retrydebug.New(retrydebug.Options{})
		time.Sleep(50 * time.Second)
		lost := retry.Event{Policy: "payments", Outcome: &retry.Outcome{Policy: "payments", Status: retry.DeadLettered, Reason: retry.TerminalError, Attempts: 1,
			History: []retry.Attempt{{Number: 1, Err: retry.Ambiguous(errRefused)}}}, Err: retry.Ambiguous(errRefused)}
		for range 200 {
			live.Observe(t.Context(), lost)
		}
		waiting := failed
		waiting.Policy = "mail"
		live.Observe(t.Context(), waiting)
		live.Observe(inAJob(t.Context(), "welcome"), waiting)
		time.Sleep(15 * time.Second)
		ok := firstTry
		ok.Policy = "payments"
		live.Observe(t.Context(), ok)
		for form, wants := range map[string][]string{
			"text/plain": {
				"0 of 2 policies failing, 1 failed, 1 retrying; runs waiting: 1 (jobs: see their page)",
				"payments  failed 00:00:50 (15s ago), 200 in doubt in an hour\n",
				"mail      retrying 1 waiting\n",
				"  what to do: in doubt: Ask the receiver, or look at its data, before you repeat the work.\n",
				"  in doubt in a minute: 200; in an hour: 200; in all: 200\n",
				"RUNS THAT DID NOT SUCCEED: newest 10 of 16 kept, 200 in all\n",
				"RUNS THAT SUCCEEDED AFTER RETRIES: none\n",
				"payments: dead_letter (terminal_error), in doubt, after 1 attempt in 0s",
				"  gave up, 1h ago ..........................................................█. now, top 200/min\n",
				"  jobs that wait are on the page of jobs, not here\n",
				"README.md of package retrydebug",
			},
			"text/html": {
				`<b><bdi>payments</bdi></b> <span class="state failed" title="There was an outage within the last minute.`,
				"16 kept, newest first, 200 in all",
				`<a href="#words">`, `<h2 id="words">`, "README.md of package retrydebug",
				"<span>top 200/min</span>",
			},
		} {
			body := get(live, "", form).Body.String()
			for _, want := range wants {
				require.Contains(t, body, want)
			}
		}
	})
}

// TestTheREADMEHasTheGuide compares the table of README.md with the one of the page, and with the words that there are.
func TestTheREADMEHasTheGuide(t *testing.T) {
	readme, err := os.ReadFile("README.md")
	require.NoError(t, err)
	_, table, found := strings.Cut(strings.ReplaceAll(string(readme), "\r", ""), "## What the words mean, and what to do\n")
	require.True(t, found)
	table, _, _ = strings.Cut(table, "\n## ")
	var want [][]string
	for _, row := range regexp.MustCompile("(?m)^\\| `([^|]*)` \\| ([^|]*) \\| ([^|]*) \\| ([^|]*) \\| ([^|]*) \\|$").FindAllStringSubmatch(table, -1) {
		want = append(want, row[1:])
	}
	var got [][]string
	body := get(retrydebug.New(retrydebug.Options{}), "", "text/html").Body.String()
	for _, row := range regexp.MustCompile(`(?m)^<tr><td class="text"><b>(.*?)</b></td><td class="text">(.*?)</td>`+strings.Repeat(`<td class="text" data-label="\S+">(.*?)</td>`, 3)+`</tr>$`).FindAllStringSubmatch(body, -1) {
		for i := range row {
			row[i] = html.UnescapeString(row[i])
		}
		got = append(got, row[1:])
	}
	require.Equal(t, want, got)
	var words []string
	for _, row := range got {
		words = append(words, row[0])
	}
	for _, state := range []string{"failing", "failed", "some fail", "retrying", "calm", "waiting", "in doubt", "budget empty"} {
		require.Contains(t, words, state)
	}
	for reason := retry.TerminalError; reason <= retry.CallerCanceled; reason++ {
		require.Contains(t, words, reason.Error())
	}
}

// TestTheJSONHasTheseFields: who renames or removes one changes Version.
func TestTheJSONHasTheseFields(t *testing.T) {
	want := map[string]string{
		"Snapshot": "version name taken since policies budgets failed slowest",
		"Policy":   "name schedule ttl_ns state trouble waiting jobs budget budget_empty minute hour total slowest_ns retries_by_minute gave_up_by_minute last_failure",
		"Figures":  "over_ns runs first_try recovered answered gave_up canceled reasons in_doubt retries hedges",
		"Trouble":  "since until",
		"Hedges":   "calls hedged won refused",
		"Failure":  "at target attempt",
		"Budget":   "name policies tokens burst refused_minute refused_hour refused",
		"Run": "policy status reason ended_by_gate inner_gave_up in_doubt target job label ended elapsed_ns deadline_ns ttl_ns attempts " +
			"history error",
		"Attempt": "number start_ns duration_ns ended wait_ns hint_ns error",
	}
	got := map[string]string{}
	var visit func(reflect.Type)
	visit = func(of reflect.Type) {
		if k := of.Kind(); k == reflect.Slice || k == reflect.Pointer {
			visit(of.Elem())
		}
		if of.Kind() != reflect.Struct || of.PkgPath() != reflect.TypeFor[retrydebug.Snapshot]().PkgPath() || got[of.Name()] != "" {
			return
		}
		var names []string
		for i := range of.NumField() {
			name, _, _ := strings.Cut(of.Field(i).Tag.Get("json"), ",")
			names = append(names, name)
		}
		got[of.Name()] = strings.Join(names, " ")
		for i := range of.NumField() {
			visit(of.Field(i).Type)
		}
	}
	visit(reflect.TypeFor[retrydebug.Snapshot]())
	require.Equal(t, want, got)
	require.Equal(t, 1, retrydebug.Version)
}

func TestTheJSONIsTheSnapshot(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		live := shop(t)
		var got retrydebug.Snapshot
		require.NoError(t, json.Unmarshal(get(live, "?format=json", "").Body.Bytes(), &got))
		want := live.Snapshot()
		text, err := json.Marshal(want)
		require.NoError(t, err)
		again, err := json.Marshal(got)
		require.NoError(t, err)
		require.Equal(t, string(text), string(again))
		require.True(t, slices.IsSortedFunc(got.Failed, func(a, b retrydebug.Run) int { return b.Ended.Compare(a.Ended) }))
	})
	empty := get(retrydebug.New(retrydebug.Options{}), "?format=json", "").Body.String()
	require.NotContains(t, empty, "null", "a list is never null")
}

// TestTheBarsAreInTime draws runs of 1 s and compares the places and widths, in thousandths of the bar.
func TestTheBarsAreInTime(t *testing.T) {
	const ms = time.Millisecond
	for _, row := range []struct {
		name     string
		deadline time.Duration
		policy   retry.Policy
		err      error
		want     []string // class, place, width
	}{
		{"attempts and a wait", time.Hour, retry.Policy{Backoff: retry.Backoff{Base: 500 * ms}}, errRefused,
			[]string{"wait 250.0 500.0", "bar retryable 0.0 250.0", "bar retryable 750.0 250.0"}},
		{"a deadline that is near", 1250 * ms, retry.Policy{Backoff: retry.Backoff{Base: 500 * ms}}, errRefused,
			[]string{"wait 200.0 400.0", "bar retryable 0.0 200.0", "bar retryable 600.0 200.0", "limit 996.0 4.0"}},
		{"a TTL within", time.Hour, retry.Policy{Backoff: retry.Backoff{Base: 500 * ms}, TTL: 800 * ms}, errRefused,
			[]string{"wait 250.0 500.0", "bar retryable 0.0 250.0", "bar retryable 750.0 250.0", "limit 800.0 4.0"}},
		{"a hint that was obeyed", time.Hour, retry.Policy{Backoff: retry.Backoff{Base: ms}}, retry.After(500*ms, errRefused),
			[]string{"wait 250.0 500.0", "hint 750.0 4.0", "bar retryable 0.0 250.0", "bar retryable 750.0 250.0"}},
		{"timeouts", time.Hour, retry.Policy{Backoff: retry.Backoff{Base: 600 * ms}, AttemptTimeout: 200 * ms}, errRefused,
			[]string{"wait 200.0 600.0", "bar timeout 0.0 200.0", "bar timeout 800.0 200.0"}},
	} {
		t.Run(row.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				live := retrydebug.New(retrydebug.Options{})
				ctx, cancel := context.WithTimeout(t.Context(), row.deadline)
				defer cancel()
				row.policy.MaxAttempts = 2
				_ = retry.Do(ctx, live.Watch(row.policy), takes(250*ms, row.err))
				var got []string
				for _, rect := range regexp.MustCompile(`<rect class="([a-z ]+)" x="([\d.]+)" y="\d+" width="([\d.]+)"`).FindAllStringSubmatch(get(live, "", "text/html").Body.String(), -1) {
					got = append(got, strings.Join(rect[1:], " "))
				}
				require.Equal(t, row.want, got)
			})
		})
	}
}
