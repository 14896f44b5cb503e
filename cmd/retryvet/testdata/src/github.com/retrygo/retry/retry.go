// Package retry has the declarations of the library that the test data calls.
package retry

import (
	"context"
	"iter"
	"time"
)

const Unlimited = -1

type Jitter uint8

const (
	NoJitter Jitter = iota
	FullJitter
	EqualJitter
	RatioJitter
	DecorrelatedJitter
)

type Mode uint8

const (
	Exponential Mode = iota + 1
	Linear
	Fixed
	List
)

type Backoff struct {
	Mode        Mode
	Base, Cap   time.Duration
	Factor      float64
	Jitter      Jitter
	JitterRatio float64
	Delays      []time.Duration
}

type Policy struct {
	Name        string
	MaxAttempts int
	Backoff
	AttemptTimeout, TTL, MaxHint, ResetAfter time.Duration
	Disabled                                 bool
	Gate                                     func(context.Context) time.Duration
	Budget                                   *Budget
}

type Budget struct{}

type Error struct{ Err error }

func (e *Error) Error() string { return "" }

func Inline() Policy   { return Policy{} }
func Standard() Policy { return Policy{} }

func (p Policy) Or(Policy) Policy { return p }

func Do(ctx context.Context, p Policy, fn func(context.Context) error) error { return nil }

func DoValue[T any](ctx context.Context, p Policy, fn func(context.Context) (T, error)) (value T, err error) {
	return value, nil
}

func Checked[T any](fn func(context.Context) (T, error), check func(T) error) func(context.Context) (T, error) {
	return fn
}

func Attempts(ctx context.Context, p Policy, err *error) iter.Seq[context.Context] { return nil }

func Wrap[Req, Resp any](p Policy, h func(context.Context, Req) (Resp, error)) func(context.Context, Req) (Resp, error) {
	return h
}

func WrapFunc[Req, Resp any](p func() Policy, h func(context.Context, Req) (Resp, error)) func(context.Context, Req) (Resp, error) {
	return h
}

func Permanent(err error) error                      { return err }
func Transient(err error) error                      { return err }
func Ambiguous(err error) error                      { return err }
func After(d time.Duration, err error) error         { return err }
func OneAttempt(ctx context.Context) context.Context { return ctx }
