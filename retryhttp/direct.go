package retryhttp

import (
	"context"
	"net/http"
	"time"

	"github.com/retrygo/retry"
)

// direct makes the first attempt at a request that needs no more than a base and a timeout, and a run only if that fails.
// It saves a GET one allocation of five and a third of the time that is not the base's (BenchmarkHTTP of bench).
func (t *Transport) direct(req *http.Request, p *retry.Policy) (*http.Response, error) {
	began := time.Since(epoch)
	out := req
	var l *limit
	if d := p.AttemptTimeout; d > 0 && !endsWithin(req.Context(), d) {
		l = newLimit(req.Context(), d)
		defer l.settle()
		out = req.WithContext(l)
	}
	resp, err := t.base().RoundTrip(out)
	if err != nil || resp == nil || !succeeded(resp.StatusCode) || !l.stop() {
		return newRun(t, p, req).follow(began, l, resp, err)
	}
	p.Spend(req.Context(), retry.Decision{Status: retry.Succeeded}, time.Time{})
	if resp.Request != req {
		resp.Request = req
	}
	guard(resp, l, 0)
	return resp, nil
}

// follow makes the attempts after a direct one, which began at the given time and ended with resp and err.
func (r *run) follow(began time.Duration, l *limit, resp *http.Response, err error) (*http.Response, error) {
	defer r.finish()
	r.began = began
	r.request.repeatable = true // an idempotent method, no key to add and no body
	r.request.prepared = true
	x := &r.room
	r.last = x
	x.run = r
	x.limit = l
	x.answered(resp, err)
	p := r.policy()
	if err = x.conclude(); err != nil {
		return r.end(p.Continue(r, time.Since(epoch)-began, err, r.attempt))
	}
	p.Spend(r, retry.Decision{Status: retry.Succeeded}, time.Time{})
	return r.end(nil)
}

// isBare reports whether t changes neither the request of a first attempt nor its response.
func (t *Transport) isBare() bool {
	switch {
	case t.Hedge != nil, t.Resume, t.Accept != nil:
		return false
	case t.TimeLeftHeaders != nil, t.AttemptHeader != "":
		return false
	default:
		return t.StallTimeout == 0 && t.BufferBody >= 0
	}
}

// isBare reports whether req has no body, no key to get and no Cancel to heed.
func isBare(req *http.Request) bool {
	switch {
	case !idempotentMethod(req.Method), cancelChan(req) != nil:
		return false
	default:
		return req.Body == nil || req.Body == http.NoBody
	}
}

// isQuiet reports whether p is valid and calls no function of the caller at a first attempt that succeeds.
func isQuiet(p *retry.Policy) bool { return p.Gate == nil && p.Observe == nil && p.Validate() == nil }

// isUnmarked reports whether ctx is not done, records no runs and is of no other run's retry.
func isUnmarked(ctx context.Context) bool {
	return ctx.Err() == nil && recordsOf(ctx) == nil && retry.AttemptNumber(ctx) == 1
}
