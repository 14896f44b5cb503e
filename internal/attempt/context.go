// Package attempt marks contexts and errors for package retry and package retryshell.
package attempt

import (
	"cmp"
	"context"
)

// numbered is the context of an attempt.
type numbered struct {
	context.Context
	number int
	last   bool // no attempt of its run follows by count
}

type (
	numberKey struct{}
	outerKey  struct{}
)

func (c *numbered) Value(key any) any {
	if key == (numberKey{}) {
		return c
	}
	return c.Context.Value(key)
}

// Mark returns a context of the attempt with the given number, from 1. last means that no attempt follows it by count.
// An unmarked ctx belongs to a first attempt that another can follow, and is returned unchanged.
func Mark(ctx context.Context, number int, last bool) context.Context {
	if number == 1 && !last && Number(ctx) == 0 {
		return ctx
	}
	return &numbered{ctx, number, last}
}

// Number returns the number that is nearest to ctx, or 0 if ctx has no number.
func Number(ctx context.Context) int { return nearest(ctx).number }

// Last reports whether ctx is of an attempt after which no other follows by count.
func Last(ctx context.Context) bool { return nearest(ctx).last }

// nearest returns a zero value if no attempt has marked ctx.
func nearest(ctx context.Context) (c numbered) {
	if ctx == nil {
		return c
	}
	if found, ok := ctx.Value(numberKey{}).(*numbered); ok {
		c = *found
	}
	return c
}

// one is the context of work that other code repeats.
type one struct {
	numbered
	outer int
}

func (c *one) Value(key any) any {
	if key == (outerKey{}) {
		return c
	}
	return c.numbered.Value(key)
}

// One returns a context for work that other code repeats. It has the number of ctx, or 1. Its outer number is the outer
// number of ctx, or else its own number. It is of a last attempt if ctx is, since a run under it numbers attempts of
// its own. One, Remote and Of of a nil context are nil, which Do refuses.
func One(ctx context.Context) context.Context {
	if ctx == nil {
		return nil
	}
	number := max(Number(ctx), 1)
	return &one{numbered{ctx, number, Last(ctx)}, cmp.Or(Outer(ctx), number)}
}

// Remote returns a context for work that other code repeats, with the given numbers.
func Remote(ctx context.Context, number int) context.Context {
	if ctx == nil {
		return nil
	}
	return &one{numbered{ctx, number, false}, number}
}

// Outer returns the number of the attempt that other code makes, or 0 if no other code makes one.
func Outer(ctx context.Context) int {
	if ctx == nil {
		return 0
	}
	c, ok := ctx.Value(outerKey{}).(*one)
	if !ok {
		return 0
	}
	return c.outer
}

// Of returns ctx with the numbers of other.
func Of(ctx, other context.Context) context.Context {
	if ctx == nil || other == nil {
		return ctx
	}
	return &of{ctx, other}
}

type of struct {
	context.Context
	other context.Context
}

func (c *of) Value(key any) any {
	if key == (numberKey{}) || key == (outerKey{}) {
		return c.other.Value(key)
	}
	return c.Context.Value(key)
}
