package retryhttp_test

import (
	"bytes"
	"io"
	"net/http"
	"net/http/httptest"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/retrygo/retry/retryhttp"
)

// BenchmarkBody reads a body of 64 MiB that does not break, over loopback, by 64 KiB.
func BenchmarkBody(b *testing.B) {
	content := bytes.Repeat([]byte("0123456789abcdef"), 4<<20)
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		w.Header().Set("Etag", `"v1"`)
		http.ServeContent(w, r, "file", time.Time{}, bytes.NewReader(content))
	}))
	defer server.Close()
	for name, rt := range map[string]http.RoundTripper{
		"bare": http.DefaultTransport, "resumable": &retryhttp.Transport{Resume: true},
	} {
		b.Run(name, func(b *testing.B) {
			client, buf := &http.Client{Transport: rt}, make([]byte, 64<<10)
			b.SetBytes(int64(len(content)))
			for b.Loop() {
				resp, err := client.Get(server.URL)
				if err != nil {
					b.Fatal(err)
				}
				n, err := io.CopyBuffer(struct{ io.Writer }{io.Discard}, struct{ io.Reader }{resp.Body}, buf)
				if err != nil || n != int64(len(content)) {
					b.Fatal(n, err)
				}
				if err := resp.Body.Close(); err != nil {
					b.Fatal(err)
				}
			}
		})
	}
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
