package retry

import (
	"context"
	"errors"
	"slices"
	"time"

	"github.com/retrygo/retry/internal/attempt"
)

// Judge returns the class of err that Decide acts on, which is Unknown only if err is nil. It also returns the hint in
// err, or 0 if err has no hint.
func (p Policy) Judge(err error) (Class, time.Duration) {
	if err == nil {
		return Unknown, 0
	}
	var found finding
	found.search(err)
	return p.class(&found, err), found.hint
}

// class returns Retryable or Terminal for an error and the finding on it. It calls Classify if no mark has judged.
func (p *Policy) class(found *finding, err error) Class {
	class := found.class
	if found.ambiguous {
		class = Terminal
	}
	if class == Unknown && p.Classify != nil {
		class = p.Classify(err)
	}
	switch {
	case class.firm():
		return class
	case found.canceled || found.answer:
		return Terminal
	default:
		return Retryable
	}
}

// IsAmbiguous reports whether the work may have taken effect according to a mark in err, so that Judge returns Terminal
// because of Ambiguous. It finds the mark beside and behind other marks, but not under Transient, which undoes it.
// False does not mean that no work was done. A lost answer to work that may be done twice, such as a request with a
// key, has no mark.
func IsAmbiguous(err error) bool {
	var found finding
	found.search(err)
	return found.ambiguous
}

// IsGivenUp reports whether a layer below has given up on the work. Then an error in err's tree has a method GivenUp()
// bool that returns true. The errors inside an error with that method do not count. *Error has the method, and so have
// the errors of an attempt in retryhttp and contrib/retrygrpc, whose server can report it. To end at an error that a
// layer below has repeated:
//
//	Classify: retry.StopIf(retry.IsGivenUp)
//
// This is not the default, since a job whose handler makes quick retries can rightly be repeated an hour later.
func IsGivenUp(err error) bool {
	if e, ok := err.(interface{ GivenUp() bool }); ok {
		return e.GivenUp()
	}
	if e, ok := err.(interface{ As(any) bool }); ok {
		var hidden interface{ GivenUp() bool }
		if e.As(&hidden) && hidden != nil && hidden.GivenUp() {
			return true
		}
	}
	switch e := err.(type) {
	case interface{ Unwrap() error }:
		return IsGivenUp(e.Unwrap())
	case interface{ Unwrap() []error }:
		return slices.ContainsFunc(e.Unwrap(), IsGivenUp)
	default:
		return false
	}
}

// finding is the result of a search in an error's tree.
type finding struct {
	class      Class         // of the outermost mark that has one
	hint       time.Duration // the longest
	below      time.Duration // the longest hint in a nested run
	ambiguous  bool          // a mark Ambiguous is not under Transient
	progressed bool
	canceled   bool // context.Canceled is among the errors
	answer     bool // an error is the answer of a healthy server, or of a Validate

	visited map[visit]bool // our errors, once an error has an As, since that can lead to them as well
}

// visit is a visit of one of our errors. Its effect depends on the scope of the error.
type visit struct {
	err error
	in  scope
}

// scope is the surroundings of an error in the tree.
type scope struct {
	nested    bool // in the *Error of a nested run, of which only Ambiguous counts
	transient bool // Transient
	timedOut  bool // in an attempt that timed out, in which context.Canceled is not a cancellation
}

// search looks at err and all that it wraps, in the order of errors.Is.
func (f *finding) search(err error) { f.walk(err, scope{}) }

// walk visits err and then the errors that it wraps.
func (f *finding) walk(err error, in scope) {
	switch e := err.(type) {
	case nil:
	case *mark:
		if f.first(e, in) {
			f.note(e, in)
			in.transient = in.transient || e.undoes(in)
			f.walk(e.err, in)
		}
	case doubt:
		f.walk(e.mark, in)
	case *attempt.TimedOut:
		if f.first(e, in) {
			in.timedOut = true
			f.walk(e.Err, in)
		}
	case *Error:
		if e != nil && f.first(e, in) {
			in.nested = true
			f.walk(e.Last, in)
		}
	case *FieldError:
		f.answer = f.answer || !in.nested
	default:
		f.foreign(err, in)
	}
}

// foreign visits an error that is not ours.
func (f *finding) foreign(err error, in scope) {
	canceled := err == context.Canceled
	if e, ok := err.(interface{ Is(error) bool }); ok {
		canceled = e.Is(context.Canceled)
	}
	if e, ok := err.(interface{ As(any) bool }); ok && f.behind(e, in) {
		canceled = err == context.Canceled // e.Is also answers for our errors inside e, which behind has judged in their scope
	}
	if canceled && !in.nested && !in.timedOut {
		f.canceled = true
	}
	if e, ok := err.(interface{ Answer() bool }); ok {
		f.answer = f.answer || e.Answer() && !in.nested
	}
	switch e := err.(type) {
	case interface{ Unwrap() error }:
		f.walk(e.Unwrap(), in)
	case interface{ Unwrap() []error }:
		for _, wrapped := range e.Unwrap() {
			f.walk(wrapped, in)
		}
	}
}

// behind visits our errors to which only e's As leads (hashicorp/go-multierror). It reports whether there is one.
func (f *finding) behind(e interface{ As(any) bool }, in scope) bool {
	ours, all := attempt.Behind(e.As)
	if !all {
		f.ambiguous = true // there can be doubt among those that were not seen
	}
	if f.visited == nil {
		f.visited = map[visit]bool{}
	}
	found := len(ours) > 0
	for len(ours) > 0 {
		first := ours[0]
		f.walk(first, in)
		visited := min(1+inside(first), len(ours))
		ours = ours[visited:]
	}
	return found
}

// inside returns the number of our errors that errors.As finds right after err because err wraps them. walk has visited
// them in their scope.
func inside(err error) int {
	m, ok := err.(*mark)
	if !ok {
		return 0
	}
	ours, _ := attempt.Behind(func(target any) bool { return errors.As(m.err, target) })
	return len(ours)
}

// first reports whether one of our errors was not visited in the same scope.
func (f *finding) first(err error, in scope) bool {
	v := visit{err, in}
	if f.visited[v] {
		return false
	}
	if f.visited != nil {
		f.visited[v] = true
	}
	return true
}

// undoes reports whether m, a Transient, cancels doubt inside it. The mark of a DoBatch does so for its own run only.
func (m *mark) undoes(in scope) bool { return m.class == Retryable && !(m.batch && in.nested) }

// note takes over the judgment of a mark.
func (f *finding) note(m *mark, in scope) {
	f.ambiguous = f.ambiguous || m.ambiguous && !in.transient
	if in.nested {
		f.below = max(f.below, m.hint)
		return
	}
	if f.class == Unknown {
		f.class = m.class
	}
	f.hint = max(f.hint, m.hint)
	f.progressed = f.progressed || m.progressed
}
