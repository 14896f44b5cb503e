package retryrpc

import "fmt"

// Code is a status code. gRPC and Connect use the same numbers.
type Code uint32

// The codes, as https://grpc.io/docs/guides/status-codes/ describes them.
const (
	OK Code = iota
	Canceled
	Unknown
	InvalidArgument
	DeadlineExceeded
	NotFound
	AlreadyExists
	PermissionDenied
	ResourceExhausted
	FailedPrecondition
	Aborted
	OutOfRange
	Unimplemented
	Internal
	Unavailable
	DataLoss
	Unauthenticated
)

var codeNames = [...]string{
	"OK", "CANCELLED", "UNKNOWN", "INVALID_ARGUMENT", "DEADLINE_EXCEEDED", "NOT_FOUND", "ALREADY_EXISTS",
	"PERMISSION_DENIED", "RESOURCE_EXHAUSTED", "FAILED_PRECONDITION", "ABORTED", "OUT_OF_RANGE", "UNIMPLEMENTED",
	"INTERNAL", "UNAVAILABLE", "DATA_LOSS", "UNAUTHENTICATED",
}

// String returns the code as protocol buffers name it, such as "UNAVAILABLE", and "Code(17)" for a number that is not a
// code.
func (c Code) String() string {
	if c > Unauthenticated {
		return fmt.Sprintf("Code(%d)", uint32(c))
	}
	return codeNames[c]
}

// isAnswer reports whether a healthy server answers with the code. The others are the codes that OpenTelemetry's
// conventions for RPC count as errors of the server, RESOURCE_EXHAUSTED and CANCELED.
func (c Code) isAnswer() bool {
	switch c {
	case InvalidArgument, NotFound, AlreadyExists, PermissionDenied, Unauthenticated, FailedPrecondition, Aborted,
		OutOfRange:
		return true
	default:
		return false
	}
}

// mayHaveTakenEffect reports whether a call that ended with the code may have done its work, on whichever side the code arose.
// UNAVAILABLE is not among them. A server that sends it has not done the work, and a client has it for calls that were
// lost and for calls that were never sent.
func (c Code) mayHaveTakenEffect() bool {
	switch c {
	case Canceled, Unknown, DeadlineExceeded, Internal, DataLoss:
		return true
	default:
		return false
	}
}
