package retryhttp_test

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"maps"
	"net/http"
	"net/url"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/retrygo/retry"
	"github.com/retrygo/retry/retryhttp"
)

// attrs returns the attributes of a group as text.
func attrs(e *retryhttp.AttemptError) string {
	var list []string
	for _, a := range e.LogValue().Group() {
		list = append(list, a.String())
	}
	return strings.Join(list, " ")
}

func TestAttemptErrorSaysWhichRequestFailed(t *testing.T) {
	req := request(t.Context(), "POST", nil)
	req.URL, _ = url.Parse("https://alice:hunter2@api.example.com:8443/v1/orders/7?token=hunter2#hunter2")
	req.Header.Set("Authorization", "Bearer hunter2")
	var failures []*retryhttp.AttemptError
	p := atOnce
	p.Classify = func(err error) retry.Class {
		failures = append(failures, err.(*retryhttp.AttemptError))
		return retry.Unknown
	}
	tr := &retryhttp.Transport{Base: faults(always(503), 1), Policy: p, Repeat: anyFailure}
	o, resp, err := run(t, tr, req)
	require.NoError(t, err)
	require.Len(t, failures, 3)
	for i, a := range o.History {
		require.Same(t, failures[i], a.Err, "what Classify has seen is what is recorded")
		require.Same(t, resp.Request, failures[i].Request)
	}

	t.Run("in the attributes of a log line", func(t *testing.T) {
		require.Equal(t, "method=POST host=api.example.com:8443 path=/v1/orders/7 reason=transport_error", attrs(failures[0]))
		require.Equal(t, "method=POST host=api.example.com:8443 path=/v1/orders/7 status=503", attrs(failures[1]))
	})
	t.Run("no text has a secret", func(t *testing.T) {
		var b bytes.Buffer
		slog.New(slog.NewJSONHandler(&b, nil)).Error("x", "err", failures[1], "outcome", o, "wrapped", retry.Permanent(failures[1]))
		slog.New(slog.NewTextHandler(&b, nil)).Error("x", "err", failures[1], "outcome", o)
		text, err := json.Marshal([]any{o, failures})
		require.NoError(t, err)
		b.Write(text)
		fmt.Fprintf(&b, "%v %+v %s %q %v", failures[1], failures[1], failures[1], failures[1], o.History)
		require.NotContains(t, b.String(), "hunter2")
		require.Contains(t, b.String(), `"path":"/v1/orders/7"`)
	})
	t.Run("by its pattern, if it has one", func(t *testing.T) {
		for pattern, want := range map[string]string{
			"/v1/orders/{id}":                      "/v1/orders/{id}",
			"POST /v1/orders/{id}":                 "/v1/orders/{id}",
			"POST api.example.com/v1/orders/{id}/": "/v1/orders/{id}/",
			"":                                     "/v1/orders/7",
		} {
			req := req.Clone(t.Context())
			req.Pattern = pattern
			require.Equal(t, "method=POST host=api.example.com:8443 path="+want+" reason=eof", attrs(&retryhttp.AttemptError{Request: req, Reason: "eof"}))
		}
	})
	t.Run("as one line of bounded length, whatever is in it", func(t *testing.T) {
		req := get(t.Context())
		req.Method = "GET\x1b[31m"
		req.URL = &url.URL{Host: "h\r\nost", Path: "/" + strings.Repeat("\x1b\u202e\n", 1000)}
		text := attrs(&retryhttp.AttemptError{Request: req})
		require.Less(t, len(text), 600)
		require.NotContains(t, text, "\x1b")
		require.NotContains(t, text, "\n")
		req.Pattern = "/\u202e\x1b\nx"
		require.Contains(t, attrs(&retryhttp.AttemptError{Request: req}), "path=/\ufffd\ufffd; x")
	})
	t.Run("without what a Host that was not parsed may hold", func(t *testing.T) {
		for _, host := range []string{"alice:hunter2@h:80", "h:80?token=hunter2", "alice:hunter2@h:80/x?token=hunter2", "a@b:hunter2@h:80#hunter2"} {
			req := get(t.Context())
			req.URL = &url.URL{Host: host}
			require.Equal(t, "method=GET host=h:80 path= reason=invalid_request", attrs(&retryhttp.AttemptError{Request: req, Reason: retryhttp.InvalidRequest}), host)
		}
	})
	t.Run("as far as it is known", func(t *testing.T) {
		var none *retryhttp.AttemptError
		require.Equal(t, []any{slog.Value{}, "", 0}, []any{none.LogValue(), none.ErrorType(), none.HTTPStatus()})
		require.Equal(t, "status=503", attrs(&retryhttp.AttemptError{StatusCode: 503}))
		require.Equal(t, "method=GET path= reason=invalid_request", attrs(&retryhttp.AttemptError{Request: new(http.Request), Reason: retryhttp.InvalidRequest}))
		req := get(t.Context())
		req.URL = &url.URL{Host: "/x?token=hunter2"}
		require.Equal(t, "method=GET host= path= reason=invalid_request", attrs(&retryhttp.AttemptError{Request: req, Reason: retryhttp.InvalidRequest}))
	})
}

func TestARunThatCouldNotBeRepeatedHasTheTextOfItsFailure(t *testing.T) {
	refused := errors.New("tls: no")
	tr := &retryhttp.Transport{Policy: atOnce, Base: roundTripper(func(*http.Request) (*http.Response, error) { return nil, refused })}
	_, _, err := run(t, tr, request(t.Context(), "POST", nil))
	require.EqualError(t, err, "retryhttp: tls_failed: tls: no (not repeated: not_idempotent)")
	require.ErrorIs(t, err, retry.TerminalError)
	require.ErrorIs(t, err, refused)
	_, _, err = run(t, tr, get(t.Context()))
	require.ErrorContains(t, err, "retry: gave up after 3 attempts in ")
}

func TestAttemptErrorCarriesItsHint(t *testing.T) {
	resp := answer(get(t.Context()), 503, "Retry-After", "30")
	err := retryhttp.CheckResponse(resp)
	class, hint := retry.Policy{}.Judge(fmt.Errorf("deliver: %w", err))
	require.Equal(t, retry.Retryable, class)
	require.Equal(t, 30*time.Second, hint)
	none := retryhttp.CheckResponse(answer(get(t.Context()), 503))
	_, hint = retry.Policy{}.Judge(none)
	require.Zero(t, hint)
	require.NoError(t, errors.Unwrap(none), "nor has it any other mark")
	require.Same(t, resp.Request, err.(*retryhttp.AttemptError).Request)
	require.Equal(t, http.Header{"Retry-After": {"30"}}, err.(*retryhttp.AttemptError).Header)
	require.NoError(t, retryhttp.CheckResponse(answer(get(t.Context()), 204)))
	require.NoError(t, retryhttp.CheckResponse(answer(get(t.Context()), 101)))
	require.EqualError(t, retryhttp.CheckResponse(nil), "retryhttp: transport_error: the RoundTripper returned neither a response nor an error")
	require.EqualError(t, retryhttp.CheckResponse(answer(get(t.Context()), 302)), "retryhttp: 302 Found")

	t.Run("from Transport.Hint too, and to a caller who comes back later", func(t *testing.T) {
		tr := &retryhttp.Transport{Base: always(503), Policy: atOnce, Hint: func(*http.Response) time.Duration { return 2 * time.Hour }}
		o, _, err := run(t, tr, get(t.Context()))
		require.NoError(t, err)
		require.Equal(t, retry.HintTooLong, o.Reason)
		_, hint := retry.Policy{}.Judge(o.History[0].Err)
		require.Equal(t, 2*time.Hour, hint)
		outer := tr.Policy.NewError(t.Context(), o, o.History[0].Err)
		require.Equal(t, 2*time.Hour, outer.Hint())
	})
}

func TestAFailureInTheRecordIsAnAttemptErrorWithItsMark(t *testing.T) {
	canceling := roundTripper(func(*http.Request) (*http.Response, error) { return nil, context.Canceled })
	repeating := atOnce
	repeating.Classify = retry.RetryOn(context.Canceled)
	for name, row := range map[string]struct {
		tr    retryhttp.Transport
		class retry.Class
	}{
		"a veto":                          {retryhttp.Transport{Base: always(503), Policy: atOnce}, retry.Terminal},
		"a rule":                          {retryhttp.Transport{Base: always(404), Policy: atOnce, Delivery: true}, retry.Terminal},
		"a fault":                         {retryhttp.Transport{Base: canceling, Policy: atOnce, Repeat: anyFailure}, retry.Terminal},
		"a fault that a classifier names": {retryhttp.Transport{Base: canceling, Policy: repeating, Repeat: anyFailure}, retry.Retryable},
		"a status that is repeated":       {retryhttp.Transport{Base: always(503), Policy: atOnce, Repeat: anyFailure}, retry.Retryable},
	} {
		t.Run(name, func(t *testing.T) {
			o, _, _ := run(t, &row.tr, request(t.Context(), "POST", nil))
			require.NotEmpty(t, o.History)
			for _, a := range o.History {
				failed, ok := a.Err.(*retryhttp.AttemptError)
				require.True(t, ok, "%T", a.Err)
				require.Equal(t, row.class, a.Class)
				class, _ := retry.Policy{}.Judge(failed)
				require.Equal(t, row.class, class, "also for a run around it")
				if failed.Err != nil {
					require.ErrorIs(t, failed, failed.Err)
				}
			}
		})
	}
}

// The fields that say whether and when to come back are the reason why an error keeps a header at all.
func TestTheErrorKeepsWhatSaysWhetherAndWhenToComeBack(t *testing.T) {
	want := http.Header{}
	for _, name := range []string{"Content-Type", "Date", "Finagle-Http-Nonretryable-Nack", "RateLimit", "RateLimit-Remaining",
		"RateLimit-Reset", "Request-Id", "Retry-After", "Retry-After-Ms", "Stripe-Should-Retry", "X-Envoy-Overloaded",
		"X-Ms-Retry-After-Ms", "X-RateLimit-Remaining", "X-RateLimit-Reset", "X-Request-Id", "X-Should-Retry"} {
		want.Set(name, name)
	}
	resp := answer(get(t.Context()), 503, "Set-Cookie", "secret")
	maps.Copy(resp.Header, want)
	var failed *retryhttp.AttemptError
	require.ErrorAs(t, retryhttp.CheckResponse(resp), &failed)
	require.Equal(t, want, failed.Header)

	resp.Header = http.Header{"X-Request-Id": nil}
	require.ErrorAs(t, retryhttp.CheckResponse(resp), &failed)
	require.Nil(t, failed.Header, "a field without values is not kept")
}

func TestALongErrorOfAPeerIsShownInPart(t *testing.T) {
	long := strings.Repeat("x", 1<<20)
	chained := fmt.Errorf("%w: %s", errFault, long)
	for _, row := range []struct {
		name string
		err  error
		kept bool // the error itself
	}{
		{"a text and nothing else", errors.New(long), false},
		{"an answer that is not HTTP", fmt.Errorf("net/http: HTTP/1.x transport connection broken: %w", errors.New("malformed HTTP response "+long)), false},
		{"an error with a chain", chained, true},
		{"one under a mark", retry.Permanent(chained), true},
		{"a short one", errFault, true},
	} {
		t.Run(row.name, func(t *testing.T) {
			base := roundTripper(func(*http.Request) (*http.Response, error) { return nil, row.err })
			_, _, err := run(t, &retryhttp.Transport{Base: base, Policy: retry.Policy{MaxAttempts: 1}}, get(t.Context()))
			require.Less(t, len(err.Error()), 2<<10)
			require.Equal(t, row.kept, errors.Is(err, row.err))
		})
	}
}
