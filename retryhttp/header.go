package retryhttp

import (
	"maps"
	"net/http"
	"net/url"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/retrygo/retry"
	"github.com/retrygo/retry/retryshell"
)

// edited is a header of which a copy is made before the first change.
type edited struct {
	original http.Header
	copied   http.Header // nil if no field was changed
}

func (e *edited) copy() http.Header {
	if e.copied == nil {
		e.copied = make(http.Header, len(e.original)+1)
		maps.Copy(e.copied, e.original)
	}
	return e.copied
}

// setOnly makes value the only one of the field in any spelling of its name. An empty value removes the field.
func (e *edited) setOnly(name, value string) {
	header := e.copy()
	maps.DeleteFunc(header, func(key string, _ []string) bool { return strings.EqualFold(key, name) })
	if value != "" {
		header.Set(name, value)
	}
}

// header returns the header of x, nil if it is the caller's. Each exchange has its own, because a transport may read it
// after it has returned.
func (x *exchange) header() http.Header {
	q := &x.run.request
	header := edited{original: q.req.Header}
	if q.isHedged() { // a RoundTripper that sets a field in place, as it must not, would meet another one's
		header.copied = make(http.Header)
		for name, values := range q.req.Header {
			header.copied[name] = slices.Clone(values)
		}
	}
	if q.key != "" {
		header.copy()["Idempotency-Key"] = []string{q.key}
	}
	if q.asksIdentity() {
		header.copy()["Accept-Encoding"] = []string{"identity"}
	}
	if name := q.transport.AttemptHeader; name != "" {
		header.setOnly(name, x.number())
	}
	if name := q.timeLeft(); name != "" {
		if until, ok := x.context().Deadline(); ok { // at least 1, because 0 means no limit to Envoy
			header.setOnly(name, strconv.FormatInt(max(1, time.Until(until).Milliseconds()), 10))
		}
	}
	return header.copied
}

// number returns the value of the AttemptHeader, or "" to send no such header.
func (x *exchange) number() string {
	if redirectedAway(x.run.request.req) {
		return ""
	}
	ctx := x.context()
	return strconv.Itoa(max(retry.AttemptNumber(ctx), retryshell.OuterAttemptNumber(ctx)))
}

// timeLeft returns the name of the header by which the host of q learns the time that an attempt has left, or "" to
// send no such header.
func (q *request) timeLeft() string {
	for host, name := range q.transport.TimeLeftHeaders {
		if strings.EqualFold(host, q.req.URL.Host) && !redirectedAway(q.req) {
			return name
		}
	}
	return ""
}

// longestChain is the number of redirects that redirectedAway follows back. An http.Client follows a tenth of it.
const longestChain = 100

// redirectedAway reports whether a client has followed a redirect to req from a request to another host. It reports
// true if it cannot find the first request, as when a redirect was followed with the same request, which leads back to
// itself.
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
