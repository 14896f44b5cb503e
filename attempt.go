package retry

import "context"

// AttemptNumber returns the number of the attempt whose context ctx is or descends from: 1 on the first attempt, 2, 3,
// ... on retries. It is 1 if no run has marked ctx. A nested run counts from 1 again.
func AttemptNumber(ctx context.Context) int {
	if ctx != nil {
		if c := numberOf(ctx); c != nil {
			return c.number
		}
	}
	return 1
}

// OneAttempt returns a context under which every run makes one attempt, whatever its policy says, because something
// else repeats the work: a failure ends the run as Failed(RetriesDisabled), and no budget is asked. Everything that
// descends from the context inherits this, context.WithoutCancel included.
func OneAttempt(ctx context.Context) context.Context {
	return &numbered{ctx, AttemptNumber(ctx), true}
}

// IsOneAttempt reports whether ctx is from OneAttempt or descends from it, for shells that repeat without Do.
func IsOneAttempt(ctx context.Context) bool {
	c := numberOf(ctx)
	return c != nil && c.one
}

// numberKey is the context key of the number of an attempt.
type numberKey struct{}

// numbered is a context with the number of an attempt.
type numbered struct {
	context.Context
	number int
	one    bool // from OneAttempt
}

func (c *numbered) Value(key any) any {
	if key == (numberKey{}) {
		return c
	}
	return c.Context.Value(key)
}

// numberOf returns the innermost numbered context of ctx, or nil.
func numberOf(ctx context.Context) *numbered {
	c, _ := ctx.Value(numberKey{}).(*numbered)
	return c
}
