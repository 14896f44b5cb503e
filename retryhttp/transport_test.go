package retryhttp_test

import (
	"context"
	"errors"
	"io"
	"net"
	"net/http"
	"net/url"
	"slices"
	"strconv"
	"strings"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/retrygo/retry"
	"github.com/retrygo/retry/retryhttp"
	"github.com/retrygo/retry/retryshell"
	"github.com/retrygo/retry/retrytest"
)

// roundTripper makes a RoundTripper of a function.
type roundTripper func(*http.Request) (*http.Response, error)

func (f roundTripper) RoundTrip(req *http.Request) (*http.Response, error) { return f(req) }

// answer returns a response to req as a transport would. The header is in pairs of name and value.
func answer(req *http.Request, status int, header ...string) *http.Response {
	resp := &http.Response{StatusCode: status, ProtoMajor: 1, ProtoMinor: 1, Header: http.Header{}, Body: http.NoBody, Request: req}
	for i := 0; i < len(header); i += 2 {
		resp.Header.Add(header[i], header[i+1])
	}
	return resp
}

// withBody returns a RoundTripper that answers with the body, of unknown length.
func withBody(status int, body io.ReadCloser) roundTripper {
	return func(req *http.Request) (*http.Response, error) {
		resp := answer(req, status)
		resp.Body, resp.ContentLength = body, -1
		return resp, nil
	}
}

// faults returns errFault for the calls with these numbers, from 1, and leaves the others to base.
func faults(base http.RoundTripper, numbers ...int) roundTripper {
	n := 0
	return func(req *http.Request) (*http.Response, error) {
		if n++; slices.Contains(numbers, n) {
			return nil, errFault
		}
		return base.RoundTrip(req)
	}
}

// anyFailure is a Transport.Repeat.
func anyFailure(*retryhttp.AttemptError) bool { return true }

var errFault = errors.New("fault")

func get(ctx context.Context) *http.Request { return request(ctx, http.MethodGet, nil) }

func request(ctx context.Context, method string, body io.Reader) *http.Request {
	req, err := http.NewRequestWithContext(ctx, method, "http://example.com/", body)
	if err != nil {
		panic(err)
	}
	return req
}

// three is a policy of 3 attempts with waits of 1s.
var three = retry.Policy{MaxAttempts: 3, Backoff: retry.Backoff{Mode: retry.Fixed, Base: time.Second}}

// atOnce is a policy of 3 attempts with waits of a nanosecond.
var atOnce = retry.Policy{MaxAttempts: 3, Backoff: retry.Backoff{Mode: retry.Fixed, Base: 1}}

// A policy that makes one attempt ends its run as RetriesDisabled, which says nothing of the failure.
var once = retry.Policy{Disabled: true}

// inBubble runs f as a subtest in virtual time.
func inBubble(t *testing.T, name string, f func(*testing.T)) {
	t.Run(name, func(t *testing.T) { synctest.Test(t, f) })
}

// run makes one call with rt and returns its record and what the caller gets.
func run(t *testing.T, rt http.RoundTripper, req *http.Request) (retry.Outcome, *http.Response, error) {
	t.Helper()
	resp, err := rt.RoundTrip(req.WithContext(retryhttp.WithOutcome(req.Context())))
	if err != nil {
		require.Nil(t, resp)
		var failed *retry.Error
		require.ErrorAs(t, err, &failed)
		return failed.Outcome, nil, err
	}
	o, err := retryhttp.OutcomeOf(resp, nil)
	require.NoError(t, err)
	return o, resp, nil
}

// checked sends req and returns the error of CheckResponse, as an fn of retry.Do does.
func checked(rt http.RoundTripper, req *http.Request) error {
	resp, err := rt.RoundTrip(req)
	if err != nil {
		return err
	}
	return retryhttp.CheckResponse(resp)
}

// reasons returns the reasons of a history, with its vetoes.
func reasons(o retry.Outcome) []string {
	var list []string
	for _, a := range o.History {
		var failed *retryhttp.AttemptError
		if !errors.As(a.Err, &failed) {
			list = append(list, a.Err.Error())
			continue
		}
		text := string(failed.Reason)
		if failed.Veto != "" {
			text += "/" + string(failed.Veto)
		}
		list = append(list, text)
	}
	return list
}

func TestStatuses(t *testing.T) {
	const exhausted, terminal = retry.AttemptsExhausted, retry.TerminalError
	for _, row := range []struct {
		status, attempts int
		want, delivery   retry.Reason
	}{
		{101, 1, 0, 0}, {200, 1, 0, 0}, {299, 1, 0, 0},
		{300, 1, 0, terminal}, {304, 1, 0, terminal}, {400, 1, 0, terminal}, {409, 1, 0, terminal}, {499, 1, 0, terminal},
		{408, 3, exhausted, exhausted}, {429, 3, exhausted, exhausted}, {500, 3, exhausted, exhausted}, {501, 3, exhausted, exhausted},
		{599, 3, exhausted, exhausted}, {0, 3, exhausted, exhausted}, {99, 3, exhausted, exhausted}, {600, 3, exhausted, exhausted},
	} {
		t.Run(strconv.Itoa(row.status), func(t *testing.T) {
			base := roundTripper(func(req *http.Request) (*http.Response, error) {
				return withBody(row.status, io.NopCloser(strings.NewReader("the last one")))(req)
			})
			o, resp, err := run(t, &retryhttp.Transport{Base: base, Policy: atOnce}, get(t.Context()))
			require.NoError(t, err, "the last response is the answer")
			require.Equal(t, row.status, resp.StatusCode)
			body, err := io.ReadAll(resp.Body)
			require.NoError(t, err)
			require.Equal(t, "the last one", string(body))
			require.Equal(t, row.attempts, o.Attempts)
			require.Equal(t, row.want, o.Reason)
			o, resp, err = run(t, &retryhttp.Transport{Base: base, Policy: atOnce, Delivery: true}, get(t.Context()))
			require.NoError(t, err)
			require.Equal(t, row.status, resp.StatusCode)
			require.Equal(t, row.attempts, o.Attempts)
			require.Equal(t, row.delivery, o.Reason, "of a delivery")
		})
	}
}

func TestEndings(t *testing.T) {
	inBubble(t, "a success after failures is one run of its attempts, waits and reasons", func(t *testing.T) {
		start := time.Now()
		o, resp, err := run(t, &retryhttp.Transport{Base: faults(retrytest.Statuses(t, 503, 200), 2), Policy: three}, get(t.Context()))
		require.NoError(t, err)
		require.Equal(t, 200, resp.StatusCode)
		require.Equal(t, 2*time.Second, time.Since(start))
		require.Equal(t, retry.Succeeded, o.Status)
		require.Equal(t, 3, o.Attempts)
		require.Equal(t, []string{"status_503", "transport_error"}, reasons(o))
		require.Equal(t, time.Second, o.History[0].Delay)
		require.EqualError(t, o.History[0].Err, "retryhttp: 503 Service Unavailable")
		require.EqualError(t, o.History[1].Err, "retryhttp: transport_error: fault")
	})
	t.Run("a run that a fault ends is the *retry.Error, through a client too", func(t *testing.T) {
		client := http.Client{Transport: &retryhttp.Transport{Base: faults(retrytest.Statuses(t, 503), 2, 3), Policy: atOnce}}
		_, err := client.Do(get(t.Context()))
		var outer *url.Error
		require.ErrorAs(t, err, &outer)
		require.False(t, outer.Timeout())
		require.ErrorIs(t, err, retry.AttemptsExhausted)
		require.ErrorIs(t, err, errFault)
		require.Equal(t, retryhttp.TransportError, retryhttp.ReasonOf(err))
		o, err := retryhttp.OutcomeOf(nil, err)
		require.NoError(t, err)
		require.Equal(t, []string{"status_503", "transport_error", "transport_error"}, reasons(o))
	})
	t.Run("a disabled policy returns its one response", func(t *testing.T) {
		p := three
		p.Disabled = true
		o, resp, err := run(t, &retryhttp.Transport{Base: retrytest.Statuses(t, 503), Policy: p}, get(t.Context()))
		require.NoError(t, err)
		require.Equal(t, 503, resp.StatusCode)
		require.Equal(t, retry.RetriesDisabled, o.Reason)
	})
	t.Run("a RoundTripper that returns nothing has failed", func(t *testing.T) {
		base := roundTripper(func(*http.Request) (*http.Response, error) { return nil, nil })
		_, _, err := run(t, &retryhttp.Transport{Base: base, Policy: atOnce}, get(t.Context()))
		require.ErrorContains(t, err, "neither a response nor an error")
	})
	t.Run("a RoundTripper that returns both has failed, and its response is closed", func(t *testing.T) {
		body := newBody("")
		base := roundTripper(func(req *http.Request) (*http.Response, error) {
			resp, _ := withBody(200, body)(req)
			return resp, errFault
		})
		_, _, err := run(t, &retryhttp.Transport{Base: base, Policy: retry.Policy{MaxAttempts: 1}}, get(t.Context()))
		require.ErrorIs(t, err, errFault)
		require.Equal(t, int32(1), body.n.Load())
	})
	t.Run("a response without a body is passed on", func(t *testing.T) {
		base := withBody(503, nil)
		p := atOnce
		p.AttemptTimeout = time.Minute
		_, resp, err := run(t, &retryhttp.Transport{Base: base, Policy: p, StallTimeout: time.Minute}, get(t.Context()))
		require.NoError(t, err)
		require.Nil(t, resp.Body)
	})
}

// closes is a body that counts how often it is closed.
type closes struct {
	io.Reader
	n atomic.Int32
}

func newBody(text string) *closes { return &closes{Reader: strings.NewReader(text)} }

func (c *closes) Close() error {
	c.n.Add(1)
	return nil
}

func TestRedirects(t *testing.T) {
	moves := roundTripper(func(req *http.Request) (*http.Response, error) {
		if req.URL.Path == "/" {
			return answer(req, 302, "Location", "/there"), nil
		}
		return answer(req, 200), nil
	})
	t.Run("the Transport leaves them to its client", func(t *testing.T) {
		client := http.Client{Transport: &retryhttp.Transport{Base: moves}}
		resp, err := client.Do(get(retryhttp.WithOutcome(t.Context())))
		require.NoError(t, err)
		require.Equal(t, 200, resp.StatusCode)
		o, err := retryhttp.OutcomeOf(resp, nil)
		require.NoError(t, err)
		require.Equal(t, retry.Succeeded, o.Status, "the record is that of the response, not of the redirect")
	})
	t.Run("NewClient follows them, on a transport of NewBase", func(t *testing.T) {
		client := retryhttp.NewClient(atOnce)
		base := client.Transport.(*retryhttp.Transport)
		require.NotNil(t, base.Base.(*http.Transport).HTTP2, "which pings")
		base.Base = moves
		resp, err := client.Do(get(t.Context()))
		require.NoError(t, err)
		require.Equal(t, 200, resp.StatusCode)
	})
	t.Run("the Client of a Delivery returns the 3xx", func(t *testing.T) {
		client := (&retryhttp.Transport{Base: moves, Policy: atOnce, Delivery: true}).Client()
		resp, err := client.Do(get(t.Context()))
		require.NoError(t, err)
		require.Equal(t, 302, resp.StatusCode)
		require.Equal(t, "/there", resp.Header.Get("Location"))
	})
}

func TestRules(t *testing.T) {
	with := func(classify retry.Classifier) retry.Policy {
		p := atOnce
		p.Classify = classify
		return p
	}
	for _, row := range []struct {
		name   string
		tr     retryhttp.Transport
		status int
		want   int // attempts
	}{
		{"a status can be added", retryhttp.Transport{Policy: with(retryhttp.OnStatus(retry.Retryable, 409))}, 409, 3},
		{"the other rules stay", retryhttp.Transport{Policy: with(retryhttp.OnStatus(retry.Retryable, 409))}, 503, 3},
		{"a status can be taken away", retryhttp.Transport{Policy: with(retryhttp.OnStatus(retry.Terminal, 503))}, 503, 1},
		{"ClassifyStrict stops at 501", retryhttp.Transport{Policy: with(retryhttp.ClassifyStrict)}, 501, 1},
		{"ClassifyStrict repeats 503", retryhttp.Transport{Policy: with(retryhttp.ClassifyStrict)}, 503, 3},
		{"ClassifyStrict with a status", retryhttp.Transport{Policy: with(retry.FirstOf(retryhttp.OnStatus(retry.Retryable, 501), retryhttp.ClassifyStrict))}, 501, 3},
		{"a function sees the header", retryhttp.Transport{Policy: with(func(err error) retry.Class {
			var failed *retryhttp.AttemptError
			if errors.As(err, &failed) && failed.Header.Get("X-Hopeless") != "" {
				return retry.Terminal
			}
			return retry.Unknown
		})}, 500, 1},
		{"what is accepted is a success", retryhttp.Transport{Policy: atOnce, Accept: func(*http.Response) bool { return true }}, 503, 1},
		{"a 202 that is not accepted is repeated", retryhttp.Transport{Policy: atOnce, Accept: func(r *http.Response) bool { return r.StatusCode == 200 }}, 202, 3},
		{"a 404 that is not accepted is terminal", retryhttp.Transport{Policy: atOnce, Accept: func(r *http.Response) bool { return r.StatusCode == 200 }}, 404, 1},
	} {
		t.Run(row.name, func(t *testing.T) {
			row.tr.Base = retrytest.NewPipeServer(t, []retrytest.Answer{
				{Status: row.status, Header: http.Header{"X-Hopeless": {"yes"}}, Times: row.want},
			})
			_, resp, err := run(t, &row.tr, get(t.Context()))
			require.NoError(t, err)
			require.Equal(t, row.status, resp.StatusCode)
		})
	}
	t.Run("Classify is asked once for each failed attempt", func(t *testing.T) {
		n := 0
		tr := &retryhttp.Transport{Base: retrytest.Statuses(t, 503, 503, 503, 503), Policy: with(func(error) retry.Class { n++; return retry.Unknown })}
		_, _, err := run(t, tr, request(t.Context(), http.MethodPut, io.LimitReader(strings.NewReader("x"), 1)))
		require.NoError(t, err)
		require.Equal(t, 1, n)
		n = 0
		_, _, err = run(t, tr, get(t.Context()))
		require.NoError(t, err)
		require.Equal(t, 3, n)
	})
	for _, row := range []struct {
		name     string
		method   string
		err      error // of the Base
		classify retry.Classifier
		want     []string
	}{
		{"a mark of the Base goes before the rules: Permanent", http.MethodGet, retry.Permanent(errFault), nil, []string{"transport_error"}},
		{"a mark of the Base goes before the rules: Transient", http.MethodGet, retry.Transient(context.Canceled), nil, []string{"canceled", "canceled", "canceled"}},
		{"no mark repeats what must not be", http.MethodPost, retry.Transient(errFault), nil, []string{"transport_error/not_idempotent"}},
		{"a canceled Base is terminal", http.MethodGet, context.Canceled, nil, []string{"canceled"}},
		{"a classifier goes before the default rules", http.MethodGet, context.Canceled, retry.RetryOn(context.Canceled), []string{"canceled", "canceled", "canceled"}},
	} {
		t.Run(row.name, func(t *testing.T) {
			base := roundTripper(func(*http.Request) (*http.Response, error) { return nil, row.err })
			o, _, err := run(t, &retryhttp.Transport{Base: base, Policy: with(row.classify)}, request(t.Context(), row.method, nil))
			require.ErrorIs(t, err, row.err)
			require.Equal(t, row.want, reasons(o))
		})
	}
}

func TestValidate(t *testing.T) {
	t.Run("the zero Transport is valid", func(t *testing.T) { require.NoError(t, new(retryhttp.Transport).Validate()) })
	t.Run("every bad field is named", func(t *testing.T) {
		tr := &retryhttp.Transport{Policy: retry.Policy{TTL: -1}, BufferBody: -1, StallTimeout: -2, AttemptHeader: "a b"}
		err := tr.Validate()
		require.EqualError(t, err, `retry: Policy.TTL -1ns is negative; retryhttp: Transport.BufferBody -1 is negative; `+
			`Transport.StallTimeout -2ns is negative; Transport.AttemptHeader "a b" is not a field name`)
		var first *retry.FieldError
		require.ErrorAs(t, err, &first, "without a look into the list")
		require.Equal(t, "Policy.TTL", first.Field)
	})
	t.Run("a name with a meaning of its own is refused", func(t *testing.T) {
		for _, name := range []string{"Authorization", "Connection", "Content-Length", "Content-Type", "Expect", "Host", "Idempotency-Key",
			"Trailer", "Transfer-Encoding", "Upgrade", "X-Idempotency-Key"} {
			tr := &retryhttp.Transport{AttemptHeader: strings.ToLower(name)}
			require.EqualError(t, tr.Validate(), `retryhttp: Transport.AttemptHeader "`+name+`" has a meaning of its own`)
		}
	})
	for name, tr := range map[string]*retryhttp.Transport{
		"a negative BufferBody":                   {BufferBody: -1},
		"a bad policy":                            {Policy: retry.Policy{TTL: -1}},
		"a negative attempt timeout":              {Policy: retry.Policy{AttemptTimeout: -1}},
		"a bad name for the header of an attempt": {AttemptHeader: "a\nb"},
	} {
		t.Run("RoundTrip refuses "+name+" and closes the body", func(t *testing.T) {
			tr.Base = roundTripper(func(*http.Request) (*http.Response, error) { panic("sent") })
			body := newBody("x")
			_, err := tr.RoundTrip(request(t.Context(), http.MethodPost, body))
			require.Error(t, err)
			require.NotErrorAs(t, err, new(*retry.Error))
			require.Equal(t, int32(1), body.n.Load())
		})
	}
	t.Run("RoundTrip refuses a nil request", func(t *testing.T) {
		_, err := new(retryhttp.Transport).RoundTrip(nil)
		require.ErrorContains(t, err, "nil")
	})
}

func TestRunsInside(t *testing.T) {
	t.Run("an outer run does not repeat what was not to be repeated", func(t *testing.T) {
		for _, classify := range []retry.Classifier{retryhttp.Classify, retryhttp.ClassifyStrict} {
			client := (&retryhttp.Transport{Base: faults(nil, 1), Policy: atOnce}).Client()
			p := atOnce
			p.Classify = classify
			err := retry.Do(t.Context(), p, func(ctx context.Context) error {
				_, err := client.Do(request(ctx, http.MethodPost, nil))
				return err
			})
			require.ErrorIs(t, err, errFault)
		}
	})
	t.Run("an outer Transport does not repeat what the inner one found terminal", func(t *testing.T) {
		p := atOnce
		p.Classify = retry.Otherwise(retry.Terminal)
		inner := &retryhttp.Transport{Base: faults(nil, 1), Policy: p}
		_, _, err := run(t, &retryhttp.Transport{Base: inner, Policy: atOnce}, get(t.Context()))
		require.Error(t, err)
	})
	t.Run("one attempt inside that was sent is enough not to repeat a POST", func(t *testing.T) {
		n := 0
		inner := &retryhttp.Transport{Repeat: anyFailure, Policy: atOnce, Base: roundTripper(func(*http.Request) (*http.Response, error) {
			if n++; n == 1 {
				return nil, io.EOF
			}
			return nil, &net.OpError{Op: "dial", Err: errFault}
		})}
		o, _, err := run(t, &retryhttp.Transport{Base: inner, Policy: atOnce}, request(t.Context(), http.MethodPost, nil))
		require.Error(t, err)
		require.Equal(t, 3, n)
		require.Equal(t, []string{"dial_failed/not_idempotent"}, reasons(o))
		n = 1
		_, _, err = run(t, &retryhttp.Transport{Base: inner, Policy: atOnce}, request(t.Context(), http.MethodPost, nil))
		require.ErrorIs(t, err, retry.AttemptsExhausted)
		require.Equal(t, 10, n, "where all were not, it is repeated")
	})
	t.Run("a run without an attempt has no reason", func(t *testing.T) {
		p := retry.Policy{TTL: time.Second, Gate: func(context.Context) time.Duration { return time.Minute }}
		tr := &retryhttp.Transport{Policy: p}
		_, err := tr.RoundTrip(get(t.Context()))
		require.ErrorIs(t, err, retry.TTLElapsed)
		require.Equal(t, retryhttp.Reason(""), retryhttp.ReasonOf(err))
	})
}

func TestAttemptError(t *testing.T) {
	var none *retryhttp.AttemptError
	require.EqualError(t, none, "<nil>")
	require.NoError(t, none.Unwrap())
	require.False(t, none.Timeout())
	require.False(t, new(retryhttp.AttemptError).Timeout())
	require.EqualError(t, &retryhttp.AttemptError{StatusCode: 999}, "retryhttp: status 999")
	require.EqualError(t, &retryhttp.AttemptError{StatusCode: 404}, "retryhttp: 404 Not Found")
	for _, row := range []struct {
		reason retryhttp.Reason
		err    error
		want   string
	}{
		{retryhttp.ConnClosed, io.EOF, "retryhttp: conn_closed: EOF"},
		{retryhttp.AttemptTimeout, retry.ErrAttemptTimeout, "retryhttp: attempt timeout"},
		{retryhttp.AttemptTimeout, retryshell.MarkTimeout(context.Canceled), "retryhttp: attempt timeout: context canceled"},
		{"", io.EOF, "retryhttp: EOF"},
		{retryhttp.NotIdempotent, nil, "retryhttp: not_idempotent"},
	} {
		require.EqualError(t, &retryhttp.AttemptError{Reason: row.reason, Err: row.err}, row.want)
	}
	timeout := &retryhttp.AttemptError{Err: &url.Error{Op: "Get", Err: retry.Permanent(context.DeadlineExceeded)}}
	require.True(t, timeout.Timeout(), "whatever is wrapped around it")
}

func TestCloseIdleConnections(t *testing.T) {
	idle := &idleCloser{}
	(&http.Client{Transport: &retryhttp.Transport{Base: idle}}).CloseIdleConnections()
	require.Equal(t, 1, idle.n, "it is forwarded")
	new(retryhttp.Transport).CloseIdleConnections()
	(&retryhttp.Transport{Base: roundTripper(nil)}).CloseIdleConnections()
	_, _, err := run(t, &retryhttp.Transport{Base: idle, Policy: atOnce}, get(t.Context()))
	require.Error(t, err)
	require.Equal(t, 1, idle.n, "a failure does not empty the pool")
}

type idleCloser struct{ n int }

func (*idleCloser) RoundTrip(*http.Request) (*http.Response, error) { return nil, errFault }
func (c *idleCloser) CloseIdleConnections()                         { c.n++ }

func TestAllocations(t *testing.T) {
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	req := get(ctx)
	req.Header.Set("Accept", "application/json")
	base := roundTripper(func(*http.Request) (*http.Response, error) {
		return withBody(200, io.NopCloser(strings.NewReader("body")))(req)
	})
	allocs := func(rt http.RoundTripper) float64 {
		return testing.AllocsPerRun(100, func() {
			resp, err := rt.RoundTrip(req)
			if err != nil {
				t.Fatal(err)
			}
			_, _ = io.Copy(io.Discard, resp.Body)
			_ = resp.Body.Close()
		})
	}
	bare := allocs(base)
	require.Equal(t, bare, allocs(&retryhttp.Transport{Base: base}))
	// The context of the attempt in two parts with its timer and its end, and the request that has it.
	require.LessOrEqual(t, allocs(&retryhttp.Transport{Base: base, Policy: retry.Policy{AttemptTimeout: time.Minute}})-bare, 6.0)

	attempt := 0
	flaky := roundTripper(func(*http.Request) (*http.Response, error) {
		if attempt++; attempt%3 == 0 {
			return answer(req, 200), nil
		}
		return answer(req, 503), nil
	})
	three := testing.AllocsPerRun(100, func() {
		for range 3 {
			_, _ = flaky(req)
		}
	})
	attempt = 0
	// The run here and that of Do, the mark of the last attempt, and for each 503 the AttemptError and the request of the
	// retry.
	p := retry.Policy{Backoff: retry.Backoff{Delays: []time.Duration{0}}, MaxAttempts: 3}
	require.LessOrEqual(t, allocs(&retryhttp.Transport{Base: flaky, Policy: p})-three, 3.0+2*3)
}

// TestAFirstAttemptIsPartOfItsRun is about an attempt that is made before there is a run.
func TestAFirstAttemptIsPartOfItsRun(t *testing.T) {
	for _, timeout := range []time.Duration{0, time.Hour} {
		inBubble(t, "its time counts, as it does with an observer, with a timeout of "+timeout.String(), func(t *testing.T) {
			start := time.Now()
			slow := roundTripper(func(req *http.Request) (*http.Response, error) {
				time.Sleep(3 * time.Second)
				return nil, errFault
			})
			p := retry.Policy{
				MaxAttempts: 9, AttemptTimeout: timeout, TTL: 10 * time.Second, Backoff: retry.Backoff{Mode: retry.Fixed, Base: time.Second},
			}
			outcome := func() retry.Outcome {
				began := time.Now()
				_, err := (&retryhttp.Transport{Base: slow, Policy: p}).RoundTrip(get(t.Context()))
				var failed *retry.Error
				require.ErrorAs(t, err, &failed)
				for i := range failed.History {
					failed.History[i].Err = nil
					failed.History[i].Start = start.Add(failed.History[i].Start.Sub(began))
				}
				return failed.Outcome
			}
			direct := outcome()
			require.Equal(t, retry.TTLElapsed, direct.Reason)
			require.Equal(t, 3, direct.Attempts)
			require.Equal(t, 11*time.Second, direct.Elapsed)
			require.Equal(t, 3*time.Second, direct.History[0].Duration)
			require.True(t, start.Equal(direct.History[0].Start))
			p.Observe = func(context.Context, retry.Event) {}
			require.Equal(t, outcome(), direct)
		})
	}
	inBubble(t, "its response is that to the caller's request, also if an attempt timeout needs another", func(t *testing.T) {
		req := get(t.Context())
		resp, err := (&retryhttp.Transport{Base: always(200), Policy: retry.Policy{AttemptTimeout: time.Hour}}).RoundTrip(req)
		require.NoError(t, err)
		require.Same(t, req, resp.Request)
	})
	inBubble(t, "it counts if the caller goes meanwhile", func(t *testing.T) {
		ctx, cancel := context.WithCancel(t.Context())
		gone := roundTripper(func(*http.Request) (*http.Response, error) {
			cancel()
			return nil, errFault
		})
		_, err := (&retryhttp.Transport{Base: gone}).RoundTrip(get(ctx))
		var failed *retry.Error
		require.ErrorAs(t, err, &failed)
		require.Equal(t, retry.CallerCanceled, failed.Reason)
		require.Equal(t, 1, failed.Attempts)
		require.ErrorIs(t, failed.Last, errFault)
	})
	inBubble(t, "its context is released if Base panics", func(t *testing.T) {
		var ctx context.Context
		blown := roundTripper(func(req *http.Request) (*http.Response, error) {
			ctx = req.Context()
			panic("boom")
		})
		for _, method := range []string{http.MethodGet, http.MethodPost} { // which have ways of their own
			tr := &retryhttp.Transport{Base: blown, Policy: retry.Policy{AttemptTimeout: time.Hour}}
			require.Panics(t, func() { _, _ = tr.RoundTrip(request(t.Context(), method, nil)) })
			require.ErrorIs(t, ctx.Err(), context.Canceled)
		}
	})
}
