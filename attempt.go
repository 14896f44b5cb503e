package retry

import (
	"cmp"
	"context"
)

// AttemptNumber returns the number of the attempt whose context ctx is or descends from: 1 on the first attempt, 2, 3,
// ... on retries. It is 1 if no run has marked ctx. A nested run counts from 1 again.
func AttemptNumber(ctx context.Context) int {
	if c := numberOf(ctx); c != nil {
		return c.number
	}
	return 1
}

// OneAttempt returns a context under which every run makes one attempt, whatever its policy, because other code repeats
// the work: a failure ends the run as Failed(RetriesDisabled), and no budget is asked. All contexts derived from it
// inherit this, context.WithoutCancel included.
func OneAttempt(ctx context.Context) context.Context {
	number := AttemptNumber(ctx)
	return &oneAttempt{numbered{ctx, number}, cmp.Or(OuterAttempt(ctx), number)}
}

// RemoteAttempt is OneAttempt for work that is an attempt of a run in another process, such as a request with a header
// that says so: it returns a context whose AttemptNumber and OuterAttempt are number. If number is 1 or less, the work
// is not a retry, and RemoteAttempt returns ctx. Such a request switches off the retries of the work that it causes, so
// believe only callers that make retries themselves.
func RemoteAttempt(ctx context.Context, number int) context.Context {
	if number <= 1 {
		return ctx
	}
	return &oneAttempt{numbered{ctx, number}, number}
}

// OuterAttempt returns the number of the attempt that other code makes of the work if ctx is from OneAttempt or
// RemoteAttempt, or derived from such a context: the number given to RemoteAttempt, or the AttemptNumber of the context
// given to OneAttempt. Otherwise it returns 0. It is for clients that report the number of their attempt to servers.
func OuterAttempt(ctx context.Context) int {
	if ctx == nil {
		return 0
	}
	c, ok := ctx.Value(outerKey{}).(*oneAttempt)
	if !ok {
		return 0
	}
	return c.outer
}

// IsOneAttempt reports whether ctx is from OneAttempt or RemoteAttempt, or descends from such, for shells that repeat
// without Do.
func IsOneAttempt(ctx context.Context) bool { return OuterAttempt(ctx) > 0 }

// numberKey and outerKey are the keys of what AttemptNumber and OuterAttempt return.
type (
	numberKey struct{}
	outerKey  struct{}
)

// numbered is the context of an attempt.
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

// oneAttempt is the context of work that something else repeats.
type oneAttempt struct {
	numbered
	outer int
}

func (c *oneAttempt) Value(key any) any {
	if key == (outerKey{}) {
		return c
	}
	return c.numbered.Value(key)
}

// numberOf returns the innermost numbered context of ctx, or nil.
func numberOf(ctx context.Context) *numbered {
	if ctx == nil {
		return nil
	}
	c, _ := ctx.Value(numberKey{}).(*numbered)
	return c
}
