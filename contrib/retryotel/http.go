package retryotel

import (
	"cmp"
	"context"
	"errors"
	"maps"
	"net/http"
	"net/url"
	"slices"
	"strconv"
	"strings"
	"time"

	"go.opentelemetry.io/otel/attribute"
	"go.opentelemetry.io/otel/codes"
	"go.opentelemetry.io/otel/metric"
	"go.opentelemetry.io/otel/propagation"
	semconv "go.opentelemetry.io/otel/semconv/v1.43.0"
	"go.opentelemetry.io/otel/semconv/v1.43.0/httpconv"
	"go.opentelemetry.io/otel/trace"

	"github.com/retrygo/retry"
	"github.com/retrygo/retry/retryhttp"
)

// HTTP returns a RoundTripper that works like t, with a span for each run, like that of Do, and for each send a client
// span below it and a record of the metric http.client.request.duration. Do not combine it with otelhttp, which would
// count each send, or all of them as one, once more. t is copied: later changes to it have no effect. A nil t is an
// error. If t does not validate, each RoundTrip returns t's error.
//
// The spans of sends follow the stable HTTP conventions, with retry.attempt and, if Policy has a name, retry.policy. All
// sends of one RoundTrip except the first have http.request.resend_count and a link to the send before. In url.full the
// credentials and the values of the query are replaced by REDACTED (see Options.ShowQuery); the path is not. A status
// from 400 on is an Error, even if Transport.Accept takes it for a success. A response that comes after
// Policy.AttemptTimeout is an Error of the type "attempt_timeout", because the run discards it. A span ends with the
// response's headers or the failure, because a body may be read late, partly or never.
//
// Each send carries its own context in its headers, through Options.Propagator: all of its Fields in the request are
// removed first, in any spelling, baggage included, as the specification of propagators requires for a reused header.
// Baggage is sent from the context (baggage.ContextWithBaggage), not from the request. Without a trace nothing is
// removed. The request is not modified, and the response, its body and errors are passed on unchanged.
//
// The spans of a body's further parts (Transport.Resume) are below that of the run, which has ended by then. A redirect
// that an http.Client follows is another RoundTrip, and so another run with its own count.
func HTTP(t *retryhttp.Transport, o Options) (http.RoundTripper, error) {
	if t == nil {
		return nil, errors.New("retryotel: HTTP: Transport is nil")
	}
	duration, err := httpconv.NewClientRequestDuration(o.meter(), // bounds: the conventions for HTTP metrics
		metric.WithExplicitBucketBoundaries(0.005, 0.01, 0.025, 0.05, 0.075, 0.1, 0.25, 0.5, 0.75, 1, 2.5, 5, 7.5, 10))
	if err != nil {
		return nil, refused(err)
	}
	return &roundTripper{*t, o.tracer(), o.propagator(), duration.Inst(), o.ShowQuery}, nil
}

type roundTripper struct {
	transport  retryhttp.Transport
	tracer     trace.Tracer
	propagator propagation.TextMapPropagator
	duration   metric.Float64Histogram
	show       func(key string) bool
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
		if !s.ended { // otherwise it is about a body that broke off: the caller's span is the one that still records
			ctx = ofRun(ctx, s.run)
		}
		s.observed(ctx, e)
	}
	if e.Outcome != nil {
		s.ended = true
		ended(s.run, e.Outcome, e.Err)
	}
}

// RoundTrip makes one send.
func (s *sends) RoundTrip(req *http.Request) (*http.Response, error) {
	name, attributes := describe(req)
	began := time.Now()
	ctx, span := s.start(req, name, attributes)
	returned := false
	defer end(span, &returned)
	out := req.WithContext(ctx)
	out.Header = s.header(ctx, req.Header)
	resp, err := s.base.RoundTrip(out)
	recording := span.IsRecording()
	if recording || s.given.duration.Enabled(ctx) {
		// An outer run's timeout is the caller's deadline here.
		late := context.Cause(ctx) == retry.ErrAttemptTimeout && s.caller.Err() == nil
		result, failure := resultOf(resp, err, late)
		if recording {
			finish(span, result, failure)
		}
		s.given.duration.Record(ctx, time.Since(began).Seconds(), metric.WithAttributes(append(attributes, result...)...))
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

func (s *sends) start(req *http.Request, name string, attributes []attribute.KeyValue) (context.Context, trace.Span) {
	ctx := ofRun(req.Context(), s.run)
	attributes = append(slices.Clone(attributes), semconv.URLFull(redacted(req.URL, s.given.show)))
	if name == "HTTP" {
		attributes = append(attributes, semconv.HTTPRequestMethodOriginal(valid(req.Method)))
	}
	attributes = append(attributes, attemptAttributes(s.policy, retry.AttemptNumber(ctx))...)
	if s.chain.made > 0 {
		attributes = append(attributes, semconv.HTTPRequestResendCount(s.chain.made))
	}
	return s.chain.start(ctx, name, trace.SpanKindClient, attributes...)
}

// describe returns the name of a request's span, and what its span and its metric tell of it.
func describe(req *http.Request) (name string, attributes []attribute.KeyValue) {
	attributes = make([]attribute.KeyValue, 0, 8)
	switch method := req.Method; method {
	case "":
		name = http.MethodGet // net/http sends it
	case http.MethodConnect, http.MethodDelete, http.MethodGet, http.MethodHead, http.MethodOptions, http.MethodPatch,
		http.MethodPost, http.MethodPut, http.MethodTrace:
		name = method
	default: // names are bounded by the conventions
		return "HTTP", append(attributes, semconv.HTTPRequestMethodOther, address(req.URL), port(req.URL))
	}
	return name, append(attributes, semconv.HTTPRequestMethodKey.String(name), address(req.URL), port(req.URL))
}

func address(u *url.URL) attribute.KeyValue { return semconv.ServerAddress(valid(u.Hostname())) }

// port is the port that u names or its scheme implies.
func port(u *url.URL) attribute.KeyValue {
	number, err := strconv.Atoi(u.Port())
	switch {
	case err == nil:
	case u.Scheme == "https":
		number = 443
	default:
		number = 80
	}
	return semconv.ServerPort(number)
}

// redacted returns u without its possible secrets.
func redacted(u *url.URL, show func(key string) bool) string {
	const gone = "REDACTED"
	shown := *u
	if shown.User != nil {
		shown.User = url.UserPassword(gone, gone)
	}
	shown.Fragment, shown.RawFragment = "", "" // not sent either
	if shown.RawQuery != "" {
		pairs := strings.Split(shown.RawQuery, "&")
		for i, pair := range pairs {
			key, _, ok := strings.Cut(pair, "=")
			switch {
			case !ok: // it may be a value as well
				pairs[i] = gone
			case show == nil || !show(key):
				pairs[i] = key + "=" + gone
			}
		}
		shown.RawQuery = strings.Join(pairs, "&")
	}
	return valid(shown.String())
}

// errNoResponse is the error of a Base that breaks the rules of http.RoundTripper.
var errNoResponse = errors.New("the RoundTripper returned neither a response nor an error")

// resultOf returns the attributes of a send's result, and its error, if there is no response that counts.
func resultOf(resp *http.Response, err error, late bool) (result []attribute.KeyValue, failure error) {
	if resp != nil && err == nil {
		result = append(result, semconv.HTTPResponseStatusCode(resp.StatusCode), semconv.NetworkProtocolVersion(protocol(resp)))
	}
	kind := ""
	switch {
	case late: // the run discards it too
		kind, failure = string(retryhttp.AttemptTimeout), cmp.Or(err, retry.ErrAttemptTimeout)
	case err != nil:
		kind, failure = sendErrorType(err), err
	case resp == nil:
		kind, failure = other, errNoResponse
	case resp.StatusCode >= http.StatusBadRequest:
		kind = strconv.Itoa(resp.StatusCode)
	default:
		return result, nil
	}
	return append(result, semconv.ErrorTypeKey.String(kind)), failure
}

func finish(span trace.Span, result []attribute.KeyValue, failure error) {
	span.SetAttributes(result...)
	if kind := result[len(result)-1]; failure != nil {
		fail(span, kind.Value.AsString(), failure)
	} else if kind.Key == semconv.ErrorTypeKey {
		span.SetStatus(codes.Error, "") // the status code says it
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
