package retryaws

import (
	"context"
	"fmt"
	"io"
	"sync/atomic"
	"time"

	"github.com/aws/smithy-go/middleware"
	smithyhttp "github.com/aws/smithy-go/transport/http"

	"github.com/retrygo/retry"
	"github.com/retrygo/retry/retryshell"
)

type call struct {
	policy retry.Policy // the operation's, with the classifier of this package
	in     middleware.FinalizeInput
	next   middleware.FinalizeHandler

	out      middleware.FinalizeOutput // of the last attempt
	class    retry.Class               // of its error
	answer   error                     // its error, if it is the service's answer
	metadata middleware.Metadata       // of the last attempt
}

// attempt makes one attempt. ctx is Do's.
func (c *call) attempt(ctx context.Context) error {
	if req, ok := c.in.Request.(*smithyhttp.Request); ok && retry.AttemptNumber(ctx) > 1 {
		if err := req.RewindStream(); err != nil {
			return retry.Permanent(err)
		}
	}
	var err error
	a := &attempt{policy: &c.policy}
	if c.out, c.metadata, err = a.send(ctx, c.in, c.next); err == nil {
		return nil
	}
	c.class, _ = c.policy.Judge(err)
	switch {
	case c.class == retry.Terminal && answered(err):
		c.answer = err
		return nil
	case c.class == retry.Retryable && !c.repeatable():
		return retry.Permanent(fmt.Errorf("%w (not repeated: the request's body cannot be rewound)", err))
	}
	return hinted(err)
}

// repeatable reports whether the request's body can be sent again.
func (c *call) repeatable() bool {
	req, ok := c.in.Request.(*smithyhttp.Request)
	return !ok || req.GetStream() == nil || req.IsStreamSeekable()
}

// attempt is one attempt. The steps after the SDK's find it in the context.
type attempt struct {
	policy *retry.Policy
	cancel context.CancelCauseFunc // nil without a timeout
	open   atomic.Bool             // there is a body that is not closed yet
	body   io.Closer               // that body
}

type attemptKey struct{}

func attemptOf(ctx context.Context) *attempt {
	a, _ := middleware.GetStackValue(ctx, attemptKey{}).(*attempt)
	return a
}

// send makes the attempt. Its context ends with it or, if the output has a body to read, with the body.
func (a *attempt) send(
	ctx context.Context, in middleware.FinalizeInput, next middleware.FinalizeHandler,
) (out middleware.FinalizeOutput, metadata middleware.Metadata, err error) {
	ctx = middleware.WithStackValue(ctx, attemptKey{}, a)
	timeout := a.policy.AttemptTimeout
	if deadline, ok := ctx.Deadline(); timeout == 0 || ok && time.Until(deadline) <= timeout {
		return next.HandleFinalize(ctx, in)
	}
	caller := ctx
	ctx, a.cancel = context.WithCancelCause(caller)
	timer := time.AfterFunc(timeout, func() { a.cancel(retry.ErrAttemptTimeout) })
	defer timer.Stop()
	end := a.cancel
	defer func() { end(nil) }()
	out, metadata, err = next.HandleFinalize(ctx, in)
	if err == nil && a.open.Load() {
		end = func(error) {} // the Close of the body ends the context
	}
	if timer.Stop() || caller.Err() != nil {
		return out, metadata, err
	}
	if err == nil && a.open.Load() {
		_ = a.body.Close() // it can no longer be used
		err = retry.ErrAttemptTimeout
	}
	if err != nil {
		err = retryshell.MarkTimeout(err)
	}
	return out, metadata, err
}

// guarded makes closing a response's body end the attempt's context, if that has a timeout.
func guarded(
	ctx context.Context, in middleware.DeserializeInput, next middleware.DeserializeHandler,
) (middleware.DeserializeOutput, middleware.Metadata, error) {
	out, metadata, err := next.HandleDeserialize(ctx, in)
	a := attemptOf(ctx)
	if a == nil || a.cancel == nil {
		return out, metadata, err
	}
	if resp, ok := out.RawResponse.(*smithyhttp.Response); ok && resp.Body != nil {
		a.open.Store(true)
		resp.Body = &body{resp.Body, a}
		a.body = resp.Body
	}
	return out, metadata, err
}

// body is a response's body whose Close ends the attempt.
type body struct {
	io.ReadCloser
	attempt *attempt
}

func (b *body) Close() error {
	err := b.ReadCloser.Close()
	b.attempt.open.Store(false)
	b.attempt.cancel(nil)
	return err
}
