package sdks_test

import (
	"context"
	"errors"
	"fmt"
	"net"
	"strconv"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"
	sdktrace "go.opentelemetry.io/otel/sdk/trace"

	"github.com/retrygo/retry"
	"github.com/retrygo/retry/contrib/retryotel"
	"github.com/retrygo/retry/retryhttp"
	"github.com/retrygo/retry/retrytest"
)

var errDown = errors.New("down")

type steps = []retrytest.Step

// try is an attempt that takes a second.
func try(err error) retrytest.Step {
	return retrytest.Step{Err: err, Takes: time.Second, IgnoreContext: true}
}

// TestEveryEnding ends runs in each possible way, in virtual time, and reads all their metrics.
func TestEveryEnding(t *testing.T) {
	empty := retry.NewBudget(retry.BudgetConfig{Initial: -1})
	one := func() *retry.Budget { return retry.NewBudget(retry.BudgetConfig{Initial: 1}) }
	for _, row := range []struct {
		name   string
		policy retry.Policy
		tries  steps
		within time.Duration // of the caller; 0 means no deadline
		cancel time.Duration // of the caller; 0 means never, below 0 before the run

		runs     string // without the policy
		kind     string
		attempts float64
		duration float64
		delays   recorded
	}{
		{name: "a first success", tries: steps{try(nil)}, runs: "retry.status=succeeded", kind: "succeeded_without_retry", attempts: 1, duration: 1},
		{name: "a later success", tries: steps{try(errDown), try(errDown), try(nil)}, runs: "retry.status=succeeded", kind: "succeeded_with_retry", attempts: 3, duration: 3 + 15, delays: recorded{2, 15}},
		{name: "terminal at once", tries: steps{try(retry.Permanent(errDown))},
			runs: "retry.reason=terminal_error,retry.status=not_retried", kind: "failed_without_retry", attempts: 1, duration: 1},
		{name: "terminal after a retry", tries: steps{try(errDown), try(retry.Permanent(errDown))},
			runs: "retry.reason=terminal_error,retry.status=dead_letter", kind: "failed_with_retry", attempts: 2, duration: 2 + 5, delays: recorded{1, 5}},
		{name: "given up below", tries: steps{try(retry.Permanent(belowGaveUp{errDown}))},
			runs: "retry.reason=given_up_below,retry.status=not_retried", kind: "failed_without_retry", attempts: 1, duration: 1},
		{name: "given up below, after a retry", tries: steps{try(errDown), try(retry.Permanent(belowGaveUp{errDown}))},
			runs: "retry.reason=given_up_below,retry.status=dead_letter", kind: "failed_with_retry", attempts: 2, duration: 2 + 5, delays: recorded{1, 5}},
		{name: "attempts used up", policy: retry.Policy{MaxAttempts: 3}, tries: steps{try(errDown), try(errDown), try(errDown)},
			runs: "retry.reason=attempts_exhausted,retry.status=dead_letter", kind: "failed_with_retry", attempts: 3, duration: 3 + 15, delays: recorded{2, 15}},
		{name: "one attempt allowed", policy: retry.Policy{MaxAttempts: 1}, tries: steps{try(errDown)},
			runs: "retry.reason=attempts_exhausted,retry.status=dead_letter", kind: "failed_without_retry", attempts: 1, duration: 1},
		{name: "no budget", policy: retry.Policy{Budget: empty}, tries: steps{try(errDown)},
			runs: "retry.reason=budget_exhausted,retry.status=dead_letter", kind: "failed_without_retry", attempts: 1, duration: 1},
		{name: "budget for one retry", policy: retry.Policy{Budget: one()}, tries: steps{try(errDown), try(errDown)},
			runs: "retry.reason=budget_exhausted,retry.status=dead_letter", kind: "failed_with_retry", attempts: 2, duration: 2 + 5, delays: recorded{1, 5}},
		{name: "TTL", policy: retry.Policy{TTL: 10 * time.Second}, tries: steps{try(errDown), try(errDown)},
			runs: "retry.reason=ttl_elapsed,retry.status=expired", kind: "failed_with_retry", attempts: 2, duration: 2 + 5, delays: recorded{1, 5}},
		{name: "deadline passed", tries: steps{try(errDown)}, within: 1 * time.Second,
			runs: "retry.reason=deadline_passed,retry.status=expired", kind: "failed_without_retry", attempts: 1, duration: 1},
		{name: "deadline too near", tries: steps{try(errDown)}, within: 3 * time.Second,
			runs: "retry.reason=deadline_too_near,retry.status=expired", kind: "failed_without_retry", attempts: 1, duration: 1},
		{name: "hint too long", tries: steps{try(retry.After(2*time.Hour, errDown))},
			runs: "retry.reason=hint_too_long,retry.status=expired", kind: "failed_without_retry", attempts: 1, duration: 1},
		{name: "retries disabled", policy: retry.Policy{Disabled: true}, tries: steps{try(errDown)},
			runs: "retry.reason=retries_disabled,retry.status=failed_no_retries", kind: "failed_without_retry", attempts: 1, duration: 1},
		{name: "a caller cancels a wait", tries: steps{try(errDown)}, cancel: 3 * time.Second,
			runs: "retry.reason=caller_canceled,retry.status=canceled", kind: "failed_without_retry", attempts: 1, duration: 3, delays: recorded{1, 5}},
		{name: "a caller has canceled before", cancel: -1,
			runs: "retry.reason=caller_canceled,retry.status=canceled", kind: "failed_without_retry"},
	} {
		for _, name := range []string{"", "charge"} {
			t.Run(row.name+" of policy "+strconv.Quote(name), func(t *testing.T) {
				synctest.Test(t, func(t *testing.T) {
					s := newSDK(t)
					p := row.policy
					if p.Budget != nil && p.Budget != empty {
						p.Budget = one()
					}
					var err error
					p.Name = name
					p.Observe, err = retryotel.Observe(s.Options)
					require.NoError(t, err)
					ctx, cancel := context.WithCancel(t.Context())
					defer cancel()
					if row.within > 0 {
						ctx, cancel = context.WithTimeout(ctx, row.within)
						defer cancel()
					}
					if row.cancel < 0 {
						cancel()
					} else if row.cancel > 0 {
						time.AfterFunc(row.cancel, cancel)
					}
					ctx, span := s.traces.Tracer("").Start(ctx, "caller")
					_ = retry.Do(ctx, p, retrytest.Script(t, row.tries))
					span.End()

					policy, before := "", ""
					if name != "" {
						policy = "retry.policy=" + name
						before = policy + ","
					}
					kind := "retry.kind=" + row.kind
					require.Equal(t, map[string]float64{kind + "," + before + row.runs: 1}, s.values("retry.runs"))
					of := kind
					if name != "" {
						of += "," + policy
					}
					require.Equal(t, map[string]recorded{of: {1, row.attempts}}, s.histogram("retry.run.attempts"))
					require.Equal(t, map[string]recorded{of: {1, row.duration}}, s.histogram("retry.run.duration"))
					delays := map[string]recorded{}
					if row.delays.count > 0 {
						delays[policy] = row.delays
					}
					require.Equal(t, delays, s.histogram("retry.delay"))

					got := set(s.span("caller").Attributes)
					require.EqualValues(t, row.attempts, got["retry.attempts"])
					shown := fmt.Sprintf("retry.status=%s", got["retry.status"])
					if got["retry.reason"] != "" {
						shown = fmt.Sprintf("retry.reason=%s,%s", got["retry.reason"], shown)
					}
					require.Equal(t, row.runs, shown)
					require.Equal(t, name, got["retry.run.policy"])
				})
			})
		}
	}
}

// belowGaveUp is the error of a layer that has given up.
type belowGaveUp struct{ error }

func (belowGaveUp) GivenUp() bool { return true }

// timeoutOfServer is an error that says itself what type it is.
type timeoutOfServer struct{ error }

func (timeoutOfServer) ErrorType() string { return "server_slow" }
func (e timeoutOfServer) Unwrap() error   { return e.error }

func TestEventsOfFailedAttempts(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s, observe := observed(t)
		p := retry.Policy{Name: "charge", AttemptTimeout: time.Second, Observe: observe}
		errs := []error{
			fmt.Errorf("step: %w", retry.After(7*time.Second, &net.OpError{Op: "dial", Err: errDown})),
			nil, // replaced by the attempt's own error
			timeoutOfServer{context.DeadlineExceeded},
			&retryhttp.AttemptError{Reason: "status_503", StatusCode: 503},
			&retryhttp.AttemptError{Reason: retryhttp.ConnRefused, Err: errDown},
			retry.Transient(context.Canceled),
			retry.Permanent(fmt.Errorf("no: %w", errDown)),
		}
		ctx, span := s.traces.Tracer("").Start(t.Context(), "caller")
		err := retry.Do(ctx, p, func(ctx context.Context) error {
			err := errs[retry.AttemptNumber(ctx)-1]
			if err == nil {
				<-ctx.Done()
				err = ctx.Err()
			}
			return err
		})
		require.ErrorIs(t, err, retry.TerminalError)
		span.End()

		type event struct {
			name  string
			after time.Duration // since the run began
			set   map[string]any
		}
		failed := func(after time.Duration, number int, class, errorType string, delay float64) event {
			e := event{"retry.attempt.failed", after, map[string]any{"retry.policy": "charge",
				"retry.attempt": int64(number), "retry.class": class, "error.type": errorType, "retry.delay": delay}}
			if delay == 0 {
				delete(e.set, "retry.delay")
			}
			return e
		}
		const second = time.Second
		want := []event{
			failed(0, 1, "retryable", "*net.OpError", 7),
			failed(8*second, 2, "retryable", "timeout", 10),
			failed(18*second, 3, "retryable", "server_slow", 20),
			failed(38*second, 4, "retryable", "503", 40),
			failed(78*second, 5, "retryable", "conn_refused", 80),
			failed(158*second, 6, "retryable", "canceled", 160),
			failed(318*second, 7, "terminal", "*errors.errorString", 0),
		}
		stub := s.span("caller")
		var got []event
		for _, e := range stub.Events {
			got = append(got, event{e.Name, e.Time.Sub(stub.StartTime), set(e.Attributes)})
		}
		require.Equal(t, want, got)
		require.Equal(t, sdktrace.Status{}, stub.Status) // the caller's own
	})
}

func TestPolicyNamesAreBounded(t *testing.T) {
	for _, row := range []struct{ names, told int }{{150, 80}, {81, 80}, {80, 80}} {
		t.Run(fmt.Sprintf("%d names", row.names), func(t *testing.T) {
			s, observe := observed(t)
			for range 2 { // the second time finds the same
				for i := range row.names {
					p := retry.Policy{Name: fmt.Sprintf("policy-%03d", i), Observe: observe}
					require.NoError(t, retry.Do(t.Context(), p, func(context.Context) error { return nil }))
				}
				require.NoError(t, retry.Do(t.Context(), retry.Policy{Observe: observe}, func(context.Context) error { return nil }))
			}
			want := map[string]float64{"retry.kind=succeeded_without_retry,retry.status=succeeded": 2}
			for i := range row.told {
				want[fmt.Sprintf("retry.kind=succeeded_without_retry,retry.policy=policy-%03d,retry.status=succeeded", i)] = 2
			}
			if beyond := row.names - row.told; beyond > 0 {
				want["retry.kind=succeeded_without_retry,retry.policy=_OTHER,retry.status=succeeded"] = float64(2 * beyond)
			}
			require.Equal(t, want, s.values("retry.runs"))
		})
	}
}

// The values of an Event not made by package retry do not add to an enumeration.
func TestStatusesAndReasonsAreEnumerations(t *testing.T) {
	s, observe := observed(t)
	for i := range 200 {
		e := retry.Event{Outcome: &retry.Outcome{Status: retry.Canceled + 1 + retry.Status(i), Reason: retry.CallerCanceled + 1 + retry.Reason(i)}}
		observe(t.Context(), e)
	}
	require.Equal(t, map[string]float64{"retry.kind=failed_without_retry,retry.status=_OTHER": 200}, s.values("retry.runs"))
	ctx, span := s.traces.Tracer("").Start(t.Context(), "caller")
	observe(ctx, retry.Event{})
	span.End()
	require.Equal(t, "_OTHER", set(s.span("caller").Events[0].Attributes)["error.type"])
}

// endings are the reasons of each status with which a run can end.
var endings = map[retry.Status][]retry.Reason{
	retry.Succeeded:       {0},
	retry.DeadLettered:    {retry.TerminalError, retry.AttemptsExhausted, retry.BudgetExhausted},
	retry.Expired:         {retry.TTLElapsed, retry.DeadlinePassed, retry.DeadlineTooNear, retry.HintTooLong},
	retry.FailedNoRetries: {retry.RetriesDisabled},
	retry.Canceled:        {retry.CallerCanceled},
}

// TestTheSeriesAreFewerThanTheSDKsLimit counts the series of each instrument for as many names as are distinguished.
func TestTheSeriesAreFewerThanTheSDKsLimit(t *testing.T) {
	s, observe := observed(t)
	reasons := 0
	for status := retry.Succeeded; status.String() != fmt.Sprintf("Status(%d)", status); status++ {
		require.Equal(t, status == retry.WaitingRetry, endings[status] == nil, status)
		reasons += len(endings[status])
	}
	require.Equal(t, fmt.Sprintf("Reason(%d)", reasons), retry.Reason(reasons).Error(), "each of the reasons, and none, is in the table")
	for policy := range 200 {
		name := ""
		if policy > 0 {
			name = fmt.Sprint("policy ", policy)
		}
		for status, reasons := range endings {
			for _, reason := range reasons {
				for attempts := 1; attempts <= 2 && (attempts == 1 || status != retry.FailedNoRetries); attempts++ {
					for _, below := range []bool{false, reason == retry.TerminalError} {
						observe(t.Context(), retry.Event{Policy: name, Outcome: &retry.Outcome{
							Status: status, Reason: reason, Attempts: attempts, InnerGaveUp: below}})
					}
				}
			}
		}
	}
	const policies, ways, limit = 80 + 2, 21, 2000
	require.Len(t, s.values("retry.runs"), policies*ways)
	require.Less(t, policies*ways, limit)
	for set := range s.values("retry.runs") {
		require.NotContains(t, set, "otel.metric.overflow")
	}
}

func TestConcurrentRunsAreAllCounted(t *testing.T) {
	s, observe := observed(t)
	ctx, span := s.traces.Tracer("").Start(t.Context(), "caller")
	var all sync.WaitGroup
	const goroutines, runs = 16, 50
	for g := range goroutines {
		all.Go(func() {
			for i := range runs {
				p := retry.Policy{Name: strconv.Itoa((7*g + i) % 100), Backoff: retry.Backoff{Mode: retry.Fixed, Base: 1}, Observe: observe}
				_ = retry.Do(ctx, p, func(ctx context.Context) error {
					if retry.AttemptNumber(ctx) < 3 {
						return errDown
					}
					return nil
				})
			}
		})
	}
	all.Wait()
	span.End()
	counted := 0.0
	runsBy := s.values("retry.runs")
	for _, n := range runsBy {
		counted += n
	}
	require.Len(t, runsBy, 81)
	require.EqualValues(t, goroutines*runs, counted)
	var delays uint64
	for _, point := range s.histogram("retry.delay") {
		delays += point.count
	}
	require.EqualValues(t, 2*goroutines*runs, delays)
}
