package retrygrpc

import (
	"strings"

	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/protobuf/reflect/protoreflect"
	"google.golang.org/protobuf/reflect/protoregistry"
	"google.golang.org/protobuf/types/descriptorpb"

	"github.com/retrygo/retry"
	"github.com/retrygo/retry/retryrpc"
)

// Options are the options of an interceptor. The zero Options repeat only what gRPC's codes allow: UNAVAILABLE, and
// RESOURCE_EXHAUSTED if the server says when to retry.
type Options struct {
	// PolicyFunc returns the policy of one call, which calls it once. It may be the Policy method of a retryconf.Ref,
	// so a reload applies to existing channels. A policy that does not validate fails the call with INTERNAL before any
	// attempt. PolicyFunc must be safe for concurrent use. The interceptors' constructors refuse it together with
	// PolicyFor or a policy that is not zero. Nil means the interceptor's policy.
	PolicyFunc func() retry.Policy

	// PolicyFor is PolicyFunc for each method, "/package.Service/Method". Nil means that all methods have the same
	// policy.
	PolicyFor func(method string) retry.Policy

	// Idempotent reports whether a method, "/package.Service/Method", may take effect twice. An attempt that timed out,
	// a unary call that has received a header, and INTERNAL, UNKNOWN and DATA_LOSS if RetryCodes names them, are
	// repeated only for such methods. UNAVAILABLE without a header is also repeated for other methods, although the
	// connection may have been lost after the call took effect. To prevent that, set Policy.Classify to
	// OnCode(retry.Terminal, codes.Unavailable), or give the call NoRetry. Idempotent must be safe for concurrent use.
	// DeclaredIdempotent is one implementation. Nil means that no method may.
	Idempotent func(method string) bool

	// RetryCodes are codes that are repeated in addition to the default ones. INTERNAL, UNKNOWN, DATA_LOSS and
	// DEADLINE_EXCEEDED are repeated only for idempotent methods. OK, CANCELED, FAILED_PRECONDITION and numbers that
	// are not codes are refused. Nil means none.
	RetryCodes []codes.Code

	// PassAttempt sends, with calls under retry.OneAttempt and retryshell.WithRemoteAttempt, the attempt number of the run that
	// repeats the work, such as that of a trusted client (see UnaryServerInterceptor), so the server can also make only
	// one attempt. Set it for channels to your own services. Zero means that a server sees only this channel's retries.
	PassAttempt bool
}

// Validate returns nil or retry.FieldErrors with every bad field. The interceptors' constructors refuse such Options.
func (o Options) Validate() error {
	shared := o.shared(retry.Policy{})
	return shared.Validate("retrygrpc")
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
		Attempt:     func(e *retryrpc.AttemptError) error { return attemptError{e} },
		Ended:       func(e *retryrpc.CallError) error { return callError{e} },
	}
}

// DeclaredIdempotent reports whether the service's .proto declares the method, "/package.Service/Method", with option
// idempotency_level = NO_SIDE_EFFECTS or IDEMPOTENT. Use it as Options.Idempotent. It knows the services whose
// generated code is linked into the program; for others it returns false.
func DeclaredIdempotent(method string) bool {
	name := strings.Replace(strings.TrimPrefix(method, "/"), "/", ".", 1)
	found, err := protoregistry.GlobalFiles.FindDescriptorByName(protoreflect.FullName(name))
	if err != nil {
		return false
	}
	options, ok := found.Options().(*descriptorpb.MethodOptions)
	return ok && options.GetIdempotencyLevel() != descriptorpb.MethodOptions_IDEMPOTENCY_UNKNOWN
}

// Idempotent returns an option for one call, or with grpc.WithDefaultCallOptions for all of a channel: the method may
// take effect twice, whatever Options.Idempotent returns. It has no effect without an interceptor of this package.
func Idempotent() grpc.CallOption {
	return callOption{apply: func(s *settings) { s.idempotent = true }}
}

// NotIdempotent returns an option for one call: it may not be safe to let the call take effect twice, whatever
// Options.Idempotent returns. UNAVAILABLE is still repeated, even if the connection was lost after the call was sent
// and it may have taken effect. If the call must never take effect twice, give it NoRetry, or WithPolicy with a
// Classify of OnCode(retry.Terminal, codes.Unavailable).
func NotIdempotent() grpc.CallOption {
	return callOption{apply: func(s *settings) { s.idempotent = false }}
}

// NoRetry returns an option for one call: it passes through, and is neither repeated nor observed. A retryPolicy of the
// channel does not repeat it either after its first message was sent; grpc-go still sends a call again that no server
// has seen.
func NoRetry() grpc.CallOption {
	return callOption{apply: func(s *settings) { s.off = true }}
}

// WithPolicy returns an option for one call: the fields that p sets override those of the policy that the call would
// otherwise have, as in retry.Policy.Or. If neither sets any part of a schedule, that of retry.Inline is used. A policy
// that does not validate fails the call with INTERNAL before any attempt. The last of several such options applies.
func WithPolicy(p retry.Policy) grpc.CallOption {
	return callOption{apply: func(s *settings) { s.policy = &p }}
}

// callOption is an option that grpc-go ignores and the interceptors read.
type callOption struct {
	grpc.EmptyCallOption
	apply func(*settings)
}

// settings are the values of the options of one call.
type settings struct {
	policy     *retry.Policy // nil: the interceptor's
	idempotent bool
	off        bool
	repeated   bool // an interceptor of this package above repeats the call
}

func (l *layer) settings(method string, opts []grpc.CallOption) settings {
	s := settings{idempotent: l.Idempotent(method)}
	for _, o := range opts {
		if own, ok := o.(callOption); ok {
			own.apply(&s)
		}
	}
	return s
}
