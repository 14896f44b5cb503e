package retryslog

import (
	"context"
	"log/slog"
	"slices"
	"time"

	"github.com/retrygo/retry"
	"github.com/retrygo/retry/internal/show"
)

// The keys of the attributes, for a ReplaceAttr and for queries. The package documentation says which record has which.
const (
	KeyPolicy   = "policy"
	KeyAttempt  = "attempt"
	KeyStatus   = "status"
	KeyReason   = "reason"
	KeyGated    = "gated"
	KeyDelay    = "delay"
	KeyDuration = "duration"
	KeyElapsed  = "elapsed"
	KeyError    = "error"
	KeyCause    = "cause"
)

// write makes the record of an event and gives it to the handler. It is apart from the observer so that an event that is
// not written leaves nothing on the heap.
//
//go:noinline
func (o *Options) write(ctx context.Context, to slog.Handler, level slog.Level, message string, e *retry.Event) {
	record := slog.NewRecord(time.Now(), level, message, 0)
	var room [10]slog.Attr // one for each key
	attrs := room[:0]
	if e.Outcome == nil {
		attrs = o.ofRetry(attrs, e)
	} else {
		attrs = o.ofEnd(attrs, e)
	}
	if o.Group == "" {
		record.AddAttrs(attrs...)
	} else {
		record.AddAttrs(slog.Attr{Key: o.Group, Value: slog.GroupValue(slices.Clone(attrs)...)})
	}
	if o.Attrs != nil {
		record.AddAttrs(o.Attrs(ctx)...)
	}
	_ = to.Handle(ctx, record) // an observer cannot return it
}

// ofRetry appends the attributes of an attempt that a retry follows.
func (o *Options) ofRetry(attrs []slog.Attr, e *retry.Event) []slog.Attr {
	attrs = common(attrs, e.Policy, e.Attempt.Number, e.Decision)
	attrs = append(attrs, slog.Duration(KeyDelay, e.Decision.Delay), slog.Duration(KeyDuration, e.Attempt.Duration),
		slog.Duration(KeyElapsed, e.Elapsed))
	return o.withError(attrs, KeyError, e.Attempt.Err)
}

// ofEnd appends the attributes of the end of a run.
func (o *Options) ofEnd(attrs []slog.Attr, e *retry.Event) []slog.Attr {
	attrs = common(attrs, e.Policy, e.Outcome.Attempts, retry.Decision{Status: e.Outcome.Status, Reason: e.Outcome.Reason})
	if e.Outcome.Gated {
		attrs = append(attrs, slog.Bool(KeyGated, true))
	}
	attrs = append(attrs, slog.Duration(KeyElapsed, e.Outcome.Elapsed))
	failed, ok := e.Err.(*retry.Error)
	if !ok || failed == nil {
		return o.withError(attrs, KeyError, e.Err) // of another shell, or a success
	}
	cause := failed.Cause()
	if failed.Last == nil {
		return o.withError(attrs, KeyError, cause)
	}
	attrs = o.withError(attrs, KeyError, failed.Last)
	if cause == context.Canceled || cause == context.DeadlineExceeded {
		return attrs // the reason says that already
	}
	return o.withError(attrs, KeyCause, cause)
}

// common appends what all records have.
func common(attrs []slog.Attr, policy string, attempt int, d retry.Decision) []slog.Attr {
	if policy != "" {
		attrs = append(attrs, slog.String(KeyPolicy, oneLine(policy)))
	}
	attrs = append(attrs, slog.Int(KeyAttempt, attempt), slog.String(KeyStatus, d.Status.String()))
	if d.Reason != 0 {
		attrs = append(attrs, slog.String(KeyReason, d.Reason.Error()))
	}
	return attrs
}

// withError appends err, if there is one.
func (o *Options) withError(attrs []slog.Attr, key string, err error) []slog.Attr {
	if err == nil {
		return attrs
	}
	return append(attrs, slog.Any(key, &textError{show.Error(err, o.MaxErrorText, oneLine), err}))
}
