package retryhttp

import (
	"compress/gzip"
	"io"
	"net/http"
	"strings"
)

// asksIdentity reports whether q has to ask for content without a coding. Otherwise net/http would ask for gzip, decode
// it, and hide the offsets.
func (q *request) asksIdentity() bool {
	t := q.transport
	if !t.Resume || !isGet(q.req) {
		return false
	}
	if base, ok := t.Base.(*http.Transport); ok && base.DisableCompression {
		return false
	}
	return q.req.Header.Get("Accept-Encoding") == "" && q.req.Header.Get("Range") == ""
}

// decode decodes the body of a response in gzip that was not asked for, as net/http would have done. Some servers send
// a file that they store in gzip whatever encodings the request accepts. A resumption counts the encoded bytes.
func (q *request) decode(resp *http.Response) {
	if !q.asksIdentity() || !strings.EqualFold(resp.Header.Get("Content-Encoding"), "gzip") {
		return
	}
	if resp.Body == nil || resp.Body == http.NoBody {
		return
	}
	resp.Header.Del("Content-Encoding")
	resp.Header.Del("Content-Length")
	resp.ContentLength = -1
	resp.Uncompressed = true
	resp.Body = &gunzipped{body: resp.Body}
}

// gunzipped is a body in gzip, decoded from the first Read on.
type gunzipped struct {
	body    io.ReadCloser
	decoder *gzip.Reader
	failed  error // of the decoder's header
}

func (g *gunzipped) Read(p []byte) (int, error) {
	if g.decoder == nil && g.failed == nil {
		g.decoder, g.failed = gzip.NewReader(g.body)
	}
	if g.failed != nil {
		return 0, g.failed
	}
	return g.decoder.Read(p)
}

func (g *gunzipped) Close() error { return g.body.Close() }
