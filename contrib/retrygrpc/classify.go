package retrygrpc

import (
	"slices"

	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"

	"github.com/retrygo/retry"
	"github.com/retrygo/retry/contrib/retryrpc"
)

// Classify is the classifier of the interceptors with the zero Options (see package retryrpc). It can be used in any
// other policy, since it judges a *retryrpc.AttemptError and any error with a gRPC status. Other errors are Unknown, so
// the next classifier or the default rules judge them.
func Classify(err error) retry.Class {
	if class := retryrpc.Classify(err); class != retry.Unknown {
		return class
	}
	st, ok := status.FromError(err)
	if !ok || err == nil {
		return retry.Unknown
	}
	return retryrpc.Failure{Code: retryrpc.Code(st.Code()), Hint: retryInfo(st.Details())}.Class()
}

// OnCode returns a classifier that returns class for an error whose gRPC status has one of the codes, and otherwise
// Unknown. In Policy.Classify it takes precedence over the rules of the interceptor, also for methods that are not
// idempotent, but not over a Veto. OnCode(retry.Terminal, codes.Unavailable) does not repeat a call that may have taken
// effect, and also not calls that could not connect.
func OnCode(class retry.Class, of ...codes.Code) retry.Classifier {
	of = slices.Clone(of) // the caller may reuse the slice
	return func(err error) retry.Class {
		if st, ok := status.FromError(err); ok && err != nil && slices.Contains(of, st.Code()) {
			return class
		}
		return retry.Unknown
	}
}
