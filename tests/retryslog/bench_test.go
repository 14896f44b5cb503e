package retryslog_test

import (
	"context"
	"io"
	"log/slog"
	"testing"
	"time"

	"github.com/retrygo/retry"
	"github.com/retrygo/retry/retryslog"
)

func BenchmarkObserve(b *testing.B) {
	var off, on slog.LevelVar
	off.Set(slog.LevelError + 1)
	on.Set(slog.LevelDebug)
	for _, row := range []struct {
		name  string
		level *slog.LevelVar
		group string
		event retry.Event
	}{
		{"off/retry", &off, "", retried},
		{"off/end", &off, "", failed},
		{"untold", &on, "", firstTry},
		{"on/retry", &on, "", retried},
		{"on/end", &on, "", failed},
		{"on/group", &on, "retry", failed},
	} {
		b.Run(row.name, func(b *testing.B) {
			logger := slog.New(slog.NewTextHandler(io.Discard, &slog.HandlerOptions{Level: row.level}))
			observe := retryslog.Observe(logger, retryslog.Options{Group: row.group})
			ctx := context.Background()
			b.ReportAllocs()
			for b.Loop() {
				observe(ctx, row.event)
			}
		})
	}
}

// BenchmarkFirstTry measures a call that succeeds at once, with an observer that has nothing to write.
func BenchmarkFirstTry(b *testing.B) {
	quiet := retryslog.Observe(slog.New(slog.DiscardHandler), retryslog.Options{})
	for _, row := range []struct {
		name    string
		observe func(context.Context, retry.Event)
	}{{"unobserved", nil}, {"observed", quiet}} {
		b.Run(row.name, func(b *testing.B) {
			p := retry.Policy{Observe: row.observe}
			ctx := context.Background()
			b.ReportAllocs()
			for b.Loop() {
				_ = retry.Do(ctx, p, func(context.Context) error { return nil })
			}
		})
	}
}

// One event of each kind, as Observe gets them.
var (
	retried  = retry.Event{Policy: "p", Attempt: retry.Attempt{Number: 1, Err: errDown, Delay: time.Second}, Decision: retry.Decision{Status: retry.WaitingRetry, Delay: time.Second}}
	failed   = ended(retry.DeadLettered, retry.AttemptsExhausted, 2)
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
