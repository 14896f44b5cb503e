package retry

import (
	"context"
	"iter"

	"github.com/retrygo/retry/internal/attempt"
)

// DoValue is Do for an fn that returns a value as well. It returns the value of the last attempt, which may have failed,
// and the zero value if no attempt was made. With AttemptTimeout the attempt's context is done when DoValue returns, so
// a value bound to it, such as a response body or sql.Rows, cannot be read: use package retryhttp or retrysql.
func DoValue[T any](ctx context.Context, p Policy, fn func(context.Context) (T, error)) (T, error) {
	var value T
	if fn == nil {
		return value, Do(ctx, p, nil)
	}
	err := Do(ctx, p, func(ctx context.Context) (err error) {
		value, err = fn(ctx)
		return err
	})
	return value, err
}

// Wrap returns h with retries: each call of the result is one DoValue of its own. A nil h is refused at each call. For a
// policy that may change, such as that of a retryconf.Ref, call DoValue with the policy of the moment.
func Wrap[Req, Resp any](
	p Policy, h func(context.Context, Req) (Resp, error),
) func(context.Context, Req) (Resp, error) {
	return func(ctx context.Context, req Req) (Resp, error) {
		if h == nil {
			return DoValue[Resp](ctx, p, nil)
		}
		return DoValue(ctx, p, func(ctx context.Context) (Resp, error) { return h(ctx, req) })
	}
}

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

// AttemptNumber returns the number of the attempt whose context ctx is or descends from: 1 on the first attempt, 2, 3,
// ... on retries. It is 1 if no run has marked ctx. A nested run counts from 1 again.
func AttemptNumber(ctx context.Context) int { return max(attempt.Number(ctx), 1) }

// OneAttempt returns a context under which every run makes one attempt, whatever its policy, because other code repeats
// the work: a failure ends the run as FailedNoRetries(RetriesDisabled), and no budget is asked. All contexts derived from it
// inherit this, context.WithoutCancel included. OneAttempt(nil) is nil, which Do refuses.
func OneAttempt(ctx context.Context) context.Context { return attempt.One(ctx) }

// ErrAttemptTimeout is context.Cause of an attempt's context once AttemptTimeout has passed, unless the caller's own
// deadline came first or at the same instant. It matches context.DeadlineExceeded, which such a context's Err returns.
var ErrAttemptTimeout = attempt.ErrTimeout
