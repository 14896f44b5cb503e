package retry

import (
	"context"
	"errors"
	"time"
)

// Class is a classifier's opinion of an error. The zero Class is Unknown.
type Class uint8

// The classes.
const (
	Unknown   Class = iota // no opinion: the next classifier is asked, at last the default rules
	Retryable              // another attempt may succeed
	Terminal               // no attempt can succeed
)

// String returns "unknown", "retryable" or "terminal".
func (c Class) String() string { return name(int(c), "Class", "unknown", "retryable", "terminal") }

// Classifier judges an error that fn returned. It must be safe for concurrent use. It is asked once for each failed
// attempt that no mark (Permanent, Transient) has judged; a value other than Retryable and Terminal is no opinion.
//
// The default rules follow where it has none: context.Canceled, returned while the caller's context lives, is
// terminal, because somebody gave the work up; everything else is retryable, an attempt's own timeout included. So is
// the *Error of a nested run, whatever ended that: StopOn(CallerCanceled, TerminalError) says otherwise.
type Classifier func(error) Class

// FirstOf returns a classifier that asks each in turn: the first firm answer wins. A nil classifier is passed over.
func FirstOf(classifiers ...Classifier) Classifier {
	return func(err error) Class {
		for _, classify := range classifiers {
			if classify == nil {
				continue
			}
			if class := classify(err); class.firm() {
				return class
			}
		}
		return Unknown
	}
}

// RetryOn returns a classifier that answers Retryable for an error that errors.Is one of the targets, else Unknown.
func RetryOn(targets ...error) Classifier {
	return RetryIf(func(err error) bool { return isAny(err, targets) })
}

// StopOn returns a classifier that answers Terminal for an error that errors.Is one of the targets, else Unknown.
func StopOn(targets ...error) Classifier {
	return StopIf(func(err error) bool { return isAny(err, targets) })
}

// RetryIf returns a classifier that answers Retryable where match is true, else Unknown. A nil match never is.
func RetryIf(match func(error) bool) Classifier { return classIf(Retryable, match) }

// StopIf returns a classifier that answers Terminal where match is true, else Unknown. A nil match never is.
func StopIf(match func(error) bool) Classifier { return classIf(Terminal, match) }

// Otherwise returns a classifier that gives every error the class. Last in FirstOf, Otherwise(Terminal) turns
// "retry unless told" into "stop unless told".
func Otherwise(class Class) Classifier {
	return func(error) Class { return class }
}

func classIf(class Class, match func(error) bool) Classifier {
	return func(err error) Class {
		if match != nil && match(err) {
			return class
		}
		return Unknown
	}
}

func isAny(err error, targets []error) bool {
	for _, target := range targets {
		if target != nil && errors.Is(err, target) {
			return true
		}
	}
	return false
}

func (c Class) firm() bool { return c == Retryable || c == Terminal }

// Permanent marks err as terminal: no classifier is asked and no attempt follows. It keeps err's text, and errors.Is
// and errors.As see through it. Permanent(nil) is nil.
//
// A mark is found through %w and errors.Join, in the order of errors.As; the first class found, which is the
// outermost, wins. A mark inside the *Error of a nested run is that run's affair and is not found.
func Permanent(err error) error { return marked(err, Terminal, 0) }

// Transient marks err as retryable, whatever classifiers and default rules say. It is found as Permanent is.
// Transient(nil) is nil.
func Transient(err error) error { return marked(err, Retryable, 0) }

// After marks err with a hint: the next attempt is to start d after this one has returned at the earliest, as a server's
// Retry-After asks. It does not classify. Of several hints the longest wins. A d of 0 or less is no hint: err is returned as it
// is. After(d, nil) is nil.
//
// The wait is then the longer of the backoff's delay and d plus the same share of the jitter's width, so that clients
// with the same hint spread after it, as far as MaxHint leaves room. A hint above Policy.MaxHint ends the run as
// Expired(HintTooLong).
func After(d time.Duration, err error) error {
	if d <= 0 {
		return err
	}
	return marked(err, Unknown, d)
}

// mark is an error with a class, a hint or both.
type mark struct {
	err   error
	class Class
	hint  time.Duration
}

func marked(err error, class Class, hint time.Duration) error {
	if err == nil {
		return nil
	}
	return &mark{err, class, hint}
}

func (m *mark) Error() string { return m.err.Error() }
func (m *mark) Unwrap() error { return m.err }

// finding is what a walk over an error's tree finds.
type finding struct {
	class    Class         // of the outermost mark that has one
	hint     time.Duration // the longest; 0 is none
	canceled bool          // context.Canceled is among the errors
}

// judge returns the class of an error that is not nil, never Unknown, and its hint, 0 for none.
func (p *Policy) judge(err error) (Class, time.Duration) {
	var found finding
	found.walk(err)
	if found.class != Unknown {
		return found.class, found.hint
	}
	if p.Classify != nil {
		if class := p.Classify(err); class.firm() {
			return class, found.hint
		}
	}
	if found.canceled {
		return Terminal, found.hint
	}
	return Retryable, found.hint
}

// walk visits err's tree in the order of errors.Is. A nested run's *Error is closed to it.
func (f *finding) walk(err error) {
	for err != nil {
		switch e := err.(type) {
		case *Error:
			return
		case *mark:
			if f.class == Unknown {
				f.class = e.class
			}
			f.hint = max(f.hint, e.hint)
			err = e.err
			continue
		}
		if err == context.Canceled {
			f.canceled = true
		} else if e, ok := err.(interface{ Is(error) bool }); ok && e.Is(context.Canceled) {
			f.canceled = true
		}
		switch e := err.(type) {
		case interface{ Unwrap() error }:
			err = e.Unwrap()
		case interface{ Unwrap() []error }:
			for _, child := range e.Unwrap() {
				f.walk(child)
			}
			return
		default:
			return
		}
	}
}
