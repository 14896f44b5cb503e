package retrygrpc

import (
	"context"
	"slices"

	"github.com/retrygo/retry"
)

// readContext is the context of an attempt as the caller of the stream sees it: the attempt's, without the number of
// the attempt. Calls that the caller makes under it are not part of the attempt.
type readContext struct {
	context.Context
	caller context.Context
}

// Value answers for the attempt's number from the caller's context.
func (c readContext) Value(key any) any {
	if slices.Contains(numberKeys, key) {
		return c.caller.Value(key)
	}
	return c.Context.Value(key)
}

// numberKeys are the keys under which retry.AttemptNumber looks, which it does not export.
var numberKeys = func() []any {
	asked := &askedContext{Context: context.Background()}
	retry.AttemptNumber(asked)
	return asked.keys
}()

// askedContext notes the keys that it is asked for.
type askedContext struct {
	context.Context
	keys []any
}

// Value returns nil.
func (c *askedContext) Value(key any) any {
	c.keys = append(c.keys, key)
	return nil
}
