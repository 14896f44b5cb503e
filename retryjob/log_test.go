package retryjob_test

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"os"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/retrygo/retry"
	"github.com/retrygo/retry/retryjob"
	"github.com/retrygo/retry/retryslog"
	"github.com/retrygo/retry/retrytest"
)

// textTo returns a logger that writes everything as text, without the time.
func textTo(b *bytes.Buffer) *slog.Logger {
	return slog.New(slog.NewTextHandler(b, &slog.HandlerOptions{Level: slog.LevelDebug, ReplaceAttr: func(groups []string, a slog.Attr) slog.Attr {
		if len(groups) == 0 && a.Key == slog.TimeKey {
			return slog.Attr{}
		}
		return a
	}}))
}

// Jobs have the records of calls, although no goroutine waits for them.
func TestTheLogOfAJob(t *testing.T) {
	hourly := retry.Policy{MaxAttempts: 3, Backoff: retry.Backoff{Mode: retry.Fixed, Base: time.Hour}}
	type steps = []retrytest.Step
	busy := errors.New("503")
	try := func(err error) retrytest.Step {
		return retrytest.Step{Err: err, Takes: 100 * time.Millisecond, IgnoreContext: true}
	}
	for _, row := range []struct {
		name  string
		steps steps
		want  string
	}{
		{"a success at once", steps{try(nil)}, ``},
		{"a success after a retry", steps{try(busy), try(nil)}, `
level=WARN msg="retry: attempt failed" policy=hourly attempt=1 status=waiting_retry delay=1h0m0s duration=100ms elapsed=100ms error=503 job.id=order-7 job.kind=order
level=DEBUG msg="retry: succeeded" policy=hourly attempts=2 status=succeeded elapsed=1h0m0.2s job.id=order-7 job.kind=order`},
		{"a dead letter", steps{try(busy), try(busy), try(busy)}, `
level=WARN msg="retry: attempt failed" policy=hourly attempt=1 status=waiting_retry delay=1h0m0s duration=100ms elapsed=100ms error=503 job.id=order-7 job.kind=order
level=WARN msg="retry: attempt failed" policy=hourly attempt=2 status=waiting_retry delay=1h0m0s duration=100ms elapsed=1h0m0.2s error=503 job.id=order-7 job.kind=order
level=ERROR msg="retry: gave up" policy=hourly attempts=3 status=dead_letter reason=attempts_exhausted elapsed=2h0m0.3s error=503 job.id=order-7 job.kind=order`},
		{"a handler that panics", steps{{Panic: "boom", Times: 3}}, `
level=WARN msg="retry: attempt failed" policy=hourly attempt=1 status=waiting_retry delay=1h0m0s duration=0s elapsed=0s error="retryjob: the handler panicked: boom" job.id=order-7 job.kind=order
level=WARN msg="retry: attempt failed" policy=hourly attempt=2 status=waiting_retry delay=1h0m0s duration=0s elapsed=1h0m0s error="retryjob: the handler panicked: boom" job.id=order-7 job.kind=order
level=ERROR msg="retry: gave up" policy=hourly attempts=3 status=dead_letter reason=attempts_exhausted elapsed=2h0m0s error="retryjob: the handler panicked: boom" job.id=order-7 job.kind=order`},
	} {
		t.Run(row.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				var b bytes.Buffer
				p, fn := hourly, retrytest.Script(t, row.steps)
				p.Observe = retryslog.Observe(textTo(&b), retryslog.Options{})
				e, err := retryjob.New(retryjob.Options{
					Policies: retryjob.FromMap(map[string]retry.Policy{"hourly": p}),
					Handlers: map[string]retryjob.Handler{"order": func(ctx context.Context, _ retryjob.Job) error { return fn(ctx) }},
				})
				require.NoError(t, err)
				h, err := e.Enqueue(t.Context(), retryjob.Job{ID: "order-7", Kind: "order", Policy: "hourly"})
				require.NoError(t, err)
				_, err = h.Wait(t.Context())
				require.NoError(t, err)
				_, err = e.Shutdown(t.Context())
				require.NoError(t, err)
				require.Equal(t, strings.TrimPrefix(row.want, "\n"), strings.TrimSuffix(b.String(), "\n"))
			})
		})
	}
}

// A job whose TTL expired before its first attempt does not have an error.
func TestAJobThatWasNeverAttempted(t *testing.T) {
	var b bytes.Buffer
	p := retry.Policy{TTL: time.Second, Observe: retryslog.Observe(textTo(&b), retryslog.Options{})}
	first := time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC)
	s := retryjob.Stepper{Policies: retryjob.FromMap(map[string]retry.Policy{"p": p}), Now: func() time.Time { return first.Add(time.Minute) }}
	rec := retryjob.NewRecord(&retryjob.Job{ID: "order-7", Kind: "order", Policy: "p"}, first)
	next, err := s.Step(t.Context(), &rec, 1, func(context.Context) error { panic("attempted") })
	require.NoError(t, err)
	next.Tell()
	require.Equal(t, `level=ERROR msg="retry: gave up" policy=p attempts=0 status=expired reason=ttl_elapsed elapsed=1m0s job.id=order-7 job.kind=order`+"\n", b.String())
}

// withoutTimes drops the times, which differ from run to run.
func withoutTimes(_ []string, a slog.Attr) slog.Attr {
	switch a.Key {
	case slog.TimeKey, retryslog.KeyDuration, retryslog.KeyElapsed:
		return slog.Attr{}
	}
	return a
}

// The records of package retryslog have the job, and the context supplies more attributes.
func Example_log() {
	logger := slog.New(slog.NewTextHandler(os.Stdout, &slog.HandlerOptions{ReplaceAttr: withoutTimes}))
	policy := retry.Policy{MaxAttempts: 2, Backoff: retry.Backoff{Base: 10 * time.Millisecond}}
	policy.Observe = retryslog.Observe(logger, retryslog.Options{Attrs: func(ctx context.Context, _ retry.Event) []slog.Attr {
		attempt, _ := retryjob.AttemptFrom(ctx)
		return []slog.Attr{slog.String("trace", attempt.Correlation)}
	}})
	engine, err := retryjob.New(retryjob.Options{
		Policies: retryjob.FromMap(map[string]retry.Policy{"mail": policy}),
		Handlers: map[string]retryjob.Handler{
			"welcome": func(context.Context, retryjob.Job) error { return errors.New("mail server is busy") },
		},
	})
	if err != nil {
		fmt.Println(err)
		return
	}
	ctx := context.Background()
	job, _ := engine.Enqueue(ctx, retryjob.Job{ID: "welcome-7", Kind: "welcome", Policy: "mail", Correlation: "4bf9"})
	_, _ = job.Wait(ctx)
	_, _ = engine.Shutdown(ctx)
	// Output:
	// level=WARN msg="retry: attempt failed" policy=mail attempt=1 status=waiting_retry delay=10ms error="mail server is busy" job.id=welcome-7 job.kind=welcome trace=4bf9
	// level=ERROR msg="retry: gave up" policy=mail attempts=2 status=dead_letter reason=attempts_exhausted error="mail server is busy" job.id=welcome-7 job.kind=welcome trace=4bf9
}
