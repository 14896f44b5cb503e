package retryconnect

import (
	"fmt"

	"connectrpc.com/connect"

	"github.com/retrygo/retry"
)

// Options are those of an interceptor. The zero Options repeat what codes and the schema alone allow: UNAVAILABLE,
// RESOURCE_EXHAUSTED if the server says when to come back, and DEADLINE_EXCEEDED of procedures that the schema declares
// to be idempotent.
type Options struct {
	// PolicyFunc returns the policy of one call, which calls it once. It may be the Policy method of a retryconf.Ref, so
	// that a reload reaches a client in use. A policy that does not validate fails the call with INTERNAL before any
	// attempt. PolicyFunc must be safe for concurrent use. NewInterceptor refuses it beside PolicyFor or a policy that is
	// not zero. Nil means the interceptor's policy.
	PolicyFunc func() retry.Policy

	// PolicyFor is PolicyFunc by procedure, "/package.Service/Method". Nil means that all procedures have the same
	// policy.
	PolicyFor func(procedure string) retry.Policy

	// Idempotent reports whether a procedure, "/package.Service/Method", may take effect twice although its schema does
	// not say so. It must be safe for concurrent use. Nil means that none may but those with the idempotency level
	// NO_SIDE_EFFECTS or IDEMPOTENT, by generated code or connect.WithIdempotency.
	Idempotent func(procedure string) bool

	// RetryCodes are codes that are repeated beside the default ones. INTERNAL, UNKNOWN, DATA_LOSS and
	// DEADLINE_EXCEEDED are so for idempotent procedures only. CANCELED, FAILED_PRECONDITION and numbers that are not
	// codes are refused. Nil means none.
	RetryCodes []connect.Code

	// PassAttempt sends, with calls under retry.OneAttempt and retry.RemoteAttempt, the number of the run that repeats
	// the work, such as that of a trusted client (see NewHandlerInterceptor), so that the server can make one attempt
	// too. Set it for clients of your own services; an http.Client that follows redirects sends the number on. Zero
	// means that a server learns of this client's retries alone.
	PassAttempt bool
}

// Validate returns nil or retry.FieldErrors with every bad field. NewInterceptor refuses such Options.
func (o Options) Validate() error {
	var bad retry.FieldErrors
	if o.PolicyFunc != nil && o.PolicyFor != nil {
		bad.Add("retryconnect", "Options.PolicyFor", "func", "is set beside PolicyFunc")
	}
	for i, code := range o.RetryCodes {
		rule := ""
		switch {
		case !known(code):
			rule = "is not a code"
		case code == connect.CodeCanceled:
			rule = "means that the call was given up"
		case code == connect.CodeFailedPrecondition:
			rule = "must not be repeated until the state has been fixed"
		default:
			continue
		}
		bad.Add("retryconnect", fmt.Sprintf("Options.RetryCodes[%d]", i), code, rule)
	}
	return bad.Err()
}

// known reports whether the number is a code of an error.
func known(code connect.Code) bool {
	return code >= connect.CodeCanceled && code <= connect.CodeUnauthenticated
}
