package retryconnect

import (
	"context"
	"errors"
	"net"
	"slices"
	"strings"
	"syscall"
	"time"

	"connectrpc.com/connect"
	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/types/known/durationpb"
	"google.golang.org/protobuf/types/known/wrapperspb"

	"github.com/retrygo/retry"
	"github.com/retrygo/retry/contrib/retryrpc"
	"github.com/retrygo/retry/retryhttp/hints"
)

// Classify is the classifier of an interceptor with the zero Options (see package retryrpc). It can be used in any other
// policy, since it judges a *retryrpc.AttemptError and any error with a *connect.Error. Other errors are Unknown, so the
// next classifier or the default rules judge them.
func Classify(err error) retry.Class {
	if class := retryrpc.Classify(err); class != retry.Unknown {
		return class
	}
	if _, ok := errors.AsType[*connect.Error](err); !ok {
		return retry.Unknown
	}
	return failureOf(err).Class()
}

// OnCode returns a classifier that returns class for an error with one of the codes, and otherwise Unknown. In
// Policy.Classify it takes precedence over the rules of the interceptor, also for procedures that are not idempotent, but
// not over a Veto. OnCode(retry.Terminal, connect.CodeUnavailable) does not repeat a call that may have taken effect,
// unless its connection was reset, and also not calls that could not connect.
func OnCode(class retry.Class, of ...connect.Code) retry.Classifier {
	of = slices.Clone(of) // the caller may reuse the slice
	return func(err error) retry.Class {
		if failed, ok := errors.AsType[*connect.Error](err); ok && slices.Contains(of, failed.Code()) {
			return class
		}
		return retry.Unknown
	}
}

func failureOf(err error) retryrpc.Failure {
	f := retryrpc.Failure{Err: err, Code: retryrpc.Unknown}
	failed, ok := errors.AsType[*connect.Error](err)
	switch {
	case ok:
		f.Code, f.Cut = retryrpc.Code(failed.Code()), cut(failed)
		f.Told, f.Answer = connect.IsWireError(failed), connect.IsNotModifiedError(failed)
		f.Pushback = failed.Meta()[pushbackKey]
		f.InDoubt = failed.Meta()[inDoubtKey]
		f.Hint = hintOf(failed)
	case errors.Is(err, context.Canceled): // from an interceptor
		f.Code = retryrpc.Canceled
	case errors.Is(err, context.DeadlineExceeded):
		f.Code = retryrpc.DeadlineExceeded
	}
	f.Kind = connect.Code(f.Code).String()
	switch {
	case f.Told:
	case f.Code == retryrpc.Canceled && (errors.Is(err, syscall.ECONNRESET) || errors.Is(err, syscall.EPIPE)):
		f.Code = retryrpc.Unavailable // as if the connection is lost in another way
	case f.Code == retryrpc.ResourceExhausted:
		f.Local = f.Hint == 0 && len(f.Pushback) == 0 // no server has said so
	default:
		dial, ok := errors.AsType[*net.OpError](err)
		f.Unsent = ok && dial.Op == "dial"
	}
	return f
}

// cut returns a short form of the error, or nil if it is short.
func cut(err *connect.Error) error {
	size := len(err.Message())
	for _, detail := range err.Details() {
		size += len(detail.Type()) + len(detail.Bytes())
	}
	for name, values := range err.Meta() {
		size += len(name) + len(strings.Join(values, ""))
	}
	if size <= retryrpc.MaxRecord {
		return nil
	}
	return connect.NewError(err.Code(), errors.New(retryrpc.Bounded(err.Message())))
}

type callError struct{ *retryrpc.CallError }

func (e callError) Unwrap() error { return e.CallError }

// As finds a *connect.Error of CANCELED or DEADLINE_EXCEEDED if the caller's context has ended, whatever the last
// attempt's code was.
func (e callError) As(target any) bool {
	found, ok := target.(**connect.Error)
	if ok = ok && e.Last == nil; ok {
		*found = connect.NewError(connect.Code(e.Code), e.Err)
	}
	return ok
}

// hintOf returns the longer one of an error's RetryInfo and Retry-After, 0 if it has neither.
func hintOf(err *connect.Error) time.Duration {
	wait := hints.RetryAfter(err.Meta(), time.Now())
	for _, detail := range err.Details() {
		if detail.Type() == "google.rpc.RetryInfo" {
			wait = max(wait, retryDelay(detail.Bytes()))
		}
	}
	return max(wait, 0)
}

// retryDelay reads a google.rpc.RetryInfo, whose field 1 is a google.protobuf.Duration. On the wire, that is the one field
// of a BytesValue. It saves the import of genproto.
func retryDelay(info []byte) time.Duration {
	var field wrapperspb.BytesValue
	var delay durationpb.Duration
	if proto.Unmarshal(info, &field) != nil || proto.Unmarshal(field.Value, &delay) != nil {
		return 0
	}
	return delay.AsDuration()
}
