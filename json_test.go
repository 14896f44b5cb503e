package retry_test

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"log/slog"
	"strings"
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

const attemptJSON = `{"Number":1,"Start":"2026-02-03T04:05:06Z","Duration":50000000,"Class":"retryable","Err":"dial tcp: refused","Delay":1000000000}`

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
		{"an Attempt has the text of its error", attempt, attemptJSON},
		{"an Attempt with the error of a nested run under %w", retry.Attempt{Number: 2, Class: retry.Terminal, Err: fmt.Errorf("x: %w", failed)},
			`{"Number":2,"Start":"0001-01-01T00:00:00Z","Duration":0,"Class":"terminal","Err":"x: retry: orders: gave up after 2 attempts ` +
				`in 1s (terminal_error): EOF","Delay":0}`},
		{"no Attempt", retry.Attempt{}, `null`},
		{"an Outcome says status and reason in words and keeps its errors' texts", outcome, `{"Policy":"orders","Status":"dead_letter",` +
			`"Reason":"terminal_error","EndedByGate":false,"InnerGaveUp":false,"Attempts":2,"Elapsed":1000000000,"History":[` + attemptJSON +
			`,{"Number":2,"Start":"0001-01-01T00:00:00Z","Duration":0,"Class":"terminal","Err":"EOF","Delay":0}]}`},
		{"the Outcome of a success", retry.Outcome{Status: retry.Succeeded, Attempts: 1},
			`{"Policy":"","Status":"succeeded","Reason":"","EndedByGate":false,"InnerGaveUp":false,"Attempts":1,"Elapsed":0,"History":null}`},
		{"an *Error is its text, with its last error", failed, `"retry: orders: gave up after 2 attempts in 1s (terminal_error): EOF"`},
		{"an *Error as an error", struct{ Err error }{failed}, `{"Err":"retry: orders: gave up after 2 attempts in 1s (terminal_error): EOF"}`},
		{"a Decision says its words", hinted(sec, exhausted), `{"Status":"dead_letter","Reason":"attempts_exhausted","Class":"retryable",` +
			`"Forgiven":0,"Delay":0,"Backoff":0,"Hint":1000000000}`},
		{"an Event", retry.Event{Policy: "orders", Elapsed: sec, Attempt: attempt, Decision: waiting(sec)},
			`{"Policy":"orders","Elapsed":1000000000,"Attempt":` + attemptJSON + `,` +
				`"Decision":{"Status":"waiting_retry","Reason":"","Class":"retryable","Forgiven":0,"Delay":1000000000,"Backoff":1000000000,"Hint":0},` +
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
			`"attempt":`+attemptJSON+"}\n", out.String())
	})
	t.Run("slog's TextHandler shows them on one line", func(t *testing.T) {
		var out bytes.Buffer
		slog.New(slog.NewTextHandler(&out, nil)).Info("ended", "policy", retry.Standard(), "err", failed, "status", failed.Status)
		require.Contains(t, out.String(), `policy="standard: 4 attempts, list: 1m 30m 3h (3h31m in all)" `+
			`err="retry: orders: gave up after 2 attempts in 1s (terminal_error): EOF" status=dead_letter`)
	})
}

func TestARecordComesBackFromJSON(t *testing.T) {
	start := time.Date(2026, 2, 3, 4, 5, 6, 789, time.UTC)
	text := errors.New("say \"no\" \\ é 😀\n\t\u2028\x00")
	want := retry.Outcome{Policy: "orders", Status: retry.Expired, Reason: retry.HintTooLong, EndedByGate: true, InnerGaveUp: true, Attempts: 4,
		Elapsed: hour, History: []retry.Attempt{
			{Number: 1, Start: start, Duration: 50 * ms, Class: retry.Retryable, Err: text, Delay: sec},
			{Number: 2, Start: start.Add(1), Duration: 1, Class: retry.Terminal, Err: errors.New("")},
			{Number: 3, Start: start},
			{},
		}}
	data, err := json.Marshal(want)
	require.NoError(t, err)
	var back retry.Outcome
	require.NoError(t, json.Unmarshal(data, &back))
	require.Equal(t, want, back)

	var indented bytes.Buffer
	require.NoError(t, json.Indent(&indented, data, "", "\t"))
	back = retry.Outcome{}
	require.NoError(t, json.Unmarshal(indented.Bytes(), &back))
	require.Equal(t, want, back)

	wrapped := retry.Attempt{Number: 1, Err: fmt.Errorf("x: %w", &retry.Error{Last: io.EOF})}
	data, err = json.Marshal(wrapped)
	require.NoError(t, err)
	var a retry.Attempt
	require.NoError(t, json.Unmarshal(data, &a))
	require.EqualError(t, a.Err, wrapped.Err.Error())

	a = retry.Attempt{Number: 7}
	require.NoError(t, json.Unmarshal([]byte(`null`), &a))
	require.Equal(t, 7, a.Number)
	require.NoError(t, json.Unmarshal([]byte(`{"Delay": 5, "Other": {"Number": 3}, "Class": "terminal", "Err": null}`), &a))
	require.Equal(t, retry.Attempt{Number: 7, Class: retry.Terminal, Delay: 5}, a, "in any order, with what a later version adds")
	require.NoError(t, json.Unmarshal([]byte(`{"Number": null, "Duration": null}`), &a))
	require.Equal(t, 7, a.Number, "null changes nothing, as in every struct")
	for _, bad := range []string{`"attempt 1"`, `{"Number":"1"}`, `{"Class":"odd"}`, `{"Start":"now"}`, `{"Delay":1.5}`, `{"Duration":"1s"}`} {
		require.Error(t, json.Unmarshal([]byte(bad), &a), bad)
	}
	_, err = json.Marshal(retry.Attempt{Class: 9})
	require.Error(t, err)
	_, err = json.Marshal(retry.Attempt{Start: time.Date(10_000, 1, 1, 0, 0, 0, 0, time.UTC)})
	require.Error(t, err)
}

// A typed nil is an error whose Error method panics, as everywhere in Go. A record of it does not.
func TestARecordOfATypedNil(t *testing.T) {
	a := retry.Attempt{Number: 1, Class: retry.Retryable, Err: (*fs.PathError)(nil)}
	data, err := json.Marshal(a)
	require.NoError(t, err)
	require.Contains(t, string(data), `"Err":"\u003cnil\u003e"`)
	require.Equal(t, "attempt 1 failed after 0s (retryable): <nil>", a.String())
	failed := &retry.Error{Outcome: retry.Outcome{Attempts: 2, Reason: retry.AttemptsExhausted}, Last: a.Err}
	require.EqualError(t, failed, "retry: gave up after 2 attempts in 0s (attempts_exhausted): <nil>")
}

func TestTextsAreBoundedAndSafe(t *testing.T) {
	huge := errors.New(strings.Repeat("x", 1<<20) + ": the cause")
	failed := retry.Policy{}.NewError(t.Context(), retry.Outcome{Status: retry.DeadLettered, Reason: retry.AttemptsExhausted, Attempts: 2}, huge)
	require.Less(t, len(failed.Error()), 4200)
	require.True(t, strings.HasPrefix(failed.Error(), "retry: gave up after 2 attempts"), failed.Error())
	require.True(t, strings.HasSuffix(failed.Error(), ": the cause"))
	require.ErrorIs(t, failed, huge, "the error itself stays whole")
	require.Less(t, len(retry.Attempt{Number: 1, Err: huge}.String()), 4200)

	a, b, c := strings.Repeat("a", 2000), strings.Repeat("b", 1000), strings.Repeat("c", 2000)
	require.EqualError(t, &retry.Error{Outcome: retry.Outcome{Attempts: 1, Reason: retry.TerminalError}, Last: errors.New(a + b + c)},
		a+" ... (1000 bytes) ... "+c)
	require.EqualError(t, &retry.Error{Outcome: retry.Outcome{Attempts: 1, Reason: retry.TerminalError}, Last: errors.New(a + "b" + c)},
		a+" ... (1 bytes) ... "+c)
	require.EqualError(t, &retry.Error{Outcome: retry.Outcome{Attempts: 1, Reason: retry.TerminalError}, Last: errors.New(a + c)}, a+c)

	nested := error(failed)
	for range 1000 {
		nested = retry.Policy{}.NewError(t.Context(), failed.Outcome, nested)
	}
	require.Less(t, len(nested.Error()), 4200)
	require.True(t, strings.HasSuffix(nested.Error(), ": the cause"))

	require.Equal(t, "attempt 1 failed after 0s (terminal): a\uFFFDb\uFFFDc\uFFFD",
		retry.Attempt{Number: 1, Class: retry.Terminal, Err: errors.New("a\u202eb\u200bc\u2066")}.String())
	require.Empty(t, retry.Attempt{}.String())
}
