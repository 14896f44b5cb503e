package retryhttp_test

import (
	"bytes"
	"fmt"
	"io"
	"math/rand/v2"
	"net/http"
	"syscall"
	"testing"
	"testing/iotest"

	"github.com/stretchr/testify/require"

	"github.com/retrygo/retry/retryhttp"
)

const v1 = `"v1"`

// The first answer breaks off after so many bytes, and http.ServeContent answers the rest, by an ETag or a Last-Modified in
// turn.
func TestResumeAtEveryByte(t *testing.T) {
	content := noise(4 << 10)
	bothProtocols(t, "of 4 KiB", func(t *testing.T, h2 bool) {
		var at, asked int
		server := socketServer(t, h2, func(w http.ResponseWriter, r *http.Request) {
			if asked++; asked == 1 {
				w = &cutWriter{w, at}
			}
			serveFile(w, r, content, []string{v1, ""}[at%2])
		})
		tr := &retryhttp.Transport{Base: server.base, Policy: atOnce, Resume: true}
		step := 1
		if testing.Short() {
			step = 5 // odd, so that the answers still alternate
		}
		for at = 0; at < len(content); at += step {
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

// Nothing is lost or doubled however often and wherever a body breaks off, also one of unknown length.
func TestResumeAtRandomPoints(t *testing.T) {
	for _, row := range []struct {
		name        string
		size, piece int // of a part at most
		known       bool
	}{
		{"known length", 64 << 20, 8 << 20, true},
		{"unknown length", 1 << 20, 256 << 10, false},
	} {
		content := noise(row.size)
		bothProtocols(t, row.name, func(t *testing.T, h2 bool) {
			asked := 0
			server := socketServer(t, h2, func(w http.ResponseWriter, r *http.Request) {
				cut := &cutWriter{w, 1 + rand.IntN(row.piece)}
				if asked++; asked > 1 || row.known {
					serveFile(cut, r, content, v1)
					return
				}
				w.Header().Set("Etag", v1)
				w.WriteHeader(200)
				_, _ = cut.Write(content)
			})
			tr := &retryhttp.Transport{Base: server.base, Policy: atOnce, Resume: true}
			body, resp, err := fetched(t, tr, server.request(t.Context(), http.MethodGet, nil))
			require.NoError(t, err)
			require.Equal(t, row.known, resp.ContentLength >= 0)
			require.True(t, bytes.Equal(content, body))
			require.GreaterOrEqual(t, asked, row.size/row.piece)
		})
	}
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
			serveFile(w, r, content, v1)
		})
		req := server.request(t.Context(), http.MethodGet, nil)
		req.Header.Set("Range", row.asked)
		body, resp, err := fetched(t, &retryhttp.Transport{Base: server.base, Policy: atOnce, Resume: true}, req)
		require.NoError(t, err)
		require.Equal(t, []string{row.asked, row.want}, got)
		require.Equal(t, row.asked, req.Header.Get("Range"), "the caller's request")
		var from, to, total int
		_, err = fmt.Sscanf(resp.Header.Get("Content-Range"), "bytes %d-%d/%d", &from, &to, &total)
		require.NoError(t, err)
		require.True(t, bytes.Equal(content[from:to+1], body))
	}
}

// A part of up to 64 MiB is passed over.
func TestHowMuchIsPassedOver(t *testing.T) {
	const limit, size = 64 << 20, 64<<20 + 10
	for delivered, want := range map[int64]retryhttp.Reason{limit: "", limit + 1: retryhttp.NotResumable} {
		asked := 0
		base := roundTripper(func(req *http.Request) (*http.Response, error) {
			resp := answer(req, 200, "Etag", v1)
			resp.ContentLength = size
			resp.Body = io.NopCloser(io.LimitReader(zeros{}, size))
			if asked++; asked == 1 {
				resp.Body = io.NopCloser(io.MultiReader(io.LimitReader(zeros{}, delivered), iotest.ErrReader(syscall.ECONNRESET)))
			}
			return resp, nil
		})
		resp, err := (&retryhttp.Transport{Base: base, Policy: atOnce, Resume: true}).RoundTrip(get(t.Context()))
		require.NoError(t, err)
		n, err := io.Copy(io.Discard, resp.Body)
		require.NoError(t, resp.Body.Close())
		require.Equal(t, want, retryhttp.ReasonOf(err))
		require.Equal(t, want == "", n == size)
	}
}

type zeros struct{}

func (zeros) Read(p []byte) (int, error) { clear(p); return len(p), nil }
