// Package attempt marks contexts and errors for package retry and package retryshell.
package attempt

import (
	"cmp"
	"context"
)

// Numbered is a context with the number of an attempt.
type Numbered struct {
	context.Context
	Number int
}

type (
	numberKey struct{}
	outerKey  struct{}
)

// Value returns c for the key of Number.
func (c *Numbered) Value(key any) any {
	if key == (numberKey{}) {
		return c
	}
	return c.Context.Value(key)
}

// Number returns the number that is nearest to ctx, and 0 if there is none.
func Number(ctx context.Context) int {
	if ctx == nil {
		return 0
	}
	c, ok := ctx.Value(numberKey{}).(*Numbered)
	if !ok {
		return 0
	}
	return c.Number
}

// one is the context of work that other code repeats.
type one struct {
	Numbered
	outer int
}

func (c *one) Value(key any) any {
	if key == (outerKey{}) {
		return c
	}
	return c.Numbered.Value(key)
}

// One returns a context for work that other code repeats. Its number is that of ctx, or 1, and its outer number that of
// ctx or, if there is none, its number. One, Remote and Of of a nil context are nil, which Do refuses.
func One(ctx context.Context) context.Context {
	if ctx == nil {
		return nil
	}
	number := cmp.Or(Number(ctx), 1)
	return &one{Numbered{ctx, number}, cmp.Or(Outer(ctx), number)}
}

// Remote returns a context for work that other code repeats, with the given numbers.
func Remote(ctx context.Context, number int) context.Context {
	if ctx == nil {
		return nil
	}
	return &one{Numbered{ctx, number}, number}
}

// Outer returns the number of the attempt that other code makes, and 0 if none does.
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
