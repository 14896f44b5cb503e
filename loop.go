package retry

import (
	"context"
	"iter"
)

// Attempts is Do whose fn is the body of a range loop, for bodies with control flow of their own:
//
//	var err error
//	for ctx := range retry.Attempts(ctx, retry.Inline(), &err) {
//		if err = send(ctx); err == errStale {
//			return refresh()
//		}
//	}
//	return err
//
// Each turn is an attempt and gets its context. *err is nil when a turn begins, and what the body leaves in it at the
// end of the turn is the attempt's error: nil ends the loop with success. After the loop *err is what Do would have
// returned: nil, an *Error, or FieldErrors after no turn for arguments that Do refuses.
//
// Leaving the loop early (break, return, goto) ends the run, and *err stays as the body left it: with nil the run is a
// success for Observe and the Budget; otherwise the error counts as Permanent, unless an ending that goes before
// TerminalError applies. A return statement sets *err before that only if err is a named result.
//
// The body must set err itself: an err that it declares anew (resp, err := send(ctx)) is another variable, and the loop
// ends after one turn. A panic passes through. Each range over the result is a run of its own; two at a time need
// an err each. Attempts panics if err is nil, because no error could be reported.
func Attempts(ctx context.Context, p Policy, err *error) iter.Seq[context.Context] {
	if err == nil {
		panic("retry: Attempts.err <nil> is not a pointer to the error of the loop")
	}
	return func(yield func(context.Context) bool) {
		left := false
		ended := Do(ctx, p, func(ctx context.Context) error {
			*err = nil
			if left = !yield(ctx); left {
				return Permanent(*err)
			}
			return *err
		})
		if !left {
			*err = ended
		}
	}
}
