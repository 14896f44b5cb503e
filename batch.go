package retry

import (
	"cmp"
	"context"
	"errors"
	"fmt"

	"github.com/retrygo/retry/internal/attempt"
)

// ItemError is an item of a batch that was not done, and the reason.
type ItemError[T any] struct {
	Item T
	Err  error
}

// Error returns the text of Err.
func (e ItemError[T]) Error() string { return fmt.Sprint(e.Err) }

// Unwrap returns Err.
func (e ItemError[T]) Unwrap() error { return e.Err }

// ItemErrors returns each of the items with err.
func ItemErrors[T any](items []T, err error) []ItemError[T] {
	failed := make([]ItemError[T], len(items))
	for i, item := range items {
		failed[i] = ItemError[T]{item, err}
	}
	return failed
}

// DoBatch is Do for a call that can fail for some of its items. fn is given all items at first, and then those that are
// left. It returns the items that were not done. DoBatch returns nil and nil if all items were done. Otherwise it
// returns the items that were not, each with its last error, and the error of the run. The items with a terminal error
// come first.
//
// The policy judges the error of each item like the error of an attempt. An item whose error is terminal is not given
// again. When only such items are left, the run ends as TerminalError. The longest hint of an item is the hint of the
// attempt. Ambiguous in an item does not end the run for the others, and IsAmbiguous finds it in the error of the run.
//
// An attempt that did at least one item has Progressed, so attempts and delays begin anew. Set TTL, or Budget, which
// every repeat pays, if n times MaxAttempts attempts for n items are too many.
//
// If fn returns an error and no items, it has not done any of the items that it was given. If it returns an error with
// items, these were not done, and a terminal error ends the run. An item without an Err has the error of the call. fn
// may change the slice that it is given. It returns each item that was not done once, and only items that it was given.
// DoBatch does not compare them, but if fn returns more items than it was given, the run ends as TerminalError.
//
// For a service that accepts a limited number of items call DoBatch with each chunk of slices.Chunk. Without items
// DoBatch checks its arguments and returns.
func DoBatch[T any](
	ctx context.Context, p Policy, items []T, fn func(context.Context, []T) ([]ItemError[T], error),
) ([]ItemError[T], error) {
	b := batch[T]{policy: p, total: len(items), left: ItemErrors(items, nil)}
	once := func(ctx context.Context) error {
		failed, err := fn(ctx, b.given())
		return b.follow(ctx, failed, err)
	}
	if fn == nil {
		once = nil
	}
	var err error
	if len(items) == 0 {
		err = refused(ctx, &p, once)
	} else {
		err = Do(ctx, p, once)
	}
	return b.failed(err), err
}

// batch is the state of a DoBatch.
type batch[T any] struct {
	policy  Policy
	total   int
	left    []ItemError[T] // to be given again
	refused []ItemError[T] // with a terminal error
}

// given returns a copy of the items that are left.
func (b *batch[T]) given() []T {
	items := make([]T, len(b.left))
	for i, left := range b.left {
		items[i] = left.Item
	}
	return items
}

// follow takes over the result of fn, and returns the error of the attempt.
func (b *batch[T]) follow(ctx context.Context, failed []ItemError[T], err error) error {
	given := len(b.left)
	if len(failed) > given {
		err = Permanent(fmt.Errorf("retry: DoBatch.fn was given %d items and returned %d", given, len(failed)))
		failed = nil
	}
	if len(failed) == 0 && err != nil {
		for i := range b.left {
			b.left[i].Err = err
		}
		return err
	}
	b.left = nil
	for _, item := range failed {
		b.note(ctx, item, err)
	}
	if len(b.left) == 0 && len(b.refused) == 0 {
		return nil
	}
	class := Retryable
	ofCall, _ := b.policy.Judge(err)
	if len(b.left) == 0 || ofCall == Terminal {
		class = Terminal
	}
	return &mark{err: b.error(err), class: class, progressed: len(failed) < given, batch: true}
}

// note takes over that an item was not done in a call that returned err.
func (b *batch[T]) note(ctx context.Context, item ItemError[T], err error) {
	item.Err = cmp.Or(item.Err, err)
	if item.Err == nil {
		item.Err = errors.New("not done")
	}
	if context.Cause(ctx) == ErrAttemptTimeout {
		item.Err = attempt.MarkTimeout(item.Err)
	}
	class, _ := b.policy.Judge(item.Err)
	if class == Terminal {
		b.refused = append(b.refused, item)
	} else {
		b.left = append(b.left, item)
	}
}

// error returns the error of an attempt after which items are left or refused. err is the error of the call, or nil.
func (b *batch[T]) error(err error) error {
	e := &batchError{total: b.total, failed: len(b.refused) + len(b.left)}
	if err != nil {
		e.errs = append(e.errs, err)
	}
	for _, items := range [][]ItemError[T]{b.left, b.refused} {
		for _, item := range items {
			e.errs = append(e.errs, item)
		}
	}
	return e
}

// failed returns the items that were not done in a run that ended with err.
func (b *batch[T]) failed(err error) []ItemError[T] {
	for i, left := range b.left {
		if left.Err == nil { // no attempt was made
			b.left[i].Err = err
		}
	}
	return append(b.refused, b.left...)
}

// batchError is the error of an attempt that did not do all items.
type batchError struct {
	failed int
	total  int
	errs   []error // not empty
}

func (e *batchError) Error() string {
	return fmt.Sprintf("%d of %d items failed: %v", e.failed, e.total, e.errs[0])
}

func (e *batchError) Unwrap() []error { return e.errs }
