package retryrpc

import (
	"fmt"
	"reflect"

	"github.com/retrygo/retry"
)

// Options are the options of an interceptor. C is the library's type of a code. The zero Options repeat only UNAVAILABLE, RESOURCE_EXHAUSTED if the server says when to retry, and DEADLINE_EXCEEDED of methods that
// are known to be idempotent.
type Options[C ~uint32] struct {
	// PolicyFor returns the policy of one call of a method, "/package.Service/Method". The call asks once. It may
	// return the Policy of a retryconf.Ref, so a reload applies to existing clients. A policy that does not validate
	// fails the call with INTERNAL before any attempt. PolicyFor must be safe for concurrent use. It is refused
	// together with a policy that is not zero. Nil means the interceptor's policy.
	PolicyFor func(method string) retry.Policy

	// Idempotent reports whether a method may take effect twice. An attempt that timed out, a unary call of gRPC that
	// has received a header, and INTERNAL, UNKNOWN and DATA_LOSS if RetryCodes names them, are repeated only for such
	// methods. UNAVAILABLE is also repeated for others, although the connection may have been lost after the call took
	// effect. To prevent that, set Policy.Classify to the adapter's OnCode(retry.Terminal, Unavailable). Idempotent
	// must be safe for concurrent use. Nil means that it is known of no method, except of those that Connect's
	// generated code declares idempotent.
	Idempotent func(method string) bool

	// RetryCodes are codes that are repeated in addition to the default ones. INTERNAL, UNKNOWN, DATA_LOSS and
	// DEADLINE_EXCEEDED are repeated only for idempotent methods. OK, CANCELED, FAILED_PRECONDITION and numbers that
	// are not codes are refused. Nil means no others.
	RetryCodes []C

	// PassAttempt sends, with calls under retry.OneAttempt and retryshell.WithRemoteAttempt, the attempt number of the
	// run that repeats the work, such as that of a trusted client, so the server can also make only one attempt. Set it
	// for clients of your own services. An http.Client that follows redirects sends the number on. Zero means that a
	// server sees only this client's retries.
	PassAttempt bool
}

// Validate returns nil or retry.FieldErrors with every bad field. Interceptors are not made with such Options.
func (o Options[C]) Validate() error { return o.validate(retry.Policy{}) }

func (o *Options[C]) validate(p retry.Policy) error {
	var bad retry.FieldErrors
	bad.Append(p.Validate())
	for i, code := range o.RetryCodes {
		if rule := refusal(Code(code)); rule != "" {
			bad.Refuse(fmt.Sprintf("retryrpc.Options.RetryCodes[%d]", i), code, rule)
		}
	}
	if o.PolicyFor != nil && !reflect.ValueOf(p).IsZero() {
		bad.Refuse("retryrpc.Options.PolicyFor", "func", "is set together with a policy")
	}
	return bad.Err()
}

// refusal returns the reason why RetryCodes must not have the code, or "".
func refusal(code Code) string {
	switch {
	case code > Unauthenticated:
		return "is not a code"
	case code == OK:
		return "is a success"
	case code == Canceled:
		return "means that the call was given up"
	case code == FailedPrecondition:
		return "must not be repeated until the state has been fixed"
	default:
		return ""
	}
}

// Errors are how an adapter converts errors to those of its library. A nil function changes nothing.
type Errors struct {
	Attempt func(e *AttemptError) error // of an attempt, as an error that unwraps to e
	Answer  func(e *AnswerError) error  // of a call that was answered, likewise
	Call    func(e *CallError) error    // of a call that failed, likewise
}

// Layer makes the calls of a client. It is safe for concurrent use.
type Layer struct {
	policy      retry.Policy // with a schedule
	policyFor   func(method string) retry.Policy
	idempotent  func(method string) bool
	retryCodes  []Code
	passAttempt bool
	errors      Errors
}

// NewLayer returns a Layer that makes calls as p and o say. If p sets no part of a schedule, that of retry.Inline is
// used (see retry.Policy.OrSchedule). The error names every bad field of p and o.
func NewLayer[C ~uint32](p retry.Policy, o Options[C], errors Errors) (*Layer, error) {
	if err := o.validate(p); err != nil {
		return nil, err
	}
	l := &Layer{p.OrSchedule(retry.Inline()), o.PolicyFor, o.Idempotent, nil, o.PassAttempt, errors}
	for _, code := range o.RetryCodes {
		l.retryCodes = append(l.retryCodes, Code(code))
	}
	if l.errors.Attempt == nil {
		l.errors.Attempt = func(e *AttemptError) error { return e }
	}
	if l.errors.Answer == nil {
		l.errors.Answer = func(e *AnswerError) error { return e }
	}
	if l.errors.Call == nil {
		l.errors.Call = func(e *CallError) error { return e }
	}
	return l, nil
}

// Idempotent reports whether Options.Idempotent returns true for the method.
func (l *Layer) Idempotent(method string) bool { return l.idempotent != nil && l.idempotent(method) }
