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

// AttemptError is the failure of one attempt. It is the Err of each retry.Attempt in a run's history; find it with
// errors.As. Policy.Classify gets one for each attempt that ended with an error, including answers. connect.CodeOf
// returns the attempt's code.
type AttemptError struct {
	// Procedure is the full name: "/package.Service/Method". Empty means unknown.
	Procedure string
	// Code is the code of Err: CodeUnknown for an error without a code that is not a context's error.
	Code connect.Code
	// Origin is the side on which the call failed: DEADLINE_EXCEEDED has three origins and one code. It is
	// never zero.
	Origin Origin
	// Idempotent reports whether the call may take effect twice, according to its schema or Options.
	Idempotent bool
	// Hint is how long the server asks the client to wait. Zero means no hint, or a hint of 0.
	Hint time.Duration
	// Veto is the reason why the attempt must not be repeated, whatever its Code. Zero means that it may be repeated.
	Veto Veto
	// Err is the error that connect returned. In a run's history, an error with more than 4 KiB of text, details and
	// metadata is cut to its code and the first KiB of its message; Policy.Classify and the caller get the whole error.
	Err error

	given bool        // the server has sent a hint, perhaps of 0
	class retry.Class // the decision; Unknown before it
}

// newAttemptError returns the AttemptError of an attempt, with the fields that its error determines.
func newAttemptError(err error) *AttemptError {
	e := &AttemptError{Code: connect.CodeOf(err), Origin: Remote, Err: err}
	failed, ok := errors.AsType[*connect.Error](err)
	switch {
	case ok:
	case errors.Is(err, context.Canceled): // from an interceptor
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

// Is reports whether target is retry.ErrAttemptTimeout or context.DeadlineExceeded, if Policy.AttemptTimeout ended the
// attempt.
func (e *AttemptError) Is(target error) bool {
	return e != nil && e.Origin == AttemptTimeout && (target == retry.ErrAttemptTimeout || target == context.DeadlineExceeded)
}

// GivenUp reports whether the server sent a pushback that forbids a retry, or retry.GivenUp reports true for Err.
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
	maxText = 1 << 10 // of a peer's text in a log record
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
	Remote         Origin = iota + 1 // the server's, the connection's, or connect's own
	AttemptTimeout                   // Policy.AttemptTimeout has passed
	Caller                           // the caller has canceled, or its deadline has passed
)

// String returns "remote", "attempt_timeout" or "caller", and "" for the zero Origin.
func (o Origin) String() string { return text(int(o), "Origin", "remote", "attempt_timeout", "caller") }

// Veto is a reason why an attempt must not be repeated, whatever its code. Zero means none.
type Veto uint8

// The vetoes.
const (
	Pushback Veto = iota + 1 // the server's grpc-retry-pushback-ms is negative, not a 32-bit number, or present more than once
	Local                    // RESOURCE_EXHAUSTED that did not come from a server, as for a message above WithSendMaxBytes
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

// callError is the error of a call made with retries. It unwraps to the *retry.Error. Its own type is unexported: use
// errors.As and connect.CodeOf.
type callError struct {
	err error
	own *connect.Error // nil if the one in err, if any, is the right one for the caller
}

// Error returns the text of the run: "retry: gave up after 3 attempts in 1.2s (attempts_exhausted): unavailable: ...".
// A failure that is not repeatable has only the text of its AttemptError, as without this package.
func (e *callError) Error() string {
	if run, ok := e.err.(*retry.Error); ok && run.Reason == retry.TerminalError {
		return run.Last.Error()
	}
	return e.err.Error()
}

// Unwrap returns the *retry.Error, or the error with which the call was refused.
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

// refused returns the error of a run that has failed or was never started.
func refused(err error) error {
	run, ok := err.(*retry.Error)
	if !ok { // refused before any attempt
		return &callError{err, connect.NewError(connect.CodeInternal, err)}
	}
	code := connect.CodeUnavailable // no attempt was made: a gate deferred it for too long
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
	if run.Last != nil && connect.CodeOf(run.Last) == code { // connect itself ended the attempt with that error
		return &callError{err, nil}
	}
	return &callError{err, connect.NewError(code, err)}
}
