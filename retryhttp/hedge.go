package retryhttp

import (
	"context"
	"net/http"

	"github.com/retrygo/retry"
	"github.com/retrygo/retry/retryhedge"
)

// Hedge sends a request that is slow, and has not failed, a second time beside the first (see retryhedge). The response
// that comes first is the attempt's, and its context lives until its body is read to the end or closed.
//
// Only GET, HEAD, OPTIONS and TRACE are hedged, and requests that send an Idempotency-Key or X-Idempotency-Key, by
// IdempotencyKey too. Fewer requests are hedged than repeated. A retry follows a failure, but a hedge runs beside a
// request that may succeed, and its answer may come first. The first request has just made its change, so the hedge of
// a PUT with If-Match is answered 412 and the hedge of a DELETE 404. A PUT that hangs can also undo a later one of the
// caller. A body must be one that can be sent twice at a time (GetBody, BufferBody). A Gate is not asked for a hedge.
// All requests of an attempt carry the same AttemptHeader, and AttemptTimeout covers them together. Accept, Hint,
// Repeat and GetBody can be called for two of them at the same time.
type Hedge struct {
	// Policy decides when to hedge. Without a Budget of its own, the Budget of the run's policy pays for hedges too.
	// Its Classify decides which failures end the other requests, after the rules of the Transport. The zero Policy
	// makes no hedges.
	Policy retryhedge.Policy
	// Base makes the hedges. Over HTTP/2 one transport sends all requests for a host on one connection, so that a hedge
	// on it does not help against a slow or dead connection, only against a slow server. Set another NewBase, or a
	// transport to another replica. Nil means Transport.Base.
	Base http.RoundTripper
}

// HedgeOf returns the event of the attempt that ended with resp, which a Transport with Hedge returned. The event has
// the number of requests and which one won. HedgeOf reports false if the attempt could not be hedged, and if the
// context of resp's request is not from WithOutcome.
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

// isHedged reports whether an attempt can have a second request.
func (q *request) isHedged() bool {
	h := q.transport.Hedge
	if h == nil || h.Policy.Off() {
		return false
	}
	if !isSafe(q.req.Method) && q.key == "" && !sendsKey(q.req.Header) {
		return false
	}
	return q.body.stream == nil
}

// race makes an attempt of one exchange, and of hedges beside it. ctx is Do's.
func (r *run) race(ctx context.Context) error {
	body, err := r.request.body.next(r.request.req)
	if err != nil {
		return r.judged(notSent(BodyNotReplayable, err), nil)
	}
	first := &exchange{run: r} // not in r.room, because a hedge can begin after the attempt has ended
	r.last = first
	first.begin(ctx)
	within := first.context()
	l := first.limit
	x, release, err := retryhedge.Open(within, r.hedgePolicy(), func(own context.Context) (*exchange, error) {
		if retryhedge.IsHedge(own) {
			x := &exchange{run: r, isHedge: true, ctx: own}
			return x, x.hedge(within)
		}
		first.ctx = own
		err := first.compete(within, body)
		r.last = nil // it is with Open now
		return first, err
	}, (*exchange).drop)
	if l == nil {
		l = new(limit)
	}
	l.endWinner = release
	if x.resp == nil {
		l.release()
		return err
	}
	if !l.stop() {
		return x.late(l)
	}
	x.keep(l)
	l.settle()
	r.last = x
	return err
}

// hedge makes an exchange beside the first one.
func (x *exchange) hedge(within context.Context) error {
	q := &x.run.request
	body, err := q.body.another(q.req)
	if err != nil {
		x.err = err
		return retry.Transient(err) // the request under way has its body
	}
	return x.compete(within, body)
}

// compete makes an exchange among several. within is the context of the attempt.
func (x *exchange) compete(within context.Context, body sending) error {
	x.listen()
	x.send(x.outgoing(body))
	switch {
	case x.err == nil && x.run.request.accepts(x.resp):
		return nil
	case x.err == nil:
		return x.verdict()
	case x.ctx.Err() != nil && within.Err() == nil:
		return x.err // another has won
	default:
		return x.failed(context.Cause(within) == retry.ErrAttemptTimeout)
	}
}

// hedgePolicy returns the policy of one attempt's exchanges.
func (r *run) hedgePolicy() retryhedge.Policy {
	own := r.request.policy
	p := r.request.transport.Hedge.Policy
	if p.Budget == nil || p.Budget == own.Budget {
		p.Budget = own.Budget
		p.InRun = true // the success of the run funds the budget
	}
	observe := p.Observe
	if observe == nil && recordsOf(r.Context) == nil {
		return p
	}
	p.Observe = func(_ context.Context, e retryhedge.Event) {
		r.hedges = &e
		if observe != nil {
			observe(r.Context, e)
		}
	}
	return p
}
