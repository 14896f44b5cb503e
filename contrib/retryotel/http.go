package retryotel

import (
	"cmp"
	"context"
	"errors"
	"maps"
	"net/http"
	"net/url"
	"strconv"
	"strings"

	"go.opentelemetry.io/otel/attribute"
	"go.opentelemetry.io/otel/codes"
	"go.opentelemetry.io/otel/propagation"
	semconv "go.opentelemetry.io/otel/semconv/v1.43.0"
	"go.opentelemetry.io/otel/trace"

	"github.com/retrygo/retry"
	"github.com/retrygo/retry/retryhttp"
)

// HTTP returns a RoundTripper that works like t, with a span for each run, like that of Do, and a client span below it
// for each send. t is copied: later changes to it have no effect. A nil t and bad options are errors. If t does not
// validate, each RoundTrip returns t's error.
//
// The spans of sends follow the stable HTTP conventions. Their name is the method, their attributes are
// http.request.method, url.full, server.address, server.port, http.response.status_code, network.protocol.version and
// error.type, and retry.attempt and, if Policy has a name, retry.policy. All sends of one RoundTrip except the first
// have http.request.resend_count and a link to the send before. In url.full the credentials and the values of the query
// are replaced by REDACTED; the path is not. A status from 400 on is an Error, even if Transport.Accept takes it for a
// success. A response that comes after Policy.AttemptTimeout is an Error of the type "attempt_timeout", because the run
// discards it. A span begins before Base is called and ends with the response's headers or the failure, because a body
// may be read late, partly or never.
//
// Each send carries its own context in its headers, through Options.Propagator: all of its Fields in the request are
// removed first, in any spelling, baggage included, as the specification of propagators requires for a reused header.
// Baggage is sent from the context (baggage.ContextWithBaggage), not from the request. Without a trace, as without an
// SDK, nothing is removed. The request is not modified, and the response, its body and errors are passed on unchanged.
//
// A redirect that an http.Client follows is another RoundTrip, and so another run with its own count. A request that
// net/http itself sends again on a new connection has one span. With otelhttp, put its Transport outside:
// otelhttp.NewTransport(rt) makes a span above the run's; as t.Base it would make a second span of each send.
func HTTP(t *retryhttp.Transport, o Options) (http.RoundTripper, error) {
	if t == nil {
		return nil, errors.New("retryotel: HTTP: Transport is nil")
	}
	if err := o.Validate(); err != nil {
		return nil, err
	}
	return &roundTripper{*t, o.tracer(), o.propagator()}, nil
}

type roundTripper struct {
	transport  retryhttp.Transport
	tracer     trace.Tracer
	propagator propagation.TextMapPropagator
}

// RoundTrip gives each run its own Transport and Base, which links the run's spans.
func (h *roundTripper) RoundTrip(req *http.Request) (*http.Response, error) {
	if req == nil {
		return h.transport.RoundTrip(nil)
	}
	s := &sends{given: h, caller: req.Context(), own: h.transport, chain: chain{tracer: h.tracer}, base: h.transport.Base}
	if s.base == nil {
		s.base = http.DefaultTransport
	}
	returned := false
	defer func() {
		if s.run != nil { // no panic in begin
			end(s.run, &returned)
		}
	}()
	s.own.Base, s.own.PolicyFor = s, s.begin
	resp, err := s.own.RoundTrip(req)
	if err != nil && !s.ended && s.run.IsRecording() { // refused
		failed(s.run, err)
	}
	returned = true
	return resp, err
}

// CloseIdleConnections calls the method of Transport.Base, if it has one.
func (h *roundTripper) CloseIdleConnections() { h.transport.CloseIdleConnections() }

// sends is the Base of one run.
type sends struct {
	given    *roundTripper
	caller   context.Context
	own      retryhttp.Transport // of this run alone
	chain    chain
	base     http.RoundTripper
	policy   string                             // its name
	observed func(context.Context, retry.Event) // Policy.Observe; nil if there is none
	run      trace.Span                         // nil before begin
	ended    bool
}

// begin is the PolicyFor of one run: it begins the span of the run, which has the policy's name.
func (s *sends) begin(req *http.Request) retry.Policy {
	t := &s.given.transport
	p := t.Policy
	if t.PolicyFor != nil {
		p = t.PolicyFor(req)
	}
	s.policy, s.observed, p.Observe = p.Name, p.Observe, s.observe
	_, s.run = startRun(s.caller, s.given.tracer, p.Name)
	return p
}

// observe is the Policy.Observe of one run. If RoundTrip returns a response, only the final event says how the run
// ended.
func (s *sends) observe(ctx context.Context, e retry.Event) {
	if s.observed != nil {
		s.observed(ofRun(ctx, s.run), e)
	}
	if e.Outcome != nil {
		s.ended = true
		ended(s.run, e.Outcome, e.Err)
	}
}

// RoundTrip makes one send.
func (s *sends) RoundTrip(req *http.Request) (*http.Response, error) {
	ctx, span := s.start(req)
	returned := false
	defer end(span, &returned)
	out := req.WithContext(ctx)
	out.Header = s.header(ctx, req.Header)
	resp, err := s.base.RoundTrip(out)
	if span.IsRecording() {
		// An outer run's timeout is the caller's deadline here.
		late := context.Cause(ctx) == retry.ErrAttemptTimeout && s.caller.Err() == nil
		finish(span, resp, err, late)
	}
	returned = true
	return resp, err
}

// header returns a copy of a request's header with the trace context of one send in place of any other. It also
// replaces a key that net/http would not write, such as "traceparent".
func (s *sends) header(ctx context.Context, given http.Header) http.Header {
	header := given.Clone()
	if header == nil {
		header = http.Header{}
	}
	if trace.SpanContextFromContext(ctx).IsValid() { // otherwise it would remove what was set by hand, and add nothing
		for _, field := range s.given.propagator.Fields() {
			maps.DeleteFunc(header, func(key string, _ []string) bool { return strings.EqualFold(key, field) })
		}
	}
	s.given.propagator.Inject(ctx, propagation.HeaderCarrier(header))
	return header
}

func (s *sends) start(req *http.Request) (context.Context, trace.Span) {
	ctx := ofRun(req.Context(), s.run)
	name, attributes := describe(req)
	attributes = append(attributes, attemptAttributes(s.policy, retry.AttemptNumber(ctx))...)
	if s.chain.made > 0 {
		attributes = append(attributes, semconv.HTTPRequestResendCount(s.chain.made))
	}
	return s.chain.start(ctx, name, trace.SpanKindClient, attributes...)
}

// describe returns the name of a request's span and its attributes before the send.
func describe(req *http.Request) (name string, attributes []attribute.KeyValue) {
	attributes = make([]attribute.KeyValue, 0, 8)
	switch method := req.Method; method {
	case "":
		name = http.MethodGet // net/http sends it
	case http.MethodConnect, http.MethodDelete, http.MethodGet, http.MethodHead, http.MethodOptions, http.MethodPatch,
		http.MethodPost, http.MethodPut, http.MethodTrace:
		name = method
	default: // names are bounded by the conventions
		name = "HTTP"
		attributes = append(attributes, semconv.HTTPRequestMethodOther, semconv.HTTPRequestMethodOriginal(valid(method)))
	}
	if name != "HTTP" {
		attributes = append(attributes, semconv.HTTPRequestMethodKey.String(name))
	}
	return name, append(attributes,
		semconv.URLFull(redacted(req.URL)),
		semconv.ServerAddress(valid(req.URL.Hostname())),
		semconv.ServerPort(port(req.URL)))
}

// port returns the port that u names or its scheme implies.
func port(u *url.URL) int {
	if number, err := strconv.Atoi(u.Port()); err == nil {
		return number
	}
	if u.Scheme == "https" {
		return 443
	}
	return 80
}

// redacted returns u without its possible secrets.
func redacted(u *url.URL) string {
	const gone = "REDACTED"
	shown := *u
	if shown.User != nil {
		shown.User = url.UserPassword(gone, gone)
	}
	shown.Fragment, shown.RawFragment = "", "" // not sent either
	if shown.RawQuery != "" {
		pairs := strings.Split(shown.RawQuery, "&")
		for i, pair := range pairs {
			pairs[i] = gone
			if key, _, ok := strings.Cut(pair, "="); ok { // otherwise it may be a value as well
				pairs[i] = key + "=" + gone
			}
		}
		shown.RawQuery = strings.Join(pairs, "&")
	}
	return valid(shown.String())
}

// errNoResponse is the error of a Base that breaks the rules of http.RoundTripper.
var errNoResponse = errors.New("the RoundTripper returned neither a response nor an error")

// finish adds the result of a send, and whether it came after AttemptTimeout.
func finish(span trace.Span, resp *http.Response, err error, late bool) {
	if resp != nil && err == nil {
		span.SetAttributes(
			semconv.HTTPResponseStatusCode(resp.StatusCode),
			semconv.NetworkProtocolVersion(protocol(resp)))
	}
	switch {
	case late:
		fail(span, string(retryhttp.AttemptTimeout), cmp.Or(err, retry.ErrAttemptTimeout)) // the run discards it too
	case err != nil:
		fail(span, answered(err, sendErrorType), err)
	case resp == nil:
		fail(span, other, errNoResponse)
	default:
		if resp.StatusCode >= http.StatusBadRequest {
			span.SetAttributes(semconv.ErrorTypeKey.String(strconv.Itoa(resp.StatusCode)))
			span.SetStatus(codes.Error, "") // the status code says it
		}
	}
}

// sendErrorType returns retryhttp's word for err, or otherwise the Go type.
func sendErrorType(err error) string {
	if reason := retryhttp.ReasonOf(err); reason != "" && reason != retryhttp.TransportError {
		return string(reason)
	}
	return errorType(err)
}

// protocol returns "1.1" or "2".
func protocol(resp *http.Response) string {
	if resp.ProtoMajor >= 2 {
		return strconv.Itoa(resp.ProtoMajor)
	}
	return strconv.Itoa(resp.ProtoMajor) + "." + strconv.Itoa(resp.ProtoMinor)
}
