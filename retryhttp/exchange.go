package retryhttp

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"net/http"
	"time"

	"github.com/retrygo/retry"
	"github.com/retrygo/retry/retryhttp/hints"
	"github.com/retrygo/retry/retryshell"
)

// exchange is a request that is sent once, and its answer. An attempt is one exchange, or several at a time with hedges.
// As long as it has neither resp nor err, its base has not returned.
type exchange struct {
	run     *run
	isHedge bool

	ctx   context.Context // nil is the request's own
	limit *limit          // nil without an AttemptTimeout
	trace *connTrace      // nil if it does not matter whether the request was sent
	body  *handle         // nil if it need not be watched

	resp   *http.Response
	err    error
	host   string         // that sent resp, by its base's account
	below  *below         // nil if it does not matter how a run below ends
	inside *retry.Outcome // of a run below that ended with resp
}

// origin returns where the response came from.
func (x *exchange) origin() origin {
	from := x.run.request.from
	return origin{isHedge: x.isHedge != (from != nil && from.isHedge), host: x.host}
}

// hostOf returns the host that resp is from, or "" if its base does not name it.
func hostOf(resp *http.Response) string {
	if resp.Request == nil || resp.Request.URL == nil {
		return ""
	}
	return resp.Request.URL.Host
}

func (x *exchange) context() context.Context {
	if x.ctx == nil {
		return x.run.caller.Context
	}
	return x.ctx
}

// begin gives x its context. ctx is the attempt's, which Do has made.
func (x *exchange) begin(ctx context.Context) {
	r := x.run
	if ctx != context.Context(r) {
		x.ctx = r.caller.attempt(ctx)
	}
	if !r.request.repeatable {
		x.ctx, x.trace = traceConn(x.context())
	}
	x.listen()
	if d := r.request.policy.AttemptTimeout; d > 0 && !endsWithin(r, d) {
		x.limit = newLimit(x.context(), d)
		x.ctx = x.limit
	}
}

// outgoing returns the request to send. It is the caller's own if no field has to differ, and otherwise a copy.
func (x *exchange) outgoing(body sending) *http.Request {
	q := &x.run.request
	x.body = body.watched
	header := x.header()
	if x.ctx == nil && header == nil && body.reader == nil {
		return q.req
	}
	out := q.req.WithContext(x.context())
	if header != nil {
		out.Header = header
	}
	if body.reader != nil {
		out.Body = body.reader
		out.GetBody = body.again
		out.ContentLength = cmp.Or(q.body.length, out.ContentLength)
	}
	return out
}

var errNoResponse = errors.New("the RoundTripper returned neither a response nor an error")

// send sends out and notes the answer.
func (x *exchange) send(out *http.Request) {
	x.answered(x.run.request.base(x.isHedge).RoundTrip(out))
}

func (x *exchange) answered(resp *http.Response, err error) {
	x.resp = resp
	x.err = err
	switch {
	case resp == nil && err == nil:
		x.err = errNoResponse
	case resp == nil:
	case err != nil:
		x.drop() // of a base that returns both
	default:
		x.host = hostOf(resp)
		x.inside = cmp.Or(endedRun(resp), x.below.endedWith(resp))
	}
}

// conclude ends an attempt of one exchange. It returns nil for a success or an answer, otherwise the error that Do decides
// about.
func (x *exchange) conclude() error {
	if x.err != nil {
		expired := !x.limit.stop()
		x.limit.release()
		return x.failed(expired)
	}
	x.keep(x.limit)
	accepted := x.run.request.accepts(x.resp) // within the timeout, since it may read the body
	if !x.limit.stop() {
		return x.late(x.limit)
	}
	x.limit.settle()
	if accepted {
		return nil
	}
	return x.verdict()
}

// late returns the failure of an attempt whose response came after its timeout l.
func (x *exchange) late(l *limit) error {
	l.release()
	x.drop() // its context is canceled
	x.err = retry.ErrAttemptTimeout
	return x.failed(true)
}

// keep makes the response ready for the caller. Its body frees l once it is read.
func (x *exchange) keep(l *limit) {
	if req := x.run.request.req; x.resp.Request != req {
		x.resp.Request = req
	}
	guard(x.resp, l, x.run.request.transport.StallTimeout)
}

// drop lets go of the response.
func (x *exchange) drop() {
	if x.resp != nil {
		closeBody(x.resp)
		x.resp = nil
	}
}

// finish lets go of the body, the context and the response of x, in whatever way the run ends.
func (x *exchange) finish() {
	if x.resp == nil && x.err == nil && x.body != nil {
		_ = x.body.Close() // the base has panicked
	}
	x.limit.release()
	x.drop()
}

// verdict returns nil if the response, which was not accepted, is an answer, otherwise its failure.
func (x *exchange) verdict() error {
	q := &x.run.request
	failed := statusError(x.resp, q.hint(x.resp), x.inside)
	failed.delivery = q.isDelivery()
	err := x.run.judged(failed, x.body)
	failed.Header = kept(x.resp.Header)
	return err
}

func (q *request) hint(resp *http.Response) time.Duration {
	var hint time.Duration
	if resp.Header["Retry-After"] != nil { // otherwise the clock need not be read
		hint = hints.RetryAfter(resp.Header, time.Now())
	}
	if q.transport.Hint != nil {
		hint = max(hint, q.transport.Hint(resp))
	}
	return hint
}

// failed returns the failure of an exchange without a response. expired is true if the attempt's timeout has passed.
func (x *exchange) failed(expired bool) error {
	if expired && x.run.gone() == "" {
		x.err = timedOut(x.err)
	}
	failed := x.run.fault(x.err, x.trace)
	x.err = failed.Err // the record of the run keeps x for a while, and a peer can make its error long
	if reason := x.body.failure(); reason != "" && x.run.gone() == "" && failed.Veto == "" {
		failed.Reason = reason
		failed.Veto = reason
	}
	return x.run.judged(failed, x.body)
}

// timedOut returns err as the error of an attempt whose timeout has passed, whatever error the transport returned for
// it.
func timedOut(err error) error {
	if err = retryshell.MarkTimeout(err); !errors.Is(err, retry.ErrAttemptTimeout) {
		err = fmt.Errorf("%w: %w", retry.ErrAttemptTimeout, err)
	}
	return err
}
