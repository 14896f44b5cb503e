package retryhttp

import (
	"fmt"
	"net/http"
	"net/url"
	"runtime"
	"strconv"
	"strings"
)

// requestError is the error of a request that was refused before any of it was sent. net/http itself refuses some of
// these requests once for each attempt, and rewrites and sends one whose Host has a line break in it.
type requestError string

func (e requestError) Error() string { return string(e) }

// refuse returns an error such as `Request.Method "GET\n" has the byte 0x0a at 3`. value is the given value, of a name
// only the bytes before the bad one. It is empty for a value that may be secret, such as a header's value or a query.
func refuse(field, value, rule string) error {
	if value != "" {
		field += " " + strconv.Quote(shortened(value, longestName))
	}
	return requestError(field + " " + rule)
}

// refusal returns the reason not to send req, or nil if req may be sent. The bytes of its header are many, and net/http
// looks at them again, so they are left to it (see run.fault), except on js.
func refusal(req *http.Request) error {
	switch {
	case req.Method != "" && !isToken(req.Method):
		return refuse("Request.Method", req.Method, "is not a token (RFC 9110, section 9.1)")
	case req.URL == nil:
		return refuse("Request.URL", "", "is nil")
	}
	if bad := refusedURL(req.URL); bad != nil {
		return bad
	}
	if req.Host != req.URL.Host { // http.NewRequest makes them the same
		if i := badByte(req.Host, &badInHost); i >= 0 {
			return refuseByte("Request.Host", req.Host, i)
		}
	}
	if len(req.Header) > 0 { // cheaper than to range over an empty map
		for name := range req.Header {
			if isFraming(name) {
				return refuse("Request.Header", name,
					"is not in the form of http.CanonicalHeaderKey, so that it would be sent beside the real one")
			}
		}
	}
	if runtime.GOOS == "js" { // net/http's fetch looks at no byte, and panics
		if bad := refusedFields("Request.Header", req.Header); bad != nil {
			return bad
		}
	}
	if te := req.TransferEncoding; len(te) > 0 && (len(te) > 1 || te[0] != "chunked") {
		// net/http sends the body without any framing then, as if it were the next request.
		return refuse("Request.TransferEncoding", strings.Join(te, ", "), "is not chunked")
	}
	if len(req.Trailer) == 0 {
		return nil
	}
	for name := range req.Trailer {
		switch http.CanonicalHeaderKey(name) {
		case "Transfer-Encoding", "Trailer", "Content-Length":
			return refuse("Request.Trailer", name, "is not allowed in a trailer (RFC 9110, section 6.5.1)")
		}
	}
	return refusedFields("Request.Trailer", req.Trailer)
}

func refusedURL(u *url.URL) error {
	if u.Scheme != "http" && u.Scheme != "https" {
		return refuse("Request.URL.Scheme", u.Scheme, "is neither http nor https")
	}
	if bad := refusedHost(u); bad != nil {
		return bad
	}
	// The path is escaped when it is written, but these two are written unchanged, and a space would end them.
	if i := badByte(u.RawQuery, &badInTarget); i >= 0 {
		return refuseByte("Request.URL.RawQuery", u.RawQuery, i)
	}
	if i := badByte(u.Opaque, &badInTarget); i >= 0 {
		return refuseByte("Request.URL.Opaque", u.Opaque, i)
	}
	return nil
}

func refusedHost(u *url.URL) error {
	if i := badByte(u.Host, &badInHost); i >= 0 {
		return refuseByte("Request.URL.Host", u.Host, i)
	}
	if u.Host != "" && u.Host[0] != '[' && strings.IndexByte(u.Host, ':') < 0 {
		return nil // a name alone
	}
	if u.Hostname() == "" {
		return refuse("Request.URL.Host", u.Host, "names no host")
	}
	if port := u.Port(); port != "" {
		if _, err := strconv.ParseUint(port, 10, 16); err != nil {
			return refuse("Request.URL.Host", u.Host, "has a port above 65535")
		}
	}
	return nil
}

// refusedFields returns the first fault in the bytes of fields.
func refusedFields(field string, fields http.Header) error {
	for name, values := range fields {
		switch i := badByte(name, &badInToken); {
		case name == "":
			return refuse(field, "", "has a field without a name")
		case i >= 0: // the bytes after the name may be a value, and secret
			rule := fmt.Sprintf("is followed by the byte 0x%02x, which no field name has (RFC 9110, section 5.1)", name[i])
			return refuse(field, name[:i], rule)
		}
		for _, value := range values {
			if i := badByte(value, &badInValue); i >= 0 {
				return refuseByte(fmt.Sprintf("%s[%q]", field, shortened(name, longestName)), value, i)
			}
		}
	}
	return nil
}

// isFraming reports whether name is one of the fields that net/http writes itself, in a form that it does not
// recognize.
func isFraming(name string) bool {
	for _, field := range [...]string{"Host", "Content-Length", "Transfer-Encoding", "Trailer"} {
		if len(name) == len(field) && name != field && strings.EqualFold(name, field) {
			return true
		}
	}
	return false
}

// refuseByte refuses the value for its byte at i. It shows that byte and, of a host only, the value, if that has no
// password in it.
func refuseByte(field, value string, i int) error {
	rule := fmt.Sprintf("has the byte 0x%02x at %d", value[i], i)
	if !strings.HasSuffix(field, "Host") || strings.Contains(value, "@") {
		value = ""
	}
	return refuse(field, value, rule)
}

// isToken reports whether s is a token (RFC 9110, section 5.6.2), which method and field names are.
func isToken(s string) bool { return s != "" && badByte(s, &badInToken) < 0 }

// badByte returns the index of the first byte of s that is in bad, or -1 if no byte is.
func badByte(s string, bad *[256]bool) int {
	for i := range len(s) {
		if bad[s[i]] {
			return i
		}
	}
	return -1
}

// The bytes that a token cannot have, a field value (RFC 9110, section 5.5), a target (RFC 9112, section 3.2), and a
// host with a port (RFC 3986, section 3.2.2). Bytes beyond ASCII pass in a host, because net/http makes Punycode of
// them.
var (
	badInToken  = byteSet("\"(),/:;<=>?@[\\]{}", func(c byte) bool { return c <= ' ' || c >= 0x7f })
	badInValue  = byteSet("", func(c byte) bool { return c < ' ' && c != '\t' || c == 0x7f })
	badInTarget = byteSet("", func(c byte) bool { return c <= ' ' || c == 0x7f })
	badInHost   = byteSet("\"#/<>?@\\^`{|}", func(c byte) bool { return c <= ' ' || c == 0x7f })
)

func byteSet(listed string, others func(byte) bool) (set [256]bool) {
	for c := range set {
		set[c] = others(byte(c)) || strings.IndexByte(listed, byte(c)) >= 0
	}
	return set
}
