package retryslog

import (
	"context"
	"errors"
	"log/slog"

	"github.com/retrygo/retry"
)

// Options says what is written and how. The zero Options is ready to use.
//
// A level is read at each event, so that a slog.LevelVar may change it at any time. An event at a level that the logger
// does not write costs no allocation.
type Options struct {
	// Retry is the level of failed attempts that a retry follows. Nil means Warn: no caller has failed yet, but a peer
	// is in trouble, and unobserved retries hide it. Use Debug if an outage would write too many records.
	Retry slog.Leveler
	// Failure is the level of runs that failed, whatever the reason, but for those of Terminal and Canceled. Nil means
	// Error.
	Failure slog.Leveler
	// Terminal is the level of runs that ended with a terminal error at their first attempt, which the caller has: a
	// mistake of the caller, but also a POST whose 503 must not be repeated, and a delivery that was refused. Use Warn
	// if the log is to show an outage of such calls. The level of a job, which has no caller, and of an error that is
	// retry.Ambiguous, such as a COMMIT whose answer was lost, is Failure. Nil means that they have no record.
	Terminal slog.Leveler
	// Canceled is the level of runs that the caller canceled, which is not a failure. A deadline that is over is one.
	// Nil means that of Retry.
	Canceled slog.Leveler
	// Recovery is the level of runs that succeeded after a retry. Nil means Debug: each of their retries has a record
	// already.
	Recovery slog.Leveler
	// FirstTry is the level of runs that succeeded at the first attempt. Nil means that they have no record.
	FirstTry slog.Leveler
	// Group is the name of a group that holds the attributes of this package. Those of Attrs stay outside, beside it.
	// Empty means no group.
	Group string
	// Attrs returns more attributes for a record, from the context that was given to Do, or that of a job. It is called
	// only if a record is written, in the goroutine that retries, and must be safe for concurrent use. The slice is not
	// kept. A key that this package uses as well is written twice, unless Group keeps them apart. Nil means none.
	Attrs func(context.Context) []slog.Attr
	// MaxErrorText is the length in bytes beyond which the text of an error is cut; "... (5000 bytes)" then follows,
	// with the length of the whole. Zero means 1024. Unlimited (and any negative number) means no limit.
	MaxErrorText int
}

// Observe returns an observer for Policy.Observe that writes to logger; it serves any number of policies, also those of
// retryjob, and is safe for concurrent use as far as the logger's handler and Options.Attrs are. A nil logger means
// slog.Default(), as it is at each event.
//
// The handler gets the caller's context, with its trace. It is called in the goroutine that retries, which waits for it;
// an error of it is lost, as it is with a slog.Logger, and a panic of it ends the run as any panic of an observer does.
func Observe(logger *slog.Logger, o Options) func(context.Context, retry.Event) {
	o.Retry = either(o.Retry, slog.LevelWarn)
	o.Failure = either(o.Failure, slog.LevelError)
	o.Terminal = either(o.Terminal, nil)
	o.Canceled = either(o.Canceled, o.Retry)
	o.Recovery = either(o.Recovery, slog.LevelDebug)
	o.FirstTry = either(o.FirstTry, nil)
	if o.MaxErrorText == 0 {
		o.MaxErrorText = 1024
	}
	return func(ctx context.Context, e retry.Event) {
		if ctx == nil {
			ctx = context.Background()
		}
		to := logger
		if to == nil {
			to = slog.Default()
		}
		message, leveler := o.kind(ctx, &e)
		if message == notRetried && to.Enabled(ctx, o.Failure.Level()) && ambiguous(e.Err) {
			message, leveler = gaveUp, o.Failure
		}
		if leveler == nil {
			return
		}
		if level := leveler.Level(); to.Enabled(ctx, level) {
			o.write(ctx, to.Handler(), level, message, &e)
		}
	}
}

const (
	notRetried = "retry: not retried"
	gaveUp     = "retry: gave up"
)

// kind returns the message for an event and what gives its level: nil if the event has no record.
func (o *Options) kind(ctx context.Context, e *retry.Event) (string, slog.Leveler) {
	switch {
	case e.Outcome == nil && e.Decision.Status == retry.Waiting:
		return "retry: attempt failed", o.Retry
	case e.Outcome == nil:
		return "", nil // the event of the end follows
	case e.Outcome.Status == retry.Succeeded && e.Outcome.Attempts > 1:
		return "retry: succeeded", o.Recovery
	case e.Outcome.Status == retry.Succeeded:
		return "retry: succeeded", o.FirstTry
	case e.Outcome.Status == retry.Canceled:
		return "retry: canceled", o.Canceled
	case e.Outcome.Reason == retry.TerminalError && e.Outcome.Attempts == 1 && jobOf(ctx) == nil:
		return notRetried, o.Terminal
	default:
		return gaveUp, o.Failure
	}
}

// ambiguous reports whether err has the mark of retry.Ambiguous: the work may have taken effect.
func ambiguous(err error) bool {
	var marked interface{ Ambiguous() bool }
	return errors.As(err, &marked) && marked.Ambiguous()
}

// either returns l, or the default if l is nil or a nil *slog.LevelVar, which has no level.
func either(l, byDefault slog.Leveler) slog.Leveler {
	if v, ok := l.(*slog.LevelVar); l == nil || ok && v == nil {
		return byDefault
	}
	return l
}
