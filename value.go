package retry

import "context"

// DoValue is Do for an fn that returns a value as well. It returns the value of the last attempt, which may have
// failed, and the zero value if no attempt was made. With AttemptTimeout the attempt's context is done when DoValue
// returns, so a value bound to it, such as a response body or sql.Rows, cannot be read. Use package retryhttp or
// retrysql.
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

// Wrap returns h with retries. Each call of the result is one DoValue of its own. A nil h is refused at each call. For
// a policy that may change, such as the policy of a retryconf.Ref, call DoValue with the policy of the moment.
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

// Checked returns fn with a check of its results, for Do functions whose result can be a failure without an error:
//
//	order, err := retry.DoValue(ctx, p, retry.Checked(fetch, func(o Order) error {
//		if o.Pending {
//			return errPending
//		}
//		return nil
//	}))
//
// check is called only if fn returned nil. Its error, marks included, becomes the error of the attempt, and the value
// is kept, so that DoValue returns the last one also if the run fails. With a nil check Checked returns fn. A nil fn
// stays nil, which DoValue refuses.
func Checked[T any](fn func(context.Context) (T, error), check func(T) error) func(context.Context) (T, error) {
	if fn == nil || check == nil {
		return fn
	}
	return func(ctx context.Context) (T, error) {
		value, err := fn(ctx)
		if err == nil {
			err = check(value)
		}
		return value, err
	}
}
