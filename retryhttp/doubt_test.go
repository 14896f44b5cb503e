package retryhttp_test

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"net/http/httptrace"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"testing/iotest"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/retrygo/retry"
	"github.com/retrygo/retry/retryhedge"
	"github.com/retrygo/retry/retryhttp"
)

// repeatAll repeats every status, so that each shows what is thought of the work.
var repeatAll = func() retry.Policy {
	p := atOnce
	p.Classify = retry.Otherwise(retry.Retryable)
	return p
}()

// A POST without a key is repeated after no status, and is in doubt only if its work may have been done.
func TestWhichStatusesLeaveDoubt(t *testing.T) {
	done := map[int]bool{
		400: false, 401: false, 402: false, 403: false, 404: false, 405: false, 406: false, 407: false, 408: false, 409: false,
		410: false, 411: false, 412: false, 413: false, 414: false, 415: false, 416: false, 417: false, 421: false, 422: false,
		423: false, 424: false, 425: false, 426: false, 428: false, 429: false, 431: false, 451: false, 418: false, 498: false, 499: true,
		500: true, 501: false, 502: true, 503: true, 504: true, 505: false, 506: false, 507: true, 508: true, 510: false, 511: false,
		520: true, 529: true, 598: true, 999: true, 303: true, 304: true,
	}
	for status, doubt := range done {
		t.Run(fmt.Sprint(status), func(t *testing.T) {
			sent := 0
			base := roundTripper(func(req *http.Request) (*http.Response, error) {
				sent++
				return answer(req, status, "Retry-After", "30"), nil
			})
			resp, err := (&retryhttp.Transport{Base: base, Policy: repeatAll}).RoundTrip(request(t.Context(), http.MethodPost, nil))
			require.NoError(t, err)
			require.Equal(t, 1, sent, "it is not repeated")
			failed := retryhttp.CheckResponse(resp)
			require.Equal(t, doubt, retry.IsAmbiguous(failed))
			answered := status < 500 && status != 408 && status != 429
			for _, outer := range []retry.Policy{{}, {Classify: retryhttp.Classify}} {
				class, hint := outer.Judge(failed)
				require.Equal(t, 30*time.Second, hint, "a run around it waits as asked")
				require.Equal(t, doubt || answered, class == retry.Terminal, "and repeats a failure that is not in doubt")
			}
		})
	}
}

// That a stream was read, and cannot be sent again, is a matter of one request: the next one has its own.
func TestARunAroundAStreamSendsAnother(t *testing.T) {
	for name, fail := range map[string]func(*http.Request) (*http.Response, error){
		"after a 503":   always(503),
		"after a fault": func(*http.Request) (*http.Response, error) { return nil, reset },
	} {
		for rules, classify := range map[string]retry.Classifier{"the default rules": nil, "Classify": retryhttp.Classify} {
			t.Run(name+", by "+rules, func(t *testing.T) {
				sent := 0
				tr := &retryhttp.Transport{Policy: atOnce, Base: roundTripper(func(req *http.Request) (*http.Response, error) {
					_, _ = io.Copy(io.Discard, req.Body)
					_ = req.Body.Close()
					if sent++; sent == 1 {
						return fail(req)
					}
					return answer(req, 200), nil
				})}
				outer := atOnce
				outer.Classify = classify
				require.NoError(t, retry.Do(t.Context(), outer, func(ctx context.Context) error {
					return checked(tr, put(ctx, io.MultiReader(strings.NewReader("stream"))))
				}))
				require.Equal(t, 2, sent)
			})
		}
	}
}

// A POST without a key that a server may have got is in doubt, whatever ended its run, so a run around it sends it once.
func TestDoubtDoesNotDependOnWhatEndedTheRun(t *testing.T) {
	silent := func(req *http.Request) (*http.Response, error) {
		<-req.Context().Done()
		return nil, req.Context().Err()
	}
	outer := retry.Policy{MaxAttempts: 4, Backoff: atOnce.Backoff}
	slow := outer
	slow.AttemptTimeout = time.Second
	for _, row := range []struct {
		name   string
		base   func(*http.Request) (*http.Response, error)
		policy retry.Policy // of the Transport
		outer  retry.Policy
		reason retryhttp.Reason
	}{
		{"an AttemptTimeout of the run around", silent, retry.Policy{}, slow, retryhttp.DeadlinePassed},
		{"an AttemptTimeout of its own", silent, retry.Policy{AttemptTimeout: time.Second}, outer, retryhttp.AttemptTimeout},
		{"a rule that does not repeat the status", always(503), retry.Policy{Classify: retryhttp.OnStatus(retry.Terminal, 503)}, outer, "status_503"},
		{"a server in doubt that forbids it", always(503, "X-Should-Retry", "false", "Retry-In-Doubt", "true"), retry.Policy{}, outer, "status_503"},
		{"a rule that repeats nothing", always(503), retry.Policy{Classify: retry.Otherwise(retry.Terminal)}, outer, "status_503"},
	} {
		inBubble(t, row.name, func(t *testing.T) {
			sent := 0
			tr := &retryhttp.Transport{Policy: row.policy, Base: roundTripper(func(req *http.Request) (*http.Response, error) {
				sent++
				return row.base(req)
			})}
			err := retry.Do(t.Context(), row.outer, func(ctx context.Context) error {
				return checked(tr, request(ctx, http.MethodPost, nil))
			})
			require.Equal(t, 1, sent)
			require.True(t, retry.IsAmbiguous(err), err)
			require.Equal(t, row.reason, retryhttp.ReasonOf(err))
		})
	}
	inBubble(t, "a caller that has gone", func(t *testing.T) {
		for method, want := range map[string]bool{http.MethodPost: true, http.MethodPut: false} {
			ctx, cancel := context.WithTimeout(t.Context(), time.Second)
			defer cancel()
			_, err := (&retryhttp.Transport{Base: roundTripper(silent)}).RoundTrip(request(ctx, method, nil))
			require.ErrorIs(t, err, retry.DeadlinePassed)
			require.Equal(t, want, retry.IsAmbiguous(err), method)
		}
	})
	t.Run("a body that breaks off after its beginning was sent", func(t *testing.T) {
		var got atomic.Int32
		server := httptest.NewServer(http.HandlerFunc(func(http.ResponseWriter, *http.Request) { got.Add(1) }))
		defer server.Close()
		err := retry.Do(t.Context(), outer, func(ctx context.Context) error {
			body := io.MultiReader(strings.NewReader("abc"), iotest.ErrReader(errors.New("disk")))
			req, err := http.NewRequestWithContext(ctx, http.MethodPost, server.URL, body)
			require.NoError(t, err)
			_, err = (&retryhttp.Transport{Base: retryhttp.NewBase()}).RoundTrip(req)
			return err
		})
		require.Equal(t, retryhttp.BodyFailed, retryhttp.ReasonOf(err))
		require.True(t, retry.IsAmbiguous(err), err)
		require.LessOrEqual(t, got.Load(), int32(1))
	})
}

func TestAResponseInDoubtWithoutATransport(t *testing.T) {
	for _, row := range []struct {
		name   string
		method string
		header []string
		want   bool
	}{
		{"a POST", http.MethodPost, []string{"Retry-In-Doubt", "true"}, true},
		{"a POST that is not to be repeated", http.MethodPost, []string{"Retry-In-Doubt", "true", "X-Should-Retry", "false"}, true},
		{"a POST that is only not to be repeated", http.MethodPost, []string{"X-Should-Retry", "false"}, false},
		{"a POST whose server may have failed after the work", http.MethodPost, nil, true},
		{"a POST with a key", http.MethodPost, []string{"Status", "503", "Key", "7"}, false},
		{"a POST that was refused", http.MethodPost, []string{"Status", "429"}, false},
		{"a POST with an answer", http.MethodPost, []string{"Status", "404"}, false},
		{"a POST whose answer is in doubt", http.MethodPost, []string{"Status", "409", "Retry-In-Doubt", "true"}, true},
		{"a GET without the word", http.MethodGet, nil, false},
		{"an unknown request without the word", "", nil, false},
		{"a GET", http.MethodGet, []string{"Retry-In-Doubt", "true"}, false},
		{"an unknown request", "", []string{"Retry-In-Doubt", "true"}, true},
	} {
		t.Run(row.name, func(t *testing.T) {
			resp := answer(nil, 503, row.header...)
			if status, err := strconv.Atoi(resp.Header.Get("Status")); err == nil {
				resp.StatusCode = status
			}
			if row.method != "" {
				resp.Request = request(t.Context(), row.method, nil)
				if key := resp.Header.Get("Key"); key != "" {
					resp.Request.Header.Set("Idempotency-Key", key)
				}
			}
			require.Equal(t, row.want, retry.IsAmbiguous(retryhttp.CheckResponse(resp)))
		})
	}
}

// otelhttp and others replace the body of a response, which shows the run that has ended with it.
func TestARunBelowIsHeardThroughAReplacedBody(t *testing.T) {
	replaced := func(base http.RoundTripper) roundTripper {
		return func(req *http.Request) (*http.Response, error) {
			resp, err := base.RoundTrip(req.Clone(req.Context()))
			if err == nil {
				resp.Body = io.NopCloser(resp.Body)
			}
			return resp, err
		}
	}
	stops := atOnce
	stops.MaxAttempts = 4
	stops.Classify = retry.StopIf(retry.IsGivenUp)
	four := atOnce
	four.MaxAttempts = 4
	for _, row := range []struct {
		name  string
		outer retryhttp.Transport
		ctx   func(context.Context) context.Context
		want  int
	}{
		{"by the rule of the outer one", retryhttp.Transport{Policy: stops}, nil, 4},
		{"by the rule of the outer one, recorded", retryhttp.Transport{Policy: stops}, retryhttp.WithOutcome, 4},
		{"with hedges", retryhttp.Transport{Policy: stops, Hedge: &retryhttp.Hedge{Policy: retryhedge.Policy{Delay: time.Hour}}}, nil, 4},
		{"without a rule", retryhttp.Transport{Policy: four}, nil, 16},
	} {
		t.Run(row.name, func(t *testing.T) {
			sent := 0
			inner := &retryhttp.Transport{Policy: four, Base: roundTripper(func(req *http.Request) (*http.Response, error) {
				sent++
				return answer(req, 503), nil
			})}
			row.outer.Base = replaced(inner)
			ctx := t.Context()
			if row.ctx != nil {
				ctx = row.ctx(ctx)
			}
			resp, err := row.outer.RoundTrip(get(ctx))
			require.NoError(t, err)
			require.Equal(t, 503, resp.StatusCode)
			require.Equal(t, row.want, sent)
		})
	}
	t.Run("a run that ended with another status is not that of the response", func(t *testing.T) {
		sent := 0
		inner := &retryhttp.Transport{Policy: four, Base: always(500)}
		between := roundTripper(func(req *http.Request) (*http.Response, error) {
			sent++
			resp, err := inner.RoundTrip(req)
			require.NoError(t, err)
			require.NoError(t, resp.Body.Close())
			return answer(req, 503), nil
		})
		_, err := (&retryhttp.Transport{Base: between, Policy: stops}).RoundTrip(get(t.Context()))
		require.NoError(t, err)
		require.Equal(t, 4, sent)
	})
}

type unsentError bool

func (unsentError) Error() string  { return "no token" }
func (u unsentError) Unsent() bool { return bool(u) }

// RetrieveError has the form of golang.org/x/oauth2's.
type RetrieveError struct {
	Response *http.Response
	Body     []byte
}

func (*RetrieveError) Error() string { return "oauth2: cannot fetch token: 503" }

// A RoundTripper that fetches a token first, and fails, has sent nothing.
func TestAnErrorCanSayThatNothingWasSent(t *testing.T) {
	type other struct{ RetrieveError }
	for _, row := range []struct {
		name   string
		err    error
		unsent bool
	}{
		{"by a method", unsentError(true), true},
		{"by a method, wrapped", fmt.Errorf("token: %w", errors.Join(errFault, unsentError(true))), true},
		{"a method that says no", unsentError(false), false},
		{"oauth2's", &RetrieveError{}, true},
		{"oauth2's, wrapped", fmt.Errorf("token: %w", &RetrieveError{}), true},
		{"not oauth2's under another name", &other{}, false},
		{"another fault", errFault, false},
	} {
		t.Run(row.name, func(t *testing.T) {
			sent := 0
			base := roundTripper(func(req *http.Request) (*http.Response, error) {
				if sent++; sent > 1 {
					return answer(req, 201), nil
				}
				trace := httptrace.ContextClientTrace(req.Context())
				trace.GetConn("tokens") // the request for the token has the same context
				trace.GotConn(httptrace.GotConnInfo{})
				return nil, row.err
			})
			o, _, err := run(t, &retryhttp.Transport{Base: base, Policy: atOnce}, request(t.Context(), http.MethodPost, nil))
			require.Equal(t, row.unsent, err == nil)
			var failed *retryhttp.AttemptError
			require.ErrorAs(t, o.History[0].Err, &failed)
			require.Equal(t, row.unsent, failed.Unsent)
		})
	}
}

// The first request is refused with a long wait, and its hedge with none.
func TestTheLongestHintOfAnAttemptCounts(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		base := &answerer{answers: []timedAnswer{
			{60 * time.Millisecond, 503, []string{"Retry-After", "2"}}, {100 * time.Millisecond, 503, nil}, {0, 200, nil}}}
		quick := retry.Policy{MaxAttempts: 2, Backoff: retry.Backoff{Base: 1}}
		tr := &retryhttp.Transport{Base: base, Policy: quick, Hedge: &retryhttp.Hedge{Policy: hedgeAfter}}
		_, resp, err := run(t, tr, get(t.Context()))
		require.NoError(t, err)
		require.Equal(t, 200, resp.StatusCode)
		require.Equal(t, []time.Duration{0, 50 * time.Millisecond, 2060 * time.Millisecond}, base.at)
	})
}

// A RoundTripper that sets a field in place breaks the rules of net/http, and many do.
func TestAHedgeHasAHeaderOfItsOwn(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var mu sync.Mutex
		headers := map[string]bool{}
		spoiler := roundTripper(func(req *http.Request) (*http.Response, error) {
			for i := range 1000 {
				req.Header.Set("X-Trace", fmt.Sprint(i))
				req.Header["X-List"][0] = "changed"
			}
			mu.Lock()
			headers[fmt.Sprintf("%p", req.Header)] = true
			mu.Unlock()
			<-req.Context().Done()
			return nil, req.Context().Err()
		})
		limited := once
		limited.AttemptTimeout = time.Second
		tr := &retryhttp.Transport{Base: spoiler, Policy: limited, Hedge: &retryhttp.Hedge{Policy: hedgeAfter}}
		req := get(t.Context())
		req.Header["X-List"] = []string{"x"}
		_, err := tr.RoundTrip(req)
		require.Error(t, err)
		require.Len(t, headers, 2)
		require.Equal(t, http.Header{"X-List": {"x"}}, req.Header, "nor is it the caller's")
	})
}

func TestTheErrorOfAResponseNamesItsRun(t *testing.T) {
	for _, row := range []struct {
		name   string
		policy retry.Policy
		want   string
	}{
		{"of a policy with a name", retry.Policy{Name: "prices", MaxAttempts: 4, Backoff: atOnce.Backoff},
			"retryhttp: 503 Service Unavailable (prices: gave up after 4 attempts)"},
		{"of one without", retry.Policy{MaxAttempts: 2, Backoff: atOnce.Backoff}, "retryhttp: 503 Service Unavailable (gave up after 2 attempts)"},
		{"of one attempt", retry.Policy{MaxAttempts: 2, Budget: retry.NewBudget(retry.BudgetConfig{Initial: -1})},
			"retryhttp: 503 Service Unavailable (gave up after 1 attempt)"},
		{"of one that does not retry", retry.Policy{Disabled: true}, "retryhttp: 503 Service Unavailable"},
		{"of a name in two lines", retry.Policy{Name: "a\nb", MaxAttempts: 2, Backoff: atOnce.Backoff},
			"retryhttp: 503 Service Unavailable (a; b: gave up after 2 attempts)"},
	} {
		t.Run(row.name, func(t *testing.T) {
			require.EqualError(t, checked(&retryhttp.Transport{Base: always(503), Policy: row.policy}, get(t.Context())), row.want)
		})
	}
	t.Run("the error has the Reason and the outcome of the run", func(t *testing.T) {
		for _, header := range []string{"X-None", "Retry-After"} {
			p := retry.Policy{Name: "prices", MaxAttempts: 2, Backoff: atOnce.Backoff}
			failed := checked(&retryhttp.Transport{Base: always(503, header, "0.001"), Policy: p}, get(t.Context()))
			require.ErrorIs(t, failed, retry.AttemptsExhausted)
			o, err := retryhttp.OutcomeOf(nil, fmt.Errorf("charge: %w", failed))
			require.NoError(t, err)
			require.Equal(t, []any{"prices", 2, retry.AttemptsExhausted}, []any{o.Policy, o.Attempts, o.Reason})

			outer := retry.Do(t.Context(), retry.Policy{MaxAttempts: 1}, func(context.Context) error { return failed })
			require.ErrorIs(t, outer, retry.AttemptsExhausted)
			outer = retry.Do(t.Context(), retry.Policy{Disabled: true}, func(context.Context) error { return failed })
			require.NotErrorIs(t, outer, retry.AttemptsExhausted, "a Reason is that of the outermost run")
		}
	})
	t.Run("a run that a veto has ended is not named", func(t *testing.T) {
		require.EqualError(t, checked(&retryhttp.Transport{Base: always(503, "X-Should-Retry", "false"), Policy: atOnce}, get(t.Context())), "retryhttp: 503 Service Unavailable (not repeated: do_not_retry)")
	})
}
