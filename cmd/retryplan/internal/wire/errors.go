package wire

import (
	"github.com/retrygo/retry"
)

// NewError returns err as data: its text on one line, and every bad field that it names.
func NewError(err error) Error {
	return Error{Error: OneLine(err.Error()), Fields: fieldsOf(err)}
}

// fieldsOf walks the tree of err, since errors.As would find the first field only.
func fieldsOf(err error) []Field {
	switch e := err.(type) {
	case *retry.FieldError:
		return []Field{{e.Field, e.Value, e.Rule}}
	case interface{ Unwrap() []error }:
		var found []Field
		for _, inner := range e.Unwrap() {
			found = append(found, fieldsOf(inner)...)
		}
		return found
	case interface{ Unwrap() error }:
		return fieldsOf(e.Unwrap())
	}
	return nil
}
