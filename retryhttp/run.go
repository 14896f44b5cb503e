package retryhttp

import (
	"cmp"
	"context"
	"errors"
	"math"
	"net/http"
	"time"

	"github.com/retrygo/retry"
	"github.com/retrygo/retry/retryhedge"
)

// epoch is a fixed instant, because time.Since of it reads only the monotonic clock.
var epoch = time.Now()

// run makes the exchanges of a RoundTrip, or of the rest of a body, until retry.Do is done. It is the context that Do
// gets, in which the hooks of the policy find it without a closure of their own.
type run struct {
	caller
	request request
	began   time.Duration     // since epoch, or 0 without a TTL, which alone counts from it
	hedges  *retryhedge.Event // of the last attempt that could be hedged
	listens bool              // it matters how a run below ends, and there may be one
	unspent bool              // a token was taken for a retry of the rest of a body that has not ended
	last    *exchange         // the exchange that the run holds, nil as soon as another holds it
	room    exchange          // for last, unless a hedge can outlive it
}

func newRun(t *Transport, p *retry.Policy, req *http.Request) *run {
	return &run{caller: callerOf(req), request: request{transport: t, policy: p, req: req}}
}

// roundTrip is the RoundTrip of a Transport whose request needs a run.
func (r *run) roundTrip() (*http.Response, error) {
	defer r.finish()
	q := &r.request
	if q.policy == nil {
		q.policy = q.transport.policyFor(q.req)
	}
	if err := q.transport.validate(q.policy); err != nil {
		return nil, err
	}
	p := r.policy()
	if p.TTL > 0 || q.transport.Resume {
		r.began = time.Since(epoch)
	}
	isRecorded := recordsOf(r.Context) != nil
	if q.policy.Observe != nil || isRecorded {
		p.Observe = observe
	}
	r.listens = isRecorded || q.transport.listens(q.policy)
	q.refused = refusal(q.req)
	if q.refused == nil && q.policy.Gate != nil {
		p.Gate = gate
	}
	return r.end(retry.Do(r, p, r.attempt))
}

// policy returns the policy that Do gets, without a gate and an observer.
func (r *run) policy() retry.Policy {
	p := r.request.policy.OrSchedule(retry.Inline())
	p.AttemptTimeout = 0 // it covers the headers only, which Do cannot know
	p.Classify = nil     // judged has asked it
	p.Pay = pay
	p.Observe = nil
	p.Gate = nil
	if p.MaxHint == 0 && p.TTL == 0 {
		p.MaxHint = maxHint(&p)
	}
	return p
}

// maxHint returns the MaxHint of a policy that limits neither hints nor runs. The default of package retry, an hour, is
// for work in a queue. A caller of RoundTrip waits for each hint.
func maxHint(p *retry.Policy) time.Duration {
	longest := max(time.Minute, p.Base, p.Cap)
	for _, d := range p.Delays {
		longest = max(longest, d)
	}
	return longest
}

// attempt makes one attempt. ctx is the context from Do.
func (r *run) attempt(ctx context.Context) error {
	q := &r.request
	if failed := q.prepare(r); failed != nil {
		return r.judged(failed, nil)
	}
	if q.isHedged() {
		return r.race(ctx)
	}
	body, err := q.body.next(q.req)
	if err != nil {
		return r.judged(notSent(BodyNotReplayable, err), nil)
	}
	r.room = exchange{run: r}
	x := &r.room
	r.last = x
	x.begin(ctx)
	x.send(x.outgoing(body))
	return x.conclude()
}

// end returns the results of RoundTrip after a run that has ended with err.
func (r *run) end(err error) (*http.Response, error) {
	failed, _ := err.(*retry.Error)
	if failed != nil && failed.Cause() != nil {
		return nil, r.detached(failed) // the caller has gone and reads no response
	}
	x := r.handOver()
	if x == nil {
		return nil, err
	}
	if err == nil && r.request.transport.Resume {
		x.resume()
	}
	r.request.decode(x.resp)
	if failed != nil {
		show(r.Context, x.resp, &failed.Outcome)
	}
	return x.resp, nil
}

// handOver returns the last exchange, whose response the caller of the run holds from now on, or nil if there is no
// response.
func (r *run) handOver() *exchange {
	x := r.last
	if x == nil || x.resp == nil {
		return nil
	}
	r.last = nil
	r.request.body.leave(x.body)
	return x
}

// finish lets go of everything that was not handed over, by whatever way the run ends.
func (r *run) finish() {
	r.caller.finish()
	if r.unspent {
		r.request.policy.Budget.Refund()
	}
	if r.last != nil {
		r.last.finish()
	}
	r.request.body.finish(r.request.req.Body)
}

// progress returns the state of the run now, without its attempts, for a decision of the core.
func (r *run) progress() retry.Progress {
	var pr retry.Progress
	if r.began != 0 {
		pr.Elapsed = time.Since(epoch) - r.began
	}
	if deadline, ok := r.Deadline(); ok {
		pr.Deadline = cmp.Or(pr.Elapsed+min(time.Until(deadline), math.MaxInt64-pr.Elapsed), -1)
	}
	switch err := r.Err(); {
	case err == nil:
	case errors.Is(err, context.DeadlineExceeded):
		pr.Caller = retry.DeadlinePassed
	default:
		pr.Caller = retry.CallerCanceled
	}
	return pr
}

// gone returns the Reason of an attempt whose caller has canceled or whose deadline has passed, otherwise "".
func (r *run) gone() Reason {
	switch r.request.policy.Admit(r.progress(), 0).Reason {
	case retry.CallerCanceled:
		return Canceled
	case retry.DeadlinePassed:
		return DeadlinePassed
	default:
		return ""
	}
}

// detached returns failed with its Cause of now and without r. The *retry.Error would otherwise hold the request and
// ask r later. The Err of r may change by then, since a deadline can follow a Request.Cancel.
func (r *run) detached(failed *retry.Error) error {
	ctx, cancel := context.WithCancelCause(context.Background())
	cancel(failed.Cause())
	return r.request.policy.NewError(ctx, failed.Outcome, failed.Last)
}

// fault returns the failure of an exchange, or of the body of one, that ended with err. trace may be nil.
func (r *run) fault(err error, trace *connTrace) *AttemptError {
	reason, unsent := fault(err)
	if reason == InvalidRequest {
		if bad := refusedFields("Request.Header", r.request.req.Header); bad != nil {
			return notSent(InvalidRequest, bad)
		}
	}
	switch {
	case trace.obtained():
		// Whatever the error looks like, a connection was there to send on. Only an HTTP/2 server can report that it
		// has not touched the request, which net/http cannot send again by itself without GetBody.
		unsent = unsent && (reason == StreamReset || reason == BodyNotReplayable)
	case trace.sought():
		unsent = true
	}
	unsent = unsent || saysUnsent(err)
	failed := &AttemptError{Reason: reason, Unsent: unsent && !sentWithin(err), Err: bounded(err, reason)}
	failed.Reason = cmp.Or(r.gone(), reason)
	return failed
}

// sentWithin reports whether err is from a run inside, an attempt of which may have sent something.
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

// judged returns failed as the error that Do decides about. It is marked if the default rules would judge it otherwise,
// or if the request is not to be repeated. judged returns nil if the response is an answer. body is the exchange's.
func (r *run) judged(failed *AttemptError, body *handle) error {
	q := &r.request
	failed.Request = q.req
	failed.rest = q.from != nil
	if failed.Veto != "" {
		return q.forbid(failed)
	}
	class, byDefault := q.judge(failed)
	if class != retry.Retryable {
		if q.isAnswer(failed) {
			return nil
		}
		return q.forbid(failed)
	}
	failed.Veto = NotIdempotent
	if q.mayRepeat(failed) {
		failed.Veto = q.body.veto(r, body)
	}
	if failed.Veto != "" {
		return q.forbid(failed)
	}
	if byDefault != class {
		failed.mark = retry.Transient(cmp.Or(failed.mark, failed.Err, errMarked))
	}
	return failed
}

// giveUp lets go of the last response, since a retry follows after delay. It takes no time that could make the retry
// too late.
func (r *run) giveUp(delay time.Duration) {
	x := r.last
	r.last = nil
	if x == nil || x.resp == nil {
		return
	}
	resp := x.resp
	x.resp = nil // the history of Do holds r, and so x if it is in its room
	x.inside = nil
	if resp.Body == nil || resp.Body == http.NoBody {
		return
	}
	if r.request.policy.Admit(r.progress(), delay+drainTime).Status == retry.WaitingRetry {
		discard(resp)
	} else {
		closeBody(resp)
	}
}

// pay is the Pay of every run. It gives up the last response, because only a deadline or a gate can prevent the retry
// now.
func pay(ctx context.Context, d retry.Decision) bool {
	r := ctx.(*run)
	if own := r.request.policy.Pay; own != nil && !own(r.Context, d) {
		return false
	}
	r.giveUp(d.Delay)
	return true
}

// payRest is the Pay of a run for the rest of a body. It takes the place of a Budget, because the first response has
// funded it, and no part after it does.
func payRest(ctx context.Context, d retry.Decision) bool {
	r := ctx.(*run)
	d = retry.Policy{Budget: r.request.policy.Budget}.Spend(ctx, d, time.Now())
	r.unspent = d.Status == retry.WaitingRetry
	return r.unspent && pay(ctx, d)
}

// observe is the Observe of every run that is observed or recorded.
func observe(ctx context.Context, e retry.Event) {
	r := ctx.(*run)
	if records := recordsOf(r.Context); records != nil && e.Outcome != nil {
		records.add(r.request.req, e.Outcome, r.hedges)
	}
	if own := r.request.policy.Observe; own != nil {
		own(r.Context, e)
	}
}

// gate is the Gate of every run that has one.
func gate(ctx context.Context) time.Duration {
	r := ctx.(*run)
	return r.request.policy.Gate(r.Context)
}
