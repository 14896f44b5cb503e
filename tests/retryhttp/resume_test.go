package retryhttp_test

import (
	"bytes"
	"context"
	"crypto/sha256"
	"fmt"
	"io"
	"math/rand/v2"
	"net"
	"net/http"
	"net/http/httptest"
	"sync"
	"sync/atomic"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/retrygo/retry/retryhttp"
	"github.com/retrygo/retry/retryhttp/ssrf"
)

// The first answer breaks off after so many bytes, and http.ServeContent answers the rest.
func TestResumeAtEveryByte(t *testing.T) {
	content := noise(4 << 10)
	for name, etag := range map[string]string{"ETag": `"v1"`, "Last-Modified": ""} {
		bothProtocols(t, name, func(t *testing.T, h2 bool) {
			var at, asked int
			server := socketServer(t, h2, func(w http.ResponseWriter, r *http.Request) {
				if asked++; asked == 1 {
					w = &cutWriter{w, at}
				}
				serveFile(w, r, content, etag)
			})
			tr := &retryhttp.Transport{Base: server.base, Policy: atOnce, Resume: true}
			for at = range content {
				asked = 0
				body, resp, err := fetched(t, tr, server.request(t.Context(), http.MethodGet, nil))
				require.NoError(t, err, at)
				require.True(t, bytes.Equal(content, body), "%d: %d bytes", at, len(body))
				require.EqualValues(t, len(content), resp.ContentLength)
				require.Equal(t, 200, resp.StatusCode)
				require.Equal(t, 2, asked, at)
			}
		})
	}
}

// Nothing is lost or doubled however often and wherever a body breaks off, also one of unknown length.
func TestResumeAtRandomPoints(t *testing.T) {
	content := noise(64 << 20)
	want := sha256.Sum256(content)
	bothProtocols(t, "known length", func(t *testing.T, h2 bool) {
		breaks := 0
		server := socketServer(t, h2, func(w http.ResponseWriter, r *http.Request) {
			breaks++
			serveFile(&cutWriter{w, 1 + rand.IntN(8<<20)}, r, content, `"v1"`)
		})
		sum, n := sha256.New(), int64(0)
		tr := &retryhttp.Transport{Base: server.base, Policy: atOnce, Resume: true}
		resp, err := tr.RoundTrip(server.request(t.Context(), http.MethodGet, nil))
		require.NoError(t, err)
		n, err = io.Copy(sum, resp.Body)
		require.NoError(t, err)
		require.NoError(t, resp.Body.Close())
		require.EqualValues(t, len(content), n)
		require.Equal(t, want[:], sum.Sum(nil))
		require.Greater(t, breaks, 8)
	})
	bothProtocols(t, "unknown length", func(t *testing.T, h2 bool) {
		asked := 0
		server := socketServer(t, h2, func(w http.ResponseWriter, r *http.Request) {
			if asked++; asked > 1 {
				serveFile(&cutWriter{w, 1 + rand.IntN(256<<10)}, r, content[:1<<20], `"v1"`)
				return
			}
			w.Header().Set("Etag", `"v1"`)
			w.WriteHeader(200)
			_, _ = (&cutWriter{w, 1 << 18}).Write(content[:1<<20])
		})
		tr := &retryhttp.Transport{Base: server.base, Policy: atOnce, Resume: true}
		body, resp, err := fetched(t, tr, server.request(t.Context(), http.MethodGet, nil))
		require.NoError(t, err)
		require.EqualValues(t, -1, resp.ContentLength)
		require.True(t, bytes.Equal(content[:1<<20], body))
	})
}

func TestARedirectedBodyIsResumedWhereItCameFrom(t *testing.T) {
	content := noise(1 << 12)
	var asked []string
	var mu sync.Mutex
	mirror := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		mu.Lock()
		asked = append(asked, "mirror"+r.URL.String())
		n := len(asked)
		mu.Unlock()
		if n < 4 {
			w = &cutWriter{w, 1000}
		}
		serveFile(w, r, content, `"v1"`)
	}))
	defer mirror.Close()
	origin := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		mu.Lock()
		asked = append(asked, "origin"+r.URL.String())
		mu.Unlock()
		http.Redirect(w, r, mirror.URL+"/file?signature=1", http.StatusFound)
	}))
	defer origin.Close()
	client := &http.Client{Transport: &retryhttp.Transport{Base: socketTransport(t), Policy: atOnce, Resume: true}}
	resp, err := client.Get(origin.URL + "/latest")
	require.NoError(t, err)
	body, err := io.ReadAll(resp.Body)
	require.NoError(t, err)
	require.NoError(t, resp.Body.Close())
	require.True(t, bytes.Equal(content, body))
	const there = "mirror/file?signature=1"
	require.Equal(t, []string{"origin/latest", there, there, there}, asked)
}

// Each resumption is a dial like any other: a name that changes its address between two parts reaches no inner host.
func TestAResumptionIsGuarded(t *testing.T) {
	var dials atomic.Int32
	server := socketServer(t, false, func(w http.ResponseWriter, r *http.Request) {
		w.Header().Set("Connection", "close")
		serveFile(&cutWriter{w, 10}, r, noise(100), `"v1"`)
	})
	base := socketTransport(t)
	base.DialContext = func(ctx context.Context, network, address string) (net.Conn, error) {
		if dials.Add(1) > 1 {
			return nil, &net.OpError{Op: "dial", Err: ssrf.ErrBlocked}
		}
		return (&net.Dialer{}).DialContext(ctx, network, address)
	}
	body, _, err := fetched(t, &retryhttp.Transport{Base: base, Policy: atOnce, Resume: true}, server.request(t.Context(), http.MethodGet, nil))
	require.ErrorIs(t, err, ssrf.ErrBlocked)
	require.Equal(t, retryhttp.AddressBlocked, retryhttp.ReasonOf(err))
	require.Len(t, body, 10)
	require.EqualValues(t, 2, dials.Load())
}

func TestARangeOfTheCallers(t *testing.T) {
	content := noise(4 << 10)
	for _, row := range []struct{ asked, want string }{
		{"bytes=1000-1999", "bytes=1500-1999"},
		{"bytes=1000-", "bytes=1500-4095"},
		{"bytes=-3000", "bytes=1596-4095"},
	} {
		var got []string
		server := socketServer(t, false, func(w http.ResponseWriter, r *http.Request) {
			if got = append(got, r.Header.Get("Range")); len(got) == 1 {
				w = &cutWriter{w, 500}
			}
			serveFile(w, r, content, `"v1"`)
		})
		req := server.request(t.Context(), http.MethodGet, nil)
		req.Header.Set("Range", row.asked)
		want, _, err := fetched(t, server.base, req)
		require.Error(t, err)
		require.Len(t, want, 500)
		got = nil
		body, resp, err := fetched(t, &retryhttp.Transport{Base: server.base, Policy: atOnce, Resume: true}, req)
		require.NoError(t, err)
		require.Equal(t, []string{row.asked, row.want}, got)
		require.Equal(t, row.asked, req.Header.Get("Range"), "the caller's request")
		var from, to, total int
		_, err = fmt.Sscanf(resp.Header.Get("Content-Range"), "bytes %d-%d/%d", &from, &to, &total)
		require.NoError(t, err)
		require.True(t, bytes.Equal(content[from:to+1], body))
		require.EqualValues(t, len(body), resp.ContentLength)
	}
}
