package retryconnect

import (
	"errors"
	"slices"
	"syscall"

	"connectrpc.com/connect"

	"github.com/retrygo/retry"
)

// Classify is the classifier of an interceptor with the zero Options. It can be used in any other policy, since it
// judges an *AttemptError and any error with a *connect.Error.
//
//   - Retryable: UNAVAILABLE; a connection that was reset; RESOURCE_EXHAUSTED if the server says when to retry;
//     DEADLINE_EXCEEDED of an *AttemptError whose call is idempotent and whose caller still waits.
//   - Terminal: every other code, and an *AttemptError with a Veto.
//   - Unknown: any other error, which the next classifier or the default rules judge.
func Classify(err error) retry.Class { return judge(err, nil) }

// OnCode returns a classifier that returns class for an error with one of the codes, and otherwise Unknown. An error
// without a *connect.Error does not have a code. In Policy.Classify it takes precedence over the rules of the
// interceptor:
//
//	retry.Policy{Classify: retryconnect.OnCode(retry.Retryable, connect.CodeNotFound)}
//
// This also applies to procedures that are not idempotent, but a Veto overrides it. The policy
//
//	retry.Policy{Classify: retryconnect.OnCode(retry.Terminal, connect.CodeUnavailable)}
//
// does not repeat a call that may have taken effect, unless its connection was reset. It also does not repeat calls
// that could not connect.
func OnCode(class retry.Class, of ...connect.Code) retry.Classifier {
	of = slices.Clone(of) // the caller may reuse the slice
	return func(err error) retry.Class {
		if failed, ok := errors.AsType[*connect.Error](err); ok && slices.Contains(of, failed.Code()) {
			return class
		}
		return retry.Unknown
	}
}

// judge is Classify with the opted-in codes.
func judge(err error, optedIn []connect.Code) retry.Class {
	e, ok := errors.AsType[*AttemptError](err)
	if !ok {
		if _, ok := errors.AsType[*connect.Error](err); !ok {
			return retry.Unknown
		}
		e = newAttemptError(err)
	}
	if e != nil && e.repeatable(optedIn) {
		return retry.Retryable
	}
	return retry.Terminal
}

// repeatable reports whether the code allows another attempt.
func (e *AttemptError) repeatable(optedIn []connect.Code) bool {
	if e.Veto != 0 || e.Origin == Caller {
		return false
	}
	opted := slices.Contains(optedIn, e.Code)
	switch e.Code {
	case connect.CodeUnavailable: // AIP-194: the only code for automatic retries
		return true
	case connect.CodeResourceExhausted: // often a quota, which retries only consume
		return e.given || opted
	case connect.CodeDeadlineExceeded: // it may have taken effect, on either side's clock
		return e.Idempotent
	case connect.CodeInternal, connect.CodeUnknown, connect.CodeDataLoss: // these may have taken effect too
		return e.Idempotent && opted && !connect.IsNotModifiedError(e.Err)
	case connect.CodeCanceled:
		return connectionReset(e.Err)
	case connect.CodeFailedPrecondition:
		return false
	default:
		return opted
	}
}

// connectionReset reports whether the connection was lost in a way that connect reports as a cancellation; for other
// ways the code is UNAVAILABLE.
func connectionReset(err error) bool {
	return !connect.IsWireError(err) && (errors.Is(err, syscall.ECONNRESET) || errors.Is(err, syscall.EPIPE))
}

// isAnswer reports whether a healthy server answers with the code. The others are the codes that OpenTelemetry's
// conventions for RPC count as errors of the server, RESOURCE_EXHAUSTED and CANCELED.
func isAnswer(err error, code connect.Code) bool {
	switch code {
	case connect.CodeInvalidArgument, connect.CodeNotFound, connect.CodeAlreadyExists, connect.CodePermissionDenied,
		connect.CodeUnauthenticated, connect.CodeFailedPrecondition, connect.CodeAborted, connect.CodeOutOfRange:
		return true
	default:
		return connect.IsNotModifiedError(err)
	}
}
