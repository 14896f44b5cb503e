package retry

import (
	"context"
	"errors"
	"iter"
)

// Attempts is Do whose fn is the body of a range loop, for bodies with control flow of their own:
//
//	var err error
//	for ctx := range retry.Attempts(ctx, retry.Inline(), &err) {
//		var page []byte
//		page, err = fetch(ctx)
//		if err != nil {
//			continue
//		}
//		err = parse(page)
//	}
//	return err
//
// Each turn is an attempt and gets its context. The body sets err in each turn, and the value at the end of the turn is
// the attempt's error. Nil ends the loop with success. After the loop err is the result of Do. It is nil or an *Error,
// or FieldErrors without a turn if Do refuses the arguments.
//
// When a turn begins, err is a placeholder. If the turn ends and err still holds it, the loop ends with an *Error about
// it, because the error of the attempt is lost. The usual cause is an err that the body declares anew, as in resp, err
// := send(ctx). A body that has succeeded sets err to nil or leaves the loop.
//
// Leaving the loop early (break, return, goto) ends the run. If err is nil or the placeholder, the run is a success and
// err is nil. Otherwise err stays as the body left it and counts as Permanent, unless an ending that goes before
// TerminalError applies. A return statement sets err before that only if err is a named result.
//
// A defer statement in the body runs when the function around the loop returns, not at the end of the turn. A panic
// passes through and leaves err as the turn has. Each range over the result is a run of its own. Two loops at a time,
// one inside the other included, need an err each. Attempts panics if err is nil, because no error could be reported.
func Attempts(ctx context.Context, p Policy, err *error) iter.Seq[context.Context] {
	if err == nil {
		panic("retry: Attempts.err <nil> is not a pointer to the error of the loop")
	}
	return func(yield func(context.Context) bool) {
		left := false
		result := Do(ctx, p, func(ctx context.Context) error {
			*err = unset{}
			left = !yield(ctx)
			switch {
			case *err == nil || left && *err == unset{}:
				return nil
			case left || errors.Is(*err, unset{}):
				return Permanent(*err)
			default:
				return *err
			}
		})
		switch { // after a panic err stays as the turn has left it, so that a recover does not make it a success
		case !left:
			*err = result
		case *err == unset{}:
			*err = nil
		}
	}
}

// unset is the error of a turn that has not set one. It has no size, so that it needs no memory.
type unset struct{}

func (unset) Error() string {
	return "retry: a turn of Attempts ended without an error or nil in its variable" +
		" (set the variable given to Attempts, to nil after a success; := declares another one)"
}
