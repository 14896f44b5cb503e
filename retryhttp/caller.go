package retryhttp

import (
	"context"
	"net/http"
	"time"
)

// caller is the context of a request's caller. It heeds Request.Cancel, which http.Client sets for its Timeout, as it
// heeds the request's context.
type caller struct {
	context.Context                 // the request's
	cancel          <-chan struct{} // Request.Cancel
	done            *done           // nil until something waits for cancel
}

// done has the channels of a caller with a Request.Cancel.
type done struct {
	canceled chan struct{} // closed with Request.Cancel or the context
	finished chan struct{} // ends the goroutine that waits for these
}

func callerOf(req *http.Request) caller {
	return caller{Context: req.Context(), cancel: cancelChan(req)}
}

func cancelChan(req *http.Request) <-chan struct{} {
	//lint:ignore SA1019 http.Client sets it, so it has to be heeded
	return req.Cancel
}

// Done returns a channel that ends with the context and with Request.Cancel.
func (c *caller) Done() <-chan struct{} {
	if c.cancel == nil {
		return c.Context.Done()
	}
	if c.done == nil {
		c.done = &done{make(chan struct{}), make(chan struct{})}
		go c.done.wait(c.Context, c.cancel)
	}
	return c.done.canceled
}

func (d *done) wait(ctx context.Context, cancel <-chan struct{}) {
	select {
	case <-cancel:
	case <-ctx.Done():
	case <-d.finished:
		return
	}
	close(d.canceled)
}

// Err returns the context's error once the context has ended. A closed Request.Cancel counts as canceled, or as the deadline if
// that has passed, because with http.Client.Timeout both come at the same time, in any order.
func (c *caller) Err() error {
	if err := c.Context.Err(); err != nil {
		return err
	}
	select {
	case <-c.cancel: // a nil channel is never ready
	default:
		return nil
	}
	if deadline, ok := c.Deadline(); ok && !time.Now().Before(deadline) {
		return context.DeadlineExceeded
	}
	return context.Canceled
}

// finish ends the goroutine that waits for Request.Cancel, if there is one.
func (c *caller) finish() {
	if c.done != nil {
		close(c.done.finished)
	}
}

// attempt returns the context of a retry, which the transport gets in the request. It is the context that Do has made,
// with its number. If the caller has a Request.Cancel, the context is not below the run, whose Done would have to wait
// for Request.Cancel. The transport heeds Request.Cancel itself.
func (c *caller) attempt(numbered context.Context) context.Context {
	if c.cancel == nil {
		return numbered
	}
	return &attemptContext{c.Context, numbered}
}

type attemptContext struct {
	context.Context
	numbered context.Context
}

func (a *attemptContext) Value(key any) any { return a.numbered.Value(key) }
