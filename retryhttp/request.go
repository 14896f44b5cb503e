package retryhttp

import (
	"cmp"
	"net/http"

	"github.com/retrygo/retry"
)

// request is the caller's request and the decisions about it that hold for all attempts of a run. It does not change
// once it is prepared.
type request struct {
	transport *Transport
	policy    *retry.Policy // the Transport's, or of this request alone
	req       *http.Request // the caller's, or a request for the rest of its response's body
	refused   error         // nil if req can be sent
	from      *origin       // where the beginning of the body came from, nil for the caller's request

	prepared   bool
	repeatable bool   // whatever was sent
	key        string // the Idempotency-Key to add
	body       payload
}

// origin is where a response came from.
type origin struct {
	isHedge bool   // from the base of hedges
	host    string // "" if that is not known
}

// prepare makes the preparations before the first exchange, once. It returns the failure of a request that cannot be
// sent.
func (q *request) prepare(r *run) *AttemptError {
	if q.prepared {
		return nil
	}
	if q.refused != nil {
		return notSent(InvalidRequest, q.refused)
	}
	q.repeatable = isRepeatable(q.req)
	if !q.repeatable && q.transport.IdempotencyKey != nil {
		q.key = q.transport.IdempotencyKey(q.req)
		if i := badByte(q.key, &badInValue); i >= 0 {
			return notSent(InvalidRequest, refuseByte(`Request.Header["Idempotency-Key"]`, q.key, i))
		}
		q.repeatable = q.key != ""
	}
	if reason, err := q.body.open(r, q.req, q.transport.BufferBody); err != nil {
		return notSent(reason, err)
	}
	q.prepared = true
	return nil
}

// notSent returns the failure of an attempt at a request that cannot be sent, or not again.
func notSent(reason Reason, err error) *AttemptError {
	return &AttemptError{Reason: reason, Veto: reason, Unsent: true, Err: err}
}

// base returns the RoundTripper of an exchange. The rest of a body is first asked for where its beginning came from.
func (q *request) base(isHedge bool) http.RoundTripper {
	if q.from != nil && q.from.isHedge {
		isHedge = !isHedge
	}
	if h := q.transport.Hedge; isHedge && h != nil && h.Base != nil {
		return h.Base
	}
	return q.transport.base()
}

// accepts reports whether resp is a success. Whether it is the rest of a body, the resumable checks itself.
func (q *request) accepts(resp *http.Response) bool {
	if q.transport.Accept != nil && q.from == nil {
		return q.transport.Accept(resp)
	}
	return succeeded(resp.StatusCode)
}

func succeeded(status int) bool {
	return status >= 200 && status <= 299 || status == http.StatusSwitchingProtocols
}

// isDelivery reports whether only a success ends the run as one.
func (q *request) isDelivery() bool { return q.transport.Delivery && q.from == nil }

// mayRepeat reports whether to repeat the request does no harm.
func (q *request) mayRepeat(failed *AttemptError) bool {
	if failed.Unsent || q.repeatable {
		return true
	}
	return q.transport.Repeat != nil && q.transport.Repeat(failed)
}

// judge returns the class of failed and the class that the default rules of package retry would give it.
func (q *request) judge(failed *AttemptError) (class, byDefault retry.Class) {
	if failed.Err == nil { // only a hint is marked
		if failed.Answer() {
			return q.classOf(failed), retry.Terminal
		}
		return q.classOf(failed), retry.Retryable
	}
	class, _ = retry.Policy{Classify: q.classOf}.Judge(failed)
	byDefault, _ = retry.Policy{}.Judge(failed)
	return class, byDefault
}

// classOf returns the class by the policy's classifier, or else by Classify, of an AttemptError without a Veto.
func (q *request) classOf(err error) retry.Class {
	if own := q.policy.Classify; own != nil {
		if class := own(err); class == retry.Retryable || class == retry.Terminal {
			return class
		}
	}
	if failed, ok := err.(*AttemptError); ok && failed.Err == nil {
		return statusClass(failed.StatusCode)
	}
	return Classify(err)
}

// isAnswer reports whether failed, which is not to be repeated, is the response that the caller has asked for.
func (q *request) isAnswer(failed *AttemptError) bool {
	return failed.Err == nil && isAnswer(failed.StatusCode) && !q.isDelivery()
}

// inDoubt reports whether the work of a request that must not be repeated may have been done, whatever ended the run.
func (q *request) inDoubt(failed *AttemptError) bool {
	switch {
	case failed.Unsent, q.from != nil, !failed.mayHaveWorked():
		return false
	case failed.Veto == DoNotRetry && !saysDoubt(failed.Header): // the server has given up
		return false
	default:
		return failed.Veto == NotIdempotent || !q.mayRepeat(failed)
	}
}

// forbid returns failed as an error that no attempt is to follow, in doubt if the work may have been done.
func (q *request) forbid(failed *AttemptError) error {
	failed.doubt = q.inDoubt(failed)
	if failed.doubt {
		failed.Veto = cmp.Or(failed.Veto, NotIdempotent)
	}
	return failed.forbidden()
}
