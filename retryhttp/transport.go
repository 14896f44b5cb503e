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

// Transport is an http.RoundTripper that repeats requests. It sends them through Base and repeats them by its Policy.
// The zero Transport uses http.DefaultTransport and the schedule of retry.Inline.
//
// A Transport is safe for concurrent use. Its fields must not be changed once it is in use. It does not follow
// redirects, which is the task of the http.Client around it.
type Transport struct {
	// Base makes the attempts. Nil means http.DefaultTransport, which keeps using an HTTP/2 connection that has died
	// silently. NewBase returns a transport that closes such a connection.
	//
	// Each call of Base must return a response of its own, whose body's Close ends a Read that waits. Base must refuse
	// a header with a control character, as net/http does. Only on js, where net/http does not, does a Transport look
	// for them itself. Base must not follow redirects. It must call the hooks of the context's httptrace.ClientTrace,
	// or return net/http's errors unchanged. From these a Transport learns that an attempt has sent no byte. An error
	// whose method Unsent() bool returns true means the same, and so does the *oauth2.RetrieveError of a Base that
	// fetches a token first. A stream that Base has not closed within a second of a failure is not sent again. To send
	// each attempt to another host, use Replicas.
	//
	// An http.Transport sends some requests again within one attempt. If a connection that was used before dies, it
	// repeats a GET or a request with an Idempotency-Key. If an HTTP/2 server refuses a stream, it repeats any request,
	// for up to 63s.
	Base http.RoundTripper

	// Policy decides how often, how long and after which failures a request is repeated. If it sets no delays, the
	// delays and the MaxHint of retry.Inline are used. If it sets no MaxAttempts either, so is the MaxAttempts of
	// retry.Inline (see retry.Policy.OrSchedule). If it sets delays but neither MaxHint nor TTL, MaxHint is 1m, or the
	// longest of Base, Cap and Delays if that is more.
	//
	// Classify is asked about each *AttemptError before the classifier of this package. AttemptTimeout covers an
	// attempt up to the response's headers, and Accept. It never cuts off a body after that. Over HTTP/2 it ends the
	// attempt's stream and not the connection. Observe, Gate and Pay get the request's context. The final event of a
	// run that did not succeed has an Err, even if RoundTrip returns the last response without an error.
	Policy retry.Policy

	// PolicyFor returns the policy of one RoundTrip, which calls it once. It may choose by host or route, read a
	// catalog that is loaded again, set a budget for each tenant, or set a Gate that knows the request. Policy is then
	// not used. Nil means Policy.
	PolicyFor func(*http.Request) retry.Policy

	// Accept reports whether a response is a success whatever its status and the rules are. A response that it does not
	// accept is judged by the rules, even a 200. It may read the body if it puts back the bytes that it has read, as
	// the Accept of FirstEvent does for streams of events. Nil means 2xx and 101.
	Accept func(*http.Response) bool

	// Delivery declares that only a response that Accept accepts is a success, as for a webhook. Any other that is not
	// repeated, such as a 3xx or a 404, then ends the run as a dead letter. Zero means that such a response is an
	// answer, with which the run succeeds.
	Delivery bool

	// Hint returns the time for which a response that is not accepted asks the client to stay away. The longer of it
	// and Retry-After counts. 0 or less is not a hint. hints.RateLimit is ready-made. Nil means Retry-After alone.
	Hint func(*http.Response) time.Duration

	// Repeat reports whether a request that a server may have acted on, and that is not safe to repeat, may be sent
	// again after this failure. An example is a POST after a 429. A Repeat that always reports true suits deliveries to
	// webhooks. It is not asked about GET, HEAD, OPTIONS, TRACE, PUT and DELETE, nor about a request whose header has
	// an entry for Idempotency-Key or X-Idempotency-Key, because these are safe to repeat. As in net/http, an entry
	// without values counts and is not sent:
	//
	//	req.Header["Idempotency-Key"] = nil
	//
	// It is also asked after an answer that forbids a retry. A request that may be repeated is then not in doubt (see
	// retry.Ambiguous). Nil means no. For a call that must not be repeated at all, use retry.OneAttempt.
	Repeat func(*AttemptError) bool

	// IdempotencyKey returns the value of the Idempotency-Key header for a request whose method is not idempotent and
	// that has no such header. The request may then be repeated. It is called once for each RoundTrip, and a redirect
	// that a client follows is another RoundTrip. WorkKey is ready-made. Its key is the same if a job or retry.Do
	// repeats the RoundTrip. "" means no key for this request. Nil means never.
	IdempotencyKey func(*http.Request) string

	// BufferBody is the maximum number of bytes of a body without GetBody to read into memory before the first attempt,
	// so that it can be sent again. Content-Length is then its length, unless the request has a Trailer or asks for
	// chunks. A longer body is sent as a stream. AttemptTimeout does not cover this reading. When the request's context
	// ends, the body is closed, which must end its Read. Zero means that no body is buffered.
	BufferBody int64

	// StallTimeout is how long one Read of a response's body may take. After that the body is closed and Read returns
	// ErrBodyStalled. It does not apply to the body of a 101. Zero means no limit.
	StallTimeout time.Duration

	// AttemptHeader is the name of a request header that carries the attempt's number, "1" for the first, in place of
	// the values that the caller's request has under that name. The constant AttemptHeader is a conventional name.
	// Empty means that no number is sent. Under retry.OneAttempt and retryshell.WithRemoteAttempt it is the number in
	// the run that repeats the work, such as a trusted client's, so name a header only for services that may know it. A
	// request that a client redirects to another host does not carry it.
	AttemptHeader string

	// Hedge sends a request that is slow a second time, beside the first. Nil means never.
	Hedge *Hedge

	// Resume makes the body of a response to a GET go on where it breaks off. If a Read fails with an error that the
	// rules repeat, such as a reset, an early end or ErrBodyStalled, it asks for the rest by Range and If-Range, and
	// returns once a byte of it has come. Bytes of another version are never delivered. The response must have a strong
	// ETag, or else a Last-Modified a minute older than its Date, and the rest must have the same. With Hedge, the rest
	// is asked for first where the body came from.
	//
	// Each break begins a run of the Policy, with " body" behind its Name, for Observe and for the *retry.Error that
	// Read returns if the run fails. The attempt that broke off is its first one, so MaxAttempts counts between two
	// breaks. TTL counts from the RoundTrip. A part that the server makes shorter than the range that was asked for is
	// not a break, and its rest is asked for at once. A part does not fund the Budget. Accept and Delivery do not
	// apply.
	//
	// A server that knows no ranges answers with the whole body. If it has the same strong ETag, the bytes that were
	// delivered are passed over, up to 64 MiB for each part. If a client was redirected to the URL, and a request for
	// the rest is answered 401, 403, 404 or 410 there, as if its signature had expired, the first URL is asked once
	// more, and its redirects are followed to the same hosts. If the first response has a Content-Digest or Repr-Digest
	// of sha-256 (RFC 9530), and the bytes have another one, the body ends with an error with the Reason
	// DigestMismatch.
	//
	// A body that cannot be resumed fails as it would without Resume. The error has the Veto NotResumable and names the
	// obstacle in its text. If the content has changed, the Reason is ContentChanged. A run around it may repeat the
	// whole request, because the failure is Retryable there, like the failure of any body that breaks off.
	//
	// The price of Resume is compression. A request without an Accept-Encoding asks for identity, because a server's
	// offsets do not fit the bytes that net/http has decoded. A body that is sent in gzip all the same is decoded as
	// net/http does it, and resumed by its encoded bytes. Zero means that a body ends where it breaks off.
	Resume bool

	// TimeLeftHeaders makes the attempts at a host carry a header with the milliseconds that the attempt has left, until
	// AttemptTimeout or the deadline of the request's context. It maps the host, written as in the request's URL, to
	// the name of the header, as in {"orders.internal:8080": EnvoyTimeLeftHeader}. A request that a client redirects to
	// another host does not carry it. A server that obeys the header ends its work at that time, also a body that it
	// still sends, which AttemptTimeout does not end. Nil means that no host gets such a header.
	TimeLeftHeaders map[string]string
}

// NewBase returns a new transport with the values of http.DefaultTransport and two limits that repeating needs. It
// pings an HTTP/2 connection on which no frame arrives for 5s, and closes it if no frame arrives for 5s more. Otherwise
// net/http could send every attempt on a dead connection for 15 minutes. The headers of a response are limited to 256
// KiB. The caller may set the transport's fields before its first use.
func NewBase() *http.Transport { return base.New() }

// NewClient returns a client for an API. The client repeats requests by the policy p, on a transport of NewBase. It is
// the Client of a Transport with only these two fields set. Without an AttemptTimeout, and without a deadline on the
// request's context, an attempt at a server that never answers lasts forever.
func NewClient(p retry.Policy) *http.Client { return (&Transport{Base: NewBase(), Policy: p}).Client() }

// Client returns a client of t. It follows redirects as any http.Client does, except with Delivery. A webhook must not
// be delivered elsewhere than to the URL of its receiver, so the client then returns a 3xx.
func (t *Transport) Client() *http.Client {
	client := &http.Client{Transport: t}
	if t.Delivery {
		client.CheckRedirect = func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse }
	}
	return client
}

// Validate returns nil or retry.FieldErrors with every bad field. These are the bad fields of Policy and Hedge, a
// negative BufferBody or StallTimeout, and an AttemptHeader or a name in TimeLeftHeaders that is not a field name or has a
// meaning of its own, such as Host. RoundTrip returns the same error, for the policy of PolicyFor if that is set.
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
	if t.TimeLeftHeaders != nil {
		for _, host := range slices.Sorted(maps.Keys(t.TimeLeftHeaders)) {
			refuseName(&bad, fmt.Sprintf("retryhttp.Transport.TimeLeftHeaders[%q]", host), t.TimeLeftHeaders[host])
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

// takenNames are headers that change the meaning or the form of a request.
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
// It returns a nil error with the last response, readable in full, if the run ended because of that response. The
// response is a success or an answer, or must not be repeated, or asks for too long a wait, or the run has no attempts,
// budget or time left, by its TTL or the caller's deadline. OutcomeOf returns the reason. Otherwise the error is the
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
	p := t.policyFor(req) // which may panic, and a bare request has no body to close
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
