package retry

import (
	"cmp"
	"context"
	"errors"
	"slices"
	"time"

	"github.com/retrygo/retry/internal/attempt"
)

// Class is a classifier's opinion of an error. The zero Class is Unknown.
type Class uint8

// The classes.
const (
	Unknown   Class = iota // no opinion: the next classifier decides, and finally the default rules
	Retryable              // another attempt may succeed
	Terminal               // no attempt can succeed
)

// String returns "unknown", "retryable" or "terminal".
func (c Class) String() string { return name(int(c), "Class", "unknown", "retryable", "terminal") }

// Classifier judges an error that fn returned. It must be safe for concurrent use. It is called once for each failed
// attempt that no mark (Permanent, Transient, Ambiguous) has judged. Only Retryable and Terminal are opinions.
//
// If it has none, two kinds of errors are terminal: context.Canceled, returned while the caller's context lives, because
// the work was abandoned; and an answer, because the same question gets the same answer. An answer is an error with a
// method Answer() bool that returns true, such as a NOT_FOUND from contrib/retrygrpc and a 404 from
// retryhttp.CheckResponse. Everything else is retryable: an attempt's own timeout, and the *Error of a nested run,
// whatever ended that, unless the classifier is, say, StopIf(IsGivenUp) or StopOn(CallerCanceled, TerminalError).
type Classifier func(error) Class

// FirstOf returns a classifier that asks each in turn: the first firm answer wins. A nil classifier is skipped.
func FirstOf(classifiers ...Classifier) Classifier {
	return func(err error) Class {
		for _, classify := range classifiers {
			if classify != nil {
				if class := classify(err); class.firm() {
					return class
				}
			}
		}
		return Unknown
	}
}

// RetryOn returns a classifier: Retryable for an error that errors.Is one of the targets, otherwise Unknown.
func RetryOn(targets ...error) Classifier { return RetryIf(isAny(targets)) }

// StopOn returns a classifier: Terminal for an error that errors.Is one of the targets, otherwise Unknown.
func StopOn(targets ...error) Classifier { return StopIf(isAny(targets)) }

// RetryIf returns a classifier: Retryable if match returns true, otherwise Unknown. A nil match returns false.
func RetryIf(match func(error) bool) Classifier { return classIf(Retryable, match) }

// StopIf returns a classifier: Terminal if match returns true, otherwise Unknown. A nil match returns false.
func StopIf(match func(error) bool) Classifier { return classIf(Terminal, match) }

// Otherwise returns a classifier that returns class for every error. Last in FirstOf, it is the default.
func Otherwise(class Class) Classifier { return func(error) Class { return class } }

func classIf(class Class, match func(error) bool) Classifier {
	return func(err error) Class {
		if match != nil && match(err) {
			return class
		}
		return Unknown
	}
}

func isAny(targets []error) func(error) bool {
	return func(err error) bool {
		return slices.ContainsFunc(targets, func(target error) bool { return errors.Is(err, target) })
	}
}

func (c Class) firm() bool { return c == Retryable || c == Terminal }

// Permanent marks err as terminal: no classifier is called and no attempt follows. It keeps err's text and all that
// errors.Is and errors.As find. Permanent(nil) is nil.
//
// A mark is found through %w and errors.Join; behind the As method of an error that wraps others without Unwrap, the
// first one is. The class found first, the outermost, wins. A mark inside the *Error of a nested run is not found.
func Permanent(err error) error { return marked(err, mark{class: Terminal}) }

// Transient marks err as retryable, before any classifier and rule. It is found as Permanent is. Transient(nil) is nil.
func Transient(err error) error { return marked(err, mark{class: Retryable}) }

// Ambiguous marks err as one after which the work may have taken effect, such as a lost answer to COMMIT. It is
// terminal, like Permanent, but to every run around it as well: it is found inside the *Error of a nested run, before
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

// IsAmbiguous reports whether err says that the work may have taken effect: whether Judge is Terminal because of
// Ambiguous. It finds the mark beside and behind other marks, but not under Transient, which undoes it. False does not
// mean that nothing was done: a lost answer to work that may be done twice, such as a request with a key, has no mark.
func IsAmbiguous(err error) bool {
	var f finding
	f.walk(err, scope{})
	return f.ambiguous
}

// After marks err with a hint: the next attempt may start no earlier than d after this one has returned, as a server's
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

// IsGivenUp reports whether a layer below has given up on the work: the first error in err's tree that has a method
// GivenUp() bool returns true. *Error has one, and the errors of an attempt in retryhttp and contrib/retrygrpc, whose
// server can say so. A policy that repeats nothing that was repeated below has
//
//	Classify: retry.StopIf(retry.IsGivenUp)
//
// This is not the default: a job whose handler makes quick retries can rightly be repeated an hour later.
func IsGivenUp(err error) bool {
	var below interface{ GivenUp() bool }
	return errors.As(err, &below) && below.GivenUp()
}

// mark is an error with a class, a hint or both.
type mark struct {
	err       error
	class     Class
	hint      time.Duration
	ambiguous bool
}

func marked(err error, m mark) error {
	if err == nil {
		return nil
	}
	m.err = err
	return &m
}

func (m *mark) Error() string { return m.err.Error() }
func (m *mark) Unwrap() error { return m.err }

// doubt is the mark of Ambiguous, of a type of its own so that errors.As finds it beside and behind other marks.
type doubt struct{ *mark }

func (doubt) Ambiguous() bool { return true }

// Judge returns the class of err that Decide acts on, Unknown only if err is nil, and the hint in err; 0 means none.
func (p Policy) Judge(err error) (Class, time.Duration) { return p.judge(err) }

func (p *Policy) judge(err error) (Class, time.Duration) {
	if err == nil {
		return Unknown, 0
	}
	var f finding
	f.walk(err, scope{})
	class := f.class
	if f.ambiguous {
		class = Terminal
	} else if class == Unknown && p.Classify != nil {
		class = p.Classify(err)
	}
	switch {
	case class.firm():
		return class, f.hint
	case f.canceled || f.answer:
		return Terminal, f.hint
	default:
		return Retryable, f.hint
	}
}

// finding is what a walk over an error's tree finds.
type finding struct {
	class     Class          // of the outermost mark that has one
	hint      time.Duration  // the longest; 0 is none
	below     time.Duration  // the longest inside a nested run
	ambiguous bool           // a mark that says so is not under Transient
	canceled  bool           // context.Canceled is among the errors
	answer    bool           // an error that says so is the answer of a healthy server
	seen      map[visit]bool // our errors, once an As has been asked for them, so that each is visited once
	again     int            // how often an As has come to one that was seen
}

// visit is that of one of our errors. As finds none inside a nested run, so one that was visited there can come again.
type visit struct {
	err    error
	nested bool
}

// scope is what surrounds an error in the tree.
type scope struct {
	nested    bool // inside the *Error of a nested run: for Judge only Ambiguous counts
	transient bool // under Transient
	timedOut  bool // the attempt timed out: a context.Canceled is not a cancellation
}

// walk visits err's tree in the order of errors.Is.
func (f *finding) walk(err error, in scope) {
	for err != nil {
		switch e := err.(type) {
		case doubt:
			err = e.mark
			continue
		case *mark, *attempt.TimedOut, *Error:
			if v := (visit{e, in.nested}); f.seen[v] {
				return
			} else if f.seen != nil {
				f.seen[v] = true
			}
		case interface{ As(any) bool }, interface{ Is(error) bool },
			interface{ Unwrap() error }, interface{ Unwrap() []error }, interface{ Answer() bool }:
		default: // a leaf, as most errors are: BenchmarkRetries
			f.canceled = f.canceled || err == context.Canceled && !in.nested && !in.timedOut
			return
		}
		switch e := err.(type) {
		case *mark:
			f.ambiguous = f.ambiguous || e.ambiguous && !in.transient
			in.transient = in.transient || e.class == Retryable
			if in.nested {
				f.below = max(f.below, e.hint)
			} else {
				f.class, f.hint = cmp.Or(f.class, e.class), max(f.hint, e.hint)
			}
			err = e.err
			continue
		case *attempt.TimedOut:
			in.timedOut, err = true, e.Err
			continue
		case *Error:
			if e == nil {
				return
			}
			in.nested, err = true, e.Last
			continue
		}
		if answer, ok := err.(interface{ Answer() bool }); ok && !in.nested {
			f.answer = f.answer || answer.Answer()
		}
		as, ok := err.(interface{ As(any) bool })
		ours := ok && f.hidden(as, in)
		if !in.nested && !in.timedOut { // otherwise a cancellation is the nested run's, or the timeout
			is, ok := err.(interface{ Is(error) bool })
			f.canceled = f.canceled || err == context.Canceled || ok && !ours && is.Is(context.Canceled)
		}
		switch e := err.(type) {
		case interface{ Unwrap() error }:
			err = e.Unwrap()
		case interface{ Unwrap() []error }:
			for _, child := range e.Unwrap() {
				f.walk(child, in)
			}
			return
		default:
			return
		}
	}
}

// mostAgain bounds how often an As may come to errors that were visited, since the ways through a tree of errors that
// have both As and Unwrap double with each level.
const mostAgain = 1000

// hidden visits our errors that only e's As reaches (hashicorp/go-multierror). It reports whether there is one.
func (f *finding) hidden(e interface{ As(any) bool }, in scope) (found bool) {
	if f.seen == nil {
		f.seen = map[visit]bool{}
	}
	copied := *f // which is on the heap, unlike f (BenchmarkRetries)
	e.As(&attempt.Probe{Visit: func(ours error) (enough bool) {
		found = true
		if copied.seen[visit{ours, in.nested}] {
			copied.again++
		} else {
			copied.walk(ours, in)
		}
		return copied.again > mostAgain
	}})
	*f = copied
	return found
}

// As lets a run around this one look behind errors that have As and no Unwrap. It finds nothing else.
func (e *Error) As(target any) bool { return attempt.Visited(target, e) }

func (m *mark) As(target any) bool { return attempt.Visited(target, m) }
