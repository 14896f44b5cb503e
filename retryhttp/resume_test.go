package retryhttp_test

import (
	"bytes"
	"context"
	"fmt"
	"io"
	"math/rand/v2"
	"net"
	"net/http"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"syscall"
	"testing"
	"testing/iotest"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/retrygo/retry"
	"github.com/retrygo/retry/retryhedge"
	"github.com/retrygo/retry/retryhttp"
)

// long ago is when the files of these tests were changed.
var longAgo = time.Date(2020, 1, 2, 3, 4, 5, 0, time.UTC)

// noise returns n bytes that do not repeat.
func noise(n int) []byte {
	b := make([]byte, n)
	_, _ = rand.NewChaCha8([32]byte{1}).Read(b)
	return b
}

// cutWriter ends the connection, or the stream of HTTP/2, after left bytes of the body.
type cutWriter struct {
	http.ResponseWriter
	left int
}

func (w *cutWriter) Write(p []byte) (int, error) {
	if len(p) < w.left {
		w.left -= len(p)
		return w.ResponseWriter.Write(p)
	}
	_, _ = w.ResponseWriter.Write(p[:w.left])
	_ = http.NewResponseController(w.ResponseWriter).Flush()
	panic(http.ErrAbortHandler)
}

// serveFile answers with http.ServeContent, and with an ETag if that is not empty.
func serveFile(w http.ResponseWriter, r *http.Request, content []byte, etag string) {
	if etag != "" {
		w.Header().Set("Etag", etag)
	}
	http.ServeContent(w, r, "", longAgo, bytes.NewReader(content))
}

// fetched returns what a GET brings, up to the error.
func fetched(t *testing.T, rt http.RoundTripper, req *http.Request) ([]byte, *http.Response, error) {
	t.Helper()
	resp, err := rt.RoundTrip(req)
	require.NoError(t, err)
	body, err := io.ReadAll(resp.Body)
	require.NoError(t, resp.Body.Close())
	return body, resp, err
}

// reply answers a request, nil for errFault.
type reply = func(*http.Request) *http.Response

// parts is a RoundTripper that answers each request with the next reply, and records the requests.
type parts struct {
	answers []reply
	mu      sync.Mutex
	got     []*http.Request
	open    atomic.Int32 // bodies that are not closed
}

func (p *parts) RoundTrip(req *http.Request) (*http.Response, error) {
	p.mu.Lock()
	n := len(p.got)
	p.got = append(p.got, req)
	p.mu.Unlock()
	resp := p.answers[min(n, len(p.answers)-1)](req)
	if resp == nil {
		return nil, errFault
	}
	p.open.Add(1)
	resp.Body = &boundBody{resp.Body, req.Context(), &p.open}
	return resp, nil
}

// ranges returns the Range and If-Range of each request after the first.
func (p *parts) ranges() (list []string) {
	for _, req := range p.got[1:] {
		list = append(list, req.Header.Get("Range")+" "+req.Header.Get("If-Range"))
	}
	return list
}

// part returns an answer with the body, which ends with err, a ContentLength, and a header of pairs of name and value.
func part(status int, body string, err error, length int64, header ...string) reply {
	return func(req *http.Request) *http.Response {
		resp := answer(req, status, header...)
		resp.ContentLength = length
		resp.Body = io.NopCloser(io.MultiReader(strings.NewReader(body), iotest.ErrReader(err)))
		return resp
	}
}

const (
	alphabet = "abcdefghijklmnopqrstuvwxyz"
	v1       = `"v1"`
)

var reset = &net.OpError{Op: "read", Net: "tcp", Err: syscall.ECONNRESET}

// half is an answer with the first ten of 26 bytes.
var half = part(200, alphabet[:10], reset, 26, "Etag", v1)

// rest answers with a part of the alphabet, from 10.
func rest(contentRange string, header ...string) reply {
	return part(206, alphabet[10:], io.EOF, -1, append([]string{"Content-Range", contentRange}, header...)...)
}

// resumed returns what a GET with Resume brings from a base with these answers, up to the error.
func resumed(t *testing.T, p retry.Policy, answers ...reply) (string, *parts, error) {
	t.Helper()
	base := &parts{answers: answers}
	body, _, err := fetched(t, &retryhttp.Transport{Base: base, Policy: p, Resume: true}, get(t.Context()))
	return string(body), base, err
}

// theRest is the answer after half that is whole and of the same version.
var theRest = rest("bytes 10-25/26", "Etag", v1)

func TestAnEmptyETagIsStrong(t *testing.T) {
	const empty = `""`
	body, _, err := resumed(t, atOnce, part(200, alphabet[:10], reset, 26, "Etag", empty), rest("bytes 10-25/26", "Etag", empty))
	require.NoError(t, err)
	require.Equal(t, alphabet, body)
}

// Without an ETag a whole file is taken again as long as no byte of the first was delivered.
func TestAFileWithoutAnETagThatBreaksBeforeItsFirstByteIsSentAgain(t *testing.T) {
	dates := []string{"Last-Modified", longAgo.Format(http.TimeFormat), "Date", longAgo.Add(time.Hour).Format(http.TimeFormat)}
	nothing := part(200, "", reset, 26, dates...)
	body, _, err := resumed(t, atOnce, nothing, part(200, alphabet, io.EOF, 26, dates...))
	require.NoError(t, err)
	require.Equal(t, alphabet, body)
	_, _, err = resumed(t, atOnce, nothing, part(200, alphabet, io.EOF, -1, dates...))
	require.Equal(t, retryhttp.NotResumable, retryhttp.ReasonOf(err))
}

func TestTheRestIsChecked(t *testing.T) {
	const changed, unusable = retryhttp.ContentChanged, retryhttp.NotResumable
	answers := func(list ...reply) []reply { return list }
	for _, row := range []struct {
		name string
		then []reply          // after half
		want string           // the body
		err  retryhttp.Reason // "" for io.EOF
	}{
		{"the rest", answers(theRest), alphabet, ""},
		{"the rest, total not said", answers(rest("bytes 10-25/*", "Etag", v1)), alphabet, ""},
		{"less than asked for, twice", answers(
			part(206, "klm", io.EOF, 3, "Content-Range", "bytes 10-12/26", "Etag", v1),
			part(206, "nop", io.EOF, -1, "Content-Range", "bytes 13-15/26", "Etag", v1),
			part(206, alphabet[16:], io.EOF, 10, "Content-Range", "bytes 16-25/26", "Etag", v1)), alphabet, ""},
		{"more than announced", answers(
			part(206, "klmXXX", io.EOF, -1, "Content-Range", "bytes 10-12/26", "Etag", v1),
			part(206, alphabet[13:]+"XXX", io.EOF, -1, "Content-Range", "bytes 13-25/26", "Etag", v1)), alphabet, ""},
		{"less than announced", answers(
			part(206, "kl", io.EOF, -1, "Content-Range", "bytes 10-25/26", "Etag", v1),
			part(206, alphabet[12:], io.EOF, -1, "Content-Range", "bytes 12-25/26", "Etag", v1)), alphabet, ""},
		{"a break after the last byte", answers(
			part(206, alphabet[10:], reset, 16, "Content-Range", "bytes 10-25/26", "Etag", v1)), alphabet, ""},
		{"a fault and a 503, which are all attempts", answers(func(*http.Request) *http.Response { return nil },
			part(503, "", io.EOF, 0), theRest), "", "status_503"},
		{"a fault before it", answers(func(*http.Request) *http.Response { return nil }, theRest), alphabet, ""},
		{"200 of another version", answers(part(200, alphabet, io.EOF, 26, "Etag", `"v2"`)), "", changed},
		{"200 of the same version, which is passed over", answers(part(200, alphabet, io.EOF, 26, "Etag", v1)), alphabet, ""},
		{"200 of the same version, of unknown length", answers(part(200, alphabet, io.EOF, -1, "Etag", v1)), alphabet, ""},
		{"200 of the same version, which breaks off before anything is new", answers(
			part(200, alphabet[:4], reset, 26, "Etag", v1), part(200, alphabet[:12], reset, 26, "Etag", v1),
			part(200, alphabet, io.EOF, 26, "Etag", v1)), alphabet, ""},
		{"200 of the same version, which ends before anything is new", answers(
			part(200, alphabet[:4], io.EOF, -1, "Etag", v1), theRest), alphabet, ""},
		{"200 of the same version and another length", answers(part(200, alphabet, io.EOF, 27, "Etag", v1)), "", unusable},
		{"200 of the same version and no length", answers(part(200, "", io.EOF, 0, "Etag", v1)), "", unusable},
		{"200 of the same version in another coding", answers(part(200, alphabet, io.EOF, 26, "Etag", v1, "Content-Encoding", "br")), "", changed},
		{"200 of the same version, with a range", answers(part(200, alphabet, io.EOF, 16, "Etag", v1, "Content-Range", "bytes 10-25/26")), "", unusable},
		{"206 of another version", answers(rest("bytes 10-25/26", "Etag", `"v2"`)), "", changed},
		{"206 in another coding", answers(rest("bytes 10-25/26", "Etag", v1, "Content-Encoding", "br")), "", changed},
		{"206 that was decoded", answers(func(req *http.Request) *http.Response {
			resp := theRest(req)
			resp.Uncompressed = true
			return resp
		}), "", changed},
		{"206 of a file that has parts", answers(rest("bytes 10-25/26", "Etag", v1, "Content-Type", "multipart/mixed; boundary=x")), alphabet, ""},
		{"206 with a weak ETag", answers(rest("bytes 10-25/26", "Etag", "W/"+v1)), "", changed},
		{"206 without an ETag", answers(rest("bytes 10-25/26")), "", changed},
		{"206 of another length", answers(rest("bytes 10-25/27", "Etag", v1)), "", changed},
		{"206 of another length, with the wrong length", answers(part(206, "klm", io.EOF, 4, "Content-Range", "bytes 10-25/27", "Etag", v1)), "", changed},
		{"206 that begins too early", answers(rest("bytes 9-25/26", "Etag", v1)), "", unusable},
		{"206 that ends a byte too late", answers(rest("bytes 10-26/*", "Etag", v1)), "", unusable},
		{"206 that begins too late", answers(rest("bytes 11-25/26", "Etag", v1)), "", unusable},
		{"206 with the wrong length", answers(part(206, "klm", io.EOF, 4, "Content-Range", "bytes 10-25/26", "Etag", v1)), "", unusable},
		{"206 of the right range and no length", answers(part(206, "", io.EOF, 0, "Content-Range", "bytes 10-25/26", "Etag", v1)), "", unusable},
		{"206 without Content-Range", answers(part(206, alphabet[10:], io.EOF, 16, "Etag", v1)), "", unusable},
		{"206 with two", answers(rest("bytes 10-25/26", "Content-Range", "bytes 10-25/26", "Etag", v1)), "", unusable},
		{"206 in another unit", answers(rest("lines 10-25/26", "Etag", v1)), "", unusable},
		{"206 of several ranges", answers(part(206, "--x", io.EOF, -1, "Etag", v1, "Content-Type", "multipart/byteranges; boundary=x")), "", unusable},
		{"206 of several ranges, with a Content-Range", answers(rest("bytes 10-25/26", "Etag", v1, "Content-Type", "Multipart/Byteranges")), "", unusable},
		{"403", answers(part(403, "no", io.EOF, 2)), "", "status_403"},
		{"302", answers(part(302, "", io.EOF, 0, "Location", "/elsewhere")), "", "status_302"},
		{"416", answers(part(416, "", io.EOF, 0, "Content-Range", "bytes */26")), "", "status_416"},
		{"503 for ever", answers(part(503, "", io.EOF, 0)), "", "status_503"},
		{"204", answers(part(204, "", io.EOF, 0)), "", "not_accepted"},
	} {
		inBubble(t, row.name, func(t *testing.T) {
			base := &parts{answers: append(answers(half), row.then...)}
			tr := &retryhttp.Transport{Base: base, Policy: three, Resume: true,
				Accept: func(resp *http.Response) bool { return resp.StatusCode == 200 }, Delivery: true}
			body, resp, err := fetched(t, tr, get(t.Context()))
			require.EqualValues(t, 26, resp.ContentLength)
			require.Zero(t, base.open.Load())
			if row.err == "" {
				require.NoError(t, err)
				require.Equal(t, row.want, string(body))
				return
			}
			require.Equal(t, alphabet[:10], string(body))
			var run *retry.Error
			require.ErrorAs(t, err, &run)
			require.Equal(t, row.err, retryhttp.ReasonOf(err), err)
			require.Equal(t, retryhttp.ConnReset, retryhttp.ReasonOf(run.History[0].Err))
			var failed *retryhttp.AttemptError
			require.ErrorAs(t, err, &failed)
			ofStatus := strings.HasPrefix(string(row.err), "status_") || row.err == retryhttp.NotAccepted
			require.Equal(t, ofStatus, failed.StatusCode != 0)
			_, again := resp.Body.Read(make([]byte, 1))
			require.Equal(t, err, again)
		})
	}
}

func TestTheTextsOfChangedContent(t *testing.T) {
	p := retry.Policy{Name: "file", MaxAttempts: 2, Backoff: atOnce.Backoff}
	_, _, err := resumed(t, p, half, part(200, alphabet, io.EOF, 26, "Etag", `"v2"`))
	var run *retry.Error
	require.ErrorAs(t, err, &run)
	require.Equal(t, retry.DeadLettered, run.Status)
	require.Equal(t, "file body", run.Policy)
	require.Equal(t, `retryhttp: content_changed: 200 OK with ETag "\"v2\"" and Content-Range "", after 10 bytes of "\"v1\""`, run.Last.Error())
}

// What has no rest fails as without Resume, and says why.
func TestWhatCannotBeResumed(t *testing.T) {
	asking := func(header ...string) *http.Request {
		req := get(t.Context())
		for i := 0; i < len(header); i += 2 {
			req.Header.Set(header[i], header[i+1])
		}
		return req
	}
	decoded := func(req *http.Request) *http.Response {
		resp := half(req)
		resp.Uncompressed, resp.ContentLength = true, -1
		return resp
	}
	date := func(d time.Duration) string { return longAgo.Add(d).Format(http.TimeFormat) }
	for _, row := range []struct {
		name   string
		req    *http.Request
		first  reply
		reason string
	}{
		{"POST", request(t.Context(), http.MethodPost, nil), half, "the method is not GET"},
		{"GET with a body", request(t.Context(), http.MethodGet, strings.NewReader("x")), half, "the request has a body"},
		{"decoded", get(t.Context()), decoded, "the transport has decoded it"},
		{"404", get(t.Context()), part(404, alphabet[:10], reset, 26, "Etag", v1), "the status is neither 200 nor 206"},
		{"no ranges", get(t.Context()), part(200, alphabet[:10], reset, 26, "Etag", v1, "Accept-Ranges", "none"), "Accept-Ranges is none"},
		{"no validator", get(t.Context()), part(200, alphabet[:10], reset, 26), "no strong validator"},
		{"a weak ETag", get(t.Context()), part(200, alphabet[:10], reset, 26, "Etag", "W/"+v1), "no strong validator"},
		{"a weak ETag and a date", get(t.Context()), part(200, alphabet[:10], reset, 26, "Etag", "W/"+v1,
			"Last-Modified", date(0), "Date", date(time.Hour)), "no strong validator"},
		{"no ETag", get(t.Context()), part(200, alphabet[:10], reset, 26, "Etag", "v1"), "no strong validator"},
		{"half an ETag", get(t.Context()), part(200, alphabet[:10], reset, 26, "Etag", `"`), "no strong validator"},
		{"a fresh date", get(t.Context()), part(200, alphabet[:10], reset, 26, "Last-Modified", date(0), "Date", date(59*time.Second)), "no strong validator"},
		{"a date for all codings", asking("Accept-Encoding", "gzip"), part(200, alphabet[:10], reset, 26, "Content-Encoding", "gzip",
			"Last-Modified", date(0), "Date", date(time.Hour)), "no strong validator"},
		{"a date without Date", get(t.Context()), part(200, alphabet[:10], reset, 26, "Last-Modified", date(0)), "no strong validator"},
		{"several ranges", asking("Range", "bytes=0-1,5-6"), part(206, "--x", reset, -1, "Etag", v1,
			"Content-Type", "multipart/byteranges; boundary=x"), "several ranges"},
		{"206 without Content-Range", asking("Range", "bytes=0-"), part(206, alphabet[:10], reset, 26, "Etag", v1), "no valid Content-Range"},
		{"206 of another length", asking("Range", "bytes=0-"), part(206, alphabet[:10], reset, 26, "Etag", v1,
			"Content-Range", "bytes 0-24/26"), "no valid Content-Range"},
	} {
		inBubble(t, row.name, func(t *testing.T) {
			base := &parts{answers: []reply{row.first}}
			var told []retry.Event
			p := three
			p.Observe = func(_ context.Context, e retry.Event) { told = append(told, e) }
			tr := &retryhttp.Transport{Base: base, Policy: p, Resume: true}
			body, _, err := fetched(t, tr, row.req.WithContext(t.Context()))
			require.Len(t, base.got, 1)
			require.LessOrEqual(t, len(body), 10)
			require.ErrorIs(t, err, syscall.ECONNRESET)
			var failed *retryhttp.AttemptError
			require.ErrorAs(t, err, &failed)
			require.Equal(t, retryhttp.NotResumable, failed.Veto)
			require.Contains(t, err.Error(), "("+row.reason+") (not repeated: not_resumable)")
			require.Equal(t, retry.TerminalError, told[len(told)-1].Outcome.Reason)
			require.Zero(t, base.open.Load())
		})
	}
}

// Code that decodes a body deletes what says how it was coded.
func TestTheRestIsComparedWithTheResponseAsItArrived(t *testing.T) {
	base := &parts{answers: []reply{
		part(206, alphabet[5:10], reset, 21, "Content-Range", "bytes 5-25/26", "Etag", v1, "Content-Encoding", "x"),
		part(206, alphabet[10:], io.EOF, 16, "Content-Range", "bytes 10-25/26", "Etag", v1, "Content-Encoding", "x")}}
	tr := &retryhttp.Transport{Base: base, Policy: atOnce, Resume: true}
	decoded := roundTripper(func(req *http.Request) (*http.Response, error) {
		resp, err := tr.RoundTrip(req)
		require.NoError(t, err)
		resp.StatusCode, resp.Header, resp.ContentLength, resp.Uncompressed = 200, http.Header{}, -1, true
		return resp, nil
	})
	req := get(t.Context())
	req.Header.Set("Range", "bytes=5-")
	body, _, err := fetched(t, decoded, req)
	require.NoError(t, err)
	require.Equal(t, alphabet[5:], string(body))
}

// A body that is whole is whole whether it could be resumed or not, and so is one that its server ends early by its own
// account.
func TestBodiesThatDoNotBreak(t *testing.T) {
	for name, first := range map[string]reply{
		"resumable":   part(200, alphabet, io.EOF, 26, "Etag", v1),
		"unvalidated": part(200, alphabet, io.EOF, 26),
		"chunked":     part(200, alphabet, io.EOF, -1, "Etag", v1),
		"a range":     part(206, alphabet, io.EOF, 26, "Etag", v1, "Content-Range", "bytes 10-35/100"),
	} {
		t.Run(name, func(t *testing.T) {
			body, base, err := resumed(t, retry.Policy{}, first)
			require.NoError(t, err)
			require.Equal(t, alphabet, body)
			require.Len(t, base.got, 1)
		})
	}
}

func TestOfUnknownLength(t *testing.T) {
	first := part(200, alphabet, reset, -1, "Etag", v1) // all is there, but for the end
	for _, row := range []struct {
		name   string
		then   reply
		reason retryhttp.Reason
	}{
		{"416 at the end", part(416, "an error page", io.EOF, 13, "Content-Range", "bytes */26"), ""},
		{"416 elsewhere", part(416, "", io.EOF, 0, "Content-Range", "bytes */20"), "status_416"},
		{"416 of another version", part(416, "", io.EOF, 0, "Content-Range", "bytes */26", "Etag", `"v2"`), "status_416"},
		{"416 that does not say where", part(416, "", io.EOF, 0), "status_416"},
	} {
		t.Run(row.name, func(t *testing.T) {
			body, base, err := resumed(t, atOnce, first, row.then)
			require.Equal(t, []string{`bytes=26- "v1"`}, base.ranges())
			require.Equal(t, alphabet, body)
			require.Equal(t, row.reason, retryhttp.ReasonOf(err))
			require.Zero(t, base.open.Load())
		})
	}
	t.Run("parts whose total is not said", func(t *testing.T) {
		body, _, err := resumed(t, atOnce, half0(-1),
			part(206, alphabet[10:20], io.EOF, 10, "Etag", v1, "Content-Range", "bytes 10-19/*"),
			part(206, alphabet[20:], io.EOF, 6, "Etag", v1, "Content-Range", "bytes 20-25/*"),
			part(416, "", io.EOF, 0, "Content-Range", "bytes */26"))
		require.NoError(t, err)
		require.Equal(t, alphabet, body)
	})
}

// A caller that recovers from a panic of Base and reads on does not take the break for the end.
func TestAPanicWhileTheRestIsAskedFor(t *testing.T) {
	base := &parts{answers: []reply{half0(-1),
		func(*http.Request) *http.Response { panic("base") },
		part(206, alphabet[10:], io.EOF, 16, "Etag", v1, "Content-Range", "bytes 10-25/26")}}
	resp, err := (&retryhttp.Transport{Base: base, Policy: atOnce, Resume: true}).RoundTrip(get(t.Context()))
	require.NoError(t, err)
	first := make([]byte, 10)
	_, err = io.ReadFull(resp.Body, first)
	require.NoError(t, err)
	require.PanicsWithValue(t, "base", func() { _, _ = resp.Body.Read(make([]byte, 1)) })
	rest, err := io.ReadAll(resp.Body)
	require.NoError(t, err)
	require.Equal(t, alphabet, string(first)+string(rest))
	require.NoError(t, resp.Body.Close())
}

// half0 is half with another ContentLength.
func half0(length int64) reply {
	return part(200, alphabet[:10], reset, length, "Etag", v1)
}

// Before the first byte was delivered, a whole body of the same version is as good as the rest.
func TestNothingDelivered(t *testing.T) {
	none := part(200, "", reset, 26, "Etag", v1)
	for etag, want := range map[string]retryhttp.Reason{v1: "", `"v2"`: retryhttp.ContentChanged} {
		body, base, err := resumed(t, atOnce, none,
			part(206, "", reset, 4, "Etag", v1, "Content-Range", "bytes 0-3/26"), part(200, alphabet, io.EOF, 26, "Etag", etag))
		require.Equal(t, want, retryhttp.ReasonOf(err))
		require.Equal(t, want == "", body == alphabet)
		require.Equal(t, []string{`bytes=0- "v1"`, `bytes=0- "v1"`}, base.ranges())
	}
}

func TestARangeThatTheServerIgnored(t *testing.T) {
	req := get(t.Context())
	req.Header.Set("Range", "bytes=5-8")
	base := &parts{answers: []reply{half, theRest}}
	body, _, err := fetched(t, &retryhttp.Transport{Base: base, Policy: atOnce, Resume: true}, req)
	require.NoError(t, err)
	require.Equal(t, alphabet, string(body))
}

func TestWhatAResumptionSends(t *testing.T) {
	base := &parts{answers: []reply{half, theRest}}
	req := get(t.Context())
	req.Header.Set("Authorization", "secret")
	req.Header["if-range"] = []string{`"other"`}
	tr := &retryhttp.Transport{Base: base, Policy: atOnce, Resume: true, AttemptHeader: retryhttp.AttemptHeader}
	_, _, err := fetched(t, tr, req)
	require.NoError(t, err)
	require.Equal(t, http.Header{"Authorization": {"secret"}, "if-range": {`"other"`}}, req.Header, "the caller's")
	require.Equal(t, http.Header{"Authorization": {"secret"}, "if-range": {`"other"`}, "Accept-Encoding": {"identity"},
		"Retry-Attempt": {"1"}}, base.got[0].Header)
	require.Equal(t, http.Header{"Authorization": {"secret"}, "Range": {"bytes=10-"}, "If-Range": {v1},
		"Accept-Encoding": {"identity"}, "Retry-Attempt": {"2"}}, base.got[1].Header)

	base = &parts{answers: []reply{part(200, alphabet[:10], reset, 26,
		"Last-Modified", longAgo.Format(http.TimeFormat), "Date", longAgo.Add(time.Minute).Format(http.TimeFormat)),
		rest("bytes 10-25/26", "Last-Modified", longAgo.Add(1).Format(http.TimeFormat))}}
	req.Header = http.Header{"Accept-Encoding": {"zstd"}} // the caller decodes
	body, _, err := fetched(t, &retryhttp.Transport{Base: base, Policy: atOnce, Resume: true}, req)
	require.NoError(t, err)
	require.Equal(t, alphabet, string(body))
	require.Equal(t, "zstd", base.got[0].Header.Get("Accept-Encoding"))
	require.Equal(t, []string{"bytes=10- Thu, 02 Jan 2020 03:04:05 GMT"}, base.ranges())
}

// Waits, budget, gate, TTL and deadline hold, and attempts count from each break.
func TestResumptionsAreRunsOfThePolicy(t *testing.T) {
	// piece answers with one byte of the rest, and breaks.
	piece := func(req *http.Request) *http.Response {
		from, _ := strconv.Atoi(strings.Trim(req.Header.Get("Range"), "bytes=-"))
		return part(206, alphabet[from:from+1], reset, int64(26-from), "Etag", v1, "Content-Range", fmt.Sprintf("bytes %d-25/26", from))(req)
	}
	// one answers with one byte of the rest, by its own will.
	one := func(req *http.Request) *http.Response {
		resp := piece(req)
		from := strings.TrimPrefix(strings.TrimSuffix(req.Header.Get("Range"), "-"), "bytes=")
		resp.Header.Set("Content-Range", fmt.Sprintf("bytes %[1]s-%[1]s/26", from))
		resp.Body, resp.ContentLength = io.NopCloser(io.LimitReader(resp.Body, 1)), 1
		return resp
	}
	slow := func(req *http.Request) *http.Response {
		time.Sleep(400 * time.Millisecond)
		return one(req)
	}
	down := func(*http.Request) *http.Response { return nil }
	hang := func(req *http.Request) *http.Response { <-req.Context().Done(); return nil }
	none := part(206, "", reset, 16, "Etag", v1, "Content-Range", "bytes 10-25/26")
	tokens := func(n int) *retry.Budget { return retry.NewBudget(retry.BudgetConfig{Initial: n, Ratio: 0.1}) }
	gates := 0
	const s = time.Second
	for _, row := range []struct {
		name     string
		policy   retry.Policy // over three
		answers  []reply
		body     string
		err      error
		requests int
		took     time.Duration
		left     float64 // tokens; the first response deposits 0.1
	}{
		{"attempts count anew when a byte has come", retry.Policy{}, []reply{half, down, piece, down, piece, piece}, alphabet, nil, 1 + 2 + 2 + 14, 18 * s, 0},
		{"a body that always breaks at the same byte fails", retry.Policy{}, []reply{half, none}, alphabet[:10], retry.AttemptsExhausted, 3, 2 * s, 0},
		{"a budget pays for breaks", retry.Policy{Budget: tokens(2)}, []reply{half, piece}, alphabet[:12], retry.BudgetExhausted, 3, 2 * s, 0.1},
		{"a Pay that refuses is asked after the budget", retry.Policy{Budget: tokens(1), Pay: func(context.Context, retry.Decision) bool { return false }},
			[]reply{half}, alphabet[:10], retry.BudgetExhausted, 1, 0, 1.1},
		{"short parts cost neither a wait nor a token", retry.Policy{Budget: tokens(1)}, []reply{half, one}, alphabet, nil, 1 + 16, s, 0.1},
		{"a failure between them does, and is the first of three", retry.Policy{Budget: tokens(3)}, []reply{half, one, down}, alphabet[:11], retry.AttemptsExhausted, 1 + 1 + 3, 3 * s, 0.1},
		{"a TTL counts since the request began", retry.Policy{TTL: 5 * s}, []reply{half, piece}, alphabet[:15], retry.TTLElapsed, 6, 5 * s, 0},
		{"short parts do not outlive the TTL", retry.Policy{TTL: 2 * s}, []reply{half, slow}, alphabet[:13], retry.TTLElapsed, 4, 2200 * time.Millisecond, 0},
		{"failures after a short part do not outlive the TTL", retry.Policy{MaxAttempts: 10, TTL: 4 * s}, []reply{half, one, down}, alphabet[:11], retry.TTLElapsed, 1 + 1 + 4, 4 * s, 0},
		{"a gate is asked before each request", retry.Policy{Gate: func(context.Context) time.Duration { gates++; return time.Duration(gates%2) * s }},
			[]reply{half, theRest}, alphabet, nil, 2, 3 * s, 0},
		{"a Retry-After is obeyed", retry.Policy{}, []reply{half, part(503, "", io.EOF, 0, "Retry-After", "7"), theRest}, alphabet, nil, 3, 8 * s, 0},
		{"an attempt timeout ends a request", retry.Policy{AttemptTimeout: time.Minute}, []reply{half, hang, theRest}, alphabet, nil, 3, time.Minute + 2*s, 0},
		{"rules of the caller's are asked about the break", retry.Policy{Classify: retry.StopOn(syscall.ECONNRESET)}, []reply{half}, alphabet[:10], retry.TerminalError, 1, 0, 0},
	} {
		inBubble(t, row.name, func(t *testing.T) {
			began := time.Now()
			body, base, err := resumed(t, row.policy.Or(three), row.answers...)
			require.ErrorIs(t, err, row.err)
			require.Equal(t, row.body, body)
			require.Len(t, base.got, row.requests)
			require.Equal(t, row.took, time.Since(began))
			require.Zero(t, base.open.Load())
			if row.policy.Budget != nil {
				require.InDelta(t, row.left, row.policy.Budget.Tokens(), 1e-9)
			}
		})
	}
	t.Run("the break is the first attempt", func(t *testing.T) {
		_, _, err := resumed(t, atOnce, half, none)
		o, err := retryhttp.OutcomeOf(nil, err)
		require.NoError(t, err)
		require.Equal(t, []string{"conn_reset", "conn_reset", "conn_reset"}, reasons(o))
	})
	inBubble(t, "a retry that is not made is paid back", func(t *testing.T) {
		p := three
		p.Budget = retry.NewBudget(retry.BudgetConfig{Initial: 1})
		ctx, cancel := context.WithCancel(t.Context())
		defer cancel()
		p.Observe = func(_ context.Context, e retry.Event) {
			if e.Policy == "body" && e.Decision.Status == retry.WaitingRetry {
				cancel()
			}
		}
		_, _, err := fetched(t, &retryhttp.Transport{Base: &parts{answers: []reply{half}}, Policy: p, Resume: true}, get(ctx))
		require.ErrorIs(t, err, retry.CallerCanceled)
		require.InDelta(t, 1.1, p.Budget.Tokens(), 1e-9)
	})
	inBubble(t, "a deadline", func(t *testing.T) {
		ctx, cancel := context.WithTimeout(t.Context(), 2500*time.Millisecond)
		defer cancel()
		base := &parts{answers: []reply{half, piece}}
		body, _, err := fetched(t, &retryhttp.Transport{Base: base, Policy: three, Resume: true}, get(ctx))
		require.ErrorIs(t, err, retry.DeadlineTooNear)
		require.Equal(t, alphabet[:12], string(body))
	})
	inBubble(t, "none under OneAttempt", func(t *testing.T) {
		base := &parts{answers: []reply{half}}
		_, _, err := fetched(t, &retryhttp.Transport{Base: base, Policy: three, Resume: true}, get(retry.OneAttempt(t.Context())))
		require.ErrorIs(t, err, retry.RetriesDisabled)
		require.ErrorIs(t, err, syscall.ECONNRESET)
		require.Len(t, base.got, 1)
	})
	inBubble(t, "the policy of PolicyFor, asked once", func(t *testing.T) {
		asked, base := 0, &parts{answers: []reply{half, piece}}
		body, _, err := fetched(t, &retryhttp.Transport{Base: base, Resume: true,
			PolicyFor: func(*http.Request) retry.Policy { asked++; return three }}, get(t.Context()))
		require.NoError(t, err)
		require.Equal(t, alphabet, string(body))
		require.Equal(t, 1, asked)
	})
	inBubble(t, "what Observe gets", func(t *testing.T) {
		var told []string
		p := three
		p.Name = "file"
		p.Observe = func(_ context.Context, e retry.Event) {
			if e.Outcome != nil {
				told = append(told, e.Policy+": "+e.Outcome.String())
			} else {
				told = append(told, e.Policy+": "+string(retryhttp.ReasonOf(e.Attempt.Err))+" "+e.Decision.String())
			}
		}
		ctx := retryhttp.WithOutcome(t.Context())
		base := &parts{answers: []reply{half, down, theRest}}
		_, resp, err := fetched(t, &retryhttp.Transport{Base: base, Policy: p, Resume: true}, get(ctx))
		require.NoError(t, err)
		require.Equal(t, []string{"file: succeeded after 1 attempt in 0s", "file body: conn_reset waiting_retry 1s",
			"file body: transport_error waiting_retry 1s", "file body: succeeded after 3 attempts in 2s"}, told)
		o, err := retryhttp.OutcomeOf(resp, nil)
		require.NoError(t, err)
		require.Equal(t, 1, o.Attempts, "the record is that of the RoundTrip")
	})
}

// bound returns an answer whose body ends with err once its context ends, and until then does not.
func bound(status int, body string, length int64, header ...string) reply {
	return func(req *http.Request) *http.Response {
		resp := answer(req, status, header...)
		resp.ContentLength = length
		resp.Body = io.NopCloser(io.MultiReader(strings.NewReader(body), readFunc(func([]byte) (int, error) {
			<-req.Context().Done()
			return 0, req.Context().Err()
		})))
		return resp
	}
}

func TestAResumptionEndsWithItsCaller(t *testing.T) {
	hang := func(req *http.Request) *http.Response { <-req.Context().Done(); return nil }
	for _, row := range []struct {
		name    string
		then    reply
		at      time.Duration // when the caller goes
		between bool          // two parts, so that no body ends with an error of its own
	}{
		{"in the wait", nil, 500 * time.Millisecond, true},
		{"in the request", hang, 5 * time.Second, true},
		{"in the first byte of the rest", bound(206, "", 16, "Etag", v1, "Content-Range", "bytes 10-25/26"), 5 * time.Second, false},
		{"in the rest", bound(206, "klm", 16, "Etag", v1, "Content-Range", "bytes 10-25/26"), 5 * time.Second, false},
	} {
		for name, leave := range map[string]func(io.Closer, context.CancelCauseFunc){
			"Close":  func(body io.Closer, _ context.CancelCauseFunc) { _ = body.Close() },
			"cancel": func(_ io.Closer, cancel context.CancelCauseFunc) { cancel(errFault) },
		} {
			inBubble(t, name+" "+row.name, func(t *testing.T) {
				ctx, cancel := context.WithCancelCause(t.Context())
				defer cancel(nil)
				base := &parts{answers: []reply{half, row.then}}
				tr := &retryhttp.Transport{Base: base, Policy: three, Resume: true}
				resp, err := tr.RoundTrip(get(ctx))
				require.NoError(t, err)
				began := time.Now()
				time.AfterFunc(row.at, func() { leave(resp.Body, cancel) })
				_, err = io.Copy(io.Discard, resp.Body)
				require.Equal(t, row.at, time.Since(began))
				require.Error(t, err)
				switch {
				case !row.between:
				case name == "Close":
					require.ErrorIs(t, err, http.ErrBodyReadAfterClose)
				default:
					require.ErrorIs(t, err, retry.CallerCanceled)
					require.ErrorIs(t, err, errFault)
				}
				require.NoError(t, resp.Body.Close())
				require.NoError(t, resp.Body.Close())
				synctest.Wait()
				require.Zero(t, base.open.Load())
			})
		}
	}
	inBubble(t, "a read after Close", func(t *testing.T) {
		base := &parts{answers: []reply{half}}
		resp, err := (&retryhttp.Transport{Base: base, Policy: three, Resume: true}).RoundTrip(get(t.Context()))
		require.NoError(t, err)
		require.NoError(t, resp.Body.Close())
		_, err = io.ReadAll(resp.Body)
		require.Error(t, err)
		require.Len(t, base.got, 1)
	})
}

func TestAStallBecomesAResumption(t *testing.T) {
	inBubble(t, "once", func(t *testing.T) {
		stalls := func(req *http.Request) *http.Response {
			resp := half(req)
			silent := newPipe()
			resp.Body = struct {
				io.Reader
				io.Closer
			}{io.MultiReader(strings.NewReader(alphabet[:10]), silent), silent}
			return resp
		}
		base := &parts{answers: []reply{stalls, theRest}}
		began := time.Now()
		body, _, err := fetched(t, &retryhttp.Transport{Base: base, Policy: three, Resume: true, StallTimeout: time.Minute}, get(t.Context()))
		require.NoError(t, err)
		require.Equal(t, alphabet, string(body))
		require.Equal(t, time.Minute+time.Second, time.Since(began))
	})
}

// A Read may return the last bytes with what ends them, and need not return that twice.
func TestAnEndThatComesWithBytes(t *testing.T) {
	ending := func(answer reply, text string, end error) reply {
		return func(req *http.Request) *http.Response {
			resp, over := answer(req), false
			resp.Body = io.NopCloser(readFunc(func(p []byte) (int, error) {
				require.False(t, over)
				over = true
				return copy(p, text), end
			}))
			return resp
		}
	}
	body, _, err := resumed(t, atOnce, ending(half, alphabet[:10], reset),
		ending(theRest, alphabet[10:20], reset), ending(rest("bytes 20-25/26", "Etag", v1), alphabet[20:], io.EOF))
	require.NoError(t, err)
	require.Equal(t, alphabet, body)
}

// An encoded body is resumed by its encoded bytes, if it has an ETag.
func TestAnEncodedBodyIsResumed(t *testing.T) {
	base := &parts{answers: []reply{
		part(200, alphabet[:10], reset, 26, "Etag", v1, "Content-Encoding", "br"), theRest}}
	req := get(t.Context())
	req.Header.Set("Accept-Encoding", "br")
	body, _, err := fetched(t, &retryhttp.Transport{Base: base, Policy: atOnce, Resume: true}, req)
	require.NoError(t, err)
	require.Equal(t, alphabet, string(body))
	require.Equal(t, "br", base.got[1].Header.Get("Accept-Encoding"))
}

func TestTrailersOfTheLastPart(t *testing.T) {
	with := func(answer reply, value string) reply {
		return func(req *http.Request) *http.Response {
			resp := answer(req)
			resp.Trailer = http.Header{"X-Sum": {value}}
			return resp
		}
	}
	for _, row := range [][]reply{{half, with(theRest, "right")}, {with(half, ""), with(theRest, "right")}, {with(half, "right"), theRest}} {
		base := &parts{answers: row}
		_, resp, err := fetched(t, &retryhttp.Transport{Base: base, Policy: atOnce, Resume: true}, get(t.Context()))
		require.NoError(t, err)
		require.Equal(t, http.Header{"X-Sum": {"right"}}, resp.Trailer)
	}
}

func TestABodyThatIsWrittenToIsLeftAlone(t *testing.T) {
	rw := &conn{Reader: strings.NewReader("x")}
	base := withBody(200, rw)
	resp, err := (&retryhttp.Transport{Base: base, Resume: true}).RoundTrip(get(t.Context()))
	require.NoError(t, err)
	require.Same(t, rw, resp.Body)
}

// Replicas can have ETags of their own, so the rest is asked for where the body came from.
func TestTheRestComesFromTheBaseThatAnswered(t *testing.T) {
	down := func(*http.Request) *http.Response { return nil }
	hangs := func(req *http.Request) *http.Response { <-req.Context().Done(); return nil }
	for _, row := range []struct {
		name           string
		first, replica []reply
		asked          int // of the first
	}{
		{"that of a hedge", []reply{hangs, rest("bytes 10-25/26", "Etag", `"of the first"`)}, []reply{half, down, theRest}, 1},
		{"the first, and its hedges go to the other", []reply{half, hangs}, []reply{theRest}, 2},
	} {
		inBubble(t, row.name, func(t *testing.T) {
			first, replica := &parts{answers: row.first}, &parts{answers: row.replica}
			hedge := &retryhttp.Hedge{Policy: retryhedge.Policy{Delay: time.Second}, Base: replica}
			body, _, err := fetched(t, &retryhttp.Transport{Base: first, Policy: three, Resume: true, Hedge: hedge}, get(t.Context()))
			require.NoError(t, err)
			require.Equal(t, alphabet, string(body))
			require.Len(t, first.got, row.asked)
			require.Same(t, replica, hedge.Base, "the caller's")
			require.Zero(t, first.open.Load()+replica.open.Load())
		})
	}
}

// A client removes credentials at a redirect to another host, and the rest is asked for without them.
func TestCredentialsDoNotFollowAResumption(t *testing.T) {
	moved := part(302, "", io.EOF, 0, "Location", "http://mirror.example/file")
	base := &parts{answers: []reply{moved, half, theRest}}
	tr := &retryhttp.Transport{Base: base, Policy: atOnce, Resume: true, AttemptHeader: retryhttp.AttemptHeader,
		TimeLeftHeaders: map[string]string{"example.com": retryhttp.EnvoyTimeLeftHeader, "mirror.example": retryhttp.EnvoyTimeLeftHeader}}
	ctx, cancel := context.WithTimeout(t.Context(), time.Hour)
	defer cancel()
	req := get(ctx)
	req.Header.Set("Authorization", "secret")
	req.Header.Set("Cookie", "session=secret")
	resp, err := (&http.Client{Transport: tr}).Do(req)
	require.NoError(t, err)
	body, err := io.ReadAll(resp.Body)
	require.NoError(t, err)
	require.NoError(t, resp.Body.Close())
	require.Equal(t, alphabet, string(body))
	require.Equal(t, "secret", base.got[0].Header.Get("Authorization"))
	require.Len(t, base.got, 3)
	require.Equal(t, "mirror.example", base.got[2].URL.Host)
	require.Equal(t, http.Header{"Accept-Encoding": {"identity"}, "Range": {"bytes=10-"}, "If-Range": {v1}, "Referer": {"http://example.com/"}},
		base.got[2].Header)
}

// A Read is one Read of what net/http has returned, into the caller's buffer, so that its speed is that of the bare body.
func TestAReadOfAResumableBodyAllocatesAndCopiesNothing(t *testing.T) {
	var got []byte
	reads := 0
	resp, err := (&retryhttp.Transport{Resume: true, Base: roundTripper(func(req *http.Request) (*http.Response, error) {
		resp := answer(req, 200)
		resp.Header, resp.ContentLength = http.Header{"Etag": {`"v1"`}}, 1<<30
		resp.Body = io.NopCloser(readFunc(func(p []byte) (int, error) { got = p; reads++; return len(p), nil }))
		return resp, nil
	})}).RoundTrip(get(t.Context()))
	require.NoError(t, err)
	buf := make([]byte, 64<<10)
	require.Zero(t, testing.AllocsPerRun(100, func() {
		if n, err := resp.Body.Read(buf); n != len(buf) || err != nil {
			panic(err)
		}
	}))
	require.Equal(t, 101, reads)
	require.Same(t, &buf[0], &got[0])
	require.Len(t, got, len(buf))
	require.NoError(t, resp.Body.Close())
}
