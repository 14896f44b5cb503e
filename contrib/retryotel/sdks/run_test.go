package sdks_test

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"
	"go.opentelemetry.io/otel/codes"
	sdktrace "go.opentelemetry.io/otel/sdk/trace"
	tracenoop "go.opentelemetry.io/otel/trace/noop"
	grpccodes "google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"

	"github.com/retrygo/retry"
	"github.com/retrygo/retry/contrib/retryotel"
	"github.com/retrygo/retry/retryjob"
	"github.com/retrygo/retry/retrytest"
)

func TestEachRunHasASpanWithItsOutcome(t *testing.T) {
	for _, row := range []struct {
		name   string
		policy retry.Policy
		tries  steps
		want   map[string]any
		status sdktrace.Status
		lasted time.Duration
	}{
		{"a success", retry.Policy{Name: "charge"}, steps{try(nil)},
			map[string]any{"retry.policy": "charge", "retry.status": "succeeded", "retry.attempts": int64(1)}, sdktrace.Status{}, time.Second},
		{"a success after a retry, of no name", retry.Policy{}, steps{try(errDown), try(nil)},
			map[string]any{"retry.status": "succeeded", "retry.attempts": int64(2)}, sdktrace.Status{}, 7 * time.Second},
		{"a failure", retry.Policy{Name: "charge", MaxAttempts: 2}, steps{try(errDown), try(timeoutOfServer{errDown})},
			map[string]any{"retry.policy": "charge", "retry.status": "dead_letter", "retry.reason": "attempts_exhausted",
				"retry.attempts": int64(2), "error.type": "server_slow"},
			sdktrace.Status{Code: codes.Error, Description: "retry: charge: gave up after 2 attempts in 7s (attempts_exhausted): down"}, 7 * time.Second},
		{"an ordinary error", retry.Policy{}, steps{try(retry.Permanent(errDown))},
			map[string]any{"retry.status": "not_retried", "retry.reason": "terminal_error", "retry.attempts": int64(1), "error.type": "*errors.errorString"},
			sdktrace.Status{Code: codes.Error, Description: "down"}, time.Second},
		{"a gate that stays shut", retry.Policy{TTL: time.Second, Gate: func(context.Context) time.Duration { return time.Hour }}, nil,
			map[string]any{"retry.status": "expired", "retry.reason": "ttl_elapsed", "retry.attempts": int64(0), "error.type": "*retry.Error"},
			sdktrace.Status{Code: codes.Error, Description: "retry: gave up after 0 attempts in 0s (ttl_elapsed, deferred by Gate)"}, 0},
		{"a refused policy", retry.Policy{MaxAttempts: -7}, nil,
			map[string]any{"error.type": "github.com/retrygo/retry.FieldErrors"},
			sdktrace.Status{Code: codes.Error, Description: retry.Policy{MaxAttempts: -7}.Validate().Error()}, 0},
	} {
		t.Run(row.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				s := newSDK(t)
				ctx, caller := s.traces.Tracer("").Start(t.Context(), "caller")
				_ = retryotel.Do(ctx, row.policy, s.Options, retrytest.Script(t, row.tries))
				run := s.runBelow(caller.SpanContext())
				require.Equal(t, row.want, set(run.Attributes))
				require.Equal(t, row.status, run.Status)
				require.Equal(t, row.lasted, run.EndTime.Sub(run.StartTime))
				require.Empty(t, run.Events)
				require.Equal(t, "github.com/retrygo/retry/contrib/retryotel", run.InstrumentationScope.Name)
				require.Len(t, s.named("retry.attempt"), len(row.tries))
			})
		})
	}
}

// step makes one attempt of a job, with fn as its handler.
func step(t *testing.T, p retry.Policy, rec *retryjob.Record, attempt int, fn func(context.Context) error) {
	next, err := (&retryjob.Stepper{Policies: retryjob.FromMap(map[string]retry.Policy{"mail": p})}).Step(t.Context(), rec, attempt, fn)
	require.NoError(t, err)
	next.Tell()
}

func TestAJobsRunHasASpanWhenItHasEnded(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s, observe := observed(t)
		p := retry.Policy{Name: "mail", MaxAttempts: 2, Backoff: retry.Backoff{Mode: retry.Fixed, Base: time.Hour}, Observe: observe}
		enqueued := time.Now()
		rec := retryjob.NewRecord(&retryjob.Job{ID: "welcome-7", Kind: "welcome", Policy: "mail"}, enqueued)
		step(t, p, &rec, 1, retrytest.Script(t, steps{try(errDown)}))
		require.Empty(t, s.spans.GetSpans())
		time.Sleep(time.Hour) // of the bubble
		step(t, p, &rec, 2, retrytest.Script(t, steps{try(timeoutOfServer{errDown})}))

		run := s.span("retry.run")
		require.Equal(t, map[string]any{"retry.policy": "mail", "retry.job": "welcome-7", "retry.status": "dead_letter",
			"retry.reason": "attempts_exhausted", "retry.attempts": int64(2), "error.type": "server_slow"}, set(run.Attributes))
		require.Equal(t, sdktrace.Status{Code: codes.Error, Description: "retry: mail: gave up after 2 attempts in 1h0m2s (attempts_exhausted): down"}, run.Status)
		require.Equal(t, [2]time.Time{enqueued, enqueued.Add(time.Hour + 2*time.Second)}, [2]time.Time{run.StartTime, run.EndTime})
		require.Len(t, run.Events, 2)
		for i, at := range []time.Duration{time.Second, time.Hour + 2*time.Second} {
			require.Equal(t, "retry.attempt.failed", run.Events[i].Name)
			require.Equal(t, enqueued.Add(at).UTC(), run.Events[i].Time.UTC())
		}
		require.Equal(t, map[string]any{"retry.policy": "mail", "retry.attempt": int64(1), "retry.class": "retryable",
			"retry.delay": 3600.0, "error.type": "github.com/retrygo/retry/retryjob.recorded"}, set(run.Events[0].Attributes))
		require.NotContains(t, set(run.Events[1].Attributes), "retry.delay")
	})
}

// Each run in the handler of a job has one span, made by Do, Run or Observe.
func TestRunsInTheHandlerOfAJobHaveOneSpanEach(t *testing.T) {
	s, observe := observed(t)
	named := func(name string) retry.Policy { return retry.Policy{Name: name, Observe: observe} }
	rec := retryjob.NewRecord(&retryjob.Job{ID: strings.Repeat("j", 200), Kind: "welcome", Policy: "mail"}, time.Now())
	step(t, named("mail"), &rec, 1, func(ctx context.Context) error {
		return retryotel.Do(ctx, named("do"), s.Options, func(ctx context.Context) error {
			require.NoError(t, retryotel.Run(ctx, s.Options, func(ctx context.Context) error {
				return retry.Do(ctx, named("run"), succeed)
			}))
			return retry.Do(ctx, named("plain"), succeed)
		})
	})
	jobs := map[string]any{}
	for _, run := range s.named("retry.run") {
		values := set(run.Attributes)
		require.NotContains(t, jobs, values["retry.policy"])
		jobs[values["retry.policy"].(string)] = values["retry.job"]
	}
	id := strings.Repeat("j", 128) + "... (200 bytes)"
	require.Equal(t, map[string]any{"mail": id, "plain": id, "do": nil, "run": nil}, jobs)

	// Without a recording span nothing is made of the errors, and spans of any type are compared.
	o := s.Options
	o.TracerProvider = tracenoop.NewTracerProvider()
	mute, err := retryotel.Observe(o)
	require.NoError(t, err)
	p := retry.Policy{Name: "mail", Observe: mute}
	rec = retryjob.NewRecord(&retryjob.Job{ID: "7", Kind: "welcome", Policy: "mail"}, time.Now())
	step(t, p, &rec, 1, func(ctx context.Context) error {
		return retry.Permanent(retryotel.Do(ctx, p, o, func(context.Context) error { return retry.Permanent(said{errDown, t}) }))
	})
	require.Equal(t, retryjob.DeadLettered, rec.Status)
}

// said is an error whose type must not be asked for.
type said struct {
	error
	t *testing.T
}

func (s said) ErrorType() string { s.t.Error("asked for the type"); return "" }

func TestAttemptsAreCountedAndMeasuredByClass(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s, observe := observed(t)
		p := retry.Policy{Name: "charge", Observe: observe, Backoff: retry.Backoff{Mode: retry.Fixed, Base: time.Minute}}
		takes := func(d time.Duration, err error) retrytest.Step {
			return retrytest.Step{Err: err, Takes: d, IgnoreContext: true}
		}
		_ = retry.Do(t.Context(), p, retrytest.Script(t, steps{takes(2*time.Second, nil)}))
		_ = retry.Do(t.Context(), p, retrytest.Script(t, steps{takes(3*time.Second, errDown), takes(time.Second, errDown), takes(4*time.Second, nil)}))
		_ = retry.Do(t.Context(), p, retrytest.Script(t, steps{takes(5*time.Second, errDown), takes(6*time.Second, retry.Permanent(errDown))}))
		p.Name = ""
		_ = retry.Do(t.Context(), p, retrytest.Script(t, steps{takes(7*time.Second, retry.Permanent(errDown))}))
		for _, class := range []retry.Class{retry.Unknown, retry.Terminal + 1, 255} { // of an Event made by hand
			observe(t.Context(), retry.Event{Attempt: retry.Attempt{Class: class}})
		}
		require.Equal(t, map[string]float64{
			"retry.class=succeeded,retry.policy=charge": 2,
			"retry.class=retryable,retry.policy=charge": 3,
			"retry.class=terminal,retry.policy=charge":  1,
			"retry.class=terminal":                      1,
			"retry.class=_OTHER":                        3,
		}, s.values("retry.attempts"))
		require.Equal(t, map[string]recorded{
			"retry.class=succeeded,retry.policy=charge": {2, 2 + 4},
			"retry.class=retryable,retry.policy=charge": {3, 3 + 1 + 5},
			"retry.class=terminal,retry.policy=charge":  {1, 6},
			"retry.class=terminal":                      {1, 7},
			"retry.class=_OTHER":                        {3, 0},
		}, s.histogram("retry.attempt.duration"))

		// Clocks that differ must not produce impossible durations: at most the run's, at least zero.
		at := time.Now()
		for _, start := range []time.Time{{}, at.Add(time.Hour)} {
			observe(t.Context(), retry.Event{Policy: "odd", Outcome: &retry.Outcome{Status: retry.Succeeded, Attempts: 2,
				Elapsed: 8 * time.Second, History: []retry.Attempt{{Start: start}}}})
		}
		require.Equal(t, recorded{2, 8}, s.histogram("retry.attempt.duration")["retry.class=succeeded,retry.policy=odd"])
	})
}

func TestErrorTypes(t *testing.T) {
	errorType := func(err error) any {
		s := newSDK(t)
		_ = retryotel.Do(t.Context(), retry.Policy{Disabled: true}, s.Options, func(context.Context) error { return err })
		return set(s.span("retry.attempt").Attributes)["error.type"]
	}
	for code := grpccodes.Code(1); code <= 16; code++ {
		var parsed grpccodes.Code
		name := errorType(status.Error(code, "no")).(string)
		require.NoError(t, parsed.UnmarshalJSON([]byte(`"`+name+`"`)), name)
		require.Equal(t, code, parsed)
	}
	down := status.Error(grpccodes.Unavailable, "no")
	for _, row := range []struct {
		name string
		err  error
		want string
	}{
		// Marks and the errors of fmt.Errorf do not name a type, and a nil in them is not followed.
		{"the error's own word below marks", retry.After(time.Hour*2, fmt.Errorf("a: %w", retry.Transient(fmt.Errorf("b: %w", timeoutOfServer{nil})))), "server_slow"},
		{"a type below marks", retry.Permanent(fmt.Errorf("a: %w", fmt.Errorf("b: %w", errDown))), "*errors.errorString"},
		{"nil below a wrapper", fmt.Errorf("a: %w", error(nil)), "*fmt.wrapError"},
		{"an attempt's timeout", fmt.Errorf("wait: %w", retry.ErrAttemptTimeout), "timeout"},
		{"a type of package retry that is no mark", &retry.FieldError{}, "*retry.FieldError"},

		{"a code that is wrapped and marked", retry.After(1, fmt.Errorf("charge: %w", down)), "UNAVAILABLE"},
		{"the code of the second of two", errors.Join(errDown, down), "UNAVAILABLE"},
		{"the code of a nested run", retry.Policy{}.NewError(t.Context(), retry.Outcome{Reason: retry.AttemptsExhausted}, down), "UNAVAILABLE"},
		{"the error's own word comes before a code", timeoutOfServer{down}, "server_slow"},
		{"a code that gRPC does not have", status.Error(17, "no"), "UNKNOWN"},
		{"the code OK is not an error", hasStatus{}, "github.com/retrygo/retry/contrib/retryotel/sdks_test.hasStatus"},
		{"the code OK does not hide one below", hasStatus{down}, "UNAVAILABLE"},
		{"a method of that name with a parameter", errors.Join(statusOf{errDown}, down), "UNAVAILABLE"},
		{"a method of that name with two results", errors.Join(statusAnd{errDown}, down), "UNAVAILABLE"},
		{"a method of that name whose result has no number", errors.Join(statusText{errDown}, down), "UNAVAILABLE"},
		{"a method of that name whose result has no code", errors.Join(statusOnly{errDown}, down), "UNAVAILABLE"},
		{"below a doubt", retry.Ambiguous(down), "UNAVAILABLE"},
		{"a plain error in doubt", retry.Ambiguous(fmt.Errorf("charge: %w", errDown)), "*errors.errorString"},
		{"a type that is no pointer", statusText{errDown}, "github.com/retrygo/retry/contrib/retryotel/sdks_test.statusText"},
		{"errors of several without one", errors.Join(errDown, errDown), "*errors.joinError"},
	} {
		t.Run(row.name, func(t *testing.T) { require.Equal(t, row.want, errorType(row.err)) })
	}
}

type hasStatus struct{ error }

func (hasStatus) Error() string              { return "ok" }
func (hasStatus) GRPCStatus() *status.Status { return nil }
func (h hasStatus) Unwrap() error            { return h.error }

type (
	statusOf   struct{ error }
	statusAnd  struct{ error }
	statusText struct{ error }
	statusOnly struct{ error }
)

func (statusOf) GRPCStatus(int) *status.Status            { panic("called") }
func (statusAnd) GRPCStatus() (*status.Status, error)     { panic("called") }
func (statusText) GRPCStatus() interface{ Code() string } { return textCode{} }
func (statusOnly) GRPCStatus() struct{}                   { return struct{}{} }

type textCode struct{}

func (textCode) Code() string { return "UNAVAILABLE" }

func TestNamesAreBounded(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s, observe := observed(t)
		x := strings.Repeat("x", 60_000)
		for _, name := range []string{x, x[:129], x[:128]} {
			p := retry.Policy{Name: name, MaxAttempts: 2, Observe: observe}
			_ = retryotel.Do(t.Context(), p, s.Options, func(context.Context) error { return typed(x) })
		}
		want := []string{x[:128] + "... (60000 bytes)", x[:128] + "... (129 bytes)", x[:128]}
		counted := map[string]float64{}
		for i, run := range s.named("retry.run") {
			values := set(run.Attributes)
			require.Equal(t, [2]any{want[i], want[0]}, [2]any{values["retry.policy"], values["error.type"]})
			require.Equal(t, want[i], set(run.Events[0].Attributes)["retry.policy"])
			require.Equal(t, want[i], set(s.named("retry.attempt")[2*i].Attributes)["retry.policy"])
			counted["retry.class=retryable,retry.policy="+want[i]] = 2
		}
		require.Equal(t, counted, s.values("retry.attempts"))

		ctx, caller := s.traces.Tracer("").Start(t.Context(), "caller")
		require.NoError(t, retry.Do(ctx, retry.Policy{Name: x, Observe: observe}, succeed))
		caller.End()
		require.Equal(t, want[0], set(s.span("caller").Attributes)["retry.run.policy"])
	})
}

type typed string

func (typed) Error() string       { return "down" }
func (t typed) ErrorType() string { return string(t) }
