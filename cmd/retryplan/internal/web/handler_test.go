package web_test

import (
	"context"
	"encoding/json"
	"encoding/xml"
	"go/parser"
	"io"
	"io/fs"
	"maps"
	"net"
	"net/http"
	"net/http/httptest"
	"os"
	"regexp"
	"runtime"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/retrygo/retry"
	"github.com/retrygo/retry/cmd/retryplan/internal/web"
	"github.com/retrygo/retry/retryconf"
	"github.com/stretchr/testify/require"
)

// answer is the part of an answer that the tests read.
type answer struct {
	Policy struct {
		Text, Go string
		Document json.RawMessage
	}
	Budget string
	Plan   []struct{ Name, Figure string }

	Schedule chart
	Story    struct{ Title, Text string }
	Verdict  struct {
		Kind, Title, Text, Note string
		Counted, Of             int
	}
	Simulation struct {
		Title       string
		Load, Queue chart
	}
	Findings []struct{ Code, Text string }
	Advice   []struct{ Change, Count, Effect string }
	Errors   []struct{ Field, Text string }
}

type chart struct{ SVG, Summary string }

// request returns a request for an evaluation, as the page makes it.
func request(body string) *http.Request {
	r := httptest.NewRequest(http.MethodPost, "http://127.0.0.1:8080/api/evaluate", strings.NewReader(body))
	r.Header.Set("Content-Type", "application/json")
	r.Header.Set("Origin", "http://127.0.0.1:8080")
	r.Header.Set("Sec-Fetch-Site", "same-origin")
	return r
}

// evaluate asks about the opening state with some changes to it.
func evaluate(t testing.TB, limit time.Duration, changes map[string]string) (int, answer) {
	t.Helper()
	state := web.Defaults()
	maps.Copy(state, changes)
	body, err := json.Marshal(state)
	require.NoError(t, err)
	w := httptest.NewRecorder()
	web.NewHandler(limit).ServeHTTP(w, request(string(body)))
	all := answers(t, w)
	return w.Code, all[len(all)-1]
}

// answers returns the lines of a response.
func answers(t testing.TB, w *httptest.ResponseRecorder) (all []answer) {
	t.Helper()
	for line := range strings.Lines(w.Body.String()) {
		var a answer
		require.NoError(t, json.Unmarshal([]byte(line), &a), line)
		all = append(all, a)
	}
	return all
}

// codes returns the codes of the findings of a.
func (a answer) codes() (all []string) {
	for _, f := range a.Findings {
		all = append(all, f.Code)
	}
	return all
}

// policy returns the policy of the document in a.
func (a answer) policy(t *testing.T) retry.Policy {
	t.Helper()
	spec, err := retryconf.Parse(a.Policy.Document, retryconf.Spec{}, retryconf.Limits{})
	require.NoError(t, err)
	p, err := spec.Policy()
	require.NoError(t, err)
	return p
}

func TestRequestsThatAreRefused(t *testing.T) {
	for name, c := range map[string]struct {
		change func(*http.Request)
		status int
	}{
		"a body that is no JSON":           {func(r *http.Request) { r.Body = io.NopCloser(strings.NewReader("{")) }, http.StatusBadRequest},
		"a state that is no object":        {func(r *http.Request) { r.Body = io.NopCloser(strings.NewReader(`["base"]`)) }, http.StatusBadRequest},
		"a field that is no text":          {func(r *http.Request) { r.Body = io.NopCloser(strings.NewReader(`{"base":5}`)) }, http.StatusBadRequest},
		"a field that is none of the page": {func(r *http.Request) { r.Body = io.NopCloser(strings.NewReader(`{"bsae":"5s"}`)) }, http.StatusUnprocessableEntity},
		"a body that is too large": {func(r *http.Request) {
			r.Body = io.NopCloser(strings.NewReader(`{"delays":"` + strings.Repeat("1s,", 64<<10) + `"}`))
		}, http.StatusBadRequest},
		"a question that is read":      {func(r *http.Request) { r.Method = http.MethodGet }, http.StatusNotFound},
		"a change of the page":         {func(r *http.Request) { r.Method, r.URL.Path = http.MethodDelete, "/" }, http.StatusMethodNotAllowed},
		"a post to what is read":       {func(r *http.Request) { r.URL.Path = "/presets.json" }, http.StatusMethodNotAllowed},
		"a directory":                  {func(r *http.Request) { r.Method, r.URL.Path = http.MethodGet, "/sub/" }, http.StatusNotFound},
		"a file that does not exist":   {func(r *http.Request) { r.Method, r.URL.Path = http.MethodGet, "/go.mod" }, http.StatusNotFound},
		"another name (DNS rebinding)": {func(r *http.Request) { r.Host = "evil.example:8080" }, http.StatusForbidden},
		"a name that begins like ours": {func(r *http.Request) { r.Host = "localhost.evil.example" }, http.StatusForbidden},
		"an address of the network":    {func(r *http.Request) { r.Host = "192.168.0.1:8080" }, http.StatusForbidden},
		"no name":                      {func(r *http.Request) { r.Host = "" }, http.StatusForbidden},
		"a page elsewhere": {func(r *http.Request) {
			r.Header.Set("Origin", "http://evil.example")
			r.Header.Set("Sec-Fetch-Site", "cross-site")
		}, http.StatusForbidden},
	} {
		t.Run(name, func(t *testing.T) {
			r := request(`{}`)
			c.change(r)
			w := httptest.NewRecorder()
			web.NewHandler(time.Minute).ServeHTTP(w, r)
			require.Equal(t, c.status, w.Code, "%s", w.Body)
			require.NotContains(t, w.Body.String(), "<a href", "a listing")
			if c.status != http.StatusMethodNotAllowed && c.status != http.StatusNotFound { // which net/http says
				var a answer
				require.NoError(t, json.Unmarshal(w.Body.Bytes(), &a), "every refusal of ours is of one kind")
				require.NotEmpty(t, a.Errors)
			}
			if c.status == http.StatusMethodNotAllowed {
				require.NotEmpty(t, w.Header().Get("Allow"))
			}
			require.Empty(t, w.Header().Get("Access-Control-Allow-Origin"))
		})
	}
}

func TestNamesOfThisMachine(t *testing.T) {
	for _, host := range []string{"localhost", "localhost:8080", "127.0.0.1:8080", "127.8.9.1", "[::1]:8080", "[::1]",
		"LocalHost:8080", "localhost.", "localhost.:8080"} {
		r := httptest.NewRequest(http.MethodGet, "http://127.0.0.1/", nil)
		r.Host = host
		w := httptest.NewRecorder()
		web.NewHandler(time.Minute).ServeHTTP(w, r)
		require.Equal(t, http.StatusOK, w.Code, host)
		require.Contains(t, w.Header().Get("Content-Security-Policy"), "default-src 'self';")
		require.NotContains(t, w.Header().Get("Content-Security-Policy"), "unsafe")
		require.Equal(t, "nosniff", w.Header().Get("X-Content-Type-Options"))
	}
}

func TestAnswer(t *testing.T) {
	status, a := evaluate(t, time.Minute, map[string]string{
		"max_attempts": "4", "base": "1s", "factor": "2", "cap": "", "jitter": "none", "attempt_timeout": "1s", "ttl": "5s",
		"rate": "40", "failure": "0", "budget": "client", "budget_ratio": "0.25", "budget_burst": "20",
	})
	require.Equal(t, http.StatusOK, status, "%v", a.Errors)
	require.Contains(t, a.Schedule.Summary, "1s 2s 4s (7s in all)")
	require.Contains(t, a.Schedule.SVG, "can never start (ttl_elapsed)", "1s + 2s + 4s is past the TTL of 5s")
	require.Contains(t, a.Plan, struct{ Name, Figure string }{"total wait", "7s"})

	for _, code := range []string{a.Policy.Go, a.Budget} {
		_, err := parser.ParseExpr(code)
		require.NoError(t, err, code)
	}
	require.Equal(t, "retry.NewBudget(retry.BudgetConfig{Ratio: 0.25, Burst: 20})", a.Budget)
	require.Equal(t, a.Policy.Text, a.policy(t).String(), "the document is of the same policy")

	s := a.Simulation
	require.Empty(t, a.Verdict.Note, "all of it was simulated")
	require.Equal(t, "back", a.Verdict.Kind)
	require.Contains(t, a.Verdict.Title, "Came back in 20 of 20 simulations of a stall of 10s")
	require.Contains(t, a.Verdict.Text, "40 runs/s become 40 attempts/s, once its tokens are spent, and the backend does 100: whatever the trigger was, its queue then shrinks.")
	require.Equal(t, "Seed 1, one of the 20 that come back", s.Title)
	require.Contains(t, s.Load.SVG, "stall 10s")
	require.Contains(t, s.Queue.SVG, "queue, attempts")
	for _, c := range []chart{a.Schedule, s.Load, s.Queue} {
		require.NoError(t, xml.Unmarshal([]byte(c.SVG), new(struct{})))
		require.NotContains(t, c.SVG, "style=", "the page's policy forbids it")
		require.NotEmpty(t, c.Summary)
	}
}

func TestATTLThatNoRetryMeetsIsAFinding(t *testing.T) {
	status, a := evaluate(t, 0, map[string]string{"ttl": "1ms"})
	require.Equal(t, http.StatusOK, status)
	require.Contains(t, a.codes(), "no-retry-can-start")
}

func TestTheLineDoesNotRepeatTheName(t *testing.T) {
	status, a := evaluate(t, 0, map[string]string{"name": "mail"})
	require.Equal(t, http.StatusOK, status)
	require.NotContains(t, a.Policy.Text, "mail")
	require.Contains(t, string(a.Policy.Document), "mail")
}

func TestFaultsNameTheirFields(t *testing.T) {
	for name, c := range map[string]struct {
		changes map[string]string
		fields  []string
	}{
		"a duration without a unit":    {map[string]string{"base": "250"}, []string{"base"}},
		"what is wrong between fields": {map[string]string{"base": "5s", "cap": "1s"}, []string{"cap"}},
		"several at once":              {map[string]string{"max_attempts": "0", "ttl": "soon", "rate": "-1", "failure": "2"}, []string{"failure", "max_attempts", "rate", "ttl"}},
		"a delay of a list":            {map[string]string{"mode": "list", "delays": "1s, x"}, []string{"delays"}},
		"a list without delays":        {map[string]string{"mode": "list", "delays": ""}, []string{"delays"}},
		"part of a client":             {map[string]string{"clients": "1.5"}, []string{"clients"}},
		"too many clients":             {map[string]string{"clients": "1000000"}, []string{"clients"}},
		"a rate that is no number":     {map[string]string{"rate": "NaN"}, []string{"rate"}},
		"an endless trigger":           {map[string]string{"trigger_length": "2h"}, []string{"trigger_length"}},
		"a trigger that is none":       {map[string]string{"trigger": "fire"}, []string{"trigger"}},
		"a share above 1":              {map[string]string{"trigger": "failing", "trigger_factor": "1.5"}, []string{"trigger_factor"}},
		"a reset that a plan meets":    {map[string]string{"reset_after": "40ms", "failure": "0.1", "duration": "50ms"}, []string{"reset_after"}},
		"decorrelated without growth":  {map[string]string{"mode": "linear", "jitter": "decorrelated"}, []string{"jitter"}},
	} {
		t.Run(name, func(t *testing.T) {
			status, a := evaluate(t, time.Minute, c.changes)
			require.Equal(t, http.StatusUnprocessableEntity, status)
			var fields []string
			for _, e := range a.Errors {
				fields = append(fields, e.Field)
				require.NotEmpty(t, e.Text)
			}
			slices.Sort(fields)
			require.Equal(t, c.fields, slices.Compact(fields), "%v", a.Errors)
		})
	}
}

func TestUnusedFieldsAreNotLookedAt(t *testing.T) {
	status, a := evaluate(t, 0, map[string]string{
		"mode": "list", "delays": "1s", "max_attempts": "", "base": "nonsense", "factor": "0", "cap": "", "jitter_ratio": "7",
		"budget": "none", "budget_ratio": "x", "trigger": "none", "trigger_factor": "x", "trigger_length": "x",
	})
	require.Equal(t, http.StatusOK, status, "%v", a.Errors)
	require.Contains(t, a.Policy.Text, "2 attempts, list, ")
}

func TestEveryTriggerIsAnswered(t *testing.T) {
	for _, trigger := range []string{"none", "stall", "outage", "slowdown", "capacity_cut", "surge", "failing"} {
		status, a := evaluate(t, time.Minute, map[string]string{
			"trigger": trigger, "trigger_length": "5s", "rate": "7", "capacity": "10", "duration": "100ms",
		})
		require.Equal(t, http.StatusOK, status, "%s: %v", trigger, a.Errors)
		require.Contains(t, a.Simulation.Load.SVG, "goodput", trigger)
		require.NotEmpty(t, a.Verdict.Kind, trigger)
		require.Equal(t, trigger != "none", strings.Contains(a.Simulation.Load.SVG, ">trigger: "+trigger), trigger)
	}
}

func TestPresetsAreAnswered(t *testing.T) {
	for label, state := range web.Presets() {
		limit := time.Duration(0) // no time for simulations
		if label == "See a storm" {
			limit = time.Minute
		}
		status, a := evaluate(t, limit, state)
		require.Equal(t, http.StatusOK, status, "%s: %v", label, a.Errors)
		if label == "See a storm" {
			require.Equal(t, "lost", a.Verdict.Kind)
			require.Contains(t, a.Verdict.Title, "Came back in 0 of 10 simulations")
			require.Contains(t, a.Simulation.Load.Summary, "recovery: none")
		}
		if label == "Inline HTTP" {
			require.Empty(t, a.Findings, "what we propose has no findings")
		}
	}
}

func TestACountThatTakesTooLongHasFewerSeeds(t *testing.T) {
	status, a := evaluate(t, 0, nil)
	require.Equal(t, http.StatusOK, status)
	require.Equal(t, "The simulation took too long: 0 of 20 seeds were counted.", a.Verdict.Note)
	require.NotEmpty(t, a.Schedule.SVG, "the plan needs no simulation")
}

// The count comes while it grows: the first seed with its picture, and the last with the verdict.
func TestTheCountGrows(t *testing.T) {
	body, err := json.Marshal(web.Presets()["A stall"])
	require.NoError(t, err)
	w := httptest.NewRecorder()
	web.NewHandler(time.Minute).ServeHTTP(w, request(string(body)))
	all := answers(t, w)
	require.NotEmpty(t, all[0].Schedule.SVG, "the plan is there at once")
	if all[0].Verdict.Kind == "" {
		all = all[1:]
	}
	first, last := all[0], all[len(all)-1]
	require.Equal(t, "counting", first.Verdict.Kind)
	require.Equal(t, 1, first.Verdict.Counted)
	require.Equal(t, "Seed 1, the only one that does not come back", first.Simulation.Title)
	require.Equal(t, "lost", last.Verdict.Kind)
	require.Equal(t, 10, last.Verdict.Counted, "none of ten comes back, and more are not simulated")
	require.Equal(t, "Seed 1, one of the 10 that do not come back", last.Simulation.Title)
	counted := 0
	for _, a := range all {
		require.GreaterOrEqual(t, a.Verdict.Counted, counted)
		counted = a.Verdict.Counted
	}
	require.Equal(t, "20 of 20", last.Advice[0].Count)
	require.Contains(t, last.Advice[0].Change, "Set Budget")
	require.Equal(t, "It changes nothing about the count.", last.Advice[len(last.Advice)-1].Effect)
}

// An attempt that takes as long as its client waits is lost without a trigger as well, and the page says so.
func TestACalmThatLosesIsSaid(t *testing.T) {
	status, a := evaluate(t, time.Minute, map[string]string{"rate": "1", "capacity": "2", "attempt_timeout": "500ms", "deadline": "", "duration": "500ms"})
	require.Equal(t, http.StatusOK, status, "%v", a.Errors)
	require.Equal(t, "lost", a.Verdict.Kind)
	require.Contains(t, a.Verdict.Title, "10 are lost without the trigger as well")
}

// The story above the picture follows the fields.
func TestTheStoryFollowsWhatIsSet(t *testing.T) {
	for _, row := range []struct {
		changes     map[string]string
		title, text string
	}{
		{nil, "A backend stalls for 10s.", "It can serve 100 attempts a second and gets 70. Each client waits for 1s, gives up and tries again, up to 3 times."},
		{map[string]string{"trigger": "outage", "trigger_length": "5s"}, "A backend rejects everything for 5s.", ""},
		{map[string]string{"trigger": "none"}, "Nothing happens to a backend.", ""},
		{map[string]string{"trigger": "surge", "trigger_factor": "2.5"}, "A backend gets 2.5 times as many runs for 10s.", ""},
		{map[string]string{"attempt_timeout": "", "rate": "12"}, "", "gets 12. Its clients wait for as long as an answer takes"},
		{map[string]string{"max_attempts": "1"}, "", "gives up and does not try again."},
		{map[string]string{"deadline": "400ms", "max_attempts": "2"}, "", "Each client waits for 400ms, gives up and tries again once."},
		{map[string]string{"budget": "shared"}, "", "One retry budget, which successes fund, bounds those of all clients."},
	} {
		_, a := evaluate(t, 0, row.changes)
		require.Contains(t, a.Story.Title, row.title)
		require.Contains(t, a.Story.Text, row.text)
	}
}

// greedy is a state whose simulation would fill memory: every attempt of an hour stays in the queue of a server that
// hangs.
var greedy = map[string]string{
	"max_attempts": "unlimited", "base": "1ms", "cap": "1ms", "attempt_timeout": "10ms", "deadline": "", "budget": "none",
	"rate": "80", "capacity": "100", "clients": "100000", "trigger": "stall", "trigger_length": "1h",
}

func TestACountThatNeedsTooMuchMemoryIsEnded(t *testing.T) {
	var before, after runtime.MemStats
	runtime.ReadMemStats(&before)
	status, a := evaluate(t, time.Hour, greedy)
	runtime.ReadMemStats(&after)
	require.Equal(t, http.StatusOK, status)
	require.Equal(t, "The simulation is too large for this page: 0 of 20 seeds were counted.", a.Verdict.Note)
	require.Less(t, after.TotalAlloc-before.TotalAlloc, uint64(256<<20))
}

func TestQuestionThatIsOvertakenIsNotAnswered(t *testing.T) {
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	w := httptest.NewRecorder()
	web.NewHandler(time.Minute).ServeHTTP(w, request(`{}`).WithContext(ctx))
	require.Empty(t, w.Body.String())
}

// TestPresetsAreThoseOfTheLibrary holds that the buttons of published policies set the values of the library.
func TestPresetsAreThoseOfTheLibrary(t *testing.T) {
	for label, p := range map[string]retry.Policy{
		"Aggressive": retry.Aggressive(), "Standard": retry.Standard(), "Patient": retry.Patient(), "Cautious": retry.Cautious(),
	} {
		state := web.Presets()[label]
		status, a := evaluate(t, time.Minute, state)
		require.Equal(t, http.StatusOK, status)
		require.Equal(t, p.Effective(), a.policy(t).Effective(), label)
		require.Equal(t, []string{"no", ""}, []string{state["inline"], state["deadline"]}, label)
	}
}

func TestServeIsForThisMachineOnly(t *testing.T) {
	for _, addr := range []string{":8080", "0.0.0.0:0", "[::]:0", "192.168.0.1:0", "example.com:0", "localhost", "", "127.0.0.1:x", "127.0.0.1:70000"} {
		err := web.Serve(t.Context(), addr, func(string) { require.Fail(t, "listens", addr) })
		require.Error(t, err, addr)
	}
	for _, addr := range []string{"localhost:0", "127.0.0.1:0"} {
		ctx, stop := context.WithCancel(t.Context())
		var url string
		require.NoError(t, web.Serve(ctx, addr, func(u string) { url = u; stop() }))
		require.Regexp(t, regexp.MustCompile(`^http://127\.0\.0\.1:[1-9]\d*/$`), url)
	}
}

// pipes accepts one connection.
type pipes struct {
	net.Listener
	conn chan net.Conn
}

func (p pipes) Accept() (net.Conn, error) {
	if c, ok := <-p.conn; ok {
		return c, nil
	}
	return nil, net.ErrClosed
}
func (p pipes) Close() error   { return nil }
func (p pipes) Addr() net.Addr { return &net.TCPAddr{} }

// A client that asks and does not read is left after a minute.
func TestAClientThatDoesNotReadIsLeft(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		client, conn := net.Pipe()
		accepted := make(chan net.Conn, 1)
		accepted <- conn
		server := web.NewServer(t.Context())
		go server.Serve(pipes{conn: accepted})
		began := time.Now()
		_, err := client.Write([]byte("GET / HTTP/1.1\r\nHost: localhost\r\n\r\n"))
		require.NoError(t, err)
		time.Sleep(59 * time.Second)
		synctest.Wait()
		_, err = client.Read(make([]byte, 1))
		require.NoError(t, err, "it is still being answered")
		time.Sleep(time.Minute)
		synctest.Wait()
		_, err = io.Copy(io.Discard, client)
		require.NoError(t, err)
		require.Equal(t, 119*time.Second, time.Since(began))
		_, err = client.Write([]byte("GET / HTTP/1.1\r\n"))
		require.Error(t, err, "the server has closed the connection")
		close(accepted)
		server.Close()
	})
}

// The page must work without a network, and under its own Content-Security-Policy.
func TestAssetsNameNoOtherHost(t *testing.T) {
	assets := os.DirFS("assets")
	require.NoError(t, fs.WalkDir(assets, ".", func(path string, entry fs.DirEntry, err error) error {
		if err != nil || entry.IsDir() {
			return err
		}
		data, err := fs.ReadFile(assets, path)
		if err != nil {
			return err
		}
		addresses := regexp.MustCompile(`(https?:)?//[a-z][\w.-]*\.[a-z]+`).FindAllString(string(data), -1)
		if path == "favicon.svg" {
			require.Equal(t, []string{"http://www.w3.org"}, addresses, "the name of SVG's vocabulary, which nobody asks")
		} else {
			require.Empty(t, addresses, path)
		}
		require.NotRegexp(t, `<script>|\sstyle="|\son\w+="|eval\(`, string(data), path)
		return nil
	}))
}

func FuzzState(f *testing.F) {
	keys := slices.Sorted(maps.Keys(web.Defaults()))
	at := func(key string) uint8 { return uint8(slices.Index(keys, key)) }
	f.Add(at("base"), "250", at("cap"), "1ns", at("jitter"), "decorrelated")
	f.Add(at("max_attempts"), "unlimited", at("ttl"), "2562047h47m16.854775807s", at("duration"), "1h")
	f.Add(at("mode"), "list", at("delays"), "0s,2562047h47m16.854775807s", at("cap"), "")
	f.Add(at("rate"), "1e-2", at("capacity"), "1e4", at("trigger"), "capacity_cut")
	f.Add(at("failure"), "1", at("trigger"), "surge", at("trigger_factor"), "100")
	f.Add(at("attempt_timeout"), "1ns", at("deadline"), "0s", at("failure"), "NaN")
	h := web.NewHandler(0) // no time for the simulation: its own package tries that
	f.Fuzz(func(t *testing.T, one uint8, text1 string, two uint8, text2 string, three uint8, text3 string) {
		state := web.Defaults()
		state[keys[int(one)%len(keys)]] = text1
		state[keys[int(two)%len(keys)]] = text2
		state[keys[int(three)%len(keys)]] = text3
		body, err := json.Marshal(state)
		require.NoError(t, err)
		w := httptest.NewRecorder()
		h.ServeHTTP(w, request(string(body)))
		require.Contains(t, []int{http.StatusOK, http.StatusUnprocessableEntity, http.StatusBadRequest}, w.Code, "%s", w.Body)
		all := answers(t, w)
		a := all[len(all)-1]
		require.Equal(t, w.Code == http.StatusOK, len(a.Errors) == 0, "a refusal says why")
		if w.Code == http.StatusOK {
			require.NoError(t, xml.Unmarshal([]byte(a.Schedule.SVG), new(struct{})))
		}
	})
}
