package retrygrpc

import (
	"errors"
	"slices"

	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"

	"github.com/retrygo/retry"
)

// Classify is the classifier of the interceptors with the zero Options. It can be used in any other policy, since it
// judges an *AttemptError and any error with a gRPC status.
//
//   - Retryable: UNAVAILABLE; RESOURCE_EXHAUSTED if the server says when to retry; DEADLINE_EXCEEDED of an
//     *AttemptError whose call is idempotent and whose caller still waits.
//   - Terminal: every other code, and an *AttemptError with a Veto.
//   - Unknown: an error without a status that is not an *AttemptError, which the next classifier or the default rules
//     judge.
func Classify(err error) retry.Class { return judge(err, nil) }

// OnCode returns a classifier that returns class for an error whose gRPC status has one of the codes, and otherwise
// Unknown. An error without a status does not have a code. In Policy.Classify it takes precedence over the rules of the
// interceptor:
//
//	retry.Policy{Classify: retrygrpc.OnCode(retry.Retryable, codes.NotFound)}
//
// This also applies to methods that are not idempotent, but a Veto overrides it. The policy
//
//	retry.Policy{Classify: retrygrpc.OnCode(retry.Terminal, codes.Unavailable)}
//
// does not repeat a call that may have taken effect, and also not calls that could not connect.
func OnCode(class retry.Class, of ...codes.Code) retry.Classifier {
	of = slices.Clone(of) // the caller may reuse the slice
	return func(err error) retry.Class {
		if st, ok := status.FromError(err); ok && err != nil && slices.Contains(of, st.Code()) {
			return class
		}
		return retry.Unknown
	}
}

// judge is Classify with the opted-in codes.
func judge(err error, optedIn []codes.Code) retry.Class {
	if err == nil {
		return retry.Unknown
	}
	e, ok := errors.AsType[*AttemptError](err)
	if !ok {
		st, ok := status.FromError(err)
		if !ok {
			return retry.Unknown
		}
		e = &AttemptError{Code: st.Code(), Err: err, Origin: Remote, given: adviceOf(nil, st.Details()).given}
	}
	if e != nil && e.repeatable(optedIn) {
		return retry.Retryable
	}
	return retry.Terminal
}

// repeatable reports whether the code allows another attempt.
func (e *AttemptError) repeatable(optedIn []codes.Code) bool {
	if e.Veto != 0 || e.Origin == Caller {
		return false
	}
	opted := slices.Contains(optedIn, e.Code)
	switch e.Code {
	case codes.Unavailable: // AIP-194: the only code for automatic retries
		return true
	case codes.ResourceExhausted: // often a quota, which retries only consume
		return e.given || opted
	case codes.DeadlineExceeded: // it may have taken effect, on either side's clock
		return e.Idempotent
	case codes.Internal, codes.Unknown, codes.DataLoss: // these may have taken effect too
		return e.Idempotent && opted
	case codes.Canceled, codes.FailedPrecondition:
		return false
	default:
		return opted
	}
}
