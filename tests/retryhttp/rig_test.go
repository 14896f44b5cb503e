package retryhttp_test

import (
	"bytes"
	"context"
	"encoding/binary"
	"errors"
	"io"
	"math/rand/v2"
	"net"
	"net/http"
	"net/http/httptrace"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/retrygo/retry"
	"github.com/retrygo/retry/retryhttp"
)

var errDialed = errors.New("the request would be sent")

// undialed is a Base that refuses what net/http refuses, and gets no connection for the rest.
var undialed = &http.Transport{DialContext: func(context.Context, string, string) (net.Conn, error) { return nil, errDialed }}

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

// roundTripper makes a RoundTripper of a function.
type roundTripper func(*http.Request) (*http.Response, error)

func (f roundTripper) RoundTrip(req *http.Request) (*http.Response, error) { return f(req) }

// answer returns a response to req as a transport would. The header is in pairs of name and value.
func answer(req *http.Request, status int, header ...string) *http.Response {
	resp := &http.Response{StatusCode: status, ProtoMajor: 1, ProtoMinor: 1, Header: http.Header{}, Body: http.NoBody, Request: req}
	for i := 0; i < len(header); i += 2 {
		resp.Header.Add(header[i], header[i+1])
	}
	return resp
}

var errFault = errors.New("fault")

func get(ctx context.Context) *http.Request { return request(ctx, http.MethodGet, nil) }

func request(ctx context.Context, method string, body io.Reader) *http.Request {
	req, err := http.NewRequestWithContext(ctx, method, "http://example.com/", body)
	if err != nil {
		panic(err)
	}
	return req
}

// three is a policy of 3 attempts with waits of 1s.
var three = retry.Policy{MaxAttempts: 3, Backoff: retry.Backoff{Mode: retry.Fixed, Base: time.Second}}

// atOnce is a policy of 3 attempts with waits of a nanosecond.
var atOnce = retry.Policy{MaxAttempts: 3, Backoff: retry.Backoff{Mode: retry.Fixed, Base: 1}}

// inBubble runs f as a subtest in virtual time.
func inBubble(t *testing.T, name string, f func(*testing.T)) {
	t.Run(name, func(t *testing.T) { synctest.Test(t, f) })
}

// run makes one call with rt and returns its record and what the caller gets.
func run(t *testing.T, rt http.RoundTripper, req *http.Request) (retry.Outcome, *http.Response, error) {
	t.Helper()
	resp, err := rt.RoundTrip(req.WithContext(retryhttp.WithOutcome(req.Context())))
	if err != nil {
		require.Nil(t, resp)
		var failed *retry.Error
		require.ErrorAs(t, err, &failed)
		return failed.Outcome, nil, err
	}
	o, err := retryhttp.OutcomeOf(resp, nil)
	require.NoError(t, err)
	return o, resp, nil
}

// reasons returns the reasons of a history, with its vetoes.
func reasons(o retry.Outcome) []string {
	var list []string
	for _, a := range o.History {
		var failed *retryhttp.AttemptError
		if !errors.As(a.Err, &failed) {
			list = append(list, a.Err.Error())
			continue
		}
		text := string(failed.Reason)
		if failed.Veto != "" {
			text += "/" + string(failed.Veto)
		}
		list = append(list, text)
	}
	return list
}

func anyone(*http.Request) bool { return true }

// always returns a RoundTripper whose every answer is this one.
func always(status int, header ...string) roundTripper {
	return func(req *http.Request) (*http.Response, error) { return answer(req, status, header...), nil }
}

// traced fails as a transport does that has looked for a connection, and has or has not obtained one.
func traced(sought, obtained bool, err error) roundTripper {
	return func(req *http.Request) (*http.Response, error) {
		if trace := httptrace.ContextClientTrace(req.Context()); trace != nil {
			if sought {
				trace.GetConn("example.com:80")
			}
			if obtained {
				trace.GotConn(httptrace.GotConnInfo{})
			}
		}
		return nil, err
	}
}

// A policy that makes one attempt ends its run as RetriesDisabled, which says nothing of the failure.
var once = retry.Policy{Disabled: true}

// frames serves HTTP/2 by hand at the other end of a pipe (RFC 9113, section 4.1). Its frames are written by a goroutine
// of their own, since a pipe holds nothing.
type frames struct {
	net.Conn
	out chan []byte
}

const (
	frameHeaders  = 1
	frameReset    = 3
	frameSettings = 4
	frameGoAway   = 7
)

// write sends a frame with the numbers.
func (f *frames) write(kind, flags byte, stream uint32, numbers ...uint32) {
	var payload []byte
	for _, n := range numbers {
		payload = binary.BigEndian.AppendUint32(payload, n)
	}
	f.writeBytes(kind, flags, stream, payload)
}

func (f *frames) writeBytes(kind, flags byte, stream uint32, payload []byte) {
	header := []byte{0, 0, byte(len(payload)), kind, flags}
	f.out <- append(binary.BigEndian.AppendUint32(header, stream), payload...)
}

// ok answers the stream with 200 and no body: the static table's entry 8 (RFC 7541, appendix A).
func (f *frames) ok(stream uint32) { f.writeBytes(frameHeaders, 0x1|0x4, stream, []byte{0x88}) }

// serve calls answer for each request with its stream, until it returns false.
func (f *frames) serve(answer func(f *frames, stream uint32) bool) {
	f.out = make(chan []byte, 8)
	var writing sync.WaitGroup
	writing.Go(func() {
		defer func() { _ = f.Close() }()
		for frame := range f.out {
			_, _ = f.Write(frame)
		}
	})
	defer writing.Wait()
	end := sync.OnceFunc(func() { close(f.out) })
	defer end()
	_, _ = io.CopyN(io.Discard, f, int64(len("PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n")))
	f.write(frameSettings, 0, 0)
	for more := true; ; {
		var header [9]byte
		if _, err := io.ReadFull(f, header[:]); err != nil {
			return
		}
		_, _ = io.CopyN(io.Discard, f, int64(header[0])<<16|int64(header[1])<<8|int64(header[2]))
		if header[3] == frameHeaders && more {
			if more = answer(f, binary.BigEndian.Uint32(header[5:])); !more {
				end() // and read on until what was written is through: the client may have to write before it reads
			}
		}
	}
}

// overFrames calls use with the transport of a server that answers by hand. It needs a bubble.
func overFrames(answer func(f *frames, stream uint32) bool, use func(*http.Transport)) {
	var conns sync.WaitGroup
	base := &http.Transport{Protocols: new(http.Protocols)}
	base.Protocols.SetUnencryptedHTTP2(true)
	base.DialContext = func(context.Context, string, string) (net.Conn, error) {
		client, server := net.Pipe()
		conns.Go(func() { (&frames{Conn: server}).serve(answer) })
		return client, nil
	}
	defer conns.Wait()
	defer base.CloseIdleConnections()
	defer synctest.Wait() // for net/http to notice that its connection is idle
	use(base)
}
