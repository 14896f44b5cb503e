package retryhttp

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"slices"
	"sync"
	"sync/atomic"

	"github.com/retrygo/retry"
	"github.com/retrygo/retry/retryhedge"
)

// maxRecords is the largest number of records that one context keeps. It matters for a context at the root of a
// program.
const maxRecords = 64

// WithOutcome returns a context whose requests leave a record of their runs, for OutcomeOf. It keeps the newest 64,
// so that a chain of redirects or a few requests at a time can share it. Make one for each logical call.
func WithOutcome(ctx context.Context) context.Context {
	return context.WithValue(ctx, recordsKey{}, new(records))
}

// OutcomeOf returns the outcome of the run that ended with resp and err, which a RoundTrip or an http.Client has
// returned. An err of CheckResponse has the outcome too. The outcome has the reason for the end of the run, the number
// of attempts, and each attempt that failed, with its wait and an *AttemptError. If the run did not fail, the context of
// resp's request must come from WithOutcome.
//
// If there is no outcome, OutcomeOf returns an error that gives the reason and wraps err. That can happen if an
// http.Client.Timeout has ended an attempt, because the client then often returns only the text of the *retry.Error.
// Set a deadline on the request's context instead.
func OutcomeOf(resp *http.Response, err error) (retry.Outcome, error) {
	var failed *retry.Error
	if errors.As(err, &failed) {
		return failed.Outcome, nil
	}
	if ended := attemptError(err); ended != nil && ended.outcome != nil { // of CheckResponse
		return *ended.outcome, nil
	}
	switch {
	case err != nil: // also beside a response, as of a client that does not follow a redirect
		return retry.Outcome{}, fmt.Errorf("retryhttp: OutcomeOf: the error is not of a run: %w", err)
	case resp == nil || resp.Request == nil:
		return retry.Outcome{}, errors.New("retryhttp: OutcomeOf: neither a response to a request nor an error")
	}
	r := recordsOf(resp.Request.Context())
	if r != nil {
		if found := r.of(resp.Request); found != nil {
			return found.outcome, nil
		}
	}
	if o := endedRun(resp); o != nil {
		return *o, nil
	}
	if r == nil {
		return retry.Outcome{}, errors.New("retryhttp: OutcomeOf: the request's context is not from WithOutcome")
	}
	return retry.Outcome{}, fmt.Errorf(
		"retryhttp: OutcomeOf: the response is not from one of the newest %d runs of its request's context", maxRecords)
}

// endedBody is the body of a response that ended a run without success. It shows the caller that run.
type endedBody struct {
	io.ReadCloser
	outcome *retry.Outcome
}

// show shows o, the outcome of the run that returns resp, to the code that has resp and to an exchange above.
func show(ctx context.Context, resp *http.Response, o *retry.Outcome) {
	tell(ctx, resp, o)
	if resp.Body == nil {
		return
	}
	if _, writable := resp.Body.(io.Writer); !writable {
		resp.Body = &endedBody{resp.Body, o}
	}
}

// endedRun returns the outcome of the run that resp's body shows, or nil if it shows no run.
func endedRun(resp *http.Response) *retry.Outcome {
	if body, ok := resp.Body.(*endedBody); ok {
		return body.outcome
	}
	return nil
}

// below records how a run below an exchange ended. The body of a response shows such a run too, but a RoundTripper in
// between may replace the body.
type below struct {
	ended atomic.Pointer[belowRun]
}

// belowRun is a run that has ended without success, and the status of its response.
type belowRun struct {
	status  int
	outcome *retry.Outcome
}

type belowKey struct{}

// listen lets x hear of runs below it, if that matters and there may be one. It gives x a context that is not the
// request's own, so that the request is copied.
func (x *exchange) listen() {
	if x.run.listens {
		x.below = new(below)
		x.ctx = context.WithValue(x.context(), belowKey{}, x.below)
	}
}

// listens reports whether rules of the caller's may ask whether a run below t has given up.
func (t *Transport) listens(p *retry.Policy) bool {
	_, isLast := t.base().(*http.Transport)
	return p.Classify != nil && !isLast
}

// tell passes the outcome of the run that returns resp to an exchange above.
func tell(ctx context.Context, resp *http.Response, o *retry.Outcome) {
	if above, ok := ctx.Value(belowKey{}).(*below); ok {
		above.ended.Store(&belowRun{resp.StatusCode, o})
	}
}

// endedWith returns the outcome of the run below that returned resp. It returns nil if there was no such run or b is
// nil.
func (b *below) endedWith(resp *http.Response) *retry.Outcome {
	if b == nil {
		return nil
	}
	last := b.ended.Load()
	if last == nil || last.status != resp.StatusCode {
		return nil
	}
	return last.outcome
}

type recordsKey struct{}

func recordsOf(ctx context.Context) *records {
	r, _ := ctx.Value(recordsKey{}).(*records)
	return r
}

// records are the runs of the requests of one context, the newest last.
type records struct {
	mu   sync.Mutex
	list []record
}

type record struct {
	req     *http.Request
	outcome retry.Outcome
	hedges  *retryhedge.Event // nil if the last attempt could not be hedged
}

func (r *records) add(req *http.Request, o *retry.Outcome, hedges *retryhedge.Event) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if len(r.list) == maxRecords {
		r.list = slices.Delete(r.list, 0, 1)
	}
	r.list = append(r.list, record{req, *o, hedges})
}

// of returns the newest record of req, or nil if it has no record.
func (r *records) of(req *http.Request) *record {
	r.mu.Lock()
	defer r.mu.Unlock()
	for _, one := range slices.Backward(r.list) {
		if one.req == req {
			one.outcome.History = slices.Clone(one.outcome.History)
			return &one
		}
	}
	return nil
}
