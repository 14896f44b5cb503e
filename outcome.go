package retry

import (
	"context"
	"errors"
	"strconv"
	"time"
)

// Attempt is the record of one failed attempt.
type Attempt struct {
	Number   int // from 1
	Start    time.Time
	Duration time.Duration
	Class    Class         // the class that was acted on: Retryable or Terminal
	Err      error         // what fn returned
	Delay    time.Duration // the wait decided on after it, even if that was cut short; 0 if none was
}

// String returns one line: "attempt 1 failed after 50ms (retryable): dial tcp ...; wait 100ms".
func (a Attempt) String() string {
	s := "attempt " + strconv.Itoa(a.Number) + " failed after " + rounded(a.Duration).String() + " (" + a.Class.String() + ")"
	if a.Err != nil {
		s += ": " + a.Err.Error()
	}
	if a.Delay > 0 {
		s += "; wait " + compact(a.Delay)
	}
	return oneLine(s)
}

// MarshalText returns the text of String, so that a log as JSON shows the error.
func (a Attempt) MarshalText() ([]byte, error) { return []byte(a.String()), nil }

// Outcome is the record of a run: how it ended, after how many attempts, and which of them failed.
type Outcome struct {
	Policy   string // Policy.Name
	Status   Status // any but Waiting
	Reason   Reason // zero if Status is Succeeded
	Gated    bool   // a deferral of Policy.Gate ended the run
	Attempts int    // attempts made, a successful last one included; 0 if there was none
	Elapsed  time.Duration
	// History holds the failed attempts in order: the first one and the newest 63, so that a run of any length
	// holds bounded memory. It is the receiver's own copy.
	History []Attempt
}

// String returns one line: "succeeded after 3 attempts in 1.2s", "dead_letter (attempts_exhausted) after 8 attempts in 10m35s".
func (o Outcome) String() string {
	d := Decision{Status: o.Status, Reason: o.Reason}
	return d.String() + " after " + counted(o.Attempts) + " in " + rounded(o.Elapsed).String()
}

// Event is what Policy.Observe is called with: N failed attempts and the end of their run make N+1 events. An attempt that
// succeeds appears in the final event alone, and the last failure of a run as an attempt and as the end.
type Event struct {
	Policy  string        // Policy.Name
	Elapsed time.Duration // from the start of the run to the end of Attempt; in the final event that of Outcome
	Attempt Attempt       // the attempt that failed; zero in the final event
	// Decision is what was decided about the attempt; in the final event it is how the run ended. If it is Waiting,
	// nothing then known forbade the retry: only a canceled caller, the clock or a gate can still end the run during
	// the wait.
	Decision Decision
	Outcome  *Outcome // the record of the run in the final event, and nil before it
	Err      error    // in the final event what Do returns, in a copy: an *Error, or nil after a success
}

// Error is what Do returns on every failure of a run. errors.Is and errors.As reach its Reason, the last error and
// the cause; the table in the package documentation says which answers hold for which ending.
type Error struct {
	Outcome
	// Last is what fn returned last, marks and wrapping included. Nil if no attempt was made.
	Last error

	ctx     context.Context // the caller's, if it has ended, for Cause
	maxHint time.Duration   // the policy's, for HintTooLong
}

// NewError returns the *Error of a run under p that ended with outcome o, last being the error of its last attempt. It is
// for shells other than Do. ctx is the caller's context.
func NewError(ctx context.Context, p Policy, o Outcome, last error) *Error {
	e := &Error{Outcome: o, Last: last}
	switch {
	case o.Reason == CallerCanceled, o.Reason == DeadlinePassed && ctx.Err() != nil: // which may lag behind the clock
		e.ctx = ctx
	case o.Reason == HintTooLong:
		e.maxHint = p.maxHint()
	}
	return e
}

// Cause returns context.Cause of the caller's context for CallerCanceled and DeadlinePassed, and nil for any other
// ending.
func (e *Error) Cause() error {
	switch {
	case e == nil:
		return nil
	case e.ctx != nil:
		return context.Cause(e.ctx)
	case e.Reason == DeadlinePassed:
		return context.DeadlineExceeded
	default:
		return nil
	}
}

// Hint returns how long the last error asked to wait (see After), for a caller that comes back later by itself, as after
// HintTooLong. 0 means that it did not ask.
func (e *Error) Hint() time.Duration {
	if e == nil {
		return 0
	}
	var f finding
	f.walk(e.Last, scope{})
	return f.hint
}

// Error returns one line: "retry: gave up after 3 attempts in 1.2s (attempts_exhausted): dial tcp ...". The policy's
// name, if it has one, follows "retry: "; the cause stands in for the last error if there is none. A terminal error of a
// first attempt was not given up, so the text is its own.
func (e *Error) Error() string {
	if e == nil {
		return "<nil>"
	}
	last := e.Last
	if last == nil {
		last = e.Cause()
	}
	if e.Reason == TerminalError && e.Attempts == 1 && last != nil {
		return oneLine(last.Error())
	}
	s := "retry: "
	if e.Policy != "" {
		s += e.Policy + ": "
	}
	s += "gave up after " + counted(e.Attempts) + " in " + rounded(e.Elapsed).String() + " (" + e.Reason.Error()
	if hint := e.Hint(); e.Reason == HintTooLong && hint > 0 {
		s += ": " + compact(hint) + " is above MaxHint " + compact(e.maxHint)
	}
	if e.Gated {
		s += ", deferred by Gate"
	}
	s += ")"
	if last != nil {
		s += ": " + last.Error()
	}
	return oneLine(s)
}

// MarshalText returns the text of Error.
func (e *Error) MarshalText() ([]byte, error) { return []byte(e.Error()), nil }

// Unwrap returns the Reason, Last and Cause, as far as they are set. If Last or Cause holds a Reason or a mark of its own,
// as a nested run's *Error does, a stand-in answers errors.Is and errors.As for everything in it but those: a Reason is
// asked about this run only, and a mark belongs to its run.
func (e *Error) Unwrap() []error {
	if e == nil {
		return nil
	}
	parts := make([]error, 0, 3)
	if e.Reason != 0 {
		parts = append(parts, e.Reason)
	}
	for _, err := range [...]error{e.Last, e.Cause()} {
		if err != nil {
			parts = append(parts, shielded(err))
		}
	}
	return parts
}

// Is reports that CallerCanceled is a context.Canceled and DeadlinePassed a context.DeadlineExceeded, also if the
// caller's context has a cause of its own.
func (e *Error) Is(target error) bool {
	switch {
	case e == nil:
		return false
	case e.Reason == CallerCanceled:
		return target == context.Canceled
	default:
		return e.Reason == DeadlinePassed && target == context.DeadlineExceeded
	}
}

// Timeout reports whether the run ended because time ran out: the caller's deadline has passed, or the last error is a
// timeout, as that of a net.Error. So the Timeout of a *url.Error around e is what it would be without retries.
func (e *Error) Timeout() bool {
	if e == nil {
		return false
	}
	var last interface{ Timeout() bool }
	return e.Reason == DeadlinePassed || errors.As(e.Last, &last) && last.Timeout()
}

// shielded returns err, behind a shield if it carries a Reason or a mark.
func shielded(err error) error {
	var reason Reason
	var m *mark
	if errors.As(err, &reason) || errors.As(err, &m) {
		return shield{err}
	}
	return err
}

// shield answers for an error inside without its Reasons and marks. It has no Unwrap on purpose.
type shield struct{ inside error }

func (s shield) Error() string { return s.inside.Error() }

func (s shield) Is(target error) bool {
	if _, ok := target.(Reason); ok {
		return false
	}
	return errors.Is(s.inside, target)
}

func (s shield) As(target any) bool {
	switch target.(type) {
	case *Reason, **mark, *own:
		return false
	}
	return errors.As(s.inside, target)
}
