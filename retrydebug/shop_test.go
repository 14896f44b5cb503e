package retrydebug_test

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/retrygo/retry"
	"github.com/retrygo/retry/retrydebug"
	"github.com/retrygo/retry/retryhedge"
	"github.com/retrygo/retry/retryshell"
)

var errRefused = errors.New("dial tcp 10.0.0.7:5432: connect: connection refused")

// takes returns a function whose attempts take d each and fail with the errors in turn. The last one repeats.
func takes(d time.Duration, errs ...error) func(context.Context) error {
	n := 0
	return func(ctx context.Context) error {
		err := errs[min(n, len(errs)-1)]
		n++
		select {
		case <-time.After(d):
			return err
		case <-ctx.Done():
			return ctx.Err()
		}
	}
}

// request is an error that describes its request, as those of retryhttp and contrib/retrygrpc do.
type request struct {
	error
	attrs []slog.Attr
}

func (r request) LogValue() slog.Value { return slog.GroupValue(r.attrs...) }
func (r request) Unwrap() error        { return r.error }

// inAJob returns a context as Policy.Observe gets it for a job.
func inAJob(ctx context.Context, kind string) context.Context {
	return context.WithValue(ctx, retryshell.ReportedJob{},
		request{attrs: []slog.Attr{slog.String("id", "tenant-7/order-8"), slog.String("kind", kind)}})
}

// get returns the answer to a request of a program on this machine.
func get(h http.Handler, query, accept string) *httptest.ResponseRecorder {
	r := httptest.NewRequest(http.MethodGet, "http://localhost/debug/retry/"+query, nil)
	r.RemoteAddr = "127.0.0.1:4711"
	r.Header.Set("Accept", accept)
	w := httptest.NewRecorder()
	h.ServeHTTP(w, r)
	return w
}

func policyOf(t *testing.T, s retrydebug.Snapshot, name string) retrydebug.Policy {
	t.Helper()
	for _, p := range s.Policies {
		if p.Name == name {
			return p
		}
	}
	require.Fail(t, "no policy "+name)
	return retrydebug.Policy{}
}

// shop returns the page of a shop in an incident: the inventory has been down for ten minutes of fifty. It needs the
// clock of a synctest bubble.
func shop(t *testing.T) *retrydebug.Page {
	live := retrydebug.New(retrydebug.Options{Name: "shop", Label: func(context.Context) string { return "trace 4bf92f3577b34da6" }})
	watch := func(p retry.Policy) retry.Policy {
		p.Rand = func() float64 { return 0.7 }
		return live.Watch(p)
	}
	inline := retry.Inline()
	inline.Name, inline.Budget, inline.TTL = "inventory", retry.NewBudget(retry.BudgetConfig{Initial: 2}), 2*time.Second
	inventory := watch(inline)
	inline.Name, inline.AttemptTimeout, inline.Budget = "prices", 200*time.Millisecond, retry.NewBudget(retry.BudgetConfig{Initial: 2})
	prices := watch(inline)
	database := watch(retry.Policy{Name: "orders.db", MaxAttempts: 4, Backoff: retry.Backoff{Base: 20 * time.Millisecond, Cap: time.Second}})
	payments := watch(retry.Policy{Name: "payments", MaxAttempts: 3, Backoff: retry.Backoff{Base: 100 * time.Millisecond}, MaxHint: 5 * time.Second,
		Budget: inline.Budget})
	mail := watch(retry.Policy{Name: "mail", MaxAttempts: 8})

	down := request{errors.New(`Get "http://inventory.internal/v1/items/8?customer=7": dial tcp 10.0.3.9:80: connect: connection refused`),
		[]slog.Attr{slog.String("method", "GET"), slog.String("host", "inventory.internal"), slog.String("path", "/v1/items/8")}}
	conflict := errors.New("ERROR: could not serialize access due to concurrent update (SQLSTATE 40001)")
	busy := request{retry.After(time.Second, errors.New("429 Too Many Requests")),
		[]slog.Attr{slog.String("method", "POST"), slog.String("host", "payments.example")}}
	lost := retry.Ambiguous(request{errors.New("card network: signature=8f2c: unexpected EOF"), busy.attrs})
	for minute := range 50 {
		for i := range 6 {
			ctx, cancel := context.WithTimeout(t.Context(), 3*time.Second)
			outage := minute >= 20 && minute < 26 || minute >= 46
			if outage && i > 0 {
				_ = retry.Do(ctx, inventory, takes(15*time.Millisecond, down))
			} else {
				_ = retry.Do(ctx, inventory, takes(15*time.Millisecond, nil))
			}
			_ = retry.Do(ctx, prices, takes(time.Duration(i)*49*time.Millisecond, nil)) // never just as AttemptTimeout ends
			_ = retry.Do(ctx, database, takes(4*time.Millisecond, conflict, nil))
			_ = retry.Do(ctx, database, takes(4*time.Millisecond, nil))
			if i == 2 && minute%10 == 9 {
				_ = retry.Do(ctx, payments, takes(80*time.Millisecond, busy, busy, nil))
				_ = retry.Do(ctx, payments, takes(80*time.Millisecond, lost))
			}
			live.ObserveHedge(ctx, retryhedge.Event{Policy: "prices", Calls: make([]retryhedge.Call, 1+i/5), Won: 1 + minute%2*(i/5), Refused: i == 4})
			cancel()
			time.Sleep(8 * time.Second)
		}
		job := inAJob(t.Context(), "welcome-mail")
		live.Observe(job, retry.Event{Policy: mail.Name, Outcome: &retry.Outcome{Policy: mail.Name, Status: retry.Succeeded, Attempts: 1, Elapsed: time.Second}})
	}
	return live
}

// busyPage returns a page with n policies, a hundred failed runs and twenty slow ones.
func busyPage(n int) *retrydebug.Page {
	live := retrydebug.New(retrydebug.Options{})
	for i := range n {
		p := retry.Policy{Name: fmt.Sprintf("policy-%03d", i), Budget: retry.NewBudget(retry.BudgetConfig{})}
		live.Watch(p)
		for range 10 {
			ctx := context.Background()
			failed := retry.Attempt{Number: 1, Start: time.Now(), Duration: time.Millisecond, Class: retry.Retryable, Delay: time.Millisecond, Err: errRefused}
			history := []retry.Attempt{}
			for number := range 10 {
				failed.Number = number + 1
				history = append(history, failed)
			}
			live.Observe(ctx, retry.Event{Policy: p.Name, Attempt: failed, Decision: retry.Decision{Status: retry.WaitingRetry}})
			for _, status := range []retry.Status{retry.DeadLettered, retry.Succeeded} {
				o := &retry.Outcome{Policy: p.Name, Status: status, Attempts: 11, Elapsed: time.Second, History: history}
				if status == retry.DeadLettered {
					o.Reason = retry.AttemptsExhausted
				}
				live.Observe(ctx, retry.Event{Policy: p.Name, Outcome: o, Err: &retry.Error{Outcome: *o, Last: errRefused}})
			}
		}
	}
	return live
}
