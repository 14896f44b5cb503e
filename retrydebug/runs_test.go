package retrydebug_test

import (
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net/http"
	"runtime"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/retrygo/retry"
	"github.com/retrygo/retry/retrydebug"
	"github.com/retrygo/retry/retryhedge"
	"github.com/retrygo/retry/retryhttp"
)

// TestARunIsKeptAsItWas makes runs and compares their records as a whole.
func TestARunIsKeptAsItWas(t *testing.T) {
	const ms = time.Millisecond
	base := retry.Policy{Name: "p", MaxAttempts: 3, Backoff: retry.Backoff{Base: 100 * ms}}
	timed := base
	timed.AttemptTimeout = 5 * ms
	refused := func(number int, start, wait time.Duration) retrydebug.Attempt {
		return retrydebug.Attempt{Number: number, Start: start, Duration: 10 * ms, Ended: "retryable", Wait: wait, Error: errRefused.Error()}
	}
	for _, row := range []struct {
		name   string
		policy retry.Policy
		errs   []error
		slow   bool
		want   retrydebug.Run
	}{
		{"a dead letter", base, []error{errRefused}, false, retrydebug.Run{
			Status: "dead_letter", Reason: "attempts_exhausted", Attempts: 3, Elapsed: 330 * ms,
			History: []retrydebug.Attempt{refused(1, 0, 100*ms), refused(2, 110*ms, 200*ms), refused(3, 320*ms, 0)},
		}},
		{"a success after a retry", base, []error{errRefused, nil}, true, retrydebug.Run{
			Status: "succeeded", Attempts: 2, Elapsed: 120 * ms,
			History: []retrydebug.Attempt{refused(1, 0, 100*ms), {Number: 2, Start: 110 * ms, Duration: 10 * ms, Ended: "succeeded"}},
		}},
		{"timeouts", timed, []error{errRefused}, false, retrydebug.Run{
			Status: "dead_letter", Reason: "attempts_exhausted", Attempts: 3, Elapsed: 315 * ms,
			History: []retrydebug.Attempt{
				{Number: 1, Duration: 5 * ms, Ended: "timeout", Wait: 100 * ms, Error: "attempt timeout: context deadline exceeded"},
				{Number: 2, Start: 105 * ms, Duration: 5 * ms, Ended: "timeout", Wait: 200 * ms, Error: "attempt timeout: context deadline exceeded"},
				{Number: 3, Start: 310 * ms, Duration: 5 * ms, Ended: "timeout", Error: "attempt timeout: context deadline exceeded"},
			},
		}},
		{"a hint and a terminal error", base, []error{retry.After(time.Second, errRefused), retry.Permanent(errRefused)}, false, retrydebug.Run{
			Status: "dead_letter", Reason: "terminal_error", Attempts: 2, Elapsed: 1020 * ms,
			History: []retrydebug.Attempt{
				{Number: 1, Duration: 10 * ms, Ended: "retryable", Wait: time.Second, Hint: time.Second, Error: errRefused.Error()},
				{Number: 2, Start: 1010 * ms, Duration: 10 * ms, Ended: "terminal", Error: errRefused.Error()},
			},
		}},
		{"a doubt", base, []error{retry.Ambiguous(errRefused)}, false, retrydebug.Run{
			Status: "dead_letter", Reason: "terminal_error", Attempts: 1, Elapsed: 10 * ms, InDoubt: true,
			History: []retrydebug.Attempt{{Number: 1, Duration: 10 * ms, Ended: "terminal", Error: errRefused.Error()}},
		}},
		{"a layer below that gave up", base, []error{retry.Permanent(&retry.Error{Outcome: retry.Outcome{Attempts: 2, Reason: retry.AttemptsExhausted}, Last: errRefused})},
			false, retrydebug.Run{
				Status: "dead_letter", Reason: "terminal_error", Attempts: 1, Elapsed: 10 * ms, InnerGaveUp: true,
				History: []retrydebug.Attempt{{Number: 1, Duration: 10 * ms, Ended: "terminal", Error: "retry: gave up after 2 attempts in 0s (attempts_exhausted): " + errRefused.Error()}},
			}},
		{"a gate", retry.Policy{Name: "p", TTL: time.Second, Gate: func(context.Context) time.Duration { return time.Minute }}, []error{nil}, false, retrydebug.Run{
			Status: "expired", Reason: "ttl_elapsed", EndedByGate: true, TTL: time.Second,
		}},
	} {
		t.Run(row.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				live := retrydebug.New(retrydebug.Options{Label: func(ctx context.Context) string { return ctx.Value(labelKey{}).(string) }})
				ctx, cancel := context.WithTimeout(context.WithValue(t.Context(), labelKey{}, "trace\n7"), time.Minute)
				defer cancel()
				_ = retry.Do(ctx, live.Watch(row.policy), takes(10*ms, row.errs...))
				want := row.want
				want.Policy, want.Label, want.Deadline, want.Ended = "p", "trace; 7", time.Minute, time.Now()
				s := live.Snapshot()
				kept, others := s.Failed, s.Slowest
				if row.slow {
					kept, others = others, kept
				}
				require.Empty(t, others)
				require.Len(t, kept, 1)
				require.True(t, want.Ended.Equal(kept[0].Ended))
				kept[0].Ended = want.Ended
				require.Equal(t, want, kept[0])
			})
		})
	}
}

type labelKey struct{}

// TestWhatIsNotKept: of a success at once, and of an answer, nothing is kept but counts.
func TestWhatIsNotKept(t *testing.T) {
	live := retrydebug.New(retrydebug.Options{Label: func(context.Context) string { panic("asked") }})
	p := live.Watch(retry.Policy{})
	_ = retry.Do(t.Context(), p, takes(0, nil))
	_ = retry.Do(t.Context(), p, takes(0, retry.Permanent(answer{errRefused})))
	require.Empty(t, live.Snapshot().Failed)
	require.Empty(t, live.Snapshot().Slowest)
}

// TestAThousandTimeoutsLeaveTheOneTerminalError: runs are dropped from those that are most alike.
func TestAThousandTimeoutsLeaveTheOneTerminalError(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		live := retrydebug.New(retrydebug.Options{})
		rare, other := eventOf(retry.DeadLettered, retry.TerminalError), eventOf(retry.Expired, retry.DeadlineTooNear)
		other.Policy = "q"
		live.Observe(t.Context(), rare)
		for range 3 {
			live.Observe(t.Context(), other)
		}
		for range 1000 {
			live.Observe(t.Context(), gaveUp)
			time.Sleep(time.Second)
		}
		s := live.Snapshot()
		require.Len(t, s.Failed, 100)
		require.Equal(t, "terminal_error", s.Failed[99].Reason)
		require.Equal(t, "q", s.Failed[96].Policy)
		require.Equal(t, s.Taken.Add(-time.Second), s.Failed[0].Ended, "the newest is first")
		require.Equal(t, 1000, policyOf(t, s, "p").Total.Reasons["attempts_exhausted"])
	})
}

// TestRunsThatFailAlikeAreSampled: sixteen at once, then one a second.
func TestRunsThatFailAlikeAreSampled(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		live := retrydebug.New(retrydebug.Options{})
		for _, row := range []struct {
			after time.Duration
			kept  int
		}{{0, 16}, {time.Second, 17}, {time.Second / 2, 17}, {time.Second / 2, 18}, {3 * time.Second, 21}, {time.Minute, 37}} {
			time.Sleep(row.after)
			for range 50 {
				live.Observe(t.Context(), gaveUp)
			}
			require.Len(t, live.Snapshot().Failed, row.kept)
		}
		live.Observe(t.Context(), eventOf(retry.DeadLettered, retry.BudgetExhausted))
		require.Len(t, live.Snapshot().Failed, 38, "another reason")
	})
}

func TestTheSlowestOfTheLastHour(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		live := retrydebug.New(retrydebug.Options{})
		recovered := func(elapsed time.Duration) {
			e := eventOf(retry.Succeeded, 0)
			e.Outcome.Elapsed = elapsed
			live.Observe(t.Context(), e)
		}
		for i := range 100 {
			recovered(time.Duration(i*37%100) * time.Second)
		}
		var want, got []time.Duration
		for i := range 20 {
			want = append(want, time.Duration(99-i)*time.Second)
		}
		for _, r := range live.Snapshot().Slowest {
			got = append(got, r.Elapsed)
		}
		require.Equal(t, want, got)
		time.Sleep(time.Hour + time.Second)
		require.Empty(t, live.Snapshot().Slowest)
		recovered(time.Second)
		require.Len(t, live.Snapshot().Slowest, 1, "one of an hour ago gives way to a faster one")
	})
}

// TestALongRunKeepsItsFirstAndNewestAttempts: the run of a loop has any number.
func TestALongRunKeepsItsFirstAndNewestAttempts(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		live := retrydebug.New(retrydebug.Options{})
		_ = retry.Do(t.Context(), live.Watch(retry.Policy{MaxAttempts: 100}), takes(time.Second, errRefused))
		var numbers []int
		for _, a := range live.Snapshot().Failed[0].History {
			numbers = append(numbers, a.Number)
		}
		require.Equal(t, []int{1, 94, 95, 96, 97, 98, 99, 100}, numbers)
	})
}

type always func(*http.Request) (*http.Response, error)

func (a always) RoundTrip(r *http.Request) (*http.Response, error) { return a(r) }

// TestTheRequestOfAFailure: the method and the host are shown, and neither path nor query, which have keys of customers.
func TestTheRequestOfAFailure(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		live := retrydebug.New(retrydebug.Options{HideErrors: true})
		client := http.Client{Transport: &retryhttp.Transport{
			Policy: live.Watch(retry.Policy{Name: "inventory", MaxAttempts: 2, Backoff: retry.Backoff{Delays: []time.Duration{time.Second}}}), // no drawn number has a 503
			Base: always(func(r *http.Request) (*http.Response, error) {
				return &http.Response{StatusCode: http.StatusServiceUnavailable, Header: http.Header{}, Body: io.NopCloser(strings.NewReader("")), Request: r}, nil
			}),
		}}
		resp, err := client.Get("http://inventory.internal/customers/tenant-7?order=o-8")
		require.NoError(t, err)
		require.NoError(t, resp.Body.Close())
		live.Observe(inAJob(t.Context(), "welcome-mail"), gaveUp)
		rpc := gaveUp
		rpc.Policy = "stock"
		rpc.Outcome = &retry.Outcome{Status: retry.DeadLettered, Reason: retry.TerminalError, Attempts: 1, History: []retry.Attempt{
			{Number: 1, Err: request{errRefused, []slog.Attr{slog.String("method", "/shop.Stock/Take"), slog.String("code", "UNAVAILABLE")}}}}}
		live.Observe(t.Context(), rpc)
		s := live.Snapshot()
		require.Equal(t, []string{"/shop.Stock/Take", "", "GET inventory.internal"}, []string{s.Failed[0].Target, s.Failed[1].Target, s.Failed[2].Target})
		require.Equal(t, "welcome-mail", s.Failed[1].Job)
		for _, accept := range []string{"text/html", "text/plain", "application/json"} {
			body := get(live, "", accept).Body.String()
			require.Contains(t, body, "GET inventory.internal")
			for _, secret := range []string{"tenant-7", "o-8", errRefused.Error(), "503"} {
				require.NotContains(t, body, secret)
			}
		}
	})
}

// broken is an error whose text cannot be had.
type broken struct{}

func (*broken) Error() string { panic("no text") }

func TestTextsOfErrors(t *testing.T) {
	long := strings.Repeat("wörd ", 2000)
	for _, row := range []struct {
		name string
		err  error
		want string
	}{
		{"one line", errors.New("a\r\nb\u2028c\td"), "a; b; c d"},
		{"what a terminal would interpret", errors.New("\x1b[2Jcleared \u202egnp.exe"), "\uFFFD[2Jcleared \uFFFDgnp.exe"},
		{"no UTF-8", errors.New("a\xffb"), "a\uFFFDb"},
		{"a long one", errors.New(long), strings.Repeat("wörd ", 29) + "wö..."},
		{"a long one without a blank", errors.New(strings.Repeat("x", 5000)), "..."},
		{"a secret at the place of the cut", errors.New(strings.Repeat("?a="+strings.Repeat("x", 1000)+" ", 4) + "?token=" + strings.Repeat("hush", 100)),
			strings.Repeat("?(hidden) ", 4) + "..."},
		{"a nil pointer", (*broken)(nil), "<nil>"},
		{"one that panics", &broken{}, "%!v(PANIC=Error method: no text)"},
	} {
		t.Run(row.name, func(t *testing.T) {
			live := retrydebug.New(retrydebug.Options{})
			e := eventOf(retry.DeadLettered, retry.TerminalError)
			e.Outcome.History[0].Err = row.err
			live.Observe(t.Context(), e)
			require.Equal(t, row.want, live.Snapshot().Failed[0].History[0].Error)
			require.LessOrEqual(t, len(row.want), 180)
		})
	}
}

// TestTheMemoryIsBounded fills everything that is kept with the longest texts and the most policies, and compares with
// the promise of the package documentation.
func TestTheMemoryIsBounded(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		heap := func() uint64 {
			runtime.GC()
			var m runtime.MemStats
			runtime.ReadMemStats(&m)
			return m.HeapAlloc
		}
		budget := retry.NewBudget(retry.BudgetConfig{})
		long := strings.Repeat("l", 1<<20)
		before := heap()
		live := retrydebug.New(retrydebug.Options{Label: func(context.Context) string { return long }})
		for i := range 110 {
			for reason := retry.TerminalError; reason <= retry.CallerCanceled; reason++ {
				for _, status := range []retry.Status{retry.DeadLettered, retry.Succeeded} {
					e := retry.Event{Policy: fmt.Sprintf("%0128d", i), Outcome: &retry.Outcome{Status: status, Reason: reason, Attempts: 12, Elapsed: time.Duration(i)}}
					e.Outcome.Policy = e.Policy
					for number := range 12 {
						err := errors.New(strings.Repeat(fmt.Sprintf("%d %d %d ", i, reason, number), 100))
						a := retry.Attempt{Number: number, Err: request{err, []slog.Attr{slog.String("host", long)}}}
						e.Outcome.History = append(e.Outcome.History, a)
					}
					live.Observe(t.Context(), retry.Event{Policy: e.Policy, Attempt: e.Outcome.History[0]})
					live.Observe(t.Context(), e)
				}
			}
			live.Budget(fmt.Sprintf("%0128d", i), budget)
			live.ObserveHedge(t.Context(), retryhedge.Event{Policy: fmt.Sprintf("%0128d", i), Calls: make([]retryhedge.Call, 2)})
			time.Sleep(time.Second)
		}
		require.Len(t, live.Snapshot().Failed, 100)
		require.Len(t, live.Snapshot().Slowest, 20)
		used := int(heap()) - int(before)
		t.Logf("%d bytes", used)
		require.Less(t, used, 1<<20)
		runtime.KeepAlive(live)
		runtime.KeepAlive(long)
	})
}

// TestARunWithoutAnAttempt: the cause of its caller's end is its error.
func TestARunWithoutAnAttempt(t *testing.T) {
	live := retrydebug.New(retrydebug.Options{})
	ctx, leave := context.WithCancelCause(t.Context())
	leave(errors.New("shutting down, password=hush"))
	_ = retry.Do(ctx, live.Watch(retry.Policy{}), takes(0, nil))
	r := live.Snapshot().Failed[0]
	require.Equal(t, "canceled caller_canceled 0 shutting down, password=(hidden)", fmt.Sprint(r.Status, " ", r.Reason, " ", r.Attempts, " ", r.Error))
	require.Contains(t, get(live, "", "").Body.String(), "shutting down")
}

// TestAnEventOfAnotherShell: a reason that this package does not know is counted, and shown as another.
func TestAnEventOfAnotherShell(t *testing.T) {
	live := retrydebug.New(retrydebug.Options{})
	//lint:ignore SA1012 the nil is the point
	live.Observe(nil, retry.Event{Outcome: &retry.Outcome{Status: 77, Reason: 99}}) //nolint:staticcheck // a nil context is what is tested
	p := policyOf(t, live.Snapshot(), "")
	require.Equal(t, map[string]int{"_OTHER": 1}, p.Total.Reasons)
	for _, accept := range []string{"text/html", "text/plain", "application/json"} {
		require.Equal(t, 200, get(live, "", accept).Code)
	}
}
