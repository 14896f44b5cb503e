package retry

import "context"

// AttemptNumber returns the number of the attempt whose context ctx is or descends from: 1 on the first attempt, 2, 3,
// ... on retries. It is 1 where no run has marked ctx. A nested run counts from 1 again.
func AttemptNumber(ctx context.Context) int {
	if ctx != nil {
		if c, ok := ctx.Value(numberKey{}).(*numbered); ok {
			return c.number
		}
	}
	return 1
}

// numberKey is the context key of the attempt's number.
type numberKey struct{}

// numbered is a context with the number of an attempt.
type numbered struct {
	context.Context
	number int
}

func (c *numbered) Value(key any) any {
	if key == (numberKey{}) {
		return c
	}
	return c.Context.Value(key)
}

// nested reports whether ctx comes from a retry of another run, whose number the first attempt must not show.
func nested(ctx context.Context) bool { return ctx.Value(numberKey{}) != nil }
