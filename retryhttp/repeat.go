package retryhttp

import (
	"context"
	"crypto/rand"
	"fmt"
	"net/http"
	"net/http/httptrace"
	"sync/atomic"
)

// Repeatable reports whether req may be sent again although a server may have acted on it: its method is GET, HEAD,
// OPTIONS, TRACE, PUT or DELETE (RFC 9110, section 9.2.2), or its header has an entry for Idempotency-Key or
// X-Idempotency-Key. As in net/http an entry without values counts, and is not sent: it marks one request.
//
//	req.Header["Idempotency-Key"] = nil
//
// A request that is not repeatable is repeated only if it is certain that nothing was sent, or if Transport.Repeat
// reports true.
func Repeatable(req *http.Request) bool {
	return idempotentMethod(req.Method) || hasKey(req.Header)
}

// idempotentMethod reports whether the method is idempotent by definition; "" stands for GET.
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

// RandomKey returns a random UUID in quotes, for Transport.IdempotencyKey. The quotes are the form that
// draft-ietf-httpapi-idempotency-key-header-07, section 2.1, asks for.
func RandomKey(*http.Request) string {
	var id [16]byte
	_, _ = rand.Read(id[:])   // never fails
	id[6] = id[6]&0x0f | 0x40 // version 4
	id[8] = id[8]&0x3f | 0x80 // variant of RFC 9562
	return fmt.Sprintf(`"%x-%x-%x-%x-%x"`, id[:4], id[4:6], id[6:8], id[8:10], id[10:])
}

// connTrace records whether an attempt sought and obtained a connection. Without a connection nothing was sent, no
// matter what the error says; a timeout alone does not show it. The methods of a nil connTrace report false.
type connTrace struct {
	wanted, got atomic.Bool
}

func (c *connTrace) obtained() bool { return c != nil && c.got.Load() }

// sought reports whether the transport has looked for a connection. If it is false, the transport may not call traces
// at all, so it proves nothing.
func (c *connTrace) sought() bool { return c != nil && c.wanted.Load() }

// traceConn returns a context whose attempt informs the connTrace.
func traceConn(ctx context.Context) (context.Context, *connTrace) {
	c := new(connTrace)
	return httptrace.WithClientTrace(ctx, &httptrace.ClientTrace{
		GetConn: func(string) { c.wanted.Store(true) },
		GotConn: func(httptrace.GotConnInfo) { c.got.Store(true) },
	}), c
}
