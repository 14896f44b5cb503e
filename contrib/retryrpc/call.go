package retryrpc

import (
	"context"
	"slices"
	"time"

	"github.com/retrygo/retry"
	"github.com/retrygo/retry/retryshell"
)

// Call is one call made with retries. An adapter gives Policy to retry.Do, returns Failed from each attempt that fails,
// and Returned from the call.
type Call struct {
	Method     string
	Idempotent bool
	Policy     retry.Policy // of the run, with a Classify

	ctx      context.Context // the caller's
	layer    *Layer
	classify retry.Classifier // the policy's own
	answer   error            // with which the last attempt has ended
	whole    error            // the last attempt's error, if the history has a shorter one
}

// Begin sets c, the zero Call with Method and Idempotent. The error is that of a policy that does not validate, which is
// to be returned.
func (l *Layer) Begin(ctx context.Context, c *Call) error {
	c.ctx = ctx
	c.layer = l
	c.Policy = l.policy
	if l.policyFor != nil {
		c.Policy = l.policyFor(c.Method).OrSchedule(retry.Inline())
		if err := c.Policy.Validate(); err != nil {
			return l.errors.Call(&CallError{Err: err, Code: Internal})
		}
	}
	c.classify = c.Policy.Classify
	c.Policy.Classify = classOf
	return nil
}

// classOf is the Classify of every run. It returns the class in an attempt's error.
func classOf(err error) retry.Class {
	e, ok := find(err)
	if !ok {
		return retry.Terminal
	}
	return e.class
}

// Context returns the caller's context.
func (c *Call) Context() context.Context { return c.ctx }

// Previous returns the number of attempts before the one with the given number, for AttemptsKey.
func (c *Call) Previous(attempt int) int {
	if c.layer.passAttempt {
		attempt = max(attempt, retryshell.OuterAttemptNumber(c.ctx))
	}
	return attempt - 1
}

// Failure describes an attempt that has ended with an error, as its adapter sees it.
type Failure struct {
	Err      error
	Code     Code
	Kind     string        // for AttemptError.ErrorType, or empty for the code
	Cut      error         // a short form of an Err of more than MaxRecord bytes, for the history; otherwise nil
	Pushback []string      // the values of PushbackKey
	InDoubt  []string      // the values of InDoubtKey
	Hint     time.Duration // the longest of the other hints
	Answer   bool          // an answer, whatever its code
	Local    bool          // Veto Local
	Begun    bool          // an answer had begun
	Unsent   bool          // the request was certainly not sent
	Told     bool          // the code is that of the server
}

// Class returns Retryable or Terminal by the table of the package documentation, for a call that is not known to be
// idempotent.
func (f Failure) Class() retry.Class { return Classify(f.attempt()) }

func (f *Failure) attempt() *AttemptError {
	e := &AttemptError{Code: f.Code, Origin: Remote, Err: f.Err, kind: f.Kind}
	wait, forbidden := ParsePushback(f.Pushback)
	e.Hint = max(wait, f.Hint, 0)
	switch {
	case forbidden:
		e.Veto = Pushback
	case f.Local:
		e.Veto = Local
	}
	return e
}

// Failed returns the error of an attempt for retry.Do, with marks for hints, vetoes and doubt. It is nil for an answer,
// which makes the attempt a success. attempt is the attempt's context.
func (c *Call) Failed(attempt context.Context, f Failure) error {
	c.answer, c.whole = nil, nil
	e := f.attempt()
	e.Method = c.Method
	e.Origin = c.origin(f.Code, attempt)
	e.Idempotent = c.Idempotent
	err := c.layer.errors.Attempt(e)
	e.class = c.judge(e, err, f.Answer)
	var hint time.Duration
	e.class, hint = c.Policy.Judge(retry.After(e.Hint, err)) // marks inside err count too
	switch {
	case e.Veto != 0:
	case f.saysInDoubt() && !e.Idempotent:
		e.Veto = InDoubt
	case e.class == retry.Retryable && f.Begun && !e.Idempotent:
		e.Veto = AnswerBegun
	case e.class != retry.Retryable && (f.Answer || e.Code.isAnswer()):
		c.answer = c.layer.errors.Answer(&AnswerError{f.Err})
		return nil
	}
	inDoubt := c.inDoubt(e, &f)
	if f.Cut != nil {
		c.whole = marked(err, e.Veto, hint, inDoubt)
		cut := *e
		cut.Err = f.Cut
		err = c.layer.errors.Attempt(&cut)
	}
	return marked(err, e.Veto, hint, inDoubt)
}

// judge calls the policy's Classify, then applies the rules.
func (c *Call) judge(e *AttemptError, err error, answer bool) retry.Class {
	if c.classify != nil {
		if class := c.classify(err); class == retry.Retryable || class == retry.Terminal {
			return class
		}
	}
	if !answer && e.repeatable(c.layer.retryCodes) {
		return retry.Retryable
	}
	return retry.Terminal
}

// inDoubt reports whether the call may have taken effect and is not repeated for that reason. The rules are those of the
// package documentation.
func (c *Call) inDoubt(e *AttemptError, f *Failure) bool {
	repeated := e.class == retry.Retryable && e.Veto == 0
	switch {
	case e.Idempotent || repeated:
		return false
	case f.Local || f.Unsent:
		return false
	case f.saysInDoubt():
		return true
	case f.Answer || e.Code.isAnswer() && e.Veto != AnswerBegun:
		return false
	case f.Begun:
		return true
	default:
		return e.Code.mayHaveTakenEffect() || e.Code == Unavailable && !f.Told
	}
}

// saysInDoubt reports whether the server says that the work may have been done.
func (f *Failure) saysInDoubt() bool { return slices.Contains(f.InDoubt, "true") }

func marked(err error, veto Veto, hint time.Duration, inDoubt bool) error {
	err = retry.After(hint, err)
	switch {
	case inDoubt:
		return retry.Ambiguous(err)
	case veto != 0:
		return retry.Permanent(err)
	default:
		return err
	}
}

// origin returns the side that a failure comes from. The caller's context is checked first, since an attempt's ends
// with it. A server that knows the deadline can report that it has passed before the context's own timer fires, so the
// clock counts as well.
func (c *Call) origin(code Code, attempt context.Context) Origin {
	switch {
	case code != DeadlineExceeded && code != Canceled:
		return Remote
	case c.ctx.Err() != nil || code == DeadlineExceeded && overdue(c.ctx):
		return Caller
	case context.Cause(attempt) == retry.ErrAttemptTimeout || code == DeadlineExceeded && overdue(attempt):
		return AttemptTimeout
	default:
		return Remote
	}
}

// overdue reports whether the deadline of ctx has passed by the clock.
func overdue(ctx context.Context) bool {
	deadline, ok := ctx.Deadline()
	return ok && !time.Now().Before(deadline)
}

// Returned returns the result of the call for the result of retry.Do. It is nil, an *AnswerError as Errors.Answer has
// converted it, or a *CallError as Errors.Call has.
func (c *Call) Returned(err error) error {
	if err == nil {
		return c.answer
	}
	if run, ok := err.(*retry.Error); ok && run.Last != nil && c.whole != nil {
		run.Last = c.whole
	}
	return c.layer.errors.Call(newCallError(err))
}

// AnswerError is the library's error of a call that a healthy server has answered with it. It has the text of Err.
type AnswerError struct{ Err error }

func (e *AnswerError) Error() string { return e.Err.Error() }

// Unwrap returns Err.
func (e *AnswerError) Unwrap() error { return e.Err }

// Answer returns true. A run around the call does not repeat an answer, unless its policy says so (see
// retry.Classifier).
func (e *AnswerError) Answer() bool { return true }

// CallError is the error of a call that was made with retries and has failed, or was refused.
type CallError struct {
	Err  error // the *retry.Error, or that of a policy that does not validate
	Code Code  // for the caller
	Last error // the library's error of the last attempt, if Code is its code; otherwise nil
}

func newCallError(err error) *CallError {
	run, ok := err.(*retry.Error)
	if !ok {
		return &CallError{Err: err, Code: Internal} // refused before any attempt
	}
	last, attempted := find(run.Last)
	code := Unavailable // no attempt was made, since a gate deferred it for too long
	switch run.Reason {
	case retry.CallerCanceled:
		code = Canceled
	case retry.DeadlinePassed:
		code = DeadlineExceeded
	default:
		if attempted {
			code = last.Code
		}
	}
	e := &CallError{Err: err, Code: code}
	if attempted && last.Code == code { // also if the library has ended the attempt because of the caller's context
		e.Last = last.Err
	}
	return e
}

// Error returns the text of the run, such as "retry: gave up after 3 attempts in 1.2s (attempts_exhausted): ...". A failure
// that is not repeatable has only the text of its AttemptError, as without retries.
func (e *CallError) Error() string {
	if run, ok := e.Err.(*retry.Error); ok && run.Reason == retry.TerminalError {
		return run.Last.Error()
	}
	return e.Err.Error()
}

// Unwrap returns Err.
func (e *CallError) Unwrap() error { return e.Err }
