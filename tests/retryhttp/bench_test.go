package retryhttp_test

import (
	"bytes"
	"context"
	"io"
	"net/http"
	"net/http/httptest"
	"testing"
	"time"

	"github.com/retrygo/retry/retryhttp"
)

func BenchmarkRefusal(b *testing.B) {
	b.ReportAllocs()
	req := get(context.Background())
	req.Header = http.Header{"Accept": {"application/json"}, "Authorization": {"Bearer 0123456789abcdef0123456789abcdef"},
		"User-Agent": {"example/1.0"}, "Content-Type": {"application/json"}}
	tr := &retryhttp.Transport{Base: roundTripper(func(req *http.Request) (*http.Response, error) { return answer(req, 200), nil })}
	for b.Loop() {
		if _, err := tr.RoundTrip(req); err != nil {
			b.Fatal(err)
		}
	}
}

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

func BenchmarkHandler(b *testing.B) {
	handler := retryhttp.Handler(http.HandlerFunc(func(http.ResponseWriter, *http.Request) {}), retryhttp.HandlerOptions{})
	for _, attempt := range []string{"1", "3"} {
		b.Run("attempt="+attempt, func(b *testing.B) {
			r := httptest.NewRequest(http.MethodGet, "/", nil)
			r.Header.Set(retryhttp.AttemptHeader, attempt)
			w := httptest.NewRecorder()
			b.ReportAllocs()
			for b.Loop() {
				handler.ServeHTTP(w, r)
			}
		})
	}
}
