package retryhttp_test

import (
	"context"
	"errors"
	"fmt"
	"io"
	"math/rand/v2"
	"net"
	"net/http"
	"net/http/httptest"
	"net/url"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/retrygo/retry"
	"github.com/retrygo/retry/retryhttp"
	"github.com/retrygo/retry/retryhttp/hints"
)

func TestWriteError(t *testing.T) {
	plain := errors.New("password hunter2")
	ended := func(p retry.Policy, err error) error {
		return retry.Do(t.Context(), p, func(context.Context) error { return err })
	}
	broke := atOnce
	broke.Budget = retry.NewBudget(retry.BudgetConfig{Initial: -1})
	for _, row := range []struct {
		name        string
		err         error
		after, once string // Retry-After and X-Should-Retry
	}{
		{name: "nil"},
		{name: "a plain error", err: plain},
		{name: "a hint", err: fmt.Errorf("load: %w", retry.After(1500*time.Millisecond, plain)), after: "2"},
		{name: "a run that has retried", err: ended(atOnce, plain), once: "false"},
		{name: "a run without budget", err: ended(broke, plain), once: "false"},
		{name: "a run of one attempt", err: ended(retry.Policy{Disabled: true}, plain)},
		{name: "a run of one attempt with a hint", err: ended(retry.Policy{Disabled: true}, retry.After(time.Minute, plain)), after: "60"},
		{name: "a run that asks for too long a wait", err: ended(retry.Policy{MaxHint: time.Second}, retry.After(time.Minute, plain)), after: "60", once: "false"},
		{name: "a run that could do harm", err: ended(atOnce, retry.Permanent(plain)), once: "false"},
		{name: "a doubt", err: ended(retry.Policy{Disabled: true}, retry.Ambiguous(plain)), once: "false"},
		{name: "a mark", err: retry.Permanent(plain), once: "false"},
		{name: "a call that a shutdown has canceled", err: context.Canceled},
		{name: "a response that forbids it", err: retryhttp.CheckResponse(answer(get(t.Context()), 503, "X-Should-Retry", "false", "Retry-After", "7")),
			after: "7", once: "false"},
		{name: "what http.Client makes of a run", err: &url.Error{Op: "Get", Err: ended(atOnce, plain)}, once: "false"},
	} {
		t.Run(row.name, func(t *testing.T) {
			w := httptest.NewRecorder()
			retryhttp.WriteError(w, row.err)
			require.Equal(t, 503, w.Code)
			require.Equal(t, row.after, w.Header().Get("Retry-After"))
			require.Equal(t, row.once, w.Header().Get("X-Should-Retry"))
			require.Equal(t, "Service Unavailable\n", w.Body.String(), "the text of the error stays inside")
		})
	}
	t.Run("an answer from below stays one, and is repeated by no layer", func(t *testing.T) {
		for below, want := range map[int]int{
			400: 400, 403: 403, 404: 404, 409: 409, 410: 410, 422: 422, 451: 451,
			301: 502, 304: 502, 401: 502, 405: 502, 407: 502, 418: 502,
		} {
			handler := http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
				resp, err := (&retryhttp.Transport{Base: always(below), Policy: atOnce}).RoundTrip(get(r.Context()))
				require.NoError(t, err)
				retryhttp.WriteError(w, fmt.Errorf("load: %w", retryhttp.CheckResponse(resp)))
			})
			calls := 0
			base := roundTripper(func(req *http.Request) (*http.Response, error) {
				calls++
				w := httptest.NewRecorder()
				handler(w, req)
				resp := w.Result()
				resp.Request = req
				return resp, nil
			})
			o, resp, err := run(t, &retryhttp.Transport{Base: base, Policy: atOnce}, get(t.Context()))
			require.NoError(t, err)
			require.Equal(t, want, resp.StatusCode, "of %d", below)
			require.Equal(t, 1, calls, "of %d", below)
			if want < 500 {
				require.Equal(t, retry.Succeeded, o.Status)
				require.Empty(t, resp.Header.Get("X-Should-Retry"))
			} else {
				require.Equal(t, retry.TerminalError, o.Reason)
				require.Equal(t, "false", resp.Header.Get("X-Should-Retry"))
			}
		}
	})
	t.Run("an answer that a layer below has repeated, or forbids to repeat, says that too", func(t *testing.T) {
		again := atOnce
		again.Classify = retryhttp.OnStatus(retry.Retryable, 409)
		for name, tr := range map[string]*retryhttp.Transport{
			"repeated": {Base: always(409), Policy: again},
			"forbids":  {Base: always(409, "X-Should-Retry", "false"), Policy: atOnce},
		} {
			resp, err := tr.RoundTrip(get(t.Context()))
			require.NoError(t, err)
			w := httptest.NewRecorder()
			retryhttp.WriteError(w, retryhttp.CheckResponse(resp))
			require.Equal(t, []any{409, "false"}, []any{w.Code, w.Header().Get("X-Should-Retry")}, name)
		}
	})
	t.Run("what a receiver makes of a delivery is no answer to the one who ordered it", func(t *testing.T) {
		resp, err := (&retryhttp.Transport{Base: always(404), Policy: atOnce, Delivery: true}).RoundTrip(get(t.Context()))
		require.NoError(t, err)
		w := httptest.NewRecorder()
		retryhttp.WriteError(w, retryhttp.CheckResponse(resp))
		require.Equal(t, []any{502, "false"}, []any{w.Code, w.Header().Get("X-Should-Retry")})
	})
	t.Run("a run under OneAttempt says nothing", func(t *testing.T) {
		w := httptest.NewRecorder()
		retryhttp.WriteError(w, retry.Do(retry.OneAttempt(t.Context()), atOnce, func(context.Context) error { return plain }))
		require.Empty(t, w.Header().Values("X-Should-Retry"))
	})
	t.Run("a Retry-After of the handler's own stays", func(t *testing.T) {
		w := httptest.NewRecorder()
		retryhttp.SetRetryAfter(w, time.Minute)
		retryhttp.WriteError(w, plain)
		require.Equal(t, "60", w.Header().Get("Retry-After"))
	})
}

// A service that does not know whether it has done the work says so beside having given up. For the client of a request
// that is not safe to repeat that is a doubt, also through a service in between. To have given up alone is none.
func TestADoubtPassesThroughServices(t *testing.T) {
	doubtful := func(status int) retryhttp.Transport {
		return retryhttp.Transport{Base: always(status, "X-Should-Retry", "false", "Retry-In-Doubt", "true")}
	}
	yes := func(*retryhttp.AttemptError) bool { return true }
	for _, row := range []struct {
		name   string
		tr     retryhttp.Transport
		method string
		want   bool
	}{
		{"a POST", doubtful(503), "POST", true},
		{"a POST that Stripe does not want again", retryhttp.Transport{Base: always(500, "Stripe-Should-Retry", "false", "Retry-In-Doubt", " True ")}, "POST", true},
		{"a POST that is refused in doubt", doubtful(409), "POST", true},
		{"a POST that is limited in doubt", retryhttp.Transport{Base: always(429, "Retry-In-Doubt", "true")}, "POST", true},
		{"a POST that is only given up", retryhttp.Transport{Base: always(503, "X-Should-Retry", "false")}, "POST", false},
		{"a POST that says that it is in no doubt", retryhttp.Transport{Base: always(503, "X-Should-Retry", "false", "Retry-In-Doubt", "false")}, "POST", false},
		{"a POST with a key", retryhttp.Transport{Base: doubtful(503).Base, IdempotencyKey: retryhttp.RandomKey}, "POST", false},
		{"a POST that may be repeated", retryhttp.Transport{Base: doubtful(503).Base, Repeat: yes}, "POST", false},
		{"a PUT", doubtful(503), "PUT", false},
		{"a POST that a proxy has turned away", retryhttp.Transport{Base: always(503, "X-Envoy-Overloaded", "true")}, "POST", false},
	} {
		t.Run(row.name, func(t *testing.T) {
			row.tr.Policy = atOnce
			o, resp, err := run(t, &row.tr, request(t.Context(), row.method, nil))
			require.NoError(t, err)
			require.Equal(t, retry.TerminalError, o.Reason)
			require.Equal(t, row.want, retry.IsAmbiguous(o.History[0].Err))
			below := retryhttp.CheckResponse(resp)
			require.Equal(t, row.want, retry.IsAmbiguous(below))

			between := roundTripper(func(req *http.Request) (*http.Response, error) {
				w := httptest.NewRecorder()
				retryhttp.WriteError(w, below)
				resp := w.Result()
				resp.Request = req
				return resp, nil
			})
			row.tr.Base = between
			_, resp, err = run(t, &row.tr, request(t.Context(), row.method, nil))
			require.NoError(t, err)
			require.Equal(t, row.want, retry.IsAmbiguous(retryhttp.CheckResponse(resp)))

			resp, err = between.RoundTrip(request(t.Context(), row.method, nil))
			require.NoError(t, err)
			require.Equal(t, row.want, retry.IsAmbiguous(retryhttp.CheckResponse(resp)), "without a Transport")
		})
	}
}

func TestAResponseSaysThatItsRunHasGivenUp(t *testing.T) {
	given := func(tr *retryhttp.Transport, ctx context.Context) bool {
		tr.Policy = atOnce
		resp, err := tr.RoundTrip(get(ctx))
		require.NoError(t, err)
		return retry.IsGivenUp(retryhttp.CheckResponse(resp))
	}
	recorded := retryhttp.RecordOutcome(t.Context())
	require.True(t, given(&retryhttp.Transport{Base: always(503)}, recorded), "it has retried")
	require.True(t, given(&retryhttp.Transport{Base: always(503)}, t.Context()), "the response itself says so")
	require.False(t, given(&retryhttp.Transport{Base: always(503)}, retry.OneAttempt(recorded)))
	require.False(t, given(&retryhttp.Transport{Base: always(404)}, recorded))
	require.False(t, given(&retryhttp.Transport{Base: faults(always(404), 1)}, recorded), "an answer after a retry is one")
	forbids := roundTripper(func(req *http.Request) (*http.Response, error) {
		return answer(req, 503, "X-Should-Retry", "false"), nil
	})
	require.True(t, given(&retryhttp.Transport{Base: forbids}, t.Context()), "the server says so")

	t.Run("and Outcome.InnerGaveUp that a server has", func(t *testing.T) {
		o, _, err := run(t, &retryhttp.Transport{Base: forbids, Policy: atOnce}, get(t.Context()))
		require.NoError(t, err)
		require.Equal(t, []any{retry.TerminalError, true}, []any{o.Reason, o.InnerGaveUp})
		o, _, err = run(t, &retryhttp.Transport{Base: always(503), Policy: atOnce}, request(t.Context(), "POST", nil))
		require.NoError(t, err)
		require.Equal(t, []any{retry.TerminalError, false}, []any{o.Reason, o.InnerGaveUp})
	})
	t.Run("and an attempt that a Transport inside has made", func(t *testing.T) {
		inner := &retryhttp.Transport{Base: roundTripper(func(*http.Request) (*http.Response, error) { return nil, errFault }), Policy: atOnce}
		o, _, err := run(t, &retryhttp.Transport{Base: inner, Policy: retry.Policy{Disabled: true}}, get(t.Context()))
		require.Error(t, err)
		require.True(t, retry.IsGivenUp(o.History[0].Err))
	})
}

// Nested Transports are layers too: the outer one repeats nothing that the inner one has.
func TestTransportsInEachOtherDoNotMultiply(t *testing.T) {
	stops := retry.Policy{MaxAttempts: 4, Backoff: retry.Backoff{Mode: retry.Fixed, Base: 1}, Classify: retry.StopIf(retry.IsGivenUp)}
	again := stops
	again.Classify = nil
	for _, row := range []struct {
		name   string
		outer  retry.Policy
		bottom roundTripper
		want   int
	}{
		{"a 503", stops, always(503), 4},
		{"a reset", stops, func(*http.Request) (*http.Response, error) { return nil, syscall.ECONNRESET }, 4},
		{"a 503, by default", again, always(503), 16},
		{"a reset, by default", again, func(*http.Request) (*http.Response, error) { return nil, syscall.ECONNRESET }, 16},
	} {
		t.Run(row.name, func(t *testing.T) {
			calls := 0
			counted := roundTripper(func(req *http.Request) (*http.Response, error) { calls++; return row.bottom(req) })
			inner := &retryhttp.Transport{Base: counted, Policy: again}
			between := roundTripper(func(req *http.Request) (*http.Response, error) { return inner.RoundTrip(req.Clone(req.Context())) })
			resp, err := (&retryhttp.Transport{Base: between, Policy: row.outer}).RoundTrip(get(t.Context()))
			require.Equal(t, row.want, calls)
			if err == nil {
				require.Equal(t, 503, resp.StatusCode)
				require.Equal(t, []byte{}, must(io.ReadAll(resp.Body)), "readable")
			}
		})
	}
	t.Run("and what an outer one accepts is its success", func(t *testing.T) {
		inner := &retryhttp.Transport{Base: always(503), Policy: again}
		o, _, err := run(t, &retryhttp.Transport{Base: inner, Accept: func(*http.Response) bool { return true }}, get(t.Context()))
		require.NoError(t, err)
		require.Equal(t, retry.Succeeded, o.Status)
	})
}

func must[T any](v T, err error) T {
	if err != nil {
		panic(err)
	}
	return v
}

// Doubt outlives the run of a request that may have taken effect and was not repeated for that reason.
func TestDoubtIsTerminalToEveryRunAround(t *testing.T) {
	lost := traced(true, true, io.EOF)
	for _, row := range []struct {
		name   string
		base   roundTripper
		method string
		repeat func(*retryhttp.AttemptError) bool
		sends  int // of an outer run of 3 around a run of 3
		doubt  bool
	}{
		{"a POST whose answer is lost", lost, "POST", nil, 1, true},
		{"a POST that is answered 503", always(503), "POST", nil, 1, true},
		{"a GET whose answer is lost", lost, "GET", nil, 9, false},
		{"a POST that may be repeated", lost, "POST", anyFailure, 9, false},
		{"a POST that was not sent", traced(true, false, &net.OpError{Op: "dial", Err: errFault}), "POST", nil, 9, false},
		{"a POST that is answered 404", always(404), "POST", nil, 3, false},
	} {
		t.Run(row.name, func(t *testing.T) {
			sends := 0
			client := &http.Client{Transport: &retryhttp.Transport{Policy: atOnce, Repeat: row.repeat,
				Base: roundTripper(func(req *http.Request) (*http.Response, error) { sends++; return row.base(req) })}}
			call := func(ctx context.Context) error {
				resp, err := client.Do(request(ctx, row.method, nil))
				if err != nil {
					return err
				}
				return retryhttp.CheckResponse(resp)
			}
			outer := atOnce
			outer.Classify = retry.Otherwise(retry.Retryable)
			err := retry.Do(t.Context(), outer, call)
			require.Equal(t, row.sends, sends)
			class, _ := outer.Judge(err)
			require.Equal(t, map[bool]retry.Class{true: retry.Terminal, false: retry.Retryable}[row.doubt], class)
			if row.doubt {
				w := httptest.NewRecorder()
				retryhttp.WriteError(w, err)
				require.Equal(t, []any{503, "false"}, []any{w.Code, w.Header().Get("X-Should-Retry")})
				require.ErrorContains(t, err, "(not repeated: not_idempotent)")
				sends = 0
				_ = retry.Do(t.Context(), outer, func(ctx context.Context) error { return retry.Transient(call(ctx)) })
				require.Equal(t, 3, sends, "unless it is Transient")
			}
		})
	}
}

// layer is a service whose handler calls the next one.
type layer struct {
	client *retryhttp.Transport
	trust  func(*http.Request) bool
	silent bool // it answers 503 whatever has happened
	strips bool // a proxy in front of it removes headers that it does not know
	next   roundTripper
}

// call is the RoundTripper of those who call the service.
func (l *layer) call(req *http.Request) (*http.Response, error) {
	w := httptest.NewRecorder()
	r := req.Clone(req.Context())
	retryhttp.Handler(http.HandlerFunc(l.serve), l.trust).ServeHTTP(w, r)
	resp := w.Result()
	resp.Request = req
	if l.strips {
		resp.Header.Del("X-Should-Retry")
	}
	return resp, nil
}

func (l *layer) serve(w http.ResponseWriter, r *http.Request) {
	l.client.Base = l.next
	resp, err := l.client.RoundTrip(get(r.Context()))
	if err == nil {
		if resp.StatusCode < 500 {
			w.WriteHeader(resp.StatusCode)
			return
		}
		err = retryhttp.CheckResponse(resp)
	}
	if l.silent {
		w.WriteHeader(http.StatusServiceUnavailable)
		return
	}
	retryhttp.WriteError(w, err)
}

// chain returns n services, of which the last calls bottom, and what the user calls.
func chain(n int, bottom roundTripper, made func() *layer) roundTripper {
	next := bottom
	for range n {
		l := made()
		l.next = next
		next = l.call
	}
	return next
}

func anyone(*http.Request) bool { return true }

func TestThreeLayers(t *testing.T) {
	for _, row := range []struct {
		name   string
		header string
		trust  func(*http.Request) bool
		silent bool
		strips bool
		want   int
		below  int // runs that end because a layer below has given up
	}{
		{name: "that know nothing of each other multiply", silent: true, want: 64},
		{name: "that answer what has been given up stop", want: 4, below: 2},
		{name: "whose answers a proxy strips multiply, and no run knows of one below", strips: true, want: 64},
		{name: "that believe requests repeat at the top", header: retryhttp.AttemptHeader, trust: anyone, silent: true, want: 10},
		{name: "that do not believe requests multiply", header: retryhttp.AttemptHeader, silent: true, want: 64},
		{name: "that answer and believe requests stop", header: retryhttp.AttemptHeader, trust: anyone, want: 4, below: 2},
	} {
		inBubble(t, row.name, func(t *testing.T) {
			calls, below := 0, 0
			bottom := roundTripper(func(req *http.Request) (*http.Response, error) {
				calls++
				return answer(req, 503), nil
			})
			client := func() *retryhttp.Transport {
				return &retryhttp.Transport{AttemptHeader: row.header, Policy: retry.Policy{MaxAttempts: 4, Backoff: retry.Backoff{Base: 1},
					Observe: func(_ context.Context, e retry.Event) {
						if e.Outcome != nil && e.Outcome.InnerGaveUp {
							below++
						}
					}}}
			}
			user := client()
			user.Base = chain(2, bottom, func() *layer {
				return &layer{client: client(), trust: row.trust, silent: row.silent, strips: row.strips}
			})
			resp, err := user.RoundTrip(get(t.Context()))
			require.NoError(t, err)
			require.Equal(t, 503, resp.StatusCode)
			require.Equal(t, row.want, calls)
			require.Equal(t, row.below, below)
		})
	}
}

func TestATrustedNumberGoesOn(t *testing.T) {
	for _, row := range []struct {
		name   string
		trust  func(*http.Request) bool
		header string
		want   []string
	}{
		{name: "to services that may know it", trust: anyone, header: "X-Try", want: []string{"3"}},
		{name: "to no other", trust: anyone, want: []string{"", "", ""}[:1]},
		{name: "unless it is not trusted", header: "X-Try", want: []string{"1", "2", "3"}},
	} {
		inBubble(t, row.name, func(t *testing.T) {
			var sent []string
			l := &layer{trust: row.trust, client: &retryhttp.Transport{Policy: atOnce, AttemptHeader: row.header}}
			l.next = func(req *http.Request) (*http.Response, error) {
				sent = append(sent, req.Header.Get("X-Try"))
				return answer(req, 503), nil
			}
			req := get(t.Context())
			req.Header.Set(retryhttp.AttemptHeader, "3")
			_, err := l.call(req)
			require.NoError(t, err)
			require.Equal(t, row.want, sent)
		})
	}
}

func TestARedirectToAnotherHostDropsTheNumber(t *testing.T) {
	sent := map[string][]string{}
	tr := &retryhttp.Transport{Policy: atOnce, AttemptHeader: retryhttp.AttemptHeader}
	to := map[string]string{"http://a/1": "http://a/2", "http://a/2": "http://b/3", "http://b/3": "http://b/4", "http://b/4": "http://a/5"}
	tr.Base = roundTripper(func(req *http.Request) (*http.Response, error) {
		at := req.URL.String()
		sent[at] = append(sent[at], req.Header.Get(retryhttp.AttemptHeader))
		if len(sent[at]) == 1 {
			return answer(req, 503), nil
		}
		if to[at] == "" {
			return answer(req, 200), nil
		}
		return answer(req, 302, "Location", to[at]), nil
	})
	req := get(t.Context())
	req.URL, _ = url.Parse("http://a/1")
	req.Host = ""
	req.Header.Set(retryhttp.AttemptHeader, "7") // a client copies it to the redirected request
	resp, err := (&http.Client{Transport: tr}).Do(req)
	require.NoError(t, err)
	require.Equal(t, 200, resp.StatusCode)
	require.Equal(t, map[string][]string{"http://a/1": {"1", "2"}, "http://a/2": {"1", "2"}, "http://b/3": {"", ""}, "http://b/4": {"", ""},
		"http://a/5": {"1", "2"}}, sent)
}

// A redirect that is followed by hand with the same request leads from the request back to itself.
func TestARedirectWithTheSameRequestEnds(t *testing.T) {
	sent := []string{}
	tr := &retryhttp.Transport{Policy: atOnce, AttemptHeader: retryhttp.AttemptHeader, Base: roundTripper(func(req *http.Request) (*http.Response, error) {
		sent = append(sent, req.Header.Get(retryhttp.AttemptHeader))
		return answer(req, 302, "Location", "http://b/"), nil
	})}
	req := get(t.Context())
	resp, err := tr.RoundTrip(req)
	require.NoError(t, err)
	req.URL.Host, req.Host, req.Response = "b", "b", resp
	_, err = tr.RoundTrip(req)
	require.NoError(t, err)
	require.Equal(t, []string{"1", ""}, sent, "it may be another host")
}

// What comes from outside can only lower the number of calls: whatever the headers of the user's request and of the
// bottom's answers are, a service makes at most as many calls as without them, with any TTL and budget, and so does a chain
// of services with the same MaxHint.
func TestNoHeaderRaisesAnything(t *testing.T) {
	pick := func(r *rand.Rand, list ...string) string { return list[r.IntN(len(list))] }
	number := func(r *rand.Rand) string {
		return pick(r, "", "0", "1", "2", "9", "-1", "junk", "1e9", "2147483648", "0.5", strconv.Itoa(r.IntN(100)))
	}
	headers := func(r *rand.Rand) http.Header {
		h := http.Header{}
		for range r.IntN(5) {
			switch name := pick(r, "Retry-After", "X-Should-Retry", "Stripe-Should-Retry", "X-Envoy-Overloaded", "Finagle-Http-Nonretryable-Nack",
				"RateLimit", "X-RateLimit-Remaining", "X-RateLimit-Reset", "Retry-After-Ms", "X-Envoy-Retry-On", "X-Envoy-Max-Retries",
				"Grpc-Retry-Pushback-Ms", retryhttp.AttemptHeader, "X-Envoy-Attempt-Count"); name {
			case "X-Should-Retry", "Stripe-Should-Retry":
				h.Add(name, pick(r, "true", "false", "TRUE", "maybe", ""))
			case "X-Envoy-Retry-On":
				h.Add(name, "5xx,reset,retriable-4xx")
			case "RateLimit":
				h.Add(name, `"default";r=0;t=`+number(r))
			default:
				h.Add(name, number(r))
			}
		}
		return h
	}
	statuses := []int{503, 503, 503, 500, 502, 504, 429, 408, 409, 404, 501, 0}

	// calls returns how many calls the bottom gets from a user of the services that seed makes.
	calls := func(t *testing.T, seed uint64, with bool) int {
		r, outside := rand.New(rand.NewPCG(seed, 1)), rand.New(rand.NewPCG(seed, 2))
		depth, made := 1+r.IntN(3), 0
		status := statuses[r.IntN(len(statuses))]
		success := 1 + r.IntN(100)
		bottom := roundTripper(func(req *http.Request) (*http.Response, error) {
			made++
			if status == 0 && made < success {
				return nil, errFault
			}
			resp := answer(req, status)
			if made >= success {
				resp.StatusCode = 200
			}
			if with {
				resp.Header = headers(outside)
			}
			return resp, nil
		})
		longest := time.Duration(r.IntN(20)) * time.Second // of all layers: one that may wait longer repeats what another gave back
		user := chain(depth, bottom, func() *layer {
			l := &layer{silent: r.IntN(2) == 0, client: &retryhttp.Transport{}}
			p := &l.client.Policy
			*p = retry.Policy{MaxAttempts: 1 + r.IntN(4), Backoff: retry.Backoff{Mode: retry.Fixed, Base: time.Second}}
			p.MaxHint = longest
			ttl, budget, header, trust, hint := r.IntN(5), r.IntN(4), r.IntN(2), r.IntN(2), r.IntN(2)
			if depth == 1 { // if a layer stops early, the one above it has more time, and tokens that cause more calls
				p.TTL = time.Duration(ttl) * time.Second
				if budget > 0 {
					p.Budget = retry.NewBudget(retry.BudgetConfig{Burst: budget, Initial: budget})
				}
			}
			if header > 0 {
				l.client.AttemptHeader = retryhttp.AttemptHeader
			}
			if trust > 0 {
				l.trust = anyone
			}
			if hint > 0 {
				l.client.Hint = hints.RateLimit
			}
			return l
		})
		for range 1 + r.IntN(4-depth) {
			req := get(t.Context())
			if with {
				req.Header = headers(outside)
			}
			resp, err := user.RoundTrip(req)
			require.NoError(t, err)
			_, _ = io.Copy(io.Discard, resp.Body)
		}
		return made
	}
	synctest.Test(t, func(t *testing.T) {
		fewer := 0
		for seed := range uint64(3000) {
			without, with := calls(t, seed, false), calls(t, seed, true)
			require.LessOrEqual(t, with, without, "seed %d", seed)
			if with < without {
				fewer++
			}
		}
		require.Greater(t, fewer, 300, "they lower it")
	})
}

func ExampleWriteError() {
	calls := 0
	down := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		calls++
		http.Error(w, "down", http.StatusServiceUnavailable)
	}))
	defer down.Close()
	client := retryhttp.NewClient(retry.Policy{MaxAttempts: 4, Backoff: retry.Backoff{Base: time.Millisecond}})
	orders := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		req, _ := http.NewRequestWithContext(retryhttp.RecordOutcome(r.Context()), http.MethodGet, down.URL, nil)
		resp, err := client.Do(req)
		if err == nil {
			err = retryhttp.CheckResponse(resp)
			resp.Body.Close()
		}
		if err != nil {
			retryhttp.WriteError(w, err)
		}
	}))
	defer orders.Close()

	resp, err := client.Get(orders.URL) // four attempts, each of which would be four calls
	if err != nil {
		fmt.Println(err)
		return
	}
	resp.Body.Close()
	fmt.Println(resp.Status, resp.Header.Get("X-Should-Retry"), calls)
	// Output: 503 Service Unavailable false 4
}

func TestAVetoOfTheTransportIsSaidToTheCallerOfTheHandler(t *testing.T) {
	down := roundTripper(func(req *http.Request) (*http.Response, error) {
		return &http.Response{StatusCode: 503, Header: http.Header{}, Body: http.NoBody, Request: req}, nil
	})
	ctx := retryhttp.RecordOutcome(t.Context())
	req, err := http.NewRequestWithContext(ctx, http.MethodPost, "http://api.example.com/orders", strings.NewReader("{}"))
	require.NoError(t, err)
	resp, err := (&retryhttp.Transport{Base: down}).RoundTrip(req)
	require.NoError(t, err)
	w := httptest.NewRecorder()
	retryhttp.WriteError(w, retryhttp.CheckResponse(resp))
	require.Equal(t, "false", w.Header().Get("X-Should-Retry"), "a retry of the handler would repeat the POST")
}

// uncomparable is a context that == panics of.
type uncomparable struct {
	context.Context
	values map[string]string
}

func TestAContextNeedNotBeComparable(t *testing.T) {
	ok := roundTripper(func(req *http.Request) (*http.Response, error) {
		return &http.Response{StatusCode: 200, Body: http.NoBody, Request: req}, nil
	})
	for _, observe := range []func(context.Context, retry.Event){nil, func(context.Context, retry.Event) {}} {
		p := retry.Policy{Observe: observe}
		resp, err := (&retryhttp.Transport{Base: ok, Policy: p}).RoundTrip(get(uncomparable{t.Context(), nil}))
		require.NoError(t, err)
		require.Equal(t, 200, resp.StatusCode)
	}
}

func TestTheTimeOfAClassifierCountsAfterAFirstAttempt(t *testing.T) {
	inBubble(t, "with and without an observer", func(t *testing.T) {
		fault := roundTripper(func(*http.Request) (*http.Response, error) { return nil, errFault })
		for _, observe := range []func(context.Context, retry.Event){nil, func(context.Context, retry.Event) {}} {
			p := retry.Policy{
				MaxAttempts: 2, TTL: 30 * time.Millisecond, Backoff: retry.Backoff{Base: time.Millisecond}, Observe: observe,
				Classify: func(error) retry.Class { time.Sleep(50 * time.Millisecond); return retry.Retryable },
			}
			_, err := (&retryhttp.Transport{Base: fault, Policy: p}).RoundTrip(get(t.Context()))
			require.ErrorIs(t, err, retry.TTLElapsed)
		}
	})
}
