package retrygrpc

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"strings"
	"time"
	"unicode"

	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"

	"github.com/retrygo/retry"
)

// AttemptError is the failure of one attempt. It is the Err of each retry.Attempt in a run's history; find it with
// errors.As. Policy.Classify gets one for each status except OK, including answers. status.FromError returns the
// attempt's status.
type AttemptError struct {
	// Method is the full name: "/package.Service/Method". Empty means unknown.
	Method string
	// Code is the status code of Err: UNKNOWN for an error without a status.
	Code codes.Code
	// Origin is the side on which the call failed: DEADLINE_EXCEEDED has three origins and one code. It is
	// never zero.
	Origin Origin
	// Idempotent reports whether the call may take effect twice, according to Options or the call's own options.
	Idempotent bool
	// Hint is how long the server asks the client to wait, by pushback or RetryInfo. Zero means no hint, or a hint of
	// 0.
	Hint time.Duration
	// Veto is the reason why the attempt must not be repeated, whatever its Code. Zero means that it may be repeated.
	Veto Veto
	// Err is the error that gRPC returned. In a run's history, a status of more than 4 KiB is cut to its code and the
	// first KiB of its message; Policy.Classify and the caller get the whole status.
	Err error

	given bool        // the server has sent a hint, perhaps of 0
	class retry.Class // the decision; Unknown before it
}

// Error returns the text of Err, with "(attempt timeout)" or "(not repeated: pushback)" if that applies. A text of more
// than 1 KiB is cut to one line of that length.
func (e *AttemptError) Error() string {
	if e == nil || e.Err == nil {
		return "<nil>"
	}
	text := e.Err.Error()
	if len(text) > maxText {
		text = line(text)
	}
	if e.Origin == AttemptTimeout {
		text += " (attempt timeout)"
	}
	if e.Veto != 0 {
		text += fmt.Sprintf(" (not repeated: %s)", e.Veto)
	}
	return text
}

// Unwrap returns Err.
func (e *AttemptError) Unwrap() error {
	if e == nil {
		return nil
	}
	return e.Err
}

// Is reports whether target is retry.ErrAttemptTimeout or context.DeadlineExceeded, if Policy.AttemptTimeout ended the
// attempt.
func (e *AttemptError) Is(target error) bool {
	return e != nil && e.Origin == AttemptTimeout && (target == retry.ErrAttemptTimeout || target == context.DeadlineExceeded)
}

// GivenUp reports whether the server sent a pushback that forbids a retry, or retry.GivenUp reports true for Err.
func (e *AttemptError) GivenUp() bool {
	return e != nil && (e.Veto == Pushback || retry.GivenUp(e.Err))
}

// GRPCStatus returns the unchanged status of Err, for status.FromError and status.Code.
func (e *AttemptError) GRPCStatus() *status.Status {
	if e == nil {
		return nil
	}
	return status.Convert(e.Err)
}

// Timeout reports whether the attempt failed because it took too long, on either side's clock.
func (e *AttemptError) Timeout() bool { return e != nil && e.Code == codes.DeadlineExceeded }

// ErrorType returns the code as gRPC spells it, "UNAVAILABLE", for OpenTelemetry's error.type. It is "UNKNOWN" for a
// number that is not a code.
func (e *AttemptError) ErrorType() string {
	if e == nil {
		return ""
	}
	return codeName(e.Code)
}

// LogValue returns a group of method and code, for log/slog. The text of the error is not in it.
func (e *AttemptError) LogValue() slog.Value {
	if e == nil {
		return slog.GroupValue()
	}
	return slog.GroupValue(slog.String("method", line(e.Method)), slog.String("code", e.ErrorType()))
}

// codeName returns the code as protocol buffers name it: "UNAVAILABLE". Clients treat a number that is not a code as
// UNKNOWN.
func codeName(code codes.Code) string {
	if int(code) >= len(codeNames) {
		code = codes.Unknown
	}
	return codeNames[code]
}

var codeNames = [...]string{
	codes.OK: "OK", codes.Canceled: "CANCELLED", codes.Unknown: "UNKNOWN", codes.InvalidArgument: "INVALID_ARGUMENT",
	codes.DeadlineExceeded: "DEADLINE_EXCEEDED", codes.NotFound: "NOT_FOUND", codes.AlreadyExists: "ALREADY_EXISTS",
	codes.PermissionDenied: "PERMISSION_DENIED", codes.ResourceExhausted: "RESOURCE_EXHAUSTED",
	codes.FailedPrecondition: "FAILED_PRECONDITION", codes.Aborted: "ABORTED", codes.OutOfRange: "OUT_OF_RANGE",
	codes.Unimplemented: "UNIMPLEMENTED", codes.Internal: "INTERNAL", codes.Unavailable: "UNAVAILABLE",
	codes.DataLoss: "DATA_LOSS", codes.Unauthenticated: "UNAUTHENTICATED",
}

const (
	maxText = 1 << 10 // of a peer's text in a log record
	// A status with a few details, such as RetryInfo and ErrorInfo, is far smaller. gRPC lets a server send 16 MiB.
	maxStatus = 4 << 10
)

// line returns s as one line of valid UTF-8 without control characters, shortened. It does not keep a long s in memory.
func line(s string) string {
	if len(s) > maxText {
		s = s[:maxText] + "..."
	}
	return strings.Map(func(r rune) rune {
		if unicode.IsControl(r) || r == '\u2028' || r == '\u2029' {
			return ' '
		}
		return r
	}, strings.ToValidUTF8(s, "\uFFFD"))
}

// Origin is the side that a failure comes from. Zero means none.
type Origin uint8

// The origins. The caller's context is checked first, then the attempt's, since the code alone does not show the
// origin.
const (
	Remote         Origin = iota + 1 // the server's, the connection's, or grpc-go's own
	AttemptTimeout                   // Policy.AttemptTimeout has passed
	Caller                           // the caller has canceled, or its deadline has passed
)

// String returns "remote", "attempt_timeout" or "caller", and "" for the zero Origin.
func (o Origin) String() string { return text(int(o), "Origin", "remote", "attempt_timeout", "caller") }

// Veto is a reason why an attempt must not be repeated, whatever its code. Zero means none.
type Veto uint8

// The vetoes.
const (
	Pushback    Veto = iota + 1 // the server's grpc-retry-pushback-ms is negative, not a 32-bit number, or present more than once
	AnswerBegun                 // a unary call that is not idempotent has received a header: the server has worked on it
)

// String returns "pushback" or "answer_begun", and "" for the zero Veto.
func (v Veto) String() string { return text(int(v), "Veto", "pushback", "answer_begun") }

// text returns the i-th of the texts, counted from 1.
func text(i int, kind string, texts ...string) string {
	switch {
	case i == 0:
		return ""
	case i <= len(texts):
		return texts[i-1]
	default:
		return fmt.Sprintf("%s(%d)", kind, i)
	}
}

// callError is the error of a call made with retries. It has the status that a caller of gRPC expects and unwraps to
// the *retry.Error. Its own type is unexported: use errors.As and status.FromError.
type callError struct {
	err error
	st  *status.Status
}

// Error returns the text of the run: "retry: gave up after 3 attempts in 1.2s (attempts_exhausted): rpc error: ...". A
// failure that is not repeatable has only the text of its AttemptError, as without this package.
func (e *callError) Error() string {
	if run, ok := e.err.(*retry.Error); ok && run.Reason == retry.TerminalError {
		return run.Last.Error()
	}
	return e.err.Error()
}

// Unwrap returns the *retry.Error, or the error with which the call was refused.
func (e *callError) Unwrap() error { return e.err }

// GRPCStatus returns the status of the last attempt, with its details, or CANCELED or DEADLINE_EXCEEDED if the caller's
// context has ended.
func (e *callError) GRPCStatus() *status.Status { return e.st }

// returned converts the result of the run to that of the call.
func (c *call) returned(err error) error {
	run, ok := err.(*retry.Error)
	switch {
	case err == nil && c.answered:
		return c.last
	case err == nil:
		return nil
	case ok && run.Last != nil && c.last != nil && !c.answered:
		run.Last = c.last
	}
	return refused(err)
}

// refused returns the error of a run that has failed or was never started.
func refused(err error) error {
	run, ok := err.(*retry.Error)
	if !ok { // refused before any attempt
		return &callError{err, status.New(codes.Internal, err.Error())}
	}
	code := codes.Unavailable // no attempt was made: a gate deferred it for too long
	switch run.Reason {
	case retry.CallerCanceled:
		code = codes.Canceled
	case retry.DeadlinePassed:
		code = codes.DeadlineExceeded
	default:
		if run.Last != nil {
			return &callError{err, lastStatus(run.Last)}
		}
	}
	// grpc-go itself ends a wait in the same way. If the current attempt ended like this, its text is kept.
	if run.Last != nil {
		if st := lastStatus(run.Last); st.Code() == code {
			return &callError{err, st}
		}
	}
	return &callError{err, status.New(code, err.Error())}
}

// lastStatus returns the status of an attempt without the marks around it.
func lastStatus(err error) *status.Status {
	if failed, ok := errors.AsType[*AttemptError](err); ok {
		return failed.GRPCStatus()
	}
	return status.Convert(err)
}
