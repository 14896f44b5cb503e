package retryotel

import (
	"context"
	"errors"
	"fmt"
	"reflect"
	"strings"

	"go.opentelemetry.io/otel/attribute"

	"github.com/retrygo/retry"
	"github.com/retrygo/retry/contrib/retryrpc"
)

// keyErrorType is error.type of OpenTelemetry's conventions. Their Go package, semconv, is a new one in each release of
// the API, which a program would have to raise with it.
const keyErrorType = attribute.Key("error.type")

// wrapType is the type of the result of fmt.Errorf with one %w. Like the marks of package retry it does not describe an
// error.
var wrapType = reflect.TypeOf(fmt.Errorf("%w", errors.ErrUnsupported))

var retryPath = reflect.TypeFor[retry.Policy]().PkgPath()

// errorType returns error.type for the error of an attempt. It is the result of an ErrorType method in err's chain, as the
// errors of retryhttp ("503", "conn_refused") and contrib/retrygrpc have, the code of a gRPC status ("UNAVAILABLE"),
// "timeout", "canceled", or otherwise the Go type below marks and fmt.Errorf. For nil, which only an Event not made by
// package retry has, it is "_OTHER".
func errorType(err error) string {
	if err == nil {
		return other
	}
	var typed interface{ ErrorType() string }
	if errors.As(err, &typed) {
		if text := typed.ErrorType(); text != "" {
			return bounded(text, maxName)
		}
	}
	if code := grpcCode(err); code != "" {
		return code
	}
	switch {
	case errors.Is(err, context.DeadlineExceeded):
		return "timeout"
	case errors.Is(err, context.Canceled):
		return "canceled"
	default:
		return typeName(bare(err))
	}
}

// typeName returns the type of err as the conventions write it, "net.OpError" with the whole path of its package, and
// "*net.OpError" with the package's name for a pointer.
func typeName(err error) string {
	t := reflect.TypeOf(err)
	if t.PkgPath() != "" {
		return t.PkgPath() + "." + t.Name()
	}
	return t.String()
}

// grpcCode returns the name of the code of the first error in err's tree that has a gRPC status, "UNKNOWN" for a code
// that gRPC does not have, and "" if there is no such error.
//
// It calls GRPCStatus() *status.Status by reflection. An interface with that method needs
// google.golang.org/grpc/status, which adds 39 packages and 2.6 MB to each program that imports this package.
// MethodByName gets constants, so the linker still drops unused methods.
func grpcCode(err error) string {
	for err != nil {
		if status, ok := result(reflect.ValueOf(err).MethodByName("GRPCStatus")); ok {
			if code, ok := result(status.MethodByName("Code")); ok && code.CanUint() && code.Uint() > 0 {
				return (&retryrpc.AttemptError{Code: retryrpc.Code(code.Uint())}).ErrorType()
			}
		}
		if several, ok := err.(interface{ Unwrap() []error }); ok {
			for _, err := range several.Unwrap() {
				if code := grpcCode(err); code != "" {
					return code
				}
			}
		}
		err = errors.Unwrap(err)
	}
	return ""
}

// result calls a method without arguments that returns one value.
func result(method reflect.Value) (reflect.Value, bool) {
	if !method.IsValid() || method.Type().NumIn() != 0 || method.Type().NumOut() != 1 {
		return reflect.Value{}, false
	}
	return method.Call(nil)[0], true
}

// bare returns err without marks and the wrapping of fmt.Errorf.
func bare(err error) error {
	for {
		inner := errors.Unwrap(err)
		if inner == nil || !isMark(err) && reflect.TypeOf(err) != wrapType {
			return err
		}
		err = inner
	}
}

// isMark reports whether err, which wraps one error, is a mark of package retry.
func isMark(err error) bool {
	t := reflect.TypeOf(err)
	if t.Kind() == reflect.Pointer {
		t = t.Elem()
	}
	return t.PkgPath() == retryPath
}

// maxText is the length in bytes beyond which the text of an error is cut, as in retryslog by default. A server can
// answer with megabytes, and a span has the text twice.
const maxText = 1024

// maxName is the length in bytes beyond which a policy's name, which a tenant may have chosen, is cut. Package
// retryslog uses the same. It also bounds the text that an error returns as its type.
const maxName = 128

// textOf returns the text of err, at most maxText bytes of it, also if its Error method panics, as package fmt shows it.
func textOf(err error) string { return bounded(fmt.Sprint(err), maxText) }

// nameOf returns the name of a policy, at most maxName bytes of it.
func nameOf(policy string) string { return bounded(policy, maxName) }

// bounded returns whole as UTF-8, cut after limit bytes and followed by its full length.
func bounded(whole string, limit int) string {
	text := valid(whole)
	if len(text) <= limit {
		return text
	}
	return fmt.Sprintf("%s... (%d bytes)", strings.ToValidUTF8(text[:limit], ""), len(whole)) // not half of a character
}

// valid returns text as UTF-8. OTLP has no other strings, and a single invalid one fails the whole export.
func valid(text string) string { return strings.ToValidUTF8(text, "\uFFFD") }
