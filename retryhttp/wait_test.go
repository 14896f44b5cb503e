package retryhttp_test

import (
	"cmp"
	"context"
	"errors"
	"io"
	"net/http"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/retrygo/retry"
	"github.com/retrygo/retry/retryhttp"
	"github.com/retrygo/retry/retryhttp/hints"
	"github.com/retrygo/retry/retrytest"
)

func TestHints(t *testing.T) {
	// The clock of a bubble starts at midnight UTC on 2000-01-01.
	for _, row := range []struct {
		name   string
		header []string
		hint   func(*http.Response) time.Duration
		want   time.Duration // waited
	}{
		{"none: the backoff's own", nil, nil, time.Second},
		{"seconds", []string{"Retry-After", "7"}, nil, 7 * time.Second},
		{"a date against the response's Date, not against our clock", []string{"Retry-After", "Mon, 03 Jan 2000 00:00:09 GMT", "Date", "Mon, 03 Jan 2000 00:00:00 GMT"}, nil, 9 * time.Second},
		{"a date without Date, against our clock", []string{"Retry-After", "Sat, 01 Jan 2000 00:00:09 GMT"}, nil, 9 * time.Second},
		{"zero is not an immediate retry", []string{"Retry-After", "0"}, nil, time.Second},
		{"a negative one is none", []string{"Retry-After", "-5"}, nil, time.Second},
		{"a past one is none", []string{"Retry-After", "Sat, 01 Jan 1994 00:00:09 GMT"}, nil, time.Second},
		{"junk is none", []string{"Retry-After", "soon"}, nil, time.Second},
		{"shorter than the backoff's own delay", []string{"Retry-After", "0.5"}, nil, time.Second},
		{"a minute, the longest that is obeyed", []string{"Retry-After", "60"}, nil, time.Minute},
		{"longer than that ends the run", []string{"Retry-After", "60.1"}, nil, 0},
		{"an overflow ends the run", []string{"Retry-After", "99999999999999999999"}, nil, 0},
		{"an option's, where it is longer", []string{"Retry-After", "7"}, func(*http.Response) time.Duration { return 8 * time.Second }, 8 * time.Second},
		{"an option's, where it is shorter", []string{"Retry-After", "7"}, func(*http.Response) time.Duration { return -1 }, 7 * time.Second},
		{"RateLimitReset", []string{"RateLimit-Remaining", "0", "RateLimit-Reset", "30"}, hints.RateLimit, 30 * time.Second},
	} {
		inBubble(t, row.name, func(t *testing.T) {
			n := 0
			tr := &retryhttp.Transport{Policy: three, Hint: row.hint, Base: roundTripper(func(req *http.Request) (*http.Response, error) {
				if n++; n > 1 {
					return answer(req, 200), nil
				}
				return answer(req, 429, row.header...), nil
			})}
			start := time.Now()
			o, resp, err := run(t, tr, get(t.Context()))
			require.NoError(t, err)
			require.Equal(t, row.want, time.Since(start))
			if row.want == 0 {
				require.Equal(t, 429, resp.StatusCode, "the response that asks for it is returned")
				require.Equal(t, retry.HintTooLong, o.Reason)
				return
			}
			require.Equal(t, 200, resp.StatusCode)
		})
	}
}

func TestDeadlines(t *testing.T) {
	for _, row := range []struct {
		name                   string
		deadline, timeout, ttl time.Duration // of the caller, the client and the policy
		reason                 retry.Reason
	}{
		{"the caller's deadline", 1500 * time.Millisecond, 0, 0, retry.DeadlineTooNear},
		{"a Client.Timeout", 0, 1500 * time.Millisecond, 0, retry.DeadlineTooNear},
		{"the TTL", 0, 0, 1500 * time.Millisecond, retry.TTLElapsed},
	} {
		inBubble(t, "a wait that would outlive "+row.name+" is not begun: the last response comes back", func(t *testing.T) {
			ctx := retryhttp.WithOutcome(t.Context())
			if row.deadline > 0 {
				var cancel context.CancelFunc
				ctx, cancel = context.WithTimeout(ctx, row.deadline)
				defer cancel()
			}
			base, _ := busyBodies()
			p := three
			p.TTL = row.ttl
			client := http.Client{Timeout: row.timeout, Transport: &retryhttp.Transport{Base: base, Policy: p}}
			start := time.Now()
			resp, err := client.Do(get(ctx))
			require.NoError(t, err)
			require.Equal(t, time.Second, time.Since(start))
			o, err := retryhttp.OutcomeOf(resp, nil)
			require.NoError(t, err)
			require.Equal(t, row.reason, o.Reason)
			body, err := io.ReadAll(resp.Body)
			require.NoError(t, err)
			require.Equal(t, "busy", string(body))
			require.NoError(t, resp.Body.Close())
		})
	}
	inBubble(t, "a wait that would outlive the caller's deadline is not begun: the last error comes back", func(t *testing.T) {
		ctx, cancel := context.WithTimeout(t.Context(), time.Second)
		defer cancel()
		_, _, err := run(t, &retryhttp.Transport{Base: faults(nil, 1), Policy: three}, get(ctx))
		require.ErrorIs(t, err, retry.DeadlineTooNear)
		require.ErrorIs(t, err, errFault)
		require.NotErrorIs(t, err, context.DeadlineExceeded)
	})
	hang := roundTripper(func(req *http.Request) (*http.Response, error) {
		<-req.Context().Done()
		return nil, errors.New("net/http: request canceled")
	})
	inBubble(t, "a deadline that passes during an attempt", func(t *testing.T) {
		why := errors.New("why")
		ctx, cancel := context.WithTimeoutCause(t.Context(), time.Second, why)
		defer cancel()
		o, _, err := run(t, &retryhttp.Transport{Base: hang, Policy: three}, get(ctx))
		require.ErrorIs(t, err, context.DeadlineExceeded)
		require.ErrorIs(t, err, why)
		require.Equal(t, retry.DeadlinePassed, o.Reason)
		require.Equal(t, []string{"deadline_passed"}, reasons(o))
	})
	inBubble(t, "a Client.Timeout that passes during an attempt is a timeout to the caller", func(t *testing.T) {
		var ended retry.Event
		p := three
		p.Observe = func(_ context.Context, e retry.Event) { ended = e }
		client := http.Client{Timeout: time.Second, Transport: &retryhttp.Transport{Base: hang, Policy: p}}
		_, err := client.Do(get(t.Context()))
		require.ErrorIs(t, err, context.DeadlineExceeded)
		require.True(t, err.(interface{ Timeout() bool }).Timeout())
		require.Equal(t, retry.DeadlinePassed, ended.Decision.Reason)
	})
	inBubble(t, "a caller who is done already: nothing is sent, the body is closed", func(t *testing.T) {
		why := errors.New("why")
		ctx, cancel := context.WithCancelCause(t.Context())
		cancel(why)
		body := newBody("x")
		_, _, err := run(t, &retryhttp.Transport{Base: roundTripper(nil), Policy: three}, request(ctx, "PUT", body))
		require.ErrorIs(t, err, retry.CallerCanceled)
		require.ErrorIs(t, err, context.Canceled)
		require.ErrorIs(t, err, why)
		require.Equal(t, int32(1), body.n.Load())
	})
}

// late is a context whose deadline has passed a moment before it notices, as a context's timer may.
type late struct {
	context.Context
	deadline time.Time
}

func (l late) Deadline() (time.Time, bool) { return l.deadline, true }

func TestADeadlineThatComesWithAnotherEndIsTheReason(t *testing.T) {
	for name, timeout := range map[string]time.Duration{"an attempt timeout": time.Second, "a Request.Cancel, as of a Client.Timeout": 0} {
		inBubble(t, name, func(t *testing.T) {
			ctx := late{t.Context(), time.Now().Add(2 * time.Second)}
			req := get(ctx)
			if timeout == 0 {
				cancel := make(chan struct{})
				time.AfterFunc(2*time.Second, func() { close(cancel) })
				req = withCancel(ctx, cancel)
			}
			slow := roundTripper(func(req *http.Request) (*http.Response, error) {
				spend(2 * time.Second)
				synctest.Wait()
				return nil, cmp.Or(context.Cause(req.Context()), errFault)
			})
			p := three
			p.AttemptTimeout = timeout
			o, _, err := run(t, &retryhttp.Transport{Base: slow, Policy: p}, req)
			require.ErrorIs(t, err, retry.DeadlinePassed)
			require.Equal(t, []string{"deadline_passed"}, reasons(o))
		})
	}
}

// withCancel returns a GET with ctx and a Request.Cancel.
func withCancel(ctx context.Context, cancel <-chan struct{}) *http.Request {
	req := get(ctx)
	//lint:ignore SA1019 it still has to work
	req.Cancel = cancel
	return req
}

func TestCancelDuringAWait(t *testing.T) {
	const soon = 1500 * time.Millisecond
	gone := newBody("busy")
	tr := &retryhttp.Transport{Base: withBody(503, gone), Policy: three}
	why := errors.New("why")
	inBubble(t, "by the context: at once, with its cause", func(t *testing.T) {
		ctx, cancel := context.WithCancelCause(t.Context())
		time.AfterFunc(soon, func() { cancel(why) })
		start := time.Now()
		o, _, err := run(t, tr, get(ctx))
		require.ErrorIs(t, err, why)
		require.ErrorIs(t, err, retry.CallerCanceled)
		require.Equal(t, soon, time.Since(start))
		require.Equal(t, []string{"status_503", "status_503"}, reasons(o))
		require.Equal(t, int32(2), gone.n.Load())
	})
	inBubble(t, "by Request.Cancel: at once, and a deadline that passes later is not the cause", func(t *testing.T) {
		ctx, stop := context.WithTimeout(t.Context(), 5*time.Second)
		defer stop()
		cancel := make(chan struct{})
		time.AfterFunc(soon, func() { close(cancel) })
		start := time.Now()
		_, err := tr.RoundTrip(withCancel(ctx, cancel)) // without a record, which would ask for the cause at once
		require.Equal(t, soon, time.Since(start))
		spend(time.Hour)
		require.ErrorIs(t, err, retry.CallerCanceled)
		require.ErrorIs(t, err, context.Canceled)
		require.NotErrorIs(t, err, context.DeadlineExceeded)
	})
	inBubble(t, "by the context of a request with a Cancel", func(t *testing.T) {
		ctx, cancel := context.WithCancelCause(t.Context())
		time.AfterFunc(soon, func() { cancel(why) })
		_, _, err := run(t, tr, withCancel(ctx, make(chan struct{})))
		require.ErrorIs(t, err, why)
	})
	inBubble(t, "a Request.Cancel that stays open leaves no goroutine", func(t *testing.T) {
		_, resp, err := run(t, tr, withCancel(context.Background(), make(chan struct{}))) // whose context does not end with the test either
		require.NoError(t, err)                                                           // and the bubble ends only when its goroutines have
		require.Equal(t, 503, resp.StatusCode)
	})
	inBubble(t, "by a Request.Cancel that is closed before the first attempt", func(t *testing.T) {
		cancel := make(chan struct{})
		close(cancel)
		o, _, err := run(t, &retryhttp.Transport{Base: roundTripper(nil), Policy: three}, withCancel(t.Context(), cancel))
		require.ErrorIs(t, err, context.Canceled)
		require.Equal(t, 0, o.Attempts)
	})
}

func TestBudgetsAndGates(t *testing.T) {
	t.Run("each host has a budget of its own", func(t *testing.T) {
		budgets := retry.NewBudgets(retry.BudgetConfig{Initial: -1, Ratio: 1}, 10)
		retry.Policy{Budget: budgets.For("good.example")}.Spend(t.Context(), retry.Decision{Status: retry.Succeeded}, time.Time{})
		tr := &retryhttp.Transport{Base: retrytest.Statuses(t, 503, 503, 503), PolicyFor: func(r *http.Request) retry.Policy {
			p := atOnce
			p.Budget = budgets.For(strings.ToLower(r.URL.Host))
			return p
		}}
		o, _, err := run(t, tr, toHost(t.Context(), "GOOD.example"))
		require.NoError(t, err)
		require.Equal(t, retry.BudgetExhausted, o.Reason)
		require.Equal(t, 2, o.Attempts)
		o, resp, err := run(t, tr, toHost(t.Context(), "bad.example"))
		require.NoError(t, err)
		require.Equal(t, 503, resp.StatusCode)
		require.Equal(t, 1, o.Attempts)
		require.Equal(t, 2, budgets.Len())
	})
	inBubble(t, "the policy's gate is asked with the request's context before each attempt", func(t *testing.T) {
		var asked []time.Duration
		p := three
		start := time.Now()
		p.Gate = func(ctx context.Context) time.Duration {
			asked = append(asked, time.Since(start))
			require.NotNil(t, ctx.Done())
			return time.Until(start.Add(4 * time.Second))
		}
		_, _, err := run(t, &retryhttp.Transport{Base: retrytest.Statuses(t, 503, 200), Policy: p}, get(t.Context()))
		require.NoError(t, err)
		require.Equal(t, []time.Duration{0, 4 * time.Second, 4*time.Second + three.Base}, asked)
	})
	for name, delay := range map[string]time.Duration{"a retry": time.Second, "an immediate retry": 0} {
		inBubble(t, "a gate that ends the run before "+name+": the response has been given up, the error has its status", func(t *testing.T) {
			p := retry.Policy{TTL: time.Minute, Backoff: retry.Backoff{Delays: []time.Duration{delay}}}
			n := 0
			p.Gate = func(context.Context) time.Duration {
				n++
				return time.Duration(n-1) * time.Hour
			}
			o, _, err := run(t, &retryhttp.Transport{Base: retrytest.Statuses(t, 503), Policy: p}, get(t.Context()))
			require.ErrorIs(t, err, retry.TTLElapsed)
			require.Equal(t, []string{"status_503"}, reasons(o))
			require.True(t, o.EndedByGate)
		})
	}
	t.Run("it is not asked about a request that is refused", func(t *testing.T) {
		req := get(t.Context())
		req.URL = nil
		tr := &retryhttp.Transport{Policy: retry.Policy{Gate: func(context.Context) time.Duration { panic("asked") }}}
		_, _, err := run(t, tr, req)
		require.ErrorIs(t, err, retry.TerminalError)
	})
}

// busyBodies returns a Base that answers 503 with a body, and those bodies.
func busyBodies() (http.RoundTripper, *[]*closes) {
	all := new([]*closes)
	return roundTripper(func(req *http.Request) (*http.Response, error) {
		*all = append(*all, newBody("busy"))
		return withBody(503, (*all)[len(*all)-1])(req)
	}), all
}

func TestPay(t *testing.T) {
	type key struct{}
	t.Run("is asked after the budget and before the response is given up", func(t *testing.T) {
		base, bodies := busyBodies()
		p := atOnce
		p.Budget = retry.NewBudget(retry.BudgetConfig{Initial: 2})
		var asked []float64
		p.Pay = func(ctx context.Context, d retry.Decision) bool {
			require.Equal(t, "value", ctx.Value(key{}), "with the request's context")
			require.Equal(t, retry.Decision{Status: retry.WaitingRetry, Class: retry.Retryable, Delay: 1, Backoff: 1}, d)
			require.Zero(t, (*bodies)[len(*bodies)-1].n.Load())
			asked = append(asked, p.Budget.Tokens())
			return len(asked) < 2
		}
		o, resp, err := run(t, &retryhttp.Transport{Base: base, Policy: p}, get(context.WithValue(t.Context(), key{}, "value")))
		require.NoError(t, err)
		require.Equal(t, retry.BudgetExhausted, o.Reason)
		require.Equal(t, []float64{1, 0}, asked)
		require.Equal(t, 1.0, p.Budget.Tokens(), "a refusal takes no token")
		require.Equal(t, int32(1), (*bodies)[0].n.Load())
		body, err := io.ReadAll(resp.Body)
		require.NoError(t, err)
		require.Equal(t, "busy", string(body), "the response of a retry that was refused is the caller's")
	})
	inBubble(t, "a slow observer ends the run after that: the response has been given up", func(t *testing.T) {
		base, bodies := busyBodies()
		ctx, cancel := context.WithTimeout(t.Context(), 2*time.Second)
		defer cancel()
		p := three
		p.Observe = func(context.Context, retry.Event) { spend(1500 * time.Millisecond) }
		o, _, err := run(t, &retryhttp.Transport{Base: base, Policy: p}, get(ctx))
		require.ErrorIs(t, err, retry.DeadlineTooNear)
		require.Equal(t, []string{"status_503"}, reasons(o))
		require.Equal(t, int32(1), (*bodies)[0].n.Load())
	})
}

func TestTheScheduleOfAPolicyThatSetsNone(t *testing.T) {
	half := func() float64 { return 0.5 }
	for _, row := range []struct {
		name  string
		p     retry.Policy
		after string // Retry-After
		want  []time.Duration
	}{
		{"is that of retry.Inline", retry.Policy{}, "", []time.Duration{25e6, 50e6, 100e6, 0}},
		{"is that of retry.Inline where other fields are set", retry.Policy{TTL: time.Hour, AttemptTimeout: time.Minute, Classify: retryhttp.Classify}, "", []time.Duration{25e6, 50e6, 100e6, 0}},
		{"has the MaxHint of retry.Inline", retry.Policy{}, "11", []time.Duration{0}},
		{"has the policy's MaxHint if it has one", retry.Policy{MaxHint: 10500 * time.Millisecond}, "10.5", []time.Duration{10500e6, 10500e6, 10500e6, 0}},
		{"is that of retry.Inline where attempts are set", retry.Policy{MaxAttempts: 3}, "", []time.Duration{25e6, 50e6, 0}},
		{"has nothing of retry.Inline where a base is set", retry.Policy{Backoff: retry.Backoff{Base: time.Second}, MaxAttempts: 3}, "", []time.Duration{1e9, 2e9, 0}},
		{"has nothing of retry.Inline where delays are listed", retry.Policy{Backoff: retry.Backoff{Delays: []time.Duration{time.Minute}}}, "11", []time.Duration{60e9, 0}},
		{"a hint of an hour ends a run of 8 attempts", retry.Policy{MaxAttempts: 8}, "3600", []time.Duration{0}},
		{"a hint of an hour is obeyed with a MaxHint", retry.Policy{MaxAttempts: 3, MaxHint: time.Hour}, "3600", []time.Duration{3600e9, 3600e9, 0}},
		{"a hint of an hour is obeyed with delays and a TTL, which bounds them all", retry.Policy{MaxAttempts: 3, TTL: 100 * time.Minute, Backoff: retry.Backoff{Base: time.Second}}, "3600", []time.Duration{3600e9, 0}},
		{"a hint as long as its base is obeyed", retry.Policy{MaxAttempts: 2, Backoff: retry.Backoff{Mode: retry.Fixed, Base: 2 * time.Minute}}, "120", []time.Duration{120e9, 0}},
		{"a hint as long as its cap is obeyed", retry.Policy{MaxAttempts: 2, Backoff: retry.Backoff{Cap: 2 * time.Minute}}, "120", []time.Duration{120e9, 0}},
		{"one as long as a delay of its list", retry.Policy{Backoff: retry.Backoff{Delays: []time.Duration{2 * time.Minute, time.Second}}}, "120", []time.Duration{120e9, 120e9, 0}},
		{"one that is longer is not", retry.Policy{Backoff: retry.Backoff{Delays: []time.Duration{2 * time.Minute, time.Second}}}, "121", []time.Duration{0}},
	} {
		inBubble(t, row.name, func(t *testing.T) {
			row.p.Rand = half
			base := roundTripper(func(req *http.Request) (*http.Response, error) {
				return answer(req, 503, "Retry-After", row.after), nil
			})
			o, _, err := run(t, &retryhttp.Transport{Base: base, Policy: row.p}, get(t.Context()))
			require.NoError(t, err)
			var waits []time.Duration
			for _, a := range o.History {
				waits = append(waits, a.Delay)
			}
			require.Equal(t, row.want, waits)
		})
	}
}

func TestObserve(t *testing.T) {
	type key struct{}
	ctx := context.WithValue(t.Context(), key{}, "value")
	var events []retry.Event
	p := atOnce
	p.Observe = func(ctx context.Context, e retry.Event) {
		require.Equal(t, "value", ctx.Value(key{}))
		events = append(events, e)
	}
	resp, err := (&retryhttp.Transport{Base: retrytest.Statuses(t, 503, 200), Policy: p}).RoundTrip(get(ctx))
	require.NoError(t, err)
	require.Equal(t, 200, resp.StatusCode)
	require.Len(t, events, 2)
	require.Equal(t, retryhttp.Reason("status_503"), retryhttp.ReasonOf(events[0].Attempt.Err))
	require.Equal(t, retry.WaitingRetry, events[0].Decision.Status)
	require.Equal(t, 2, events[1].Outcome.Attempts)
}
