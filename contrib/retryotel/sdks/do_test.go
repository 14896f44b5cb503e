package sdks_test

import (
	"context"
	"errors"
	"runtime"
	"slices"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"
	"go.opentelemetry.io/otel/attribute"
	"go.opentelemetry.io/otel/codes"
	sdktrace "go.opentelemetry.io/otel/sdk/trace"
	"go.opentelemetry.io/otel/sdk/trace/tracetest"
	"go.opentelemetry.io/otel/trace"
	tracenoop "go.opentelemetry.io/otel/trace/noop"

	"github.com/retrygo/retry"
	"github.com/retrygo/retry/contrib/retryotel"
	"github.com/retrygo/retry/retrytest"
)

// linked requires that the spans follow each other below one parent, each linked to the one before.
func linked(t *testing.T, parent trace.SpanContext, spans []tracetest.SpanStub) {
	t.Helper()
	for i, span := range spans {
		require.Equal(t, parent, span.Parent)
		if i == 0 {
			require.Empty(t, span.Links)
			continue
		}
		require.Len(t, span.Links, 1)
		require.Equal(t, spans[i-1].SpanContext, span.Links[0].SpanContext)
	}
}

// runBelow returns the span of the run that was made below parent.
func (s *sdk) runBelow(parent trace.SpanContext) tracetest.SpanStub {
	runs := slices.DeleteFunc(s.named("retry.run"), func(run tracetest.SpanStub) bool { return !run.Parent.Equal(parent) })
	require.Len(s.t, runs, 1)
	return runs[0]
}

func TestEachAttemptHasASpan(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := newSDK(t)
		ctx, caller := s.traces.Tracer("").Start(t.Context(), "caller")
		fn := retrytest.Script(t, steps{try(errDown), try(errDown), try(nil)})
		began := time.Now()
		err := retryotel.Do(ctx, retry.Policy{Name: "charge"}, s.Options, func(ctx context.Context) error {
			_, inside := s.traces.Tracer("").Start(ctx, "inside")
			defer inside.End()
			return fn(ctx)
		})
		require.NoError(t, err)
		caller.End()

		spans := s.named("retry.attempt")
		require.Len(t, spans, 3)
		linked(t, s.runBelow(caller.SpanContext()).SpanContext, spans)
		for i, span := range spans {
			require.Equal(t, trace.SpanKindInternal, span.SpanKind)
			require.Equal(t, "github.com/retrygo/retry/contrib/retryotel", span.InstrumentationScope.Name)
			require.Equal(t, span.SpanContext, s.named("inside")[i].Parent)
			want := map[string]any{"retry.attempt": int64(i + 1), "retry.policy": "charge"}
			status := sdktrace.Status{}
			if i < 2 {
				want["error.type"] = "*errors.errorString"
				status = sdktrace.Status{Code: codes.Error, Description: "down"}
				require.Len(t, span.Events, 1)
				require.Equal(t, "exception", span.Events[0].Name)
				require.Equal(t, map[string]any{"exception.type": "*errors.errorString", "exception.message": "down"}, set(span.Events[0].Attributes))
			} else {
				require.Empty(t, span.Events)
			}
			require.Equal(t, want, set(span.Attributes))
			require.Equal(t, status, span.Status)
			require.Equal(t, time.Second, span.EndTime.Sub(span.StartTime)) // the wait is in no span
		}
		require.Equal(t, began.Add(18*time.Second), spans[2].EndTime)
	})
}

// AttemptTimeout ends the attempt, whatever fn makes of it.
func TestAnAttemptTimeoutIsSeenInTheSpan(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := newSDK(t)
		p := retry.Policy{MaxAttempts: 1, AttemptTimeout: time.Second}
		err := retryotel.Do(t.Context(), p, s.Options, func(ctx context.Context) error {
			<-ctx.Done()
			return errDown
		})
		require.ErrorIs(t, err, errDown)
		span := s.span("retry.attempt")
		require.Equal(t, map[string]any{"retry.attempt": int64(1), "error.type": "timeout"}, set(span.Attributes))
		require.Equal(t, "down", span.Status.Description)
	})
}

// Runs at the same time, of one function too, never link to each other.
func TestChainsOfConcurrentRunsDoNotMeet(t *testing.T) {
	s := newSDK(t)
	type key struct{}
	p := quickly(4)
	call := func(ctx context.Context) (int, error) {
		run := ctx.Value(key{}).(int)
		runtime.Gosched()
		trace.SpanFromContext(ctx).SetAttributes(attribute.Int("run", run))
		return run, errDown
	}
	const runs = 40
	var all sync.WaitGroup
	parents := make([]trace.SpanContext, runs)
	for run := range runs {
		all.Go(func() {
			ctx, caller := s.traces.Tracer("").Start(t.Context(), "caller")
			defer caller.End()
			parents[run] = caller.SpanContext()
			value, err := retryotel.DoValue(context.WithValue(ctx, key{}, run), p, s.Options, call)
			if value != run || !errors.Is(err, retry.AttemptsExhausted) {
				t.Errorf("run %d: %d, %v", run, value, err)
			}
		})
	}
	all.Wait()
	byRun := map[int64][]tracetest.SpanStub{}
	for _, span := range s.named("retry.attempt") {
		run := set(span.Attributes)["run"].(int64)
		byRun[run] = append(byRun[run], span)
	}
	require.Len(t, byRun, runs)
	for run, spans := range byRun {
		require.Len(t, spans, 4)
		linked(t, s.runBelow(parents[run]).SpanContext, spans)
	}
}

func TestANilFunctionIsRefusedAsRetryDoes(t *testing.T) {
	s := newSDK(t)
	want := retry.Do(t.Context(), retry.Policy{}, nil).Error()
	require.EqualError(t, retryotel.Do(t.Context(), retry.Policy{}, s.Options, nil), want)
	_, err := retryotel.DoValue[int](t.Context(), retry.Policy{}, s.Options, nil)
	require.EqualError(t, err, want)
	//lint:ignore SA1012 the nil is the point
	err = retryotel.Do(nil, retry.Policy{}, s.Options, func(context.Context) error { return nil }) //nolint:staticcheck
	require.ErrorContains(t, err, "ctx")
	require.Empty(t, s.spans.GetSpans())
}

func TestAPanicAndGoexitEndTheSpansAndPassThrough(t *testing.T) {
	for name, row := range map[string]struct {
		end       func()
		recovered any
	}{"a panic": {func() { panic("boom") }, "boom"}, "Goexit": {runtime.Goexit, nil}} {
		t.Run(name, func(t *testing.T) {
			s := newSDK(t)
			done := make(chan any)
			go func() {
				defer func() { done <- recover() }()
				_ = retryotel.Do(t.Context(), retry.Policy{}, s.Options, func(context.Context) error { row.end(); return nil })
			}()
			require.Equal(t, row.recovered, <-done)
			for _, span := range []tracetest.SpanStub{s.span("retry.attempt"), s.span("retry.run")} {
				require.Equal(t, sdktrace.Status{Code: codes.Error, Description: "panic or runtime.Goexit"}, span.Status)
				require.Equal(t, "_OTHER", set(span.Attributes)["error.type"])
				require.False(t, span.EndTime.IsZero())
			}
		})
	}
}

// mute is an error whose text is expensive: it must not be built if no span is recording.
type mute struct{ t *testing.T }

func (m mute) Error() string     { m.t.Error("asked for the text"); return "" }
func (m mute) ErrorType() string { m.t.Error("asked for the type"); return "" }
func (mute) Unwrap() error       { return nil }

// With sampling off, without an SDK and without any span, runs do the same and nothing is made of errors.
func TestWithoutARecordingSpanNothingIsMade(t *testing.T) {
	for name, provider := range map[string]trace.TracerProvider{
		"sampling off": sdktrace.NewTracerProvider(sdktrace.WithSampler(sdktrace.NeverSample())),
		"no SDK":       tracenoop.NewTracerProvider(),
	} {
		t.Run(name, func(t *testing.T) {
			s, observe := observed(t)
			ctx, caller := provider.Tracer("").Start(t.Context(), "caller")
			defer caller.End()
			p := retry.Policy{MaxAttempts: 2, Backoff: retry.Backoff{Mode: retry.Fixed, Base: 1}, Observe: observe}
			calls := 0
			err := retryotel.Do(ctx, p, retryotel.Options{TracerProvider: provider}, func(context.Context) error {
				calls++
				return mute{t}
			})
			if !errors.Is(err, retry.AttemptsExhausted) {
				t.Error("not exhausted") // require.ErrorIs would ask for the text
			}
			require.Equal(t, 2, calls)
			require.Equal(t, map[string]recorded{"retry.kind=failed_with_retry": {1, 2}}, s.histogram("retry.run.attempts"))
		})
	}
}

// A run that is nested in another's attempt stands below that attempt's span.
func TestANestedRunIsBelowItsAttempt(t *testing.T) {
	s := newSDK(t)
	quick := func(name string) retry.Policy { return quickly(2).Or(retry.Policy{Name: name}) }
	_ = retryotel.Do(t.Context(), quick("outer"), s.Options, func(ctx context.Context) error {
		return retryotel.Do(ctx, quick("inner"), s.Options, func(context.Context) error { return errDown })
	})
	byPolicy := map[string][]tracetest.SpanStub{}
	for _, span := range s.named("retry.attempt") {
		values := set(span.Attributes)
		byPolicy[values["retry.policy"].(string)] = append(byPolicy[values["retry.policy"].(string)], span)
	}
	require.Len(t, byPolicy["outer"], 2)
	require.Len(t, byPolicy["inner"], 4)
	linked(t, s.runBelow(trace.SpanContext{}).SpanContext, byPolicy["outer"])
	linked(t, s.runBelow(byPolicy["outer"][0].SpanContext).SpanContext, byPolicy["inner"][:2])
	linked(t, s.runBelow(byPolicy["outer"][1].SpanContext).SpanContext, byPolicy["inner"][2:])
	require.Equal(t, int64(1), set(byPolicy["inner"][2].Attributes)["retry.attempt"])
}

// The attempt's span keeps its own policy and number if a run inside it adds its outcome to that span.
func TestARunInsideDoesNotOverwriteItsAttempt(t *testing.T) {
	for _, name := range []string{"inner", ""} {
		s, observe := observed(t)
		err := retryotel.Do(t.Context(), retry.Policy{Name: "outer"}, s.Options, func(ctx context.Context) error {
			return retry.Do(ctx, retry.Policy{Name: name, Observe: observe}, func(context.Context) error { return nil })
		})
		require.NoError(t, err)
		require.Equal(t, map[string]any{"retry.attempt": int64(1), "retry.policy": "outer", "retry.run.policy": name,
			"retry.status": "succeeded", "retry.reason": "", "retry.attempts": int64(1)}, set(s.span("retry.attempt").Attributes))
	}
}

// panics is an error whose methods panic.
type panics struct{ text, kind, is bool }

func (p panics) Error() string {
	if p.text {
		panic("boom")
	}
	return "down"
}

func (p panics) ErrorType() string {
	if p.kind {
		panic("boom")
	}
	return ""
}

func (p panics) Is(target error) bool {
	if p.is && target == context.DeadlineExceeded { // retry itself asks for context.Canceled
		panic("boom")
	}
	return false
}

type spent struct{ text string }

func (s *spent) Error() string { return s.text } // a nil one panics

// An error whose text panics is returned as retry.Do returns it. A panic of another method passes through, as in
// retry.Do.
func TestErrorsThatPanic(t *testing.T) {
	const own = "github.com/retrygo/retry/contrib/retryotel/sdks_test.panics"
	for _, err := range []error{panics{kind: true}, panics{is: true}} {
		require.PanicsWithValue(t, "boom", func() {
			_ = retryotel.Do(t.Context(), retry.Policy{}, newSDK(t).Options, func(context.Context) error { return err })
		})
	}
	for _, row := range []struct {
		err             error
		text, errorType string
	}{
		{panics{text: true}, "%!v(PANIC=Error method: boom)", own},
		{(*spent)(nil), "<nil>", "*sdks_test.spent"},
	} {
		t.Run(row.errorType+" "+row.text, func(t *testing.T) {
			s, observe := observed(t)
			p := retry.Policy{MaxAttempts: 2, Backoff: retry.Backoff{Mode: retry.Fixed, Base: 1}, Observe: observe}
			ctx, caller := s.traces.Tracer("").Start(t.Context(), "caller")
			var gaveUp *retry.Error
			require.True(t, errors.As(retryotel.Do(ctx, p, s.Options, func(context.Context) error { return row.err }), &gaveUp))
			require.Equal(t, retry.AttemptsExhausted, gaveUp.Reason)
			caller.End()
			spans := s.named("retry.attempt")
			require.Len(t, spans, 2)
			for _, span := range spans {
				require.Equal(t, sdktrace.Status{Code: codes.Error, Description: row.text}, span.Status)
				require.Equal(t, row.errorType, set(span.Attributes)["error.type"])
				require.Equal(t, row.text, set(span.Events[0].Attributes)["exception.message"])
			}
			run := s.span("retry.run")
			require.Equal(t, row.errorType, set(run.Attributes)["error.type"])
			events := run.Events
			require.Len(t, events, 2)
			require.Equal(t, row.errorType, set(events[0].Attributes)["error.type"])
		})
	}
}

// A span has an error's text twice, and each is cut, to UTF-8.
func TestLongTextsAreCut(t *testing.T) {
	x := strings.Repeat("x", 1024)
	for text, want := range map[string]string{
		x:                             x,
		x + "x":                       x + "... (1025 bytes)",
		x[:1023] + "é":                x[:1023] + "... (1025 bytes)",
		x[:1021] + "🙂":                x[:1021] + "... (1025 bytes)",
		strings.Repeat("a\xff", 512):  strings.Repeat("a\uFFFD", 256) + "... (1024 bytes)",
		strings.Repeat("🙂\n", 10<<10): strings.Repeat("🙂\n", 204) + "🙂... (51200 bytes)",
	} {
		s := newSDK(t)
		_ = retryotel.Do(t.Context(), retry.Policy{Disabled: true}, s.Options, func(context.Context) error { return errors.New(text) })
		span := s.span("retry.attempt")
		require.Equal(t, want, span.Status.Description)
		require.Equal(t, want, set(span.Events[0].Attributes)["exception.message"])
	}
}
