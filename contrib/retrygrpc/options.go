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

// Options are the options of the interceptors. A single call can have others: see Idempotent, NoRetry and WithPolicy.
// DeclaredIdempotent is an implementation of the field Idempotent.
type Options = retryrpc.Options[codes.Code]

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

// Idempotent returns an option for one call: the method may take effect twice, whatever Options.Idempotent returns. It
// has no effect without an interceptor of this package.
func Idempotent() grpc.CallOption {
	return callOption{apply: func(s *settings) { s.idempotent = true }}
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
