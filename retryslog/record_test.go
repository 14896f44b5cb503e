package retryslog_test

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/retrygo/retry"
	"github.com/retrygo/retry/retryslog"
)

// kept is a handler that keeps its records.
type kept struct {
	slog.Handler
	ctx     context.Context
	records []slog.Record
}

func (k *kept) Enabled(context.Context, slog.Level) bool { return true }

func (k *kept) Handle(ctx context.Context, r slog.Record) error {
	k.ctx, k.records = ctx, append(k.records, r)
	return errors.New("the disk is full")
}

// attrs returns the attributes of the only record.
func (k *kept) attrs(t *testing.T) (list []slog.Attr) {
	require.Len(t, k.records, 1)
	k.records[0].Attrs(func(a slog.Attr) bool {
		list = append(list, a)
		return true
	})
	return list
}

func TestKeysOrderAndKinds(t *testing.T) {
	slow := retried
	slow.Attempt.Duration, slow.Elapsed = 3*time.Second, 4*time.Second
	ctx, cancel := context.WithCancelCause(t.Context())
	cancel(errors.New("stop"))
	stopped := ended(retry.Canceled, retry.CallerCanceled, 2)
	stopped.Err = retry.Policy{}.NewError(ctx, *stopped.Outcome, errDown)
	gated := ended(retry.Expired, retry.TTLElapsed, 2)
	gated.Outcome.EndedByGate = true
	for _, row := range []struct {
		event retry.Event
		want  string // with the kinds
	}{
		{slow, "policy String p, attempt Int64 1, status String waiting_retry, delay Duration 1s, duration Duration 3s, elapsed Duration 4s, error Any 503"},
		{stopped, "policy String p, attempts Int64 2, status String canceled, reason String caller_canceled, elapsed Duration 1s, error Any 503, cause Any stop"},
		{gated, "policy String p, attempts Int64 2, status String expired, reason String ttl_elapsed, ended_by_gate Bool true, " +
			"elapsed Duration 1s, error Any 503"},
		{givenUpBelow(2, errDown), "policy String p, attempts Int64 2, status String dead_letter, reason String terminal_error, inner_gave_up Bool true, " +
			"elapsed Duration 1s, error Any 503"},
		{givenUpBelow(2, retry.Ambiguous(errDown)), "policy String p, attempts Int64 2, status String dead_letter, reason String terminal_error, " +
			"inner_gave_up Bool true, in_doubt Bool true, elapsed Duration 1s, error Any 503"},
	} {
		var k kept
		retryslog.Observe(slog.New(&k), retryslog.Options{})(t.Context(), row.event)
		var got []string
		for _, a := range k.attrs(t) {
			got = append(got, fmt.Sprintf("%s %v %v", a.Key, a.Value.Kind(), a.Value))
		}
		require.Equal(t, row.want, strings.Join(got, ", "))
	}
	require.Equal(t, "policy attempt attempts status reason ended_by_gate inner_gave_up in_doubt delay duration elapsed error cause request job", strings.Join([]string{
		retryslog.KeyPolicy, retryslog.KeyAttempt, retryslog.KeyAttempts, retryslog.KeyStatus, retryslog.KeyReason, retryslog.KeyEndedByGate, retryslog.KeyInnerGaveUp, retryslog.KeyInDoubt, retryslog.KeyDelay,
		retryslog.KeyDuration, retryslog.KeyElapsed, retryslog.KeyError, retryslog.KeyCause, retryslog.KeyRequest, retryslog.KeyJob}, " "))
}

func TestEveryStatusAndReason(t *testing.T) {
	for reason := retry.TerminalError; reason <= retry.CallerCanceled; reason++ {
		for _, status := range []retry.Status{retry.DeadLettered, retry.Expired, retry.FailedNoRetries, retry.Canceled} {
			var b bytes.Buffer
			retryslog.Observe(textTo(&b), retryslog.Options{})(t.Context(), ended(status, reason, 2))
			require.Contains(t, b.String(), " status="+status.String()+" reason="+reason.Error()+" ")
		}
	}
}

func TestGroups(t *testing.T) {
	options := retryslog.Options{Group: "retry", Attrs: func(context.Context, retry.Event) []slog.Attr {
		return []slog.Attr{slog.String("tenant", "t1"), slog.Group("empty")}
	}}
	t.Run("text", func(t *testing.T) {
		var b bytes.Buffer
		retryslog.Observe(textTo(&b).With("app", "a").WithGroup("outer"), options)(t.Context(), failed)
		require.Equal(t, `level=ERROR msg="retry: gave up" app=a outer.retry.policy=p outer.retry.attempts=2 `+
			`outer.retry.status=dead_letter outer.retry.reason=attempts_exhausted outer.retry.elapsed=1s outer.retry.error=503 `+
			"outer.tenant=t1\n", b.String())
	})
	t.Run("JSON", func(t *testing.T) {
		var b bytes.Buffer
		logger := slog.New(slog.NewJSONHandler(&b, &slog.HandlerOptions{ReplaceAttr: withoutTime}))
		observe := retryslog.Observe(logger, options)
		observe(t.Context(), retried)
		require.JSONEq(t, `{"level":"WARN","msg":"retry: attempt failed","tenant":"t1","retry":{"policy":"p","attempt":1,
			"status":"waiting_retry","delay":1000000000,"duration":0,"elapsed":0,"error":"503"}}`, b.String())
	})
	t.Run("ReplaceAttr is told the group", func(t *testing.T) {
		var b bytes.Buffer
		logger := slog.New(slog.NewJSONHandler(&b, &slog.HandlerOptions{ReplaceAttr: func(groups []string, a slog.Attr) slog.Attr {
			if len(groups) == 1 && groups[0] == "retry" && a.Key == retryslog.KeyDelay {
				return slog.Float64("delay_seconds", a.Value.Duration().Seconds())
			}
			return a
		}}))
		retryslog.Observe(logger, options)(t.Context(), retried)
		var line struct {
			Retry struct {
				Delay   *float64 `json:"delay"`
				Seconds float64  `json:"delay_seconds"`
			}
		}
		require.NoError(t, json.Unmarshal(b.Bytes(), &line))
		require.Nil(t, line.Retry.Delay)
		require.InDelta(t, 1.0, line.Retry.Seconds, 0)
	})
}

// The group's attributes outlive the call, so they must not be shared.
func TestRecordsThatAreKept(t *testing.T) {
	var k kept
	observe := retryslog.Observe(slog.New(&k), retryslog.Options{Group: "retry"})
	observe(t.Context(), retried)
	observe(t.Context(), failed)
	require.Len(t, k.records, 2)
	var first []slog.Attr
	k.records[0].Attrs(func(a slog.Attr) bool { first = a.Value.Group(); return true })
	require.Equal(t, "waiting_retry", first[2].Value.String())
}

type traceKey struct{}

func TestTheCallersContextReachesHandlerAndAttrs(t *testing.T) {
	var k kept
	var asked []any
	observe := retryslog.Observe(slog.New(&k), retryslog.Options{Attrs: func(ctx context.Context, _ retry.Event) []slog.Attr {
		asked = append(asked, ctx.Value(traceKey{}))
		return []slog.Attr{slog.Any("trace", ctx.Value(traceKey{}))}
	}})
	ctx := context.WithValue(t.Context(), traceKey{}, "4bf9")
	err := retry.Do(ctx, retry.Policy{MaxAttempts: 1, Observe: observe}, func(context.Context) error { return errDown })
	require.ErrorIs(t, err, errDown, "an error of the handler changes nothing")
	require.Equal(t, "4bf9", k.ctx.Value(traceKey{}))
	list := k.attrs(t)
	require.Equal(t, slog.String("trace", "4bf9").String(), list[len(list)-1].String())
	require.Equal(t, []any{"4bf9"}, asked, "once for each record")
}

func TestAttrsAreNotCalledIfNothingIsWritten(t *testing.T) {
	var b bytes.Buffer
	observe := retryslog.Observe(slog.New(slog.NewTextHandler(&b, nil)), retryslog.Options{Retry: slog.LevelDebug,
		Attrs: func(context.Context, retry.Event) []slog.Attr { panic("asked") }})
	observe(t.Context(), retried)
	observe(t.Context(), lastTry)
	observe(t.Context(), firstTry)
	require.Zero(t, b.Len())
}

func TestThereIsNoSource(t *testing.T) {
	var text, asJSON, own bytes.Buffer
	options := &slog.HandlerOptions{AddSource: true}
	for _, h := range []slog.Handler{slog.NewTextHandler(&text, options), slog.NewJSONHandler(&asJSON, options)} {
		retryslog.Observe(slog.New(h), retryslog.Options{})(t.Context(), failed)
	}
	slog.New(slog.NewTextHandler(&own, options)).Error("the test's own")
	require.Contains(t, own.String(), "record_test.go")
	require.NotContains(t, text.String()+asJSON.String(), ".go")
}

// Ends without an *retry.Error: a user's own shell may report them.
func TestEventsOfOtherShells(t *testing.T) {
	plain, none, typed := failed, failed, failed
	plain.Err, none.Err, typed.Err = errDown, nil, (*retry.Error)(nil)
	for want, e := range map[string]retry.Event{"elapsed=1s error=503\n": plain, "elapsed=1s\n": none, "elapsed=1s error=<nil>\n": typed} {
		var b bytes.Buffer
		retryslog.Observe(textTo(&b), retryslog.Options{})(t.Context(), e)
		require.True(t, strings.HasSuffix(b.String(), want), b.String())
	}
	var b bytes.Buffer
	retryslog.Observe(textTo(&b), retryslog.Options{})(t.Context(), retry.Event{})
	require.Zero(t, b.Len(), "an event that says nothing")
}

// brokenOnce is a handler that panics at the first record.
type brokenOnce struct {
	slog.Handler
	calls int
}

func (h *brokenOnce) Handle(ctx context.Context, r slog.Record) error {
	if h.calls++; h.calls == 1 {
		panic("broken handler")
	}
	return h.Handler.Handle(ctx, r)
}

func TestAHandlersPanicPassesThrough(t *testing.T) {
	var b bytes.Buffer
	budget := retry.NewBudget(retry.BudgetConfig{Initial: 1})
	observe := retryslog.Observe(slog.New(&brokenOnce{Handler: textTo(&b).Handler()}), retryslog.Options{})
	p := retry.Policy{Name: "p", Budget: budget, Observe: observe}
	require.PanicsWithValue(t, "broken handler", func() {
		_ = retry.Do(t.Context(), p, func(context.Context) error { return errDown })
	})
	require.InDelta(t, 1.0, budget.Tokens(), 0, "the token is paid back")
	observe(t.Context(), failed)
	require.Contains(t, b.String(), "retry: gave up", "the next record is written")
}
