package retryhttp

import (
	"errors"
	"fmt"
	"maps"
	"net/http"
	"slices"
	"strconv"
	"time"

	"github.com/retrygo/retry"
	"github.com/retrygo/retry/retryhttp/internal/base"
)

// Transport is an http.RoundTripper that repeats the requests that it sends through another one, as its Policy says.
// The zero Transport repeats what may be repeated with the schedule of retry.Inline.
//
// A Transport is safe for concurrent use. Its fields must not be changed once it is in use. It does not follow
// redirects: that is for the http.Client around it.
type Transport struct {
	// Base makes the attempts. Nil means http.DefaultTransport, which keeps using an HTTP/2 connection that has died
	// silently: NewBase returns a transport that does not.
	//
	// Each call of Base must return a response of its own, whose body's Close ends a Read that waits. Base must refuse a
	// header with a control character, as net/http does: a Transport looks for these itself only on js, where net/http does
	// not. Base must call the hooks of the context's httptrace.ClientTrace, or return net/http's errors unchanged: they tell
	// that nothing was sent. An error with a method Unsent() bool that returns true says so too, as does an
	// *oauth2.RetrieveError of a Base that fetches a token first. A stream that Base has not closed within a second of a
	// failure is not sent again. To send each attempt to another host, use Replicas.
	//
	// An http.Transport sends some requests again within one attempt: a GET, or any request with an Idempotency-Key, if a
	// connection that was used before dies, and any request whose HTTP/2 stream the server refuses, for up to 63s.
	Base http.RoundTripper

	// Policy says how often, how long and for which failures a request is repeated. If it sets no delays, those of
	// retry.Inline and its MaxHint are used, and if it sets no MaxAttempts, so is that one (see retry.Policy.OrSchedule).
	// If it sets delays but neither MaxHint nor TTL, MaxHint is 1m, or the longest of Base, Cap and Delays if that is
	// more.
	//
	// Classify is asked about each *AttemptError before the classifier of this package. AttemptTimeout covers an
	// attempt up to the response's headers, and Accept. It never cuts off a body after that; over HTTP/2 it ends the
	// attempt's stream and not the connection. Observe, Gate and Pay get the request's context. The final event of a run
	// that did not succeed has an Err, even if RoundTrip returns the last response without an error.
	Policy retry.Policy

	// PolicyFor returns the policy of one RoundTrip, which calls it once: by host or route, from a catalog that is loaded
	// again, with a budget for each tenant, or with a Gate that knows the request. Policy is then not used. Nil means
	// Policy.
	PolicyFor func(*http.Request) retry.Policy

	// Accept reports whether a response is a success whatever its status and the rules are. A response that it does not
	// accept is judged by the rules, even a 200. It may read the body if it puts back what it has read, as that of FirstEvent
	// does for streams of events. Nil means 2xx and 101.
	Accept func(*http.Response) bool

	// Delivery declares that only a response that Accept accepts is a success, as for a webhook. Any other that is not
	// repeated, such as a 3xx or a 404, then ends the run as a dead letter. Zero means that such a response is an
	// answer: the run has succeeded.
	Delivery bool

	// Hint returns how long a response that is not accepted asks to stay away. The longer of it and Retry-After counts.
	// 0 or less is not a hint. hints.RateLimit is ready-made. Nil means Retry-After alone.
	Hint func(*http.Response) time.Duration

	// Repeat reports whether a request that a server may have acted on, and that is not safe to repeat, may be sent again
	// after this failure: a POST after a 429, or any request if it always reports true, as deliveries to webhooks may. It is
	// not asked about GET, HEAD, OPTIONS, TRACE, PUT and DELETE, nor about a request whose header has an entry for
	// Idempotency-Key or X-Idempotency-Key: these are safe. As in net/http an entry without values counts, and is not sent:
	//
	//	req.Header["Idempotency-Key"] = nil
	//
	// It is also asked after an answer that forbids a retry: what may be repeated is then not in doubt. Nil means no. For
	// a call that must not be repeated at all, use retry.OneAttempt.
	Repeat func(*AttemptError) bool

	// IdempotencyKey returns the value of the Idempotency-Key header for a request whose method is not idempotent and
	// that has no such header; the request may then be repeated. It is called once for each RoundTrip; a redirect that a
	// client follows is another one. WorkKey is ready-made: the key is the same if a job or retry.Do repeats the RoundTrip.
	// "" means no key for this request. Nil means never.
	IdempotencyKey func(*http.Request) string

	// BufferBody is the maximum number of bytes of a body without GetBody to read into memory before the first attempt,
	// so that it can be sent again. Content-Length is then its length, unless the request has a Trailer or asks for
	// chunks. A longer body is sent as a stream. AttemptTimeout does not cover this; when the request's context ends,
	// the body is closed, which must end its Read. Zero means none.
	BufferBody int64

	// StallTimeout is how long one Read of a response's body may take. After that the body is closed and Read returns
	// ErrBodyStalled. It does not apply to the body of a 101. Zero means no limit.
	StallTimeout time.Duration

	// AttemptHeader is the name of a request header that carries the attempt's number, "1" for the first, in place of
	// what the caller's request has under that name. The constant AttemptHeader is a conventional name. Empty means
	// none. Under retry.OneAttempt and retryshell.WithRemoteAttempt the number is that of the run that repeats the work,
	// such as a trusted client's, so name a header only for services that may know it. A request that a client redirects
	// to another host has none.
	AttemptHeader string

	// Hedge sends a request that is slow a second time, beside the first. Nil means never.
	Hedge *Hedge

	// Resume makes the body of a response to a GET go on where it breaks off. A Read that fails with what the rules
	// repeat, such as a reset, an early end or ErrBodyStalled, asks for the rest by Range and If-Range, and returns once
	// a byte of it has come. Bytes of another version are never delivered: there must be a strong ETag, or else a
	// Last-Modified a minute older than the Date, and it must stay the same. With Hedge, the rest is asked for first where
	// the body came from.
	//
	// Each break begins a run of the Policy, with " body" behind its Name, for Observe and for the *retry.Error that
	// Read returns if the run fails. The attempt that broke off is its first one, so MaxAttempts counts between two
	// breaks; TTL counts from the RoundTrip. A part that the server makes shorter than what was asked for is not a
	// break: its rest is asked for at once. A part deposits nothing in the Budget. Accept and Delivery do not apply.
	//
	// A server that knows no ranges answers with the whole body. If it has the same strong ETag, the bytes that were
	// delivered are passed over, up to 64 MiB for each part. If a client was redirected to the URL, and a request for the
	// rest is answered 401, 403, 404 or 410 there, as if its signature had expired, the first URL is asked once more, and its
	// redirects are followed to the same hosts. If the first response has a Content-Digest or Repr-Digest of sha-256
	// (RFC 9530), the end of the body is an error with the Reason DigestMismatch if the bytes have another one.
	//
	// A body that cannot be resumed fails as without Resume, with the Veto NotResumable and why in the text; if the content
	// is another one by now, the Reason is ContentChanged. To a run around it the failure is Retryable, as that of any body
	// that breaks off.
	//
	// It costs compression: a request without an Accept-Encoding asks for identity, since a server knows no offsets in
	// what net/http decodes. What is sent in gzip all the same is decoded as net/http does it, and resumed by its encoded
	// bytes. Zero means that a body ends where it breaks off.
	Resume bool

	// TimeLeft names, for each host that is to know, the header with the milliseconds that an attempt has left, until
	// AttemptTimeout or the deadline of the request's context: {"orders.internal:8080": EnvoyTimeLeft}. Hosts are
	// written as in the request's URL. A request that a client redirects to another host has none. A server that obeys
	// ends its work then, also a body that it still sends, which AttemptTimeout does not. Nil means none.
	TimeLeft map[string]string
}

// NewBase returns a new transport with the values of http.DefaultTransport and two limits that repeating needs. It pings
// an HTTP/2 connection on which nothing arrives for 5s, and closes it if nothing arrives for 5s more; otherwise net/http
// could send every attempt on a dead connection for 15 minutes. The headers of a response are limited to 256 KiB. The
// caller may set the transport's fields before its first use.
func NewBase() *http.Transport { return base.New() }

// NewClient returns a client for an API: it repeats requests as p says, on a transport of NewBase. It is the Client of
// a Transport with these two alone.
func NewClient(p retry.Policy) *http.Client { return (&Transport{Base: NewBase(), Policy: p}).Client() }

// Client returns a client of t. It follows redirects as any http.Client does, but not with Delivery: what is delivered
// to other people's URLs must not go elsewhere, so a 3xx is then what the client returns.
func (t *Transport) Client() *http.Client {
	client := &http.Client{Transport: t}
	if t.Delivery {
		client.CheckRedirect = func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse }
	}
	return client
}

// Validate returns nil or retry.FieldErrors with every bad field: those of Policy and Hedge, a negative BufferBody or
// StallTimeout, and an AttemptHeader or a name in TimeLeft that is not a field name or has a meaning of its own, such as
// Host. RoundTrip returns the same error, for the policy of PolicyFor if that is set.
func (t *Transport) Validate() error { return t.validate(&t.Policy) }

func (t *Transport) validate(p *retry.Policy) error {
	var bad retry.FieldErrors
	bad.Append(p.Validate())
	if t.BufferBody < 0 {
		bad.Refuse("retryhttp.Transport.BufferBody", t.BufferBody, "is negative")
	}
	if t.StallTimeout < 0 {
		bad.Refuse("retryhttp.Transport.StallTimeout", t.StallTimeout, "is negative")
	}
	if t.AttemptHeader != "" {
		refuseName(&bad, "retryhttp.Transport.AttemptHeader", t.AttemptHeader)
	}
	if t.TimeLeft != nil {
		for _, host := range slices.Sorted(maps.Keys(t.TimeLeft)) {
			refuseName(&bad, fmt.Sprintf("retryhttp.Transport.TimeLeft[%q]", host), t.TimeLeft[host])
		}
	}
	if t.Hedge != nil {
		bad.Append(t.Hedge.Policy.Validate())
	}
	return bad.Err()
}

// refuseName refuses the name of a header that is not one, or is not free.
func refuseName(bad *retry.FieldErrors, field, name string) {
	switch name = http.CanonicalHeaderKey(name); {
	case !isToken(name):
		bad.Refuse(field, strconv.Quote(name), "is not a field name")
	case slices.Contains(takenNames, name):
		bad.Refuse(field, strconv.Quote(name), "has a meaning of its own")
	}
}

// takenNames are headers that change what a request is.
var takenNames = []string{"Authorization", "Connection", "Content-Length", "Content-Type", "Expect", "Host",
	"Idempotency-Key", "Trailer", "Transfer-Encoding", "Upgrade", "X-Idempotency-Key"}

// policyFor returns the policy for one RoundTrip.
func (t *Transport) policyFor(req *http.Request) *retry.Policy {
	if t.PolicyFor == nil {
		return &t.Policy
	}
	p := t.PolicyFor(req)
	return &p
}

// RoundTrip makes attempts until one succeeds or the policy ends the run.
//
// It returns a nil error with the last response, readable in full, if the run ended because of that response: it is
// a success or an answer, must not be repeated, asks for too long a wait, or nothing was left to repeat it with
// (attempts, budget, TTL, the time to the caller's deadline). OutcomeOf returns which. Otherwise the error is the
// *retry.Error, whose Last holds the *AttemptError of the last attempt, if there was one. For a nil request, or a
// Transport that does not validate, RoundTrip returns other errors and makes no attempt.
//
// Once a retry has been decided on and paid for, the response before it is read for up to 64 KiB and 100ms, so that its
// connection can be used again, and closed. If the run ends after that, because of a slow Observe or a gate, RoundTrip
// returns the *retry.Error.
//
// The request is not changed, its body is closed in every case, a panic included, and the response's Request is the
// caller's.
func (t *Transport) RoundTrip(req *http.Request) (*http.Response, error) {
	if req == nil {
		return nil, errors.New("retryhttp: RoundTrip: Request is nil")
	}
	if !t.isBare() || !isBare(req) {
		return newRun(t, nil, req).roundTrip()
	}
	p := t.policyFor(req) // which may panic: a request that is bare has no body to close
	if !isQuiet(p) || t.listens(p) || !isUnmarked(req.Context()) {
		return newRun(t, p, req).roundTrip()
	}
	if refusal(req) != nil {
		return newRun(t, p, req).roundTrip()
	}
	return t.direct(req, p)
}

// CloseIdleConnections calls the method of Base, if it has one. A Transport does not call it by itself.
func (t *Transport) CloseIdleConnections() {
	closeIdle(t.base())
}

func closeIdle(base http.RoundTripper) {
	if closer, ok := base.(interface{ CloseIdleConnections() }); ok {
		closer.CloseIdleConnections()
	}
}

func (t *Transport) base() http.RoundTripper {
	if t.Base != nil {
		return t.Base
	}
	return http.DefaultTransport
}
