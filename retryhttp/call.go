package retryhttp

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"maps"
	"math"
	"net/http"
	"net/url"
	"strconv"
	"strings"
	"time"

	"github.com/retrygo/retry"
	"github.com/retrygo/retry/retryhedge"
	"github.com/retrygo/retry/retryhttp/hints"
	"github.com/retrygo/retry/retryshell"
)

// epoch is a fixed instant: time.Since of it reads only the monotonic clock.
var epoch = time.Now()

// call is one RoundTrip. It is also the context of the run, which heeds Request.Cancel and in which the hooks of the
// policy find the call without a closure of their own. The first attempt has the request's context.
type call struct {
	context.Context // the request's

	transport *Transport
	policy    *retry.Policy  // the Transport's, or of this request alone
	req       *http.Request  // the caller's
	refused   error          // nil if req can be sent
	resp      *http.Response // the last one, until it is given up or returned
	began     time.Duration  // since epoch; may be 0 without a TTL, which alone counts from it
	returned  bool           // a response was returned
	inBase    bool           // still set in finish: Base has panicked

	ready      bool   // what follows is set
	repeatable bool   // whatever was sent
	key        string // the Idempotency-Key to add
	payload    payload

	limit    *limit            // of the attempt under way
	until    time.Time         // when it must be over, if timeLeft is set
	timeLeft string            // the header that says so, "" for none
	hedges   *retryhedge.Event // of the last attempt that could be hedged
	byHedge  bool              // resp is the answer to a hedge
	done     *done             // nil until something waits for Request.Cancel
}

// done has the channels of a call with a Request.Cancel.
type done struct {
	canceled chan struct{} // closed with Request.Cancel or the context
	finished chan struct{} // ends the goroutine that waits for these
}

func newCall(t *Transport, policy *retry.Policy, req *http.Request) *call {
	return &call{Context: req.Context(), transport: t, policy: policy, req: req}
}

// Done returns a channel that ends with the context and with Request.Cancel, which http.Client sets for its Timeout.
func (c *call) Done() <-chan struct{} {
	cancel := cancelChan(c.req)
	if cancel == nil {
		return c.Context.Done()
	}
	if c.done == nil {
		d := &done{make(chan struct{}), make(chan struct{})}
		c.done = d
		go func() {
			select {
			case <-cancel:
			case <-c.Context.Done():
			case <-d.finished:
				return
			}
			close(d.canceled)
		}()
	}
	return c.done.canceled
}

// Err is the context's. A closed Request.Cancel counts as canceled, or as the deadline if that has passed: with
// http.Client.Timeout both come at the same time, in any order.
func (c *call) Err() error {
	err, cancel := c.Context.Err(), cancelChan(c.req)
	if err != nil || cancel == nil {
		return err
	}
	select {
	case <-cancel:
		if deadline, ok := c.Deadline(); ok && !time.Now().Before(deadline) {
			return context.DeadlineExceeded
		}
		return context.Canceled
	default:
		return nil
	}
}

// progress is what the core has to know of the run now, but for its attempts.
func (c *call) progress() retry.Progress {
	var pr retry.Progress
	if c.began != 0 {
		pr.Elapsed = time.Since(epoch) - c.began
	}
	if deadline, ok := c.Deadline(); ok {
		pr.Deadline = cmp.Or(pr.Elapsed+min(time.Until(deadline), math.MaxInt64-pr.Elapsed), -1)
	}
	switch err := c.Err(); {
	case err == nil:
	case errors.Is(err, context.DeadlineExceeded):
		pr.Caller = retry.DeadlinePassed
	default:
		pr.Caller = retry.CallerCanceled
	}
	return pr
}

// gone returns the Reason of an attempt whose caller has canceled or whose deadline has passed, otherwise "".
func (c *call) gone() Reason {
	switch c.policy.Admit(c.progress(), 0).Reason {
	case retry.CallerCanceled:
		return Canceled
	case retry.DeadlinePassed:
		return DeadlinePassed
	default:
		return ""
	}
}

// detached returns failed with its Cause of now and without c. The *retry.Error would otherwise hold the request and
// ask c later, whose Err may change: a deadline can follow a Request.Cancel.
func (c *call) detached(failed *retry.Error) error {
	ctx, cancel := context.WithCancelCause(context.Background())
	cancel(failed.Cause())
	return c.policy.NewError(ctx, failed.Outcome, failed.Last)
}

func cancelChan(req *http.Request) <-chan struct{} {
	//lint:ignore SA1019 http.Client sets it, so it has to be heeded
	return req.Cancel
}

// finish lets go of everything that was not returned, by whatever way the call ends.
func (c *call) finish() {
	if c.done != nil {
		close(c.done.finished)
	}
	if c.limit != nil {
		c.limit.release()
	}
	if c.resp != nil {
		closeBody(c.resp)
	}
	if c.inBase && c.payload.last != nil {
		_ = c.payload.last.Close()
	}
	c.payload.finish(c.req.Body, c.returned)
}

// prepare does what is done once, before the first attempt, and returns the failure of one that is not to be made.
func (c *call) prepare() *AttemptError {
	if c.refused != nil {
		return notSent(InvalidRequest, c.refused)
	}
	t := c.transport
	c.repeatable = idempotentMethod(c.req.Method) || hasKey(c.req.Header)
	if t.IdempotencyKey != nil && !idempotentMethod(c.req.Method) && !hasKey(c.req.Header) {
		c.key = t.IdempotencyKey(c.req)
		if i := badByte(c.key, &badInValue); i >= 0 {
			return notSent(InvalidRequest, refuseByte(`Request.Header["Idempotency-Key"]`, c.key, i))
		}
		c.repeatable = c.repeatable || c.key != ""
	}
	if reason, err := c.payload.open(c, c.req, t.BufferBody); err != nil {
		return notSent(reason, err)
	}
	c.ready = true
	return nil
}

// notSent returns the failure of an attempt at a request that cannot be sent, or not again.
func notSent(reason Reason, err error) *AttemptError {
	return &AttemptError{Reason: reason, Veto: reason, Unsent: true, Err: err}
}

// attempt makes one attempt; ctx is Do's.
func (c *call) attempt(ctx context.Context) error {
	if !c.ready {
		if failed := c.prepare(); failed != nil {
			return c.judged(failed)
		}
	}
	own, same := c.Context, true
	if ctx != context.Context(c) {
		same = false
		if own = ctx; cancelChan(c.req) != nil {
			own = &attemptContext{c.Context, ctx}
		}
	}
	var conn *connTrace
	if !c.repeatable {
		own, conn = traceConn(own)
		same = false
	}
	if timeout := c.policy.AttemptTimeout; timeout > 0 && !endsWithin(c, timeout) {
		c.limit = new(limit).start(own, timeout)
		own, same = c.limit, false
	}
	c.setTimeLeft()
	out, err := c.outgoing(own, same)
	if err != nil {
		return c.judged(notSent(BodyNotReplayable, err))
	}
	c.inBase = true
	if c.hedged() {
		err = c.hedge(own, out)
		c.inBase = false
		return err
	}
	resp, err := c.transport.base().RoundTrip(out)
	c.inBase = false
	return c.result(resp, err, conn)
}

// endsWithin reports whether the deadline of ctx, which then ends the attempt, is not after the end of the timeout.
func endsWithin(ctx context.Context, timeout time.Duration) bool {
	deadline, ok := ctx.Deadline()
	return ok && time.Until(deadline) <= timeout
}

// outgoing returns the request of one attempt: the caller's own if nothing has to differ, otherwise a copy.
func (c *call) outgoing(ctx context.Context, same bool) (*http.Request, error) {
	body, getBody, err := c.payload.next(c.req)
	if err != nil {
		return nil, err
	}
	header := c.header(ctx)
	if same && header == nil && body == nil {
		return c.req, nil
	}
	out := c.req.WithContext(ctx)
	if header != nil {
		out.Header = header
	}
	if body != nil {
		out.Body, out.GetBody = body, getBody
		out.ContentLength = cmp.Or(c.payload.length, out.ContentLength)
	}
	return out, nil
}

// header returns the header of an attempt, nil if it is the caller's. Each attempt has its own, because a transport
// may read it after it has returned.
func (c *call) header(ctx context.Context) http.Header {
	t := c.transport
	identity := t.Resume && isGet(c.req) && c.req.Header["Accept-Encoding"] == nil // net/http would decode, and hide the offsets
	if c.key == "" && t.AttemptHeader == "" && c.timeLeft == "" && !identity {
		return nil
	}
	header := maps.Clone(c.req.Header)
	if header == nil {
		header = http.Header{}
	}
	if c.key != "" {
		header["Idempotency-Key"] = []string{c.key}
	}
	if identity {
		header["Accept-Encoding"] = []string{"identity"}
	}
	if name := t.AttemptHeader; name != "" {
		number := strconv.Itoa(max(retry.AttemptNumber(ctx), retryshell.OuterAttemptNumber(ctx)))
		if redirectedAway(c.req) {
			number = ""
		}
		setOnly(header, name, number)
	}
	if c.timeLeft != "" { // at least 1: 0 means no limit to Envoy
		setOnly(header, c.timeLeft, strconv.FormatInt(max(1, time.Until(c.until).Milliseconds()), 10))
	}
	return header
}

// setOnly makes value the only one of the field in any spelling of its name; "" removes the field.
func setOnly(header http.Header, name, value string) {
	maps.DeleteFunc(header, func(key string, _ []string) bool { return strings.EqualFold(key, name) })
	if value != "" {
		header.Set(name, value)
	}
}

// longestChain is the number of redirects that redirectedAway follows back, ten times what an http.Client follows.
const longestChain = 100

// redirectedAway reports whether a client has followed a redirect to req from a request to another host. It reports
// true if it cannot find the first request: a redirect that was followed with the same request leads back to itself.
func redirectedAway(req *http.Request) bool {
	first := req
	for range longestChain {
		if first.Response == nil || first.Response.Request == nil {
			return !sameHost(first.URL, req.URL)
		}
		first = first.Response.Request
	}
	return true
}

// sameHost reports whether a and b have the same host and port.
func sameHost(a, b *url.URL) bool { return a != nil && b != nil && strings.EqualFold(a.Host, b.Host) }

var errNoResponse = errors.New("the RoundTripper returned neither a response nor an error")

// result returns nil for a success, otherwise the error that Do decides about.
func (c *call) result(resp *http.Response, err error, conn *connTrace) error {
	limit := c.limit
	c.limit = nil
	expired := limit != nil && !limit.stop()
	if err == nil && resp == nil {
		err = errNoResponse
	}
	if expired && err == nil {
		err = retry.ErrAttemptTimeout
	}
	if err != nil {
		if resp != nil {
			closeBody(resp) // came too late: its context is canceled
		}
		if limit != nil {
			limit.release()
		}
		return c.failed(err, conn, expired)
	}
	ended := endedRun(resp)
	c.keep(resp, limit)
	return c.verdict(resp, ended)
}

// failed returns the failure of an attempt without a response. expired says that its timeout has passed.
func (c *call) failed(err error, conn *connTrace, expired bool) error {
	if expired && c.gone() == "" {
		err = timedOut(err)
	}
	return c.judged(c.fault(err, conn))
}

// keep makes resp the last response. Its body frees l once it is read.
func (c *call) keep(resp *http.Response, l *limit) {
	if resp.Request != c.req {
		resp.Request = c.req
	}
	guard(resp, l, c.transport.StallTimeout)
	c.resp = resp
}

// verdict returns nil if resp is a success or an answer, otherwise its failure. ended is the run inside that ended with
// it, if there was one.
func (c *call) verdict(resp *http.Response, ended *retry.Outcome) error {
	if c.accepts(resp) {
		return nil
	}
	failed := statusError(resp, c.hint(resp), ended)
	failed.delivery = c.transport.Delivery
	err := c.judged(failed)
	failed.Header = kept(resp.Header)
	return err
}

// timedOut returns err as that of an attempt whose timeout has passed, whatever the transport made of that.
func timedOut(err error) error {
	if err = retryshell.MarkTimeout(err); !errors.Is(err, retry.ErrAttemptTimeout) {
		err = fmt.Errorf("%w: %w", retry.ErrAttemptTimeout, err)
	}
	return err
}

func (c *call) accepts(resp *http.Response) bool {
	if c.transport.Accept != nil {
		return c.transport.Accept(resp)
	}
	return succeeded(resp.StatusCode)
}

func succeeded(status int) bool {
	return status >= 200 && status <= 299 || status == http.StatusSwitchingProtocols
}

func (c *call) hint(resp *http.Response) time.Duration {
	var hint time.Duration
	if resp.Header["Retry-After"] != nil { // otherwise the clock need not be read
		hint = hints.RetryAfter(resp.Header, time.Now())
	}
	if c.transport.Hint != nil {
		hint = max(hint, c.transport.Hint(resp))
	}
	return hint
}

// fault returns the failure of an attempt without a response.
func (c *call) fault(err error, conn *connTrace) *AttemptError {
	failed := new(AttemptError)
	failed.Reason, failed.Unsent = fault(err)
	if failed.Reason == InvalidRequest {
		if bad := refusedFields("Request.Header", c.req.Header); bad != nil {
			return notSent(InvalidRequest, bad)
		}
	}
	failed.Err = bounded(err, failed.Reason)
	switch {
	case conn.obtained():
		// Whatever the error looks like, a connection was there to send on. Only an HTTP/2 server can say that it
		// has not touched the request.
		failed.Unsent = failed.Unsent && failed.Reason == StreamReset
	case conn.sought():
		failed.Unsent = true
	}
	failed.Unsent = failed.Unsent && !sentWithin(err)
	if gone := c.gone(); gone != "" {
		failed.Reason = gone
		return failed
	}
	if reason := c.payload.failure(); reason != "" {
		failed.Reason, failed.Veto = reason, reason
	}
	return failed
}

// sentWithin reports whether err is of a run inside, of which not every attempt is known to have sent nothing.
func sentWithin(err error) bool {
	var run *retry.Error
	if !errors.As(err, &run) {
		return false
	}
	for _, a := range run.History {
		if inner := attemptError(a.Err); inner == nil || !inner.Unsent {
			return true
		}
	}
	return len(run.History) < run.Attempts
}

// judged returns failed as the error that Do decides about: marked, if the default rules would judge it otherwise or
// the request is not to be repeated. It returns nil if the response is an answer.
func (c *call) judged(failed *AttemptError) error {
	failed.Request = c.req
	if failed.Veto != "" {
		// A service that does not know whether it has done the work forbids a retry too: see WriteError.
		failed.doubt = failed.Veto == DoNotRetry && !c.mayRepeat(failed) && !turnedAway(failed.Header) &&
			statusClass(failed.StatusCode) == retry.Retryable
		return failed.forbidden()
	}
	class, byDefault := retry.Retryable, retry.Retryable
	if failed.Err == nil { // only a hint is marked
		class = c.classOf(failed)
		if failed.Answer() {
			byDefault = retry.Terminal
		}
	} else {
		class, _ = retry.Policy{Classify: c.classOf}.Judge(failed)
		byDefault, _ = retry.Policy{}.Judge(failed)
	}
	switch {
	case class != retry.Retryable:
		if failed.Err == nil && isAnswer(failed.StatusCode) && !c.transport.Delivery {
			return nil
		}
		return failed.forbidden()
	case c.mayRepeat(failed):
		failed.Veto = c.payload.veto(c)
	default:
		failed.Veto = NotIdempotent
	}
	if failed.Veto != "" {
		return failed.forbidden()
	}
	if byDefault != class {
		failed.mark = retry.Transient(cmp.Or(failed.mark, failed.Err, errMarked))
	}
	return failed
}

// mayRepeat reports whether to repeat the request does no harm.
func (c *call) mayRepeat(failed *AttemptError) bool {
	return failed.Unsent || c.repeatable || c.transport.Repeat != nil && c.transport.Repeat(failed)
}

// classOf returns what the policy's classifier, or else Classify, says of an AttemptError without a Veto.
func (c *call) classOf(err error) retry.Class {
	if own := c.policy.Classify; own != nil {
		if class := own(err); class == retry.Retryable || class == retry.Terminal {
			return class
		}
	}
	if failed, ok := err.(*AttemptError); ok && failed.Err == nil {
		return statusClass(failed.StatusCode)
	}
	return Classify(err)
}

// giveUp lets go of the last response, since a retry follows after delay. It takes no time that could make the retry
// too late.
func (c *call) giveUp(delay time.Duration) {
	resp := c.resp
	if resp == nil {
		return
	}
	c.resp = nil
	if resp.Body == nil || resp.Body == http.NoBody {
		return
	}
	if c.policy.Admit(c.progress(), delay+drainTime).Status == retry.WaitingRetry {
		discard(resp)
	} else {
		closeBody(resp)
	}
}

// attemptContext is the context of a retry of a request with a Cancel, which the transport gets in the request: that of
// the request, with the number that Do has given.
type attemptContext struct {
	context.Context
	numbered context.Context
}

func (a *attemptContext) Value(key any) any { return a.numbered.Value(key) }
