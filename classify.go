package retry

import (
	"errors"
	"slices"
)

// Class is a classifier's opinion of an error. The zero Class is Unknown.
type Class uint8

// The classes.
const (
	Unknown   Class = iota // no opinion, so the next classifier decides, and finally the default rules
	Retryable              // another attempt may succeed
	Terminal               // no attempt can succeed
)

// String returns "unknown", "retryable" or "terminal".
func (c Class) String() string { return name(int(c), "Class", "unknown", "retryable", "terminal") }

// Classifier judges an error that fn returned. It must be safe for concurrent use. It is called once for each failed
// attempt that no mark (Permanent, Transient, Ambiguous) has judged. Only Retryable and Terminal are opinions.
//
// If neither a mark nor a classifier has an opinion, three kinds of errors are terminal:
//   - context.Canceled, returned while the caller's context lives, because the work was abandoned;
//   - an answer, because the same question gets the same answer. It is an error with a method Answer() bool that returns
//     true, such as a NOT_FOUND from contrib/retrygrpc and a 404 from retryhttp.CheckResponse;
//   - a FieldError, because the same value is refused again.
//
// Every other error is retryable, an attempt's own timeout included. So is the *Error of a nested run, whatever its
// Reason. To end at such an error, use StopIf(IsGivenUp) or StopOn(CallerCanceled, TerminalError).
type Classifier func(error) Class

// FirstOf returns a classifier that asks each in turn. The first firm answer wins. A nil classifier is skipped.
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

// RetryOn returns a classifier that returns Retryable for an error that errors.Is one of the targets, otherwise
// Unknown.
func RetryOn(targets ...error) Classifier { return RetryIf(isAny(targets)) }

// StopOn returns a classifier that returns Terminal for an error that errors.Is one of the targets, otherwise Unknown.
func StopOn(targets ...error) Classifier { return StopIf(isAny(targets)) }

// RetryIf returns a classifier that returns Retryable if match returns true, otherwise Unknown. A nil match returns
// false.
func RetryIf(match func(error) bool) Classifier { return classIf(Retryable, match) }

// StopIf returns a classifier that returns Terminal if match returns true, otherwise Unknown. A nil match returns
// false.
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
