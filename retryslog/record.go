package retryslog

import (
	"context"
	"errors"
	"log/slog"
	"slices"
	"time"

	"github.com/retrygo/retry"
	"github.com/retrygo/retry/retryshell"
)

// The keys of the attributes, for a ReplaceAttr and for queries. The package documentation lists which record has
// which.
const (
	KeyPolicy      = "policy"
	KeyAttempt     = "attempt"
	KeyAttempts    = "attempts"
	KeyStatus      = "status"
	KeyReason      = "reason"
	KeyEndedByGate = "ended_by_gate"
	KeyInnerGaveUp = "inner_gave_up"
	KeyInDoubt     = "in_doubt"
	KeyDelay       = "delay"
	KeyDuration    = "duration"
	KeyElapsed     = "elapsed"
	KeyError       = "error"
	KeyCause       = "cause"
	KeyRequest     = "request"
	KeyJob         = "job"
)

// write builds the record of an event and passes it to the handler. It is separate from the observer so that an event
// that is not logged does not allocate.
//
//go:noinline
func (o *Options) write(ctx context.Context, to slog.Handler, level slog.Level, message string, e *retry.Event) {
	record := slog.NewRecord(time.Now(), level, message, 0)
	var room [15]slog.Attr // one for each key
	attrs := room[:0]
	if e.Outcome == nil {
		attrs = o.ofRetry(attrs, e)
	} else {
		attrs = o.ofEnd(attrs, e)
	}
	if job := jobOf(ctx); job != nil {
		attrs = o.withGroup(attrs, KeyJob, job)
	}
	if o.Group == "" {
		record.AddAttrs(attrs...)
	} else {
		record.AddAttrs(slog.Attr{Key: o.Group, Value: slog.GroupValue(slices.Clone(attrs)...)})
	}
	if o.Attrs != nil {
		record.AddAttrs(o.Attrs(ctx, *e)...)
	}
	_ = to.Handle(ctx, record) // an observer cannot return it
}

func (o *Options) ofRetry(attrs []slog.Attr, e *retry.Event) []slog.Attr {
	attrs = common(attrs, e.Policy, slog.Int(KeyAttempt, e.Attempt.Number), e.Decision)
	attrs = append(attrs, slog.Duration(KeyDelay, e.Decision.Delay), slog.Duration(KeyDuration, e.Attempt.Duration),
		slog.Duration(KeyElapsed, e.Elapsed))
	return o.withErrors(attrs, e.Attempt.Err, nil)
}

func (o *Options) ofEnd(attrs []slog.Attr, e *retry.Event) []slog.Attr {
	end := retry.Decision{Status: e.Outcome.Status, Reason: e.Outcome.Reason}
	attrs = common(attrs, e.Policy, slog.Int(KeyAttempts, e.Outcome.Attempts), end)
	if e.Outcome.EndedByGate {
		attrs = append(attrs, slog.Bool(KeyEndedByGate, true))
	}
	if e.Outcome.InnerGaveUp {
		attrs = append(attrs, slog.Bool(KeyInnerGaveUp, true))
	}
	if retry.IsAmbiguous(e.Err) {
		attrs = append(attrs, slog.Bool(KeyInDoubt, true))
	}
	attrs = append(attrs, slog.Duration(KeyElapsed, e.Outcome.Elapsed))
	if n := len(e.Outcome.History); e.Err == nil && n > 0 { // a success does not have an error, but its failures have the request
		return o.withRequest(attrs, e.Outcome.History[n-1].Err, "status", "code", "reason")
	}
	last, cause := e.Err, error(nil) // of another shell
	if failed, ok := e.Err.(*retry.Error); ok && failed != nil {
		last, cause = failed.Last, failed.Cause()
	}
	switch {
	case last == nil: // no attempt was made
		last, cause = cause, nil
	case cause == context.Canceled || cause == context.DeadlineExceeded:
		cause = nil // the reason already says so
	}
	return o.withErrors(attrs, last, cause)
}

func common(attrs []slog.Attr, policy string, count slog.Attr, d retry.Decision) []slog.Attr {
	if policy != "" {
		attrs = append(attrs, slog.String(KeyPolicy, nameOf(policy)))
	}
	attrs = append(attrs, count, slog.String(KeyStatus, d.Status.String()))
	if d.Reason != 0 {
		attrs = append(attrs, slog.String(KeyReason, d.Reason.Error()))
	}
	return attrs
}

// withErrors appends the last error and the cause, if set, and the request of the error.
func (o *Options) withErrors(attrs []slog.Attr, last, cause error) []slog.Attr {
	if last == nil {
		return attrs
	}
	attrs = append(attrs, slog.Any(KeyError, &textError{bounded(last, o.MaxErrorText), last}))
	if cause != nil {
		attrs = append(attrs, slog.Any(KeyCause, &textError{bounded(cause, o.MaxErrorText), cause}))
	}
	return o.withRequest(attrs, last)
}

// withRequest appends the group of err's request, without the given keys.
func (o *Options) withRequest(attrs []slog.Attr, err error, without ...string) []slog.Attr {
	var request slog.LogValuer
	if !errors.As(err, &request) {
		return attrs
	}
	return o.withGroup(attrs, KeyRequest, request, without...)
}

// withGroup appends v's value under key, without the given keys. If the value is not a group, as after a panic of v's
// method, attrs is returned unchanged.
func (o *Options) withGroup(attrs []slog.Attr, key string, v slog.LogValuer, without ...string) []slog.Attr {
	value := slog.AnyValue(v).Resolve()
	if value.Kind() != slog.KindGroup {
		return attrs
	}
	left := maxAttrs
	return append(attrs, slog.Attr{Key: key, Value: o.bounded(value, &left, without...)})
}

// maxAttrs is how many attributes a request or job has at most, groups in it included. Those of this module have 5.
const maxAttrs = 32

// bounded returns a resolved v without the given keys, with at most left attributes and texts of bounded length.
func (o *Options) bounded(v slog.Value, left *int, without ...string) slog.Value {
	switch v.Kind() {
	case slog.KindGroup:
		var kept []slog.Attr
		for _, a := range v.Group() {
			if slices.Contains(without, a.Key) {
				continue
			}
			if *left--; *left < 0 {
				break
			}
			kept = append(kept, slog.Attr{Key: nameOf(a.Key), Value: o.bounded(a.Value.Resolve(), left)})
		}
		return slog.GroupValue(kept...)
	case slog.KindString, slog.KindAny:
		text := v.String()
		if short := bounded(errors.New(text), o.MaxErrorText); short != text {
			return slog.StringValue(short)
		}
	}
	return v
}

// jobOf returns the job that ctx belongs to, or nil.
func jobOf(ctx context.Context) slog.LogValuer {
	job, _ := ctx.Value(retryshell.ReportedJob{}).(slog.LogValuer)
	return job
}
