package retry

import (
	"time"

	"github.com/retrygo/retry/internal/attempt"
)

// Permanent marks err as terminal. No classifier is called and no attempt follows. It keeps err's text and all that
// errors.Is and errors.As find. Permanent(nil) is nil.
//
// A mark is found through %w and errors.Join, and behind the As method of an error that wraps others without Unwrap.
// The class found first, the outermost, wins. A mark inside the *Error of a nested run is not found.
func Permanent(err error) error { return marked(err, mark{class: Terminal}) }

// Transient marks err as retryable, before any classifier and rule. It is found as Permanent is. Transient(nil) is nil.
func Transient(err error) error { return marked(err, mark{class: Retryable}) }

// Ambiguous marks err as one after which the work may have taken effect, such as a lost answer to COMMIT. It is
// terminal, like Permanent, but to every run around it as well. It is found inside the *Error of a nested run, before
// any classifier. Only Transient around err, for work that may be done twice, undoes it. Ambiguous(nil) is nil.
//
// IsAmbiguous finds it. A package that does not import this one can look for it by errors.As with a target of type
// *interface{ Ambiguous() bool }, which does not see that Transient has undone it.
func Ambiguous(err error) error {
	if err == nil {
		return nil
	}
	return doubt{&mark{err: err, class: Terminal, ambiguous: true}}
}

// After marks err with a hint. The next attempt may start no earlier than d after this one has returned, as a server's
// Retry-After asks. It does not classify. The longest hint wins. If d ≤ 0 or err is nil, After returns err.
//
// The wait is then the longer of the backoff's delay and d. With jitter some time is added to d, up to MaxHint, so that
// clients with the same hint spread after it. A hint above MaxHint ends the run as Expired(HintTooLong).
func After(d time.Duration, err error) error {
	if d <= 0 {
		return err
	}
	return marked(err, mark{hint: d})
}

// Progressed marks err as the error of an attempt that got a part of its work done, such as a stream that delivered
// messages before it broke. The attempt counts as the first, so MaxAttempts and the delays begin anew, as after
// ResetAfter. It does not classify. It is found as After is. Progressed(nil) is nil.
//
// TTL, the caller's deadline, Gate and Budget bound the run as before. Set one of them, because a run whose every
// attempt makes progress is not ended by MaxAttempts. A connection that was accepted is no progress.
func Progressed(err error) error { return marked(err, mark{progressed: true}) }

// mark is an error with one of the marks.
type mark struct {
	err        error
	class      Class
	hint       time.Duration
	ambiguous  bool
	progressed bool
	batch      bool // set by DoBatch, since doubt about one item does not end the batch's own run
}

// marked copies m only for an error, so that a mark of nil needs no memory.
func marked(err error, m mark) error {
	if err == nil {
		return nil
	}
	set := m
	set.err = err
	return &set
}

func (m *mark) Error() string { return m.err.Error() }
func (m *mark) Unwrap() error { return m.err }

// As lets a run around this one look behind errors that have As and no Unwrap. It finds no target of a caller.
func (m *mark) As(target any) bool { return attempt.Found(target, m) }

// As lets a run around this one find e behind errors that have As and no Unwrap. It finds no target of a caller.
func (e *Error) As(target any) bool { return attempt.Found(target, e) }

// doubt is the mark of Ambiguous. It has a type of its own so that errors.As finds it inside and outside other marks.
type doubt struct{ *mark }

func (doubt) Ambiguous() bool { return true }
