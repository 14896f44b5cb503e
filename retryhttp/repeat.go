package retryhttp

import (
	"cmp"
	"context"
	"crypto/rand"
	"crypto/sha256"
	"fmt"
	"log/slog"
	"net/http"
	"net/http/httptrace"
	"sync/atomic"

	"github.com/retrygo/retry/retryshell"
)

// idempotentMethod reports whether the method is idempotent by definition (RFC 9110, section 9.2.2). An empty method
// stands for GET.
func idempotentMethod(method string) bool {
	switch method {
	case "", http.MethodGet, http.MethodHead, http.MethodOptions, http.MethodTrace, http.MethodPut, http.MethodDelete:
		return true
	default:
		return false
	}
}

func hasKey(h http.Header) bool {
	_, standard := h["Idempotency-Key"]
	_, legacy := h["X-Idempotency-Key"]
	return standard || legacy
}

// isRepeatable reports whether req, which may be nil, is known to be safe to repeat.
func isRepeatable(req *http.Request) bool {
	return req != nil && (idempotentMethod(req.Method) || hasKey(req.Header))
}

// isSafe reports whether the method asks for no change by definition (RFC 9110, section 9.2.1). An empty method stands
// for GET.
func isSafe(method string) bool {
	switch method {
	case "", http.MethodGet, http.MethodHead, http.MethodOptions, http.MethodTrace:
		return true
	default:
		return false
	}
}

// sendsKey reports whether h has a key that a server sees. An entry without values declares only that the request may
// be repeated.
func sendsKey(h http.Header) bool {
	return h.Get("Idempotency-Key") != "" || h.Get("X-Idempotency-Key") != ""
}

// nothingDone reports whether a server that answers with the status has not done the work, so that the work is not in
// doubt. Every other status but an answer leaves it in doubt. A server that fails with a 500, 502, 503, 504, 507 or 508
// may fail after the work. A server that answers with a 2xx or a 3xx other than 307 and 308 has done something. The meaning of an unknown status
// is not known.
func nothingDone(code int) bool {
	switch code {
	case 499: // of a proxy whose client has gone, although the server behind it may have done the work
		return false
	case http.StatusTemporaryRedirect, http.StatusPermanentRedirect, // the request is to be sent elsewhere
		http.StatusNotImplemented, http.StatusHTTPVersionNotSupported, http.StatusVariantAlsoNegotiates,
		http.StatusNotExtended, http.StatusNetworkAuthenticationRequired: // the request was not understood, or did not arrive
		return true
	default: // a 4xx refuses half a request (408) or a whole one (413, 417, 421, 425, 426, 429)
		return code >= 400 && code < 500
	}
}

// WorkKey returns a key for Transport.IdempotencyKey that is the same in every attempt of the same work. The key is a
// UUID in quotes, made of the identity of the work, the method and the URL of req. The identity comes from WithWork in
// the request's context, or else the ID of the retryjob job whose handler makes the request. It returns "" if there is
// neither, so that the request gets no key.
//
// Two requests of one piece of work with the same method and URL have the same key. Give each of them an identity of
// its own.
func WorkKey(req *http.Request) string {
	ctx := req.Context()
	work, ok := ctx.Value(workKey{}).(string)
	if !ok {
		work = handledJob(ctx)
	}
	if work == "" || req.URL == nil {
		return ""
	}
	url := *req.URL
	url.User = nil
	url.Fragment = ""
	url.RawFragment = ""
	sum := sha256.Sum256(fmt.Appendf(nil, "%q %q %q", work, cmp.Or(req.Method, http.MethodGet), url.String()))
	return quotedUUID([16]byte(sum[:16]), 8)
}

// handledJob returns the ID of the job in whose handler's context ctx is, or "" if ctx is not a handler's.
func handledJob(ctx context.Context) string {
	job, ok := ctx.Value(retryshell.HandledJob{}).(slog.LogValuer)
	if !ok {
		return ""
	}
	group := slog.AnyValue(job).Resolve()
	if group.Kind() != slog.KindGroup {
		return ""
	}
	for _, attr := range group.Group() {
		if attr.Key == "id" {
			return attr.Value.Resolve().String()
		}
	}
	return ""
}

// WithWork returns a context whose requests are part of the work with the given identity, such as an order's number,
// for WorkKey. An empty identity means that WorkKey returns "", also in the handler of a job.
func WithWork(ctx context.Context, identity string) context.Context {
	return context.WithValue(ctx, workKey{}, identity)
}

type workKey struct{}

// RandomKey returns a random UUID in quotes, for Transport.IdempotencyKey. All attempts of one RoundTrip carry the same
// one. Do not use it if a retry.Do, a job or a user repeats the RoundTrip. Each RoundTrip then has another key, and the
// server does the work again. Use WorkKey there.
func RandomKey(*http.Request) string {
	var id [16]byte
	_, _ = rand.Read(id[:]) // never fails
	return quotedUUID(id, 4)
}

// quotedUUID returns id as a UUID of the version (RFC 9562). The quotes are the form that
// draft-ietf-httpapi-idempotency-key-header-07, section 2.1, asks for.
func quotedUUID(id [16]byte, version byte) string {
	id[6] = id[6]&0x0f | version<<4
	id[8] = id[8]&0x3f | 0x80 // variant
	return fmt.Sprintf(`"%x-%x-%x-%x-%x"`, id[:4], id[4:6], id[6:8], id[8:10], id[10:])
}

// connTrace records whether an attempt sought and obtained a connection. Without a connection no byte was sent,
// whatever the error is. From a timeout alone one cannot know it. The methods of a nil connTrace report false.
type connTrace struct {
	wanted, got atomic.Bool
}

func (c *connTrace) obtained() bool { return c != nil && c.got.Load() }

// sought reports whether the transport has looked for a connection. False is no proof that it has not, because the
// transport may not call traces at all.
func (c *connTrace) sought() bool { return c != nil && c.wanted.Load() }

// traceConn returns a context whose attempt informs the connTrace.
func traceConn(ctx context.Context) (context.Context, *connTrace) {
	c := new(connTrace)
	return httptrace.WithClientTrace(ctx, &httptrace.ClientTrace{
		GetConn: func(string) { c.wanted.Store(true) },
		GotConn: func(httptrace.GotConnInfo) { c.got.Store(true) },
	}), c
}
