package retryconnect

import (
	"connectrpc.com/connect"

	"github.com/retrygo/retry"
	"github.com/retrygo/retry/retryrpc"
)

// Options are the options of an interceptor. The zero Options repeat only what codes and the schema allow: UNAVAILABLE,
// RESOURCE_EXHAUSTED if the server says when to retry, and DEADLINE_EXCEEDED of procedures that the schema declares
// idempotent.
type Options struct {
	// PolicyFunc returns the policy of one call, which calls it once. It may be the Policy method of a retryconf.Ref,
	// so a reload applies to existing clients. A policy that does not validate fails the call with INTERNAL before any
	// attempt. PolicyFunc must be safe for concurrent use. NewInterceptor refuses it together with PolicyFor or a
	// policy that is not zero. Nil means the interceptor's policy.
	PolicyFunc func() retry.Policy

	// PolicyFor is PolicyFunc for each procedure, "/package.Service/Method". Nil means that all procedures have the
	// same policy.
	PolicyFor func(procedure string) retry.Policy

	// Idempotent reports whether a procedure, "/package.Service/Method", may take effect twice although its schema does
	// not say so. It must be safe for concurrent use. Nil means only procedures with the idempotency level
	// NO_SIDE_EFFECTS or IDEMPOTENT, set by generated code or connect.WithIdempotency.
	Idempotent func(procedure string) bool

	// RetryCodes are codes that are repeated in addition to the default ones. INTERNAL, UNKNOWN, DATA_LOSS and
	// DEADLINE_EXCEEDED are repeated only for idempotent procedures. CANCELED, FAILED_PRECONDITION and numbers that are
	// not codes are refused. Nil means none.
	RetryCodes []connect.Code

	// PassAttempt sends, with calls under retry.OneAttempt and retryshell.WithRemoteAttempt, the attempt number of the run that
	// repeats the work, such as that of a trusted client (see NewHandlerInterceptor), so the server can also make only
	// one attempt. Set it for clients of your own services; an http.Client that follows redirects sends the number on.
	// Zero means that a server sees only this client's retries.
	PassAttempt bool
}

// Validate returns nil or retry.FieldErrors with every bad field. NewInterceptor refuses such Options.
func (o Options) Validate() error {
	shared := o.shared(retry.Policy{})
	return shared.Validate("retryconnect")
}

// shared returns the options of package retryrpc.
func (o Options) shared(p retry.Policy) retryrpc.Options {
	list := make([]retryrpc.Code, len(o.RetryCodes))
	for i, code := range o.RetryCodes {
		list[i] = retryrpc.Code(code)
	}
	return retryrpc.Options{
		Policy: p, PolicyFunc: o.PolicyFunc, PolicyFor: o.PolicyFor, Idempotent: o.Idempotent, RetryCodes: list,
		PassAttempt: o.PassAttempt,
		Ended:       func(e *retryrpc.CallError) error { return callError{e} },
	}
}
