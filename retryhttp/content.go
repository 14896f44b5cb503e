package retryhttp

import (
	"fmt"
	"math"
	"net/http"
	"strconv"
	"strings"
	"time"
)

// content is the version and the place of the part of a body that came first. The rest has to agree with it. It is
// noted when the response arrives, since code that decodes the body changes the response.
type content struct {
	obstacle string // why the rest cannot be asked for, empty if it can
	status   int
	length   int64 // the ContentLength
	etag     string
	modified string // the Last-Modified, if it is the validator
	validity string // the Last-Modified as it was
	coding   string

	// Offsets of the first byte and behind the last one, and the length of the whole on the server. The last two may be
	// unknown.
	first, end, total int64
}

const unknown = math.MaxInt64 // an offset that a server has not sent

func contentOf(req *http.Request, resp *http.Response) content {
	h := resp.Header
	c := content{status: resp.StatusCode, length: resp.ContentLength, end: unknown, total: unknown}
	c.coding = h.Get("Content-Encoding")
	c.validity = h.Get("Last-Modified")
	c.etag, c.modified = strongValidator(h)
	c.obstacle = c.survey(req, resp)
	if c.obstacle != "" {
		c.end = unknown
	}
	return c
}

// survey notes which bytes resp has. obstacle is the reason why the rest cannot be asked for, or "" if it can.
func (c *content) survey(req *http.Request, resp *http.Response) (obstacle string) {
	switch {
	case !isGet(req):
		return "the method is not GET"
	case req.Body != nil && req.Body != http.NoBody:
		return "the request has a body"
	case resp.Uncompressed:
		return "the transport has decoded it"
	}
	if obstacle = c.locate(resp.Header); obstacle != "" {
		return obstacle
	}
	switch {
	case strings.EqualFold(resp.Header.Get("Accept-Ranges"), "none"):
		return "Accept-Ranges is none"
	case c.validator() == "":
		return "no strong validator"
	default:
		return ""
	}
}

// locate notes which bytes the response has. obstacle is the reason why they are not known, or "" if they are.
func (c *content) locate(h http.Header) (obstacle string) {
	if c.status == http.StatusOK {
		if c.length >= 0 {
			c.end = c.length
			c.total = c.length
		}
		return ""
	}
	if c.status != http.StatusPartialContent {
		return "the status is neither 200 nor 206"
	}
	if isMultipart(h) {
		return "several ranges"
	}
	r, ok := rangeOf(h)
	if !ok || r.first < 0 || !r.hasLength(c.length) {
		return "no valid Content-Range"
	}
	c.first = r.first
	c.end = r.last + 1
	c.total = r.total
	return ""
}

// validator is the value of If-Range.
func (c *content) validator() string { return c.etag + c.modified }

// isVersionOf reports whether resp is of the same version and coding. A 206 must repeat the ETag, but need not repeat
// the other fields.
func (c *content) isVersionOf(resp *http.Response) bool {
	h := resp.Header
	isWhole := resp.StatusCode == http.StatusOK
	switch {
	case resp.Uncompressed, h.Get("Etag") != c.etag:
		return false
	case !agrees(h, "Content-Encoding", c.coding, isWhole):
		return false
	default:
		return c.etag != "" || agrees(h, "Last-Modified", c.validity, isWhole)
	}
}

// agrees reports whether h has the value of the field. If must is false, h may also leave the field out.
func agrees(h http.Header, name, value string, must bool) bool {
	said := h.Get(name)
	return said == value || said == "" && !must
}

func isGet(req *http.Request) bool { return req.Method == "" || req.Method == http.MethodGet }

// clockSkew is how much older than the Date of its response a Last-Modified must be to be strong. RFC 9110, section
// 8.8.2.2, asks for a second if one clock makes both. RFC 7232, section 2.2.2, asks for 60s otherwise.
const clockSkew = time.Minute

// strongValidator returns the ETag of h if it is strong, or the Last-Modified if that is and there is no ETag at all
// (RFC 9110, section 13.1.5). All codings of a file have the same Last-Modified.
func strongValidator(h http.Header) (etag, modified string) {
	if etag = h.Get("Etag"); etag != "" {
		if len(etag) < 2 || etag[0] != '"' || etag[len(etag)-1] != '"' {
			etag = "" // weak, or missing
		}
		return etag, ""
	}
	modified = h.Get("Last-Modified")
	changed, err := http.ParseTime(modified)
	if err != nil || h.Get("Content-Encoding") != "" {
		return "", ""
	}
	sent, err := http.ParseTime(h.Get("Date"))
	if err != nil || sent.Sub(changed) < clockSkew {
		return "", ""
	}
	return "", modified
}

func isMultipart(h http.Header) bool {
	return strings.HasPrefix(strings.ToLower(h.Get("Content-Type")), "multipart/byteranges")
}

// span is the content of a Content-Range such as "bytes 0-99/1000". total is unknown for "bytes 0-99/*". first and last
// are -1 for "bytes */1000", with which a server refuses a range that has no byte.
type span struct{ first, last, total int64 }

// rangeOf parses the only Content-Range of h (RFC 9110, section 14.4).
func rangeOf(h http.Header) (span, bool) {
	values := h.Values("Content-Range")
	if len(values) != 1 {
		return span{}, false
	}
	return parseSpan(values[0])
}

func parseSpan(value string) (span, bool) {
	unit, rest, _ := strings.Cut(value, " ")
	bytes, length, _ := strings.Cut(rest, "/")
	from, to, _ := strings.Cut(bytes, "-")
	r := span{first: offset(from), last: offset(to), total: offset(length)}
	if !strings.EqualFold(unit, "bytes") {
		return r, false
	}
	if bytes == "*" {
		return r, r.total >= 0
	}
	if length == "*" {
		r.total = unknown
	}
	return r, 0 <= r.first && r.first <= r.last && r.last < r.total
}

// hasLength reports whether n, a ContentLength, is the length of the span, or is not known.
func (r span) hasLength(n int64) bool { return n < 0 || n == r.last-r.first+1 }

// offset parses a number of digits alone that is less than unknown, and returns -1 for anything else.
func offset(s string) int64 {
	n, err := strconv.ParseUint(s, 10, 63) // refuses a sign
	if err != nil || n == unknown {
		return -1
	}
	return int64(n)
}

// mismatch returns the failure of a resumption whose response is not the rest that was asked for.
func (c *content) mismatch(reason Reason, resp *http.Response, next int64) *AttemptError {
	return &AttemptError{Reason: reason, Veto: reason, Err: fmt.Errorf(
		"%s with ETag %q and Content-Range %q, after %d bytes of %q", statusText(resp.StatusCode),
		resp.Header.Get("Etag"), resp.Header.Get("Content-Range"), next, c.validator())}
}
