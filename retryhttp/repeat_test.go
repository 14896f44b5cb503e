package retryhttp_test

import (
	"context"
	"errors"
	"io"
	"log/slog"
	"maps"
	"net"
	"net/http"
	"net/http/httptrace"
	"net/url"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/retrygo/retry"
	"github.com/retrygo/retry/retryhttp"
	"github.com/retrygo/retry/retryshell"
	"github.com/retrygo/retry/retrytest"
)

func TestWhichRequestsAreRepeated(t *testing.T) {
	key := func(name string, values ...string) http.Header { return http.Header{name: values} }
	constant := func(key string) func(*http.Request) string { return func(*http.Request) string { return key } }
	for _, row := range []struct {
		name    string
		method  string
		header  http.Header
		tr      retryhttp.Transport
		repeats bool
	}{
		{name: "GET", method: "GET", repeats: true},
		{name: "no method, which is GET", method: "", repeats: true},
		{name: "HEAD", method: "HEAD", repeats: true},
		{name: "OPTIONS", method: "OPTIONS", repeats: true},
		{name: "TRACE", method: "TRACE", repeats: true},
		{name: "PUT", method: "PUT", repeats: true},
		{name: "DELETE", method: "DELETE", repeats: true},
		{name: "not POST", method: "POST"},
		{name: "not PATCH", method: "PATCH"},
		{name: "not CONNECT", method: "CONNECT"},
		{name: "not an unknown method", method: "BREW"},
		{name: "not get in lower case, which is another method", method: "get"},
		{name: "POST with a key", method: "POST", header: key("Idempotency-Key", `"1"`), repeats: true},
		{name: "POST with a key of the older name", method: "POST", header: key("X-Idempotency-Key", "1"), repeats: true},
		{name: "POST with a key that is not sent", method: "POST", header: key("Idempotency-Key"), repeats: true},
		{name: "not POST with another header", method: "POST", header: key("Idempotency", "1")},
		{name: "POST on a Transport that repeats any", method: "POST", tr: retryhttp.Transport{Repeat: anyFailure}, repeats: true},
		{name: "POST with a generated key", method: "POST", tr: retryhttp.Transport{IdempotencyKey: retryhttp.RandomKey}, repeats: true},
		{name: "POST on a Transport that repeats any for which no key is generated", method: "POST", tr: retryhttp.Transport{Repeat: anyFailure, IdempotencyKey: constant("")}, repeats: true},
		{name: "not POST for which no key is generated", method: "POST", tr: retryhttp.Transport{IdempotencyKey: constant("")}},
	} {
		t.Run(row.name, func(t *testing.T) {
			statuses := []int{503}
			if row.repeats {
				statuses = []int{503, 503, 503}
			}
			row.tr.Base, row.tr.Policy = retrytest.Statuses(t, statuses...), atOnce
			req := get(t.Context())
			req.Method = row.method
			maps.Copy(req.Header, row.header)
			o, resp, err := run(t, &row.tr, req)
			require.NoError(t, err)
			require.Equal(t, 503, resp.StatusCode)
			if row.repeats {
				require.Equal(t, retry.AttemptsExhausted, o.Reason)
				return
			}
			require.Equal(t, retry.TerminalError, o.Reason)
			require.Equal(t, []string{"status_503/not_idempotent"}, reasons(o))
			require.EqualError(t, o.History[0].Err, "retryhttp: 503 Service Unavailable (not repeated: not_idempotent)")
		})
	}
	t.Run("what the rules end needs no veto", func(t *testing.T) {
		tr := &retryhttp.Transport{Base: retrytest.Statuses(t, 404), Policy: atOnce, Delivery: true}
		o, _, err := run(t, tr, request(t.Context(), "POST", nil))
		require.NoError(t, err)
		require.Equal(t, []string{"status_404"}, reasons(o))
	})
}

// traced fails as a transport does that has looked for a connection, and has or has not obtained one.
func traced(sought, obtained bool, err error) roundTripper {
	return func(req *http.Request) (*http.Response, error) {
		if trace := httptrace.ContextClientTrace(req.Context()); trace != nil {
			if sought {
				trace.GetConn("example.com:80")
			}
			if obtained {
				trace.GotConn(httptrace.GotConnInfo{})
			}
		}
		return nil, err
	}
}

func TestUnsent(t *testing.T) {
	opaque := errors.New("Bad Gateway")
	refused := &net.OpError{Op: "dial", Net: "tcp", Err: errors.New("refused")}
	stream := errors.New("stream error: stream ID 1; REFUSED_STREAM")
	for _, row := range []struct {
		name string
		base roundTripper
		want []string
	}{
		{"no connection was obtained: repeated, whatever the error", traced(true, false, opaque), []string{"proxy_connect", "proxy_connect"}},
		{"a connection was obtained: not repeated", traced(true, true, opaque), []string{"proxy_connect/not_idempotent"}},
		{"a connection was obtained before the dial that failed: not repeated", traced(true, true, refused), []string{"dial_failed/not_idempotent"}},
		{"a connection was obtained, the stream refused: repeated", traced(true, true, stream), []string{"stream_reset", "stream_reset"}},
		{"a transport that tells nothing: not repeated", traced(false, false, opaque), []string{"proxy_connect/not_idempotent"}},
		{"a transport that tells nothing, with an error that does: repeated", traced(false, false, refused), []string{"dial_failed", "dial_failed"}},
	} {
		t.Run(row.name, func(t *testing.T) {
			p := atOnce
			p.MaxAttempts = 2
			o, _, err := run(t, &retryhttp.Transport{Base: row.base, Policy: p}, request(t.Context(), "POST", strings.NewReader("x")))
			require.Error(t, err)
			require.Equal(t, row.want, reasons(o))
			var failed *retryhttp.AttemptError
			require.ErrorAs(t, err, &failed)
			require.Equal(t, len(row.want) == 2, failed.Unsent)
		})
	}
	t.Run("the caller's own trace is told as well", func(t *testing.T) {
		told := 0
		ctx := httptrace.WithClientTrace(t.Context(), &httptrace.ClientTrace{GetConn: func(string) { told++ }})
		_, _, _ = run(t, &retryhttp.Transport{Base: traced(true, false, opaque), Policy: atOnce}, request(ctx, "POST", nil))
		require.Equal(t, 3, told)
	})
}

func TestIdempotencyKey(t *testing.T) {
	var sent []string
	record := roundTripper(func(req *http.Request) (*http.Response, error) {
		sent = append(sent, strings.Join(req.Header["Idempotency-Key"], "+"))
		return answer(req, 503), nil
	})
	tr := &retryhttp.Transport{Base: record, Policy: atOnce, IdempotencyKey: retryhttp.RandomKey}
	calls := func(req *http.Request) []string {
		sent = nil
		_, err := tr.RoundTrip(req)
		require.NoError(t, err)
		return sent
	}
	t.Run("it is the same on every attempt and another for every call", func(t *testing.T) {
		req := request(t.Context(), "POST", nil)
		first, second := calls(req), calls(req)
		require.Equal(t, []string{first[0], first[0], first[0]}, first)
		require.NotEqual(t, first[0], second[0])
		require.Regexp(t, regexp.MustCompile(`^"[0-9a-f]{8}-[0-9a-f]{4}-4[0-9a-f]{3}-[89ab][0-9a-f]{3}-[0-9a-f]{12}"$`), first[0])
		require.Empty(t, req.Header, "the caller's header is not changed")
	})
	t.Run("the caller's own key stays, and an idempotent method gets none", func(t *testing.T) {
		req := request(t.Context(), "POST", nil)
		req.Header.Set("Idempotency-Key", "mine")
		require.Equal(t, []string{"mine", "mine", "mine"}, calls(req))
		require.Equal(t, []string{"", "", ""}, calls(request(t.Context(), "PUT", nil)))
	})
	t.Run("a request without a header map gets one", func(t *testing.T) {
		req := request(t.Context(), "PATCH", nil)
		req.Header = nil
		require.Len(t, calls(req)[0], 38)
		require.Nil(t, req.Header)
	})
	t.Run("it is generated once, for the attempts' request", func(t *testing.T) {
		n := 0
		tr := &retryhttp.Transport{Base: record, Policy: atOnce, IdempotencyKey: func(req *http.Request) string {
			n++
			return req.URL.Host
		}}
		sent = nil
		_, err := tr.RoundTrip(request(t.Context(), "POST", nil))
		require.NoError(t, err)
		require.Equal(t, 1, n)
		require.Equal(t, []string{"example.com", "example.com", "example.com"}, sent)
	})
	t.Run("a key that no header can have is refused before anything is sent", func(t *testing.T) {
		for _, bad := range []string{"a\r\nb", "\nb"} {
			body := newBody("x")
			tr := &retryhttp.Transport{Base: roundTripper(nil), Policy: atOnce, IdempotencyKey: func(*http.Request) string { return bad }}
			o, _, err := run(t, tr, request(t.Context(), "POST", body))
			require.ErrorIs(t, err, retry.TerminalError)
			require.Equal(t, []string{"invalid_request/invalid_request"}, reasons(o))
			require.Equal(t, int32(1), body.n.Load())
		}
	})
}

func TestAttemptHeader(t *testing.T) {
	var sent []string
	tr := &retryhttp.Transport{Policy: atOnce, AttemptHeader: retryhttp.AttemptHeader,
		Base: roundTripper(func(req *http.Request) (*http.Response, error) {
			sent = append(sent, strconv.Itoa(retryhttp.AttemptFromRequest(req, "")))
			require.NotContains(t, req.Header, "retry-attempt")
			return answer(req, 503), nil
		})}
	req := get(t.Context())
	req.Header.Set(retryhttp.AttemptHeader, "7")
	req.Header["retry-attempt"] = []string{"8"} // net/http would send both
	_, err := tr.RoundTrip(req)
	require.NoError(t, err)
	require.Equal(t, []string{"1", "2", "3"}, sent, "every attempt carries its number, and not that of a request it was made from")
	require.Equal(t, "7", req.Header.Get(retryhttp.AttemptHeader))
}

func TestContextOfAttempts(t *testing.T) {
	type key struct{}
	ctx, cancel := context.WithCancel(context.WithValue(t.Context(), key{}, "value"))
	defer cancel()
	var seen []context.Context
	base := roundTripper(func(req *http.Request) (*http.Response, error) {
		seen = append(seen, req.Context())
		return answer(req, 503), nil
	})
	calls := func(ctx context.Context, tr retryhttp.Transport) []context.Context {
		seen = nil
		tr.Base = base
		req := get(ctx)
		resp, err := tr.RoundTrip(req)
		require.NoError(t, err)
		require.Same(t, req, resp.Request, "the response is for the caller's request")
		return seen
	}
	t.Run("without an attempt timeout the first attempt has the caller's context, and a retry its number as well", func(t *testing.T) {
		for i, got := range calls(ctx, retryhttp.Transport{Policy: atOnce}) {
			require.Equal(t, i == 0, got == ctx)
			require.Equal(t, i+1, retry.AttemptNumber(got))
			require.Equal(t, "value", got.Value(key{}))
			require.Equal(t, ctx.Done(), got.Done())
		}
	})
	t.Run("with an attempt timeout it is cancelled when the attempt has failed", func(t *testing.T) {
		p := atOnce
		p.AttemptTimeout = 1 << 40
		for i, got := range calls(ctx, retryhttp.Transport{Policy: p}) {
			require.Equal(t, i+1, retry.AttemptNumber(got))
			require.ErrorIs(t, got.Err(), context.Canceled)
		}
	})
	t.Run("beside a Request.Cancel a retry has its number too", func(t *testing.T) {
		seen = nil
		_, _, err := run(t, &retryhttp.Transport{Base: base, Policy: atOnce}, withCancel(ctx, make(chan struct{})))
		require.NoError(t, err)
		for i, got := range seen {
			require.Equal(t, i+1, retry.AttemptNumber(got))
			require.Equal(t, "value", got.Value(key{}))
		}
	})
	t.Run("inside a run of the caller's the attempts have numbers of their own", func(t *testing.T) {
		outer := 0
		_ = retry.Do(ctx, atOnce, func(ctx context.Context) error {
			outer++
			for i, got := range calls(ctx, retryhttp.Transport{Policy: atOnce}) {
				require.Equal(t, i+1, retry.AttemptNumber(got))
			}
			require.Equal(t, outer, retry.AttemptNumber(ctx))
			return errFault
		})
		require.Equal(t, 3, outer)
	})
}

func TestRecord(t *testing.T) {
	recorded := get(retryhttp.WithOutcome(t.Context()))
	for _, row := range []struct {
		name string
		resp *http.Response
		err  error
		want string
	}{
		{"an error from elsewhere has none", nil, io.EOF, "the error is not of a run: EOF"},
		{"an error from elsewhere has none beside a response, as of a client that does not follow a redirect", answer(recorded, 302), io.EOF, "the error is not of a run: EOF"},
		{"neither an error nor a response has none", nil, nil, "neither a response to a request nor an error"},
		{"a response to no request has none", new(http.Response), nil, "neither a response to a request nor an error"},
		{"a response to a request that was not to be recorded has none", answer(get(t.Context()), 200), nil, "the request's context is not from WithOutcome"},
		{"a response from elsewhere has none", answer(recorded, 200), nil, "the response is not from one of the newest 64 runs of its request's context"},
	} {
		t.Run(row.name, func(t *testing.T) {
			o, err := retryhttp.OutcomeOf(row.resp, row.err)
			require.EqualError(t, err, "retryhttp: OutcomeOf: "+row.want)
			require.Zero(t, o)
			if row.err != nil {
				require.ErrorIs(t, err, row.err)
			}
		})
	}
	t.Run("requests that share a context keep apart, up to 64", func(t *testing.T) {
		ctx := retryhttp.WithOutcome(t.Context())
		base := retrytest.NewPipeServer(t, []retrytest.Answer{{Times: 65}})
		var all []*http.Response
		for i := range 65 {
			p := retry.Policy{Name: strconv.Itoa(i)}
			resp, err := (&retryhttp.Transport{Base: base, Policy: p}).RoundTrip(get(ctx))
			require.NoError(t, err)
			all = append(all, resp)
		}
		for i, resp := range all {
			o, err := retryhttp.OutcomeOf(resp, nil)
			if i == 0 {
				require.ErrorContains(t, err, "newest 64 runs")
				continue
			}
			require.NoError(t, err)
			require.Equal(t, strconv.Itoa(i), o.Policy)
		}
	})
	t.Run("it is the receiver's own", func(t *testing.T) {
		_, resp, err := run(t, &retryhttp.Transport{Base: retrytest.Statuses(t, 503, 200), Policy: atOnce}, get(t.Context()))
		require.NoError(t, err)
		o, _ := retryhttp.OutcomeOf(resp, nil)
		o.History[0].Err = io.EOF
		again, _ := retryhttp.OutcomeOf(resp, nil)
		require.NotEqual(t, io.EOF, again.History[0].Err)
	})
}

// keysOf returns a client whose POSTs are answered 503, and the keys that they have.
func keysOf(key func(*http.Request) string) (*http.Client, *[]string) {
	var keys []string
	return &http.Client{Transport: &retryhttp.Transport{Policy: retry.Policy{MaxAttempts: 2, Backoff: atOnce.Backoff}, IdempotencyKey: key,
		Base: roundTripper(func(req *http.Request) (*http.Response, error) {
			keys = append(keys, req.Header.Get("Idempotency-Key"))
			return answer(req, 503), nil
		})}}, &keys
}

func TestTheKeyOfAPieceOfWork(t *testing.T) {
	post := func(ctx context.Context, client *http.Client, url string) error {
		req, err := http.NewRequestWithContext(ctx, http.MethodPost, url, nil)
		require.NoError(t, err)
		resp, err := client.Do(req)
		require.NoError(t, err)
		return retryhttp.CheckResponse(resp)
	}
	t.Run("is the same in each attempt of a run", func(t *testing.T) {
		client, keys := keysOf(retryhttp.WorkKey)
		ctx := retryhttp.WithWork(t.Context(), "order-7")
		_ = retry.Do(ctx, atOnce, func(ctx context.Context) error { return post(ctx, client, "http://bank.test/charges") })
		require.Equal(t, slices.Repeat((*keys)[:1], 6), *keys)
	})
	t.Run("other work, another method and another URL have other keys", func(t *testing.T) {
		key := func(work, method, url string) string {
			req, err := http.NewRequestWithContext(retryhttp.WithWork(t.Context(), work), method, url, nil)
			require.NoError(t, err)
			return retryhttp.WorkKey(req)
		}
		one := key("7", "POST", "http://bank.test/charges")
		require.Equal(t, one, key("7", "POST", "http://user:secret@bank.test/charges#x"))
		for _, other := range []string{key("8", "POST", "http://bank.test/charges"), key("7", "PATCH", "http://bank.test/charges"),
			key("7", "POST", "http://bank.test/charges?n=1"), key("7", "POST", "http://other.test/charges"), key("7 ", "POST", "http://bank.test/charges")} {
			require.NotEqual(t, one, other)
		}
	})
	t.Run("without work there is none, and the request is not repeated", func(t *testing.T) {
		client, keys := keysOf(retryhttp.WorkKey)
		require.Error(t, post(t.Context(), client, "http://bank.test/charges"))
		require.Error(t, post(retryhttp.WithWork(t.Context(), ""), client, "http://bank.test/charges"))
		require.Equal(t, []string{"", ""}, *keys)
		require.Empty(t, retryhttp.WorkKey(&http.Request{}))
	})
	t.Run("that is a job's is its ID, wherever the job's value has it", func(t *testing.T) {
		key := func(job any) string {
			return retryhttp.WorkKey(get(context.WithValue(t.Context(), retryshell.HandledJob{}, job)))
		}
		want := retryhttp.WorkKey(get(retryhttp.WithWork(t.Context(), "7")))
		require.Equal(t, want, key(logged(slog.GroupValue(slog.String("id", "7")))))
		require.Equal(t, want, key(logged(slog.GroupValue(slog.String("kind", "mail"), slog.Int("id", 7)))))
		for _, other := range []any{logged(slog.StringValue("7")), logged(slog.GroupValue()), logged(slog.GroupValue(slog.String("kind", "mail"))), "7"} {
			require.Empty(t, key(other))
		}
	})
	t.Run("a random one is another in each attempt of a run around", func(t *testing.T) {
		client, keys := keysOf(retryhttp.RandomKey)
		_ = retry.Do(t.Context(), atOnce, func(ctx context.Context) error { return post(ctx, client, "http://bank.test/charges") })
		require.Len(t, *keys, 6)
		require.Len(t, slices.Compact(slices.Clone(*keys)), 3)
	})
}

// logged is a job as an engine shows it to its handler.
type logged slog.Value

func (l logged) LogValue() slog.Value { return slog.Value(l) }
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
