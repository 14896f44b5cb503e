package retry_test

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"io"
	"log/slog"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/retrygo/retry"
)

// everything is a policy with every field set, those that are code included.
var everything = retry.Policy{
	Name: "orders", MaxAttempts: 4,
	Backoff: retry.Backoff{Mode: retry.Linear, Base: sec, Factor: 0.5, Cap: minute, Jitter: retry.RatioJitter, JitterRatio: 0.5},

	AttemptTimeout: sec, TTL: hour, MaxHint: minute, ResetAfter: hour, Disabled: true,
	Classify: retry.Otherwise(retry.Terminal),
	Wait:     ownWait,
	Budget:   retry.NewBudget(retry.BudgetConfig{}),
	Pay:      func(context.Context, retry.Decision) bool { return true },
	Gate:     func(context.Context) time.Duration { return 0 },
	Observe:  func(context.Context, retry.Event) {},
	Rand:     func() float64 { return 0 },
}

// everythingJSON is what of it is data.
const everythingJSON = `{"Name":"orders","MaxAttempts":4,"Mode":"linear","Base":1000000000,"Factor":0.5,"Cap":60000000000,` +
	`"Delays":null,"Jitter":"ratio","JitterRatio":0.5,"AttemptTimeout":1000000000,"TTL":3600000000000,"MaxHint":60000000000,` +
	`"ResetAfter":3600000000000,"Disabled":true}`

func TestJSON(t *testing.T) {
	start := time.Date(2026, 2, 3, 4, 5, 6, 0, time.UTC)
	attempt := retry.Attempt{Number: 1, Start: start, Duration: 50 * ms, Class: retry.Retryable, Err: errors.New("dial tcp: refused"), Delay: sec}
	outcome := retry.Outcome{Policy: "orders", Status: retry.DeadLettered, Reason: retry.TerminalError, Attempts: 2, Elapsed: sec,
		History: []retry.Attempt{attempt, {Number: 2, Class: retry.Terminal, Err: retry.Permanent(io.EOF)}}}
	failed := &retry.Error{Outcome: outcome, Last: retry.Permanent(io.EOF)}
	for _, row := range []struct {
		name  string
		value any
		want  string
	}{
		{"an Attempt is its text, with its error", attempt, `"attempt 1 failed after 50ms (retryable): dial tcp: refused; wait 1s"`},
		{"an Outcome says status and reason in words and keeps its errors' texts", outcome, `{"Policy":"orders","Status":"dead_letter",` +
			`"Reason":"terminal_error","Gated":false,"GivenUpBelow":false,"Attempts":2,"Elapsed":1000000000,"History":[` +
			`"attempt 1 failed after 50ms (retryable): dial tcp: refused; wait 1s","attempt 2 failed after 0s (terminal): EOF"]}`},
		{"the Outcome of a success", retry.Outcome{Status: retry.Succeeded, Attempts: 1},
			`{"Policy":"","Status":"succeeded","Reason":"","Gated":false,"GivenUpBelow":false,"Attempts":1,"Elapsed":0,"History":null}`},
		{"an *Error is its text, with its last error", failed, `"retry: orders: gave up after 2 attempts in 1s (terminal_error): EOF"`},
		{"an *Error as an error", struct{ Err error }{failed}, `{"Err":"retry: orders: gave up after 2 attempts in 1s (terminal_error): EOF"}`},
		{"a Decision says its words", hinted(sec, exhausted), `{"Status":"dead_letter","Reason":"attempts_exhausted","Class":"retryable",` +
			`"Uncounted":0,"Delay":0,"Backoff":0,"Hint":1000000000}`},
		{"an Event", retry.Event{Policy: "orders", Elapsed: sec, Attempt: attempt, Decision: waiting(sec)},
			`{"Policy":"orders","Elapsed":1000000000,"Attempt":"attempt 1 failed after 50ms (retryable): dial tcp: refused; wait 1s",` +
				`"Decision":{"Status":"waiting_retry","Reason":"","Class":"retryable","Uncounted":0,"Delay":1000000000,"Backoff":1000000000,"Hint":0},` +
				`"Outcome":null,"Err":null}`},
		{"a Policy is its data", everything, everythingJSON},
		{"a List", retry.Aggressive(), `{"Name":"aggressive","MaxAttempts":0,"Mode":"","Base":0,"Factor":0,"Cap":0,` +
			`"Delays":[10000000000,60000000000,300000000000],"Jitter":"none","JitterRatio":0,"AttemptTimeout":0,"TTL":0,"MaxHint":0,` +
			`"ResetAfter":0,"Disabled":false}`},
	} {
		t.Run(row.name, func(t *testing.T) {
			got, err := json.Marshal(row.value)
			require.NoError(t, err)
			require.Equal(t, row.want, string(got))
		})
	}
	t.Run("a Policy's data comes back", func(t *testing.T) {
		var back retry.Policy
		require.NoError(t, json.Unmarshal([]byte(everythingJSON), &back))
		want := everything
		want.Classify, want.Wait, want.Budget, want.Pay, want.Gate, want.Observe, want.Rand = nil, nil, nil, nil, nil, nil, nil
		require.Equal(t, want, back)
	})
	t.Run("slog's JSONHandler shows a Policy, an *Error, an Outcome and an Attempt", func(t *testing.T) {
		var out bytes.Buffer
		log := slog.New(slog.NewJSONHandler(&out, &slog.HandlerOptions{ReplaceAttr: func(_ []string, a slog.Attr) slog.Attr {
			if a.Key == slog.TimeKey {
				return slog.Attr{}
			}
			return a
		}}))
		log.Info("ended", "policy", everything, "err", failed, "status", failed.Status, "reason", failed.Reason, "attempt", attempt)
		require.Equal(t, `{"level":"INFO","msg":"ended","policy":`+everythingJSON+
			`,"err":"retry: orders: gave up after 2 attempts in 1s (terminal_error): EOF","status":"dead_letter","reason":"terminal_error",`+
			`"attempt":"attempt 1 failed after 50ms (retryable): dial tcp: refused; wait 1s"}`+"\n", out.String())
	})
	t.Run("slog's TextHandler shows them on one line", func(t *testing.T) {
		var out bytes.Buffer
		slog.New(slog.NewTextHandler(&out, nil)).Info("ended", "policy", retry.Standard(), "err", failed, "status", failed.Status)
		require.Contains(t, out.String(), `policy="standard: 4 attempts, list: 1m 30m 3h (3h31m in all)" `+
			`err="retry: orders: gave up after 2 attempts in 1s (terminal_error): EOF" status=dead_letter`)
	})
}
