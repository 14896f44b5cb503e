package retryrpc

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"slices"
	"strings"
	"time"
	"unicode"

	"github.com/retrygo/retry"
)

// AttemptError is the failure of one attempt. It is in the Err of each retry.Attempt in a run's history, where
// errors.As finds it. Policy.Classify gets one for each attempt that ended with an error, including answers.
type AttemptError struct {
	// Method is the full name, "/package.Service/Method". Empty means unknown.
	Method string
	// Code is the status code of Err, Unknown for an error without one. It is Unavailable for a connection that was
	// reset, whatever code the library has for that.
	Code Code
	// Origin is the side on which the call failed. In an AttemptError of an adapter it is never zero.
	Origin Origin
	// Idempotent reports whether the call may take effect twice, according to its schema or options.
	Idempotent bool
	// Hint is how long the server asks the client to wait. Zero means no hint.
	Hint time.Duration
	// Veto is the reason why the attempt must not be repeated, whatever its Code. Zero means that it may be repeated.
	Veto Veto
	// Err is the library's error. In a run's history, one of more than 4 KiB is cut to its code and the first KiB of
	// its message. Policy.Classify and the caller get the whole error.
	Err error

	kind  string      // for ErrorType, or empty for the code
	class retry.Class // the decision, Unknown before it
}

// Error returns the text of Err, with "(attempt timeout)" or "(not repeated: pushback)" if that applies. A text of more
// than 1 KiB is cut to one line of that length.
func (e *AttemptError) Error() string {
	if e == nil || e.Err == nil {
		return "<nil>"
	}
	text := e.Err.Error()
	if len(text) > maxText {
		text = Bounded(text)
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
	if e == nil || e.Origin != AttemptTimeout {
		return false
	}
	return target == retry.ErrAttemptTimeout || target == context.DeadlineExceeded
}

// GivenUp reports whether the server sent a pushback that forbids a retry, or retry.IsGivenUp reports true for Err.
func (e *AttemptError) GivenUp() bool {
	return e != nil && (e.Veto == Pushback || retry.IsGivenUp(e.Err))
}

// Timeout reports whether the attempt failed because it took too long, on either side's clock.
func (e *AttemptError) Timeout() bool { return e != nil && e.Code == DeadlineExceeded }

// ErrorType returns the code as the library spells it, "UNAVAILABLE" in gRPC and "unavailable" in Connect, for
// OpenTelemetry's error.type. It is "UNKNOWN" for a number that is not a code, and "attempt_timeout" if
// Policy.AttemptTimeout ended the attempt, as in retryhttp, since the code is then the same as for a deadline of the server.
func (e *AttemptError) ErrorType() string {
	switch {
	case e == nil:
		return ""
	case e.Origin == AttemptTimeout:
		return AttemptTimeout.String()
	default:
		return e.spelled()
	}
}

// spelled returns the code as the library spells it.
func (e *AttemptError) spelled() string {
	switch {
	case e.kind != "":
		return e.kind
	case e.Code > Unauthenticated: // as clients treat it
		return Unknown.String()
	default:
		return e.Code.String()
	}
}

// LogValue returns a group of method and code, for log/slog. The text of the error is not in it.
func (e *AttemptError) LogValue() slog.Value {
	if e == nil {
		return slog.GroupValue()
	}
	return slog.GroupValue(slog.String("method", Bounded(e.Method)), slog.String("code", e.spelled()))
}

// Classify returns Retryable or Terminal for an error with an *AttemptError, by the table of the package documentation
// without opt-ins, and Unknown for every other error.
func Classify(err error) retry.Class {
	switch e, ok := find(err); {
	case !ok:
		return retry.Unknown
	case e != nil && e.repeatable(nil):
		return retry.Retryable
	default:
		return retry.Terminal
	}
}

// find returns the *AttemptError in err. It does not allocate if that is reached by Unwrap() error.
func find(err error) (*AttemptError, bool) {
	for at := err; at != nil; {
		if e, ok := at.(*AttemptError); ok {
			return e, true
		}
		wraps, ok := at.(interface{ Unwrap() error })
		if !ok {
			break
		}
		at = wraps.Unwrap()
	}
	var e *AttemptError
	return e, errors.As(err, &e)
}

// repeatable reports whether the code allows another attempt.
func (e *AttemptError) repeatable(optedIn []Code) bool {
	if e.Veto != 0 || e.Origin == Caller {
		return false
	}
	opted := slices.Contains(optedIn, e.Code)
	switch e.Code {
	case Unavailable: // the only code for automatic retries, by AIP-194
		return true
	case ResourceExhausted: // often a quota, which retries only consume
		return e.Hint > 0 || opted
	case DeadlineExceeded: // it may have taken effect, on either side's clock
		return e.Idempotent
	case Internal, Unknown, DataLoss: // these may have taken effect too
		return e.Idempotent && opted
	case Canceled, FailedPrecondition:
		return false
	default:
		return opted
	}
}

// Origin is the side that a failure comes from. Zero means none.
type Origin uint8

// The origins. The caller's context is checked first, then the attempt's, since the code alone does not show the
// origin.
const (
	Remote         Origin = iota + 1 // the server's, the connection's, or the library's own
	AttemptTimeout                   // Policy.AttemptTimeout has passed
	Caller                           // the caller has canceled, or its deadline has passed
)

// String returns "remote", "attempt_timeout" or "caller", and "" for the zero Origin.
func (o Origin) String() string { return name(int(o), "Origin", "remote", "attempt_timeout", "caller") }

// Veto is a reason why an attempt must not be repeated, whatever its code. Zero means none.
type Veto uint8

// The vetoes.
const (
	Pushback    Veto = iota + 1 // the server's grpc-retry-pushback-ms is negative, not a 32-bit number, or present more than once
	AnswerBegun                 // a unary call that is not idempotent has received a header, so the server has worked on it
	InDoubt                     // the server says that the call may have taken effect, and it is not idempotent
	Local                       // RESOURCE_EXHAUSTED that did not come from a server, such as for a message that is too large
)

// String returns "pushback", "answer_begun", "in_doubt" or "local", and "" for the zero Veto.
func (v Veto) String() string {
	return name(int(v), "Veto", "pushback", "answer_begun", "in_doubt", "local")
}

// name returns the i-th of the names, counted from 1.
func name(i int, kind string, names ...string) string {
	switch {
	case i == 0:
		return ""
	case i <= len(names):
		return names[i-1]
	default:
		return fmt.Sprintf("%s(%d)", kind, i)
	}
}

const maxText = 1 << 10 // of a peer's text in a log record

// MaxRecord is the maximum number of bytes of an error that an adapter keeps for a run's history. An error with a few
// details, such as RetryInfo and ErrorInfo, is far smaller, but a server may send 16 MiB.
const MaxRecord = 4 << 10

// Bounded returns text as one line of valid UTF-8 without control characters, cut after 1 KiB. It does not keep a long
// text in memory.
func Bounded(text string) string {
	if len(text) > maxText {
		text = text[:maxText] + "..."
	}
	return strings.Map(func(r rune) rune {
		if unicode.IsControl(r) || r == '\u2028' || r == '\u2029' {
			return ' '
		}
		return r
	}, strings.ToValidUTF8(text, "\uFFFD"))
}
