package retryhttp_test

import (
	"context"
	"errors"
	"io"
	"math/rand/v2"
	"net"
	"net/http"
	"net/http/httptest"
	"slices"
	"strconv"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/retrygo/retry"
	"github.com/retrygo/retry/retryhttp"
	"github.com/retrygo/retry/retryhttp/hints"
)

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
	forbids := always(503, "X-Should-Retry", "false")
	calls := 0
	answersAfterAFault := roundTripper(func(req *http.Request) (*http.Response, error) {
		if calls++; calls == 1 {
			return nil, errFault
		}
		return answer(req, 404), nil
	})
	recorded := retryhttp.WithOutcome(t.Context())
	for _, row := range []struct {
		name string
		base roundTripper
		ctx  context.Context
		want bool
	}{
		{"that has retried", always(503), recorded, true},
		{"that has retried, without a record", always(503), t.Context(), true},
		{"but not that of one attempt", always(503), retry.OneAttempt(recorded), false},
		{"but not an answer", always(404), recorded, false},
		{"but not an answer after a retry", answersAfterAFault, recorded, false},
		{"that its server forbids to go on", forbids, t.Context(), true},
	} {
		t.Run(row.name, func(t *testing.T) {
			resp, err := (&retryhttp.Transport{Base: row.base, Policy: atOnce}).RoundTrip(get(row.ctx))
			require.NoError(t, err)
			require.Equal(t, row.want, retry.IsGivenUp(retryhttp.CheckResponse(resp)))
		})
	}
	t.Run("and so does Outcome.InnerGaveUp of a server that forbids it", func(t *testing.T) {
		o, _, err := run(t, &retryhttp.Transport{Base: forbids, Policy: atOnce}, get(t.Context()))
		require.NoError(t, err)
		require.Equal(t, []any{retry.TerminalError, true}, []any{o.Reason, o.InnerGaveUp})
		o, _, err = run(t, &retryhttp.Transport{Base: always(503), Policy: atOnce}, request(t.Context(), "POST", nil))
		require.NoError(t, err)
		require.Equal(t, []any{retry.TerminalError, false}, []any{o.Reason, o.InnerGaveUp}, "the Transport itself has ended it")
	})
	t.Run("and so does an attempt at a Transport inside", func(t *testing.T) {
		inner := &retryhttp.Transport{Base: roundTripper(func(*http.Request) (*http.Response, error) { return nil, errFault }), Policy: atOnce}
		o, _, err := run(t, &retryhttp.Transport{Base: inner, Policy: once}, get(t.Context()))
		require.Error(t, err)
		require.True(t, retry.IsGivenUp(o.History[0].Err))
	})
}

// Doubt outlives the run of a request that may have taken effect and was not repeated for that reason.
func TestDoubtIsTerminalToEveryRunAround(t *testing.T) {
	lost := traced(true, true, io.EOF)
	yes := func(*retryhttp.AttemptError) bool { return true }
	for _, row := range []struct {
		name   string
		base   roundTripper
		method string
		repeat func(*retryhttp.AttemptError) bool
		sends  int // of an outer run of 3 around a run of 3; 1 is doubt
	}{
		{"a POST whose answer is lost", lost, "POST", nil, 1},
		{"a POST that is answered 503", always(503), "POST", nil, 1},
		{"a GET whose answer is lost", lost, "GET", nil, 9},
		{"a POST that may be repeated", lost, "POST", yes, 9},
		{"a POST that was not sent", traced(true, false, &net.OpError{Op: "dial", Err: errFault}), "POST", nil, 9},
		{"a POST that is answered 404", always(404), "POST", nil, 3},
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
			if row.sends == 1 {
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
	retryhttp.Handler(http.HandlerFunc(l.serve), retryhttp.HandlerOptions{Trust: l.trust}).ServeHTTP(w, r)
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
		{name: "to no other", trust: anyone, want: []string{""}},
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

// Whatever the headers of the user's request and of the bottom's answers are, a service makes at most as many calls as
// without them, with any TTL and budget, and so does a chain of services with the same MaxHint.
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
			if seed%1000 == 0 {
				t.Logf("seed %d: %d calls without headers, %d with", seed, without, with)
			}
			if with < without {
				fewer++
			}
		}
		require.Greater(t, fewer, 300, "they lower it")
	})
}

func TestATransportSeesWhyTheOneBelowHasFailed(t *testing.T) {
	for text, want := range map[string]string{
		"http: ContentLength=10 with Body length 3":                     "body_failed",
		`net/http: invalid header field value for "X"`:                  "invalid_request",
		"net/http: cannot rewind body after connection loss":            "body_not_replayable",
		"net/http: request canceled while waiting for connection":       "canceled",
		`failed to parse Location header "http://[": missing ']' in it`: "redirect",
	} {
		t.Run(want, func(t *testing.T) {
			sent := 0
			base := roundTripper(func(*http.Request) (*http.Response, error) { sent++; return nil, errors.New(text) })
			below := &retryhttp.Transport{Base: base, Policy: once}
			o, _, err := run(t, &retryhttp.Transport{Base: below, Policy: atOnce}, get(t.Context()))
			require.ErrorIs(t, err, retry.TerminalError)
			require.Equal(t, []string{want}, reasons(o))
			require.Equal(t, 1, sent)
		})
	}
	t.Run("the reason is not due to a mark of the policy's", func(t *testing.T) {
		base := roundTripper(func(*http.Request) (*http.Response, error) {
			return nil, errors.New("net/http: TLS handshake timeout")
		})
		never := once
		never.Classify = retry.Otherwise(retry.Terminal)
		below := &retryhttp.Transport{Base: base, Policy: never}
		o, _, err := run(t, &retryhttp.Transport{Base: below, Policy: atOnce}, get(t.Context()))
		require.ErrorIs(t, err, retry.AttemptsExhausted)
		require.Equal(t, slices.Repeat([]string{string(retryhttp.DialTimeout)}, 3), reasons(o))
	})
	t.Run("the reason is that for which its own context was canceled", func(t *testing.T) {
		ctx, cancel := context.WithCancelCause(t.Context())
		cancel(errors.New("http: ContentLength=1 with Body length 0"))
		failed := once.NewError(ctx, retry.Outcome{Status: retry.Expired, Reason: retry.DeadlinePassed}, nil)
		require.Equal(t, retryhttp.BodyFailed, retryhttp.ReasonOf(failed))
	})
}
