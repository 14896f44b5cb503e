package retry

import "context"

// DoValue is Do for an fn that returns a value as well. It returns the value of the last attempt, also if that failed,
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

// Wrap returns h with retries: each call of the result is one DoValue of its own. A nil h is refused at each call.
func Wrap[Req, Resp any](
	p Policy, h func(context.Context, Req) (Resp, error),
) func(context.Context, Req) (Resp, error) {
	return WrapFunc(func() Policy { return p }, h)
}

// WrapFunc is Wrap with a policy that may change: it asks policy once for each call, before the first attempt. The
// Policy method of a retryconf.Ref fits, so that a reloaded document reaches calls that are wrapped already. A nil
// policy is refused at each call.
func WrapFunc[Req, Resp any](
	policy func() Policy, h func(context.Context, Req) (Resp, error),
) func(context.Context, Req) (Resp, error) {
	return func(ctx context.Context, req Req) (resp Resp, err error) {
		switch {
		case policy == nil:
			var bad FieldErrors
			bad.Refuse("WrapFunc.policy", nil, "is not a function")
			return resp, bad.Err()
		case h == nil:
			return DoValue[Resp](ctx, policy(), nil)
		}
		return DoValue(ctx, policy(), func(ctx context.Context) (Resp, error) { return h(ctx, req) })
	}
}
