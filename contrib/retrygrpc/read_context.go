package retrygrpc

import (
	"context"
	"slices"

	"github.com/retrygo/retry"
	"github.com/retrygo/retry/retryshell"
)

// readContext is an attempt's context for the caller of the stream, without the numbers of the attempt. Calls that the
// caller makes under it are not part of the attempt.
type readContext struct {
	context.Context
	caller context.Context
}

// Value looks up the attempt's numbers in the caller's context.
func (c readContext) Value(key any) any {
	if slices.Contains(numberKeys, key) {
		return c.caller.Value(key)
	}
	return c.Context.Value(key)
}

// numberKeys are the unexported keys that retry.AttemptNumber and retryshell.OuterAttemptNumber look up.
var numberKeys = func() []any {
	asked := &askedContext{Context: context.Background()}
	retry.AttemptNumber(asked)
	retryshell.OuterAttemptNumber(asked)
	return asked.keys
}()

// askedContext records the keys that are looked up.
type askedContext struct {
	context.Context
	keys []any
}

// Value returns nil.
func (c *askedContext) Value(key any) any {
	c.keys = append(c.keys, key)
	return nil
}
