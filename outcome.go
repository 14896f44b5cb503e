package retry

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/retrygo/retry/internal/attempt"
	"github.com/retrygo/retry/internal/show"
)

// Attempt is the record of one failed attempt. The zero Attempt stands for no attempt.
type Attempt struct {
	Number   int // from 1
	Start    time.Time
	Duration time.Duration
	Class    Class         // the class that was acted on, Retryable or Terminal
	Err      error         // the error that fn returned
	Delay    time.Duration // the wait that was decided on, even if it was cut short, or 0 if no retry followed
}

// String returns one line, such as "attempt 1 failed after 50ms (retryable): dial tcp ...; wait 100ms", and "" for the
// zero Attempt.
func (a Attempt) String() string {
	if a == (Attempt{}) {
		return ""
	}
	s := fmt.Sprintf("attempt %d failed after %s (%s)", a.Number, show.Rounded(a.Duration), a.Class)
	if a.Err != nil {
		s += ": " + errorText(a.Err)
	}
	if a.Delay > 0 {
		s += "; wait " + show.Duration(a.Delay)
	}
	return oneLine(s)
}

// attemptJSON is an Attempt in JSON.
type attemptJSON struct {
	Number   int
	Start    time.Time
	Duration time.Duration
	Class    Class
	Err      *string
	Delay    time.Duration
}

// MarshalJSON returns an object with the fields of a, and with the text of Err or null. The zero Attempt is null.
func (a Attempt) MarshalJSON() ([]byte, error) {
	if a == (Attempt{}) {
		return []byte("null"), nil
	}
	out := attemptJSON{Number: a.Number, Start: a.Start, Duration: a.Duration, Class: a.Class, Delay: a.Delay}
	if a.Err != nil {
		text := errorText(a.Err)
		out.Err = &text
	}
	return json.Marshal(out)
}

// UnmarshalJSON reads an object that MarshalJSON wrote. Err has the text only.
func (a *Attempt) UnmarshalJSON(data []byte) error {
	in := attemptJSON{Number: a.Number, Start: a.Start, Duration: a.Duration, Class: a.Class, Delay: a.Delay}
	if err := json.Unmarshal(data, &in); err != nil {
		return err
	}
	*a = Attempt{Number: in.Number, Start: in.Start, Duration: in.Duration, Class: in.Class, Delay: in.Delay}
	if in.Err != nil {
		a.Err = errors.New(*in.Err)
	}
	return nil
}

// Outcome is the record of a run, with its end and its failed attempts.
type Outcome struct {
	Policy      string // Policy.Name
	Status      Status // any but WaitingRetry
	Reason      Reason // zero if Status is Succeeded
	EndedByGate bool   // a deferral of Policy.Gate ended the run
	InnerGaveUp bool   // the run ended as TerminalError because a layer below had given up (see IsGivenUp)
	Attempts    int    // attempts made, a successful last one included
	Elapsed     time.Duration
	// History holds the failed attempts in order, the first and the newest 63 at most. It is the receiver's own copy.
	History []Attempt
}

// String returns one line, such as "succeeded after 3 attempts in 1.2s" or "dead_letter (terminal_error) after 1
// attempt in 5ms".
func (o Outcome) String() string {
	d := Decision{Status: o.Status, Reason: o.Reason}
	return d.String() + " after " + counted(o.Attempts) + " in " + show.Rounded(o.Elapsed).String()
}

// Event is the argument of Policy.Observe. N failed attempts and the end of their run make N+1 events. An attempt
// that succeeds appears in the final event alone, and the last failure of a run as an attempt and as the end.
type Event struct {
	Policy  string        // Policy.Name
	Elapsed time.Duration // from the start of the run to the end of Attempt, or to the end of the run in the final event
	Attempt Attempt       // the attempt that failed, or zero in the final event
	// Decision is the decision about the attempt, or the end of the run in the final event. If it is WaitingRetry, no
	// rule forbade the retry at that time. Only the caller, the clock or a gate can still end the run.
	Decision Decision
	Outcome  *Outcome // the record of the run in the final event, and nil before it
	Err      error    // in the final event a copy of the result of Do
}

// Final reports whether e is the final event of its run, so that Outcome is set.
func (e Event) Final() bool { return e.Outcome != nil }

// Observers returns an Observe that calls each of the observers, in order. If one panics, the rest are called all the
// same, and then the first panic propagates. A nil observer is skipped.
func Observers(observers ...func(context.Context, Event)) func(context.Context, Event) {
	observers = slices.Clone(observers)
	return func(ctx context.Context, e Event) { observeAll(ctx, e, observers) }
}

func observeAll(ctx context.Context, e Event, observers []func(context.Context, Event)) {
	called := 0
	defer func() {
		for _, observe := range observers[called:] { // there are some if the last one that was called has panicked
			quietly(ctx, e, observe)
		}
	}()
	for _, observe := range observers {
		called++
		if observe != nil {
			observe(ctx, e)
		}
	}
}

// quietly calls observe and drops a panic, since another one propagates already.
func quietly(ctx context.Context, e Event, observe func(context.Context, Event)) {
	defer func() { _ = recover() }()
	if observe != nil {
		observe(ctx, e)
	}
}

// Error is the error of a failed run. errors.Is and errors.As reach Last, and Cause for CallerCanceled and
// DeadlinePassed. errors.Is matches the Reason as well, and no other, not even one in the error of a nested run. It
// always matches context.Canceled for CallerCanceled and context.DeadlineExceeded for DeadlinePassed, otherwise as Last
// and Cause do.
//
// encoding/json writes its text. An error of package fmt that wraps it by %w is {} there, as every such error is. Log
// its text, or the *Error that errors.As finds.
type Error struct {
	Outcome
	// Last is the last error of fn, marks and wrapping included. Nil means that no attempt was made.
	Last error

	cause   *cause        // of the caller's context, nil if that has not ended
	maxHint time.Duration // of the policy, for HintTooLong
}

// NewError returns the *Error of a run under p that ended with outcome o, last being the error of its last attempt. It
// is for shells other than Do. ctx is the caller's context.
func (p Policy) NewError(ctx context.Context, o Outcome, last error) *Error {
	e := &Error{Outcome: o, Last: last}
	e.complete(ctx, &p)
	return e
}

// complete sets the fields that follow from the others, for a run under p.
func (e *Error) complete(ctx context.Context, p *Policy) {
	switch e.Reason {
	case TerminalError:
		e.InnerGaveUp = IsGivenUp(e.Last)
	case HintTooLong:
		e.maxHint = p.maxHint()
	case CallerCanceled, DeadlinePassed:
		if ctx != nil && ctx.Err() != nil { // it can end a moment after its deadline
			e.cause = &cause{ctx: ctx}
		}
	}
}

// Cause returns context.Cause of the caller's context for CallerCanceled and DeadlinePassed, otherwise nil. e keeps that
// context alive until Cause, Error or Unwrap is first called, or until Policy.Observe got e.
func (e *Error) Cause() error {
	switch {
	case e == nil:
		return nil
	case e.cause != nil:
		return e.cause.get()
	case e.Reason == DeadlinePassed:
		return context.DeadlineExceeded
	default:
		return nil
	}
}

// Hint returns the wait that the last error asked for (see After), for a caller that comes back later. 0 means no hint.
// If the last error itself has no hint, the hint of the nested run in it counts.
func (e *Error) Hint() time.Duration {
	if e == nil {
		return 0
	}
	var found finding
	found.search(e.Last)
	return cmp.Or(found.hint, found.below)
}

// GivenUp reports whether a caller should not retry at once, because the run had retried without success, a budget
// refused its retry, the server asked for more time than MaxHint, or the last error is of a layer below that has given
// up (see IsGivenUp). A run of one attempt, as under OneAttempt, has not given up, since its caller holds the retries.
// Nor has one that its caller canceled.
func (e *Error) GivenUp() bool {
	if e == nil {
		return false
	}
	switch e.Reason {
	case CallerCanceled:
		return false
	case BudgetExhausted, HintTooLong:
		return true
	default:
		return e.Attempts > 1 || IsGivenUp(e.Last)
	}
}

// Error returns one line, such as "retry: gave up after 3 attempts in 1.2s (attempts_exhausted): dial tcp ...", with
// the policy's name after "retry: ". The cause stands in for a missing error. A terminal first attempt has its own
// text.
func (e *Error) Error() string {
	if e == nil {
		return "<nil>"
	}
	last := cmp.Or(e.Last, e.Cause())
	if e.Reason == TerminalError && e.Attempts == 1 && last != nil {
		return oneLine(errorText(last))
	}
	s := "retry: "
	if e.Policy != "" {
		s += e.Policy + ": "
	}
	s += "gave up after " + counted(e.Attempts) + " in " + show.Rounded(e.Elapsed).String() + " (" + e.Reason.Error()
	if e.Reason == HintTooLong {
		s += e.aboveMaxHint()
	}
	if e.EndedByGate {
		s += ", deferred by Gate"
	}
	if e.InnerGaveUp {
		s += ", given up below"
	}
	s += ")"
	if last != nil {
		s += ": " + errorText(last)
	}
	return oneLine(s)
}

// aboveMaxHint returns a text such as ": 2h is above MaxHint 1h", as far as it is known.
func (e *Error) aboveMaxHint() string {
	hint := e.Hint()
	if hint == 0 {
		return ""
	}
	s := ": " + show.Duration(hint) + " is above MaxHint"
	if e.maxHint > 0 {
		s += " " + show.Duration(e.maxHint)
	}
	return s
}

// MarshalText returns the text of Error.
func (e *Error) MarshalText() ([]byte, error) { return []byte(e.Error()), nil }

// Unwrap returns the Reason, Last and Cause, as far as they are set. If Last or Cause holds a Reason or a mark of its
// own, as a nested run's *Error does, Unwrap hides only these from errors.Is and errors.As.
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

// Is reports that CallerCanceled is a context.Canceled and DeadlinePassed a context.DeadlineExceeded, with any cause.
func (e *Error) Is(target error) bool {
	if e == nil {
		return false
	}
	switch e.Reason {
	case CallerCanceled:
		return target == context.Canceled
	case DeadlinePassed:
		return target == context.DeadlineExceeded
	default:
		return false
	}
}

// Timeout reports whether the caller's deadline has passed or the last error is a timeout, as a net.Error reports it.
// So the Timeout of a *url.Error around e has the same result as without retries.
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
	if errors.As(err, &reason) || attempt.Leads(err) { // to a timeout too, since there can be marks in it
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
	if _, ok := target.(*Reason); ok || attempt.IsProbe(target) {
		return false
	}
	return errors.As(s.inside, target)
}
