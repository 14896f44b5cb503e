package retrygrpc

import (
	"slices"
	"strings"

	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/protobuf/reflect/protoreflect"
	"google.golang.org/protobuf/reflect/protoregistry"
	"google.golang.org/protobuf/types/descriptorpb"

	"github.com/retrygo/retry/contrib/retryrpc"
)

// Options are the options of the interceptors. DeclaredIdempotent is an implementation of the field Idempotent. For a
// single call there is the function Idempotent.
type Options = retryrpc.Options[codes.Code]

// DeclaredIdempotent reports whether the service's .proto declares the method, "/package.Service/Method", with option
// idempotency_level = NO_SIDE_EFFECTS or IDEMPOTENT. Use it as Options.Idempotent. It knows the services whose
// generated code is linked into the program. For others it returns false.
func DeclaredIdempotent(method string) bool {
	name := strings.Replace(strings.TrimPrefix(method, "/"), "/", ".", 1)
	found, err := protoregistry.GlobalFiles.FindDescriptorByName(protoreflect.FullName(name))
	if err != nil {
		return false
	}
	options, ok := found.Options().(*descriptorpb.MethodOptions)
	return ok && options.GetIdempotencyLevel() != descriptorpb.MethodOptions_IDEMPOTENCY_UNKNOWN
}

// Idempotent returns an option for one call. The method may take effect twice, whatever Options.Idempotent returns. It
// has no effect without an interceptor of this package.
func Idempotent() grpc.CallOption { return idempotent{} }

// grpc-go ignores these options.
type (
	idempotent struct{ grpc.EmptyCallOption }
	// repeated is among the options of each attempt. Interceptors of this package that find it pass the call through,
	// so layers do not multiply.
	repeated struct{ grpc.EmptyCallOption }
)

func (l *layer) isIdempotent(method string, opts []grpc.CallOption) bool {
	return slices.Contains(opts, Idempotent()) || l.Idempotent(method)
}
