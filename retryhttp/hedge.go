package retryhttp

import (
	"context"
	"net/http"
	"sync/atomic"

	"github.com/retrygo/retry"
	"github.com/retrygo/retry/retryhedge"
)

// Hedge says when a request that is slow, and has not failed, is sent a second time beside the first (see retryhedge).
// The response that comes first is the attempt's, and its context lives until its body is read to the end or closed.
//
// Only a request that is safe to repeat (see Transport.Repeat), or has a key by IdempotencyKey, is hedged, and only
// without a body or with one that can be had again (GetBody, BufferBody). A Gate is not asked for a hedge. All requests
// of an attempt carry the same AttemptHeader, and AttemptTimeout covers them together. Accept, Hint, Repeat and GetBody
// can be called for two of them at the same time.
type Hedge struct {
	// Policy says when. Without a Budget of its own, that of the run's policy pays for hedges too. Classify is asked what
	// ends the other requests after the rules of the Transport. The zero Policy makes no hedges.
	Policy retryhedge.Policy
	// Base makes the hedges. Over HTTP/2 one transport sends all requests for a host on one connection, so that a hedge on
	// it does not help against a slow or dead connection, only against a slow server: give another NewBase, or a transport
	// to another replica. Nil means Transport.Base.
	Base http.RoundTripper
}

// HedgeOf returns what happened in the attempt that ended with resp, which a Transport with Hedge returned: how many
// requests were made and which one won. It reports false if the attempt could not be hedged, and if the context of resp's
// request is not from RecordOutcome.
func HedgeOf(resp *http.Response) (retryhedge.Event, bool) {
	if resp != nil && resp.Request != nil {
		if r := recordsOf(resp.Request.Context()); r != nil {
			if found := r.of(resp.Request); found != nil && found.hedges != nil {
				return *found.hedges, true
			}
		}
	}
	return retryhedge.Event{}, false
}

// hedged reports whether an attempt can have a second request.
func (c *call) hedged() bool {
	h := c.transport.Hedge
	return h != nil && !h.Policy.Off() && c.repeatable && c.payload.stream == nil
}

// hedge makes an attempt with out, and with hedges beside it, within ctx.
func (c *call) hedge(ctx context.Context, out *http.Request) error {
	h, p, timed := c.transport.Hedge, c.transport.Hedge.Policy, c.limit != nil
	if p.Budget == nil || p.Budget == c.policy.Budget {
		p.Budget, p.InRun = c.policy.Budget, true // the success of the run deposits
	}
	if p.Observe != nil || recordsOf(c.Context) != nil {
		p.Observe = func(_ context.Context, e retryhedge.Event) {
			c.hedges = &e
			if h.Policy.Observe != nil {
				h.Policy.Observe(c.Context, e)
			}
		}
	}
	kept := new(struct { // in one piece, since most calls are fast
		limit limit
		call  call                          // c as it is now: a request that has lost can outlive the attempt
		first atomic.Pointer[http.Response] // what the first request was answered
	})
	kept.call = *c
	resp, release, err := retryhedge.Open(ctx, p, func(own context.Context) (*http.Response, error) {
		c, first := &kept.call, !retryhedge.IsHedge(own)
		base, req := c.transport.base(), out.WithContext(own)
		if !first {
			if h.Base != nil {
				base = h.Base
			}
			if header := c.header(own); header != nil {
				req.Header = header // less time is left
			}
			if c.payload.getBody != nil {
				body, err := c.payload.again()
				if err != nil {
					return nil, retry.Transient(err) // the request under way has its body
				}
				req.Body = body
			}
		}
		resp, err := base.RoundTrip(req)
		switch {
		case err == nil && resp != nil:
			if first {
				kept.first.Store(resp)
			}
			return resp, c.verdict(resp, endedRun(resp))
		case err == nil:
			err = errNoResponse
		case resp != nil:
			closeBody(resp)
		}
		if own.Err() != nil && ctx.Err() == nil {
			return nil, err // another has won
		}
		return nil, c.failed(err, nil, timed && context.Cause(ctx) == retry.ErrAttemptTimeout)
	}, func(resp *http.Response) {
		if resp != nil {
			closeBody(resp) // its context has ended, so that there is nothing to read
		}
	})
	c.byHedge = resp != kept.first.Load()
	l := c.limit
	c.limit = nil
	if l == nil {
		l = &kept.limit
		l.cancel = func(error) { release() }
	} else {
		cancel := l.cancel
		l.cancel = func(cause error) { release(); cancel(cause) }
	}
	switch late := !l.stop(); {
	case resp != nil && late:
		closeBody(resp)
		err = c.failed(retry.ErrAttemptTimeout, nil, true)
		fallthrough
	case resp == nil:
		l.release()
	default:
		c.keep(resp, l)
	}
	return err
}
