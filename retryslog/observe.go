package retryslog

import (
	"context"
	"errors"
	"log/slog"

	"github.com/retrygo/retry"
)

// Options configures the records of Observe. The zero Options is ready to use.
//
// A level is read at each event, so a slog.LevelVar may change it at any time. An event at a disabled level does not
// allocate.
type Options struct {
	// Retry is the level of failed attempts that a retry follows. Nil means Warn. No caller has failed yet, but a peer
	// is in trouble, and unobserved retries hide it. Use Debug if an outage would produce too many records.
	Retry slog.Leveler
	// Failure is the level of runs that failed, for any reason, except those of Below, Terminal and Canceled. Nil means
	// Error.
	Failure slog.Leveler
	// Below is the level of runs that ended because a layer below had given up (retry.Outcome.InnerGaveUp), at any
	// attempt and in doubt or not. That layer has the failure in its own log, so a chain of services has one Error for one
	// failure. For a job, which does not have a caller, it is Failure. Use Error if the layers below do not log. Nil means
	// the level of Terminal, or Warn if that is nil too.
	Below slog.Leveler
	// Terminal is the level of other runs that ended with a terminal error at their first attempt, such as a POST that was
	// answered 429, a refused delivery, or a mistake of the caller's. For a job it is Failure. Nil means Warn, with two
	// exceptions. An answer is not logged. It is an error with a method Answer() bool that returns true, as that of retryhttp
	// for a 404. The level of an error that is retry.Ambiguous, such as a COMMIT whose answer was lost or a POST whose
	// connection was lost, is Failure.
	Terminal slog.Leveler
	// Canceled is the level of runs that the caller canceled, which is not a failure. An exceeded deadline is one. Nil
	// means that of Retry if a retry was due, and otherwise, as for a client that hangs up, no record. A job always has
	// one.
	Canceled slog.Leveler
	// Recovery is the level of runs that succeeded after a retry. Nil means Debug, since each of their retries was
	// logged.
	Recovery slog.Leveler
	// FirstAttempt is the level of runs that succeeded at the first attempt. Nil means that they are not logged.
	FirstAttempt slog.Leveler
	// Group is the name of a group for the attributes of this package. Those of Attrs stay outside it. Empty means no
	// group.
	Group string
	// Attrs returns more attributes for a record, from the context that was passed to Do, or that of a job, and the event. It is
	// called only if a record is written, in the goroutine that retries, and must be safe for concurrent use. The slice
	// is not kept. If it returns a key that this package also uses, the record has the key twice, unless Group
	// separates them. Nil means no others.
	Attrs func(context.Context, retry.Event) []slog.Attr
	// MaxErrorText is the maximum length in bytes of the text of an error. A longer text is cut and followed by the
	// length of the whole, as in "... (5000 bytes)". It also bounds each value of a request, which has 32 attributes at
	// most. Zero means 1024. Unlimited (and any negative number) means no limit.
	MaxErrorText int
}

// Observe returns an observer for Policy.Observe that writes to logger. Any number of policies can share it, including
// those of retryjob. It is safe for concurrent use if the logger's handler and Options.Attrs are. A nil logger means
// the slog.Default() at each event.
//
// The handler gets the caller's context, with its trace. It runs in the goroutine that retries. Its error is ignored,
// as by a slog.Logger, and its panic ends the run like any panic of an observer.
func Observe(logger *slog.Logger, o Options) func(context.Context, retry.Event) {
	o.Retry = either(o.Retry, slog.LevelWarn)
	o.Failure = either(o.Failure, slog.LevelError)
	o.Terminal = either(o.Terminal, nil)
	o.Below = either(o.Below, either(o.Terminal, slog.LevelWarn))
	o.Recovery = either(o.Recovery, slog.LevelDebug)
	o.FirstAttempt = either(o.FirstAttempt, nil)
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
		unset := leveler == nil && (message == notRetried || message == canceled)
		if unset && (to.Enabled(ctx, slog.LevelWarn) || to.Enabled(ctx, o.Failure.Level())) {
			message, leveler = o.byError(message, e.Err)
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
	canceled   = "retry: canceled"
	notRetried = "retry: not retried"
	gaveUp     = "retry: gave up"
)

// kind returns the message for an event and its level, which is nil if the event is not logged.
func (o *Options) kind(ctx context.Context, e *retry.Event) (string, slog.Leveler) {
	switch {
	case e.Outcome == nil && e.Decision.Status == retry.WaitingRetry:
		return "retry: attempt failed", o.Retry
	case e.Outcome == nil:
		return "", nil // the event of the end follows
	case e.Outcome.Status == retry.Succeeded && e.Outcome.Attempts > 1:
		return "retry: succeeded", o.Recovery
	case e.Outcome.Status == retry.Succeeded:
		return "retry: succeeded", o.FirstAttempt
	case e.Outcome.Status == retry.Canceled && (jobOf(ctx) != nil || retryWasDue(e.Outcome)):
		return canceled, either(o.Canceled, o.Retry)
	case e.Outcome.Status == retry.Canceled:
		return canceled, either(o.Canceled, nil)
	case jobOf(ctx) != nil:
		return gaveUp, o.Failure
	case e.Outcome.InnerGaveUp && e.Outcome.Attempts == 1:
		return notRetried, o.Below
	case e.Outcome.InnerGaveUp:
		return gaveUp, o.Below
	case e.Outcome.Reason == retry.TerminalError && e.Outcome.Attempts == 1:
		return notRetried, o.Terminal
	default:
		return gaveUp, o.Failure
	}
}

// byError is kind for a run that was canceled or not retried, at a level that is not set.
func (o *Options) byError(message string, err error) (string, slog.Leveler) {
	var request interface{ Answer() bool }
	switch {
	case retry.IsAmbiguous(err):
		return gaveUp, o.Failure
	case message == canceled:
		return message, nil
	case errors.As(err, &request) && request.Answer():
		return message, nil
	default:
		return message, slog.LevelWarn
	}
}

// retryWasDue reports whether the first attempt was followed by a wait.
func retryWasDue(o *retry.Outcome) bool {
	return o.Attempts > 1 || len(o.History) > 0 && o.History[0].Delay > 0
}

// either returns l, or the default if l is nil or a nil *slog.LevelVar, whose level cannot be read.
func either(l, byDefault slog.Leveler) slog.Leveler {
	if v, ok := l.(*slog.LevelVar); l == nil || ok && v == nil {
		return byDefault
	}
	return l
}
