package retrygrpc

import (
	"errors"
	"fmt"
	"time"

	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"

	"github.com/retrygo/retry"
)

// AttemptError is why one attempt failed: the Err of each retry.Attempt in a run's history, and what Policy.Classify is
// asked about, also for what is then an answer and no failure. Find it with errors.As. status.FromError gives the status of the attempt.
type AttemptError struct {
	// Method is the full name: "/package.Service/Method".
	Method string
	// Code is the status code of Err: UNKNOWN for an error that has no status.
	Code codes.Code
	// Origin says whose the failure is: it tells the three kinds of DEADLINE_EXCEEDED apart, whose code is the same.
	Origin Origin
	// Idempotent reports that the call may take effect twice, as Options or the call's own options say.
	Idempotent bool
	// Hint is for how long the server wants to be left alone, by pushback or RetryInfo. Zero means that it has not
	// said, or said 0.
	Hint time.Duration
	// Veto says why the attempt was not to be repeated, whatever the rules say of Code. Zero means that it could be.
	Veto Veto
	// Err is what gRPC returned.
	Err error

	given bool        // the server has said when to come back, be it 0
	class retry.Class // what was decided; Unknown before
}

// Error returns the text of Err, with "(attempt timeout)" or "(not repeated: pushback)" if that applies.
func (e *AttemptError) Error() string {
	if e == nil || e.Err == nil {
		return "<nil>"
	}
	text := e.Err.Error()
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

// Is reports that an attempt that Policy.AttemptTimeout ended is a retry.ErrAttemptTimeout.
func (e *AttemptError) Is(target error) bool {
	return target == retry.ErrAttemptTimeout && e != nil && e.Origin == AttemptTimeout
}

// GRPCStatus returns the status of Err as it came, so that status.FromError and status.Code see it through e.
func (e *AttemptError) GRPCStatus() *status.Status {
	if e == nil {
		return nil
	}
	return status.Convert(e.Err)
}

// Timeout reports whether the attempt failed because it took too long, on either side's clock.
func (e *AttemptError) Timeout() bool { return e != nil && e.Code == codes.DeadlineExceeded }

// Origin says whose a failure is.
type Origin uint8

// The origins. The caller's context is asked first, and then the attempt's: the code alone does not say.
const (
	Remote         Origin = iota + 1 // the server's, the connection's, or grpc-go's own
	AttemptTimeout                   // Policy.AttemptTimeout has passed
	Caller                           // the caller has canceled, or its deadline has passed
)

// String returns "remote", "attempt_timeout" or "caller", and "" for the zero Origin.
func (o Origin) String() string { return text(int(o), "Origin", "remote", "attempt_timeout", "caller") }

// Veto says why an attempt must not be repeated, whatever its code is.
type Veto uint8

// The vetoes.
const (
	Pushback    Veto = iota + 1 // the server's grpc-retry-pushback-ms is negative, no 32-bit number, or there are several
	AnswerBegun                 // a unary call that is not idempotent has got a header: the server has worked on it
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

// callError is what a call returns that was made with retries. It has the status that a caller of gRPC expects, unwraps
// to the *retry.Error, and is found by neither type: use errors.As and status.FromError.
type callError struct {
	err error
	st  *status.Status
}

// Error returns the text of the run: "retry: gave up after 3 attempts in 1.2s (attempts_exhausted): rpc error: ...". A
// failure that was not to be repeated is the server's answer, and has the text of its AttemptError alone.
func (e *callError) Error() string {
	if run, ok := e.err.(*retry.Error); ok && run.Reason == retry.TerminalError {
		return run.Last.Error()
	}
	return e.err.Error()
}

// Unwrap returns the *retry.Error, or what has refused the call.
func (e *callError) Unwrap() error { return e.err }

// GRPCStatus returns the status of the last attempt, with its details, or that of the caller who has gone.
func (e *callError) GRPCStatus() *status.Status { return e.st }

// returned turns what the run has ended with into what its caller gets.
func (c *call) returned(err error) error {
	if err == nil {
		return c.answer
	}
	return refused(err)
}

// refused is returned for a run that has failed, or that was not made.
func refused(err error) error {
	run, ok := err.(*retry.Error)
	if !ok { // refused before any attempt
		return &callError{err, status.New(codes.Internal, err.Error())}
	}
	code := codes.Unavailable // no attempt was made: a gate has put it off for too long
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
	// grpc-go itself ends a wait so, too. If the attempt under way has ended so, its text is kept.
	if run.Last != nil {
		if st := lastStatus(run.Last); st.Code() == code {
			return &callError{err, st}
		}
	}
	return &callError{err, status.New(code, err.Error())}
}

// lastStatus returns the status of an attempt without what marks have put around it.
func lastStatus(err error) *status.Status {
	var failed *AttemptError
	if errors.As(err, &failed) {
		return failed.GRPCStatus()
	}
	return status.Convert(err)
}
