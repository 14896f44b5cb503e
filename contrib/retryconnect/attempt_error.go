package retryconnect

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"strings"
	"time"
	"unicode"

	"connectrpc.com/connect"

	"github.com/retrygo/retry"
)

// AttemptError is why one attempt failed: the Err of each retry.Attempt in a run's history. Find it with errors.As.
// Policy.Classify gets one for each failed attempt, an answer included. connect.CodeOf returns the attempt's code.
type AttemptError struct {
	// Procedure is the full name: "/package.Service/Method".
	Procedure string
	// Code is the code of Err: CodeUnknown for an error without one that is not of a context.
	Code connect.Code
	// Origin says on which side the call failed: three kinds of DEADLINE_EXCEEDED have the same code.
	Origin Origin
	// Idempotent reports whether the call may take effect twice, as its schema or Options say.
	Idempotent bool
	// Hint is how long the server asks to stay away. Zero means no hint, or one of 0.
	Hint time.Duration
	// Veto says why the attempt must not be repeated, whatever the rules say of Code. Zero means that it may be.
	Veto Veto
	// Err is the error that connect returned. In a run's history, one with more than 4 KiB of text, details and metadata
	// is cut to its code and the first KiB of its message; Policy.Classify and the caller get all of it.
	Err error

	given bool        // the server has sent a hint, perhaps of 0
	class retry.Class // what was decided; Unknown before
}

// newAttemptError returns what is known of an attempt from its error alone.
func newAttemptError(err error) *AttemptError {
	e := &AttemptError{Code: connect.CodeOf(err), Origin: Remote, Err: err}
	failed, ok := errors.AsType[*connect.Error](err)
	switch {
	case ok:
	case errors.Is(err, context.Canceled): // of an interceptor
		e.Code = connect.CodeCanceled
	case errors.Is(err, context.DeadlineExceeded):
		e.Code = connect.CodeDeadlineExceeded
	}
	says := adviceOf(failed)
	e.Hint, e.given = says.delay, says.given
	switch {
	case says.stop:
		e.Veto = Pushback
	case e.Code == connect.CodeResourceExhausted && !e.given && !connect.IsWireError(err):
		e.Veto = Local
	}
	return e
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

// Is reports that an attempt that Policy.AttemptTimeout ended is a retry.ErrAttemptTimeout and so a
// context.DeadlineExceeded.
func (e *AttemptError) Is(target error) bool {
	return e != nil && e.Origin == AttemptTimeout && (target == retry.ErrAttemptTimeout || target == context.DeadlineExceeded)
}

// GivenUp reports whether the server says that it has given up, by a pushback that forbids a retry, or retry.GivenUp
// reports it of Err.
func (e *AttemptError) GivenUp() bool {
	return e != nil && (e.Veto == Pushback || retry.GivenUp(e.Err))
}

// Timeout reports whether the attempt failed because it took too long, on either side's clock.
func (e *AttemptError) Timeout() bool { return e != nil && e.Code == connect.CodeDeadlineExceeded }

// ErrorType returns the code as connect spells it, "unavailable", for OpenTelemetry's error.type. It is "unknown" for a
// number that is not a code.
func (e *AttemptError) ErrorType() string {
	switch {
	case e == nil:
		return ""
	case !known(e.Code):
		return connect.CodeUnknown.String()
	}
	return e.Code.String()
}

// LogValue returns a group of method and code, for log/slog. The text of the error is not in it.
func (e *AttemptError) LogValue() slog.Value {
	if e == nil {
		return slog.GroupValue()
	}
	return slog.GroupValue(slog.String("method", line(e.Procedure)), slog.String("code", e.ErrorType()))
}

const (
	maxText = 1 << 10 // of a peer's text in a log line
	// An error with a few details, such as RetryInfo and ErrorInfo, is far smaller. connect sets no limit.
	maxError = 4 << 10
)

// short returns e, or e with an Err that is cut if Err is long.
func (e *AttemptError) short() *AttemptError {
	failed, ok := errors.AsType[*connect.Error](e.Err)
	if !ok {
		return e
	}
	size := len(failed.Message())
	for _, detail := range failed.Details() {
		size += len(detail.Type()) + len(detail.Bytes())
	}
	for name, values := range failed.Meta() {
		size += len(name) + len(strings.Join(values, ""))
	}
	if size <= maxError {
		return e
	}
	cut := *e
	cut.Err = connect.NewError(e.Code, errors.New(line(failed.Message())))
	return &cut
}

// line returns s as one line of valid UTF-8 without control characters, shortened. It does not hold on to a long s.
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

// Origin says whose a failure is.
type Origin uint8

// The origins. The caller's context is asked first, and then the attempt's: the code alone does not say.
const (
	Remote         Origin = iota + 1 // the server's, the connection's, or connect's own
	AttemptTimeout                   // Policy.AttemptTimeout has passed
	Caller                           // the caller has canceled, or its deadline has passed
)

// String returns "remote", "attempt_timeout" or "caller", and "" for the zero Origin.
func (o Origin) String() string { return text(int(o), "Origin", "remote", "attempt_timeout", "caller") }

// Veto says why an attempt must not be repeated, whatever its code is.
type Veto uint8

// The vetoes.
const (
	Pushback Veto = iota + 1 // the server's grpc-retry-pushback-ms is negative, no 32-bit number, or there are several
	Local                    // RESOURCE_EXHAUSTED that no server has written, as for a message above WithSendMaxBytes
)

// String returns "pushback" or "local", and "" for the zero Veto.
func (v Veto) String() string { return text(int(v), "Veto", "pushback", "local") }

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

// callError is what a call returns that was made with retries. It unwraps to the *retry.Error, and is found by neither
// type: use errors.As and connect.CodeOf.
type callError struct {
	err error
	own *connect.Error // nil if the one in err, if any, is what a caller of connect expects
}

// Error returns the text of the run: "retry: gave up after 3 attempts in 1.2s (attempts_exhausted): unavailable: ...". A
// failure that is not repeatable has the text of its AttemptError alone, as without this package.
func (e *callError) Error() string {
	if run, ok := e.err.(*retry.Error); ok && run.Reason == retry.TerminalError {
		return run.Last.Error()
	}
	return e.err.Error()
}

// Unwrap returns the *retry.Error, or what has refused the call.
func (e *callError) Unwrap() error { return e.err }

// As finds a *connect.Error of CANCELED or DEADLINE_EXCEEDED if the caller's context has ended, whatever the last
// attempt's code was.
func (e *callError) As(target any) bool {
	found, ok := target.(**connect.Error)
	if ok = ok && e.own != nil; ok {
		*found = e.own
	}
	return ok
}

// refused is returned for a run that has failed, or that was not made.
func refused(err error) error {
	run, ok := err.(*retry.Error)
	if !ok { // refused before any attempt
		return &callError{err, connect.NewError(connect.CodeInternal, err)}
	}
	code := connect.CodeUnavailable // no attempt was made: a gate has put it off for too long
	switch run.Reason {
	case retry.CallerCanceled:
		code = connect.CodeCanceled
	case retry.DeadlinePassed:
		code = connect.CodeDeadlineExceeded
	default:
		if run.Last != nil {
			return &callError{err, nil}
		}
	}
	if run.Last != nil && connect.CodeOf(run.Last) == code { // connect itself has ended the attempt so
		return &callError{err, nil}
	}
	return &callError{err, connect.NewError(code, err)}
}
