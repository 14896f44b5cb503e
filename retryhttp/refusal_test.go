package retryhttp_test

import (
	"context"
	"errors"
	"net"
	"net/http"
	"net/url"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/retrygo/retry"
	"github.com/retrygo/retry/retryhttp"
)

var errDialed = errors.New("the request would be sent")

// undialed is a Base that refuses what net/http refuses, and gets no connection for the rest.
var undialed = &http.Transport{DialContext: func(context.Context, string, string) (net.Conn, error) { return nil, errDialed }}

func TestRefusedRequests(t *testing.T) {
	set := func(name, value string) func(*http.Request) {
		return func(r *http.Request) { r.Header[name] = []string{"fine", value} }
	}
	host := func(host string) func(*http.Request) { return func(r *http.Request) { r.URL.Host = host } }
	trailer := func(name, value string) func(*http.Request) {
		return func(r *http.Request) { r.Trailer = http.Header{name: {value}} }
	}
	for _, row := range []struct {
		name   string
		change func(*http.Request)
		text   string
	}{
		{"no URL", func(r *http.Request) { r.URL = nil }, `Request.URL is nil`},
		{"another scheme", func(r *http.Request) { r.URL.Scheme = "ftp" }, `Request.URL.Scheme "ftp" is neither http nor https`},
		{"no scheme", func(r *http.Request) { r.URL.Scheme = "" }, `Request.URL.Scheme is neither http nor https`},
		{"no host", host(""), `Request.URL.Host names no host`},
		{"a port without host", host(":80"), `Request.URL.Host ":80" names no host`},
		{"a host with a line break", host("a\r\nb"), `Request.URL.Host "a\r\nb" has the byte 0x0d at 1`},
		{"a host with a path", host("a/b"), `Request.URL.Host "a/b" has the byte 0x2f at 1`},
		{"a host with a quote", host("a\"b"), `Request.URL.Host "a\"b" has the byte 0x22 at 1`},
		{"a host with a DEL", host("a\x7fb"), `Request.URL.Host "a\x7fb" has the byte 0x7f at 1`},
		{"a host with a space", host("a b"), `Request.URL.Host "a b" has the byte 0x20 at 1`},
		{"a port that is none", host("a:65536"), `Request.URL.Host "a:65536" has a port above 65535`},
		{"a Host that net/http would rewrite", func(r *http.Request) { r.Host = "a\r\nX-Evil: 1" }, `Request.Host "a\r\nX-Evil: 1" has the byte 0x0d at 1`},
		{"a query with a line break", func(r *http.Request) { r.URL.RawQuery = "token=1\n" }, `Request.URL.RawQuery has the byte 0x0a at 7`},
		{"an opaque URL with a line break", func(r *http.Request) { r.URL.Opaque = "//a\n" }, `Request.URL.Opaque has the byte 0x0a at 3`},
		{"a method with a space", func(r *http.Request) { r.Method = "GET /" }, `Request.Method "GET /" is not a token (RFC 9110, section 9.1)`},
		{"a header value with a line feed", set("Authorization", "secret\n"), `Request.Header["Authorization"] has the byte 0x0a at 6`},
		{"a header value with a NUL", set("X", "\x00"), `Request.Header["X"] has the byte 0x00 at 0`},
		{"a header value with a DEL", set("X", "\x7f"), `Request.Header["X"] has the byte 0x7f at 0`},
		{"a header name with a colon", set("X:", ""), `Request.Header "X" is followed by the byte 0x3a, which no field name has (RFC 9110, section 5.1)`},
		{"a header name beyond ASCII", set("Ä", ""), `Request.Header is followed by the byte 0xc3, which no field name has (RFC 9110, section 5.1)`},
		{"a header without a name", set("", ""), `Request.Header has a field without a name`},
		{"a long name is shortened", set(strings.Repeat("a", 200)+":", ""),
			`Request.Header "` + strings.Repeat("a", 97) + `..." is followed by the byte 0x3a, which no field name has (RFC 9110, section 5.1)`},
		{"a header line as a name, whose value stays secret", set("Authorization: secret", ""),
			`Request.Header "Authorization" is followed by the byte 0x3a, which no field name has (RFC 9110, section 5.1)`},
		{"a second Content-Length", set("content-length", "1"),
			`Request.Header "content-length" is not in the form of http.CanonicalHeaderKey, so that it would be sent beside the real one`},
		{"a transfer encoding that is none", func(r *http.Request) { r.TransferEncoding = []string{"gzip", "chunked"} },
			`Request.TransferEncoding "gzip, chunked" is not chunked`},
		{"a host with a password", host("user:secret@a"), `Request.URL.Host has the byte 0x40 at 11`},
		{"a transfer encoding alone", func(r *http.Request) { r.TransferEncoding = []string{"gzip"} },
			`Request.TransferEncoding "gzip" is not chunked`},
		{"a transfer encoding after chunks", func(r *http.Request) { r.TransferEncoding = []string{"chunked", "gzip"} },
			`Request.TransferEncoding "chunked, gzip" is not chunked`},
		{"brackets around nothing", host("[]"), `Request.URL.Host "[]" names no host`},
		{"a Host that begins with a line break", func(r *http.Request) { r.Host = "\na" }, `Request.Host "\na" has the byte 0x0a at 0`},
		{"a host that begins with a line break", host("\na"), `Request.URL.Host "\na" has the byte 0x0a at 0`},
		{"a query that begins with a space", func(r *http.Request) { r.URL.RawQuery = " a" }, `Request.URL.RawQuery has the byte 0x20 at 0`},
		{"an opaque target that begins with a space", func(r *http.Request) { r.URL.Opaque = " a" }, `Request.URL.Opaque has the byte 0x20 at 0`},
		{"a query with a DEL", func(r *http.Request) { r.URL.RawQuery = "a=\x7f" }, `Request.URL.RawQuery has the byte 0x7f at 2`},
		{"a trailer about trailers", trailer("trailer", "X"), `Request.Trailer "trailer" is not allowed in a trailer (RFC 9110, section 6.5.1)`},
		{"the header host beside the real one", set("host", "x"),
			`Request.Header "host" is not in the form of http.CanonicalHeaderKey, so that it would be sent beside the real one`},
		{"the header transfer-encoding beside the real one", set("transfer-encoding", "x"),
			`Request.Header "transfer-encoding" is not in the form of http.CanonicalHeaderKey, so that it would be sent beside the real one`},
		{"the header trailer beside the real one", set("trailer", "x"),
			`Request.Header "trailer" is not in the form of http.CanonicalHeaderKey, so that it would be sent beside the real one`},
		{"a query with a space", func(r *http.Request) { r.URL.RawQuery = "a=b HTTP/1.0" }, `Request.URL.RawQuery has the byte 0x20 at 3`},
		{"a trailer value with a line break", trailer("X", "\r"), `Request.Trailer["X"] has the byte 0x0d at 0`},
		{"a trailer name with a line break", trailer("X\r\n", ""), `Request.Trailer "X" is followed by the byte 0x0d, which no field name has (RFC 9110, section 5.1)`},
		{"a trailer that would change the framing", trailer("content-length", "1"), `Request.Trailer "content-length" is not allowed in a trailer (RFC 9110, section 6.5.1)`},
	} {
		t.Run(row.name+" is refused before anything is sent", func(t *testing.T) {
			body := newBody("x")
			req := request(t.Context(), http.MethodPut, body)
			row.change(req)
			o, _, err := run(t, &retryhttp.Transport{Base: undialed, Policy: atOnce}, req)
			require.ErrorIs(t, err, retry.TerminalError)
			require.Equal(t, 1, o.Attempts)
			var failed *retryhttp.AttemptError
			require.ErrorAs(t, err, &failed)
			require.Equal(t, retryhttp.InvalidRequest, failed.Reason)
			require.True(t, failed.Unsent)
			require.EqualError(t, failed.Err, row.text)
			require.Equal(t, int32(1), body.n.Load())
		})
	}
	for name, change := range map[string]func(*http.Request){
		"no method":                                func(r *http.Request) { r.Method = "" },
		"no header":                                func(r *http.Request) { r.Header = nil },
		"an unknown method":                        func(r *http.Request) { r.Method = "M-SEARCH" },
		"a tab in a value":                         set("X", "a\tb"),
		"a value beyond ASCII":                     set("X", "ä"),
		"an empty value":                           set("X", ""),
		"a header that is not sent":                func(r *http.Request) { r.Header["User-Agent"] = nil },
		"a name in lower case":                     set("x-lower", "1"),
		"a Host header, as net/http leaves it out": set("Host", "a"),
		"a port":                                   host("a:8080"),
		"an empty port":                            host("a:"),
		"an IPv6 address":                          host("[::1]:80"),
		"an IPv6 zone":                             host("[fe80::1%en0]"),
		"an international name":                    host("bücher.example"),
		"an underscore":                            host("my_service.local"),
		"a Host of its own":                        func(r *http.Request) { r.Host = "other.example:81" },
		"a chunked body":                           func(r *http.Request) { r.TransferEncoding = []string{"chunked"} },
		"a trailer":                                trailer("X-Checksum", "1"),
		"a line break in the path":                 func(r *http.Request) { r.URL.Path = "/\r\n" },
		"user and password":                        func(r *http.Request) { r.URL.User = url.UserPassword("a\n", "b") },
	} {
		t.Run(name+" is sent", func(t *testing.T) {
			req := get(t.Context())
			change(req)
			base := roundTripper(func(req *http.Request) (*http.Response, error) { return answer(req, 200), nil })
			_, resp, err := run(t, &retryhttp.Transport{Base: base}, req)
			require.NoError(t, err)
			require.Equal(t, 200, resp.StatusCode)
		})
	}
}
