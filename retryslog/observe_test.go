package retryslog_test

import (
	"bytes"
	"context"
	"errors"
	"log"
	"log/slog"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/retrygo/retry"
	"github.com/retrygo/retry/retryslog"
	"github.com/retrygo/retry/retrytest"
)

var errDown = errors.New("503")

// withoutTime drops the time of a record.
func withoutTime(groups []string, a slog.Attr) slog.Attr {
	if len(groups) == 0 && a.Key == slog.TimeKey {
		return slog.Attr{}
	}
	return a
}

// textTo returns a logger that writes everything as text, without the time.
func textTo(b *bytes.Buffer) *slog.Logger {
	return slog.New(slog.NewTextHandler(b, &slog.HandlerOptions{Level: slog.LevelDebug, ReplaceAttr: withoutTime}))
}

type steps = []retrytest.Step

// try is an attempt of 100ms.
func try(err error) retrytest.Step {
	return retrytest.Step{Err: err, Takes: 100 * time.Millisecond, IgnoreContext: true}
}

func TestRunsAndTheirRecords(t *testing.T) {
	fixed := retry.Policy{Name: "p", MaxAttempts: 3, Backoff: retry.Backoff{Mode: retry.Fixed, Base: time.Second}}
	with := func(change func(*retry.Policy)) retry.Policy {
		p := fixed
		change(&p)
		return p
	}
	alive := func(ctx context.Context) (context.Context, context.CancelFunc) { return context.WithCancel(ctx) }
	for _, row := range []struct {
		name   string
		policy retry.Policy
		ctx    func(context.Context) (context.Context, context.CancelFunc)
		steps  steps
		want   string
	}{
		{"a success at the first try is not told", fixed, alive, steps{try(nil)}, ``},
		{"a success after retries is told after them", fixed, alive, steps{try(errDown), try(errDown), try(nil)}, `
level=WARN msg="retry: attempt failed" policy=p attempt=1 status=waiting_retry delay=1s duration=100ms elapsed=100ms error=503
level=WARN msg="retry: attempt failed" policy=p attempt=2 status=waiting_retry delay=1s duration=100ms elapsed=1.2s error=503
level=DEBUG msg="retry: succeeded" policy=p attempts=3 status=succeeded elapsed=2.3s`},
		{"the failure that ends a run is told once", fixed, alive, steps{try(errDown), try(errDown), try(errDown)}, `
level=WARN msg="retry: attempt failed" policy=p attempt=1 status=waiting_retry delay=1s duration=100ms elapsed=100ms error=503
level=WARN msg="retry: attempt failed" policy=p attempt=2 status=waiting_retry delay=1s duration=100ms elapsed=1.2s error=503
level=ERROR msg="retry: gave up" policy=p attempts=3 status=dead_letter reason=attempts_exhausted elapsed=2.3s error=503`},
		{"a policy without a name has no key for it", with(func(p *retry.Policy) { p.Name, p.MaxAttempts = "", 1 }), alive, steps{try(errDown)}, `
level=ERROR msg="retry: gave up" attempts=1 status=dead_letter reason=attempts_exhausted elapsed=100ms error=503`},
		{"a terminal error at the first attempt", fixed, alive, steps{try(retry.Permanent(errDown))}, `
level=WARN msg="retry: not retried" policy=p attempts=1 status=dead_letter reason=terminal_error elapsed=100ms error=503`},
		{"a terminal error after a retry", fixed, alive, steps{try(errDown), try(retry.Permanent(errDown))}, `
level=WARN msg="retry: attempt failed" policy=p attempt=1 status=waiting_retry delay=1s duration=100ms elapsed=100ms error=503
level=ERROR msg="retry: gave up" policy=p attempts=2 status=dead_letter reason=terminal_error elapsed=1.2s error=503`},
		{"a gate that stays shut", with(func(p *retry.Policy) {
			p.TTL, p.Gate = time.Second, func(context.Context) time.Duration { return time.Minute }
		}), alive, nil, `
level=ERROR msg="retry: gave up" policy=p attempts=0 status=expired reason=ttl_elapsed ended_by_gate=true elapsed=0s`},
		{"a deadline that has passed", fixed, deadlineIn(50 * time.Millisecond), steps{try(errDown)}, `
level=ERROR msg="retry: gave up" policy=p attempts=1 status=expired reason=deadline_passed elapsed=100ms error=503`},
		{"a deadline that had passed before", fixed, deadlineIn(0), nil, `
level=ERROR msg="retry: gave up" policy=p attempts=0 status=expired reason=deadline_passed elapsed=0s error="context deadline exceeded"`},
		{"a caller who canceled before", fixed, canceledIn(0, nil), nil, ""},
		{"a caller who cancels a wait", fixed, canceledIn(600*time.Millisecond, nil), steps{try(errDown)}, `
level=WARN msg="retry: attempt failed" policy=p attempt=1 status=waiting_retry delay=1s duration=100ms elapsed=100ms error=503
level=WARN msg="retry: canceled" policy=p attempts=1 status=canceled reason=caller_canceled elapsed=600ms error=503`},
		{"a caller who says why", fixed, canceledIn(600*time.Millisecond, errors.New("shutting down")), steps{try(errDown)}, `
level=WARN msg="retry: attempt failed" policy=p attempt=1 status=waiting_retry delay=1s duration=100ms elapsed=100ms error=503
level=WARN msg="retry: canceled" policy=p attempts=1 status=canceled reason=caller_canceled elapsed=600ms error=503 cause="shutting down"`},
	} {
		t.Run(row.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				var b bytes.Buffer
				row.policy.Observe = retryslog.Observe(textTo(&b), retryslog.Options{})
				ctx, cancel := row.ctx(t.Context())
				defer cancel()
				_ = retry.Do(ctx, row.policy, retrytest.Script(t, row.steps))
				require.Equal(t, strings.TrimPrefix(row.want, "\n"), strings.TrimSuffix(b.String(), "\n"))
			})
		})
	}
}

func deadlineIn(d time.Duration) func(context.Context) (context.Context, context.CancelFunc) {
	return func(ctx context.Context) (context.Context, context.CancelFunc) { return context.WithTimeout(ctx, d) }
}

// canceledIn cancels the context after d, at once if that is 0.
func canceledIn(d time.Duration, cause error) func(context.Context) (context.Context, context.CancelFunc) {
	return func(ctx context.Context) (context.Context, context.CancelFunc) {
		ctx, cancel := context.WithCancelCause(ctx)
		if d == 0 {
			cancel(cause)
		} else {
			time.AfterFunc(d, func() { cancel(cause) })
		}
		return ctx, func() { cancel(nil) }
	}
}

// One event of each kind, as Observe gets them.
var (
	retried  = retry.Event{Policy: "p", Attempt: retry.Attempt{Number: 1, Err: errDown, Delay: time.Second}, Decision: retry.Decision{Status: retry.WaitingRetry, Delay: time.Second}}
	lastTry  = retry.Event{Policy: "p", Attempt: retry.Attempt{Number: 2, Err: errDown}, Decision: retry.Decision{Status: retry.DeadLettered, Reason: retry.AttemptsExhausted}}
	failed   = ended(retry.DeadLettered, retry.AttemptsExhausted, 2)
	canceled = ended(retry.Canceled, retry.CallerCanceled, 2)
	hungUp   = hangsUp()
	expired  = ended(retry.Expired, retry.DeadlinePassed, 2)
	terminal = ended(retry.DeadLettered, retry.TerminalError, 1)
	recovery = ended(retry.Succeeded, 0, 2)
	firstTry = ended(retry.Succeeded, 0, 1)
)

// ended is the event of an end after that many attempts.
func ended(s retry.Status, r retry.Reason, attempts int) retry.Event {
	o := retry.Outcome{Policy: "p", Status: s, Reason: r, Attempts: attempts, Elapsed: time.Second}
	e := retry.Event{Policy: "p", Decision: retry.Decision{Status: s, Reason: r}, Outcome: &o}
	if s != retry.Succeeded {
		e.Err = &retry.Error{Outcome: o, Last: errDown}
	}
	return e
}

// endedWith is the event of a run whose first attempt failed with a terminal error.
func endedWith(err error) retry.Event {
	e := ended(retry.DeadLettered, retry.TerminalError, 1)
	e.Err = &retry.Error{Outcome: *e.Outcome, Last: err}
	return e
}

// givenUpBelow is the event of a run that ended at that attempt because a layer below had given up.
func givenUpBelow(attempts int, err error) retry.Event {
	e := ended(retry.DeadLettered, retry.TerminalError, attempts)
	e.Outcome.InnerGaveUp = true
	e.Err = &retry.Error{Outcome: *e.Outcome, Last: err}
	return e
}

// asked is an error of a request, like those of retryhttp, and whether it is an answer.
type asked bool

func (asked) Error() string  { return "503" }
func (a asked) Answer() bool { return bool(a) }

func TestLevels(t *testing.T) {
	var never *slog.LevelVar
	debug := slog.LevelDebug
	for _, row := range []struct {
		name    string
		options retryslog.Options
		event   retry.Event
		want    string // the level, empty if nothing is logged
	}{
		{"a retry is a warning", retryslog.Options{}, retried, "WARN"},
		{"the attempt that ends a run is left to the end", retryslog.Options{Retry: debug, Failure: debug}, lastTry, ""},
		{"a failure is an error", retryslog.Options{}, failed, "ERROR"},
		{"a passed deadline is an error", retryslog.Options{}, expired, "ERROR"},
		{"a canceled run is not a failure", retryslog.Options{}, canceled, "WARN"},
		{"a client that hangs up is nothing", retryslog.Options{}, ended(retry.Canceled, retry.CallerCanceled, 1), ""},
		{"a client that hangs up while the only attempt fails", retryslog.Options{}, hungUp, ""},
		{"a client that hangs up at a level of its own", retryslog.Options{Canceled: debug}, ended(retry.Canceled, retry.CallerCanceled, 1), "DEBUG"},
		{"a terminal error at the first attempt is a warning", retryslog.Options{}, terminal, "WARN"},
		{"a refused request is a warning", retryslog.Options{}, endedWith(asked(false)), "WARN"},
		{"a request in doubt is a failure", retryslog.Options{}, endedWith(retry.Ambiguous(asked(false))), "ERROR"},
		{"an answer is nothing", retryslog.Options{}, endedWith(asked(true)), ""},
		{"an answer at a level of its own", retryslog.Options{Terminal: debug}, endedWith(asked(true)), "DEBUG"},
		{"doubt is a failure", retryslog.Options{}, endedWith(retry.Ambiguous(errDown)), "ERROR"},
		{"doubt at the level of terminal errors", retryslog.Options{Terminal: debug}, endedWith(retry.Ambiguous(errDown)), "DEBUG"},
		{"given up below at the first attempt is a warning", retryslog.Options{}, givenUpBelow(1, errDown), "WARN"},
		{"given up below after a retry is a warning", retryslog.Options{}, givenUpBelow(2, errDown), "WARN"},
		{"doubt below is a warning", retryslog.Options{}, givenUpBelow(1, retry.Ambiguous(errDown)), "WARN"},
		{"doubt below after a retry is a warning", retryslog.Options{}, givenUpBelow(2, retry.Ambiguous(errDown)), "WARN"},
		{"given up below at a level of its own", retryslog.Options{Below: slog.LevelInfo, Terminal: debug}, givenUpBelow(1, errDown), "INFO"},
		{"given up below, after a retry, at a level of its own", retryslog.Options{Below: slog.LevelInfo}, givenUpBelow(2, errDown), "INFO"},
		{"given up below at the level of terminal errors", retryslog.Options{Terminal: debug}, givenUpBelow(1, errDown), "DEBUG"},
		{"given up below, after a retry, at the level of terminal errors", retryslog.Options{Terminal: debug}, givenUpBelow(2, errDown), "DEBUG"},
		{"a level for given up below leaves terminal errors alone", retryslog.Options{Below: debug}, terminal, "WARN"},
		{"a terminal error at a level of its own", retryslog.Options{Terminal: slog.LevelInfo}, terminal, "INFO"},
		{"a level for terminal errors leaves other failures alone", retryslog.Options{Terminal: slog.LevelInfo}, failed, "ERROR"},
		{"a terminal error after a retry is a failure", retryslog.Options{Terminal: debug}, ended(retry.DeadLettered, retry.TerminalError, 2), "ERROR"},
		{"the last of one attempt is a failure, not a terminal error", retryslog.Options{Terminal: debug}, ended(retry.DeadLettered, retry.AttemptsExhausted, 1), "ERROR"},
		{"a nil level variable is none, of terminal errors", retryslog.Options{Terminal: never}, terminal, "WARN"},
		{"a nil level variable is none, of what is given up below", retryslog.Options{Below: never, Terminal: never}, givenUpBelow(1, errDown), "WARN"},
		{"a success after retries is a detail", retryslog.Options{}, recovery, "DEBUG"},
		{"a success at the first try is nothing", retryslog.Options{}, firstTry, ""},
		{"retries at a level of their own", retryslog.Options{Retry: slog.LevelInfo}, retried, "INFO"},
		{"a canceled run has the level of retries", retryslog.Options{Retry: slog.LevelInfo}, canceled, "INFO"},
		{"a canceled run at a level of its own", retryslog.Options{Retry: slog.LevelInfo, Canceled: debug}, canceled, "DEBUG"},
		{"failures at a level of their own", retryslog.Options{Failure: slog.LevelError + 4}, failed, "ERROR+4"},
		{"a success after retries at a level of its own", retryslog.Options{Recovery: slog.LevelInfo}, recovery, "INFO"},
		{"a success at the first try where asked", retryslog.Options{FirstAttempt: debug}, firstTry, "DEBUG"},
		{"a level for first tries leaves later successes alone", retryslog.Options{FirstAttempt: slog.LevelError}, recovery, "DEBUG"},
		{"a nil level variable is none, of retries", retryslog.Options{Retry: never}, retried, "WARN"},
		{"a nil level variable is none, of failures", retryslog.Options{Failure: never}, failed, "ERROR"},
		{"a nil level variable is none, of canceled runs", retryslog.Options{Canceled: never}, canceled, "WARN"},
		{"a nil level variable is none, of successes", retryslog.Options{Recovery: never, FirstAttempt: never}, firstTry, ""},
	} {
		t.Run(row.name, func(t *testing.T) {
			var b bytes.Buffer
			retryslog.Observe(textTo(&b), row.options)(t.Context(), row.event)
			want := row.want
			if want != "" {
				want = "level=" + want + " "
				require.Equal(t, 1, strings.Count(b.String(), "\n"))
			}
			require.True(t, strings.HasPrefix(b.String(), want), b.String())
			require.Equal(t, want == "", b.Len() == 0, b.String())
		})
	}
}

func TestLevelsChangeAtRunTime(t *testing.T) {
	var b bytes.Buffer
	var threshold, ofRetries slog.LevelVar
	logger := slog.New(slog.NewTextHandler(&b, &slog.HandlerOptions{Level: &threshold}))
	observe := retryslog.Observe(logger, retryslog.Options{Retry: &ofRetries})
	written := func() bool {
		b.Reset()
		observe(t.Context(), retried)
		return b.Len() > 0
	}
	require.True(t, written())
	threshold.Set(slog.LevelWarn)
	require.False(t, written())
	ofRetries.Set(slog.LevelError)
	require.True(t, written())
}

func TestANilLoggerIsTheDefaultOfTheMoment(t *testing.T) {
	before, writer, flags := slog.Default(), log.Writer(), log.Flags()
	t.Cleanup(func() {
		slog.SetDefault(before)
		log.SetOutput(writer)
		log.SetFlags(flags)
	})
	observe := retryslog.Observe(nil, retryslog.Options{})
	for range 2 {
		var b bytes.Buffer
		slog.SetDefault(textTo(&b))
		observe(t.Context(), failed)
		require.Contains(t, b.String(), "retry: gave up")
	}
}

func TestANilContextIsABackground(t *testing.T) {
	var b bytes.Buffer
	observe := retryslog.Observe(textTo(&b), retryslog.Options{Attrs: func(ctx context.Context, _ retry.Event) []slog.Attr {
		return []slog.Attr{slog.Any("ended", ctx.Err())}
	}})
	var none context.Context
	observe(none, failed)
	require.Contains(t, b.String(), "retry: gave up")
}

// Nothing is allocated for an event that is not logged.
func TestNoAllocationsIfTheLevelIsOff(t *testing.T) {
	var b bytes.Buffer
	var threshold slog.LevelVar
	threshold.Set(slog.LevelError + 1)
	off := slog.New(slog.NewTextHandler(&b, &slog.HandlerOptions{Level: &threshold}))
	options := retryslog.Options{Group: "retry", Attrs: func(context.Context, retry.Event) []slog.Attr { return []slog.Attr{slog.Int("a", 1)} }}
	observe := retryslog.Observe(off, options)
	ctx := t.Context()
	for _, e := range []retry.Event{retried, lastTry, failed, terminal, canceled, recovery, firstTry} {
		require.Zero(t, testing.AllocsPerRun(100, func() { observe(ctx, e) }), e.Decision)
	}
	threshold.Set(slog.LevelWarn)
	require.Positive(t, testing.AllocsPerRun(100, func() { observe(ctx, failed) }), "on, it is not free: the test can fail")
	threshold.Set(slog.LevelError + 1)
	require.Zero(t, testing.AllocsPerRun(100, func() { observe(ctx, failed) }))

	discard := retryslog.Observe(slog.New(slog.DiscardHandler), options)
	require.Zero(t, testing.AllocsPerRun(100, func() { discard(ctx, failed) }))
}

// hangsUp returns the end of a run whose only attempt has failed because its caller had gone.
func hangsUp() retry.Event {
	e := ended(retry.Canceled, retry.CallerCanceled, 1)
	e.Outcome.History = []retry.Attempt{{Number: 1, Err: errDown}}
	return e
}
