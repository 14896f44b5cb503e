package retryhttp_test

import (
	"bytes"
	"context"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	"github.com/retrygo/retry"
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

func BenchmarkRoundTrip(b *testing.B) {
	base := roundTripper(func(req *http.Request) (*http.Response, error) { return answer(req, 200), nil })
	body := roundTripper(func(req *http.Request) (*http.Response, error) {
		resp := answer(req, 200)
		resp.Body = io.NopCloser(strings.NewReader("body"))
		return resp, nil
	})
	ctx, cancel := context.WithCancel(b.Context())
	defer cancel()
	for _, row := range []struct {
		name string
		rt   http.RoundTripper
	}{
		{"bare client", base},
		{"Transport", &retryhttp.Transport{Base: base}},
		{"bare client, a body", body},
		{"Transport, a body", &retryhttp.Transport{Base: body}},
		{"Transport, a body, attempt timeout", &retryhttp.Transport{Base: body, Policy: retry.Policy{AttemptTimeout: time.Minute}}},
	} {
		b.Run(row.name, func(b *testing.B) {
			b.ReportAllocs()
			client := http.Client{Transport: row.rt}
			req := get(ctx)
			for b.Loop() {
				resp, err := client.Do(req)
				if err != nil || resp.StatusCode != 200 {
					b.Fatal(err)
				}
				_, _ = io.Copy(io.Discard, resp.Body)
				_ = resp.Body.Close()
			}
		})
	}
}
